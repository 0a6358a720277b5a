// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The queue of samples that wait for a later step, and its state for checkpoints.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct deferral_queue_options {
  /// The number of samples that run at the same time: the ranks divided by the widest group of
  /// ranks that one sample may have. With 1 no sample waits. Like the number of ranks, the group
  /// size may change when a run resumes.
  std::uint32_t group_size = 1;
  /// The maximum number of steps for which a sample waits; with 0 no sample waits.
  std::uint32_t max_delay = 8;
  /// The length below which a sample never waits.
  std::int64_t threshold = 0;
  /// The user's number for the contents of the data, such as a version. The number is part of the
  /// digest.
  std::uint64_t contents = 0;
};

/// A sample that waits in a `deferral_queue`: the user's id, the number of steps before its push,
/// and its length. Trivially copyable and without padding.
struct deferred_sample {
  std::uint64_t id = 0;
  std::uint64_t step = 0;
  std::int64_t length = 0;

  [[nodiscard]] friend constexpr bool operator==(deferred_sample const&,
                                                 deferred_sample const&) = default;
};

/// The state of a `deferral_queue`: two numbers and one array of records, in the order of the
/// pushes. The future of the queue depends only on the state and on the options. Numbers and
/// records can be written to a file byte by byte. The state is the same on all ranks.
struct deferral_state {
  /// Identifies the other members of the state and the options, except for the group size.
  std::uint64_t digest = 0;
  /// The number of steps up to now.
  std::uint64_t step = 0;
  std::vector<deferred_sample> waiting{};

  [[nodiscard]] friend bool operator==(deferral_state const&, deferral_state const&) = default;
};

/// The samples that run in a step: first the samples that waited, then new samples, each in the
/// order of their pushes. Valid until the next call that changes the queue.
struct deferral_step {
  std::span<std::uint64_t const> ids;
  std::span<std::int64_t const> lengths;
  /// The number of steps for which each sample has waited.
  std::span<std::uint32_t const> delays;

  /// Returns true if any samples run.
  [[nodiscard]] constexpr explicit operator bool() const { return !ids.empty(); }
};

/// Delays rare long samples until enough of them make an even step.
///
/// In each step every rank pushes the same gathered samples and gets the same samples to run:
///
///     omnibal::deferral_queue queue({.group_size = ranks / widest, .max_delay = 8});
///     auto const alone = [&](std::int64_t length) {  // on the widest group
///       if (memory(length, 1) <= options.capacity) return 0.0;  // a micro-step of its own
///       auto const tokens = static_cast<double>(length);
///       return cost.degrees[widest - 1](tokens, tokens * tokens);
///     };
///     auto const now = queue.push(ids, lengths, alone);
///     auto const& plan = omnibal::context_groups(now.lengths, ranks, cost, memory, options, work);
///     // Group g runs the samples now.ids[i] for i in plan.samples[g].
///
/// A step is even if `options.group_size` times the largest cost is at most the sum of the costs.
/// Then no sample costs more than the average of the groups that run at the same time. The step
/// runs the largest even set of new and waiting samples, from the cheapest sample on. More
/// expensive samples wait, unless they are shorter than `options.threshold`. All samples run if the
/// oldest sample has waited for `options.max_delay` steps. Such a step is uneven in any case, and
/// other samples of high cost run in it too. Therefore each sample runs exactly once, at most
/// `options.max_delay` steps after its push. Without a threshold a step has no samples if there are
/// too few for an even step.
///
/// Even steps differ in work from step to step. An even step has at least `options.group_size`
/// times the work of its most expensive sample, and the steps before it have less work than was
/// pushed. Use the average over an epoch (`loss_normalizer`), so that all tokens have the same
/// weight.
///
/// Complexity of a push: linear in its samples and the waiting samples, and logarithmic in them for
/// each sample that is held back. Memory: 84 bytes for each sample of a step and each waiting
/// sample. A step allocates only memory beyond earlier steps. Determinism: portable for integer
/// costs, otherwise run-to-run. The result depends only on the options and the pushes. Calls from
/// two threads at the same time are not safe. Source: Wang et al., WLB-LLM, OSDI 2025. The queues
/// of outliers in WLB-LLM count samples between thresholds of length. This library adds costs
/// instead of counts and the joint release of all samples.
class deferral_queue {
 public:
  /// Constructs a queue in which no samples wait. Errors: `std::invalid_argument` if the group size
  /// is zero or the threshold is below zero.
  explicit deferral_queue(deferral_queue_options const& options = {})
      : options_(options), step_(0) {
    detail::check_positive(name, "options.group_size", options.group_size);
    detail::check_weight(name, "options.threshold", options.threshold);
  }

