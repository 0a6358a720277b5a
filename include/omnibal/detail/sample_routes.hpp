#pragma once

/// \file
/// Which samples a rank sends, keeps and gets.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The part of a plan that concerns one rank. What travels from one rank to another is in the order
/// in which it arrives, so that both sides know it. Keeps its memory.
class sample_routes {
 public:
  /// A sample that does not travel.
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
    sort_by_high_bits(leaving_, bits_of(plan.sample_count()));
    sort_by_high_bits(coming_, bits_of(plan.ranks()));
  }

  [[nodiscard]] std::span<stay const> staying() const { return staying_; }
  /// The number of samples that go to each rank and that come from each, without those that stay.
  [[nodiscard]] std::span<std::uint64_t const> send_counts() const { return send_counts_; }
  [[nodiscard]] std::span<std::uint64_t const> receive_counts() const { return receive_counts_; }

  [[nodiscard]] std::size_t leaving_count() const { return leaving_.size(); }
  [[nodiscard]] std::size_t coming_count() const { return coming_.size(); }

  /// The position among the local samples of the k-th one that leaves, and among the arrivals of
  /// the k-th one that comes.
  [[nodiscard]] std::uint32_t leaving(std::size_t k) const {
    return static_cast<std::uint32_t>(leaving_[k]);
  }
  [[nodiscard]] std::uint32_t coming(std::size_t k) const {
    return static_cast<std::uint32_t>(coming_[k]);
  }

 private:
  [[nodiscard]] static unsigned bits_of(std::size_t largest) {
    return static_cast<unsigned>(std::bit_width(largest));
  }

  /// By the bits above the lowest 32, of which so many are used. Positions ascend already.
  void sort_by_high_bits(std::vector<std::uint64_t>& words, unsigned bits) {
    constexpr std::size_t few = 1024;
    if (words.size() <= few) {
      std::sort(words.begin(), words.end());
    } else {
      radix_sort(words, spare_, 32, bits);
    }
  }

  // A position in the low bits, by the slot or the rank in the high ones.
  std::vector<std::uint64_t> leaving_;
  std::vector<std::uint64_t> coming_;
  std::vector<std::uint64_t> spare_;
  std::vector<stay> staying_;
  std::vector<std::uint64_t> send_counts_;
  std::vector<std::uint64_t> receive_counts_;
};

}  // namespace omnibal::inline v0::detail
