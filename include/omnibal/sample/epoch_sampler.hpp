// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Samples of each rank in each step of an epoch, without an index array.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/place_iterator.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/detail/epoch_walker.hpp>
#include <omnibal/sample/epoch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The samples of an epoch: first the last `carried` samples of the previous epoch, then every
/// sample once.
class epoch_order {
 public:
  constexpr epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch,
                        std::uint64_t carried, sample_order order)
      : current_(samples, epoch_seed(seed, epoch)),
        previous_(samples, epoch_seed(seed, epoch - 1)),
        carried_(carried),
        order_(order) {}

  [[nodiscard]] constexpr std::uint64_t size() const { return carried_ + current_.size(); }

  /// Returns the sample at a position of the order. Precondition: `position < size()`.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t position) const {
    bool const is_carried = position < carried_;
    std::uint64_t const place =
        is_carried ? current_.size() - carried_ + position : position - carried_;
    if (order_ == sample_order::given) return place;
    return is_carried ? previous_(place) : current_(place);
  }

 private:
  rng::permutation current_;
  rng::permutation previous_;
  std::uint64_t carried_;
  sample_order order_;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

namespace detail {
class epoch_plan;
}

/// The indices of the samples that a rank takes in a step. This random-access range computes the
/// indices on access and allocates nothing. The range does not depend on a sampler. Its iterators
/// are valid as long as the batch.
class sample_batch {
 public:
  using iterator = detail::place_iterator<detail::sequence_ref<sample_batch>>;

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }

  /// Returns the index of sample i. Precondition: `i < size()`.
  [[nodiscard]] constexpr std::uint64_t operator[](std::size_t i) const {
    std::uint64_t const position = first_ + i * stride_;
    return order_(position < order_.size() ? position : position % order_.size());
  }

  /// Returns the number of samples at the end of the batch that are repetitions, which fill the
  /// step.
  [[nodiscard]] constexpr std::size_t repeated() const {
    if (first_ >= order_.size()) return size_;
    std::uint64_t const new_samples = (order_.size() - first_ + stride_ - 1) / stride_;
    return size_ - static_cast<std::size_t>(std::min<std::uint64_t>(size_, new_samples));
  }

  [[nodiscard]] constexpr iterator begin() const& { return {detail::sequence_ref(*this), 0}; }
  [[nodiscard]] constexpr iterator end() const& { return {detail::sequence_ref(*this), size_}; }
  void begin() const&& = delete;
  void end() const&& = delete;

 private:
  friend class detail::epoch_plan;

  /// Constructs a batch of `size` samples: every `stride`-th sample of the order from position
  /// `first` on. Positions at and beyond the end of the order continue at its beginning.
  constexpr sample_batch(detail::epoch_order const& order, std::uint64_t first,
                         std::uint64_t stride, std::size_t size)
      : order_(order), first_(first), stride_(stride), size_(size) {}

  detail::epoch_order order_;
  std::uint64_t first_;
  std::uint64_t stride_;
  std::size_t size_;
};

struct epoch_sampler_options {
  /// The seed of the order. The order is a function of the number of samples, the seed and the
  /// epoch.
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  /// The number of samples of a rank in a step. Like the number of ranks, the batch may change when
  /// a run resumes.
  std::size_t batch = 1;
  sample_order order = sample_order::shuffled;
  /// The policy for the samples that do not fill a step. With `short_step`, the last step has fewer
  /// samples: the numbers of samples of two ranks differ by at most one, and ranks may have none.
  /// With `repeat`, the first samples of the epoch fill the step. With `carry`, the next epoch
  /// begins with the remaining samples, unless their number is the number of samples of the epoch.
  remainder_policy remainder = remainder_policy::short_step;
  /// The user's number for the contents of the data, such as a version. The number is part of the
  /// digest.
  std::uint64_t contents = 0;
};

namespace detail {

/// The steps of one epoch, each as a range of positions in the order of the epoch.
class epoch_plan {
 public:
  using step_type = sample_batch;
  static constexpr std::string_view name = "epoch_sampler";
  static constexpr std::string_view things = "samples";
  static constexpr bool lends = false;
  static constexpr bool counts_only = true;

  epoch_plan(std::uint64_t samples, shard const& place, epoch_sampler_options const& options)
      : samples_(samples),
        place_(place),
        options_(options),
        present_(segment_of(name, place, options.batch)),
        order_(0, 0, 0, 0, options.order) {
    if (samples <= max_samples) return;
    throw_invalid(name, "samples is ", samples, ", must be at most ", max_samples);
  }

  [[nodiscard]] bool empty() const { return samples_ == 0; }
  [[nodiscard]] sampler_segment const& present() const { return present_; }
  [[nodiscard]] std::uint64_t step_count() const { return step_count_; }
  [[nodiscard]] std::uint64_t left_over() const { return left_over_; }
  [[nodiscard]] std::uint64_t carried() const { return left_over_; }

