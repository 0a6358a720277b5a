// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Padded batches of a stream of samples, and the state of the packer for checkpoints.

#include <omnibal/check.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/padded_count.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <vector>

namespace omnibal::inline v0 {

/// Options of `online_padded_packer`.
struct online_padded_packer_options {
  /// The maximum number of samples that wait after a push. It should be several times the number of
  /// samples of a group.
  std::uint64_t buffer = 256;
  /// A sample leaves at the latest with the result of this number of further pushes.
  std::uint64_t longest_wait = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] friend constexpr bool operator==(online_padded_packer_options const&,
                                                 online_padded_packer_options const&) = default;
};

/// The complete state of an `online_padded_packer`, which determines its future.
template <std::size_t R, scalar_measure T = std::int64_t>
struct online_padded_state {
  online_padded_packer_options options;
  resources<R, T> capacity;
  /// The number of calls of `push`, including calls with oversized samples.
  std::uint64_t pushes = 0;
  /// The waiting samples, in the order of their pushes.
  std::vector<waiting_sample<R, T>> waiting;

  [[nodiscard]] friend bool operator==(online_padded_state const&,
                                       online_padded_state const&) = default;
};

/// Packs a stream into padded batches: in each group, the number of samples times the largest
/// demand is within the capacity, in each resource. `pack_padded` does the same for all samples at
/// once. Each `push` adds a sample and returns at most one group.
///
/// Samples wait until more than `options.buffer` samples wait, or until the oldest sample has
/// waited for `options.longest_wait` pushes. Then one group leaves, always with the oldest sample,
/// so that a sample is in one of the first `options.buffer` groups that leave after its push. With
/// one resource, no other group of waiting samples with the oldest sample contains more: the sum of
/// the demands in the group is the largest. With several resources, the sum of the largest shares
/// of the capacity is large. `load` of a result is the padded amount.
///
/// `R` is the number of resources, `T` is `std::int64_t` or `double`. Complexity of `push`: linear
/// in the buffer. Memory: about 70 bytes for each sample of the buffer, allocated at construction.
/// Determinism: portable for integers; a function of the capacity, the options and the pushes only.
/// Not safe for simultaneous calls from two threads.
template <std::size_t R, scalar_measure T = std::int64_t>
  requires std::same_as<T, detail::working_weight<T>>
class online_padded_packer {
 public:
  using amounts_type = resources<R, T>;
  using result_type = online_result<R, T>;
  using state_type = online_padded_state<R, T>;

  /// Creates a packer without waiting samples. Errors: `std::invalid_argument` if the capacity is
  /// not positive or not finite, or if `buffer` or `longest_wait` is zero; `std::length_error` if
  /// the buffer has 2^32 - 2 samples or more.
  explicit online_padded_packer(amounts_type const& capacity,
                                online_padded_packer_options const& options = {})
      : online_padded_packer(state_type{options, capacity, 0, {}}) {}

  /// Creates a packer without waiting samples for a capacity of another number type; a single
  /// number is the capacity of one resource. Errors: the errors of the first constructor.
  template <measure Capacity>
    requires detail::same_kinds<Capacity, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Capacity>::type, T>, T>
  explicit online_padded_packer(Capacity const& capacity,
                                online_padded_packer_options const& options = {})
      : online_padded_packer(detail::to_capacity<T>(name, capacity), options) {}

  /// Creates a packer with the same future as the packer that returned `state`. Errors: the errors
  /// of the first constructor, and `std::invalid_argument` for samples that no packer with these
  /// options could hold. Such samples are too many or oversized, have an invalid demand, are not in
  /// the order of their pushes, or wait for too long.
  explicit online_padded_packer(state_type const& state)
      : options_(state.options), capacity_(state.capacity), pushes_(state.pushes) {
    detail::check_capacity(name, capacity_);
    detail::check_positive(name, "options.buffer", options_.buffer);
    detail::check_positive(name, "options.longest_wait", options_.longest_wait);
    if (options_.buffer >= max_index_count - 1) {
      detail::throw_length(name, "options.buffer", options_.buffer);
    }
    check_samples(state);
    auto const most = static_cast<std::size_t>(options_.buffer) + 1;
    samples_.reserve(most);
    sums_.resize(most + 1);
    ids_.reserve(most);
    for (waiting_sample<R, T> const& sample : state.waiting) insert(sample);
  }

