// SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include "xml_text.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace examples {

namespace {

/// To a tenth.
std::string number(double value) {
  char buffer[64];
  double const rounded = std::round(value * 10) / 10;
  auto const result = std::to_chars(buffer, buffer + sizeof(buffer), rounded);
  return std::string(buffer, result.ptr);
}

std::string attribute(std::string_view name, std::string_view value) {
  std::string result;
  return result.append(" ").append(name).append("=\"").append(xml_text(value)).append("\"");
}

std::string attribute(std::string_view name, double value) {
  return attribute(name, number(value));
}

std::string attributes(stroke const& pen) {
  std::string result = attribute("stroke", pen.color) + attribute("stroke-width", pen.width);
  if (pen.pattern == dashes::dashed) result += attribute("stroke-dasharray", "6 4");
  return result;
}

std::string attributes(fill const& inside) {
  std::string result = attribute("fill", inside.color);
  if (inside.opacity < 1) result += attribute("fill-opacity", inside.opacity);
  return result;
}

/// The path through the corners. Horizontal and vertical lines, most of a diagram, take one number.
std::string path_through(std::span<point const> corners) {
  std::string result;
  std::string last_x;
  std::string last_y;
  for (point const& corner : corners) {
    std::string const x = number(corner.x);
    std::string const y = number(corner.y);
    if (result.empty()) {
      result.append("M").append(x).append(" ").append(y);
    } else if (x == last_x) {
      if (y != last_y) result.append("V").append(y);
    } else if (y == last_y) {
      result.append("H").append(x);
    } else {
      result.append("L").append(x).append(" ").append(y);
    }
    last_x = x;
    last_y = y;
  }
  return result;
}

}  // namespace

void svg_drawing::rectangle(box const& area, fill const& inside) {
  body_ += "<rect" + attribute("x", area.left) + attribute("y", area.top) +
           attribute("width", area.width) + attribute("height", area.height) + attributes(inside) +
           "/>\n";
}

void svg_drawing::line(point from, point to, stroke const& pen) {
  body_ += "<line" + attribute("x1", from.x) + attribute("y1", from.y) + attribute("x2", to.x) +
           attribute("y2", to.y) + attributes(pen) + "/>\n";
}

void svg_drawing::polyline(std::span<point const> corners, stroke const& pen) {
  body_ += "<path" + attribute("d", path_through(corners)) + " fill=\"none\"" + attributes(pen) +
           " stroke-linejoin=\"round\"/>\n";
}

void svg_drawing::polygon(std::span<point const> corners, fill const& inside) {
  body_ += "<path" + attribute("d", path_through(corners) + "Z") + attributes(inside) + "/>\n";
}

void svg_drawing::text(point at, std::string_view words, text_style const& style) {
  constexpr std::string_view anchors[]{"start", "middle", "end"};
  body_ += "<text" + attribute("x", at.x) + attribute("y", at.y) +
           attribute("font-size", style.size) + attribute("fill", style.color);
  if (style.at != anchor::start) {
    body_ += attribute("text-anchor", anchors[static_cast<std::size_t>(style.at)]);
  }
  if (style.weight == boldness::bold) body_ += " font-weight=\"bold\"";
  if (style.runs == direction::upwards) {
    body_.append(" transform=\"rotate(-90 ").append(number(at.x)).append(" ");
    body_.append(number(at.y)).append(")\"");
  }
  body_.append(">").append(xml_text(words)).append("</text>\n");
}

void svg_drawing::write(std::ostream& out, double width, double height, std::string_view title,
                        std::string_view description) const {
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\"" << attribute("width", width)
      << attribute("height", height) << " viewBox=\"0 0 " << number(width) << ' ' << number(height)
      << "\" role=\"img\""
      << " font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n<title>"
      << xml_text(title) << "</title>\n<desc>" << xml_text(description)
      << "</desc>\n<rect width=\"100%\" height=\"100%\"" << attribute("fill", colors::ground)
      << "/>\n"
      << body_ << "</svg>\n";
}

}  // namespace examples
