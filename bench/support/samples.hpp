// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The data sets of the benchmarks: seeded generators, the same on every platform.

#include <omnibal/demand.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bench {

struct sample {
  std::int64_t images;
  std::int64_t tokens;
};

inline constexpr auto images_and_tokens = omnibal::demand_of(&sample::images, &sample::tokens);

enum class shape {
  /// Questions about images: 1 to 5 tiles of 256 tokens and a short text; 1134 tokens in the mean.
  real,
  /// Three quarters as above, one quarter text alone with a heavy tail; 0.4 % are above 4096
  /// tokens.
  mix,
  /// Images and tokens uniform and independent of each other, about equally scarce at 9/4096.
  independent,
  /// Text alone of 16 to 131072 tokens, most of it short; 3400 tokens in the mean.
  long_text,

  // What a packer may stumble over, at 9/4096.
  all_equal,
  all_tiny,
  all_huge,
  two_sizes,
  ascending,
  descending,
};

/// What a token counts as.
enum class token_unit {
  one,
  /// 2^28, so that a capacity of 4096 tokens is 2^40 and all amounts share a divisor.
  large,
  /// 2^28 and random lower bits, so that they share none.
  large_with_noise,
};

namespace detail {

using omnibal::rng::below;
using omnibal::rng::engine;

[[nodiscard]] inline std::int64_t uniform(engine& random, std::int64_t first, std::int64_t last) {
  return first +
         static_cast<std::int64_t>(below(random, static_cast<std::uint64_t>(last - first + 1)));
}

[[nodiscard]] inline sample question_about_image(engine& random) {
  std::int64_t const percent = uniform(random, 0, 99);
  std::int64_t const images = percent < 10 ? 1 : percent < 42 ? 3 : percent < 44 ? 4 : 5;
  std::int64_t const text = 40 + uniform(random, 0, 370) * uniform(random, 0, 370) / 400;
  return {images, 256 * images + text};
}

/// One octave of lengths is half as likely as the one below it.
[[nodiscard]] inline sample text_with_tail(engine& random) {
  int const octave = std::min(10, std::countr_zero(random()));
  return {0, uniform(random, 64, 127) << octave};
}

[[nodiscard]] inline sample long_text(engine& random) {
  std::int64_t const octave = std::min(uniform(random, 0, 12), uniform(random, 0, 12));
  return {0, uniform(random, 16, 31) << octave};
}

[[nodiscard]] inline sample draw(shape from, engine& random) {
  switch (from) {
    case shape::mix:
      return uniform(random, 0, 3) != 0 ? question_about_image(random) : text_with_tail(random);
    case shape::independent: return {uniform(random, 0, 5), uniform(random, 128, 2176)};
    case shape::long_text: return long_text(random);
    case shape::all_equal: return {3, 1000};
    case shape::all_tiny: return {uniform(random, 0, 127) == 0 ? 1 : 0, uniform(random, 1, 3)};
    case shape::all_huge: return {uniform(random, 5, 9), uniform(random, 2100, 4096)};
    case shape::two_sizes: return uniform(random, 0, 1) == 0 ? sample{5, 2500} : sample{2, 700};
    case shape::real:
    case shape::ascending:
    case shape::descending: break;
  }
  return question_about_image(random);
}

}  // namespace detail

[[nodiscard]] inline std::vector<sample> make_samples(shape from, std::size_t count,
                                                      token_unit unit = token_unit::one) {
  constexpr unsigned large_bits = 28;
  omnibal::rng::engine random(count);
  std::vector<sample> samples(count);
  for (sample& made : samples) made = detail::draw(from, random);
  auto const by_tokens = [](sample const& a, sample const& b) { return a.tokens < b.tokens; };
  if (from == shape::ascending) std::sort(samples.begin(), samples.end(), by_tokens);
  if (from == shape::descending) std::sort(samples.rbegin(), samples.rend(), by_tokens);
  if (unit == token_unit::one) return samples;
  for (sample& made : samples) {
    made.tokens <<= large_bits;
    if (unit == token_unit::large_with_noise) {
      made.tokens -= detail::uniform(random, 0, (std::int64_t{1} << large_bits) - 1);
    }
  }
  return samples;
}

/// 4096 tokens as a capacity in that unit.
[[nodiscard]] constexpr std::int64_t tokens_in(token_unit unit, std::int64_t tokens) {
  return unit == token_unit::one ? tokens : tokens << 28;
}

/// Samples and the capacity under which they are packed.
struct workload {
  std::string_view name;
  shape from;
  std::int64_t images;
  std::int64_t tokens;
  token_unit unit = token_unit::one;

  [[nodiscard]] omnibal::resources<2> capacity() const { return {images, tokens_in(unit, tokens)}; }
  [[nodiscard]] std::vector<sample> make(std::size_t count) const {
    return make_samples(from, count, unit);
  }
};

// The capacities at which packers are timed.
inline constexpr workload mix_9_4096{"mix 9/4096", shape::mix, 9, 4096};
inline constexpr workload real_18_6016{"real 18/6016", shape::real, 18, 6016};
inline constexpr workload mix_9_large{"mix 9/2^40", shape::mix, 9, 4096, token_unit::large};
inline constexpr workload mix_9_noise{"mix with noise 9/2^40", shape::mix, 9, 4096,
                                      token_unit::large_with_noise};
inline constexpr workload independent_9_4096{"independent 9/4096", shape::independent, 9, 4096};
inline constexpr workload independent_30_8192{"independent 30/8192", shape::independent, 30, 8192};
/// For one resource, the tokens.
inline constexpr workload long_131072{"long 131072", shape::long_text, 1, 131072};

}  // namespace bench
