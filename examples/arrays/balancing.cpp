// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"
#include "rows.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/metrics.hpp>

#include <functional>
#include <variant>
#include <vector>

namespace arrays {

namespace {

/// Calls `body(list)` with costs as resources or as weights.
template <class Body>
auto with_loads(std::string_view function, demand_table const& loads, Body const& body) {
  return with_rows(function, loads, [&](auto samples, auto const& demand, auto kinds) {
    if constexpr (kinds() == 1) {
      return body(samples);
    } else {
      std::vector<omnibal::resources<kinds()>> list;
      list.reserve(samples.size());
      for (auto const& sample : samples) list.push_back(demand(sample));
      return body(list);
    }
  });
}

std::vector<double> ratios(double ratio) { return {ratio}; }

template <std::size_t R>
std::vector<double> ratios(omnibal::resources<R, double> const& of) {
  return {of.amounts, of.amounts + R};
}

}  // namespace

omnibal::grouping lpt(cost_list const& costs, std::size_t parts,
                      omnibal::lpt_options const& options) {
  return std::visit([&](auto list) { return omnibal::lpt(list, parts, std::identity{}, options); },
                    costs);
}

omnibal::grouping karmarkar_karp(cost_list const& costs, std::size_t parts,
                                 omnibal::karmarkar_karp_options const& options) {
  return std::visit(
      [&](auto list) { return omnibal::karmarkar_karp(list, parts, std::identity{}, options); },
      costs);
}

omnibal::grouping deal(cost_list const& costs, std::size_t parts,
                       omnibal::deal_options const& options) {
  return std::visit([&](auto list) { return omnibal::deal(list, parts, std::identity{}, options); },
                    costs);
}

omnibal::grouping refine_parts(cost_list const& costs, omnibal::grouping_view parts,
                               omnibal::refine_parts_options const& options) {
  return std::visit(
      [&](auto list) { return omnibal::refine_parts(list, parts, std::identity{}, options); },
      costs);
}

omnibal::steps schedule_steps(demand_table const& loads, std::size_t ranks,
                              omnibal::schedule_steps_options const& options) {
  return with_loads("schedule_steps", loads, [&](auto const& list) {
    return omnibal::schedule_steps(list, ranks, options);
  });
}

double pad_ratio(omnibal::grouping_view groups, integers lengths) {
  return omnibal::pad_ratio(groups, lengths);
}

std::vector<double> dist_ratio(demand_table const& totals) {
  return with_loads("dist_ratio", totals,
                    [](auto const& list) { return ratios(omnibal::dist_ratio(list)); });
}

std::vector<double> dist_ratio(omnibal::steps const& schedule, demand_table const& loads) {
  return with_loads("dist_ratio", loads,
                    [&](auto const& list) { return ratios(omnibal::dist_ratio(schedule, list)); });
}

std::vector<double> imbalance(demand_table const& loads) {
  return with_loads("imbalance", loads,
                    [](auto const& list) { return ratios(omnibal::imbalance(list)); });
}

std::vector<double> utilization(demand_table const& loads, integers capacity) {
  return with_rows("utilization", loads, [&](auto samples, auto const& demand, auto kinds) {
    auto const limits = limits_of<kinds()>("utilization", "capacity", capacity);
    if constexpr (kinds() == 1) {
      return ratios(omnibal::utilization(samples, limits));
    } else {
      std::vector<omnibal::resources<kinds()>> list;
      list.reserve(samples.size());
      for (auto const& sample : samples) list.push_back(demand(sample));
      return ratios(omnibal::utilization(list, limits));
    }
  });
}

}  // namespace arrays
