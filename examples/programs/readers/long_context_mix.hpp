// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Data sets with the lengths of long-context fine-tuning: mostly short conversations, and few
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

/// Conversations and documents from two sources with a gap in between, by the published statistics
/// of public sets. Conversations are log-normal with sigma 1, below 4096 tokens, 714 in the mean,
/// as those of the Tulu 3 mixture (670,426,314 tokens in 939,343 samples, trained with at most
/// 4096). 48 of 10,000 are documents from 2K to 128K tokens, as many in each octave, 32K in the
/// mean, as in LongCite-45k (44,600 documents up to 128,000 words, 5.73 GB); so many that about the
/// share of the tokens is long that HBP reports (CR .173).
inline constexpr std::array two_source_octaves{
    length_octave{16, 37},     length_octave{32, 218},   length_octave{64, 797},
    length_octave{128, 1840},  length_octave{256, 2676}, length_octave{512, 2453},
    length_octave{1024, 1416}, length_octave{2048, 523}, length_octave{4096, 8},
    length_octave{8192, 8},    length_octave{16384, 8},  length_octave{32768, 8},
    length_octave{65536, 8}};

/// One broad distribution without a gap, of no particular set: a fifth of the tokens is in samples
/// from 4K to 16K.
inline constexpr std::array broad_octaves{
    length_octave{64, 600},   length_octave{128, 1400},  length_octave{256, 2300},
    length_octave{512, 2600}, length_octave{1024, 1900}, length_octave{2048, 840},
    length_octave{4096, 250}, length_octave{8192, 73},   length_octave{16384, 15},
    length_octave{32768, 12}, length_octave{65536, 10}};

enum class length_mix { two_sources, broad };

/// `count` samples without images. Integers only: the same on every platform.
[[nodiscard]] dataset long_context_mix(length_mix mix, std::size_t count, std::uint64_t seed);

}  // namespace examples
