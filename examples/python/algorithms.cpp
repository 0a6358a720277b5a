// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"
#include "threads.hpp"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace algorithms {

namespace py = pybind11;
using convert::cost_array;
using convert::count_of;
using convert::demand_list;
using convert::integer_list;
using convert::limit_list;
using convert::optional_list;
using convert::reject;
using convert::released;
using convert::speed_array;
using convert::to_effort;
using results::groups;

namespace {

std::vector<std::uint32_t> to_indices(std::string const& function, std::string const& name,
                                      py::object const& given) {
  return convert::to_indices(function, name, optional_list(function, name, given).values());
}

results::packing next_fit(py::object const& demands, py::object const& capacity) {
  demand_list const rows("next_fit", "demands", demands);
  limit_list const limits("next_fit", "capacity", capacity);
  return results::to_packing(
      released([&] { return arrays::next_fit(rows.table(), limits.values()); }));
}

results::packing isf(py::object const& demands, py::object const& capacity, std::int64_t rounds,
                     double min_gain, py::object const& threshold, std::uint64_t seed,
                     std::string const& shuffle) {
  demand_list const rows("isf", "demands", demands);
  limit_list const limits("isf", "capacity", capacity);
  limit_list const least("isf", "threshold", threshold);
  using order = arrays::isf_arguments::order;
  if (shuffle != "fisher_yates" && shuffle != "numpy") {
    reject("isf", "shuffle is '" + shuffle + "', must be fisher_yates or numpy");
  }
  arrays::isf_arguments const arguments{
      .rounds = count_of("isf", "rounds", rounds),
      .min_gain = min_gain,
      .seed = seed,
      .threshold = least.values(),
      .shuffle = shuffle == "numpy" ? order::numpy : order::fisher_yates};
  return results::to_packing(
      released([&] { return arrays::isf(rows.table(), limits.values(), arguments); }));
}

results::packing best_fit_decreasing(py::object const& demands, py::object const& capacity) {
  demand_list const rows("best_fit_decreasing", "demands", demands);
  limit_list const limits("best_fit_decreasing", "capacity", capacity);
  return results::to_packing(
      released([&] { return arrays::best_fit_decreasing(rows.table(), limits.values()); }));
}

results::packing pack_padded(py::object const& demands, py::object const& capacity) {
  demand_list const rows("pack_padded", "demands", demands);
  limit_list const limits("pack_padded", "capacity", capacity);
  return results::to_packing(
      released([&] { return arrays::pack_padded(rows.table(), limits.values()); }));
}

results::packing best_packing(py::object const& demands, py::object const& capacity,
                              std::string const& effort) {
  demand_list const rows("best_packing", "demands", demands);
  limit_list const limits("best_packing", "capacity", capacity);
  auto const level = to_effort("best_packing", effort);
  return results::to_packing(
      released([&] { return arrays::best_packing(rows.table(), limits.values(), level); }));
}

/// Lets Ctrl-C end a search that takes seconds, and calls `progress` after each part of the search.
/// Without `progress` it waits for Python ten times a second at most, because other threads may run
/// it. If several threads of a search call it, `progress` runs on one of them at a time.
class search_watch {
 public:
  explicit search_watch(py::object const& progress) : progress_(progress) {}

  /// After a pass.
  bool operator()(omnibal::improve_packing_progress const& now) {
    return goes_on(now.passes, now.groups, now.lower_bound);
  }

  /// Before a packing, on any thread.
  void count_packing() {
    // Python checks signals on the thread of the caller only.
    if (!has_progress() && std::this_thread::get_id() != caller_) return;
    // The mutex is locked before the GIL, because `progress` may release the GIL while it runs.
    std::lock_guard const lock(mutex_);
    static_cast<void>(goes_on(packings_++));
  }

 private:
  [[nodiscard]] bool has_progress() const { return progress_.ptr() != Py_None; }

  /// Returns false if `progress` returned False for these arguments.
  template <class... Arguments>
  bool goes_on(Arguments const&... arguments) {
    using clock = std::chrono::steady_clock;
    if (!has_progress() && clock::now() - last_ < std::chrono::milliseconds(100)) return true;
    last_ = clock::now();
    py::gil_scoped_acquire const acquire;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!has_progress()) return true;
    py::object const answer = progress_(arguments...);
    return answer.ptr() != Py_False;
  }

