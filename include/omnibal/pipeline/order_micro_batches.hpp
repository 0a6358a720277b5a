// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order in which a pipeline runs its micro-batches.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct largest_in_middle_fn {
  /// Returns the indices of costs in an order with the largest in the middle: the smallest cost is
  /// first, the second smallest last, the third smallest second, and so on. A pipeline that runs
  /// its micro-batches in this order fills and drains with small micro-batches. Equal costs keep
  /// their order.
  ///
  /// Complexity: n log n. Memory: the result and 16 bytes for each cost. Determinism: portable.
  /// Errors: `std::invalid_argument` for a cost that is negative or not finite,
  /// `std::length_error` above 2^32 - 1 costs.
  template <sample_range Costs, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Costs>>
  [[nodiscard]] std::vector<std::uint32_t> operator()(Costs const& costs,
                                                      Cost const& cost = {}) const {
    using working = detail::measured_weight<Costs, Cost>;
    std::size_t const count = std::ranges::size(costs);
    detail::check_number(name, "the number of costs", count);
    std::vector<detail::load_order<working>> sorted;
    sorted.reserve(count);
    for (auto&& one : costs) {
      auto const index = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(
          {detail::checked_cost<working>(name, "cost", index, std::invoke(cost, one)), index});
    }
    std::ranges::sort(sorted, std::less<>{});
    std::vector<std::uint32_t> order(count);
    for (std::size_t k = 0; k != count; ++k) {
      order[k % 2 == 0 ? k / 2 : count - 1 - k / 2] = sorted[k].part;
    }
    return order;
  }

 private:
  static constexpr std::string_view name = "largest_in_middle";
};

/// Returns an order of costs with the largest in the middle; see `largest_in_middle_fn`.
inline constexpr largest_in_middle_fn largest_in_middle{};

/// An order of the micro-batches of a step, and the times of the step.
template <scalar_measure T>
struct micro_batch_order {
  /// The index of the micro-batch that runs at each place of the schedule.
  std::vector<std::uint32_t> order;
  /// The simulated time of the step.
  T makespan{};
  /// The simulated time with the micro-batches in the given order.
  T given_makespan{};
  /// A lower bound of the time of the step for all orders of the micro-batches.
  T lower_bound{};

  [[nodiscard]] friend bool operator==(micro_batch_order const&,
                                       micro_batch_order const&) = default;
};

struct order_micro_batches_options {
  /// The number of orders that the search simulates; 0 means only the given order and the order of
  /// `largest_in_middle`.
  std::size_t simulations = 1000;
};

namespace detail {

/// The times or transfers of the micro-batches in another order.
template <class Source>
struct reordered {
  Source const& source;
  std::vector<std::uint32_t> const& order;

  [[nodiscard]] auto operator()(std::size_t stage, std::size_t place) const {
    return value_at(source, stage, order[place]);
  }
};

/// Returns the time of the gradients of the weights; zero if `Times` has no separate time for them.
template <class T, class Times>
[[nodiscard]] T weight_part(Times const& times, std::size_t stage, std::size_t micro_batch) {
  if constexpr (has_weight_time<value_of<Times>>) {
    return static_cast<T>(value_at(times, stage, micro_batch).weight);
  } else {
    return T{};
  }
}

/// Returns the time of a virtual stage for a micro-batch: forward, backward and gradients of
/// weights.
template <class T, class Times>
[[nodiscard]] T whole_time(Times const& times, std::size_t stage, std::size_t micro_batch) {
  auto const time = value_at(times, stage, micro_batch);
  return static_cast<T>(time.forward) + static_cast<T>(time.backward) +
         weight_part<T>(times, stage, micro_batch);
}

/// The two smallest values of a function of the micro-batches, and the index of the smallest value.
template <class T>
struct two_smallest {
  T least{};
  T second{};
  std::size_t index = 0;

  /// Precondition: there is at least one micro-batch.
  template <class Time>
  two_smallest(std::size_t micro_batches, Time const& time) : least(time(0)), second(least) {
    for (std::size_t m = 1; m != micro_batches; ++m) {
      T const value = time(m);
      if (value < least) {
        second = std::exchange(least, value);
        index = m;
      } else if (m == 1 || value < second) {
        second = value;
      }
    }
  }
};

/// Returns the least sum of the head of a micro-batch and the tail of another micro-batch.
template <class T>
[[nodiscard]] T least_pair(two_smallest<T> const& head, two_smallest<T> const& tail) {
  if (head.index != tail.index) return head.least + tail.least;
  return std::min(head.second + tail.least, head.least + tail.second);
}

/// A lower bound of the time of a step for all orders of the micro-batches. The tables hold the
/// times of all virtual stages before each virtual stage.
template <class T, class Schedule, class Times, class Transfers>
class order_bound {
 public:
  order_bound(Schedule const& schedule, Times const& times, Transfers const& transfers)
      : schedule_(schedule),
        times_(times),
        batches_(schedule.micro_batches),
        stages_(schedule.stages * schedule.chunk_count()),
        stage_of_(stages_of(schedule)),
        heads_((stages_ + 1) * batches_),
        tails_((stages_ + 1) * batches_) {
    for (std::size_t v = 0; v != stages_; ++v) {
      for (std::size_t m = 0; m != batches_; ++m) {
        head(v + 1, m) = head(v, m) + forward(v, m);
        tail(v + 1, m) = tail(v, m) + backward(v, m);
        if (v + 1 == stages_ || is_within_stage(v)) continue;
        head(v + 1, m) += way_of(transfers, v, m, [](auto const& t) { return t.forward; });
        tail(v + 1, m) += way_of(transfers, v, m, [](auto const& t) { return t.backward; });
      }
    }
  }