  /// Constructs a queue that continues from `state`. Errors: the errors of the first constructor,
  /// and `std::invalid_argument` if options other than the group size differ from the options of
  /// the state. It is also thrown if the state is damaged, and if no queue could have the state.
  deferral_queue(deferral_queue_options const& options, deferral_state const& state)
      : deferral_queue(options) {
    detail::check_digest(name, state.digest, digest_of(state.step, state.waiting),
                         "options.max_delay, options.threshold, options.contents, state.step and "
                         "state.waiting");
    check_samples(state);
    step_ = state.step;
    waiting_ = state.waiting;
  }

  /// Adds the new samples of a step and returns the samples that run in the step. `ids` are the ids
  /// of the user and may repeat. `lengths` must have the same number of values. The call
  /// `cost(length)` returns the cost of a sample on the widest group that it may have, in any unit,
  /// the same on all ranks. A sample of zero cost never waits. The functor is called once for each
  /// new sample, in order, and then once for each waiting sample.
  ///
  /// Errors: `std::invalid_argument` if the numbers of ids and lengths differ, if a length is
  /// negative, and if a cost is negative or not finite. Further errors: `std::overflow_error` if
  /// the sum of the costs exceeds its type; `std::length_error` if there are more than 2^32 - 1
  /// samples. After an error the queue is unchanged.
  template <sample_range Ids, sample_range Lengths, cost_function<std::int64_t> Cost>
    requires std::integral<std::ranges::range_value_t<Ids const>> &&
        std::integral<std::ranges::range_value_t<Lengths const>>
  [[nodiscard]] deferral_step push(Ids const& ids, Lengths const& lengths, Cost const& cost) & {
    detail::check_size(push_name, "ids", std::ranges::size(ids), std::ranges::size(lengths),
                       "lengths");
    read(ids, lengths);
    detail::measure_costs_into(
        push_name, {}, fresh_.size() + waiting_.size(),
        [&](std::size_t i) { return std::invoke(cost, measured(i).length); }, costs_);
    reserve();
    std::int64_t const dearest = is_due() ? std::numeric_limits<std::int64_t>::max() : even_cost();
    return take([&](deferred_sample const& sample, std::size_t i) {
      return costs_[i][0] <= dearest || never_waits(sample);
    });
  }

  /// Returns all waiting samples as one more step, for the end of the data. If no samples wait, the
  /// result is empty and counts as no step. Pushes of no samples empty the queue too, in steps that
  /// are as even as other steps. Allocates only memory beyond earlier steps.
  [[nodiscard]] deferral_step flush() & {
    if (waiting_.empty()) return {};
    fresh_.clear();
    reserve();
    return take([](deferred_sample const&, std::size_t) { return true; });
  }
  void flush() && = delete;

