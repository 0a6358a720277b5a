// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"
#include "rows.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/optimizer_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/pack_padded.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// All that fills groups under a capacity, also where it balances: they share most templates.

namespace arrays {

namespace {

/// Packs a table with `packer(samples, demand, capacity)`.
template <class Packer>
omnibal::packing pack(std::string_view function, demand_table const& demands, integers capacity,
                      Packer const& packer) {
  return with_rows(function, demands, [&](auto samples, auto const& demand, auto kinds) {
    return packer(samples, demand, limits_of<kinds()>(function, "capacity", capacity));
  });
}

template <std::size_t R>
tuned_capacity to_arrays(omnibal::tuned_capacity<R> const& given) {
  tuned_capacity result{.capacity = {},
                        .groups = given.groups,
                        .oversized = given.oversized,
                        .mean_group_size = given.mean_group_size,
                        .fill = {},
                        .objective = given.objective};
  for (std::size_t r = 0; r != R; ++r) {
    result.capacity.push_back(given.capacity[r]);
    result.fill.push_back(given.fill[r]);
  }
  return result;
}

std::string text_of(omnibal::capacity_warning<> const& warning) {
  return "resource " + std::to_string(warning.kind) + ": " + std::to_string(warning.samples) +
         " samples take " + std::to_string(warning.commonest) + " each, of which no two fit " +
         std::to_string(warning.capacity) + "; " + std::to_string(warning.enough) +
         " would hold two";
}

/// Samples whose cost and demand are known by their index.
std::vector<std::uint32_t> indices(std::string_view function, cost_list const& costs,
                                   demand_table const& demands) {
  std::size_t const count = rows_in(demands);
  check_count(function, "there are " + std::to_string(size_of(costs)) + " costs", size_of(costs),
              count);
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), std::uint32_t{0});
  return result;
}

/// Calls `body(cost, demand, kinds)` with functors of an index and the number of kinds as a type.
template <class Body>
auto with_costs(std::string_view function, cost_list const& costs, demand_table const& demands,
                Body const& body) {
  return with_rows(function, demands, [&](auto samples, auto const& demand, auto kinds) {
    auto const demand_at = [&](std::uint32_t i) { return demand(samples[i]); };
    return std::visit(
        [&](auto const& list) {
          return body([&list](std::uint32_t i) { return list[i]; }, demand_at, kinds);
        },
        costs);
  });
}

/// Calls `body(cost, demand, limits)` with functors of an index and a capacity, or a list of the
/// capacities of the parts.
template <class Body>
auto with_capped(std::string_view function, cost_list const& costs, demand_table const& demands,
                 capacity_list const& capacity, Body const& body) {
  return with_costs(
      function, costs, demands, [&](auto const& cost, auto const& demand, auto kinds) {
        constexpr std::size_t R = kinds();
        if (capacity.rows == 0) {
          return body(cost, demand, limits_of<R>(function, "capacity", capacity.values));
        }
        std::vector<omnibal::resources<R>> limits(capacity.rows);
        std::size_t const columns = capacity.values.size() / capacity.rows;
        for (std::size_t row = 0; row != capacity.rows; ++row) {
          limits[row] = limits_of<R>(function, "capacity[" + std::to_string(row) + "]",
                                     capacity.values.subspan(row * columns, columns));
        }
        return body(cost, demand, limits);
      });
}

}  // namespace

omnibal::packing next_fit(demand_table const& demands, integers capacity) {
  return pack("next_fit", demands, capacity, omnibal::next_fit);
}

omnibal::packing isf(demand_table const& demands, integers capacity,
                     isf_arguments const& arguments) {
  auto const packer = [&]<class Limits>(auto samples, auto const& demand, Limits const& limits) {
    omnibal::isf_options const options{.rounds = arguments.rounds, .min_gain = arguments.min_gain};
    auto keep = omnibal::reaches_most(limits);
    if (!arguments.threshold.empty()) {
      keep.threshold = limits_of<Limits::size()>("isf", "threshold", arguments.threshold);
    }
    if (arguments.shuffle == isf_arguments::order::numpy) {
      return omnibal::isf(samples, demand, limits, options, keep,
                          omnibal::rng::numpy_shuffle{arguments.seed});
    }
    return omnibal::isf(samples, demand, limits, options, keep,
                        omnibal::rng::fisher_yates{arguments.seed});
  };
  return pack("isf", demands, capacity, packer);
}

omnibal::packing best_fit_decreasing(demand_table const& demands, integers capacity) {
  return pack("best_fit_decreasing", demands, capacity, omnibal::best_fit_decreasing);
}

omnibal::packing pack_padded(demand_table const& demands, integers capacity) {
  return pack("pack_padded", demands, capacity, omnibal::pack_padded);
}

omnibal::packing best_packing(demand_table const& demands, integers capacity,
                              omnibal::effort effort) {
  return pack("best_packing", demands, capacity,
              [&](auto samples, auto const& demand, auto const& limits) {
                return omnibal::best_packing(samples, demand, limits, {.effort = effort});
              });
}

