// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The profile of a language model with an audio tower, whose clips stand evenly in its tokens.

#include "model_file.hpp"

#include <omnibal/context/context_cost.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <cstdint>
#include <optional>

namespace examples {

/// An audio tower, and the clips in every `tokens` tokens of the samples.
struct clip_load {
  audio_part tower{};
  omnibal::repeated_length clips{};
  std::int64_t tokens = 1;

  /// The clips of a pack of so many tokens, the last one whole.
  [[nodiscard]] omnibal::sequences clips_in(std::int64_t pack_tokens) const;
};

/// A functor for `select_levels`: a language profile and what the tower adds to it.
///
/// The ranks that share a pack also share its clips, and all ranks share the state of the tower.
/// Each layer of the tower keeps its input only. The largest transient of the tower counts beside
/// that of the language model, although they do not run at the same time. Errors: as
/// `language_profile` and the layers.
struct heard_profile {
  omnibal::language_profile language{};
  std::optional<clip_load> sound{};

  [[nodiscard]] omnibal::level_reading operator()(omnibal::packing_level const& level) const;
  [[nodiscard]] omnibal::level_reading reading(omnibal::packing_level const& level,
                                               omnibal::sequences const& documents) const;

 private:
  [[nodiscard]] omnibal::level_reading with_sound(omnibal::level_reading const& silent,
                                                  omnibal::packing_level const& level,
                                                  std::int64_t tokens) const;
};

/// Adds the FLOPs of the clips to the seconds of a token, on devices that reach so many FLOPs a
/// second. The ranks of a group share its clips.
void add_sound(omnibal::context_cost& cost, clip_load const& sound, double flops);

}  // namespace examples
