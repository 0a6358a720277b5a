// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A diagram of one or more curves over two axes that begin at zero or beside it.

#include "axis_ticks.hpp"
#include "svg.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A curve that is constant between edges: `heights[i]` from `edges[i]` to `edges[i + 1]`. Where a
/// height is not finite there is a gap.
struct step_curve {
  std::vector<double> edges;
  std::vector<double> heights;

  [[nodiscard]] friend bool operator==(step_curve const&, step_curve const&) = default;
};

enum class curve_style { line, area, bars };

struct series {
  /// What stands beside its color above the diagram.
  std::string label;
  std::string_view color;
  curve_style style = curve_style::line;
  step_curve curve{};
  /// A band over the same edges; both empty for none.
  std::vector<double> lows{};
  std::vector<double> highs{};
};

/// A value of an axis and what it is called.
struct mark {
  double value;
  std::string label;
};

struct axis {
  std::string title;
  double least = 0;
  double most = 1;
  number_kind kind = number_kind::any;
  /// Stands behind each number.
  std::string unit{};
  /// What stands at values of the axis instead of numbers, where there is any.
  std::vector<mark> names{};
};

/// Words above a point.
struct note {
  double x;
  double y;
  std::string text;
};

struct chart {
  std::string title;
  axis x;
  axis y;
  /// Painted in this order.
  std::vector<series> curves;
  /// Dashed lines.
  std::optional<mark> at_x{};
  std::optional<mark> at_y{};
  std::vector<note> notes{};
};

/// Draws the chart into an area, its title and labels included. What exceeds the axes is cut off.
void draw(svg_drawing& drawing, box const& area, chart const& content);

}  // namespace examples
