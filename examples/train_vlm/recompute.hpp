#pragma once

/// \file
/// Layers whose activations are computed again instead of kept, and the bytes that this saves.

#include <cstdint>
#include <functional>

#include <ATen/ATen.h>

namespace train_vlm {

/// `layer(input)`, keeping nothing but `input`: the backward pass runs the layer again.
[[nodiscard]] at::Tensor recomputed(std::function<at::Tensor(at::Tensor const&)> layer,
                                    at::Tensor const& input);

/// The most bytes of tensors at a time that were made on this thread while `body` ran.
[[nodiscard]] std::int64_t peak_bytes(std::function<void()> const& body);

}  // namespace train_vlm
