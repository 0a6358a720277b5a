// SPDX-License-Identifier: Apache-2.0
#include "heard_profile.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <cstddef>

namespace examples {

omnibal::sequences clip_load::clips_in(std::int64_t pack_tokens) const {
  std::int64_t const whole = pack_tokens / tokens * clips.count;
  std::int64_t const rest = (pack_tokens % tokens * clips.count + tokens - 1) / tokens;
  return omnibal::equal_sequences({.count = whole + rest, .length = clips.length});
}

omnibal::level_reading heard_profile::operator()(omnibal::packing_level const& level) const {
  return with_sound(language(level), level, level.length);
}

omnibal::level_reading heard_profile::reading(omnibal::packing_level const& level,
                                              omnibal::sequences const& documents) const {
  return with_sound(language.reading(level, documents), level, documents.tokens);
}

omnibal::level_reading heard_profile::with_sound(omnibal::level_reading const& silent,
                                                 omnibal::packing_level const& level,
                                                 std::int64_t tokens) const {
  if (!sound) return silent;
  omnibal::parallel_degrees degrees = language.degrees;
  degrees.sequence = level.sequence;
  degrees.data = language.ranks / level.sequence;
  omnibal::level_reading result = silent;
  std::int64_t transient = 0;
  omnibal::micro_batch_work const batch{.clips = sound->clips_in(tokens)};
  for (auto const& layer : omnibal::layer_costs(sound->tower, batch, degrees)) {
    auto const& chosen = layer[omnibal::recompute_choice::full];
    result.free_bytes -= layer.state_bytes() + chosen.kept_bytes;
    result.nanoseconds += language.device(layer.forward) + language.device(layer.backward) +
                          language.device(chosen.extra);
    transient = std::max(transient, chosen.transient_bytes);
  }
  result.free_bytes -= transient;
  return result;
}

void add_sound(omnibal::context_cost& cost, clip_load const& sound, double flops) {
  omnibal::micro_batch_work const batch{.clips = omnibal::equal_sequences(sound.clips)};
  double work = 0;
  for (auto const& layer : omnibal::layer_costs(sound.tower, batch)) {
    work += static_cast<double>(layer.flops());
  }
  double const seconds = work / static_cast<double>(sound.tokens) / flops;
  for (std::size_t degree = 1; degree <= cost.degrees.size(); ++degree) {
    cost.degrees[degree - 1].linear += seconds / static_cast<double>(degree);
  }
}

}  // namespace examples
