// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing of a stream of samples, and its state for checkpoints.

#include <omnibal/check.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/online_packer/waiting_samples.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A search that fills one group at a time. The oldest samples come first, as long as they stay
/// within five eighths of the capacity; the oldest sample of all is always included. Several
/// fillings of the remaining room are compared, and the filling that leaves the least weighted
/// share wins. One filling repeatedly adds the most valuable sample. The other fillings each begin
/// with one of the next samples that fit.
template <std::size_t R, class T>
class bin_completion {
 public:
  using waiting_type = waiting_samples<R, T>;
  using amounts_type = resources<R, T>;
  using slot = typename waiting_type::slot;

  /// `most` is the maximum number of waiting samples.
  bin_completion(amounts_type const& capacity, std::size_t most) : low_(capacity) {
    for (T& amount : low_.amounts) amount = amount / 2 + amount / 8;
    for (auto* const slots : {&base_, &trial_, &best_, &hidden_, &candidates_}) {
      slots->resize(most);
    }
  }

  /// Calls `leave(slot)` for each sample of the group, in the order in which their demands are
  /// summed, and then erases the sample. Returns the load of the group. Precondition: at least one
  /// sample waits.
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

  /// The number of samples that do not fit which the search may look at for each candidate. If few
  /// samples fit, more candidates cost much and gain nothing, because the old samples are hard to
  /// place.
  static constexpr std::uint64_t looks_per_candidate = 2;

  /// The limit on the work of lookups, for each candidate and each sample of the group. If lookups
  /// are expensive, fewer candidates are compared, so that the time does not depend on the data.
  /// With more resources and with floating-point amounts the other work for a sample takes longer.
  static constexpr std::uint64_t work_per_candidate = std::floating_point<T> ? 3 : R <= 2 ? 6 : 4;

  /// Hides the oldest samples, stores them in `base_`, and returns the oldest other sample.
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