omnibal::packing improve_packing(demand_table const& demands, integers capacity,
                                 omnibal::packing const& start,
                                 omnibal::improve_packing_options const& options,
                                 pass_watch const& go_on, executor const& run) {
  return pack("improve_packing", demands, capacity,
              [&](auto samples, auto const& demand, auto const& limits) {
                return with_executor(run, [&](auto const& threads) {
                  return omnibal::improve_packing(samples, demand, limits, start, options,
                                                  std::cref(go_on), threads);
                });
              });
}

std::size_t packing_bound(demand_table const& demands, integers capacity, omnibal::effort effort,
                          executor const& run) {
  return with_rows("packing_bound", demands, [&](auto samples, auto const& demand, auto kinds) {
    auto const limits = limits_of<kinds()>("packing_bound", "capacity", capacity);
    return with_executor(run, [&](auto const& threads) {
      return omnibal::packing_bound(samples, demand, limits, {.effort = effort}, threads);
    });
  });
}

tuned tune_capacity(demand_table const& demands, tune_arguments const& arguments,
                    std::function<void()> const& watch, executor const& run) {
  return with_rows("tune_capacity", demands, [&](auto samples, auto const& demand, auto kinds) {
    constexpr std::size_t R = kinds();
    omnibal::tune_capacity_options<R> options{
        .width = arguments.width, .max_oversized = arguments.max_oversized, .seed = arguments.seed};
    if (!arguments.granularity.empty()) {
      options.granularity = limits_of<R>("tune_capacity", "granularity", arguments.granularity);
    }
    auto const packer = [&](auto const& of, auto const& measure, auto const& limits) {
      watch();
      if (arguments.packer == tune_arguments::packers::isf) {
        return omnibal::isf(of, measure, limits, {}, omnibal::reaches_most(limits),
                            omnibal::rng::fisher_yates{arguments.seed});
      }
      return omnibal::best_fit_decreasing(of, measure, limits);
    };
    auto const found = with_executor(run, [&](auto const& threads) {
      return omnibal::tune_capacity(samples, demand, arguments.target, packer, options, threads);
    });
    tuned result{
        .status = found.status, .best = to_arrays(found.best), .finalists = {}, .warnings = {}};
    for (auto const& finalist : found.finalists) result.finalists.push_back(to_arrays(finalist));
    for (auto const& warning : found.warnings) result.warnings.push_back(text_of(warning));
    return result;
  });
}

std::vector<std::int64_t> group_loads(omnibal::grouping_view groups, demand_table const& demands) {
  return with_rows("group_loads", demands, [&](auto samples, auto const& demand, auto kinds) {
    auto const loads = omnibal::group_loads(groups, samples, demand);
    std::vector<std::int64_t> result;
    result.reserve(loads.size() * kinds());
    for (auto const& load : loads) {
      for (std::int64_t const amount : load.amounts) result.push_back(amount);
    }
    return result;
  });
}

within_result balance_under_capacity(cost_list const& costs, std::size_t parts,
                                     demand_table const& demands, capacity_list const& capacity,
                                     omnibal::balance_under_capacity_options const& options,
                                     pass_watch const& go_on) {
  auto const samples = indices("balance_under_capacity", costs, demands);
  return with_capped("balance_under_capacity", costs, demands, capacity,
                     [&](auto const& cost, auto const& demand, auto const& limits) {
                       auto found = omnibal::balance_under_capacity(
                           samples, parts, cost, demand, limits, options, std::cref(go_on));
                       return within_result{.status = found.status,
                                            .reason = found.reason,
                                            .parts = std::move(found.parts),
                                            .largest_load = found.largest_load,
                                            .lower_bound = found.lower_bound,
                                            .proven = found.proven,
                                            .parts_needed = found.parts_needed,
                                            .sample = found.sample};
                     });
}

omnibal::micro_batch_steps micro_batches(cost_list const& costs, std::size_t ranks,
                                         demand_table const& demands, capacity_list const& capacity,
                                         omnibal::micro_batches_options const& options,
                                         pass_watch const& go_on) {
  auto const samples = indices("micro_batches", costs, demands);
  return with_capped("micro_batches", costs, demands, capacity,
                     [&](auto const& cost, auto const& demand, auto const& limits) {
                       return omnibal::micro_batches(samples, ranks, cost, demand, limits, options,
                                                     std::cref(go_on));
                     });
}

std::vector<omnibal::micro_batch_steps> optimizer_steps(
    cost_list const& costs, std::size_t steps, std::size_t ranks, demand_table const& demands,
    integers capacity, omnibal::optimizer_steps_options const& options) {
  auto const samples = indices("optimizer_steps", costs, demands);
  return with_costs(
      "optimizer_steps", costs, demands, [&](auto const& cost, auto const& demand, auto kinds) {
        auto const limits = limits_of<kinds()>("optimizer_steps", "capacity", capacity);
        return omnibal::optimizer_steps(samples, steps, ranks, cost, demand, limits, options);
      });
}

}  // namespace arrays
