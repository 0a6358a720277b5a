// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables of docs/evidence/encoders.md: vision towers next to the pipelines of their language
/// models. Costs are modeled and steps are simulated.

#include "models/model_file.hpp"
#include "models/vlm_assumptions.hpp"
#include "models/vlm_layers.hpp"
#include "reports/study_sections.hpp"
#include "reports/table.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/place_encoder.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using omnibal::stage_time;

/// The configuration of Qwen3-VL-8B.
constexpr std::string_view qwen3_vl_8b = R"({"model_type": "qwen3_vl", "tie_word_embeddings": false,
  "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 4096, "intermediate_size": 12288,
    "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936},
  "vision_config": {"model_type": "qwen3_vl", "depth": 27, "hidden_size": 1152, "num_heads": 16,
    "intermediate_size": 4304, "in_channels": 3, "num_position_embeddings": 2304,
    "out_hidden_size": 4096, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
    "deepstack_visual_indexes": [8, 16, 24]}})";

/// Between stages, in one direction.
constexpr double link_bytes_per_second = 25e9;

/// A model and one of its micro-batches.
struct study_model {
  model_description model;
  omnibal::micro_batch_work batch;
  /// The tiles or images of a micro-batch.
  std::size_t pieces = 1;
};

std::vector<study_model> study_models() {
  model_description qwen = model_of("Qwen3-VL-8B", "", nlohmann::json::parse(qwen3_vl_8b));
  qwen.name = "Qwen3-VL-8B";
  omnibal::sequences const tokens = omnibal::equal_sequences({.count = 4, .length = 1024});
  // An image of 32 x 32 patches, the size that model files have by default, becomes 256 tokens.
  return {{find_model("6+20B", model_parts::both), {.tiles = 9, .documents = tokens}, 9},
          {std::move(qwen), {.tiles = 12, .documents = tokens}, 12}};
}

/// A layer on one rank for one micro-batch.
struct study_layer {
  stage_time<> time;
  std::int64_t kept_bytes = 0;
  std::int64_t cut_bytes = 0;
  std::int64_t state_bytes = 0;
};

std::vector<study_layer> layers_of(study_model const& given,
                                   omnibal::parallel_degrees const& degrees) {
  omnibal::device_model const device = vlm_assumptions{}.device;
  std::vector<study_layer> layers;
  auto const kinds = layer_kinds(given.model);
  padded(given.model, degrees.tensor).for_each_layer([&](auto const& layer, std::int64_t count) {
    omnibal::layer_cost const cost = layer(given.batch, degrees);
    auto const choice = choice_of(kinds[layers.size()], omnibal::recompute_choice::selective);
    study_layer const one{
        .time = {device(cost.forward), device(cost.backward) + device(cost[choice].extra)},
        .kept_bytes = cost[choice].kept_bytes,
        .cut_bytes = cost.cut_bytes,
        .state_bytes = cost.state_bytes()};
    layers.insert(layers.end(), static_cast<std::size_t>(count), one);
  });
  return layers;
}

std::int64_t sending_time(std::int64_t bytes) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) / link_bytes_per_second * 1e9);
}

/// Stages of equal time of a chain of layers.
struct study_stages {
  std::vector<stage_time<>> times;
  std::vector<std::int64_t> bytes;
  std::vector<std::int64_t> transfers;
  std::int64_t most_state = 0;

  study_stages(std::span<study_layer const> layers, std::size_t count) {
    std::vector<std::int64_t> costs;
    for (auto const& one : layers) costs.push_back(one.time.forward + one.time.backward);
    auto const cuts = omnibal::partition_minimax(costs, count);
    for (std::size_t s = 0; s != count; ++s) {
      stage_time<> time;
      std::int64_t kept = 0;
      std::int64_t state = 0;
      for (std::size_t i = cuts.boundaries[s]; i != cuts.boundaries[s + 1]; ++i) {
        time.forward += layers[i].time.forward;
        time.backward += layers[i].time.backward;
        kept += layers[i].kept_bytes;
        state += layers[i].state_bytes;
      }
      times.push_back(time);
      bytes.push_back(kept);
      most_state = std::max(most_state, state);
      if (s != 0) transfers.push_back(sending_time(layers[cuts.boundaries[s] - 1].cut_bytes));
    }
  }
};

omnibal::encoder_work<> encoder_of(std::span<study_layer const> tower, std::size_t batches,
                                   std::size_t pieces) {
  stage_time<> time;
  std::int64_t kept = 0;
  for (auto const& one : tower) {
    time.forward += one.time.forward;
    time.backward += one.time.backward;
    kept += one.kept_bytes;
  }
  std::int64_t const output = tower.back().cut_bytes;
  omnibal::encoder_work<> result;
  result.times.assign(batches, time);
  result.transfers.assign(batches, {sending_time(output), sending_time(output)});
  result.activation_bytes.assign(batches, kept);
  result.output_bytes.assign(batches, output);
  result.pieces = pieces;
  return result;
}

struct pipeline_size {
  std::size_t stages;
  std::size_t micro_batches;
};
constexpr std::array<pipeline_size, 4> sizes{{{4, 8}, {4, 16}, {8, 16}, {8, 32}}};

