// SPDX-License-Identifier: Apache-2.0
#include "long_context_mix.hpp"

#include <omnibal/rng/engine.hpp>

#include <span>
#include <string>

namespace examples {

dataset long_context_mix(length_mix mix, std::size_t count, std::uint64_t seed) {
  using omnibal::rng::below;
  bool const is_broad = mix == length_mix::broad;
  std::span<length_octave const> const octaves =
      is_broad ? std::span<length_octave const>(broad_octaves) : two_source_octaves;
  dataset data;
  data.samples.reserve(count);
  omnibal::rng::engine random(seed);
  for (std::size_t i = 0; i != count; ++i) {
    std::uint64_t ticket = below(random, 10'000);
    auto octave = octaves.begin();
    for (; ticket >= octave->share; ++octave) ticket -= octave->share;
    auto const beyond = below(random, static_cast<std::uint64_t>(octave->first));
    data.samples.push_back({0, octave->first + static_cast<std::int64_t>(beyond)});
  }
  data.sources.push_back({std::string(is_broad ? "broad" : "two-source") +
                              " long-context mix (seed " + std::to_string(seed) + ")",
                          count});
  return data;
}

}  // namespace examples
