#pragma once

/// \file
/// Samples that travel together.

#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::nccl::detail {

/// What a rank sends, gets and keeps, in runs of samples that are neighbours before and after. Both
/// sides find the same runs, in the order of their slots.
class message_runs {
 public:
  /// Samples to or from a rank, by their place on this one.
  struct run {
    std::uint32_t peer;
    std::uint32_t first;
    std::uint32_t count;
  };
  /// Samples that stay, by their places before and after.
  struct kept_run {
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t count;
  };

  message_runs(exchange_plan const& plan, std::size_t rank) {
    std::uint32_t const first_slot = plan.arrivals().offset(rank);
    grouping const sends = plan.sends(rank);
    auto const slots = plan.departures()[rank];
    for (std::uint32_t peer = 0; peer != sends.size(); ++peer) {
      std::uint32_t last_slot = 0;
      for (std::uint32_t const sample : sends[peer]) {
        std::uint32_t const slot = slots[sample];
        bool const is_next = slot == last_slot + 1;
        last_slot = slot;
        if (peer != rank) {
          add(sent_, peer, sample, is_next);
        } else if (is_next && !kept_.empty() && sample == kept_.back().from + kept_.back().count) {
          ++kept_.back().count;
        } else {
          kept_.push_back({sample, slot - first_slot, 1});
        }
      }
    }
    receive(plan, rank);
  }

  [[nodiscard]] std::span<run const> sent() const { return sent_; }
  [[nodiscard]] std::span<run const> received() const { return received_; }
  [[nodiscard]] std::span<kept_run const> kept() const { return kept_; }

 private:
  /// Appends a sample whose other place is next to that of the last one, or not.
  static void add(std::vector<run>& runs, std::uint32_t peer, std::uint32_t place, bool is_next) {
    if (is_next && !runs.empty() && runs.back().peer == peer &&
        place == runs.back().first + runs.back().count) {
      ++runs.back().count;
    } else {
      runs.push_back({peer, place, 1});
    }
  }

  void receive(exchange_plan const& plan, std::size_t rank) {
    struct arrival {
      std::uint32_t source;
      std::uint32_t place;
      std::uint32_t sample;
    };
    std::vector<arrival> arrivals;
    for (std::uint32_t const sample : plan.arrivals(rank)) {
      arrivals.push_back({static_cast<std::uint32_t>(plan.home_of(sample)),
                          static_cast<std::uint32_t>(arrivals.size()), sample});
    }
    std::stable_sort(
        arrivals.begin(), arrivals.end(),
        [](arrival const& left, arrival const& right) { return left.source < right.source; });
    std::uint32_t last_sample = 0;
    for (arrival const& one : arrivals) {
      bool const is_next = one.sample == last_sample + 1;
      last_sample = one.sample;
      if (one.source != rank) add(received_, one.source, one.place, is_next);
    }
  }

  std::vector<run> sent_;
  std::vector<run> received_;
  std::vector<kept_run> kept_;
};

}  // namespace omnibal::inline v0::nccl::detail
