// SPDX-License-Identifier: Apache-2.0
#include "read_plan.hpp"

#include "csv_records.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "text_lines.hpp"
#include "vlm_exports.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

file_text text_of(std::filesystem::path const& path) {
  progress hidden(visibility::hidden);
  return {path, hidden};
}

/// A rate that is counted; null where what it is for takes no time.
std::int64_t rate_of(json_fields const& machine, char const* name) {
  return machine.integer_or(name, largest, 1, largest);
}

omnibal::pipeline_machine machine_of(json_fields const& given, std::size_t stages) {
  return {.stages = stages,
          .memory_bytes = {given.integer("memory_bytes", 1, largest)},
          .reserve_bytes = {given.integer("reserve_bytes", 0, largest)},
          .device = {.flops_per_second = given.integer("flops_per_second", 1, largest),
                     .bytes_per_second = rate_of(given, "bytes_per_second")},
          .link_bytes_per_second = rate_of(given, "link_bytes_per_second")};
}

omnibal::parallel_degrees degrees_of(json_fields const& given) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  return {.tensor = given.integer("tensor", 1, most),
          .data = given.integer("data", 1, most),
          .expert = given.integer("expert", 1, most),
          .norms = static_cast<omnibal::norm_regions>(given.choice("norms", norm_region_names)),
          .sharding =
              static_cast<omnibal::sharded_state>(given.choice("sharding", sharded_state_names))};
}

omnibal::pipeline_plan<std::int64_t> plan_of(json_fields const& given) {
  omnibal::pipeline_plan<std::int64_t> plan;
  plan.boundaries = given.integers<std::uint32_t>("boundaries");
  bool const ascends = std::ranges::adjacent_find(plan.boundaries, std::ranges::greater_equal{}) ==
                       plan.boundaries.end();
  if (plan.boundaries.size() < 2 || plan.boundaries.front() != 0 || !ascends) {
    given.refuse("boundaries", "must be at least two integers that ascend from 0");
  }
  plan.choices = given.integers<std::uint32_t>("choices", 0, recompute_names.size() - 1);
  if (plan.choices.size() != plan.boundaries.back()) {
    fail({given.file()}, "field \"plan.choices\" has " + std::to_string(plan.choices.size()) +
                             " layers, the boundaries end with " +
                             std::to_string(plan.boundaries.back()));
  }
  std::size_t const virtual_stages = plan.boundaries.size() - 1;
  plan.chunks = static_cast<std::size_t>(given.integer_or("chunks", 1, 1, largest));
  if (virtual_stages % plan.chunks != 0) {
    given.refuse("chunks",
                 "must divide the number of virtual stages, " + std::to_string(virtual_stages));
  }
  if (plan.chunks != 1) {
    static_cast<void>(given.choice("placement", std::array<std::string_view, 1>{"looped"}));
  }
  auto const& stages = given.at("stages");
  if (!stages.is_array() || stages.size() != virtual_stages / plan.chunks) {
    given.refuse("stages",
                 "must be a list of " + std::to_string(virtual_stages / plan.chunks) + " stages");
  }
  for (auto const& stage : stages) {
    json_fields const fields(given.file(), "plan.stages", stage);
    plan.stages.push_back({fields.integer("time", 0, largest), fields.integer("bytes", 0, largest),
                           fields.integer("in_flight", 0, largest)});
  }
  plan.step_time = given.integer("step_time", 0, largest);
  plan.lower_bound = given.integer("lower_bound", 0, largest);
  plan.proven = given.flag_or("proven", false);
  return plan;
}

omnibal::training_estimate printed_of(json_fields const& given) {
  return {.steps = static_cast<std::size_t>(given.integer("steps", 1, largest)),
          .nanoseconds = given.integer("nanoseconds", 0, largest),
          .waiting_share = given.number("waiting_share", 0, 1),
          .peak_bytes = given.integers<std::int64_t>("peak_bytes")};
}

/// The clips of a micro-batch, each of so many tokens; none if plans of this kind have none.
omnibal::sequences clips_of(json_fields const& given, std::int64_t length) {
  std::int64_t const count = given.integer_or("clips", 0, 0, largest);
  if (count != 0 && length == 0) given.refuse("clips", "must be 0, because the clip_length is 0");
  return omnibal::equal_sequences({.count = count, .length = length});
}

