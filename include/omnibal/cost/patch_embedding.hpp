#pragma once

/// \file
/// From pixels to vectors.

#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The first layer of a vision tower: a matrix from the pixels of a patch to its width, class
/// tokens and learned positions. Every tensor-parallel rank has all of it.
///
/// Forward FLOPs 2 * patches * channels * patch_size^2 * hidden; kept are the pixels. Class tokens
/// of images of their own size are counted as patches. Complexity, memory, determinism and errors
/// as `transformer`.
struct patch_embedding {
  std::int64_t hidden = 0;
  /// The side of a tile in pixels; 0: there are no tiles.
  std::int64_t image_size = 0;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t class_tokens = 0;
  /// Learned positions; for tiles one for each token.
  std::int64_t positions = 0;
  bool has_bias = true;
  training_mode training = training_mode::all;

  /// What the layer costs for `batch.tiles` and `batch.images`.
  [[nodiscard]] layer_cost operator()(workload const& batch, parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::held;
    using detail::int128;
    detail::layer_tally tally(name, degrees, bytes, training, detail::remade::nothing);
    check();
    std::int64_t const in_tile =
        image_size == 0 ? 0 : detail::tile_tokens(name, image_size, patch_size, class_tokens);
    auto const images = detail::image_tokens(name, batch, in_tile);
    int128 const rows = tally.in_sequence(images.tokens);
    int128 const patches =
        tally.in_sequence(int128{images.tokens} - int128{batch.tiles} * class_tokens);
    int128 const pixels = int128{channels} * patch_size * patch_size;
    int128 const input_bytes = tally.activation_bytes(patches * pixels);
    int128 const output_bytes = tally.activation_bytes(rows * hidden);
    tally.parameters((pixels + (has_bias ? 1 : 0) + class_tokens + positions) * hidden,
                     held::whole);
    tally.linear_flops(2 * patches * pixels * hidden, held::whole);
    tally.keep(input_bytes, held::whole, detail::needed::for_weights);
    tally.moved(2 * output_bytes, held::whole);
    tally.widest(input_bytes + output_bytes, held::whole);
    return tally.result({input_bytes, held::whole}, {output_bytes, held::at_norm});
  }

 private:
  static constexpr char const* name = "patch_embedding";

  void check() const {
    constexpr std::int64_t most_pixels = std::int64_t{1} << 12;
    detail::check_width(name, "hidden", hidden);
    detail::check_between(name, "patch_size", patch_size, 1, most_pixels);
    detail::check_between(name, "channels", channels, 1, most_pixels);
    detail::check_between(name, "class_tokens", class_tokens, 0, detail::most_width);
    detail::check_between(name, "positions", positions, 0, detail::most_width);
  }
};

}  // namespace omnibal::inline v0
