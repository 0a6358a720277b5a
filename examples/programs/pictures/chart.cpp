// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace examples {

namespace {

constexpr double title_size = 15;
constexpr double text_size = 13;
constexpr double small_size = 11;
constexpr double line_height = 19;
constexpr double curve_width = 1.6;
/// Between the title of the vertical axis and the axis.
constexpr double numbers_width = 58;

/// The rectangle between the axes, and where values lie in it.
class frame {
 public:
  frame(box const& area, axis const& x, axis const& y) : area_(area), x_(x), y_(y) {}

  [[nodiscard]] box const& area() const { return area_; }
  [[nodiscard]] double at_x(double value) const {
    return area_.left + area_.width * share(x_, value);
  }
  [[nodiscard]] double at_y(double value) const {
    return area_.bottom() - area_.height * share(y_, value);
  }

 private:
  static double share(axis const& along, double value) {
    return std::clamp((value - along.least) / (along.most - along.least), 0.0, 1.0);
  }

  box area_;
  axis const& x_;
  axis const& y_;
};

/// Heights without a gap between them, [first, last).
struct height_run {
  std::size_t first;
  std::size_t last;
};

std::vector<height_run> runs_of(std::vector<double> const& heights) {
  std::vector<height_run> result;
  bool goes_on = false;
  for (std::size_t i = 0; i != heights.size(); ++i) {
    bool const is_there = std::isfinite(heights[i]);
    if (is_there && goes_on) ++result.back().last;
    if (is_there && !goes_on) result.push_back({i, i + 1});
    goes_on = is_there;
  }
  return result;
}

std::vector<point> corners(frame const& inside, std::vector<double> const& edges,
                           std::vector<double> const& heights, height_run const& run) {
  std::vector<point> result;
  result.reserve(2 * (run.last - run.first) + 2);
  for (std::size_t i = run.first; i != run.last; ++i) {
    double const y = inside.at_y(heights[i]);
    result.push_back({inside.at_x(edges[i]), y});
    result.push_back({inside.at_x(edges[i + 1]), y});
  }
  return result;
}

void draw_titles(svg_drawing& drawing, box const& area, chart const& content) {
  drawing.text({area.left, area.top + title_size}, content.title,
               {.size = title_size, .weight = boldness::bold});
  double base = area.top + title_size + line_height + 2;
  for (series const& one : content.curves) {
    drawing.rectangle({area.left, base - 10, 11, 11}, {.color = one.color});
    drawing.text({area.left + 18, base}, one.label, {.size = text_size});
    base += line_height;
  }
}

void draw_grid(svg_drawing& drawing, frame const& inside, axis const& x, axis const& y) {
  constexpr int max_parts = 6;
  box const& area = inside.area();
  double const y_step = nice_step(y.most - y.least, max_parts, y.kind);
  for (double const value : multiples(y.least, y.most, y_step)) {
    double const at = inside.at_y(value);
    drawing.line({area.left, at}, {area.right(), at}, {.color = colors::pale});
    drawing.text({area.left - 8, at + 4}, tick_text(value, y_step) + y.unit,
                 {.size = text_size, .color = colors::gray, .at = anchor::end});
  }
  std::vector<mark> names = x.names;
  if (names.empty()) {
    double const x_step = nice_step(x.most - x.least, max_parts, x.kind);
    for (double const value : multiples(x.least, x.most, x_step)) {
      names.push_back({value, tick_text(value, x_step) + x.unit});
    }
  }
  for (mark const& one : names) {
    double const at = inside.at_x(one.value);
    drawing.line({at, area.bottom()}, {at, area.bottom() + 5}, {.color = colors::gray});
    drawing.text({at, area.bottom() + 19}, one.label,
                 {.size = text_size, .color = colors::gray, .at = anchor::middle});
  }
  drawing.text({area.left + area.width / 2, area.bottom() + 39}, x.title,
               {.size = text_size, .at = anchor::middle});
  drawing.text({area.left - numbers_width, area.top + area.height / 2}, y.title,
               {.size = text_size, .at = anchor::middle, .runs = direction::upwards});
}

/// The line of a run of a series: but for a line it begins and ends on the ground.
std::vector<point> outline(frame const& inside, series const& one, height_run const& run) {
  auto line = corners(inside, one.curve.edges, one.curve.heights, run);
  if (one.style == curve_style::line) return line;
  double const ground = inside.area().bottom();
  line.insert(line.begin(), {line.front().x, ground});
  line.push_back({line.back().x, ground});
  return line;
}

void draw_inside(svg_drawing& drawing, frame const& inside, series const& one,
                 height_run const& run) {
  if (one.style != curve_style::line) {
    double const opacity = one.style == curve_style::bars ? 0.85 : 0.3;
    drawing.polygon(outline(inside, one, run), {.color = one.color, .opacity = opacity});
  }
  if (one.lows.empty()) return;
  auto band = corners(inside, one.curve.edges, one.lows, run);
  auto const upper = corners(inside, one.curve.edges, one.highs, run);
  band.insert(band.end(), upper.rbegin(), upper.rend());
  drawing.polygon(band, {.color = one.color, .opacity = 0.2});
}

void draw_curves(svg_drawing& drawing, frame const& inside, std::vector<series> const& curves) {
  for (series const& one : curves) {
    for (height_run const& run : runs_of(one.curve.heights)) draw_inside(drawing, inside, one, run);
  }
  for (series const& one : curves) {
    if (one.style == curve_style::bars) continue;
    for (height_run const& run : runs_of(one.curve.heights)) {
      drawing.polyline(outline(inside, one, run), {.color = one.color, .width = curve_width});
    }
  }
}

void draw_notes(svg_drawing& drawing, frame const& inside, std::vector<note> const& notes) {
  for (note const& one : notes) {
    drawing.text({inside.at_x(one.x), inside.at_y(one.y) - 4}, one.text,
                 {.size = small_size, .color = colors::gray, .at = anchor::middle});
  }
}

void draw_marks(svg_drawing& drawing, frame const& inside, chart const& content) {
  // Wide enough for a label of this size in any of the fonts.
  constexpr double letter = 0.62 * text_size;
  box const& area = inside.area();
  stroke const pen{.color = colors::ink, .width = 1.4, .pattern = dashes::dashed};
  if (content.at_x) {
    double const at = inside.at_x(content.at_x->value);
    double const half = letter * static_cast<double>(content.at_x->label.size()) / 2;
    drawing.line({at, area.top - 4}, {at, area.bottom()}, pen);
    drawing.text({std::clamp(at, area.left + half, area.right() - half), area.top - 9},
                 content.at_x->label, {.size = text_size, .at = anchor::middle});
  }
  if (content.at_y) {
    double const at = inside.at_y(content.at_y->value);
    drawing.line({area.left, at}, {area.right(), at}, pen);
    drawing.text({area.right() - 4, at - 6}, content.at_y->label,
                 {.size = text_size, .at = anchor::end});
  }
}

}  // namespace

void draw(svg_drawing& drawing, box const& area, chart const& content) {
  draw_titles(drawing, area, content);
  double const head =
      title_size + line_height * (static_cast<double>(content.curves.size()) + 1) + 16;
  constexpr double foot = 48;
  constexpr double left = numbers_width + text_size;
  constexpr double right = 16;
  box const plot{area.left + left, area.top + head, area.width - left - right,
                 area.height - head - foot};
  frame const inside(plot, content.x, content.y);
  draw_grid(drawing, inside, content.x, content.y);
  draw_curves(drawing, inside, content.curves);
  draw_marks(drawing, inside, content);
  draw_notes(drawing, inside, content.notes);
  drawing.line({plot.left, plot.bottom()}, {plot.right(), plot.bottom()},
               {.color = colors::gray, .width = 2});
}

}  // namespace examples