/// The layers that were measured, if any were, and the micro-batch they are of.
layer_profile profile_of(json_fields const& given, vlm_cost const& cost,
                         omnibal::device_model const& device) {
  if (!given.has("measured")) return {};
  auto const fields = given.object("measured");
  auto const documents = fields.integers<std::int64_t>("documents");
  if (documents.size() != 3) fields.refuse("documents", "must be number, tokens and squares");
  omnibal::micro_batch_work const batch{
      .tiles = fields.integer("tiles", 0, largest),
      .clips = clips_of(fields, given.integer_or("clip_length", 0, 0, largest)),
      .documents = {documents[0], documents[1], documents[2]}};
  auto const modeled = omnibal::layer_costs(cost.model, batch, cost.degrees);
  measured_layers layers(modeled.size());
  for (auto const& element : fields.at("layers")) {
    json_fields const one(given.file(), "measured.layers", element);
    auto const last = static_cast<std::int64_t>(layers.size()) - 1;
    auto& layer = layers[static_cast<std::size_t>(one.integer("layer", 0, last))];
    layer = measured_layer{one.integer("forward_nanoseconds", 0, largest),
                           one.integer("backward_nanoseconds", 0, largest)};
    if (one.has("kept_bytes")) layer->kept_bytes = one.integer("kept_bytes", 0, largest);
    if (one.has("state_bytes")) layer->state_bytes = one.integer("state_bytes", 0, largest);
  }
  return {std::move(layers), batch, modeled, device};
}

/// Reads one micro-batch after the other, and sees that no sample runs twice.
class batch_reader {
 public:
  batch_reader(std::string file, model_spans const& spans, std::int64_t clip_length)
      : file_(std::move(file)), spans_(spans), clip_length_(clip_length) {}

  vlm_batch operator()(std::size_t line, nlohmann::json const& value) {
    json_fields const given(file_ + ": line " + std::to_string(line), "", value);
    vlm_batch batch;
    batch.work.tiles = given.integer("tiles", 0, largest);
    batch.work.clips = clips_of(given, clip_length_);
    auto const lengths = given.integers<std::int64_t>("lengths");
    batch.work.documents = omnibal::sequences_of(lengths, {}, spans_);
    batch.samples = given.integers<std::uint32_t>("samples");
    if (batch.samples.size() != lengths.size()) {
      fail({given.file()}, "a micro-batch has " + std::to_string(batch.samples.size()) +
                               " samples and " + std::to_string(lengths.size()) + " lengths");
    }
    for (std::uint32_t const sample : batch.samples) {
      if (sample >= seen_.size()) seen_.resize(sample + std::size_t{1});
      if (seen_[sample]) fail({given.file()}, "sample " + std::to_string(sample) + " runs twice");
      seen_[sample] = true;
    }
    return batch;
  }

 private:
  std::string file_;
  model_spans spans_;
  std::int64_t clip_length_;
  std::vector<bool> seen_;
};

vlm_data steps_of(std::filesystem::path const& path, std::size_t ranks,
                  model_description const& model, std::int64_t clip_length) {
  file_text const text = text_of(path);
  batch_reader read_batch(text.name(), omnibal::attention_spans(model), clip_length);
  vlm_data data{.batches = {}, .schedule = omnibal::steps(ranks)};
  std::size_t number = 0;
  for (std::string_view const line : lines_of(text.view())) {
    position const where{text.name(), 0, ++number};
    auto const step = parse_json(to_text(where), line);
    json_fields const given(to_text(where), "", step);
    auto const& list = given.at("ranks");
    if (!list.is_array() || list.size() != ranks) {
      fail(where, "must have a list \"ranks\" of " + std::to_string(ranks) + " ranks");
    }
    for (auto const& rank : list) {
      if (!rank.is_array()) fail(where, "a rank is no list of micro-batches");
      for (auto const& batch : rank) {
        data.schedule.push(static_cast<std::uint32_t>(data.batches.size()));
        data.batches.push_back(read_batch(number, batch));
      }
      data.schedule.close();
    }
  }
  if (data.batches.empty()) fail({text.name()}, "has no steps");
  return data;
}