  /// Returns the number of samples that wait.
  [[nodiscard]] std::size_t size() const { return waiting_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Returns the number of steps up to now, which is the index of the next step.
  [[nodiscard]] std::uint64_t step() const { return step_; }

  /// Returns the state for a checkpoint, the same on all ranks. Complexity: linear in the samples
  /// that wait.
  [[nodiscard]] deferral_state state() const {
    return {digest_of(step_, waiting_), step_, waiting_};
  }

 private:
  static constexpr std::string_view name = "deferral_queue";
  static constexpr std::string_view push_name = "deferral_queue::push";

  [[nodiscard]] std::uint64_t digest_of(std::uint64_t step,
                                        std::vector<deferred_sample> const& waiting) const {
    detail::data_digest result;
    result.add(std::uint64_t{options_.max_delay});
    result.add(static_cast<std::uint64_t>(options_.threshold));
    result.add(options_.contents);
    result.add(step);
    for (deferred_sample const& sample : waiting) {
      result.add(sample.id);
      result.add(sample.step);
      result.add(static_cast<std::uint64_t>(sample.length));
    }
    return result.value();
  }

  void check_samples(deferral_state const& state) const {
    detail::check_index_count(name, "state.waiting", state.waiting.size());
    for (std::size_t i = 0; i != state.waiting.size(); ++i) {
      deferred_sample const& sample = state.waiting[i];
      if (never_waits(sample)) {
        detail::throw_invalid(name, "state.waiting[", i, "].length is ", sample.length,
                              ", must be at least ", options_.threshold);
      }
      bool const is_ordered = i == 0 || sample.step >= state.waiting[i - 1].step;
      if (is_ordered && sample.step < state.step &&
          state.step - sample.step <= options_.max_delay) {
        continue;
      }
      detail::throw_invalid(name, "state.waiting[", i, "].step is ", sample.step,
                            ", must be one of the last ", options_.max_delay, " of ", state.step,
                            " steps and not below that of the sample before");
    }
  }

  template <class Ids, class Lengths>
  void read(Ids const& ids, Lengths const& lengths) {
    detail::check_index_count(push_name, "lengths", std::ranges::size(lengths));
    fresh_.clear();
    fresh_.reserve(std::ranges::size(lengths));
    auto id = std::ranges::begin(ids);
    for (auto const length : lengths) {
      auto const checked =
          detail::checked_cost<std::int64_t>(push_name, "lengths", fresh_.size(), length);
      fresh_.push_back({static_cast<std::uint64_t>(*id), step_, checked});
      ++id;
    }
  }

  /// Reserves memory, so that nothing throws once the queue begins to change.
  void reserve() {
    std::size_t const count = waiting_.size() + fresh_.size();
    waiting_.reserve(count);
    ids_.reserve(count);
    lengths_.reserve(count);
    delays_.reserve(count);
  }

  /// Returns whether the oldest sample, including new samples, has waited for the maximum delay.
  [[nodiscard]] bool is_due() const {
    std::uint64_t const oldest = waiting_.empty() ? step_ : waiting_.front().step;
    return step_ - oldest >= options_.max_delay;
  }

  [[nodiscard]] bool never_waits(deferred_sample const& sample) const {
    return sample.length < options_.threshold;
  }

  /// Returns the sample with this index among the costs: new samples, then waiting samples.
  [[nodiscard]] deferred_sample const& measured(std::size_t i) const {
    return i < fresh_.size() ? fresh_[i] : waiting_[i - fresh_.size()];
  }

  /// Returns the cost up to which samples run so that the step is even. Returns -1 if no sample
  /// that may wait runs.
  [[nodiscard]] std::int64_t even_cost() {
    std::int64_t sum = 0;
    heap_.clear();
    for (std::size_t i = 0; i != costs_.size(); ++i) {
      sum += costs_[i][0];
      if (!never_waits(measured(i))) heap_.push_back(costs_[i][0]);
    }
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty() && detail::int128{options_.group_size} * heap_.front() > sum) {
      sum -= heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    return heap_.empty() ? -1 : heap_.front();
  }

  /// Returns the samples for which `runs(sample, index among the costs)` is true, and keeps the
  /// others.
  template <class Runs>
  deferral_step take(Runs const& runs) {
    ids_.clear();
    lengths_.clear();
    delays_.clear();
    std::size_t kept = 0;
    for (std::size_t i = 0; i != waiting_.size(); ++i) {
      deferred_sample const sample = waiting_[i];
      if (runs(sample, fresh_.size() + i)) {
        hand_out(sample);
      } else {
        waiting_[kept++] = sample;
      }
    }
    waiting_.resize(kept);
    for (std::size_t i = 0; i != fresh_.size(); ++i) {
      if (runs(fresh_[i], i)) {
        hand_out(fresh_[i]);
      } else {
        waiting_.push_back(fresh_[i]);
      }
    }
    ++step_;
    return {ids_, lengths_, delays_};
  }

  void hand_out(deferred_sample const& sample) {
    ids_.push_back(sample.id);
    lengths_.push_back(sample.length);
    delays_.push_back(static_cast<std::uint32_t>(step_ - sample.step));
  }

  deferral_queue_options options_;
  std::uint64_t step_;
  /// The waiting samples, in the order of their pushes.
  std::vector<deferred_sample> waiting_;
  /// The memory and the results of a step.
  std::vector<deferred_sample> fresh_;
  detail::integer_costs<1> costs_;
  std::vector<std::int64_t> heap_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::uint32_t> delays_;
};

}  // namespace omnibal::inline v0
