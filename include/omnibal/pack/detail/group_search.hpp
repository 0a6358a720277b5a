#pragma once

/// \file
/// Which of the waiting samples leave together.

#include <omnibal/pack/detail/waiting_samples.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Fills one group at a time. The oldest samples come first, as long as they stay within five
/// eighths of the capacity, the oldest of all in any case. Several fillings of what is left are
/// compared, and the one that takes the largest weighted share wins: one by the most valuable
/// sample again and again, and one for each of the next samples that fit, which goes first.
template <std::size_t R, class T>
class group_search {
 public:
  using waiting_type = waiting_samples<R, T>;
  using amounts_type = resources<R, T>;
  using slot = typename waiting_type::slot;

  group_search(amounts_type const& capacity, std::size_t most) : low_(capacity) {
    for (T& amount : low_.amounts) amount = amount / 2 + amount / 8;
    for (auto* const slots : {&base_, &trial_, &best_, &hidden_}) slots->reserve(most);
  }

  /// Calls `leave(slot)` for each sample of the group, in the order in which their demands are
  /// summed, and then erases it. Returns the load. Precondition: samples wait.
  template <class Leave>
  amounts_type take(waiting_type& waiting, std::uint64_t candidates, Leave const& leave) {
    auto const& layout = waiting.layout();
    waiting.weigh();
    auto room = layout.empty_room();
    slot next = hide_oldest(waiting, room);
    best_.clear();
    std::uint64_t best_worth = fill(waiting, room, waiting_type::none);
    best_.swap(trial_);
    std::uint64_t looks = looks_per_candidate * candidates;
    for (std::uint64_t tried = 1; tried < candidates; ++tried) {
      while (next != waiting_type::none && looks != 0 && !layout.fits(room, waiting[next].demand)) {
        next = waiting.newer(next);
        --looks;
      }
      if (next == waiting_type::none || looks == 0) break;
      std::uint64_t const worth = fill(waiting, room, next);
      if (worth > best_worth) {
        best_worth = worth;
        best_.swap(trial_);
      }
      next = waiting.newer(next);
    }
    for (slot const of : best_) {
      layout.take(room, waiting[of].demand);
      waiting.hide(of);
    }
    base_.insert(base_.end(), best_.begin(), best_.end());
    for (slot const of : base_) {
      leave(of);
      waiting.erase(of);
    }
    return layout.load(room);
  }

 private:
  using room_type = typename waiting_type::room_type;

  /// How many samples may be passed over for each candidate: few fit where all are large.
  static constexpr std::uint64_t looks_per_candidate = 8;

  /// Puts the oldest samples into `base_` and returns the first that is not among them.
  slot hide_oldest(waiting_type& waiting, room_type& room) {
    auto const& layout = waiting.layout();
    base_.clear();
    slot next = waiting.oldest();
    do {
      layout.take(room, waiting[next].demand);
      waiting.hide(next);
      base_.push_back(next);
      next = waiting.newer(next);
    } while (next != waiting_type::none && is_low(layout.load(room), waiting[next].demand));
    return next;
  }

  [[nodiscard]] bool is_low(amounts_type const& load, amounts_type const& demand) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) {
      result = result && load[r] <= low_[r] && demand[r] <= low_[r] - load[r];
    }
    return result;
  }

  /// Fills the room with `first`, unless that is `none`, and then with the most valuable samples.
  /// Puts them into `trial_` and returns what they are worth.
  std::uint64_t fill(waiting_type& waiting, room_type room, slot first) {
    auto const& layout = waiting.layout();
    trial_.clear();
    std::uint64_t worth = 0;
    slot added = first != waiting_type::none ? first : waiting.most_valuable(room);
    for (; added != waiting_type::none; added = waiting.most_valuable(room)) {
      layout.take(room, waiting[added].demand);
      worth += waiting.worth(added);
      trial_.push_back(added);
      // What no longer fits is not found again.
      if (layout.fits(room, waiting[added].demand)) {
        waiting.hide(added);
        hidden_.push_back(added);
      }
    }
    for (; !hidden_.empty(); hidden_.pop_back()) waiting.show(hidden_.back());
    return worth;
  }

  /// Five eighths of the capacity.
  amounts_type low_;
  std::vector<slot> base_;
  std::vector<slot> trial_;
  std::vector<slot> best_;
  std::vector<slot> hidden_;
};

}  // namespace omnibal::inline v0::detail
