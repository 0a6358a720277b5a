// SPDX-License-Identifier: Apache-2.0
#include "pipeline_layout.hpp"

#include "pack_options.hpp"
#include "vlm_layers.hpp"

#include <omnibal/plan/write_plan.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using json = nlohmann::ordered_json;

std::optional<layout_part> part_of(std::string_view kind) {
  if (kind == tower_kinds[0]) return layout_part::vision;
  if (kind == "audio layer") return layout_part::audio;
  if (kind == "projector" || kind == "audio projector" || kind == "resampler layer") {
    return layout_part::connector;
  }
  if (kind == tower_kinds[1] || kind == "cross-attention layer") return layout_part::language;
  if (kind == "prediction layer") return layout_part::prediction;
  return std::nullopt;
}

std::size_t number_of(layout_part part) { return static_cast<std::size_t>(part); }

std::vector<std::string> losses_of(std::int64_t prediction_layers) {
  std::vector<std::string> result{"main"};
  for (std::int64_t depth = 1; depth <= prediction_layers; ++depth) {
    result.push_back("prediction " + std::to_string(depth));
  }
  return result;
}

/// The layers of a stage.
std::size_t layers_in(layout_stage const& stage) {
  std::size_t count =
      stage.single_layers.size() + (stage.has_embedding ? 1 : 0) + (stage.losses.empty() ? 0 : 1);
  for (layer_range const& range : stage.parts) count += range.end - range.first;
  return count;
}

[[noreturn]] void fail(std::string const& problem) {
  throw std::invalid_argument("the layout cannot run: " + problem);
}

[[noreturn]] void fail_at(std::size_t stage, std::string const& problem) {
  fail("stage " + std::to_string(stage) + " " + problem);
}

void check_parts(pipeline_layout const& layout) {
  for (std::size_t p = 0; p != layout_part_names.size(); ++p) {
    std::string const name(layout_part_names[p]);
    std::uint32_t next = 0;
    for (std::size_t s = 0; s != layout.stages.size(); ++s) {
      auto const [first, end] = layout.stages[s].parts[p];
      if (first == end) continue;
      if (first != next || end < first) {
        fail_at(s, "has the " + name + " layers " + std::to_string(first) + " to " +
                       std::to_string(end) + ", must begin with " + std::to_string(next));
      }
      next = end;
    }
    if (next == layout.layers[p]) continue;
    fail("the stages have " + std::to_string(next) + " " + name + " layers, the model has " +
         std::to_string(layout.layers[p]));
  }
}

/// Every name of the model on one stage.
void check_names(pipeline_layout const& layout, std::vector<std::string> const& expected,
                 std::vector<std::string> layout_stage::*names) {
  std::vector<std::string> found;
  for (layout_stage const& stage : layout.stages) {
    auto const& here = stage.*names;
    found.insert(found.end(), here.begin(), here.end());
  }
  for (std::string const& name : expected) {
    auto const count = std::ranges::count(found, name);
    if (count != 1)
      fail("\"" + name + "\" is on " + std::to_string(count) + " stages, must be on 1");
  }
  for (std::string const& name : found) {
    if (std::ranges::find(expected, name) == expected.end()) {
      fail("\"" + name + "\" is no part of the model");
    }
  }
}

/// A stage as a number in the order of the model: nothing that comes later in a model may be on an
/// earlier stage.
void check_order(pipeline_layout const& layout) {
  constexpr std::array<std::string_view, 5> steps{"a tower", "the embedding", "the language model",
                                                  "multi-token prediction", "the losses"};
  std::size_t reached = 0;
  for (std::size_t s = 0; s != layout.stages.size(); ++s) {
    layout_stage const& stage = layout.stages[s];
    auto const has = [&](layout_part part) {
      layer_range const& range = stage.parts[number_of(part)];
      return range.first != range.end;
    };
    std::array<bool, steps.size()> const here{has(layout_part::vision) || has(layout_part::audio) ||
                                                  has(layout_part::connector) ||
                                                  !stage.single_layers.empty(),
                                              stage.has_embedding, has(layout_part::language),
                                              has(layout_part::prediction), !stage.losses.empty()};
    auto const first = static_cast<std::size_t>(std::ranges::find(here, true) - here.begin());
    if (first < reached) {
      fail_at(s, "has " + std::string(steps[first]) + " behind " + std::string(steps[reached]));
    }
    for (std::size_t step = 0; step != steps.size(); ++step) {
      if (here[step]) reached = step;
    }
  }
}

