// SPDX-License-Identifier: Apache-2.0
#include "long_context_picture.hpp"

#include "chart.hpp"
#include "step_curves.hpp"
#include "svg.hpp"
#include "table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace examples {

namespace {

/// Of Okabe and Ito, as those of svg.hpp.
constexpr std::array<std::string_view, 4> curve_colors{colors::orange, colors::blue, "#009E73",
                                                       "#CC79A7"};

double log_of(std::int64_t tokens) { return std::log2(static_cast<double>(tokens)); }

std::string in_tokens(std::int64_t length) {
  return counted(static_cast<std::uint64_t>(length)) + " tokens";
}

/// Shares of samples and of tokens in each octave of lengths.
chart draw_lengths(dataset const& data, omnibal::level_packing const& packed) {
  constexpr std::size_t octaves = 64;
  std::array<double, octaves> samples{};
  std::array<double, octaves> tokens{};
  double all_tokens = 0;
  std::size_t last = 1;
  for (sample const& one : data.samples) {
    auto const width = static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(one.tokens, 1))));
    samples[width - 1] += 1;
    tokens[width - 1] += static_cast<double>(one.tokens);
    all_tokens += static_cast<double>(one.tokens);
    last = std::max(last, width);
  }
  std::size_t first = 0;
  while (first + 1 < last && samples[first] == 0) ++first;

  chart result{
      .title = "Samples by their length",
      .x = {.title = "tokens of a sample, as a power of two",
            .least = static_cast<double>(first),
            .most = static_cast<double>(last),
            .kind = number_kind::whole},
      .y = {.title = "share", .unit = " %"},
      .curves = {
          {.label = "share of the samples", .color = colors::orange, .style = curve_style::area},
          {.label = "share of the tokens", .color = colors::blue, .style = curve_style::area}}};
  double const count = std::max(1.0, static_cast<double>(data.samples.size()));
  double largest = 1;
  for (series& one : result.curves) one.curve.edges.push_back(static_cast<double>(first));
  for (std::size_t octave = first; octave != last; ++octave) {
    std::array const shares{100 * samples[octave] / count,
                            100 * tokens[octave] / std::max(1.0, all_tokens)};
    for (std::size_t k = 0; k != shares.size(); ++k) {
      result.curves[k].curve.edges.push_back(static_cast<double>(octave + 1));
      result.curves[k].curve.heights.push_back(shares[k]);
      largest = std::max(largest, shares[k]);
    }
  }
  result.y.most = 10 * std::ceil(largest / 10);
  std::int64_t const shortest = packed.levels.front().setting.length;
  if (packed.levels.size() > 1) {
    result.at_x = mark{log_of(shortest), "first level: up to " + in_tokens(shortest)};
  }
  return result;
}

/// What share of the attention of one document as long as the level each pack has.
chart draw_attention(dataset const& data, omnibal::level_packing const& packed) {
  chart result{
      .title = "Attention of the packs of each level",
      .x = {.title = "packs, from the most attention to the least", .most = 100, .unit = " %"},
      .y = {.title = "of one document as long", .most = 100, .unit = " %"},
      .curves = {}};
  for (std::size_t level = 0; level != packed.levels.size(); ++level) {
    omnibal::packed_level const& own = packed.levels[level];
    auto const length = static_cast<double>(own.setting.length);
    std::vector<double> shares;
    shares.reserve(own.group_count);
    for (std::uint32_t g = own.first_group; g != own.first_group + own.group_count; ++g) {
      double squares = 0;
      for (std::uint32_t const item : packed.groups[g]) {
        auto const tokens = static_cast<double>(data.samples[item].tokens);
        squares += tokens * tokens;
      }
      shares.push_back(100 * squares / (length * length));
    }
    step_curve curve = summarized(shares).means;
    for (double& edge : curve.edges)
      edge *= 100 / std::max(1.0, static_cast<double>(shares.size()));
    result.curves.push_back({.label = counted(shares.size()) + " packs of " +
                                      in_tokens(own.setting.length) + " on " +
                                      counted(static_cast<std::uint64_t>(own.setting.sequence)) +
                                      (own.setting.sequence == 1 ? " rank" : " ranks"),
                             .color = curve_colors[level % curve_colors.size()],
                             .curve = std::move(curve)});
  }
  return result;
}

chart draw_waiting(std::span<long_context_plan const> plans) {
  chart result{
      .title = "Waiting for attention",
      .x = {.title = "share of the epoch's steps, level after level", .most = 100, .unit = " %"},
      .y = {.title = "share of the step", .most = 100, .unit = " %"},
      .curves = {}};
  for (std::size_t p = 0; p != plans.size(); ++p) {
    std::vector<double> waiting(plans[p].waiting);
    for (double& share : waiting) share *= 100;
    step_curve curve = summarized(waiting).means;
    for (double& edge : curve.edges)
      edge *= 100 / std::max(1.0, static_cast<double>(waiting.size()));
    result.curves.push_back({.label = plans[p].name + ": " +
                                      percent(plans[p].figures.attention_balance, 1) +
                                      " of a step in the mean",
                             .color = curve_colors[p % curve_colors.size()],
                             .curve = std::move(curve)});
  }
  return result;
}

}  // namespace

void write_levels(dataset const& data, std::span<long_context_plan const> plans,
                  std::ostream& out) {
  constexpr double width = 960;
  constexpr double margin = 24;
  constexpr double gap = 20;
  constexpr double chart_height = 360;
  constexpr double half = (width - 2 * margin - gap) / 2;
  constexpr double top = 52;
  omnibal::level_packing const& packed = plans.back().packed;
  std::string const title =
      counted(data.samples.size()) + " samples in " + counted(packed.levels.size()) + " levels";
  svg_drawing drawing;
  drawing.text({margin, 36}, title, {.size = 20, .weight = boldness::bold});
  draw(drawing, {margin, top, half, chart_height}, draw_lengths(data, packed));
  draw(drawing, {margin + half + gap, top, half, chart_height}, draw_attention(data, packed));
  draw(drawing, {margin, top + chart_height + gap, width - 2 * margin, chart_height},
       draw_waiting(plans));
  drawing.write(out, width, top + 2 * chart_height + 2 * gap, title,
                "Lengths of the samples, attention of the packs of each level, and the share of "
                "each step for which ranks wait for the slowest.");
}

}  // namespace examples
