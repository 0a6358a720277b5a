// SPDX-License-Identifier: Apache-2.0
#include "context_step_picture.hpp"

#include "axis_ticks.hpp"
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

constexpr double width = 960;
constexpr double margin = 24;
constexpr double numbers_width = 46;
constexpr double head = 88;
constexpr double title_height = 30;
constexpr double gap = 22;
constexpr double foot = 54;
constexpr double text_size = 13;
constexpr double label_size = 11;
constexpr fill waiting{.color = colors::orange};
constexpr fill sharing{.color = "#B9B9B9"};
/// From one rank to the most that a group of the picture has.
constexpr std::array<std::array<int, 3>, 6> ramp{
    {{206, 228, 241}, {150, 200, 225}, {92, 163, 206}, {42, 120, 181}, {10, 80, 150}, {8, 40, 95}}};

/// One of the plans that are drawn.
struct drawn_plan {
  std::string name;
  omnibal::context_plan const* plan;
  context_step step;
};

/// 1, 2, 3 to 4, 5 to 8, ... ranks have the same color.
std::size_t octave_of(std::uint32_t degree) {
  return static_cast<std::size_t>(std::bit_width(degree - 1));
}

std::string hex(std::array<int, 3> const& color) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text = "#";
  for (int const part : color) {
    text += digits[static_cast<std::size_t>(part / 16)];
    text += digits[static_cast<std::size_t>(part % 16)];
  }
  return text;
}

/// A color for each octave of degrees.
std::vector<std::string> shades(std::size_t octaves) {
  std::vector<std::string> result;
  for (std::size_t octave = 0; octave != octaves; ++octave) {
    double const last = std::max(1.0, static_cast<double>(octaves - 1));
    double const at = static_cast<double>(ramp.size() - 1) * static_cast<double>(octave) / last;
    auto const below = std::min(static_cast<std::size_t>(at), ramp.size() - 2);
    double const share = at - static_cast<double>(below);
    std::array<int, 3> mixed{};
    for (std::size_t part = 0; part != mixed.size(); ++part) {
      mixed[part] = static_cast<int>(
          std::lround((1 - share) * ramp[below][part] + share * ramp[below + 1][part]));
    }
    result.push_back(hex(mixed));
  }
  return result;
}

/// The panels and the scale of time.
struct frame {
  std::uint32_t ranks = 1;
  /// Seconds: the longest plan, and what no plan is below.
  double longest = 0;
  double bound = 0;
  std::size_t octaves = 1;
  std::vector<std::string> colors;

  [[nodiscard]] double left() const { return margin + numbers_width; }
  [[nodiscard]] double plot_width() const { return width - left() - margin; }
  [[nodiscard]] double rank_height() const { return std::min(16.0, 256.0 / ranks); }
  [[nodiscard]] double plot_height() const { return rank_height() * ranks; }
  [[nodiscard]] double top(std::size_t panel) const {
    return head + title_height + (plot_height() + title_height + gap) * static_cast<double>(panel);
  }
  [[nodiscard]] double at(double seconds) const {
    return left() + plot_width() * seconds / longest;
  }
};

void draw_legend(svg_drawing& drawing, frame const& inside) {
  double x = inside.left();
  constexpr double base = 70;
  drawing.text({x, base}, "ranks of a group, up to", {.size = text_size});
  x += 160;
  for (std::size_t octave = 0; octave != inside.octaves; ++octave) {
    std::string const label = counted(std::uint64_t{1} << octave);
    drawing.rectangle({x, base - 11, 13, 13}, {.color = inside.colors[octave]});
    drawing.text({x + 18, base}, label, {.size = text_size});
    x += 27 + 8 * static_cast<double>(label.size());
  }
  for (auto const& [look, name] : {std::pair(sharing, "sharing"), std::pair(waiting, "waiting")}) {
    drawing.rectangle({x + 8, base - 11, 13, 13}, look);
    drawing.text({x + 26, base}, name, {.size = text_size});
    x += 84;
  }
}

