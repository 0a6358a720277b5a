// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stages of a pipeline for a trainer: the layers of towers and language model in one layout,
/// and the text for Megatron-LM where it can say the same. docs/reference/files.md describes both.

#include "model_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

inline constexpr std::string_view pipeline_layout_format = "omnibal pipeline layout";

/// The parts of a model whose layers have numbers of their own, in the order of a pipeline.
enum class layout_part { vision, audio, connector, language, prediction };
inline constexpr std::array<std::string_view, 5> layout_part_names{"vision", "audio", "connector",
                                                                   "language", "prediction"};

/// The layers [first, end) of a part.
struct layer_range {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

struct layout_stage {
  /// By `layout_part`; empty ranges for parts that have no layer here.
  std::array<layer_range, layout_part_names.size()> parts{};
  /// Layers that a model has once: "patch embedding", "tower norm", "audio stem", "audio norm".
  std::vector<std::string> single_layers{};
  bool has_embedding = false;
  /// The losses that the stage computes: "main", "prediction 1", "prediction 2".
  std::vector<std::string> losses{};
  /// The choice of each layer of the stage, in order.
  std::vector<std::string> recompute{};
};

/// Stage s is chunk s / devices of device s % devices.
struct pipeline_layout {
  std::string model;
  std::size_t devices = 1;
  /// Of the model: the layers of each part, its single layers and its losses.
  std::array<std::uint32_t, layout_part_names.size()> layers{};
  std::vector<std::string> single_layers{};
  std::vector<std::string> losses{};
  bool has_embedding = false;
  std::vector<layout_stage> stages{};
};

/// The layout of a model with these kinds of layers and boundaries of stages. `choices` are by
/// layer, as `omnibal::recompute_choice`. Errors: `std::invalid_argument` unless there is a choice
/// for each layer, and those of `check_layout`.
[[nodiscard]] pipeline_layout layout_of(std::string const& model,
                                        std::span<std::string_view const> kinds,
                                        std::int64_t prediction_layers,
                                        std::span<std::uint32_t const> boundaries,
                                        std::span<std::uint32_t const> choices,
                                        std::size_t devices);

/// Throws `std::invalid_argument`, with the stage and what is wrong with it, unless a trainer can
/// run the layout: each layer of each part once and in order, towers and connectors before the
/// embedding, the embedding before the language model, the losses on one stage and behind all
/// layers that they need, a choice for each layer, and the same number of stages on each device.
void check_layout(pipeline_layout const& layout);

/// Stages of the language model in Megatron-LM's letters.
struct megatron_export {
  /// The argument of --pipeline-model-parallel-layout; empty where there is none.
  std::string layout;
  /// What the layout is for, or why there is none. A sentence.
  std::string remark;
};

/// Returns why Megatron-LM's letters cannot express these stages of `devices` devices; empty if
/// they can. The letters are for language models only. Towers are either on the stages before the
/// language model, with one chunk on each device, or whole on the first stage with the embedding,
/// as in Megatron-Bridge. All layers of multi-token prediction are on one stage, in the last chunk
/// of its device.
[[nodiscard]] std::string megatron_obstacle(model_description const& model,
                                            std::span<std::uint32_t const> boundaries,
                                            std::size_t devices);

/// The letters, and on which stages they are. Precondition: there is no obstacle.
[[nodiscard]] megatron_export megatron_letters(model_description const& model,
                                               std::span<std::uint32_t const> boundaries);

/// Writes a layout as JSON. Errors: as `check_layout`.
void write_layout(pipeline_layout const& layout, megatron_export const& megatron,
                  std::ostream& out);

}  // namespace examples