  /// Copies the state; a copy has the same future and, as any packer, allocates nothing after
  /// construction.
  online_padded_packer(online_padded_packer const& other) : online_padded_packer(other.state()) {}
  online_padded_packer& operator=(online_padded_packer const& other) {
    return *this = online_padded_packer(other);
  }
  online_padded_packer(online_padded_packer&&) noexcept = default;
  online_padded_packer& operator=(online_padded_packer&&) noexcept = default;
  ~online_padded_packer() = default;

  /// Adds a sample and returns a group if a group is due. A sample that exceeds the capacity by
  /// itself is rejected, and the result reports it. The argument `demand` is a weight or resources,
  /// with the same number of kinds as the capacity. `id` is chosen by the caller and may repeat.
  /// Errors: `std::invalid_argument` if the demand is negative or not finite; the packer is
  /// unchanged then. Allocates nothing.
  template <measure Demand>
    requires detail::same_kinds<Demand, amounts_type> &&
        std::same_as<detail::working_weight<typename detail::weight_of<Demand>::type, T>, T>
  [[nodiscard]] result_type push(std::uint64_t id, Demand const& demand) & {
    detail::weight_name const of_id{"online_padded_packer::push", "demand", id, " of id ", ""};
    amounts_type const amounts = detail::to_resources<T>(of_id, demand);
    detail::check_demand(of_id.function, id, amounts, "id");
    bool const oversized = !amounts.fits(capacity_);
    std::uint64_t const now = pushes_++;
    if (!oversized) insert({id, now, amounts});
    bool const leaves =
        samples_.size() > options_.buffer ||
        (!samples_.empty() && now - samples_[oldest()].of.push >= options_.longest_wait);
    result_type result = leaves ? take_group() : result_type{};
    result.oversized = oversized;
    return result;
  }

  /// Returns a group of the waiting samples, with the oldest sample in it, or no group if no sample
  /// waits: `while (auto group = packer.flush())` empties the packer. Allocates nothing.
  [[nodiscard]] result_type flush() & { return samples_.empty() ? result_type{} : take_group(); }
  void flush() && = delete;

  /// Returns the number of samples that wait, at most `options.buffer`.
  [[nodiscard]] std::size_t size() const { return samples_.size(); }
  [[nodiscard]] bool empty() const { return samples_.empty(); }

  /// Returns the state that a checkpoint must store. Complexity: n log n for n samples that wait.
  [[nodiscard]] state_type state() const {
    state_type result{options_, capacity_, pushes_, {}};
    result.waiting.reserve(samples_.size());
    for (sized_sample const& sample : samples_) result.waiting.push_back(sample.of);
    std::sort(result.waiting.begin(), result.waiting.end(),
              [](auto const& one, auto const& two) { return one.push < two.push; });
    return result;
  }

 private:
  static constexpr std::string_view name = "online_padded_packer";

  struct sized_sample {
    /// The largest number of samples of a group in which no sample is larger.
    std::size_t max_count;
    /// The largest share of the capacity.
    double size;
    waiting_sample<R, T> of;

    [[nodiscard]] friend bool operator<(sized_sample const& one, sized_sample const& two) {
      return std::tuple(one.max_count, -one.size, one.of.push) <
             std::tuple(two.max_count, -two.size, two.of.push);
    }
  };

  void check_samples(state_type const& state) const {
    if (state.waiting.size() > options_.buffer) {
      detail::throw_invalid(name, "state.waiting has ", state.waiting.size(),
                            " samples, more than the buffer ", options_.buffer);
    }
    for (std::size_t k = 0; k != state.waiting.size(); ++k) {
      waiting_sample<R, T> const& sample = state.waiting[k];
      detail::check_demand(name, sample.id, sample.demand, "id");
      if (!sample.demand.fits(capacity_)) {
        detail::throw_invalid(name, "state.waiting[", k, "].demand exceeds the capacity");
      }
      bool const is_in_order = k == 0 || sample.push > state.waiting[k - 1].push;
      if (is_in_order && sample.push < pushes_ &&
          pushes_ - 1 - sample.push < options_.longest_wait) {
        continue;
      }
      detail::throw_invalid(name, "state.waiting[", k, "].push is ", sample.push,
                            ", must be above that of the sample before and one of the last ",
                            options_.longest_wait, " of ", pushes_, " pushes");
    }
  }

