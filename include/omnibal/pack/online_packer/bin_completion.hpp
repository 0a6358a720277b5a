#pragma once

/// \file
/// Which of the waiting samples leave together.

#include <omnibal/pack/online_packer/waiting_samples.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Fills one group at a time. The oldest samples come first, as long as they stay within five
/// eighths of the capacity, the oldest of all in any case. Several fillings of what is left are
/// compared, and the one that leaves the least weighted share wins: one by the most valuable sample
/// again and again, and one for each of the next samples that fit, which goes first.
template <std::size_t R, class T>
class bin_completion {
 public:
  using waiting_type = waiting_samples<R, T>;
  using amounts_type = resources<R, T>;
  using slot = typename waiting_type::slot;

  /// `most` is the most samples that wait.
  bin_completion(amounts_type const& capacity, std::size_t most) : low_(capacity) {
    for (T& amount : low_.amounts) amount = amount / 2 + amount / 8;
    for (auto* const slots : {&base_, &trial_, &best_, &hidden_, &candidates_}) {
      slots->resize(most);
    }
  }

  /// Calls `leave(slot)` for each sample of the group, in the order in which their demands are
  /// summed, and then erases it. Returns the load. Precondition: samples wait.
  template <class Leave>
  amounts_type take(waiting_type& waiting, std::uint64_t candidates, Leave const& leave) {
    auto const& layout = waiting.layout();
    auto room = layout.empty_room();
    slot const next = hide_oldest(waiting, room);
    best_count_ = 0;
    auto const place = waiting.weigh(room);
    if (place.cells != 0) compare_fillings(waiting, candidates, room, place, next);
    for (std::size_t k = 0; k != best_count_; ++k) {
      layout.take(room, waiting.demand(best_[k]));
      waiting.hide(best_[k]);
      base_[base_count_++] = best_[k];
    }
    for (std::size_t k = 0; k != base_count_; ++k) {
      leave(base_[k]);
      waiting.erase(base_[k]);
    }
    return layout.load(room);
  }

 private:
  using room_type = typename waiting_type::room_type;

  /// How many samples may be passed over for each candidate. Where few fit, more candidates cost
  /// much and gain nothing: the old ones among them are those that are hard to place.
  static constexpr std::uint64_t looks_per_candidate = 2;

  /// What each candidate adds to the work that is allowed for a sample of the group. Where lookups
  /// are dear, fewer candidates are compared, so that the time does not depend on the data. With
  /// more resources and with floating-point amounts the rest of a sample takes longer.
  static constexpr std::uint64_t work_per_candidate = std::floating_point<T> ? 3 : R <= 2 ? 6 : 4;

  /// Puts the oldest samples into `base_` and returns the first that is not among them.
  slot hide_oldest(waiting_type& waiting, room_type& room) {
    auto const& layout = waiting.layout();
    base_count_ = 0;
    slot next = waiting.oldest();
    do {
      layout.take(room, waiting.demand(next));
      waiting.hide(next);
      base_[base_count_++] = next;
      next = waiting.newer(next);
    } while (next != waiting_type::none && is_low(layout.load(room), waiting.demand(next)));
    return next;
  }

  [[nodiscard]] bool is_low(amounts_type const& load, amounts_type const& demand) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) {
      result = result && load[r] <= low_[r] && demand[r] <= low_[r] - load[r];
    }
    return result;
  }

  /// Puts the filling that leaves least into `best_`. `next` is the first sample behind the group.
  void compare_fillings(waiting_type& waiting, std::uint64_t candidates, room_type const& room,
                        typename waiting_type::place const& place, slot next) {
    candidates = std::min<std::uint64_t>(candidates, candidates_.size());
    std::uint64_t least_waste = std::numeric_limits<std::uint64_t>::max();
    std::size_t count = 0;
    work_ = 0;
    slot first = waiting.most_valuable(room, place, work_);
    for (std::size_t k = 0;; ++k) {
      if (first != waiting_type::none) {
        std::uint64_t const waste = fill(waiting, room, first);
        if (waste < least_waste) {
          least_waste = waste;
          best_.swap(trial_);
          best_count_ = trial_count_;
        }
        if (waste == 0) return;
      }
      if (k == 0) count = find_candidates(waiting, candidates, room, next);
      if (k == count || is_spent(candidates)) return;
      first = candidates_[k];
    }
  }

  /// Whether lookups took more than the samples of the group may take.
  [[nodiscard]] bool is_spent(std::uint64_t candidates) const {
    return work_ >= work_per_candidate * candidates * (base_count_ + best_count_);
  }

  /// Puts the next samples that fit into `candidates_` and returns their number.
  std::size_t find_candidates(waiting_type const& waiting, std::uint64_t candidates,
                              room_type const& room, slot next) {
    auto const& layout = waiting.layout();
    std::uint64_t looks = looks_per_candidate * candidates;
    std::size_t count = 0;
    while (next != waiting_type::none && count + 1 < candidates && looks != 0) {
      // Without branches: whether a sample fits is hard to predict.
      bool const fits = layout.fits(room, waiting.demand(next));
      candidates_[count] = next;
      count += fits ? 1 : 0;
      looks -= fits ? 0 : 1;
      next = waiting.newer(next);
    }
    return count;
  }

  /// Fills the room with `first`, then the most valuable samples; returns what is left is worth.
  std::uint64_t fill(waiting_type& waiting, room_type room, slot first) {
    auto const& layout = waiting.layout();
    std::size_t count = 0;
    std::size_t hidden = 0;
    slot* const trial = trial_.data();
    slot* const again = hidden_.data();
    for (slot added = first; added != waiting_type::none;) {
      layout.take(room, waiting.demand(added));
      trial[count++] = added;
      auto const place = waiting.place_of(room);
      if (place.cells == 0) break;
      // What no longer fits is not found again.
      if (layout.fits(room, waiting.demand(added))) {
        waiting.hide(added);
        again[hidden++] = added;
      }
      added = waiting.most_valuable(room, place, work_);
    }
    while (hidden != 0) waiting.show(again[--hidden]);
    trial_count_ = count;
    return waiting.worth(room);
  }

  /// Five eighths of the capacity.
  amounts_type low_;
  std::vector<slot> base_;
  std::vector<slot> trial_;
  std::vector<slot> best_;
  std::vector<slot> hidden_;
  std::vector<slot> candidates_;
  /// What the lookups for this group took.
  std::uint64_t work_ = 0;
  std::size_t base_count_ = 0;
  std::size_t trial_count_ = 0;
  std::size_t best_count_ = 0;
};

}  // namespace omnibal::inline v0::detail