  /// Returns the larger one of two bounds. First, each micro-batch passes all stages and returns.
  /// Second, a stage is idle until its first micro-batch arrives, works, and its last micro-batch
  /// returns to the first stage.
  [[nodiscard]] T value() {
    T bound{};
    for (std::size_t m = 0; m != batches_; ++m) {
      bound = std::max(bound, head(stages_, m) + returning(stages_, m));
    }
    auto const units = static_cast<std::uint32_t>(batches_ * schedule_.chunk_count());
    for (std::size_t s = 0; s != schedule_.stages; ++s) {
      pipeline_unit const first = unit_of(schedule_, s, operation_kind::forward, 0);
      pipeline_unit const last = unit_of(schedule_, s, operation_kind::backward, units - 1);
      std::size_t const first_stage = virtual_stage_of(schedule_, s, first);
      std::size_t const last_stage = virtual_stage_of(schedule_, s, last);
      auto const head_of = [&](std::size_t m) { return head(first_stage, m); };
      auto const tail_of = [&](std::size_t m) { return returning(last_stage, m); };
      two_smallest<T> const heads(batches_, head_of);
      two_smallest<T> const tails(batches_, tail_of);
      bool const is_same = first.micro_batch == last.micro_batch;
      T const around = is_same ? heads.least + tails.least : least_pair(heads, tails);
      bound = std::max(bound, busy(s) + around);
    }
    return bound;
  }

 private:
  /// Returns true if the virtual stages on both sides of a cut lie on the same stage.
  [[nodiscard]] bool is_within_stage(std::size_t cut) const {
    return stage_of_[cut] == stage_of_[cut + 1];
  }
  /// Returns the stage of each virtual stage.
  [[nodiscard]] static std::vector<std::size_t> stages_of(Schedule const& schedule) {
    std::vector<std::size_t> result(schedule.stages * schedule.chunk_count());
    for (std::size_t s = 0; s != schedule.stages; ++s) {
      for (std::uint32_t chunk = 0; chunk != schedule.chunk_count(); ++chunk) {
        result[virtual_stage_of(schedule, s, {.chunk = chunk})] = s;
      }
    }
    return result;
  }

  [[nodiscard]] T& head(std::size_t v, std::size_t m) { return heads_[v * batches_ + m]; }
  [[nodiscard]] T& tail(std::size_t v, std::size_t m) { return tails_[v * batches_ + m]; }
  /// Returns the time from the end of the backward pass of virtual stage `v` to the end of the
  /// step. If the schedule splits the backward pass, the time is zero, because a stage may end with
  /// gradients of weights.
  [[nodiscard]] T returning(std::size_t v, std::size_t m) {
    if (!Schedule::splits_backward) return tail(v, m);
    return v == stages_ ? tail(v, m) : T{};
  }

  [[nodiscard]] T forward(std::size_t v, std::size_t m) const {
    return static_cast<T>(value_at(times_, v, m).forward);
  }
  [[nodiscard]] T backward(std::size_t v, std::size_t m) const {
    T const inputs = static_cast<T>(value_at(times_, v, m).backward);
    return Schedule::splits_backward ? inputs : inputs + weight_part<T>(times_, v, m);
  }
  template <class Way>
  [[nodiscard]] static T way_of(Transfers const& transfers, std::size_t v, std::size_t m,
                                Way const& way) {
    auto const transfer = value_at(transfers, v, m);
    if constexpr (scalar_measure<std::remove_cvref_t<decltype(transfer)>>) {
      return static_cast<T>(transfer);
    } else {
      return static_cast<T>(way(transfer));
    }
  }

  [[nodiscard]] T busy(std::size_t stage) const {
    T sum{};
    for (std::uint32_t chunk = 0; chunk != schedule_.chunk_count(); ++chunk) {
      std::size_t const v = virtual_stage_of(schedule_, stage, {.chunk = chunk});
      for (std::size_t m = 0; m != batches_; ++m) sum += whole_time<T>(times_, v, m);
    }
    return sum;
  }

  Schedule const& schedule_;
  Times const& times_;
  std::size_t batches_;
  std::size_t stages_;
  std::vector<std::size_t> stage_of_;
  std::vector<T> heads_;
  std::vector<T> tails_;
};

}  // namespace detail