/// `97K`, and short lengths as they are.
std::string rounded(std::int64_t tokens) {
  if (tokens < 1024) return counted(static_cast<std::uint64_t>(tokens));
  return fixed(std::round(static_cast<double>(tokens) / 1024), 0) + "K";
}

/// The size of a group and its longest sample, where it has several ranks and the box is large
/// enough.
void draw_label(svg_drawing& drawing, box const& area, std::string_view color,
                std::string const& text) {
  double const needed = 0.6 * label_size * static_cast<double>(text.size()) + 8;
  if (area.width < needed || area.height < label_size + 2) return;
  drawing.text({area.left + area.width / 2, area.top + area.height / 2 + 4}, text,
               {.size = label_size, .color = color, .at = anchor::middle});
}

class plan_panel {
 public:
  plan_panel(svg_drawing& drawing, frame const& inside, drawn_plan const& drawn, double top)
      : drawing_(drawing), inside_(inside), drawn_(drawn), top_(top) {}

  void draw() {
    double begin = 0;
    std::size_t g = 0;
    omnibal::context_plan const& plan = *drawn_.plan;
    for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
      begin += drawn_.step.cost.micro_step;
      auto const groups = plan.groups_of(k);
      double end = begin;
      for (omnibal::context_group const& group : groups) end = std::max(end, begin + group.time);
      std::uint32_t rank = 0;
      for (omnibal::context_group const& group : groups) {
        wait(rank, group.first_rank, begin, end);
        draw_group(g++, begin);
        rank = group.first_rank + group.degree;
        wait(group.first_rank, rank, begin + group.time, end);
      }
      wait(rank, drawn_.step.ranks, begin, end);
      begin = end;
    }
  }

 private:
  /// Groups lie a little apart where they are high enough for it.
  [[nodiscard]] box rows(std::uint32_t first, std::uint32_t last, double begin, double end) const {
    double const height = inside_.rank_height() * (last - first);
    double const between = height >= 3 ? 0.7 : 0;
    return {inside_.at(begin), top_ + inside_.rank_height() * first,
            inside_.at(end) - inside_.at(begin), height - between};
  }

  void wait(std::uint32_t first, std::uint32_t last, double begin, double end) {
    box const area = rows(first, last, begin, end);
    if (first < last && area.width >= 0.1) drawing_.rectangle(area, waiting);
  }

  void draw_group(std::size_t g, double begin) {
    omnibal::context_group const& group = drawn_.plan->groups[g];
    std::uint32_t const last = group.first_rank + group.degree;
    std::size_t const octave = octave_of(group.degree);
    double const shared = sharing_time(*drawn_.plan, g, drawn_.step);
    double const end = begin + group.time;
    box const work = rows(group.first_rank, last, begin, end - shared);
    drawing_.rectangle(work, {.color = inside_.colors[octave]});
    box const rest = rows(group.first_rank, last, end - shared, end);
    if (rest.width >= 0.1) drawing_.rectangle(rest, sharing);
    if (group.degree == 1) return;
    std::int64_t longest = 0;
    for (std::uint32_t const item : drawn_.plan->samples[g]) {
      longest = std::max(longest, drawn_.step.lengths[item]);
    }
    bool const is_dark = 5 * octave >= 2 * inside_.octaves;
    draw_label(drawing_, work, is_dark ? colors::ground : colors::ink,
               counted(group.degree) + " ranks, up to " + rounded(longest));
  }

  svg_drawing& drawing_;
  frame const& inside_;
  drawn_plan const& drawn_;
  double top_;
};

