// SPDX-License-Identifier: Apache-2.0
#include "bars.hpp"

#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace examples {

chart bar_chart(bars const& content) {
  constexpr double margin = 0.1;
  double const width = (1 - 2 * margin) / static_cast<double>(content.kinds.size());
  double top = 0;
  chart result{.title = content.title,
               .x = {.title = "", .least = 0, .most = static_cast<double>(content.groups.size())},
               .y = {.title = content.y_title},
               .curves = {}};
  for (std::size_t g = 0; g != content.groups.size(); ++g) {
    result.x.names.push_back({static_cast<double>(g) + 0.5, content.groups[g].label});
  }
  for (std::size_t k = 0; k != content.kinds.size(); ++k) {
    series& one = result.curves.emplace_back(series{.label = content.kinds[k].label,
                                                    .color = content.kinds[k].color,
                                                    .style = curve_style::bars});
    for (std::size_t g = 0; g != content.groups.size(); ++g) {
      double const height = content.groups[g].heights[k];
      bool const is_there = std::isfinite(height);
      double const left = static_cast<double>(g) + margin + static_cast<double>(k) * width;
      one.curve.edges.insert(one.curve.edges.end(), {left, left + width});
      one.curve.heights.insert(one.curve.heights.end(),
                               {height, std::numeric_limits<double>::quiet_NaN()});
      result.notes.push_back({left + width / 2, is_there ? height : 0,
                              is_there ? fixed(height, content.digits) : content.gap});
      if (is_there) top = std::max(top, height);
    }
    one.curve.edges.push_back(static_cast<double>(content.groups.size()));
  }
  double const step = nice_step(1.1 * top, 6, number_kind::any);
  result.y.most = step * std::ceil(1.1 * top / step);
  return result;
}

}  // namespace examples