  void insert(waiting_sample<R, T> const& sample) {
    sized_sample sized{static_cast<std::size_t>(options_.buffer) + 1, 0, sample};
    for (std::size_t r = 0; r != R; ++r) {
      T const amount = sample.demand[r];
      sized.max_count =
          std::min(sized.max_count, detail::padded_count(amount, capacity_[r], sized.max_count));
      sized.size =
          std::max(sized.size, static_cast<double>(amount) / static_cast<double>(capacity_[r]));
    }
    samples_.insert(std::upper_bound(samples_.begin(), samples_.end(), sized), sized);
  }

  /// Returns the place of the oldest sample. Precondition: a sample waits.
  [[nodiscard]] std::size_t oldest() const {
    auto const found = std::min_element(
        samples_.begin(), samples_.end(),
        [](auto const& one, auto const& two) { return one.of.push < two.of.push; });
    return static_cast<std::size_t>(found - samples_.begin());
  }

  /// Removes the fullest group that contains the oldest sample. Its first sample permits some
  /// count; the other samples are its successors, of which the last makes way for the oldest sample
  /// if the group would end before it.
  result_type take_group() {
    for (std::size_t k = 0; k != samples_.size(); ++k) sums_[k + 1] = sums_[k] + samples_[k].size;
    std::size_t const old = oldest();
    std::size_t best = 0;
    double most = -1;
    for (std::size_t first = 0; first <= old; ++first) {
      std::size_t const end = end_of(first, old);
      double const sum = sums_[end] - sums_[first] + (end <= old ? samples_[old].size : 0.0);
      if (sum <= most) continue;
      most = sum;
      best = first;
    }
    std::size_t const end = end_of(best, old);
    result_type result{};
    ids_.clear();
    amounts_type longest{};
    auto const take = [&](waiting_sample<R, T> const& sample) {
      ids_.push_back(sample.id);
      for (std::size_t r = 0; r != R; ++r) longest[r] = std::max(longest[r], sample.demand[r]);
    };
    for (std::size_t k = best; k != end; ++k) take(samples_[k].of);
    auto const place = [this](std::size_t k) {
      return samples_.begin() + static_cast<std::ptrdiff_t>(k);
    };
    if (end <= old) {
      take(samples_[old].of);
      samples_.erase(place(old));
    }
    samples_.erase(place(best), place(end));
    for (std::size_t r = 0; r != R; ++r) {
      result.load[r] = longest[r] * static_cast<T>(ids_.size());
    }
    result.ids = ids_;
    return result;
  }

  /// Returns the end of the run of samples that begins at `first`, in a group with the sample at
  /// `old`. The group has one sample more if the run ends at or before `old`.
  [[nodiscard]] std::size_t end_of(std::size_t first, std::size_t old) const {
    std::size_t const end = first + std::min(samples_[first].max_count, samples_.size() - first);
    return end > old ? end : end - 1;
  }

  online_padded_packer_options options_;
  amounts_type capacity_;
  std::uint64_t pushes_ = 0;
  /// The waiting samples, in descending order of size.
  std::vector<sized_sample> samples_;
  /// The sum of the sizes before each place.
  std::vector<double> sums_;
  std::vector<std::uint64_t> ids_;
};

template <measure Capacity>
online_padded_packer(Capacity, online_padded_packer_options = {})
    -> online_padded_packer<detail::kinds_of<Capacity>,
                            detail::working_weight<typename detail::weight_of<Capacity>::type>>;
template <std::size_t R, class T>
online_padded_packer(online_padded_state<R, T>) -> online_padded_packer<R, T>;

}  // namespace omnibal::inline v0
