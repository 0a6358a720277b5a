#pragma once

/// \file
/// From tiles to tokens.

#include <omnibal/config.hpp>
#include <omnibal/cost/workload.hpp>
#include <omnibal/detail/check_numbers.hpp>
#include <omnibal/detail/conversions.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Patches and class tokens of a tile.
[[nodiscard]] constexpr std::int64_t tile_tokens(std::string_view function, std::int64_t image_size,
                                                 std::int64_t patch_size,
                                                 std::int64_t class_tokens) {
  constexpr std::int64_t most_pixels = std::int64_t{1} << 16;
  check_between(function, "image_size", image_size, 1, most_pixels);
  check_between(function, "patch_size", patch_size, 1, most_pixels);
  check_between(function, "class_tokens", class_tokens, 0, most_width);
  check_multiple(function, "image_size", image_size, "patch_size", patch_size);
  std::int64_t const side = image_size / patch_size;
  return side * side + class_tokens;
}

/// Throws unless the tiles and images of a workload are possible.
constexpr void check_images(std::string_view function, workload const& batch,
                            std::int64_t tokens_of_tile) {
  check_sequences(function, "images", batch.images);
  check_between(function, "tiles", batch.tiles, 0, most_width);
  if (batch.tiles > 0 && tokens_of_tile == 0) {
    throw_number(function, "tiles", batch.tiles, "but the layer has no size of tiles");
  }
}

/// All tokens of tiles and images.
[[nodiscard]] constexpr sequences image_tokens(std::string_view function, workload const& batch,
                                               std::int64_t tokens_of_tile) {
  check_images(function, batch, tokens_of_tile);
  int128 const tokens = int128{batch.tiles} * tokens_of_tile + batch.images.tokens;
  int128 const squares =
      int128{batch.tiles} * tokens_of_tile * tokens_of_tile + batch.images.squares;
  return {.count = batch.tiles + batch.images.count,
          .tokens = checked_cast<std::int64_t>(function, "the number of tokens", tokens),
          .squares = checked_cast<std::int64_t>(function, "the sum of the squares of the tokens",
                                                squares)};
}

}  // namespace omnibal::inline v0::detail
