// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The library on plain arrays: its templates compiled once, for the interfaces to C and Python.
///
/// Every function here is the one of its name in omnibal, which has the contract. What differs is
/// how samples are given: as rows of integers, or as one cost each.

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/optimizer_steps.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace arrays {

/// The most resources that a sample may take.
inline constexpr std::size_t max_kinds = 3;

/// What each sample takes of each resource: `kinds` numbers for a sample, one sample after the
/// other.
struct demand_table {
  std::span<std::int64_t const> values;
  std::size_t kinds = 1;
};

using integers = std::span<std::int64_t const>;
using numbers = std::span<double const>;

/// One cost for each sample.
using cost_list = std::variant<integers, numbers>;

/// An executor of the library, which runs the bodies of a call; empty: the thread of the caller.
using executor = std::function<void(std::size_t, std::function<void(std::size_t)> const&)>;

/// A capacity for all parts, with a number for each kind; or such a row for each part.
struct capacity_list {
  capacity_list(integers given, std::size_t parts = 0) : values(given), rows(parts) {}

  integers values;
  /// The number of rows; 0 if the capacity is for all parts.
  std::size_t rows;
};

/// One number, of the type of the costs that it comes from.
using cost_value = std::variant<std::int64_t, double>;

// Packing. Errors: those of the algorithms, and `std::invalid_argument` for no resource, more than
// `max_kinds`, and a capacity or threshold that has another number of resources.

struct isf_arguments {
  std::size_t rounds = 50;
  double min_gain = 0.0;
  std::uint64_t seed = 0;
  /// A group that reaches one of these is kept; empty: 31/32 of the capacity.
  integers threshold{};
  /// The order of NumPy's legacy generator, as the reference implementation has it.
  enum class order { fisher_yates, numpy } shuffle = order::fisher_yates;
};

[[nodiscard]] omnibal::packing next_fit(demand_table const& demands, integers capacity);
[[nodiscard]] omnibal::packing isf(demand_table const& demands, integers capacity,
                                   isf_arguments const& arguments);
[[nodiscard]] omnibal::packing best_fit_decreasing(demand_table const& demands, integers capacity);
[[nodiscard]] omnibal::packing pack_padded(demand_table const& demands, integers capacity);
[[nodiscard]] omnibal::packing best_packing(demand_table const& demands, integers capacity,
                                            omnibal::effort effort);
/// Called after each pass of `improve_packing`, also within balancers; returns whether the passes
/// continue.
using pass_watch = std::function<bool(omnibal::improve_packing_progress const&)>;
[[nodiscard]] omnibal::packing improve_packing(demand_table const& demands, integers capacity,
                                               omnibal::packing const& start,
                                               omnibal::improve_packing_options const& options,
                                               pass_watch const& go_on, executor const& run);
[[nodiscard]] std::size_t packing_bound(demand_table const& demands, integers capacity,
                                        omnibal::effort effort, executor const& run);

struct tune_arguments {
  double target = 1.0;
  double width = 1.0;
  /// Empty: whole numbers.
  integers granularity{};
  double max_oversized = 0.01;
  std::uint64_t seed = 0;
  /// The packer: `isf` or `best_fit_decreasing`.
  enum class packers { isf, best_fit_decreasing } packer = packers::best_fit_decreasing;
};

struct tuned_capacity {
  std::vector<std::int64_t> capacity;
  std::size_t groups = 0;
  std::size_t oversized = 0;
  double mean_group_size = 0.0;
  std::vector<double> fill;
  double objective = 0.0;
};

struct tuned {
  omnibal::solve_status status = omnibal::solve_status::infeasible;
  tuned_capacity best;
  std::vector<tuned_capacity> finalists;
  std::vector<std::string> warnings;
};

/// `watch` is called before each packing, on the thread that packs; an exception of it ends the
/// search.
[[nodiscard]] tuned tune_capacity(demand_table const& demands, tune_arguments const& arguments,
                                  std::function<void()> const& watch, executor const& run);

/// The loads of groups, `kinds` numbers for each.
[[nodiscard]] std::vector<std::int64_t> group_loads(omnibal::grouping_view groups,
                                                    demand_table const& demands);

// Balancing.

[[nodiscard]] omnibal::grouping lpt(cost_list const& costs, std::size_t parts,
                                    omnibal::lpt_options const& options);
[[nodiscard]] omnibal::grouping karmarkar_karp(cost_list const& costs, std::size_t parts,
                                               omnibal::karmarkar_karp_options const& options);
[[nodiscard]] omnibal::grouping deal(cost_list const& costs, std::size_t parts,
                                     omnibal::deal_options const& options);
[[nodiscard]] omnibal::grouping refine_parts(cost_list const& costs, omnibal::grouping_view parts,
                                             omnibal::refine_parts_options const& options);

struct within_result {
  omnibal::solve_status status = omnibal::solve_status::not_found;
  omnibal::within_reason reason = omnibal::within_reason::none;
  omnibal::grouping parts;
  cost_value largest_load;
  cost_value lower_bound;
  bool proven = false;
  std::size_t parts_needed = 0;
  std::uint32_t sample = 0;
};

/// Errors also: `std::invalid_argument` where costs and demands differ in number.
[[nodiscard]] within_result balance_under_capacity(
    cost_list const& costs, std::size_t parts, demand_table const& demands,
    capacity_list const& capacity, omnibal::balance_under_capacity_options const& options,
    pass_watch const& go_on);
[[nodiscard]] omnibal::micro_batch_steps micro_batches(
    cost_list const& costs, std::size_t ranks, demand_table const& demands,
    capacity_list const& capacity, omnibal::micro_batches_options const& options,
    pass_watch const& go_on);
[[nodiscard]] std::vector<omnibal::micro_batch_steps> optimizer_steps(
    cost_list const& costs, std::size_t steps, std::size_t ranks, demand_table const& demands,
    integers capacity, omnibal::optimizer_steps_options const& options);
[[nodiscard]] omnibal::steps schedule_steps(demand_table const& loads, std::size_t ranks,
                                            omnibal::schedule_steps_options const& options);

// Metrics.

[[nodiscard]] double pad_ratio(omnibal::grouping_view groups, integers lengths);
/// For each resource: the share of a step in which ranks wait, of one step whose totals are given.
[[nodiscard]] std::vector<double> dist_ratio(demand_table const& totals);
/// The mean over the steps of a schedule of groups with these loads.
[[nodiscard]] std::vector<double> dist_ratio(omnibal::steps const& schedule,
                                             demand_table const& loads);
[[nodiscard]] std::vector<double> imbalance(demand_table const& loads);
[[nodiscard]] std::vector<double> utilization(demand_table const& loads, integers capacity);

// Cutting, recomputation, groups of ranks.

struct stage_partition {
  omnibal::solve_status status = omnibal::solve_status::solved;
  std::vector<std::uint32_t> boundaries;
  cost_value bottleneck;
  cost_value objective;
  cost_value lower_bound;
  bool proven = false;
  std::uint32_t stage = 0;
  std::int64_t missing_bytes = 0;
};

[[nodiscard]] stage_partition partition_minimax(cost_list const& costs, std::size_t stages,
                                                omnibal::empty_stages empty);

struct partition_arguments {
  std::size_t stages = 1;
  /// What a cut before a layer costs the stages on both of its sides, one for each layer; empty:
  /// nothing.
  cost_list cut_costs{integers()};
  /// What each layer takes in memory, and what each stage has; empty: no limit.
  integers bytes{};
  integers capacity{};
  integers min_layers{};
  integers max_layers{};
  std::vector<std::uint32_t> forbidden_cuts{};
  omnibal::empty_stages empty = omnibal::empty_stages::forbidden;
  /// Where it is not zero, the step of so many micro-batches is made short.
  std::size_t micro_batches = 0;
};

/// `partition_layers`, or `partition_throughput` where there are micro-batches, for layers whose
/// costs add up and cuts that cost something. Errors also: `std::invalid_argument` for costs of
/// cuts that are not as many as layers.
[[nodiscard]] stage_partition partition_layers(cost_list const& costs,
                                               partition_arguments const& arguments);

struct recompute_choice_list {
  omnibal::solve_status status = omnibal::solve_status::solved;
  std::vector<std::uint32_t> choices;
  cost_value time;
  cost_value lower_bound;
  bool proven = false;
  std::int64_t bytes = 0;
  std::int64_t missing_bytes = 0;
};

/// `times`, `bytes` and, unless empty, `transient_bytes` have those of all choices, layer by layer;
/// those of layer l are [offsets[l], offsets[l + 1]). Errors also: `std::invalid_argument` for
/// lists that do not agree.
[[nodiscard]] recompute_choice_list select_recompute(
    cost_list const& times, integers bytes, integers transient_bytes,
    std::span<std::uint32_t const> offsets, std::int64_t budget,
    omnibal::select_recompute_options const& options);

/// `bytes_per_token` is what a token takes: a sample on d ranks takes that of a d-th of its tokens,
/// rounded up, on each. Errors also: `std::invalid_argument` for negative bytes and bytes that
/// exceed 2^63 - 1.
[[nodiscard]] omnibal::context_plan context_groups(integers lengths, std::size_t ranks,
                                                   omnibal::context_cost const& cost,
                                                   std::int64_t bytes_per_token,
                                                   omnibal::context_groups_options const& options);

}  // namespace arrays
