#pragma once

/// \file
/// A data set with the lengths of long-context fine-tuning: mostly short conversations, and few
/// documents of up to 128K tokens that hold a sixth of all tokens.

#include "dataset.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace examples {

/// Lengths from `first` to 2 * `first` - 1, all equally likely.
struct length_octave {
  std::int64_t first;
  /// How many of 10,000 samples have one of these lengths.
  std::uint32_t share;
};

/// The shape of conversations with a log-normal length, and a flat tail of documents.
inline constexpr std::array long_context_octaves{
    length_octave{64, 600},   length_octave{128, 1400},  length_octave{256, 2300},
    length_octave{512, 2600}, length_octave{1024, 1900}, length_octave{2048, 840},
    length_octave{4096, 250}, length_octave{8192, 73},   length_octave{16384, 15},
    length_octave{32768, 12}, length_octave{65536, 10}};

/// `count` samples without images. Integers only: the same on every platform.
[[nodiscard]] dataset long_context_mix(std::size_t count, std::uint64_t seed);

}  // namespace examples
