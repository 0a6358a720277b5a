// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include "table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace examples {

namespace {

/// The cells of a row: mean, quantiles and largest of one field.
std::vector<std::string> summary(std::string name, dataset const& data,
                                 std::int64_t sample::*field) {
  constexpr std::array percents{0, 5, 25, 50, 75, 95, 99, 100};
  std::vector<std::int64_t> values;
  values.reserve(data.samples.size());
  double sum = 0;
  for (sample const& one : data.samples) {
    values.push_back(one.*field);
    sum += static_cast<double>(one.*field);
  }
  std::ranges::sort(values);
  std::vector<std::string> row{std::move(name), fixed(sum / static_cast<double>(values.size()), 2)};
  for (int const percent : percents) {
    std::size_t const rank = (values.size() - 1) * static_cast<std::size_t>(percent) / 100;
    row.push_back(counted(static_cast<std::uint64_t>(values[rank])));
  }
  return row;
}

std::string share_of(std::size_t part, std::size_t all) {
  return fixed(100.0 * static_cast<double>(part) / static_cast<double>(all), 2) + " %";
}

void print_image_counts(dataset const& data, std::ostream& out) {
  constexpr std::size_t max_rows = 24;
  std::map<std::int64_t, std::pair<std::size_t, double>> by_images;
  for (sample const& one : data.samples) {
    auto& [count, tokens] = by_images[one.images];
    ++count;
    tokens += static_cast<double>(one.tokens);
  }
  if (by_images.size() > max_rows) return;
  table rows({"images of a sample", "samples", "share", "mean tokens"});
  rows.add_rule();
  for (auto const& [images, counts] : by_images) {
    auto const& [count, tokens] = counts;
    rows.add({counted(static_cast<std::uint64_t>(images)), counted(count),
              share_of(count, data.samples.size()), fixed(tokens / static_cast<double>(count), 1)});
  }
  out << '\n';
  rows.print(out);
}

}  // namespace

void describe(dataset const& data, std::ostream& out) {
  table sources({"source", "samples"});
  sources.add_rule();
  for (source const& one : data.sources) sources.add({one.name, counted(one.records)});
  sources.print(out);

  table lengths(
      {"per sample", "mean", "min", "5 %", "25 %", "median", "75 %", "95 %", "99 %", "max"});
  lengths.add_rule();
  if (data.kind != sample_kind::text) lengths.add(summary("images", data, &sample::images));
  lengths.add(summary("tokens", data, &sample::tokens));
  out << '\n';
  lengths.print(out);
  if (data.kind != sample_kind::text) print_image_counts(data, out);
}

void describe_oversized(dataset const& data, omnibal::resources<2> const& capacity,
                        std::ostream& out) {
  std::size_t const count = data.samples.size();
  auto const above = [&](std::int64_t sample::*field, std::int64_t limit) {
    auto const number =
        std::ranges::count_if(data.samples, [&](sample const& one) { return one.*field > limit; });
    return counted(static_cast<std::uint64_t>(number)) + " (" +
           share_of(static_cast<std::size_t>(number), count) + ")";
  };
  table oversized({"above the capacity", "samples"});
  oversized.add_rule();
  if (data.kind != sample_kind::text) {
    oversized.add({std::to_string(capacity[0]) + " images", above(&sample::images, capacity[0])});
  }
  oversized.add({std::to_string(capacity[1]) + " tokens", above(&sample::tokens, capacity[1])});
  out << '\n';
  oversized.print(out);
}

}  // namespace examples
