#include "balance_report.hpp"

#include "pack_samples.hpp"
#include "table.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace examples {

namespace {

constexpr int ratio_digits = 4;

omnibal::steps dealt(std::span<std::uint32_t const> order, std::size_t ranks) {
  omnibal::steps schedule(ranks);
  schedule.reserve(order.size() / ranks + 1, order.size());
  for (std::uint32_t const group : order) {
    schedule.push(group);
    schedule.close();
  }
  schedule.finish();
  return schedule;
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

double samples_per_group(omnibal::grouping const& groups) {
  if (groups.empty()) return 0;
  return static_cast<double>(groups.item_count()) / static_cast<double>(groups.size());
}

/// Images, and tokens with every sample as long as the longest. In floating point, because padding
/// can take a sum of representable lengths above 64 bits.
std::vector<omnibal::resources<2, double>> padded_loads(omnibal::grouping const& batches,
                                                        dataset const& data) {
  std::vector<omnibal::resources<2, double>> loads;
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

std::size_t count_above(std::span<omnibal::resources<2, double> const> loads,
                        omnibal::resources<2> const& capacity) {
  omnibal::resources<2, double> const limit{static_cast<double>(capacity[0]),
                                            static_cast<double>(capacity[1])};
  return static_cast<std::size_t>(
      std::ranges::count_if(loads, [&](auto const& load) { return !load.fits(limit); }));
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

std::string percent(double share) { return fixed(100 * share, 1) + " %"; }

}  // namespace

batch_figures measure_packed(dataset const& data, pack_options const& options,
                             omnibal::packing const& result,
                             std::span<omnibal::resources<2> const> loads,
                             std::span<std::uint32_t const> order) {
  auto const used = omnibal::group_loads(result.groups.view(), data.samples, true_demand);
  return {.batches = result.groups.size(),
          .samples_per_batch = samples_per_group(result.groups),
          .over_capacity = 0,
          .fill = omnibal::utilisation(used, options.capacity),
          .pad_ratio = rounding_share(used, loads),
          .dist_ratio = omnibal::dist_ratio(dealt(order, options.ranks), loads)};
}

batch_figures measure_random(dataset const& data, pack_options const& options,
                             omnibal::packing const& result) {
  if (result.groups.empty()) return {};
  std::vector<std::uint32_t> items(result.groups.items().begin(), result.groups.items().end());
  // The shuffle starts from the order of the input, so that it does not depend on the packer.
  std::ranges::sort(items);
  omnibal::rng::fisher_yates{options.seed}(std::span(items), 0);
  auto const size = static_cast<std::size_t>(samples_per_group(result.groups) + 0.5);
  omnibal::grouping const batches = cut(items, std::max<std::size_t>(1, size));

  auto const used = omnibal::group_loads(batches.view(), data.samples, true_demand);
  auto const padded = padded_loads(batches, data);
  auto const order = dealing_order(batches.size(), options.seed);
  return {.batches = batches.size(),
          .samples_per_batch = samples_per_group(batches),
          .over_capacity = count_above(padded, options.capacity),
          .fill = omnibal::utilisation(used, options.capacity),
          .pad_ratio = omnibal::pad_ratio(batches.view(), data.samples, &sample::tokens),
          .dist_ratio = omnibal::dist_ratio(dealt(order, options.ranks), padded)};
}

void print_report(pack_options const& options, omnibal::packing const& result,
                  batch_figures const& before, batch_figures const& after,
                  phase_seconds const& seconds, std::ostream& out) {
  std::string const none = "-";
  auto const& report = result.report;
  bool const has_keep_rule = options.packer == packer_kind::isf;
  auto const ratio = [](double value) { return fixed(value, ratio_digits); };

  table rows({"", "before", "after"});
  rows.add({"", "random batches", to_text(options.packer)});
  rows.add_rule();
  rows.add({"groups", counted(before.batches), counted(after.batches)});
  rows.add({"lower bound", none, counted(report.lower_bound)});
  rows.add(
      {"samples per group", fixed(before.samples_per_batch, 2), fixed(after.samples_per_batch, 2)});
  rows.add({"groups over capacity", counted(before.over_capacity), counted(after.over_capacity)});
  rows.add({"fill, images", percent(before.fill[0]), percent(after.fill[0])});
  rows.add({"fill, tokens", percent(before.fill[1]), percent(after.fill[1])});
  rows.add({"pad ratio", ratio(before.pad_ratio), ratio(after.pad_ratio)});
  rows.add({"dist ratio, images", ratio(before.dist_ratio[0]), ratio(after.dist_ratio[0])});
  rows.add({"dist ratio, tokens", ratio(before.dist_ratio[1]), ratio(after.dist_ratio[1])});
  rows.add_rule();
  rows.add({"oversized samples", none, counted(result.oversized.size())});
  rows.add({"groups below keep rule", none, has_keep_rule ? counted(report.below_keep) : none});
  rows.add({"rounds", none, counted(report.rounds)});
  rows.add({"seconds reading", none, fixed(seconds.reading, 3)});
  rows.add({"seconds packing", none, fixed(seconds.packing, 3)});
  rows.add({"seconds writing", none, fixed(seconds.writing, 3)});
  rows.print(out);

  out << "\nCapacity: " << options.capacity[0] << " images and " << options.capacity[1]
      << " tokens per group. Ratios over steps of " << options.ranks << " ranks, 0 is best.\n"
      << "Before: the samples of the groups in random order, padded to the longest of a batch.\n";
}

}  // namespace examples