struct order_micro_batches_fn {
  /// Returns an order of the micro-batches that shortens the step of a pipeline, and a lower bound
  /// for all orders. The result is never slower than the given order or the order of
  /// `largest_in_middle`. Times and transfers are given as for `simulate_pipeline`.
  ///
  /// The search begins with the better of these two orders. Each simulation moves one random
  /// micro-batch or exchanges two, and the search keeps the new order unless the step becomes
  /// longer. It ends early if the step reaches the bound. If all micro-batches take the same time,
  /// all orders take the same time.
  ///
  /// Complexity: `simulations` simulations. Memory: 16 bytes for each virtual stage and
  /// micro-batch, in addition to the memory of `simulate_pipeline`. Determinism: portable for
  /// integers. Errors: the errors of `simulate_pipeline`; `std::invalid_argument` if the schedule
  /// is bidirectional.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers = std::int64_t>
  [[nodiscard]] micro_batch_order<simulated_time<Times, Transfers>> operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers = {},
      order_micro_batches_options const& options = {}) const {
    using time_type = simulated_time<Times, Transfers>;
    check_places(schedule);
    simulate_pipeline_workspace<time_type> workspace;
    auto const evaluate = [&](std::vector<std::uint32_t> const& order) {
      return simulate_pipeline(schedule, detail::reordered<Times>{times, order},
                               detail::reordered<Transfers>{transfers, order}, workspace)
          .makespan;
    };
    micro_batch_order<time_type> result;
    // The first simulation uses the arguments themselves, because it checks their sizes.
    result.given_makespan = simulate_pipeline(schedule, times, transfers, workspace).makespan;
    std::size_t const count = schedule.micro_batches;
    std::vector<time_type> sizes;
    for (std::size_t m = 0; m != count; ++m) {
      sizes.push_back(time_of<time_type>(schedule, times, m));
    }
    result.order = largest_in_middle(sizes);
    result.makespan = evaluate(result.order);
    if (result.given_makespan <= result.makespan) {
      std::iota(result.order.begin(), result.order.end(), std::uint32_t{0});
      result.makespan = result.given_makespan;
    }
    // Sums of floating-point times are rounded, so the bound may exceed a makespan.
    result.lower_bound = std::min(
        detail::order_bound<time_type, Schedule, Times, Transfers>(schedule, times, transfers)
            .value(),
        result.makespan);
    search(options, evaluate, result);
    return result;
  }

 private:
  static constexpr std::string_view name = "order_micro_batches";

  /// Throws if the micro-batches of a chunk pass different virtual stages on a stage. Then an order
  /// would change the work of the stages.
  template <class Schedule>
  static void check_places([[maybe_unused]] Schedule const& schedule) {
    if constexpr (detail::places_chunks<Schedule>) {
      schedule.check();
      for (std::size_t s = 0; s != schedule.stages; ++s) {
        for (std::uint32_t chunk = 0; chunk != schedule.chunk_count(); ++chunk) {
          std::size_t const first = schedule.virtual_stage(s, {.chunk = chunk});
          for (std::uint32_t m = 1; m < schedule.micro_batches; ++m) {
            if (schedule.virtual_stage(s, {.chunk = chunk, .micro_batch = m}) == first) continue;
            detail::throw_invalid(name, "micro-batches 0 and ", m, " pass stage ", s,
                                  " as different virtual stages, which is not supported");
          }
        }
      }
    }
  }

  /// Returns the time of a micro-batch on all stages.
  template <class T, class Schedule, class Times>
  [[nodiscard]] static T time_of(Schedule const& schedule, Times const& times, std::size_t m) {
    T sum{};
    for (std::size_t v = 0; v != schedule.stages * schedule.chunk_count(); ++v) {
      sum += detail::whole_time<T>(times, v, m);
    }
    return sum;
  }

  template <class T, class Evaluate>
  static void search(order_micro_batches_options const& options, Evaluate const& evaluate,
                     micro_batch_order<T>& result) {
    std::size_t const count = result.order.size();
    if (count < 2) return;
    rng::engine random(0);
    std::vector<std::uint32_t> tried;
    detail::search_budget budget(options.simulations);
    for (; !budget.is_spent() && result.lower_bound < result.makespan; budget.spend()) {
      tried = result.order;
      order_candidate(random, tried);
      T const makespan = evaluate(tried);
      if (makespan > result.makespan) continue;
      result.makespan = makespan;
      result.order.swap(tried);
    }
  }

  /// Changes an order: exchanges the micro-batches of two random places, or moves the micro-batch
  /// of one place to the other place.
  static void order_candidate(rng::engine& random, std::vector<std::uint32_t>& order) {
    std::size_t const count = order.size();
    std::size_t const from = rng::below(random, count);
    std::size_t const to = (from + 1 + rng::below(random, count - 1)) % count;
    if (rng::below(random, 2) == 0) {
      std::swap(order[from], order[to]);
      return;
    }
    auto const place = [&](std::size_t i) {
      return order.begin() + static_cast<std::ptrdiff_t>(i);
    };
    if (from < to) {
      std::rotate(place(from), place(from + 1), place(to + 1));
    } else {
      std::rotate(place(to), place(from), place(from + 1));
    }
  }
};

/// Returns an order of the micro-batches that shortens the step; see `order_micro_batches_fn`.
inline constexpr order_micro_batches_fn order_micro_batches{};

}  // namespace omnibal::inline v0
