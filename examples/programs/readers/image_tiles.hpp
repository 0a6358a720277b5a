// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Tiles of an image from its width and height.

#include <cmath>
#include <cstdint>
#include <limits>

namespace examples {

/// How an image is cut: into a grid of square tiles whose shape is nearest to its own.
struct tile_rule {
  /// Pixels along a side of a tile.
  std::int64_t size = 448;
  /// At most so many tiles; more than one get a thumbnail beside them.
  std::int64_t most = 12;
};

/// The tiles of an image of so many pixels, the thumbnail included; none where it has no pixels.
///
/// Of all grids of at most `most` tiles it takes the one whose ratio of width to height is nearest,
/// of equally near ones a larger one where the image has more than half of its pixels.
///
/// Source: the preprocessing of InternVL 1.5 (Chen et al., 2024).
[[nodiscard]] inline std::int64_t count_tiles(std::int64_t width, std::int64_t height,
                                              tile_rule const& rule) {
  if (width == 0 || height == 0) return 0;
  auto const wide = static_cast<double>(width);
  auto const high = static_cast<double>(height);
  auto const tile = static_cast<double>(rule.size);
  double nearest = std::numeric_limits<double>::infinity();
  std::int64_t tiles = 1;
  for (std::int64_t count = 1; count <= rule.most; ++count) {
    for (std::int64_t columns = 1; columns <= count; ++columns) {
      if (count % columns != 0) continue;
      std::int64_t const rows = count / columns;
      double const ratio = static_cast<double>(columns) / static_cast<double>(rows);
      double const distance = std::abs(wide / high - ratio);
      double const half_of_grid = tile * tile * static_cast<double>(count) / 2;
      if (distance < nearest || (distance == nearest && wide * high > half_of_grid)) {
        nearest = distance;
        tiles = count;
      }
    }
  }
  return tiles == 1 ? 1 : tiles + 1;
}

}  // namespace examples