  py::object const& progress_;
  std::thread::id const caller_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::size_t packings_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

results::packing improve_packing(py::object const& demands, py::object const& capacity,
                                 results::packing const& start, std::int64_t passes,
                                 std::int64_t even_passes, double spare_groups, std::uint64_t seed,
                                 py::object const& progress, std::int64_t threads) {
  demand_list const rows("improve_packing", "demands", demands);
  limit_list const limits("improve_packing", "capacity", capacity);
  omnibal::packing const given = results::to_packed(start);
  omnibal::improve_packing_options options;
  options.passes = count_of("improve_packing", "passes", passes);
  options.even_passes = count_of("improve_packing", "even_passes", even_passes);
  options.spare_groups = spare_groups;
  options.seed = seed;
  arrays::executor const run = convert::to_executor("improve_packing", threads);
  search_watch watch(progress);
  return results::to_packing(released([&] {
    return arrays::improve_packing(rows.table(), limits.values(), given, options, std::ref(watch),
                                   run);
  }));
}

std::size_t packing_bound(py::object const& demands, py::object const& capacity,
                          std::string const& effort, std::int64_t threads) {
  demand_list const rows("packing_bound", "demands", demands);
  limit_list const limits("packing_bound", "capacity", capacity);
  auto const level = to_effort("packing_bound", effort);
  arrays::executor const run = convert::to_executor("packing_bound", threads);
  return released([&] { return arrays::packing_bound(rows.table(), limits.values(), level, run); });
}

struct tuned_capacity {
  py::array capacity;
  std::size_t groups;
  std::size_t oversized;
  double mean_group_size;
  py::array fill;
  double objective;
};

tuned_capacity to_python(arrays::tuned_capacity&& given) {
  return {convert::to_array(std::move(given.capacity)),
          given.groups,
          given.oversized,
          given.mean_group_size,
          convert::to_array(std::move(given.fill)),
          given.objective};
}

struct tuned {
  std::string status;
  tuned_capacity best;
  std::vector<tuned_capacity> finalists;
  std::vector<std::string> warnings;
};

tuned tune_capacity(py::object const& demands, double target, double width,
                    py::object const& granularity, double max_oversized, std::uint64_t seed,
                    std::string const& packer, py::object const& progress, std::int64_t threads) {
  demand_list const rows("tune_capacity", "demands", demands);
  limit_list const multiples("tune_capacity", "granularity", granularity);
  using packers = arrays::tune_arguments::packers;
  if (packer != "isf" && packer != "best_fit_decreasing") {
    reject("tune_capacity", "packer is '" + packer + "', must be isf or best_fit_decreasing");
  }
  arrays::tune_arguments const arguments{
      .target = target,
      .width = width,
      .granularity = multiples.values(),
      .max_oversized = max_oversized,
      .seed = seed,
      .packer = packer == "isf" ? packers::isf : packers::best_fit_decreasing};
  arrays::executor const run = convert::to_executor("tune_capacity", threads);
  search_watch watch(progress);
  auto const count = [&] { watch.count_packing(); };
  auto found = released([&] { return arrays::tune_capacity(rows.table(), arguments, count, run); });
  tuned result{convert::to_text(found.status),
               to_python(std::move(found.best)),
               {},
               std::move(found.warnings)};
  for (auto& finalist : found.finalists) result.finalists.push_back(to_python(std::move(finalist)));
  return result;
}

py::object group_loads(groups const& of, py::object const& demands) {
  demand_list const rows("group_loads", "demands", demands);
  auto const given = results::to_grouping(of);
  auto loads = released([&] { return arrays::group_loads(given.view(), rows.table()); });
  auto const kinds = static_cast<py::ssize_t>(rows.kinds());
  py::array const flat = convert::to_array(std::move(loads));
  if (kinds == 1) return flat;
  return flat.attr("reshape")(-1, kinds);
}

omnibal::count_policy to_count(std::string const& count) {
  if (count == "any") return omnibal::count_policy::any;
  if (count == "equal") return omnibal::count_policy::equal;
  if (count == "at_most_one_apart") return omnibal::count_policy::at_most_one_apart;
  reject("lpt", "count is '" + count + "', must be any, equal or at_most_one_apart");
}

groups lpt(py::object const& costs, std::int64_t parts, std::string const& count,
           py::object const& speeds) {
  cost_array const list("lpt", "costs", costs);
  speed_array const given("lpt", speeds);
  auto const values = given.list();
  omnibal::lpt_options const options{.count = to_count(count), .speeds = values};
  auto const wanted = count_of("lpt", "parts", parts);
  return results::to_groups(released([&] { return arrays::lpt(list.list(), wanted, options); }));
}

groups karmarkar_karp(py::object const& costs, std::int64_t parts, py::object const& speeds) {
  cost_array const list("karmarkar_karp", "costs", costs);
  speed_array const given("karmarkar_karp", speeds);
  auto const values = given.list();
  auto const wanted = count_of("karmarkar_karp", "parts", parts);
  return results::to_groups(
      released([&] { return arrays::karmarkar_karp(list.list(), wanted, {.speeds = values}); }));
}

groups deal(py::object const& costs, std::int64_t parts, py::object const& speeds) {
  cost_array const list("deal", "costs", costs);
  speed_array const given("deal", speeds);
  auto const values = given.list();
  auto const wanted = count_of("deal", "parts", parts);
  return results::to_groups(
      released([&] { return arrays::deal(list.list(), wanted, {.speeds = values}); }));
}

groups refine_parts(py::object const& costs, groups const& parts, double max_overload,
                    std::string const& counts, std::int64_t exchanges, std::int64_t splits,
                    std::uint64_t seed, py::object const& speeds) {
  cost_array const list("refine_parts", "costs", costs);
  speed_array const all("refine_parts", speeds);
  auto const values = all.list();
  if (counts != "free" && counts != "kept") {
    reject("refine_parts", "counts is '" + counts + "', must be free or kept");
  }
  omnibal::refine_parts_options const options{
      .max_overload = max_overload,
      .counts = counts == "kept" ? omnibal::part_counts::kept : omnibal::part_counts::free,
      .exchanges = count_of("refine_parts", "exchanges", exchanges),
      .splits = count_of("refine_parts", "splits", splits),
      .seed = seed,
      .speeds = values};
  auto const given = results::to_grouping(parts);
  return results::to_groups(
      released([&] { return arrays::refine_parts(list.list(), given.view(), options); }));
}

struct within {
  std::string status;
  std::string reason;
  groups parts;
  py::object largest_load;
  py::object lower_bound;
  bool proven;
  std::size_t parts_needed;
  std::uint32_t sample;
};

char const* to_text(omnibal::within_reason reason) {
  switch (reason) {
    case omnibal::within_reason::sample_above_capacity: return "sample_above_capacity";
    case omnibal::within_reason::too_few_parts: return "too_few_parts";
    case omnibal::within_reason::all_tried: return "all_tried";
    default: return "none";
  }
}

omnibal::oversize_policy to_oversized(std::string const& function, std::string const& name) {
  bool const is_own = convert::word_of(function, "oversized", name, {"own_group", "reject"}) == 0;
  return is_own ? omnibal::oversize_policy::own_group : omnibal::oversize_policy::reject;
}

within balance_under_capacity(py::object const& costs, std::int64_t parts,
                              py::object const& demands, py::object const& capacity,
                              double max_overload, std::string const& effort, std::uint64_t seed,
                              py::object const& progress, py::object const& speeds,
                              std::string const& oversized) {
  cost_array const list("balance_under_capacity", "costs", costs);
  speed_array const given("balance_under_capacity", speeds);
  auto const values = given.list();
  demand_list const rows("balance_under_capacity", "demands", demands);
  convert::capacity_rows const limits("balance_under_capacity", "capacity", capacity, rows.kinds());
  auto const wanted = count_of("balance_under_capacity", "parts", parts);
  omnibal::balance_under_capacity_options options;
  options.max_overload = max_overload;
  options.effort = to_effort("balance_under_capacity", effort);
  options.seed = seed;
  options.oversized = to_oversized("balance_under_capacity", oversized);
  options.speeds = values;
  search_watch watch(progress);
  auto found = released([&] {
    return arrays::balance_under_capacity(list.list(), wanted, rows.table(), limits.list(), options,
                                          std::ref(watch));
  });
  return {convert::to_text(found.status),
          to_text(found.reason),
          results::to_groups(std::move(found.parts)),
          convert::to_python(found.largest_load),
          convert::to_python(found.lower_bound),
          found.proven,
          found.parts_needed,
          found.sample};
}

results::steps micro_batches(py::object const& costs, std::int64_t ranks, py::object const& demands,
                             py::object const& capacity, std::int64_t multiple_of,
                             double max_overload, std::string const& effort, std::uint64_t seed,
                             py::object const& progress, py::object const& speeds,
                             std::string const& oversized) {
  cost_array const list("micro_batches", "costs", costs);
  speed_array const given("micro_batches", speeds);
  auto const values = given.list();
  demand_list const rows("micro_batches", "demands", demands);
  convert::capacity_rows const limits("micro_batches", "capacity", capacity, rows.kinds());
  auto const wanted = count_of("micro_batches", "ranks", ranks);
  omnibal::micro_batches_options options;
  options.multiple_of = count_of("micro_batches", "multiple_of", multiple_of);
  options.max_overload = max_overload;
  options.effort = to_effort("micro_batches", effort);
  options.seed = seed;
  options.oversized = to_oversized("micro_batches", oversized);
  options.speeds = values;
  search_watch watch(progress);
  return results::to_steps(released([&] {
    return arrays::micro_batches(list.list(), wanted, rows.table(), limits.list(), options,
                                 std::ref(watch));
  }));
}

py::list optimizer_steps(py::object const& costs, std::int64_t steps, std::int64_t ranks,
                         py::object const& demands, py::object const& capacity,
                         std::int64_t multiple_of, double max_overload, std::string const& effort,
                         std::uint64_t seed, std::string const& oversized) {
  std::string const name = "optimizer_steps";
  cost_array const list(name, "costs", costs);
  demand_list const rows(name, "demands", demands);
  limit_list const limits(name, "capacity", capacity);
  auto const step_count = count_of(name, "steps", steps);
  auto const rank_count = count_of(name, "ranks", ranks);
  omnibal::optimizer_steps_options const options{
      .multiple_of = count_of(name, "multiple_of", multiple_of),
      .max_overload = max_overload,
      .effort = to_effort(name, effort),
      .seed = seed,
      .oversized = to_oversized(name, oversized)};
  auto found = released([&] {
    return arrays::optimizer_steps(list.list(), step_count, rank_count, rows.table(),
                                   limits.values(), options);
  });
  py::list result;
  for (auto& step : found) result.append(results::to_steps(std::move(step)));
  return result;
}

omnibal::remainder_policy to_remainder(std::string const& name) {
  if (name == "short_step") return omnibal::remainder_policy::short_step;
  if (name == "repeat") return omnibal::remainder_policy::repeat;
  if (name == "carry") return omnibal::remainder_policy::carry;
  reject("schedule_steps", "remainder is '" + name + "', must be short_step, repeat or carry");
}

results::steps schedule_steps(py::object const& loads, std::int64_t ranks, std::uint64_t seed,
                              std::uint64_t epoch, double max_dist_ratio,
                              std::string const& remainder, std::int64_t groups_per_rank,
                              bool even_positions, py::object const& carried,
                              py::object const& speeds) {
  demand_list const rows("schedule_steps", "loads", loads);
  auto const wanted = count_of("schedule_steps", "ranks", ranks);
  if (groups_per_rank < 0 || groups_per_rank > UINT32_MAX) {
    reject("schedule_steps", "groups_per_rank is " + std::to_string(groups_per_rank) +
                                 ", must be in [1, " + std::to_string(UINT32_MAX) + "]");
  }
  omnibal::schedule_steps_options options;
  options.seed = seed;
  options.epoch = epoch;
  options.max_dist_ratio = max_dist_ratio;
  options.remainder = to_remainder(remainder);
  options.groups_per_rank = static_cast<std::uint32_t>(groups_per_rank);
  options.even_positions = even_positions;
  options.carried = to_indices("schedule_steps", "carried", carried);
  speed_array const given("schedule_steps", speeds);
  auto const values = given.list();
  options.speeds.assign(values.begin(), values.end());
  return results::to_steps(
      released([&] { return arrays::schedule_steps(rows.table(), wanted, options); }));
}

double pad_ratio(groups const& of, py::object const& lengths) {
  integer_list const list("pad_ratio", "lengths", lengths);
  auto const given = results::to_grouping(of);
  return released([&] { return arrays::pad_ratio(given.view(), list.values()); });
}

/// One ratio as a number, several as an array.
py::object to_ratios(std::vector<double>&& ratios) {
  if (ratios.size() == 1) return py::cast(ratios.front());
  return convert::to_array(std::move(ratios));
}

py::object dist_ratio(py::object const& loads, std::optional<results::steps> const& schedule) {
  demand_list const rows("dist_ratio", "loads", loads);
  if (!schedule) return to_ratios(released([&] { return arrays::dist_ratio(rows.table()); }));
  auto const given = results::to_schedule(*schedule);
  return to_ratios(released([&] { return arrays::dist_ratio(given, rows.table()); }));
}

py::object imbalance(py::object const& loads) {
  demand_list const rows("imbalance", "loads", loads);
  return to_ratios(released([&] { return arrays::imbalance(rows.table()); }));
}

py::object utilization(py::object const& loads, py::object const& capacity) {
  demand_list const rows("utilization", "loads", loads);
  limit_list const limits("utilization", "capacity", capacity);
  return to_ratios(released([&] { return arrays::utilization(rows.table(), limits.values()); }));
}

struct stages {
  std::string status;
  py::array boundaries;
  py::object bottleneck;
  py::object objective;
  py::object lower_bound;
  bool proven;
  std::uint32_t stage;
  std::int64_t missing_bytes;
};

stages to_python(arrays::stage_partition&& found) {
  return {convert::to_text(found.status),
          convert::to_array(std::move(found.boundaries)),
          convert::to_python(found.bottleneck),
          convert::to_python(found.objective),
          convert::to_python(found.lower_bound),
          found.proven,
          found.stage,
          found.missing_bytes};
}

omnibal::empty_stages to_empty(bool allow_empty) {
  return allow_empty ? omnibal::empty_stages::allowed : omnibal::empty_stages::forbidden;
}

stages partition_minimax(py::object const& costs, std::int64_t count, bool allow_empty) {
  cost_array const list("partition_minimax", "costs", costs);
  auto const wanted = count_of("partition_minimax", "stages", count);
  return to_python(released(
      [&] { return arrays::partition_minimax(list.list(), wanted, to_empty(allow_empty)); }));
}

stages partition(std::string const& function, std::int64_t micro_batches, py::object const& costs,
                 std::int64_t count, py::object const& cut_costs, py::object const& bytes,
                 py::object const& capacity, py::object const& min_layers,
                 py::object const& max_layers, py::object const& forbidden_cuts, bool allow_empty) {
  cost_array const list(function, "costs", costs);
  auto const cuts = cut_costs.is_none() ? cost_array(function, "cut_costs", py::list())
                                        : cost_array(function, "cut_costs", cut_costs);
  auto const taken = optional_list(function, "bytes", bytes);
  limit_list const limits(function, "capacity", capacity);
  limit_list const least(function, "min_layers", min_layers);
  limit_list const most(function, "max_layers", max_layers);
  arrays::partition_arguments const arguments{
      .stages = count_of(function, "stages", count),
      .cut_costs = cuts.list(),
      .bytes = taken.values(),
      .capacity = limits.values(),
      .min_layers = least.values(),
      .max_layers = most.values(),
      .forbidden_cuts = to_indices(function, "forbidden_cuts", forbidden_cuts),
      .empty = to_empty(allow_empty),
      .micro_batches = static_cast<std::size_t>(micro_batches)};
  return to_python(released([&] { return arrays::partition_layers(list.list(), arguments); }));
}

stages partition_layers(py::object const& costs, std::int64_t count, py::object const& cut_costs,
                        py::object const& bytes, py::object const& capacity,
                        py::object const& min_layers, py::object const& max_layers,
                        py::object const& forbidden_cuts, bool allow_empty) {
  return partition("partition_layers", 0, costs, count, cut_costs, bytes, capacity, min_layers,
                   max_layers, forbidden_cuts, allow_empty);
}

stages partition_throughput(py::object const& costs, std::int64_t count, std::int64_t micro_batches,
                            py::object const& cut_costs, py::object const& bytes,
                            py::object const& capacity, py::object const& min_layers,
                            py::object const& max_layers, py::object const& forbidden_cuts,
                            bool allow_empty) {
  if (micro_batches < 1) {
    reject("partition_throughput",
           "micro_batches is " + std::to_string(micro_batches) + ", must be positive");
  }
  return partition("partition_throughput", micro_batches, costs, count, cut_costs, bytes, capacity,
                   min_layers, max_layers, forbidden_cuts, allow_empty);
}

struct recompute {
  std::string status;
  py::array choices;
  py::object time;
  py::object lower_bound;
  bool proven;
  std::int64_t bytes;
  std::int64_t missing_bytes;
};

/// Row l of an array of two dimensions has the choices of layer l; else `offsets` says where.
recompute select_recompute(py::object const& times, py::object const& bytes, std::int64_t budget,
                           py::object const& offsets, py::object const& transient_bytes,
                           std::int64_t in_flight, std::int64_t reserve_bytes,
                           std::string const& effort) {
  std::string const name = "select_recompute";
  auto const rows = [&](std::string const& what, py::object const& given) {
    return convert::any_array(
        name, what, given,
        " is no array of numbers: where layers differ in their number of choices, times and bytes "
        "are lists of all choices, and offsets says where each layer begins");
  };
  py::array time_array = rows("times", times);
  py::array byte_array = rows("bytes", bytes);
  std::vector<std::uint32_t> places;
  if (offsets.is_none()) {
    if (time_array.ndim() != 2 || byte_array.ndim() != 2 ||
        time_array.shape(0) != byte_array.shape(0) || time_array.shape(1) != byte_array.shape(1)) {
      reject(name,
             "times and bytes must have a row for each layer and a column for each choice, "
             "or lists of all choices and offsets must be given");
    }
    for (py::ssize_t layer = 0; layer <= time_array.shape(0); ++layer) {
      places.push_back(static_cast<std::uint32_t>(layer * time_array.shape(1)));
    }
    time_array = time_array.attr("ravel")();
    byte_array = byte_array.attr("ravel")();
  } else {
    places = to_indices(name, "offsets", offsets);
  }
  cost_array const time_list(name, "times", time_array);
  integer_list const byte_list(name, "bytes", byte_array);
  py::object transient = transient_bytes;
  if (!transient.is_none()) {
    transient = convert::any_array(name, "transient_bytes", transient).attr("ravel")();
  }
  integer_list const transient_list = optional_list(name, "transient_bytes", transient);
  omnibal::select_recompute_options options;
  options.in_flight = in_flight;
  options.reserve_bytes = reserve_bytes;
  options.effort = to_effort(name, effort);
  auto found = released([&] {
    return arrays::select_recompute(time_list.list(), byte_list.values(), transient_list.values(),
                                    places, budget, options);
  });
  return {convert::to_text(found.status),
          convert::to_array(std::move(found.choices)),
          convert::to_python(found.time),
          convert::to_python(found.lower_bound),
          found.proven,
          found.bytes,
          found.missing_bytes};
}

}  // namespace

}  // namespace algorithms

