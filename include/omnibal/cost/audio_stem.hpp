// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The convolutions before the layers of an audio tower.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/detail/layer_tally.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// A convolution of an audio stem, in one or two dimensions. If `outputs` is 0, there is no
/// convolution. A matrix that joins `stride` positions into one is a convolution whose kernel
/// equals its stride.
struct stem_convolution {
  /// The channels of an input and of an output.
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  /// The number of positions that one output reads: 3, or 9 for a square of 3 x 3.
  std::int64_t kernel = 1;
  /// The number of input positions for each output position: 2, or 4 for a stride of 2 in two
  /// dimensions.
  std::int64_t stride = 1;
  bool has_bias = true;
  /// True if an activation follows.
  bool has_activation = true;
  /// The number of groups of channels; equal to `inputs` for a convolution of each single channel.
  std::int64_t groups = 1;
  /// True if a norm of the channels precedes the activation.
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
};

/// The first layer of an audio tower: convolutions of the spectrum (or of the samples), learned
/// positions and optionally a norm. The last convolution outputs one position for each token of
/// `micro_batch_work::clips`. Every tensor-parallel rank has the whole layer.
///
/// Whisper has `{.convolutions = {{{128, h, 3, 1}, {h, h, 3, 2}}}, .positions = 1500}`. Forward
/// FLOPs are 2 * positions * kernel * inputs * outputs / groups for each convolution. The layer
/// keeps the inputs of the convolutions and of the activations. Padding is not counted. Complexity,
/// memory, determinism and errors: as `transformer`.
struct audio_stem {
  /// The convolutions from the first to the last; unused entries at the end have no outputs.
  std::array<stem_convolution, 8> convolutions{};
  /// The number of learned positions, which have the width of the last convolution; 0 means none.
  std::int64_t positions = 0;
  /// True if a norm of the outputs of the first convolution follows it (Moonshine).
  bool has_norm = false;
  norm_kind norm = norm_kind::layer;
  /// The number of learned numbers that belong to no product, norm or bias.
  std::int64_t other_parameters = 0;
  training_mode training = training_mode::all;

  /// Returns the width of a token after the stem.
  [[nodiscard]] constexpr std::int64_t hidden() const {
    std::int64_t result = 0;
    for (stem_convolution const& one : convolutions) {
      if (one.outputs != 0) result = one.outputs;
    }
    return result;
  }

  /// Returns the cost of the stem for `batch.clips`.
  [[nodiscard]] layer_cost operator()(micro_batch_work const& batch,
                                      parallel_degrees const& degrees = {},
                                      byte_sizes const& bytes = {}) const {
    using detail::int128;
    using detail::tensor_sharding;
    detail::layer_tally tally(name, degrees, bytes, training, detail::recomputed_tensors::nothing);
    check();
    detail::check_sequences(name, "clips", batch.clips);
    int128 const tokens = tally.in_sequence(batch.clips.tokens);
    tally.parameters(int128{positions} * hidden() + other_parameters, tensor_sharding::whole);
    int128 input_bytes = 0;
    int128 places = tokens;
    for (std::size_t i = convolutions.size(); i-- > 0;) {
      stem_convolution const& one = convolutions[i];
      if (one.outputs == 0) continue;
      int128 const numbers = int128{one.kernel} * (one.inputs / one.groups) * one.outputs;
      int128 const output_bytes = tally.activation_bytes(places * one.outputs);
      tally.parameters(numbers + (one.has_bias ? one.outputs : 0), tensor_sharding::whole);
      tally.linear_flops(2 * places * numbers, tensor_sharding::whole);
      if (one.has_activation) {
        tally.keep(output_bytes, tensor_sharding::whole);
        tally.moved(2 * output_bytes, tensor_sharding::whole);
      }
      if (one.has_norm) detail::add_output_norm(tally, places, one.outputs, one.norm);
      if (i == 0 && has_norm) detail::add_output_norm(tally, places, one.outputs, norm);
      places *= one.stride;
      input_bytes = tally.activation_bytes(places * one.inputs);
      tally.keep(input_bytes, tensor_sharding::whole, detail::backward_use::for_weights);
      tally.widest(input_bytes + output_bytes, tensor_sharding::whole);
    }
    return tally.result({input_bytes, tensor_sharding::whole},
                        {tally.activation_bytes(tokens * hidden()), tensor_sharding::at_norm});
  }

 private:
  static constexpr char const* name = "audio_stem";

  void check() const {
    constexpr std::int64_t max_positions = std::int64_t{1} << 16;
    detail::check_width(name, "convolutions[0].outputs", convolutions[0].outputs);
    std::int64_t width = 0;
    for (stem_convolution const& one : convolutions) {
      if (one.outputs == 0) {
        width = -1;
        continue;
      }
      if (width < 0) detail::throw_invalid(name, "a convolution follows an entry without outputs");
      if (width != 0 && one.inputs != width) {
        detail::throw_number(name, "convolutions.inputs", one.inputs,
                             "must be the outputs of the convolution before, ", width);
      }
      detail::check_width(name, "convolutions.inputs", one.inputs);
      detail::check_width(name, "convolutions.outputs", one.outputs);
      detail::check_width(name, "convolutions.groups", one.groups);
      detail::check_multiple(name, "convolutions.inputs", one.inputs, "groups", one.groups);
      detail::check_multiple(name, "convolutions.outputs", one.outputs, "groups", one.groups);
      detail::check_between(name, "convolutions.kernel", one.kernel, 1, max_positions);
      detail::check_between(name, "convolutions.stride", one.stride, 1, max_positions);
      width = one.outputs;
    }
    detail::check_between(name, "positions", positions, 0, detail::max_width);
    detail::check_between(name, "other_parameters", other_parameters, 0, detail::max_width);
  }
};

}  // namespace omnibal::inline v0
