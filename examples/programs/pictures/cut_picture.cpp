// SPDX-License-Identifier: Apache-2.0
#include "cut_picture.hpp"

#include "chart.hpp"
#include "svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace examples {

namespace {

/// How the line of a rule looks, the same in all diagrams.
struct drawn_rule {
  cut_rule rule;
  std::string_view label;
  std::string_view color;
};

/// Of Okabe and Ito, as those of svg.hpp.
constexpr drawn_rule by_parameters{cut_rule::parameters, "parameters", colors::orange};
constexpr drawn_rule by_count{cut_rule::count, "number of layers", "#009E73"};
constexpr drawn_rule by_time{cut_rule::time, "time", "#CC79A7"};
constexpr drawn_rule with_traffic{cut_rule::traffic, "time and traffic", colors::blue};
constexpr drawn_rule with_memory{cut_rule::memory, "time and traffic, within the memory",
                                 "#D55E00"};

series curve_of(model_cuts const& model, drawn_rule const& drawn) {
  series result{.label = std::string(drawn.label), .color = drawn.color};
  bool is_feasible = true;
  for (stage_comparison const& one : model.by_stages) {
    stage_plan const& plan = one[drawn.rule];
    result.curve.edges.push_back(static_cast<double>(one.stages) - 0.5);
    result.curve.heights.push_back(plan.over_bound);
    is_feasible = is_feasible && plan.is_feasible();
  }
  result.curve.edges.push_back(result.curve.edges.back() + 1);
  if (!is_feasible) result.label += "; no cuts fit in the gaps";
  return result;
}

/// The largest finite height, a little above one at least, rounded up.
double top_of(std::span<series const> curves) {
  double top = 1.01;
  for (series const& one : curves) {
    for (double const height : one.curve.heights) {
      if (std::isfinite(height)) top = std::max(top, height);
    }
  }
  double const part = top > 1.5 ? 0.5 : 0.05;
  return 1 + part * std::ceil((top - 1) / part);
}

chart draw_rules(model_cuts const& model, std::string const& title,
                 std::initializer_list<drawn_rule> rules) {
  chart result{.title = model.name + ": " + title,
               .x = {.title = "stages",
                     .least = static_cast<double>(model.by_stages.front().stages) - 0.5,
                     .most = static_cast<double>(model.by_stages.back().stages) + 0.5,
                     .kind = number_kind::whole},
               .y = {.title = "slowest stage over the lower bound", .least = 1},
               .curves = {}};
  for (drawn_rule const& one : rules) result.curves.push_back(curve_of(model, one));
  result.y.most = top_of(result.curves);
  return result;
}

}  // namespace

void write_cut_picture(std::span<model_cuts const> models, std::ostream& out) {
  constexpr double width = 1100;
  constexpr double margin = 24;
  constexpr double gap = 20;
  constexpr double chart_height = 380;
  constexpr double half = (width - 2 * margin - gap) / 2;
  constexpr std::string_view title = "How even are the stages?";
  svg_drawing drawing;
  drawing.text({margin, 36}, title, {.size = 20, .weight = boldness::bold});
  double top = 52;
  for (model_cuts const& model : models) {
    draw(drawing, {margin, top, half, chart_height},
         draw_rules(model, "what is made even", {by_parameters, by_count, with_traffic}));
    draw(drawing, {margin + half + gap, top, half, chart_height},
         draw_rules(model, "the last percents", {with_memory, by_time, with_traffic}));
    top += chart_height + gap;
  }
  drawing.write(out, width, top, title,
                "How much longer than the lower bound the slowest stage takes, by what is made "
                "even and by the number of stages.");
}

}  // namespace examples
