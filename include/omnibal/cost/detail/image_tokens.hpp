// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The tokens of tiles and images in a vision tower.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Returns the number of patches and class tokens of a tile.
[[nodiscard]] constexpr std::int64_t tile_tokens(std::string_view function, std::int64_t image_size,
                                                 std::int64_t patch_size,
                                                 std::int64_t class_tokens) {
  constexpr std::int64_t max_pixels = std::int64_t{1} << 16;
  check_between(function, "image_size", image_size, 1, max_pixels);
  check_between(function, "patch_size", patch_size, 1, max_pixels);
  check_between(function, "class_tokens", class_tokens, 0, max_width);
  check_multiple(function, "image_size", image_size, "patch_size", patch_size);
  std::int64_t const side = image_size / patch_size;
  return side * side + class_tokens;
}

/// Throws unless the numbers of tiles and images of a micro-batch are valid.
constexpr void check_images(std::string_view function, micro_batch_work const& batch,
                            std::int64_t tokens_of_tile) {
  check_sequences(function, "images", batch.images);
  check_between(function, "tiles", batch.tiles, 0, max_width);
  if (batch.tiles > 0 && tokens_of_tile == 0) {
    throw_number(function, "tiles", batch.tiles, "but the layer has no size of tiles");
  }
}

/// Returns the sequences of all tiles and images. `together` consecutive tiles form one sequence.
[[nodiscard]] constexpr sequences image_tokens(std::string_view function,
                                               micro_batch_work const& batch,
                                               std::int64_t tokens_of_tile,
                                               std::int64_t together = 1) {
  check_images(function, batch, tokens_of_tile);
  check_width(function, "tiles_of_image", together);
  std::int64_t const groups = batch.tiles / together;
  std::int64_t const of_last = batch.tiles % together * tokens_of_tile;
  int128 const of_group = int128{together} * tokens_of_tile;
  int128 const tokens = int128{batch.tiles} * tokens_of_tile + batch.images.tokens;
  int128 const squares =
      groups * of_group * of_group + int128{of_last} * of_last + batch.images.squares;
  sequences result{.count = groups + (of_last == 0 ? 0 : 1) + batch.images.count,
                   .tokens = checked_cast<std::int64_t>(function, "the number of tokens", tokens),
                   .squares = checked_cast<std::int64_t>(
                       function, "the sum of the squares of the tokens", squares),
                   .spans = batch.images.spans};
  for (span_squares& within : result.spans) {
    // The sum cannot overflow, because it is at most the sum of all squares.
    if (within.span.kind == span_kind::whole) continue;
    within.squares += groups * within.span.squares(groups == 0 ? 0 : together * tokens_of_tile) +
                      within.span.squares(of_last);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