  /// Stores the filling that leaves the least weighted share in `best_`. `next` is the oldest
  /// sample that is not in `base_`.
  void compare_fillings(waiting_type& waiting, std::uint64_t candidates, room_type const& room,
                        typename waiting_type::place const& place, slot next) {
    candidates = std::min<std::uint64_t>(candidates, candidates_.size());
    std::uint64_t min_waste = std::numeric_limits<std::uint64_t>::max();
    std::size_t count = 0;
    work_ = 0;
    slot first = waiting.most_valuable(room, place, work_);
    for (std::size_t k = 0;; ++k) {
      if (first != waiting_type::none) {
        std::uint64_t const waste = fill(waiting, room, first);
        if (waste < min_waste) {
          min_waste = waste;
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

  /// Returns true if the lookups cost at least the work that the samples of the group permit.
  [[nodiscard]] bool is_spent(std::uint64_t candidates) const {
    return work_ >= work_per_candidate * candidates * (base_count_ + best_count_);
  }

  /// Stores the next samples that fit in `candidates_` and returns their number.
  std::size_t find_candidates(waiting_type const& waiting, std::uint64_t candidates,
                              room_type const& room, slot next) {
    auto const& layout = waiting.layout();
    std::uint64_t looks = looks_per_candidate * candidates;
    std::size_t count = 0;
    while (next != waiting_type::none && count + 1 < candidates && looks != 0) {
      // The loop body has no branches, because the processor cannot predict whether a sample fits.
      bool const fits = layout.fits(room, waiting.demand(next));
      candidates_[count] = next;
      count += fits ? 1 : 0;
      looks -= fits ? 0 : 1;
      next = waiting.newer(next);
    }
    return count;
  }

  /// Fills the room with `first`, then with the most valuable samples. Returns the worth of the
  /// remaining room.
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
      // A lookup does not return samples that no longer fit.
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
  /// The work of the lookups for this group.
  std::uint64_t work_ = 0;
  std::size_t base_count_ = 0;
  std::size_t trial_count_ = 0;
  std::size_t best_count_ = 0;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// Options of `online_packer`: how long samples may wait, and how many fillings are tried for a
/// group.
struct online_packer_options {
  /// The maximum number of samples that wait after a push. It should be several times the number of
  /// samples of a group.
  std::uint64_t buffer = 256;
  /// A sample leaves at the latest with the result of this number of further pushes.
  std::uint64_t longest_wait = std::numeric_limits<std::uint64_t>::max();
  /// The maximum number of fillings that are compared for each group; the time grows with this
  /// number.
  std::uint64_t candidates = 6;

  [[nodiscard]] friend constexpr bool operator==(online_packer_options const&,
                                                 online_packer_options const&) = default;
};

/// A sample that waits in an `online_packer`: the user's id, the number of pushes before its push,
/// and its demand. Trivially copyable and without padding.
template <std::size_t R, scalar_measure T = std::int64_t>
struct waiting_sample {
  std::uint64_t id;
  std::uint64_t push;
  resources<R, T> demand;

  [[nodiscard]] friend constexpr bool operator==(waiting_sample const&,
                                                 waiting_sample const&) = default;
};

/// The part of `online_state` that has a fixed size. Trivially copyable and without padding.
template <std::size_t R, scalar_measure T = std::int64_t>
struct online_header {
  online_packer_options options;
  resources<R, T> capacity;
  /// The number of calls of `push`, including calls with oversized samples.
  std::uint64_t pushes;

  [[nodiscard]] friend constexpr bool operator==(online_header const&,
                                                 online_header const&) = default;
};

/// The complete state of an `online_packer`, which determines its future: a header and one array of
/// records, in the order of the pushes. Both can be written to a file byte by byte.
template <std::size_t R, scalar_measure T = std::int64_t>
struct online_state {
  online_header<R, T> header;
  std::vector<waiting_sample<R, T>> waiting;

  [[nodiscard]] friend bool operator==(online_state const&, online_state const&) = default;
};

/// The result of a call of `online_packer`.
template <std::size_t R, scalar_measure T = std::int64_t>
struct online_result {
  /// The ids of the samples of the group that leaves; empty if no group leaves. Valid until the
  /// next call that changes the packer.
  std::span<std::uint64_t const> ids;
  /// The sum of the demands of the group, which fits the capacity.
  resources<R, T> load;
  /// True if the pushed sample exceeds the capacity by itself; such a sample is rejected and in no
  /// group.
  bool oversized;

  /// Returns true if a group leaves.
  [[nodiscard]] constexpr explicit operator bool() const { return !ids.empty(); }
};

/// Packs a stream: each `push` adds a sample and returns at most one group.
///
/// Samples wait until more than `options.buffer` samples wait, or until the oldest sample has
/// waited for `options.longest_wait` pushes. Then one group leaves, always with the oldest sample.
/// Therefore a sample leaves at the latest with the result of `options.longest_wait` further
/// pushes. It is also in one of the first `options.buffer` groups that leave after its push. A
/// group that is due leaves even if it is not full; samples that never fit together leave in groups
/// of one. The other members of a group are chosen from all waiting samples, such that the group
/// becomes full in the resources with the largest waiting demands.
///
/// `R` is the number of resources, `T` is `std::int64_t` or `double`. With a buffer of several
/// times the samples of a group, the number of groups is about the number that
/// `best_fit_decreasing` returns for the whole stream. If the buffer holds less than a group,
/// groups are no larger than the buffer and the pushed sample.
///
/// Complexity of `push`: proportional to `options.candidates` for each sample that leaves,
/// independent of the buffer, the capacity and the demands; if lookups are expensive, fewer
/// fillings are compared. Memory: about 92 bytes for each sample of the buffer, 16 more for each
/// resource above two, and an index of up to 1 MiB, all allocated at construction. Determinism:
/// portable for integers; a function of the capacity, the options and the pushes only. Not safe for
/// simultaneous calls from two threads.
template <std::size_t R, scalar_measure T = std::int64_t>
  requires std::same_as<T, detail::working_weight<T>>
class online_packer {
 public:
  using amounts_type = resources<R, T>;
  using result_type = online_result<R, T>;
  using state_type = online_state<R, T>;

  /// Creates a packer without waiting samples. Errors: `std::invalid_argument` if the capacity is
  /// not positive or not finite, or if `buffer`, `longest_wait` or `candidates` is zero;
  /// `std::length_error` if the buffer has 2^32 - 2 samples or more.
  explicit online_packer(amounts_type const& capacity, online_packer_options const& options = {})
      : online_packer(state_type{{options, capacity, 0}, {}}) {}

  /// Creates a packer without waiting samples for a capacity of another number type; a single
  /// number is the capacity of one resource. Errors: the errors of the first constructor, and the
  /// same for an unsigned number above 2^63 - 1.
  template <measure Capacity>
    requires detail::same_kinds<Capacity, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Capacity>::type, T>, T>
  explicit online_packer(Capacity const& capacity, online_packer_options const& options = {})
      : online_packer(detail::to_capacity<T>(name, capacity), options) {}

  /// Creates a packer with the same future as the packer that returned `state`. Errors: the errors
  /// of the first constructor, and `std::invalid_argument` for samples that no packer with this
  /// header could hold. Such samples are too many or oversized, have an invalid demand, are not in
  /// the order of their pushes, or wait for too long.
  explicit online_packer(state_type const& state)
      : header_(checked(state.header)),
        waiting_(header_.capacity, static_cast<std::size_t>(header_.options.buffer) + 1),
        search_(header_.capacity, static_cast<std::size_t>(header_.options.buffer) + 1) {
    ids_.reserve(static_cast<std::size_t>(header_.options.buffer) + 1);
    check_samples(state);
    for (waiting_sample<R, T> const& sample : state.waiting) {
      waiting_.add(sample.id, sample.push, sample.demand);
    }
  }

  /// Copies the state; a copy has the same future and, as any packer, allocates nothing after
  /// construction.
  online_packer(online_packer const& other) : online_packer(other.state()) {}
  online_packer& operator=(online_packer const& other) { return *this = online_packer(other); }
  online_packer(online_packer&&) noexcept = default;
  online_packer& operator=(online_packer&&) noexcept = default;
  ~online_packer() = default;

  /// Adds a sample and returns a group if a group is due. A sample that exceeds the capacity by
  /// itself is rejected, and the result reports it. The argument `demand` is a weight or resources,
  /// with the same number of kinds as the capacity. `id` is chosen by the caller and may repeat.
  /// Errors: `std::invalid_argument` if the demand is negative or not finite; the packer is
  /// unchanged then. Allocates nothing.
  template <measure Demand>
    requires detail::same_kinds<Demand, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Demand>::type, T>, T>
  [[nodiscard]] result_type push(std::uint64_t id, Demand const& demand) & {
    detail::weight_name const of_id{"online_packer::push", "demand", id, " of id ", ""};
    amounts_type const amounts = detail::to_resources<T>(of_id, demand);
    detail::check_demand(of_id.function, id, amounts, "id");
    bool const oversized = !amounts.fits(header_.capacity);
    std::uint64_t const now = header_.pushes++;
    if (!oversized) waiting_.add(id, now, amounts);
    bool const leaves = waiting_.size() > header_.options.buffer ||
                        (waiting_.size() != 0 &&
                         now - waiting_.push(waiting_.oldest()) >= header_.options.longest_wait);
    result_type result = leaves ? take_group() : result_type{};
    result.oversized = oversized;
    return result;
  }

  /// Returns a group of the waiting samples, with the oldest sample in it, or no group if no sample
  /// waits: `while (auto group = packer.flush())` empties the packer. Allocates nothing.
  [[nodiscard]] result_type flush() & {
    return waiting_.size() != 0 ? take_group() : result_type{};
  }
  void flush() && = delete;

  /// Returns the number of samples that wait, at most `options.buffer`.
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Returns the state that a checkpoint must store. Complexity: linear in the samples that wait.
  [[nodiscard]] state_type state() const {
    state_type result{header_, {}};
    result.waiting.reserve(waiting_.size());
    for (auto of = waiting_.oldest(); of != waiting_type::none; of = waiting_.newer(of)) {
      result.waiting.push_back({waiting_.id(of), waiting_.push(of), waiting_.demand(of)});
    }
    return result;
  }

 private:
  using waiting_type = detail::waiting_samples<R, T>;

  static constexpr std::string_view name = "online_packer";

  static online_header<R, T> const& checked(online_header<R, T> const& header) {
    detail::check_capacity(name, header.capacity);
    detail::check_positive(name, "options.buffer", header.options.buffer);
    detail::check_positive(name, "options.longest_wait", header.options.longest_wait);
    detail::check_positive(name, "options.candidates", header.options.candidates);
    if (header.options.buffer >= max_index_count - 1) {
      detail::throw_length(name, "options.buffer", header.options.buffer);
    }
    return header;
  }

  static void check_samples(state_type const& state) {
    auto const& [options, capacity, pushes] = state.header;
    if (state.waiting.size() > options.buffer) {
      detail::throw_invalid(name, "state.waiting has ", state.waiting.size(),
                            " samples, more than the buffer ", options.buffer);
    }
    for (std::size_t k = 0; k != state.waiting.size(); ++k) {
      waiting_sample<R, T> const& sample = state.waiting[k];
      for (std::size_t r = 0; r != R; ++r) {
        if (detail::is_valid_weight(sample.demand[r]) && sample.demand[r] <= capacity[r]) continue;
        throw_sample(k, "demand[" + detail::to_text(r) + "]", sample.demand[r],
                     "in [0, " + detail::to_text(capacity[r]) + "]");
      }
      if (k != 0 && sample.push <= state.waiting[k - 1].push) {
        throw_sample(k, "push", sample.push, "above that of the sample before");
      }
      if (sample.push >= pushes || pushes - 1 - sample.push >= options.longest_wait) {
        throw_sample(k, "push", sample.push,
                     "one of the last " + detail::to_text(options.longest_wait) + " of " +
                         detail::to_text(pushes) + " pushes");
      }
    }
  }

  template <class Value>
  [[noreturn]] static void throw_sample(std::size_t index, std::string const& member, Value value,
                                        std::string const& allowed) {
    detail::throw_invalid(name, "state.waiting[", index, "].", member, " is ", value, ", must be ",
                          allowed);
  }

  result_type take_group() {
    ids_.clear();
    amounts_type const load = search_.take(waiting_, header_.options.candidates,
                                           [this](auto of) { ids_.push_back(waiting_.id(of)); });
    return {ids_, load, false};
  }

  online_header<R, T> header_;
  waiting_type waiting_;
  detail::bin_completion<R, T> search_;
  std::vector<std::uint64_t> ids_;
};

template <measure Capacity>
online_packer(Capacity, online_packer_options = {})
    -> online_packer<detail::kinds_of<Capacity>,
                     detail::working_weight<typename detail::weight_of<Capacity>::type>>;
template <std::size_t R, class T>
online_packer(online_state<R, T>) -> online_packer<R, T>;

}  // namespace omnibal::inline v0
