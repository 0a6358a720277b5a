// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layers of a vision-language model as a trainer may keep them for cutting them into stages.

#include "model_file.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// By `omnibal::recompute_choice`.
inline constexpr std::array<std::string_view, 3> recompute_names{"none", "selective", "full"};

/// The kinds of layers of which every model has many, those of the tower and of the language model.
inline constexpr std::array<std::string_view, 2> tower_kinds{"vision layer", "language layer"};

/// What each layer is, from the first to the last.
[[nodiscard]] std::vector<std::string_view> layer_kinds(model_description const& model);

/// The number of the embedding, with which the language model begins.
[[nodiscard]] std::size_t first_language_layer(std::span<std::string_view const> kinds);

/// What a layer takes on one rank for one micro-batch.
struct vlm_layer {
  std::string_view kind;
  std::int64_t parameters = 0;
  /// Forward and backward, with what is made again.
  std::int64_t nanoseconds = 0;
  /// Parameters, gradients and optimizer.
  std::int64_t state_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t transient_bytes = 0;
  /// Sent to the next stage where the model is cut after this layer.
  std::int64_t cut_bytes = 0;
};

/// How a micro-batch is trained.
struct training_setting {
  omnibal::micro_batch_work batch{};
  omnibal::parallel_degrees degrees{};
  omnibal::device_model device{};
  /// Of all kinds of layers of which a model has many; the others keep everything.
  omnibal::recompute_choice recomputed = omnibal::recompute_choice::selective;
};

/// The choice of a layer of this kind where a program recomputes the layers of which a model has
/// many: the others keep everything.
[[nodiscard]] omnibal::recompute_choice choice_of(std::string_view kind,
                                                  omnibal::recompute_choice recomputed);

/// The modeled layers, from the first to the last. Where the tensor-parallel ranks do not divide
/// the heads of the vision tower, heads are added until they do.
[[nodiscard]] std::vector<vlm_layer> model_layers(model_description const& model,
                                                  training_setting const& setting);

/// `0 patch embedding, 1-45 vision layer, 46 projector`: the runs of equal kinds and their numbers.
[[nodiscard]] std::string kinds_of(std::span<vlm_layer const> layers);

}  // namespace examples
