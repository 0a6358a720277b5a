// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A local search over the order of the micro-batches in lists of a pipeline.

#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/list_times.hpp>
#include <omnibal/pipeline/detail/run_lists.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A local search that exchanges two micro-batches in the lists of all stages.
///
/// The lists serve as a template. Every operation has a kind, a chunk and a *position*: the number
/// of its micro-batch in the given lists. The order assigns a micro-batch to each position, so all
/// stages run the micro-batches of a chunk in the same order.
template <class T>
class micro_batch_exchange {
 public:
  /// Errors: `std::overflow_error` if 32 bits do not hold five times the number of units and
  /// micro-batches.
  micro_batch_exchange(std::string_view function, list_problem<T> const& problem,
                       list_objective objective)
      : problem_(problem), objective_(objective) {
    std::size_t const units = problem.bytes.size();
    static_cast<void>(checked_cast<std::uint32_t>(function, "the number of operations",
                                                  5 * units + problem.layout.micro_batches));
    values_.reserve(5 * units + problem.layout.micro_batches);
    for (stage_time<T> const& time : problem.times.work) values_.push_back(time.forward);
    for (stage_time<T> const& time : problem.times.work) values_.push_back(time.backward);
    for (stage_time<T> const& time : problem.times.work) values_.push_back(time.weight);
    values_.resize(5 * units + problem.layout.micro_batches);
    for (std::size_t cut = 0; cut + 1 < problem.virtual_stages(); ++cut) {
      for (std::uint32_t m = 0; m != problem.layout.micro_batches; ++m) {
        transfer_time<T> const time = problem.transfer_over(problem.times, cut, m);
        values_[3 * units + problem.index(cut, m)] = time.forward;
        values_[4 * units + problem.index(cut, m)] = time.backward;
      }
    }
  }

  /// Improves lists until the objective equals `bound` or the budget is spent; each exchange is a
  /// step of the budget. Returns the times of the lists if the search improved them. The lists
  /// never exceed the memory of the stages.
  [[nodiscard]] std::optional<list_times<T>> improve(operation_lists& lists, T bound,
                                                     search_budget budget, rng::engine& random) {
    if (!micro_batches_differ()) return {};
    load(lists);
    static_cast<void>(run(std::numeric_limits<T>::max()));
    list_times<T> best = measured();
    T const given = best.of(objective_);
    while (!budget.is_spent() && best.of(objective_) > bound) {
      find_critical_path();
      std::vector<exchange> const promising = promising_exchanges(random);
      auto next = promising.begin();
      for (bool is_done = false; !is_done && !budget.is_spent(); budget.spend()) {
        // Exchanges that keep the objective are accepted too, because they lead out of local
        // optima.
        is_done = next != promising.end()
                      ? apply(*next++, accepted::shorter, best)
                      : apply(random_exchange(random), accepted::not_longer, best);
      }
    }
    if (!(best.of(objective_) < given)) return {};
    for (auto& list : lists) {
      for (listed_operation& one : list) one.micro_batch = order_[one.micro_batch];
    }
    return best;
  }

 private:
  static constexpr std::size_t max_promising = 20;

  /// The results of an exchange that the search accepts: shorter lists, or lists that are not
  /// longer.
  enum class accepted { shorter, not_longer };

  /// An operation of the lists. Number 0 means no operation; it ends at time 0.
  struct numbered_operation {
    /// The number of the operation that sends the input, and the row of the transfer in `values_`.
    std::uint32_t input = 0;
    std::uint32_t transfer = 0;
    /// The row of the time in `values_`, and the row of the bytes of the virtual stage in the
    /// problem.
    std::uint32_t time = 0;
    std::uint32_t bytes = 0;
    std::uint32_t position = 0;
    std::uint32_t stage = 0;
    operation_kind kind = operation_kind::forward;
  };

  /// Two positions that exchange their micro-batches, and the time that the exchange saves on the
  /// critical path.
  struct exchange {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    T gain{};
  };

