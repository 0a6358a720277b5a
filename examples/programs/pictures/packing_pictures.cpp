// SPDX-License-Identifier: Apache-2.0
#include "packing_pictures.hpp"

#include "step_curves.hpp"
#include "svg.hpp"
#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace examples {

namespace {

constexpr std::array kinds{"images", "tokens"};
constexpr std::array headings{"Images", "Tokens"};

/// The third color of Okabe and Ito.
constexpr std::string_view green = "#009E73";

/// What lies further above the capacity than this many times it is not drawn.
constexpr double max_capacities = 3;

std::vector<double> column(std::vector<amounts> const& rows, std::size_t kind, double scale) {
  std::vector<double> result;
  result.reserve(rows.size());
  for (amounts const& row : rows) result.push_back(scale * row[kind]);
  return result;
}

/// Zero for no values.
double largest(std::vector<double> const& numbers) {
  return numbers.empty() ? 0 : *std::ranges::max_element(numbers);
}

/// The end of an axis in percent: a round number from `value` on. Next to nothing is drawn as such.
double rounded_up(double value) {
  constexpr int max_parts = 6;
  if (value < 0.1) return 10;
  double const step = nice_step(value, max_parts, number_kind::any);
  return std::ceil(value / step - 1e-9) * step;
}

series before_series(std::string const& label, curve_style style) {
  return {.label = "before: " + label, .color = colors::orange, .style = style};
}

series after_series(std::string const& label, curve_style style) {
  return {.label = "after: " + label, .color = colors::blue, .style = style};
}

/// `12.3 %` of a number, and what is neither zero nor all of it never looks as if it were.
std::string share_of(std::size_t part, std::size_t all) {
  if (part == 0) return "none";
  double const share = static_cast<double>(part) / static_cast<double>(all);
  if (share < 0.0005) return "less than 0.1 %";
  return part < all && share >= 0.9995 ? "more than 99.9 %" : percent(share, 1);
}

std::string share_above(std::vector<double> const& loads, double limit) {
  auto const above = std::ranges::count_if(loads, [&](double load) { return load > limit; });
  return share_of(static_cast<std::size_t>(above), loads.size());
}

chart draw_loads(pack_options const& options, measured_batches const& before,
                 measured_batches const& after, std::size_t kind) {
  auto const first = column(before.loads, kind, 1);
  auto const second = column(after.loads, kind, 1);
  auto const capacity = static_cast<double>(options.capacity[kind]);
  double const most = std::max(largest(first), largest(second));
  bool const shows_capacity = capacity <= max_capacities * most;
  double const end = shows_capacity ? std::clamp(most, capacity, max_capacities * capacity) : most;
  auto const bins = bins_up_to(end, shows_capacity ? capacity : 0);

  auto const label = [&](std::vector<double> const& loads) {
    return share_above(loads, capacity) + " of the groups above the capacity";
  };
  chart result{.title = headings[kind],
               .x = {.title = std::string(kinds[kind]) + " of a group",
                     .least = bins.begin(),
                     .most = bins.end(),
                     .kind = number_kind::whole},
               .y = {.title = "share of the groups", .unit = " %"},
               .curves = {before_series(label(first), curve_style::area),
                          after_series(label(second), curve_style::area)}};
  result.curves[0].curve = histogram(first, bins);
  result.curves[1].curve = histogram(second, bins);
  result.y.most = rounded_up(
      std::max(largest(result.curves[0].curve.heights), largest(result.curves[1].curve.heights)));
  std::string const number = counted(static_cast<std::uint64_t>(options.capacity[kind]));
  if (shows_capacity) {
    result.at_x = mark{capacity + 0.5, "capacity " + number};
  } else {
    result.x.title += " (the capacity is " + number + ")";
  }
  if (most > bins.end()) {
    result.x.title += " (before: " + share_above(first, bins.end()) + " further right)";
  }
  return result;
}

chart draw_fill(measured_batches const& before, measured_batches const& after, std::size_t kind) {
  auto first = column(before.fill, kind, 100);
  auto second = column(after.fill, kind, 100);
  std::ranges::sort(first, std::greater{});
  std::ranges::sort(second, std::greater{});
  auto const label = [&](measured_batches const& measured, std::vector<double> const& fill) {
    return percent(measured.figures.fill[kind], 1) + " full on average, " +
           fixed(largest(fill), 0) + " % at most";
  };
  chart result{
      .title = headings[kind],
      .x = {.title = "groups, from the fullest to the emptiest", .most = 100, .unit = " %"},
      .y = {.title = "fill", .unit = " %"},
      .curves = {before_series(label(before, first), curve_style::line),
                 after_series(label(after, second), curve_style::line)}};
  auto const curve = [](std::vector<double> const& fill) {
    step_curve steps = summarized(fill).means;
    for (double& edge : steps.edges) edge *= 100 / static_cast<double>(fill.size());
    return steps;
  };
  result.curves[0].curve = curve(first);
  result.curves[1].curve = curve(second);
  double const most =
      std::max(largest(result.curves[0].curve.heights), largest(result.curves[1].curve.heights));
  bool const shows_capacity = 100 <= max_capacities * most;
  // Room for the label of the capacity above its line.
  constexpr double margin = 115;
  result.y.most =
      rounded_up(shows_capacity ? std::clamp(most, margin, max_capacities * 100) : most);
  if (shows_capacity) result.at_y = mark{100, "capacity"};
  return result;
}

chart draw_waiting(measured_batches const& before, measured_batches const& after,
                   measured_steps const& scheduled, std::size_t kind) {
  auto const first = column(before.waiting, kind, 100);
  auto const second = column(after.waiting, kind, 100);
  auto const third = column(scheduled.waiting, kind, 100);
  auto const label = [&](amounts const& dist_ratio, std::vector<double> const& waiting) {
    return percent(dist_ratio[kind], 2) + " of a step on average, " + fixed(largest(waiting), 0) +
           " % at most";
  };
  std::size_t const steps = std::max({first.size(), second.size(), third.size()});
  chart result{
      .title = headings[kind],
      .x = {.title = "step",
            .most = static_cast<double>(std::max<std::size_t>(1, steps)),
            .kind = number_kind::whole},
      .y = {.title = "share of the step", .unit = " %"},
      .curves = {before_series(label(before.figures.dist_ratio, first), curve_style::line),
                 after_series(label(after.figures.dist_ratio, second), curve_style::line),
                 {.label = "scheduled: " + label(scheduled.dist_ratio, third), .color = green}}};
  auto const add = [](series& one, std::vector<double> const& waiting) {
    auto shown = summarized(waiting);
    one.curve = std::move(shown.means);
    one.lows = std::move(shown.lows);
    one.highs = std::move(shown.highs);
    return std::max(largest(one.curve.heights), largest(one.highs));
  };
  result.y.most = rounded_up(std::max(
      {add(result.curves[0], first), add(result.curves[1], second), add(result.curves[2], third)}));
  if (std::ranges::any_of(result.curves, [](series const& one) { return !one.lows.empty(); })) {
    result.x.title = "step (line: mean of neighbors, band: 8 in 10 of them)";
  }
  return result;
}

/// `1 sample`, `2,000 samples`.
std::string numbered(std::size_t count, std::string_view noun) {
  std::string result = counted(count);
  return result.append(" ").append(noun).append(count == 1 ? "" : "s");
}

/// At most about the last thirty bytes of a name, whole characters of UTF-8.
std::string shortened(std::string const& name) {
  constexpr std::size_t longest = 30;
  if (name.size() <= longest) return name;
  std::size_t begin = name.size() - longest;
  while (begin != name.size() && (static_cast<unsigned char>(name[begin]) & 0xC0u) == 0x80) ++begin;
  return "..." + name.substr(begin);
}

std::string origin_of(dataset const& data) {
  if (data.sources.size() == 1) return shortened(data.sources.front().name);
  return numbered(data.sources.size(), "file");
}

std::string full_name(packer_kind kind) {
  switch (kind) {
    case packer_kind::isf: return "iterative sampling and filtering";
    case packer_kind::next_fit: return "next fit";
    case packer_kind::best_fit_decreasing: return "best-fit decreasing";
    default: return "best packing";
  }
}

std::string full_name(pack_options const& options) {
  bool const is_improved = options.improvement == improvement_kind::exchanges;
  return full_name(options.packer) + (is_improved ? " and improved" : "");
}

/// Places the parts of the picture below one another.
class page {
 public:
  page(svg_drawing& drawing, double width) : drawing_(drawing), width_(width) {}

