// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers whose activations are computed again instead of kept, and the bytes that this saves.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/ATen.h>

namespace train_vlm {

/// `layer(input)`, keeping nothing but `input`: the backward pass runs the layer again.
[[nodiscard]] at::Tensor recomputed(std::function<at::Tensor(at::Tensor const&)> layer,
                                    at::Tensor const& input);

/// The bytes of tensors that were made on this thread while a forward and a backward pass ran.
struct memory_use {
  /// The most at a time.
  std::int64_t peak = 0;
  /// The most before the backward pass comes to a recomputed layer, and from there to the next one:
  /// an element more than there are recomputed layers.
  std::vector<std::int64_t> phases;
};

[[nodiscard]] memory_use measure_memory(std::function<void()> const& body);

/// Begins a phase if the memory of this thread is measured; returns its number, otherwise zero.
std::size_t begin_memory_phase();

}  // namespace train_vlm
