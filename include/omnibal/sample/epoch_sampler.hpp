#pragma once

/// \file
/// The samples of each rank in each step of an epoch, without an index array.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/sample/detail/epoch_order.hpp>
#include <omnibal/sample/detail/epoch_progress.hpp>
#include <omnibal/sample/sample_batch.hpp>
#include <omnibal/sample/sample_order.hpp>
#include <omnibal/sample/sampler_state.hpp>
#include <omnibal/sample/shard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

struct epoch_sampler_options {
  /// The order is a function of the number of samples, the seed and the epoch.
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  /// The samples that a rank takes in a step. Like the number of ranks, it may change when a run
  /// resumes.
  std::size_t batch = 1;
  sample_order order = sample_order::shuffled;
  /// What becomes of the samples that do not fill a step: with `short_step` ranks take up to one
  /// sample fewer than others, or none, in the last step; with `repeat` the samples that the epoch
  /// began with fill it; with `carry` the next epoch begins with them, unless there are as many as
  /// the epoch has samples.
  remainder_policy remainder = remainder_policy::short_step;
  /// The user's number for the contents of the data, such as a version; part of the digest.
  std::uint64_t contents = 0;
};

/// Shards the samples 0, 1, ... over ranks and steps. In each epoch every sample is taken once, in
/// the order of an `rng::permutation` of that epoch; in each step the ranks take the next samples
/// of the order in turn.
///
/// Resumes from its state after any step, also with another number of ranks or another batch: what
/// has been taken stays taken, and the present ranks share the rest of the epoch. The order of the
/// samples over all ranks is the same then. All ranks must be given the same arguments but for
/// their rank.
///
/// Complexity: every call is constant time. Allocates nothing. Determinism: portable.
class epoch_sampler {
 public:
  /// At the begin of epoch `options.epoch`. Errors: `std::invalid_argument` for no ranks, a rank
  /// that is not below their number, a batch of zero and more than `most_samples` samples;
  /// `std::length_error` for a step of more than 2^32 - 1 samples.
  epoch_sampler(std::uint64_t samples, shard const& place,
                epoch_sampler_options const& options = {})
      : epoch_sampler(
            samples, place, options,
            {.seed = options.seed, .epoch = options.epoch, .digest = digest_of(samples, options)}) {
  }

  /// Where `state` was taken; its seed and epoch count, not those of `options`. Errors: as above,
  /// and `std::invalid_argument` for a state of other data, for one that no sampler could have, and
  /// where the ranks changed within the epoch for the time number `most_rank_changes + 1`.
  epoch_sampler(std::uint64_t samples, shard const& place, epoch_sampler_options const& options,
                sampler_state const& state)
      : samples_(samples),
        place_(place),
        options_(options),
        progress_(name, state, detail::segment_of(name, place, options.batch)),
        order_(order_of_epoch()) {
    if (samples > most_samples) {
      detail::throw_invalid(name, "samples is " + detail::to_text(samples) + ", must be at most " +
                                      detail::to_text(most_samples));
    }
    detail::check_digest(name, state, digest_of(samples, options),
                         "samples, options.order and options.contents");
    detail::check_carried(name, state, samples);
    for (sampler_segment const& segment : progress_.ended()) taken_ = taken_after(segment);
    first_step_ = progress_.first_step();
    static_cast<void>(taken_after(progress_.present()));
    count_steps();
    if (!done()) progress_.check_room(name);
  }

  /// The samples of this rank in the next step. After the last step of an epoch it is the first of
  /// the next epoch. Errors: `std::invalid_argument` where there are no samples at all.
  [[nodiscard]] sample_batch next() {
    if (samples_ == 0) detail::throw_invalid(next_name, "there are no samples");
    if (done()) start_next_epoch();
    std::uint64_t const run = progress_.present().step_count;
    progress_.set_present_steps(run + 1);
    return batch_at(run);
  }

  /// The samples of this rank in a step of the epoch. Errors: `std::invalid_argument` for a step
  /// that the epoch does not have or that ran with other ranks.
  [[nodiscard]] sample_batch operator()(std::uint64_t step) const {
    check_step(name, step, step_count());
    return batch_at(step - first_step_);
  }

  /// Goes to a step of the epoch, to its end with `step_count()`: the next call of `next` gives
  /// that step. Errors: as above.
  void seek(std::uint64_t step) {
    check_step("epoch_sampler::seek", step, step_count() + 1);
    progress_.set_present_steps(step - first_step_);
  }