void check_losses(pipeline_layout const& layout) {
  for (std::size_t s = 0; s != layout.stages.size(); ++s) {
    auto const& losses = layout.stages[s].losses;
    if (losses.empty() || losses == layout.losses) continue;
    fail_at(s, "has " + std::to_string(losses.size()) +
                   " losses, must have all losses of the model or none");
  }
}

/// The parts before the language model.
std::string towers_of(model_description const& model) {
  if (!model.audio) return "the vision tower";
  return model.vision ? "the vision and audio part" : "the audio tower";
}

std::size_t stage_of(std::span<std::uint32_t const> boundaries, std::uint32_t layer) {
  auto const after = std::upper_bound(boundaries.begin(), boundaries.end(), layer);
  return static_cast<std::size_t>(after - boundaries.begin()) - 1;
}

std::uint32_t border_of(model_description const& model) {
  return static_cast<std::uint32_t>(first_language_layer(layer_kinds(model)));
}

json stage_json(pipeline_layout const& layout, std::size_t s) {
  layout_stage const& stage = layout.stages[s];
  json result{{"stage", s}, {"device", s % layout.devices}, {"chunk", s / layout.devices}};
  for (std::size_t p = 0; p != layout_part_names.size(); ++p) {
    if (layout.layers[p] == 0) continue;
    result[std::string(layout_part_names[p])] = {stage.parts[p].first, stage.parts[p].end};
  }
  result["single_layers"] = stage.single_layers;
  result["embedding"] = stage.has_embedding;
  result["losses"] = stage.losses;
  result["recompute"] = stage.recompute;
  return result;
}

}  // namespace

pipeline_layout layout_of(std::string const& model, std::span<std::string_view const> kinds,
                          std::int64_t prediction_layers, std::span<std::uint32_t const> boundaries,
                          std::span<std::uint32_t const> choices, std::size_t devices) {
  if (choices.size() != kinds.size() || boundaries.empty() || boundaries.front() != 0 ||
      boundaries.back() != kinds.size()) {
    throw std::invalid_argument("layout_of: " + std::to_string(kinds.size()) + " layers, " +
                                std::to_string(choices.size()) +
                                " choices: every layer must have a stage and a choice");
  }
  pipeline_layout result{.model = model, .devices = devices};
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    layout_stage& stage = result.stages.emplace_back();
    for (std::size_t p = 0; p != layout_part_names.size(); ++p) {
      stage.parts[p] = {result.layers[p], result.layers[p]};
    }
    for (std::uint32_t l = boundaries[s]; l != boundaries[s + 1]; ++l) {
      stage.recompute.emplace_back(recompute_names.at(choices[l]));
      if (auto const part = part_of(kinds[l])) {
        stage.parts[number_of(*part)].end = ++result.layers[number_of(*part)];
      } else if (kinds[l] == "embedding") {
        stage.has_embedding = result.has_embedding = true;
      } else if (kinds[l] == "head") {
        stage.losses = result.losses = losses_of(prediction_layers);
      } else {
        stage.single_layers.emplace_back(kinds[l]);
        result.single_layers.emplace_back(kinds[l]);
      }
    }
  }
  check_layout(result);
  return result;
}

void check_layout(pipeline_layout const& layout) {
  if (layout.stages.empty()) fail("there are no stages");
  if (layout.devices == 0 || layout.stages.size() % layout.devices != 0) {
    fail(std::to_string(layout.stages.size()) + " stages are no multiple of " +
         std::to_string(layout.devices) + " devices");
  }
  check_parts(layout);
  check_names(layout, layout.single_layers, &layout_stage::single_layers);
  check_names(layout, layout.losses, &layout_stage::losses);
  auto const embeddings = std::ranges::count(layout.stages, true, &layout_stage::has_embedding);
  if (embeddings != (layout.has_embedding ? 1 : 0)) {
    fail("the embedding is on " + std::to_string(embeddings) + " stages");
  }
  check_losses(layout);
  check_order(layout);
  for (std::size_t s = 0; s != layout.stages.size(); ++s) {
    std::size_t const count = layers_in(layout.stages[s]);
    std::size_t const choices = layout.stages[s].recompute.size();
    if (count == choices) continue;
    fail_at(s, "has " + std::to_string(count) + " layers and " + std::to_string(choices) +
                   " choices of recomputation");
  }
}

