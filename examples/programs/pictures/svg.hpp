// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A drawing as an SVG file: shapes and text, in pixels from the upper left corner.

#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace examples {

struct point {
  double x;
  double y;
};

struct box {
  double left;
  double top;
  double width;
  double height;

  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double bottom() const { return top + height; }
};

/// Colors that readers with any color vision, and printers without color, tell apart (Okabe and
/// Ito, 2008), on a white ground.
namespace colors {
inline constexpr std::string_view orange = "#E69F00";
inline constexpr std::string_view blue = "#0072B2";
inline constexpr std::string_view ink = "#222222";
inline constexpr std::string_view gray = "#555555";
inline constexpr std::string_view pale = "#E2E2E2";
inline constexpr std::string_view ground = "#FFFFFF";
}  // namespace colors

enum class dashes { none, dashed };

struct stroke {
  std::string_view color = colors::ink;
  double width = 1;
  dashes pattern = dashes::none;
};

struct fill {
  std::string_view color;
  double opacity = 1;
};

enum class anchor { start, middle, end };
enum class boldness { normal, bold };
enum class direction { across, upwards };

struct text_style {
  double size = 13;
  std::string_view color = colors::ink;
  anchor at = anchor::start;
  boldness weight = boldness::normal;
  direction runs = direction::across;
};

class svg_drawing {
 public:
  void rectangle(box const& area, fill const& inside);
  void line(point from, point to, stroke const& pen);
  /// Straight lines from corner to corner.
  void polyline(std::span<point const> corners, stroke const& pen);
  void polygon(std::span<point const> corners, fill const& inside);
  /// `at` is on the base line. Any text: it is escaped.
  void text(point at, std::string_view words, text_style const& style);

  /// The file, on a white ground; `title` and `description` are for those who hear it.
  void write(std::ostream& out, double width, double height, std::string_view title,
             std::string_view description) const;

 private:
  std::string body_;
};

}  // namespace examples