namespace pybind11::detail {
template <>
struct type_caster<algorithms::tuned_capacity> : convert::value_caster<algorithms::tuned_capacity> {
};
template <>
struct type_caster<algorithms::tuned> : convert::value_caster<algorithms::tuned> {};
template <>
struct type_caster<algorithms::within> : convert::value_caster<algorithms::within> {};
template <>
struct type_caster<algorithms::stages> : convert::value_caster<algorithms::stages> {};
template <>
struct type_caster<algorithms::recompute> : convert::value_caster<algorithms::recompute> {};
}  // namespace pybind11::detail

namespace algorithms {

namespace {

/// A capacity and its packing in a text.
std::vector<std::string> facts_of(tuned_capacity const& self) {
  py::list fill;
  for (py::handle const share : self.fill) fill.append(convert::number_text(share));
  return {"capacity " + std::string(py::str(self.capacity.attr("tolist")())),
          convert::count_text(self.groups, "group") + " of " +
              convert::number_text(py::float_(self.mean_group_size)) + " samples",
          "fill " + std::string(py::str(", ").attr("join")(fill).cast<std::string>()),
          convert::count_text(self.oversized, "oversized sample")};
}

std::string to_repr(tuned_capacity const& self) {
  return convert::repr_text("TunedCapacity", facts_of(self));
}

std::string to_repr(tuned const& self) {
  std::vector<std::string> facts{self.status};
  if (self.status == "solved") {
    for (std::string& fact : facts_of(self.best)) facts.push_back(std::move(fact));
  }
  if (!self.warnings.empty()) facts.push_back(convert::count_text(self.warnings.size(), "warning"));
  return convert::repr_text("Tuned", facts);
}

std::string to_repr(within const& self) {
  std::string fact;
  if (self.status == "solved") {
    fact = convert::count_text(self.parts.size(), "part") + ", " +
           convert::bounded_text("largest load", self.largest_load, self.lower_bound, self.proven);
  } else if (self.reason == "sample_above_capacity") {
    fact = "sample " + std::to_string(self.sample) + " exceeds the capacity";
  } else {
    fact = "at least " + convert::count_text(self.parts_needed, "part") + " needed";
  }
  return convert::repr_text("Within", {self.status, fact});
}

std::string to_repr(stages const& self) {
  std::string fact;
  if (self.status == "solved") {
    auto const count = static_cast<std::size_t>(self.boundaries.size()) - 1;
    fact = convert::count_text(count, "stage") + ", " +
           convert::bounded_text("objective", self.objective, self.lower_bound, self.proven);
  } else if (self.missing_bytes != 0) {
    fact = std::to_string(self.missing_bytes) + " bytes missing in stage " +
           std::to_string(self.stage);
  }
  return convert::repr_text("Partition", {self.status, fact});
}

std::string to_repr(recompute const& self) {
  if (self.status != "solved") {
    return convert::repr_text("Recompute",
                              {self.status, std::to_string(self.missing_bytes) + " bytes missing"});
  }
  return convert::repr_text(
      "Recompute",
      {self.status, convert::count_text(static_cast<std::size_t>(self.choices.size()), "layer"),
       convert::bounded_text("time", self.time, self.lower_bound, self.proven),
       std::to_string(self.bytes) + " bytes"});
}

void define_results(py::module_& module) {
  py::class_<tuned_capacity> tuned_capacity_type(module, "TunedCapacity",
                                                 docstrings::TunedCapacity);
  tuned_capacity_type
      .def_readonly("capacity", &tuned_capacity::capacity, "A number for each resource, int64.")
      .def_readonly("groups", &tuned_capacity::groups, "The number of groups.")
      .def_readonly("oversized", &tuned_capacity::oversized,
                    "Samples that exceed the capacity alone.")
      .def_readonly("mean_group_size", &tuned_capacity::mean_group_size,
                    "Samples in groups over groups.")
      .def_readonly("fill", &tuned_capacity::fill, "The share of each resource that is used.")
      .def_readonly("objective", &tuned_capacity::objective,
                    "What is waited for, the less the better; infinite where there is no group.");
  tuned_capacity_type.def("__repr__", [](tuned_capacity const& self) { return to_repr(self); });
  convert::add_pickle_of(tuned_capacity_type, &tuned_capacity::capacity, &tuned_capacity::groups,
                         &tuned_capacity::oversized, &tuned_capacity::mean_group_size,
                         &tuned_capacity::fill, &tuned_capacity::objective);
  py::class_<tuned> tuned_type(module, "Tuned", docstrings::Tuned);
  tuned_type
      .def_readonly("status", &tuned::status,
                    "'solved', 'not_found' where no capacity has the wanted mean, or 'infeasible'.")
      .def_readonly("best", &tuned::best, "The best of the finalists.")
      .def_readonly("finalists", &tuned::finalists,
                    "What was tried on all samples, the best first.")
      .def_readonly("warnings", &tuned::warnings,
                    "What is hopeless about the best capacity, as texts.");
  tuned_type.def("__repr__", [](tuned const& self) { return to_repr(self); });
  convert::add_pickle_of(tuned_type, &tuned::status, &tuned::best, &tuned::finalists,
                         &tuned::warnings);
  py::class_<within> within_type(module, "Within", docstrings::Within);
  within_type.def_readonly("status", &within::status, "'solved', 'not_found' or 'infeasible'.")
      .def_readonly("reason", &within::reason, "Why there are no parts.")
      .def_readonly("parts", &within::parts, "The samples of each part; empty unless solved.")
      .def_readonly("largest_load", &within::largest_load, "The largest cost of a part.")
      .def_readonly("lower_bound", &within::lower_bound,
                    "No such parts have a smaller largest cost.")
      .def_readonly("proven", &within::proven,
                    "True where no other parts have a smaller largest cost.")
      .def_readonly("parts_needed", &within::parts_needed,
                    "No parts within the capacity are fewer than this.")
      .def_readonly("sample", &within::sample,
                    "The sample that exceeds the capacity, the first of them.");
  within_type.def("__repr__", [](within const& self) { return to_repr(self); });
  convert::add_pickle_of(within_type, &within::status, &within::reason, &within::parts,
                         &within::largest_load, &within::lower_bound, &within::proven,
                         &within::parts_needed, &within::sample);
  py::class_<stages> stages_type(module, "Partition", docstrings::Partition);
  stages_type.def_readonly("status", &stages::status, "'solved', 'not_found' or 'infeasible'.")
      .def_readonly("boundaries", &stages::boundaries,
                    "One more than there are stages, uint32; none where there are no stages.")
      .def_readonly("bottleneck", &stages::bottleneck, "The largest cost of a stage.")
      .def_readonly("objective", &stages::objective,
                    "What was minimized: the bottleneck, or the time of a step.")
      .def_readonly("lower_bound", &stages::lower_bound, "No stages have a smaller objective.")
      .def_readonly("proven", &stages::proven,
                    "True where the objective, or what is missing, is the smallest possible.")
      .def_readonly("stage", &stages::stage, "Where infeasible, the stage that lacks most.")
      .def_readonly("missing_bytes", &stages::missing_bytes,
                    "Where infeasible, what every capacity must have more.");
  stages_type.def("__repr__", [](stages const& self) { return to_repr(self); });
  convert::add_pickle_of(stages_type, &stages::status, &stages::boundaries, &stages::bottleneck,
                         &stages::objective, &stages::lower_bound, &stages::proven, &stages::stage,
                         &stages::missing_bytes);
  py::class_<recompute> recompute_type(module, "Recompute", docstrings::Recompute);
  recompute_type.def_readonly("status", &recompute::status, "'solved' or 'infeasible'.")
      .def_readonly("choices", &recompute::choices,
                    "The number of the choice of each layer, uint32.")
      .def_readonly("time", &recompute::time, "The sum of the times of these choices.")
      .def_readonly("lower_bound", &recompute::lower_bound,
                    "No choices within the budget take less time.")
      .def_readonly("proven", &recompute::proven, "True where the time is the least possible.")
      .def_readonly(
          "bytes", &recompute::bytes,
          "What the choices take of the budget; where infeasible, the least that any take.")
      .def_readonly("missing_bytes", &recompute::missing_bytes,
                    "By how much that exceeds the budget.");
  recompute_type.def("__repr__", [](recompute const& self) { return to_repr(self); });
  convert::add_pickle_of(recompute_type, &recompute::status, &recompute::choices, &recompute::time,
                         &recompute::lower_bound, &recompute::proven, &recompute::bytes,
                         &recompute::missing_bytes);
}

void define_packing(py::module_& module) {
  omnibal::improve_packing_options const defaults;
  module.def("next_fit", &next_fit, docstrings::next_fit, py::arg("demands"), py::arg("capacity"));
  module.def("isf", &isf, docstrings::isf, py::arg("demands"), py::arg("capacity"), py::kw_only(),
             py::arg("rounds") = 50, py::arg("min_gain") = 0.0, py::arg("threshold") = py::none(),
             py::arg("seed") = 0, py::arg("shuffle") = "fisher_yates");
  module.def("best_fit_decreasing", &best_fit_decreasing, docstrings::best_fit_decreasing,
             py::arg("demands"), py::arg("capacity"));
  module.def("pack_padded", &pack_padded, docstrings::pack_padded, py::arg("demands"),
             py::arg("capacity"));
  module.def("best_packing", &best_packing, docstrings::best_packing, py::arg("demands"),
             py::arg("capacity"), py::kw_only(), py::arg("effort") = "normal");
  module.def("improve_packing", &improve_packing, docstrings::improve_packing, py::arg("demands"),
             py::arg("capacity"), py::arg("start"), py::kw_only(),
             py::arg("passes") = defaults.passes, py::arg("even_passes") = defaults.even_passes,
             py::arg("spare_groups") = defaults.spare_groups, py::arg("seed") = defaults.seed,
             py::arg("progress") = py::none(), py::arg("threads") = 1);
  module.def("packing_bound", &packing_bound, docstrings::packing_bound, py::arg("demands"),
             py::arg("capacity"), py::kw_only(), py::arg("effort") = "normal",
             py::arg("threads") = 1);
  module.def("tune_capacity", &tune_capacity, docstrings::tune_capacity, py::arg("demands"),
             py::arg("target"), py::kw_only(), py::arg("width") = 1.0,
             py::arg("granularity") = py::none(), py::arg("max_oversized") = 0.01,
             py::arg("seed") = 0, py::arg("packer") = "best_fit_decreasing",
             py::arg("progress") = py::none(), py::arg("threads") = 1);
  module.def("group_loads", &group_loads, docstrings::group_loads, py::arg("groups"),
             py::arg("demands"));
}

void define_balancing(py::module_& module) {
  module.def("lpt", &lpt, docstrings::lpt, py::arg("costs"), py::arg("parts"), py::kw_only(),
             py::arg("count") = "any", py::arg("speeds") = py::none());
  module.def("karmarkar_karp", &karmarkar_karp, docstrings::karmarkar_karp, py::arg("costs"),
             py::arg("parts"), py::kw_only(), py::arg("speeds") = py::none());
  module.def("deal", &deal, docstrings::deal, py::arg("costs"), py::arg("parts"), py::kw_only(),
             py::arg("speeds") = py::none());
  module.def("refine_parts", &refine_parts, docstrings::refine_parts, py::arg("costs"),
             py::arg("parts"), py::kw_only(), py::arg("max_overload") = 0.0,
             py::arg("counts") = "free", py::arg("exchanges") = 1'000'000, py::arg("splits") = 2048,
             py::arg("seed") = 0, py::arg("speeds") = py::none());
  module.def("balance_under_capacity", &balance_under_capacity, docstrings::balance_under_capacity,
             py::arg("costs"), py::arg("parts"), py::arg("demands"), py::arg("capacity"),
             py::kw_only(), py::arg("max_overload") = 0.01, py::arg("effort") = "normal",
             py::arg("seed") = 0, py::arg("progress") = py::none(), py::arg("speeds") = py::none(),
             py::arg("oversized") = "reject");
  module.def("micro_batches", &micro_batches, docstrings::micro_batches, py::arg("costs"),
             py::arg("ranks"), py::arg("demands"), py::arg("capacity"), py::kw_only(),
             py::arg("multiple_of") = 1, py::arg("max_overload") = 0.01,
             py::arg("effort") = "normal", py::arg("seed") = 0, py::arg("progress") = py::none(),
             py::arg("speeds") = py::none(), py::arg("oversized") = "reject");
  module.def("optimizer_steps", &optimizer_steps, docstrings::optimizer_steps, py::arg("costs"),
             py::arg("steps"), py::arg("ranks"), py::arg("demands"), py::arg("capacity"),
             py::kw_only(), py::arg("multiple_of") = 1, py::arg("max_overload") = 0.01,
             py::arg("effort") = "normal", py::arg("seed") = 0, py::arg("oversized") = "reject");
  module.def("schedule_steps", &schedule_steps, docstrings::schedule_steps, py::arg("loads"),
             py::arg("ranks"), py::kw_only(), py::arg("seed") = 0, py::arg("epoch") = 0,
             py::arg("max_dist_ratio") = 0.005, py::arg("remainder") = "short_step",
             py::arg("groups_per_rank") = 1, py::arg("even_positions") = false,
             py::arg("carried") = py::none(), py::arg("speeds") = py::none());
  module.def("pad_ratio", &pad_ratio, docstrings::pad_ratio, py::arg("groups"), py::arg("lengths"));
  module.def("dist_ratio", &dist_ratio, docstrings::dist_ratio, py::arg("loads"),
             py::arg("schedule") = py::none());
  module.def("imbalance", &imbalance, docstrings::imbalance, py::arg("loads"));
  module.def("utilization", &utilization, docstrings::utilization, py::arg("loads"),
             py::arg("capacity"));
}

void define_planning(py::module_& module) {
  module.def("partition_minimax", &partition_minimax, docstrings::partition_minimax,
             py::arg("costs"), py::arg("stages"), py::kw_only(), py::arg("allow_empty") = false);
  module.def("partition_layers", &partition_layers, docstrings::partition_layers, py::arg("costs"),
             py::arg("stages"), py::kw_only(), py::arg("cut_costs") = py::none(),
             py::arg("bytes") = py::none(), py::arg("capacity") = py::none(),
             py::arg("min_layers") = py::none(), py::arg("max_layers") = py::none(),
             py::arg("forbidden_cuts") = py::none(), py::arg("allow_empty") = false);
  module.def("partition_throughput", &partition_throughput, docstrings::partition_throughput,
             py::arg("costs"), py::arg("stages"), py::arg("micro_batches"), py::kw_only(),
             py::arg("cut_costs") = py::none(), py::arg("bytes") = py::none(),
             py::arg("capacity") = py::none(), py::arg("min_layers") = py::none(),
             py::arg("max_layers") = py::none(), py::arg("forbidden_cuts") = py::none(),
             py::arg("allow_empty") = false);
  module.def("select_recompute", &select_recompute, docstrings::select_recompute, py::arg("times"),
             py::arg("bytes"), py::arg("budget"), py::kw_only(), py::arg("offsets") = py::none(),
             py::arg("transient_bytes") = py::none(), py::arg("in_flight") = 1,
             py::arg("reserve_bytes") = 0, py::arg("effort") = "normal");
}

}  // namespace

void define(py::module_& module) {
  define_results(module);
  define_packing(module);
  define_balancing(module);
  define_planning(module);
}

}  // namespace algorithms