  /// The distance between positions whose micro-batches pass the stages in the same direction.
  [[nodiscard]] std::uint32_t step() const {
    return problem_.layout.placement == chunk_placement::bidirectional ? 2 : 1;
  }

  [[nodiscard]] std::uint32_t row_of(operation_kind kind, std::size_t virtual_stage) const {
    auto const rows = static_cast<std::size_t>(kind) * problem_.virtual_stages();
    return static_cast<std::uint32_t>((rows + virtual_stage) * problem_.layout.micro_batches);
  }
  [[nodiscard]] std::uint32_t transfer_row(std::size_t row) const {
    std::size_t const first = 3 * problem_.virtual_stages();
    return static_cast<std::uint32_t>((first + row) * problem_.layout.micro_batches);
  }
  [[nodiscard]] T value_at(std::uint32_t row, std::uint32_t position) const {
    return values_[row + order_[position]];
  }

  /// Returns true if two micro-batches have different times. Otherwise no exchange has an effect.
  [[nodiscard]] bool micro_batches_differ() const {
    std::size_t const count = problem_.layout.micro_batches;
    if (count <= step()) return false;
    for (std::size_t row = 0; row != values_.size(); row += count) {
      for (std::size_t m = 1; m != count; ++m) {
        if (values_[row + m] != values_[row]) return true;
      }
    }
    return false;
  }

  struct begun_operation {
    T begin;
    std::uint32_t stage;
    listed_operation operation;
  };

  /// Returns the operations of lists in the order in which they begin. Each operation is after its
  /// input, also if the input takes no time.
  [[nodiscard]] std::vector<begun_operation> by_begin(operation_lists const& lists) const {
    std::vector<begun_operation> begun;
    std::vector<T> now(lists.size());
    unit_arrivals<T> arrivals;
    arrivals.reset(problem_);
    static_cast<void>(run_lists(lists, [&](std::size_t s, std::size_t i) {
      listed_operation const& one = lists[s][i];
      std::uint32_t const m = one.micro_batch;
      std::size_t const v = problem_.layout.virtual_stage(s, {one.chunk, m});
      bool const is_weight = one.kind == operation_kind::weight;
      T const arrival = is_weight ? T{} : arrivals.of(one.kind, problem_.index(v, m));
      if (arrival == unit_arrivals<T>::missing) return run_outcome::waits;
      T const begin = std::max(now[s], arrival);
      begun.push_back({begin, static_cast<std::uint32_t>(s), one});
      now[s] = begin + values_[row_of(one.kind, v) + m];
      if (!is_weight) arrivals.pass_on(problem_, problem_.times, one.kind, v, m, now[s]);
      return run_outcome::ran;
    }));
    std::ranges::stable_sort(begun, {}, &begun_operation::begin);
    return begun;
  }

  /// Loads lists in the order in which their operations begin, so that a run ends early if stages
  /// are idle too long. Resets the order of the micro-batches to the order of the lists.
  void load(operation_lists const& lists) {
    order_.resize(problem_.layout.micro_batches);
    std::iota(order_.begin(), order_.end(), 0U);
    operations_.assign(1, {});
    previous_.assign(1, 0);
    first_.assign(lists.size(), 0);
    last_.assign(lists.size(), 0);
    std::size_t const stages = problem_.virtual_stages();
    std::uint32_t const no_transfer = transfer_row(2 * stages);
    // The numbers of the operations for forward and backward passes, by the index of their times in
    // `values_`.
    std::vector<std::uint32_t> number(2 * problem_.bytes.size(), 0);
    pass_chain const passes{stages};
    for (auto const& [begin, stage, one] : by_begin(lists)) {
      std::uint32_t const m = one.micro_batch;
      std::size_t const v = problem_.layout.virtual_stage(stage, {one.chunk, m});
      numbered_operation numbered{.transfer = no_transfer,
                                  .time = row_of(one.kind, v),
                                  .bytes = row_of(operation_kind::forward, v),
                                  .position = m,
                                  .stage = stage,
                                  .kind = one.kind};
      auto const input = one.kind == operation_kind::weight
                             ? std::nullopt
                             : passes.before(chain_pass{one.kind, v});
      if (input) {
        numbered.input = number[row_of(input->kind, input->virtual_stage) + m];
        bool const is_forward = one.kind == operation_kind::forward;
        if (input->virtual_stage != v) {
          numbered.transfer = transfer_row(is_forward ? v - 1 : stages + v);
        }
      }
      auto const index = static_cast<std::uint32_t>(operations_.size());
      if (one.kind != operation_kind::weight) number[numbered.time + m] = index;
      if (last_[stage] == 0) first_[stage] = index;
      operations_.push_back(numbered);
      previous_.push_back(std::exchange(last_[stage], index));
    }
    ends_.assign(operations_.size(), T{});
    now_.resize(lists.size());
    spare_.resize(lists.size());
  }