/// The number that a cell of a recompute list is, which must be `expected`.
void check_cell(position const& where, std::string_view column, std::string_view text,
                std::size_t expected) {
  if (parse_count(where, column, text) == static_cast<std::int64_t>(expected)) return;
  fail(where, "field \"" + std::string(column) + "\" is \"" + std::string(text) + "\", must be " +
                  std::to_string(expected));
}

}  // namespace

std::vector<std::uint32_t> read_recompute_list(std::filesystem::path const& path,
                                               std::vector<std::uint32_t> const& boundaries) {
  file_text const text = text_of(path);
  std::vector<std::uint32_t> choices;
  std::size_t stage = 0;
  auto const take = [&](position const& where, std::array<std::string_view, 3> const& values) {
    if (choices.size() == boundaries.back()) {
      fail(where, "the plan has " + std::to_string(boundaries.back()) + " layers");
    }
    while (choices.size() == boundaries[stage + 1]) ++stage;
    check_cell(where, "layer", values[0], choices.size());
    check_cell(where, "stage", values[1], stage);
    auto const found = std::ranges::find(recompute_names, values[2]);
    if (found == recompute_names.end()) {
      fail(where, "field \"choice\" is \"" + std::string(values[2]) +
                      "\", must be none, selective or full");
    }
    choices.push_back(static_cast<std::uint32_t>(found - recompute_names.begin()));
  };
  for_each_csv_record(text, ',', take, "layer", "stage", "choice");
  if (choices.size() != boundaries.back()) {
    fail({text.name()}, "has " + std::to_string(choices.size()) + " layers of " +
                            std::to_string(boundaries.back()) +
                            ": a trainer cannot know what the others keep");
  }
  return choices;
}

exported_plan read_plan(std::filesystem::path const& path) {
  file_text const text = text_of(path);
  auto const document = parse_json(text.name(), text.view());
  json_fields const given(text.name(), "", document);
  if (given.text("format") != vlm_plan_format) {
    given.refuse("format", "must be \"" + std::string(vlm_plan_format) + "\"");
  }
  static_cast<void>(given.integer("format_version", 1, 1));
  exported_plan result;
  auto const degrees = degrees_of(given.object("degrees"));
  result.cost = {model_of(text.name(), "model", given.at("model")), degrees};
  result.plan = plan_of(given.object("plan"));
  std::size_t const stages = result.plan.stages.size();
  result.cost.degrees.pipeline = static_cast<std::int64_t>(stages);
  result.machine = machine_of(given.object("machine"), stages);
  result.cost.profile = profile_of(given, result.cost, result.machine.device);
  result.printed = printed_of(given.object("simulated"));
  if (layer_kinds(result.cost.model).size() != result.plan.choices.size()) {
    fail({text.name()}, "the plan has " + std::to_string(result.plan.choices.size()) +
                            " layers, the model " +
                            std::to_string(layer_kinds(result.cost.model).size()));
  }
  auto const files = given.object("files");
  auto const beside = [&](char const* name) { return path.parent_path() / files.text(name); };
  auto const choices = read_recompute_list(beside("recompute"), result.plan.boundaries);
  for (std::size_t l = 0; l != choices.size(); ++l) {
    if (choices[l] == result.plan.choices[l]) continue;
    fail({beside("recompute").string()}, "layer " + std::to_string(l) + " is " +
                                             std::string(recompute_names[choices[l]]) + ", in " +
                                             text.name() + " it is " +
                                             std::string(recompute_names[result.plan.choices[l]]));
  }
  result.data = steps_of(beside("steps"), static_cast<std::size_t>(degrees.data), result.cost.model,
                         given.integer_or("clip_length", 0, 0, largest));
  return result;
}

omnibal::training_estimate simulate_plan(exported_plan const& given) {
  if (given.plan.chunks == 1) {
    return omnibal::simulate_training(given.plan, given.data, given.machine, given.cost);
  }
  return omnibal::simulate_training(given.plan, given.data, given.machine, given.cost,
                                    omnibal::interleaved_1f1b{.chunks = given.plan.chunks});
}

}  // namespace examples
