// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The samples that a rank sends, keeps and receives.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The part of a plan that concerns one rank. Samples from one rank to another are in the order in
/// which they arrive, so that both sides know the order. Later calls reuse its memory.
class sample_routes {
 public:
  /// A sample that stays on its rank.
  struct stay {
    std::uint32_t from;
    std::uint32_t to;
  };

  void prepare(exchange_plan const& plan, std::size_t rank) {
    leaving_.clear();
    coming_.clear();
    staying_.clear();
    send_counts_.assign(plan.ranks(), 0);
    receive_counts_.assign(plan.ranks(), 0);
    std::uint32_t const first = plan.home_offsets()[rank];
    std::uint32_t const first_slot = plan.arrivals().offset(rank);
    auto const departures = plan.departures()[rank];
    auto const arrivals = plan.arrivals(rank);
    leaving_.reserve(departures.size());
    coming_.reserve(arrivals.size());
    staying_.reserve(std::min(departures.size(), arrivals.size()));
    for (std::uint32_t i = 0; i != departures.size(); ++i) {
      std::uint32_t const position = departures[i] - first_slot;
      if (departures[i] >= first_slot && position < arrivals.size()) {
        staying_.push_back({i, position});
      } else {
        leaving_.push_back(std::uint64_t{departures[i]} << 32 | i);
        ++send_counts_[plan.destination_of(first + i)];
      }
    }
    for (std::uint32_t i = 0; i != arrivals.size(); ++i) {
      if (arrivals[i] >= first && arrivals[i] - first < departures.size()) continue;
      std::size_t const source = plan.home_of(arrivals[i]);
      coming_.push_back(std::uint64_t{source} << 32 | i);
      ++receive_counts_[source];
    }
    sort_by_high_bits(leaving_, static_cast<unsigned>(std::bit_width(plan.sample_count())));
    sort_by_high_bits(coming_, static_cast<unsigned>(std::bit_width(plan.ranks())));
  }

  [[nodiscard]] std::span<stay const> staying() const { return staying_; }
  /// Returns the number of samples that go to each rank; `receive_counts` returns the number that
  /// come from each rank. Samples that stay do not count.
  [[nodiscard]] std::span<std::uint64_t const> send_counts() const { return send_counts_; }
  [[nodiscard]] std::span<std::uint64_t const> receive_counts() const { return receive_counts_; }

  [[nodiscard]] std::size_t leaving_count() const { return leaving_.size(); }
  [[nodiscard]] std::size_t coming_count() const { return coming_.size(); }

  /// Returns the position of the k-th leaving sample among the local samples; `coming` returns the
  /// position of the k-th coming sample among the arrivals.
  [[nodiscard]] std::uint32_t leaving(std::size_t k) const {
    return static_cast<std::uint32_t>(leaving_[k]);
  }
  [[nodiscard]] std::uint32_t coming(std::size_t k) const {
    return static_cast<std::uint32_t>(coming_[k]);
  }

 private:
  /// Sorts words by their high 32 bits, of which the lowest `bits` may be set. The positions in the
  /// low bits already ascend.
  void sort_by_high_bits(std::vector<std::uint64_t>& words, unsigned bits) {
    constexpr std::size_t few = 1024;
    if (words.size() <= few) {
      std::sort(words.begin(), words.end());
    } else {
      radix_sort(words, spare_, 32, bits);
    }
  }

  // The low bits are a position; the high bits are the slot or the rank by which words are sorted.
  std::vector<std::uint64_t> leaving_;
  std::vector<std::uint64_t> coming_;
  std::vector<std::uint64_t> spare_;
  std::vector<stay> staying_;
  std::vector<std::uint64_t> send_counts_;
  std::vector<std::uint64_t> receive_counts_;
};

}  // namespace omnibal::inline v0::detail