  /// Runs the lists with the micro-batches in the current order. Returns false if the makespan
  /// exceeds `limit`.
  [[nodiscard]] bool run(T limit) {
    // The limit applies only to the makespan, not to the objective `longest_stage`.
    bool const is_limited = objective_ == list_objective::makespan;
    for (std::size_t s = 0; s != now_.size(); ++s) {
      now_[s] = T{};
      spare_[s] = is_limited ? limit - problem_.busy[s] : std::numeric_limits<T>::max();
    }
    for (std::size_t i = 1; i != operations_.size(); ++i) {
      numbered_operation const& one = operations_[i];
      T const arrival = ends_[one.input] + value_at(one.transfer, one.position);
      T& now = now_[one.stage];
      if (arrival > now) {
        spare_[one.stage] -= arrival - now;
        if (spare_[one.stage] < T{}) return false;
        now = arrival;
      }
      now += value_at(one.time, one.position);
      ends_[i] = now;
    }
    return true;
  }

  /// Returns the time from the begin of the first operation of a stage to the end of its last
  /// operation, after a run.
  [[nodiscard]] T span(std::size_t stage) const {
    std::uint32_t const first = first_[stage];
    return now_[stage] -
           (ends_[first] - value_at(operations_[first].time, operations_[first].position));
  }
  [[nodiscard]] list_times<T> measured() const {
    list_times<T> times;
    for (std::size_t s = 0; s != now_.size(); ++s) {
      times.makespan = std::max(times.makespan, now_[s]);
      times.longest_stage = std::max(times.longest_stage, span(s));
    }
    return times;
  }

  /// Exchanges two micro-batches if the new lists are accepted in comparison with `best`, and
  /// returns true. Otherwise the order does not change.
  [[nodiscard]] bool apply(exchange const& one, accepted which, list_times<T>& best) {
    T const limit = best.of(objective_);
    std::swap(order_[one.left], order_[one.right]);
    if (run(limit)) {
      list_times<T> const found = measured();
      T const time = found.of(objective_);
      if ((time < limit || (which == accepted::not_longer && time == limit)) && fits()) {
        best = found;
        return true;
      }
    }
    std::swap(order_[one.left], order_[one.right]);
    return false;
  }

  /// Returns true if no stage exceeds its memory.
  [[nodiscard]] bool fits() const {
    std::vector<std::int64_t> free_bytes = problem_.memory;
    for (std::size_t i = 1; i != operations_.size(); ++i) {
      numbered_operation const& one = operations_[i];
      std::size_t const unit = one.bytes + order_[one.position];
      std::int64_t& left = free_bytes[one.stage];
      std::int64_t const kept = problem_.splits_backward ? problem_.weight_bytes[unit] : 0;
      switch (one.kind) {
        case operation_kind::forward:
          if ((left -= problem_.bytes[unit]) < 0) return false;
          break;
        case operation_kind::backward: left += problem_.bytes[unit] - kept; break;
        case operation_kind::weight: left += kept; break;
      }
    }
    return true;
  }

