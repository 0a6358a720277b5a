#include "long_context_mix.hpp"

#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>

#include <string>

namespace examples {

dataset long_context_mix(std::size_t count, std::uint64_t seed) {
  using omnibal::rng::below;
  dataset data;
  data.samples.reserve(count);
  omnibal::rng::engine random(seed);
  for (std::size_t i = 0; i != count; ++i) {
    std::uint64_t ticket = below(random, 10'000);
    auto octave = long_context_octaves.begin();
    for (; ticket >= octave->share; ++octave) ticket -= octave->share;
    auto const beyond = below(random, static_cast<std::uint64_t>(octave->first));
    data.samples.push_back({0, octave->first + static_cast<std::int64_t>(beyond)});
  }
  data.sources.push_back({"long-context mix (seed " + std::to_string(seed) + ")", count});
  return data;
}

}  // namespace examples