  /// True where all steps of the epoch have run.
  [[nodiscard]] bool done() const { return progress_.present().step_count == present_steps_; }

  [[nodiscard]] std::uint64_t epoch() const { return progress_.epoch(); }
  /// The number of steps of the epoch that have run; the index of the next one.
  [[nodiscard]] std::uint64_t step() const { return first_step_ + progress_.present().step_count; }
  /// The number of steps of the epoch, those that ran with other ranks included.
  [[nodiscard]] std::uint64_t step_count() const { return first_step_ + present_steps_; }
  /// The number of samples that this epoch leaves for the next one.
  [[nodiscard]] std::uint64_t left_over() const { return left_over_; }

  /// What a checkpoint must hold; the same on all ranks.
  [[nodiscard]] sampler_state state() const { return progress_.state(); }

 private:
  static constexpr std::string_view name = "epoch_sampler";
  static constexpr std::string_view next_name = "epoch_sampler::next";

  [[nodiscard]] static std::uint64_t digest_of(std::uint64_t samples,
                                               epoch_sampler_options const& options) {
    detail::data_digest digest;
    digest.add(samples);
    digest.add(static_cast<std::uint64_t>(options.order));
    digest.add(options.contents);
    return digest.value();
  }

  [[nodiscard]] detail::epoch_order order_of_epoch() const {
    return {samples_, progress_.seed(), progress_.epoch(), progress_.carried(), options_.order};
  }

  void start_next_epoch() {
    progress_.start_next_epoch(left_over_);
    order_ = order_of_epoch();
    taken_ = 0;
    first_step_ = 0;
    count_steps();
  }

  struct division {
    std::uint64_t step_count;
    std::uint64_t left_over;
  };

  /// The steps in which ranks that take so many samples run what remains after `taken_`.
  [[nodiscard]] division divide(std::uint64_t per_step) const {
    std::uint64_t const rest = order_.size() - taken_;
    std::uint64_t const last = rest % per_step;
    bool const is_carried = options_.remainder == remainder_policy::carry && last < samples_;
    if (last == 0 || is_carried) return {rest / per_step, last};
    return {rest / per_step + 1, 0};
  }

  /// The samples that are taken after a segment; throws where the epoch has not as many steps.
  [[nodiscard]] std::uint64_t taken_after(sampler_segment const& segment) const {
    if (segment.step_count == 0) return taken_;
    std::uint64_t const per_step = detail::taken_per_step(segment);
    std::uint64_t const most = divide(per_step).step_count;
    if (segment.step_count > most) {
      detail::throw_invalid(name, "state.segments has " + detail::to_text(segment.step_count) +
                                      " steps of " + detail::to_text(per_step) +
                                      " samples where the epoch has " + detail::to_text(most));
    }
    bool const ends_epoch = segment.step_count > (order_.size() - taken_) / per_step;
    return ends_epoch ? order_.size() : taken_ + segment.step_count * per_step;
  }

  void count_steps() {
    auto const [step_count, left_over] = divide(detail::taken_per_step(progress_.present()));
    present_steps_ = step_count;
    left_over_ = left_over;
  }

  void check_step(std::string_view function, std::uint64_t step, std::uint64_t end) const {
    if (step >= first_step_ && step < end) return;
    detail::throw_invalid(function, "step is " + detail::to_text(step) + ", must be in [" +
                                        detail::to_text(first_step_) + ", " + detail::to_text(end) +
                                        ")");
  }

  /// The samples of this rank in a step, counted from the first of the present ranks.
  [[nodiscard]] sample_batch batch_at(std::uint64_t present_step) const {
    std::uint64_t const first =
        taken_ + present_step * detail::taken_per_step(progress_.present()) + place_.rank;
    std::uint64_t size = options_.batch;
    if (options_.remainder != remainder_policy::repeat) {
      std::uint64_t const rest = first < order_.size() ? order_.size() - first : 0;
      size = std::min<std::uint64_t>(size, (rest + place_.ranks - 1) / place_.ranks);
    }
    return {order_, first, place_.ranks, static_cast<std::size_t>(size)};
  }

  std::uint64_t samples_;
  shard place_;
  epoch_sampler_options options_;
  detail::epoch_progress progress_;
  detail::epoch_order order_;
  /// The samples of the epoch that other ranks have taken, and their steps.
  std::uint64_t taken_ = 0;
  std::uint64_t first_step_ = 0;
  std::uint64_t present_steps_ = 0;
  std::uint64_t left_over_ = 0;
};

}  // namespace omnibal::inline v0