void draw_panel(svg_drawing& drawing, frame const& inside, drawn_plan const& drawn,
                std::size_t panel) {
  double const top = inside.top(panel);
  auto const figures = figures_of(*drawn.plan, drawn.step);
  drawing.text({inside.left(), top - 9}, drawn.name,
               {.size = text_size + 1, .weight = boldness::bold});
  drawing.text({width - margin, top - 9},
               fixed(figures.seconds, 2) + " s: sharing " +
                   percent(figures.sharing / figures.seconds, 1) + ", waiting " +
                   percent(figures.waiting / figures.seconds, 1),
               {.size = text_size, .at = anchor::end});
  plan_panel(drawing, inside, drawn, top).draw();
  double const rank_step = nice_step(inside.ranks, 4, number_kind::whole);
  for (double const rank : multiples(0, inside.ranks, rank_step)) {
    double const y = top + inside.rank_height() * rank;
    drawing.line({inside.left() - 5, y}, {inside.left(), y}, {.color = colors::gray});
    drawing.text({inside.left() - 9, y + 4}, tick_text(rank, rank_step),
                 {.size = label_size, .color = colors::gray, .at = anchor::end});
  }
  drawing.text({margin + 6, top + inside.plot_height() / 2}, "ranks",
               {.size = text_size, .at = anchor::middle, .runs = direction::upwards});
  // Dark dashes on a light line are seen on any box.
  point const upper{inside.at(inside.bound), top - 3};
  point const lower{upper.x, top + inside.plot_height() + 3};
  drawing.line(upper, lower, {.color = colors::ground, .width = 2.4});
  drawing.line(upper, lower, {.color = colors::ink, .width = 1.4, .pattern = dashes::dashed});
}

void draw_axis(svg_drawing& drawing, frame const& inside, double bottom) {
  drawing.line({inside.left(), bottom}, {width - margin, bottom}, {.color = colors::gray});
  double const step = nice_step(inside.longest, 8, number_kind::any);
  for (double const value : multiples(0, inside.longest, step)) {
    double const at = inside.at(value);
    drawing.line({at, bottom}, {at, bottom + 5}, {.color = colors::gray});
    drawing.text({at, bottom + 19}, tick_text(value, step),
                 {.size = text_size, .color = colors::gray, .at = anchor::middle});
  }
  drawing.text({inside.left(), bottom + 38}, "seconds", {.size = text_size});
  drawing.text({width - margin, bottom + 38},
               "dashed: no plan of these samples ends before " + fixed(inside.bound, 2) + " s",
               {.size = text_size, .at = anchor::end});
}

/// The first step of an epoch.
drawn_plan first_step(dataset const& data, context_step const& step, context_epoch const& epoch) {
  drawn_plan drawn{epoch.name, &epoch.plans.front(), step};
  for (std::uint32_t const sample : epoch.steps[0]) {
    drawn.step.lengths.push_back(data.samples[sample].tokens);
  }
  return drawn;
}

}  // namespace

void write_step_picture(dataset const& data, context_setting const& setting,
                        context_comparison const& comparison, std::ostream& out) {
  frame inside;
  inside.ranks = setting.step.ranks;
  std::vector<drawn_plan> plans;
  for (context_epoch const& epoch : comparison.epochs) {
    bool const is_drawn =
        epoch.stem == "one_degree" || epoch.stem == "levels" || epoch.stem == "groups";
    if (!is_drawn || !epoch.misfit.empty()) continue;
    plans.push_back(first_step(data, setting.step, epoch));
    omnibal::context_plan const& plan = *plans.back().plan;
    inside.longest = std::max(inside.longest, plan.makespan);
    inside.bound = plan.lower_bound;
    for (auto const& group : plan.groups) {
      inside.octaves = std::max(inside.octaves, octave_of(group.degree) + 1);
    }
  }
  inside.colors = shades(inside.octaves);
  std::string const title = counted(plans.front().step.lengths.size()) +
                            " samples in one step on " + counted(inside.ranks) + " ranks";
  svg_drawing drawing;
  drawing.text({margin, 36}, title, {.size = 20, .weight = boldness::bold});
  draw_legend(drawing, inside);
  for (std::size_t panel = 0; panel != plans.size(); ++panel) {
    draw_panel(drawing, inside, plans[panel], panel);
  }
  double const bottom = inside.top(plans.size() - 1) + inside.plot_height() + 8;
  draw_axis(drawing, inside, bottom);
  drawing.write(out, width, bottom + foot, title,
                "Ranks against time: the groups of ranks of each way of running the same samples, "
                "what sharing samples costs them, and where ranks wait.");
}

}  // namespace examples