  [[nodiscard]] std::uint64_t digest() const {
    data_digest result;
    result.add(samples_);
    result.add(static_cast<std::uint64_t>(options_.order));
    result.add(options_.contents);
    return result.value();
  }

  void check(sampler_state const& state) const {
    check_digest(name, state.digest, digest(), "samples, options.order and options.contents");
    check_carried(name, state, samples_);
  }

  void plan(epoch_progress const& progress) {
    order_ = {samples_, progress.seed(), progress.epoch(), progress.carried(), options_.order};
    taken_ = 0;
    for (sampler_segment const& segment : progress.ended()) taken_ = taken_after(segment);
    static_cast<void>(taken_after(progress.present()));
    auto const [step_count, left_over] = divide(taken_per_step(present_));
    step_count_ = step_count;
    left_over_ = left_over;
  }

  /// Returns the samples of this rank in a step. The number of a step counts from the first step
  /// with the present ranks.
  [[nodiscard]] sample_batch at(std::uint64_t step) const {
    std::uint64_t const first = taken_ + step * taken_per_step(present_) + place_.rank;
    std::uint64_t size = options_.batch;
    if (options_.remainder != remainder_policy::repeat) {
      std::uint64_t const rest = first < order_.size() ? order_.size() - first : 0;
      size = std::min<std::uint64_t>(size, (rest + place_.ranks - 1) / place_.ranks);
    }
    return {order_, first, place_.ranks, static_cast<std::size_t>(size)};
  }

 private:
  struct division {
    std::uint64_t step_count;
    std::uint64_t left_over;
  };

  /// Divides the samples after the first `taken_` ones into steps of `per_step` samples. Returns
  /// the number of steps and the number of samples left over.
  [[nodiscard]] division divide(std::uint64_t per_step) const {
    std::uint64_t const rest = order_.size() - taken_;
    std::uint64_t const last = rest % per_step;
    bool const is_carried = options_.remainder == remainder_policy::carry && last < samples_;
    if (last == 0 || is_carried) return {rest / per_step, last};
    return {rest / per_step + 1, 0};
  }

  /// Returns the number of samples of the epoch that have been taken when a segment has run. Throws
  /// if the epoch does not have the steps of the segment.
  [[nodiscard]] std::uint64_t taken_after(sampler_segment const& segment) const {
    if (segment.step_count == 0) return taken_;
    std::uint64_t const per_step = taken_per_step(segment);
    check_steps(name, segment, divide(per_step).step_count, to_text(per_step) + " samples");
    bool const ends_epoch = segment.step_count > (order_.size() - taken_) / per_step;
    return ends_epoch ? order_.size() : taken_ + segment.step_count * per_step;
  }

  std::uint64_t samples_;
  shard place_;
  epoch_sampler_options options_;
  sampler_segment present_;
  epoch_order order_;
  /// The number of samples of the epoch that ran in earlier segments, with other ranks.
  std::uint64_t taken_ = 0;
  std::uint64_t step_count_ = 0;
  std::uint64_t left_over_ = 0;
};

}  // namespace detail

/// Assigns the samples 0, 1, ... to ranks and steps. Each epoch takes every sample once, in the
/// order of an `rng::permutation` of that epoch. In each step the ranks take the next samples of
/// the order in turn.
///
/// A sampler resumes from its state after any step, also with another number of ranks or another
/// batch. Samples that have been taken are not taken again, and the present ranks share the rest of
/// the epoch. Over all ranks, the order of the samples stays the same. The ranks may change any
/// number of times in an epoch. All ranks must have the same arguments, except for their rank.
///
/// Complexity: constant for every call. Allocates nothing. Determinism: portable.
class epoch_sampler : public detail::epoch_walker<detail::epoch_plan> {
 public:
  /// Constructs a sampler at the beginning of epoch `options.epoch`. Errors:
  /// `std::invalid_argument` if there are no ranks, if a rank is not below their number, if the
  /// batch is zero, and if there are more than `max_samples` samples. Further errors:
  /// `std::length_error` if a step has more than 2^32 - 1 samples.
  epoch_sampler(std::uint64_t samples, shard const& place,
                epoch_sampler_options const& options = {})
      : epoch_walker(detail::epoch_plan(samples, place, options), options.seed, options.epoch) {}

  /// Constructs a sampler that continues from `state`, with the seed and epoch count of `state`
  /// instead of `options`. Errors: the errors of the other constructor, and `std::invalid_argument`
  /// if `state` belongs to other data or if no sampler could have `state`.
  epoch_sampler(std::uint64_t samples, shard const& place, epoch_sampler_options const& options,
                sampler_state const& state)
      : epoch_walker(detail::epoch_plan(samples, place, options), state) {}

  /// Moves to a step of the epoch, or to the end of the epoch if `step` is `step_count()`. The next
  /// call of `next` returns this step. Errors: `std::invalid_argument` if the epoch does not have
  /// the step or if the step ran with other ranks.
  void seek(std::uint64_t step) { seek_step(step); }
};

}  // namespace omnibal::inline v0