  /// Finds the critical path of the longest stage: the operations and transfers that determine its
  /// end, from its last operation back to the begin of the step. Sorts them by position.
  void find_critical_path() {
    bool const is_step = objective_ == list_objective::makespan;
    std::size_t longest = 0;
    for (std::size_t s = 1; s != now_.size(); ++s) {
      bool const is_longer = is_step ? now_[s] > now_[longest] : span(s) > span(longest);
      if (is_longer) longest = s;
    }
    path_.clear();
    for (std::uint32_t i = last_[longest]; i != 0;) {
      numbered_operation const& one = operations_[i];
      path_.push_back({one.position, one.time});
      std::uint32_t const before = previous_[i];
      T const arrival = ends_[one.input] + value_at(one.transfer, one.position);
      bool const waits = one.input != 0 && (before == 0 || arrival > ends_[before]);
      if (waits) path_.push_back({one.position, one.transfer});
      i = waits ? one.input : before;
    }
    std::ranges::stable_sort(path_, {}, &path_value::position);
    path_begins_.assign(order_.size() + 1, 0);
    for (path_value const& one : path_) ++path_begins_[one.position + 1];
    std::partial_sum(path_begins_.begin(), path_begins_.end(), path_begins_.begin());
  }

  /// Returns the time by which the critical path becomes shorter if the micro-batch of position
  /// `other` replaces the micro-batch of `position`.
  [[nodiscard]] T gain_at(std::uint32_t position, std::uint32_t other) const {
    T gain{};
    for (std::size_t i = path_begins_[position]; i != path_begins_[position + 1]; ++i) {
      gain += value_at(path_[i].row, position) - value_at(path_[i].row, other);
    }
    return gain;
  }

  /// Returns the exchanges that shorten the critical path the most.
  [[nodiscard]] std::vector<exchange> promising_exchanges(rng::engine& random) const {
    std::vector<exchange> found;
    auto const consider = [&](exchange one) {
      one.gain = gain_at(one.left, one.right) + gain_at(one.right, one.left);
      if (one.gain > T{}) found.push_back(one);
    };
    auto const count = static_cast<std::uint32_t>(order_.size());
    if (order_.size() * order_.size() <= operations_.size()) {
      for (std::uint32_t left = 0; left != count; ++left) {
        for (std::uint32_t right = left + step(); right < count; right += step()) {
          consider({left, right});
        }
      }
    } else {
      for (std::size_t i = 1; i != operations_.size(); ++i) consider(random_exchange(random));
    }
    auto const kept = std::min(found.size(), max_promising);
    std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(kept),
                              [](exchange const& one, exchange const& other) {
                                if (one.gain != other.gain) return one.gain > other.gain;
                                return std::pair(one.left, one.right) <
                                       std::pair(other.left, other.right);
                              });
    found.resize(kept);
    return found;
  }

  [[nodiscard]] exchange random_exchange(rng::engine& random) const {
    std::uint64_t const count = order_.size();
    auto const left = static_cast<std::uint32_t>(rng::below(random, count - step()));
    std::uint64_t const others = (count - 1 - left) / step();
    auto const after = static_cast<std::uint32_t>(rng::below(random, others) + 1);
    return {left, left + step() * after};
  }

  /// An operation or a transfer on the critical path: its position and its row of `values_`.
  struct path_value {
    std::uint32_t position;
    std::uint32_t row;
  };

  list_problem<T> const& problem_;
  list_objective objective_;
  /// Rows by micro-batch: the times of forward passes, backward passes and gradients of weights of
  /// each virtual stage, the transfers forward and backward over each cut, and a row of zeros.
  std::vector<T> values_;
  /// The micro-batch of each position.
  std::vector<std::uint32_t> order_;
  std::vector<numbered_operation> operations_;
  /// The operation before each operation on its stage, and the first and last operation of each
  /// stage.
  std::vector<std::uint32_t> previous_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> last_;
  /// The end of each operation; for each stage the current time, and the idle time that remains
  /// before the limit is exceeded.
  std::vector<T> ends_;
  std::vector<T> now_;
  std::vector<T> spare_;
  /// The critical path by position. The values of position p begin at `path_begins_[p]`.
  std::vector<path_value> path_;
  std::vector<std::size_t> path_begins_;
};

}  // namespace omnibal::inline v0::detail