std::string megatron_obstacle(model_description const& model,
                              std::span<std::uint32_t const> boundaries, std::size_t devices) {
  if (model.cross || has_cross_attention(*model.language)) {
    return "the layout has no letter for layers of cross-attention";
  }
  std::uint32_t const border = border_of(model);
  std::size_t const stage = stage_of(boundaries, border);
  std::size_t const stages = boundaries.size() - 1;
  if (stage != 0 && stages != devices) {
    return towers_of(model) + " is on the virtual stages 0 to " +
           std::to_string(boundaries[stage] == border ? stage - 1 : stage) +
           ", and with several chunks the layout needs it whole on the first one";
  }
  if (stage != 0 && boundaries[stage] != border) {
    return "its stage " + std::to_string(stage) + " has the layers " +
           std::to_string(boundaries[stage]) + " to " + std::to_string(boundaries[stage + 1] - 1) +
           ", of which those before " + std::to_string(border) + " belong to " + towers_of(model) +
           ", and the layout has letters for language models only";
  }
  auto const predictions = static_cast<std::uint32_t>(model.language->prediction_layers);
  std::uint32_t const head = boundaries.back() - 1;
  if (predictions == 0) return {};
  std::size_t const first = stage_of(boundaries, head - predictions);
  std::size_t const last = stage_of(boundaries, head - 1);
  if (first + devices < stages) {
    return "its layers of multi-token prediction begin in chunk " +
           std::to_string(first / devices) + " of device " + std::to_string(first % devices) +
           ", and Megatron-LM runs them in the last chunk of a device";
  }
  if (first == last) return {};
  return "its layers of multi-token prediction are on the stages " + std::to_string(first) +
         " to " + std::to_string(last) + ", and Megatron-LM runs all of them on one stage";
}

megatron_export megatron_letters(model_description const& model,
                                 std::span<std::uint32_t const> boundaries) {
  std::uint32_t const border = border_of(model);
  bool const has_tower_first = border != 0 && stage_of(boundaries, border) == 0;
  std::vector<std::uint32_t> own;
  if (has_tower_first) own.push_back(0);
  for (std::uint32_t const boundary : boundaries) {
    if (boundary >= border) own.push_back(boundary - border);
  }
  auto const predicted = static_cast<std::uint32_t>(model.language->prediction_layers);
  megatron_export result;
  omnibal::write_megatron_layout(own, omnibal::language_model_letters{own.back(), predicted},
                                 std::back_inserter(result.layout));
  if (border == 0) {
    result.remark = "all stages";
  } else if (has_tower_first) {
    result.remark = "all stages; " + towers_of(model) +
                    " is on stage 0 before the embedding, as Megatron-Bridge builds it";
  } else {
    result.remark = "the language model, on the stages from " +
                    std::to_string(stage_of(boundaries, border)) + " on; " + towers_of(model) +
                    " is on those before";
  }
  return result;
}

void write_layout(pipeline_layout const& layout, megatron_export const& megatron,
                  std::ostream& out) {
  check_layout(layout);
  json layers;
  for (std::size_t p = 0; p != layout_part_names.size(); ++p) {
    if (layout.layers[p] != 0) layers[std::string(layout_part_names[p])] = layout.layers[p];
  }
  json stages = json::array();
  for (std::size_t s = 0; s != layout.stages.size(); ++s) stages.push_back(stage_json(layout, s));
  json const result{{"format", pipeline_layout_format},
                    {"format_version", 1},
                    {"library_version", library_version()},
                    {"model", layout.model},
                    {"devices", layout.devices},
                    {"virtual_stages", layout.stages.size() / layout.devices},
                    {"layers", std::move(layers)},
                    {"losses", layout.losses},
                    {"stages", std::move(stages)},
                    {"megatron",
                     {{"layout", megatron.layout.empty() ? json() : json(megatron.layout)},
                      {"remark", megatron.remark}}}};
  out << result.dump(2) << '\n';
}

}  // namespace examples
