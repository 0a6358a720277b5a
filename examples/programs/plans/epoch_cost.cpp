// SPDX-License-Identifier: Apache-2.0
#include "epoch_cost.hpp"

#include "table.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace examples {

namespace {

double seconds_of(amounts const& load, rank_times const& times) {
  return (times.ms_per_tile * load[0] + times.ms_per_token * load[1]) / 1000;
}

/// `12.3 s`, `4 min 5 s`, `3 h 20 min`, `2 days 4 h`.
std::string duration(double seconds) {
  struct unit {
    double seconds;
    char const* name;
  };
  constexpr unit units[]{{86400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}};
  for (std::size_t u = 0; u + 1 != std::size(units); ++u) {
    if (seconds < 2 * units[u].seconds) continue;
    auto const small = static_cast<std::uint64_t>(seconds / units[u + 1].seconds + 0.5);
    auto const ratio = static_cast<std::uint64_t>(units[u].seconds / units[u + 1].seconds);
    return counted(small / ratio) + " " + units[u].name + " " + counted(small % ratio) + " " +
           units[u + 1].name;
  }
  return fixed(seconds, seconds < 10 ? 2 : 0) + " s";
}

/// What the samples of a batch take without padding.
amounts used_by(amounts const& fill, pack_options const& options) {
  return {fill[0] * static_cast<double>(options.capacity[0]),
          fill[1] * static_cast<double>(options.capacity[1])};
}

}  // namespace

epoch_cost cost_of_epoch(std::span<std::uint32_t const> order, measured_batches const& batches,
                         pack_options const& options) {
  std::vector<bool> is_done(batches.loads.size());
  epoch_cost cost;
  for (std::size_t first = 0; first < order.size(); first += options.ranks) {
    double longest = 0;
    double computed = 0;
    for (std::uint32_t const batch :
         order.subspan(first, std::min(options.ranks, order.size() - first))) {
      double const seconds = seconds_of(batches.loads[batch], options.times);
      double const useful =
          is_done[batch] ? 0 : seconds_of(used_by(batches.fill[batch], options), options.times);
      is_done[batch] = true;
      cost.useful += useful;
      cost.padding += seconds - useful;
      computed += seconds;
      longest = std::max(longest, seconds);
    }
    cost.waiting += longest * static_cast<double>(options.ranks) - computed;
  }
  // Rounding must not show as a cost below zero.
  cost.padding = std::max(cost.padding, 0.0);
  return cost;
}

void print_gain(pack_options const& options, epoch_costs const& costs, std::ostream& out) {
  table rows({"in an epoch", "shuffled, padded", "shuffled", "this plan"});
  auto const add = [&](std::string name, auto const& text) {
    rows.add({std::move(name), text(costs.padded), text(costs.concatenated), text(costs.planned)});
  };
  auto const share = [](double epoch_cost::*part) {
    return [=](epoch_cost const& of) {
      return of.total() > 0 ? percent(of.*part / of.total(), 1) : std::string("-");
    };
  };
  rows.add_rule();
  add("padding", share(&epoch_cost::padding));
  add("idle ranks", share(&epoch_cost::waiting));
  add("estimated time", [&](epoch_cost const& cost) {
    return duration(cost.total() / static_cast<double>(options.ranks));
  });
  rows.print(out);
  if (!(costs.planned.total() > 0)) return;
  // Estimates of this kind do not show smaller gains.
  constexpr double least_gain = 1.03;
  double const gain = costs.concatenated.total() / costs.planned.total();
  std::string const ratio = fixed(gain, 2) + " times";
  out << '\n';
  if (gain < least_gain) {
    out << "No gain to expect over micro-batches filled in shuffled order (" << ratio << ");\n";
  } else {
    out << ratio << " as fast as micro-batches filled in shuffled order, and\n";
  }
  out << fixed(costs.padded.total() / costs.planned.total(), 2)
      << " times as fast as padded ones, all under the same limits. Times are\n"
      << (options.times.is_given ? "estimates for " : "guesses for ") << options.ranks
      << (options.ranks == 1 ? " rank, from " : " ranks, from ") << options.times.ms_per_token
      << " ms per token";
  if (options.kind != sample_kind::text) {
    out << " and " << options.times.ms_per_tile << " ms per tile";
  }
  out << (options.times.is_given ? " (--rank-ms).\n" : ".\nMeasure yours: --rank-ms.\n");
}

}  // namespace examples