  void add_line(std::string_view words, text_style const& style) {
    top_ += style.size + 7;
    drawing_.text({margin, top_}, words, style);
  }

  /// A line of text after a square of a color.
  void add_key(std::string_view color, std::string_view words) {
    constexpr double size = 14;
    top_ += size + 7;
    drawing_.rectangle({margin, top_ - 11, 12, 12}, {.color = color});
    drawing_.text({margin + 20, top_}, words, {.size = size});
  }

  void add_gap(double height) { top_ += height; }

  [[nodiscard]] double height() const { return top_ + 12; }

  void add_charts(std::span<chart const> charts) {
    auto const count = static_cast<double>(charts.size());
    double const width = (width_ - 2 * margin - (count - 1) * gap) / count;
    top_ += 12;
    double left = margin;
    for (chart const& one : charts) {
      draw(drawing_, {left, top_, width, chart_height}, one);
      left += width + gap;
    }
    top_ += chart_height;
  }

 private:
  static constexpr double margin = 24;
  static constexpr double gap = 20;
  static constexpr double chart_height = 300;

  svg_drawing& drawing_;
  double width_;
  double top_ = 12;
};

}  // namespace

packing_charts draw_packing(pack_options const& options, measured_batches const& before,
                            measured_batches const& after, measured_steps const& scheduled) {
  packing_charts result;
  for (std::size_t kind = 0; kind != kinds.size(); ++kind) {
    result.loads[kind] = draw_loads(options, before, after, kind);
    result.fill[kind] = draw_fill(before, after, kind);
    result.waiting[kind] = draw_waiting(before, after, scheduled, kind);
  }
  return result;
}

