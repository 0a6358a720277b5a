// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A data set with the lengths of an instruction-tuning mixture; docs/evidence/synthetic_data.md describes
/// it.

#include "dataset.hpp"

#include <cstddef>
#include <cstdint>

namespace examples {

/// `count` samples: questions about one image, documents, several images, and text alone, with
/// tiled images of 256 tokens each and log-normal text. Integers only: the same on every platform.
[[nodiscard]] dataset synthetic_lengths(std::size_t count, std::uint64_t seed);

}  // namespace examples