/// A model in a pipeline of one size, in three ways.
struct comparison {
  study_stages chain;
  study_stages language;
  omnibal::simulation<std::int64_t> chained;
  omnibal::encoder_placement<std::int64_t> placed;
  /// The share of the tower in the work of a micro-batch.
  double share = 0;
  std::int64_t tower_state = 0;
  omnibal::encoder_work<> encoder;
};

comparison compare(study_model const& given, pipeline_size const& size) {
  omnibal::parallel_degrees degrees = vlm_assumptions{}.degrees();
  degrees.pipeline = static_cast<std::int64_t>(size.stages);
  auto const layers = layers_of(given, degrees);
  std::size_t const first = first_language_layer(layer_kinds(given.model));
  auto const tower = std::span(layers).first(first);
  omnibal::one_f_one_b const schedule{size.stages, size.micro_batches};
  comparison result{.chain = study_stages(layers, size.stages),
                    .language = study_stages(std::span(layers).subspan(first), size.stages),
                    .chained = {},
                    .placed = {},
                    .encoder = encoder_of(tower, size.micro_batches, given.pieces)};
  result.chained = omnibal::simulate_pipeline(schedule, result.chain.times, result.chain.transfers,
                                              result.chain.bytes);
  result.placed = omnibal::place_encoder(schedule, result.language.times, result.language.transfers,
                                         result.language.bytes, result.encoder);
  // The tower is data-parallel over the stages too, which share its optimizer.
  degrees.data *= static_cast<std::int64_t>(size.stages);
  auto const shared = layers_of(given, degrees);
  for (std::size_t i = 0; i != first; ++i) result.tower_state += shared[i].state_bytes;
  std::int64_t all = 0;
  std::int64_t own = 0;
  for (std::size_t i = 0; i != layers.size(); ++i) {
    std::int64_t const time = layers[i].time.forward + layers[i].time.backward;
    all += time;
    if (i < first) own += time;
  }
  result.share = static_cast<double>(own) / static_cast<double>(all);
  return result;
}

std::string name_of(pipeline_size const& size) {
  return std::to_string(size.stages) + "/" + std::to_string(size.micro_batches);
}
std::string milliseconds(std::int64_t time) { return fixed(static_cast<double>(time) / 1e6, 0); }
std::string gigabytes(std::int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e9, 1); }
double ratio(std::int64_t left, std::int64_t right) {
  return static_cast<double>(left) / static_cast<double>(right);
}

void print_steps(std::ostream& out) {
  table rows({"model", "size", "tower", "chain", "before", "placed", "bound", "language alone",
              "chain / placed", "before / placed", "placed / bound"});
  for (study_model const& given : study_models()) {
    for (pipeline_size const& size : sizes) {
      comparison const one = compare(given, size);
      std::int64_t const placed = one.placed.step.makespan;
      rows.add({given.model.name, name_of(size), percent(one.share, 0),
                milliseconds(one.chained.makespan), milliseconds(one.placed.before_makespan),
                milliseconds(placed), milliseconds(one.placed.lower_bound),
                milliseconds(one.placed.language_makespan),
                fixed(ratio(one.chained.makespan, placed), 3),
                fixed(ratio(one.placed.before_makespan, placed), 3),
                fixed(ratio(placed, one.placed.lower_bound), 3)});
    }
  }
  rows.print_markdown(out);
}

/// Steps under limits of the activation memory between the least and the most.
void print_memory(std::ostream& out) {
  table rows({"model", "size", "state, chain", "state, placed", "activations, chain",
              "activations, placed", "limit", "placed within", "longer"});
  for (study_model const& given : study_models()) {
    for (pipeline_size const& size : sizes) {
      comparison const one = compare(given, size);
      std::int64_t const free = std::ranges::max(one.placed.step.peak_bytes);
      omnibal::one_f_one_b const schedule{size.stages, size.micro_batches};
      // Two micro-batches of the tower and their features on each device, besides what the language
      // model keeps.
      std::int64_t const batch = one.encoder.activation_bytes[0] + 2 * one.encoder.output_bytes[0];
      auto const stages = omnibal::peak_in_flight(schedule);
      std::int64_t limit = 0;
      for (std::size_t s = 0; s != size.stages; ++s) {
        limit = std::max(limit, stages[s] * one.language.bytes[s]);
      }
      limit += 2 * batch;
      std::vector<std::int64_t> const memory(size.stages, limit);
      auto const limited =
          omnibal::place_encoder(schedule, one.language.times, one.language.transfers,
                                 one.language.bytes, one.encoder, memory);
      rows.add({given.model.name, name_of(size), gigabytes(one.chain.most_state),
                gigabytes(one.language.most_state + one.tower_state),
                gigabytes(std::ranges::max(one.chained.peak_bytes)), gigabytes(free),
                gigabytes(limit), milliseconds(limited.step.makespan),
                percent(ratio(limited.step.makespan, one.placed.step.makespan) - 1, 1)});
    }
  }
  rows.print_markdown(out);
}

constexpr study_section sections[]{{"steps", print_steps}, {"memory", print_memory}};

}  // namespace

int main(int count, char** words) {
  return print_section("compare_encoders", sections, count, words,
                       {.name = "docs/evidence/encoders.md"});
}