void write_pictures(dataset const& data, pack_options const& options, std::size_t oversized,
                    measured_batches const& before, measured_batches const& after,
                    measured_steps const& scheduled, std::ostream& out) {
  constexpr double width = 960;
  std::string const title = numbered(data.samples.size(), "sample") + " of " + origin_of(data) +
                            ", before and after packing";
  std::string const count_before = counted(before.figures.batches);
  std::string const count_after = counted(after.figures.batches);
  auto const limit = [&](std::size_t kind) {
    return counted(static_cast<std::uint64_t>(options.capacity[kind])) + " " + kinds[kind];
  };
  svg_drawing drawing;
  page sheet(drawing, width);
  auto const heading = [&](std::string_view words, std::string_view explanation) {
    sheet.add_gap(22);
    sheet.add_line(words, {.size = 17, .weight = boldness::bold});
    sheet.add_line(explanation, {.size = 13, .color = colors::gray});
  };

  sheet.add_line(title, {.size = 20, .weight = boldness::bold});
  sheet.add_gap(4);
  sheet.add_key(colors::orange, "before: " + numbered(before.figures.batches, "random group") +
                                    " of " + fixed(before.figures.samples_per_batch, 2) +
                                    " samples, each sample padded to the longest of its group");
  sheet.add_key(colors::blue, "after: " + numbered(after.figures.batches, "group") + " of " +
                                  fixed(after.figures.samples_per_batch, 2) +
                                  " samples, packed by " + full_name(options));
  sheet.add_key(green, "scheduled: these groups, in steps of groups with even loads");
  // Of text the tokens alone are drawn.
  std::size_t const hidden = options.kind == sample_kind::text ? 1 : 0;
  sheet.add_line("Capacity of a group: " + (hidden == 0 ? limit(0) + ", " : "") + limit(1) +
                     ". Larger samples, in no group: " + counted(oversized) + ".",
                 {.size = 14, .color = colors::gray});

  auto const charts = draw_packing(options, before, after, scheduled);
  auto const shown = [hidden](std::span<chart const> all) { return all.subspan(hidden); };
  heading("How much does each group hold?",
          "Padding included. A group above the capacity does not fit: " +
              counted(before.figures.over_capacity) + " of " + count_before + " groups before, " +
              counted(after.figures.over_capacity) + " of " + count_after + " after.");
  sheet.add_charts(shown(charts.loads));
  heading("How full is each group?",
          "Share of the capacity that the samples of a group take, without padding.");
  sheet.add_charts(shown(charts.fill));
  heading("How long do ranks wait?",
          "Ranks: " + counted(options.ranks) +
              ". Each takes one group per step, before and after in random steps: the share of a "
              "step that a rank waits.");
  sheet.add_charts(shown(charts.waiting));
  drawing.write(
      out, width, sheet.height(), title,
      std::string("Loads of the groups, fill of the groups and waiting of the ranks, for ") +
          (hidden == 0 ? "images and for " : "") + "tokens, before and after packing.");
}

}  // namespace examples
