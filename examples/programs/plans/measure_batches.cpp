// SPDX-License-Identifier: Apache-2.0
#include "measure_batches.hpp"

#include "pack_samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>

namespace examples {

namespace {

template <class Loads>
std::vector<amounts> dist_ratios(std::span<std::uint32_t const> order, std::size_t ranks,
                                 Loads const& loads) {
  std::vector<amounts> result;
  result.reserve(order.size() / ranks + 1);
  std::vector<typename Loads::value_type> totals(ranks);
  for (std::size_t first = 0; first < order.size(); first += ranks) {
    std::ranges::fill(totals, typename Loads::value_type{});
    for (std::size_t rank = 0; rank != std::min(ranks, order.size() - first); ++rank) {
      totals[rank] = loads[order[first + rank]];
    }
    result.push_back(omnibal::dist_ratio(totals));
  }
  return result;
}

amounts mean(std::span<amounts const> shares) {
  amounts sum{};
  for (amounts const& share : shares) sum += share;
  if (shares.empty()) return sum;
  for (double& value : sum.amounts) value /= static_cast<double>(shares.size());
  return sum;
}

amounts to_amounts(omnibal::resources<2> const& load) {
  return {static_cast<double>(load[0]), static_cast<double>(load[1])};
}

std::vector<amounts> shares_of(omnibal::resources<2> const& capacity,
                               std::span<omnibal::resources<2> const> used) {
  amounts const whole = to_amounts(capacity);
  std::vector<amounts> result;
  result.reserve(used.size());
  for (auto const& load : used) {
    amounts const part = to_amounts(load);
    result.push_back({part[0] / whole[0], part[1] / whole[1]});
  }
  return result;
}

/// Groups of `size` consecutive samples, the last one perhaps smaller.
omnibal::grouping cut(std::span<std::uint32_t const> items, std::size_t size) {
  omnibal::grouping batches;
  batches.reserve(items.size() / size + 1, items.size());
  for (std::size_t i = 0; i != items.size(); ++i) {
    batches.push(items[i]);
    if ((i + 1) % size == 0 || i + 1 == items.size()) batches.close();
  }
  return batches;
}

/// The samples of the groups in shuffled order. The shuffle starts from the order of the input, so
/// that it does not depend on the packer.
std::vector<std::uint32_t> shuffled_order(omnibal::packing const& result, std::uint64_t seed) {
  std::vector<std::uint32_t> items(result.groups.items().begin(), result.groups.items().end());
  std::ranges::sort(items);
  omnibal::rng::fisher_yates{seed}(std::span(items), 0);
  return items;
}

/// Groups of as many consecutive samples as fit under the capacity. In floating point, because
/// padding can take a sum of representable lengths above 64 bits.
omnibal::grouping fill(std::span<std::uint32_t const> items, dataset const& data,
                       omnibal::resources<2> const& capacity, batch_layout layout) {
  omnibal::grouping batches;
  amounts const limit = to_amounts(capacity);
  double count = 0;
  double longest = 0;
  amounts sum{};
  for (std::uint32_t const item : items) {
    amounts const more = to_amounts(true_demand(data.samples[item]));
    double const most = std::max(longest, more[1]);
    amounts const load{sum[0] + more[0],
                       layout == batch_layout::padded ? (count + 1) * most : sum[1] + more[1]};
    if (count != 0 && !load.fits(limit)) {
      batches.close();
      count = 0;
      sum = {};
    }
    longest = count == 0 ? more[1] : most;
    sum += more;
    ++count;
    batches.push(item);
  }
  batches.close();
  return batches;
}

double samples_per_group(omnibal::grouping const& groups) {
  if (groups.empty()) return 0;
  return static_cast<double>(groups.item_count()) / static_cast<double>(groups.size());
}

/// Images, and tokens with every sample as long as the longest. In floating point, because padding
/// can take a sum of representable lengths above 64 bits.
std::vector<amounts> padded_loads(omnibal::grouping const& batches, dataset const& data) {
  std::vector<amounts> loads;
  loads.reserve(batches.size());
  for (std::size_t b = 0; b != batches.size(); ++b) {
    std::int64_t longest = 0;
    double images = 0;
    for (std::uint32_t const item : batches[b]) {
      longest = std::max(longest, data.samples[item].tokens);
      images += static_cast<double>(data.samples[item].images);
    }
    loads.push_back(
        {images, static_cast<double>(longest) * static_cast<double>(batches[b].size())});
  }
  return loads;
}

/// The mean share of rounding in the tokens of a group.
double rounding_share(std::span<omnibal::resources<2> const> used,
                      std::span<omnibal::resources<2> const> rounded) {
  double sum = 0;
  for (std::size_t g = 0; g != rounded.size(); ++g) {
    if (rounded[g][1] == 0) continue;
    sum += static_cast<double>(rounded[g][1] - used[g][1]) / static_cast<double>(rounded[g][1]);
  }
  return rounded.empty() ? 0 : sum / static_cast<double>(rounded.size());
}

}  // namespace

std::size_t count_above(std::span<amounts const> loads, omnibal::resources<2> const& capacity) {
  amounts const limit = to_amounts(capacity);
  return static_cast<std::size_t>(
      std::ranges::count_if(loads, [&](amounts const& load) { return !load.fits(limit); }));
}

std::vector<amounts> waiting_per_step(std::span<std::uint32_t const> order, std::size_t ranks,
                                      std::span<omnibal::resources<2> const> loads) {
  return dist_ratios(order, ranks, loads);
}

measured_batches measure_packed(dataset const& data, pack_options const& options,
                                omnibal::packing const& result,
                                std::span<omnibal::resources<2> const> loads,
                                std::span<std::uint32_t const> order) {
  auto const used = omnibal::group_loads(result.groups.view(), data.samples, true_demand);
  measured_batches measured;
  for (auto const& load : loads) measured.loads.push_back(to_amounts(load));
  measured.fill = shares_of(options.capacity, used);
  measured.waiting = dist_ratios(order, options.ranks, loads);
  measured.figures = {.batches = result.groups.size(),
                      .samples_per_batch = samples_per_group(result.groups),
                      .over_capacity = 0,
                      .fill = omnibal::utilization(used, options.capacity),
                      .pad_ratio = rounding_share(used, loads),
                      .dist_ratio = mean(measured.waiting)};
  return measured;
}

measured_batches measure_filled(dataset const& data, pack_options const& options,
                                omnibal::packing const& result, batch_layout layout) {
  if (result.groups.empty()) return {};
  omnibal::grouping const batches =
      fill(shuffled_order(result, options.seed), data, options.capacity, layout);
  auto const used = omnibal::group_loads(batches.view(), data.samples, true_demand);
  measured_batches measured;
  if (layout == batch_layout::padded) {
    measured.loads = padded_loads(batches, data);
  } else {
    for (auto const& load : used) measured.loads.push_back(to_amounts(load));
  }
  measured.fill = shares_of(options.capacity, used);
  return measured;
}

measured_batches measure_random(dataset const& data, pack_options const& options,
                                omnibal::packing const& result) {
  if (result.groups.empty()) return {};
  auto const items = shuffled_order(result, options.seed);
  auto const size = static_cast<std::size_t>(samples_per_group(result.groups) + 0.5);
  omnibal::grouping const batches = cut(items, std::max<std::size_t>(1, size));

  auto const used = omnibal::group_loads(batches.view(), data.samples, true_demand);
  auto const order = dealing_order(batches.size(), options.seed);
  measured_batches measured;
  measured.loads = padded_loads(batches, data);
  measured.fill = shares_of(options.capacity, used);
  measured.waiting = dist_ratios(order, options.ranks, measured.loads);
  measured.figures = {
      .batches = batches.size(),
      .samples_per_batch = samples_per_group(batches),
      .over_capacity = count_above(measured.loads, options.capacity),
      .fill = omnibal::utilization(used, options.capacity),
      .pad_ratio = omnibal::pad_ratio(batches.view(), data.samples, &sample::tokens),
      .dist_ratio = mean(measured.waiting)};
  return measured;
}

}  // namespace examples
