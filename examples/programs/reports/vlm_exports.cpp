// SPDX-License-Identifier: Apache-2.0
#include "vlm_exports.hpp"

#include "pack_options.hpp"
#include "pipeline_picture.hpp"
#include "table.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/simulate_offload.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/plan/write_offload.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using json = nlohmann::ordered_json;
using plan_type = omnibal::pipeline_plan<std::int64_t>;

/// By `omnibal::activation_choice`.
constexpr std::array<std::string_view, 3> choice_names{"keep", "recompute", "offload"};

plan_type const& last_plan(planned_scenario const& planned) {
  return planned.plan[omnibal::training_lever::memory].plan;
}

/// A virtual stage for the first layer of the language model and one for the first layer of
/// multi-token prediction.
struct megatron_pins {
  std::optional<std::uint32_t> language{};
  std::optional<std::uint32_t> prediction{};
};

/// The pins that together allow every plan with the letters of Megatron-LM.
std::vector<megatron_pins> pins_for(planned_scenario const& planned, std::uint32_t border) {
  auto const stages = static_cast<std::uint32_t>(planned.machine.stages);
  auto const chunks = static_cast<std::uint32_t>(planned.assumed.chunks);
  if (chunks == 1) {
    std::vector<megatron_pins> result;
    if (border == 0) return {megatron_pins{}};
    for (std::uint32_t stage = 0; stage != stages; ++stage) result.push_back({.language = stage});
    return result;
  }
  megatron_pins const first{border == 0 ? std::nullopt : std::optional<std::uint32_t>(0)};
  if (planned.cost.model.language->prediction_layers == 0) return {first};
  std::vector<megatron_pins> result(stages, first);
  for (std::uint32_t device = 0; device != stages; ++device) {
    result[device].prediction = stages * (chunks - 1) + device;
  }
  return result;
}

/// The best plan with a stage that begins with the language model, whichever it is, or with the
/// towers whole on the first stage, and with all layers of multi-token prediction on one stage.
plan_type plan_for_megatron(planned_scenario const& planned, std::uint32_t border) {
  auto const layers = omnibal::shape_costs(planned.plan.balanced_data.batches,
                                           planned.machine.device, planned.cost);
  auto const count = static_cast<std::uint32_t>(layers.size());
  auto const predicted = static_cast<std::uint32_t>(planned.cost.model.language->prediction_layers);
  omnibal::partition_constraints constraints;
  if (predicted > 1) constraints.tied = {{count - 1 - predicted, count - 2}};
  plan_type best;
  best.status = omnibal::solve_status::infeasible;
  for (megatron_pins const& pins : pins_for(planned, border)) {
    constraints.pinned.clear();
    if (pins.language.value_or(0) != 0) {
      constraints.pinned.push_back({border - 1, *pins.language - 1});
    }
    if (pins.language) constraints.pinned.push_back({border, *pins.language});
    if (pins.prediction) {
      constraints.pinned.push_back({count - 1 - predicted, *pins.prediction});
    }
    auto plan = omnibal::plan_pipeline(
        layers, planned.machine, {.count = planned.assumed.chunks},
        {.micro_batches = planned.assumed.micro_batches, .constraints = constraints});
    if (plan.status != omnibal::solve_status::solved) continue;
    bool const is_better =
        best.status != omnibal::solve_status::solved || plan.step_time < best.step_time;
    if (is_better) best = std::move(plan);
  }
  return best;
}

std::size_t stage_of(plan_type const& plan, std::uint32_t layer) {
  auto const after = std::ranges::upper_bound(plan.boundaries, layer);
  return static_cast<std::size_t>(after - plan.boundaries.begin()) - 1;
}

/// A rate in the machine, null where what it is for takes no time.
json rate_json(std::int64_t rate) {
  return rate == std::numeric_limits<std::int64_t>::max() ? json() : json(rate);
}

json machine_json(omnibal::pipeline_machine const& machine) {
  return {{"memory_bytes", machine.memory_bytes.values()[0]},
          {"reserve_bytes", machine.reserve_bytes.values()[0]},
          {"flops_per_second", machine.device.flops_per_second},
          {"bytes_per_second", rate_json(machine.device.bytes_per_second)},
          {"link_bytes_per_second", rate_json(machine.link_bytes_per_second)}};
}

json degrees_json(omnibal::parallel_degrees const& degrees) {
  return {{"tensor", degrees.tensor},
          {"data", degrees.data},
          {"expert", degrees.expert},
          {"norms", norm_region_names[static_cast<std::size_t>(degrees.norms)]},
          {"sharding", sharded_state_names[static_cast<std::size_t>(degrees.sharding)]}};
}

json plan_json(plan_type const& plan) {
  std::string text;
  omnibal::write_plan(plan, std::back_inserter(text));
  return json::parse(text);
}

json simulated_json(omnibal::training_estimate const& estimate) {
  return {{"steps", estimate.steps},
          {"nanoseconds", estimate.nanoseconds},
          {"waiting_share", estimate.waiting_share},
          {"peak_bytes", estimate.peak_bytes}};
}

/// The samples of the data set that exceed the capacity, and those of groups that fill no step.
struct left_samples {
  std::vector<std::uint32_t> oversized;
  std::vector<std::uint32_t> left_out;
};

left_samples left_of(planned_scenario const& planned, std::size_t count) {
  enum class place : std::uint8_t { oversized, left_out, in_a_step };
  std::vector<place> places(count, place::oversized);
  for (std::uint32_t const number : planned.samples.numbers) places[number] = place::left_out;
  auto const& data = planned.plan.balanced_data;
  for (std::uint32_t const batch : data.schedule.cells().items()) {
    for (std::uint32_t const index : data.batches[batch].samples) {
      places[planned.samples.numbers[index]] = place::in_a_step;
    }
  }
  left_samples result;
  for (std::size_t i = 0; i != count; ++i) {
    auto const number = static_cast<std::uint32_t>(i);
    if (places[i] == place::oversized) result.oversized.push_back(number);
    if (places[i] == place::left_out) result.left_out.push_back(number);
  }
  return result;
}

json batch_json(vlm_samples const& from, vlm_batch const& batch) {
  json samples = json::array();
  json lengths = json::array();
  for (std::uint32_t const index : batch.samples) {
    samples.push_back(from.numbers[index]);
    lengths.push_back(from.samples[index].tokens);
  }
  json result{{"tiles", batch.work.tiles}};
  if (from.clips.most.length != 0) result["clips"] = batch.work.clips.count;
  result["samples"] = std::move(samples);
  result["lengths"] = std::move(lengths);
  return result;
}

/// A line for each step: the micro-batches of its ranks.
void write_steps(planned_scenario const& planned, std::ostream& out) {
  auto const& data = planned.plan.balanced_data;
  for (std::size_t step = 0; step != data.schedule.size(); ++step) {
    json ranks = json::array();
    for (std::size_t rank = 0; rank != data.schedule.ranks(); ++rank) {
      json batches = json::array();
      for (std::uint32_t const batch : data.schedule(step, rank)) {
        batches.push_back(batch_json(planned.samples, data.batches[batch]));
      }
      ranks.push_back(std::move(batches));
    }
    out << json{{"ranks", std::move(ranks)}} << '\n';
  }
}

json or_null(std::optional<std::int64_t> const& value) { return value ? json(*value) : json(); }

/// Null where nothing was measured.
json measured_json(layer_profile const& profile) {
  if (profile.measured().empty()) return {};
  json layers = json::array();
  for (std::size_t l = 0; l != profile.measured().size(); ++l) {
    auto const& one = profile.measured()[l];
    if (!one) continue;
    layers.push_back({{"layer", l},
                      {"forward_nanoseconds", one->forward_nanoseconds},
                      {"backward_nanoseconds", one->backward_nanoseconds},
                      {"kept_bytes", or_null(one->kept_bytes)},
                      {"state_bytes", or_null(one->state_bytes)}});
  }
  auto const& documents = profile.batch().documents;
  json result{{"tiles", profile.batch().tiles}};
  if (profile.batch().clips.count != 0) result["clips"] = profile.batch().clips.count;
  result["documents"] = {documents.count, documents.tokens, documents.squares};
  result["layers"] = std::move(layers);
  return result;
}

json inputs_json(dataset const& data) {
  json inputs = json::array();
  for (source const& one : data.sources) {
    inputs.push_back({{"name", one.name}, {"records", one.records}});
  }
  return inputs;
}

json head_json(std::string const& name, planned_scenario const& planned, vlm_inputs const& inputs) {
  auto const& last = planned.plan[omnibal::training_lever::memory];
  auto const left = left_of(planned, inputs.data.samples.size());
  auto const& capacity = planned.samples.capacity;
  return {{"format", vlm_plan_format},
          {"format_version", 1},
          {"library_version", library_version()},
          {"model", model_json(planned.cost.model)},
          {"measured", measured_json(planned.cost.profile)},
          {"inputs", inputs_json(inputs.data)},
          {"seed", inputs.seed},
          {"capacity", {{"images", capacity[0]}, {"tokens", capacity[1]}}},
          {"clip_length", planned.samples.clips.most.length},
          {"micro_batches", planned.assumed.micro_batches},
          {"machine", machine_json(planned.machine)},
          {"degrees", degrees_json(planned.cost.degrees)},
          {"plan", plan_json(last.plan)},
          {"simulated", simulated_json(last.estimate)},
          {"files", {{"recompute", name + ".recompute.csv"}, {"steps", name + ".steps.jsonl"}}},
          {"oversized", left.oversized},
          {"left_out", left.left_out}};
}

/// The flags of Megatron-LM for the plan with offloading, or why there are none.
std::string megatron_flags(planned_scenario const& planned) {
  constexpr std::array<std::string_view, 3> names{"layer_input", "", ""};
  auto const layers = omnibal::offload_shape_costs(planned.plan.balanced_data.batches,
                                                   planned.machine.device, planned.cost);
  try {
    auto const flags = omnibal::megatron_offload_flags(planned.offloaded->plan, layers, names);
    return flags.modules.empty() ? "none, as nothing is offloaded" : flags.arguments();
  } catch (std::invalid_argument const& error) {
    std::string const text = error.what();
    return "none, as " + text.substr(text.find(": ") + 2);
  }
}

/// The cells of a plan that does not fit.
std::vector<std::string> lacking_cells(std::string const& name, std::uint32_t stage,
                                       std::int64_t missing_bytes) {
  return {name, "stage " + std::to_string(stage) + " lacks " + gigabytes({missing_bytes}) + " GB"};
}

/// The cells of an estimate for this number of samples; `paper_days` is zero where not told.
std::vector<std::string> estimate_cells(std::string const& name, planned_scenario const& planned,
                                        omnibal::training_estimate const& estimate, double samples,
                                        lever_reference const& reference, double paper_days) {
  auto const& assumed = planned.assumed;
  double const seconds = static_cast<double>(estimate.nanoseconds) * 1e-9;
  double const per_sample = seconds * assumed.gpus() / samples;
  double const utilization =
      omnibal::flops_utilization({.flops = reference.flops_per_sample * samples,
                                  .seconds = seconds,
                                  .gpus = assumed.gpus(),
                                  .peak_flops_per_gpu_second = assumed.peak_flops});
  return {name,
          fixed(seconds / static_cast<double>(estimate.steps), 2),
          percent(utilization, 1),
          percent(estimate.waiting_share, 1),
          fixed(per_sample, 2),
          fixed(per_sample * assumed.training_samples / 86400, 1),
          fixed(reference.gpu_seconds / per_sample, 2) + "x",
          times_or_dash(reference.paper_days[0], paper_days),
          gigabytes(estimate.peak_bytes)};
}

/// Writes the plan with offloading as JSON, as a list of layers and as policies of PyTorch.
void write_offload_files(staged_files& files, std::string const& name,
                         planned_scenario const& planned, std::filesystem::path const& directory) {
  auto const& plan = planned.offloaded->plan;
  auto const layers = omnibal::offload_shape_costs(planned.plan.balanced_data.batches,
                                                   planned.machine.device, planned.cost);
  files.write(directory / (name + ".offload.json"), [&](std::ostream& out) {
    omnibal::write_offload_plan(plan, std::ostreambuf_iterator<char>(out));
  });
  files.write(directory / (name + ".offload.csv"), [&](std::ostream& out) {
    write_offload_list(plan, layers, layer_kinds(planned.cost.model), out);
  });
  files.write(directory / (name + ".policies.json"), [&](std::ostream& out) {
    omnibal::write_checkpoint_policies(plan, cost_module_names,
                                       std::ostreambuf_iterator<char>(out));
  });
}

/// The letters for the cuts of the last plan itself, or why there are none.
megatron_export letters_of_plan(model_description const& model, plan_type const& plan) {
  std::string const obstacle = megatron_obstacle(model, plan.boundaries, plan.stages.size());
  return obstacle.empty() ? megatron_letters(model, plan.boundaries)
                          : megatron_export{"", "none: " + obstacle};
}

}  // namespace

void write_recompute_list(plan_type const& plan, std::span<omnibal::plan_layer<> const> layers,
                          std::span<std::string_view const> kinds, std::ostream& out) {
  bool const is_whole = !layers.empty() && plan.choices.size() == layers.size() &&
                        kinds.size() == layers.size() && !plan.boundaries.empty() &&
                        plan.boundaries.back() == layers.size();
  if (!is_whole) {
    throw std::invalid_argument(
        "write_recompute_list: " + std::to_string(layers.size()) + " layers, " +
        std::to_string(kinds.size()) + " kinds, " + std::to_string(plan.choices.size()) +
        " choices, stages of " +
        std::to_string(plan.boundaries.empty() ? 0 : plan.boundaries.back()) +
        " layers: every layer must have one of each");
  }
  out << "layer,stage,kind,choice,kept_bytes,saved_bytes,recompute_nanoseconds\n";
  for (std::uint32_t layer = 0; layer != layers.size(); ++layer) {
    auto const& choices = layers[layer].choices;
    auto const& all = choices.front();
    auto const& chosen = choices.at(plan.choices[layer]);
    out << layer << ',' << stage_of(plan, layer) << ',' << kinds[layer] << ','
        << recompute_names.at(plan.choices[layer]) << ',' << chosen.bytes << ','
        << all.bytes - chosen.bytes << ',' << chosen.time - all.time << '\n';
  }
}

megatron_export export_to_megatron(planned_scenario const& planned) {
  auto const& best = last_plan(planned);
  auto const& model = planned.cost.model;
  if (best.status != omnibal::solve_status::solved) return {"", "none, as no plan fits the memory"};
  std::string const obstacle = megatron_obstacle(model, best.boundaries, best.stages.size());
  if (obstacle.empty()) return megatron_letters(model, best.boundaries);
  if (model.cross || has_cross_attention(*model.language)) return {"", "none, as " + obstacle};
  std::string const reason = "the last plan has none: " + obstacle;
  auto const cut = plan_for_megatron(
      planned, static_cast<std::uint32_t>(first_language_layer(layer_kinds(model))));
  if (cut.status != omnibal::solve_status::solved) {
    return {"", reason + "; no plan that the layout can express fits the memory"};
  }
  double const loss = static_cast<double>(cut.step_time) / static_cast<double>(best.step_time) - 1;
  auto result = megatron_letters(model, cut.boundaries);
  result.remark = reason + ". With cuts that it can express a step takes " + percent(loss, 1) +
                  " longer; this is " + result.remark;
  return result;
}

omnibal::simulation<std::int64_t> first_step(planned_scenario const& planned,
                                             omnibal::training_lever lever) {
  auto const& best = planned.plan[lever].plan;
  auto const& data = lever == omnibal::training_lever::baseline ? planned.plan.first_data
                                                                : planned.plan.balanced_data;
  auto const& device = planned.machine.device;
  auto const batches = data.schedule(0, 0);
  std::vector<std::vector<omnibal::stage_time<>>> times(best.boundaries.size() - 1);
  for (std::uint32_t const batch : batches) {
    auto const layers = planned.cost(data.batches[batch]);
    for (std::size_t s = 0; s != times.size(); ++s) {
      auto& time = times[s].emplace_back();
      for (std::size_t l = best.boundaries[s]; l != best.boundaries[s + 1]; ++l) {
        auto const& extra = layers[l].choices[best.choices[l]].extra;
        time.forward += device(layers[l].forward);
        time.backward += device(layers[l].backward) + device(extra);
      }
    }
  }
  auto const run = [&](auto const& schedule) {
    return omnibal::simulate_pipeline(schedule, times, std::int64_t{0}, std::int64_t{0},
                                      {.timeline = omnibal::timeline_policy::recorded});
  };
  std::size_t const stages = planned.machine.stages;
  if (best.chunks == 1) return run(omnibal::one_f_one_b{stages, batches.size()});
  return run(omnibal::interleaved_1f1b{stages, batches.size(), best.chunks});
}

void write_plan_files(staged_files& files, std::string const& name, planned_scenario const& planned,
                      megatron_export const& megatron, vlm_inputs const& inputs,
                      std::filesystem::path const& directory) {
  auto const& best = last_plan(planned);
  if (best.status != omnibal::solve_status::solved) {
    throw std::runtime_error("no plan of " + name + " fits the memory: stage " +
                             std::to_string(best.stage) + " lacks " +
                             std::to_string(best.missing_bytes) + " bytes, nothing is written");
  }
  auto const layers = omnibal::shape_costs(planned.plan.balanced_data.batches,
                                           planned.machine.device, planned.cost);
  auto const timeline = first_step(planned, omnibal::training_lever::memory).timeline;
  auto const path = [&](std::string const& suffix) { return directory / (name + suffix); };
  files.write(path(".trace.json"), [&](std::ostream& out) {
    omnibal::write_trace(timeline, {.process = name}, std::ostreambuf_iterator<char>(out));
  });
  files.write(path(".svg"), [&](std::ostream& out) {
    write_pipeline_picture(scaled(timeline, 1e-9), {name + ", one step of a rank", "s"}, out);
  });
  files.write(path(".recompute.csv"), [&](std::ostream& out) {
    write_recompute_list(best, layers, layer_kinds(planned.cost.model), out);
  });
  files.write(path(".steps.jsonl"), [&](std::ostream& out) { write_steps(planned, out); });
  if (!megatron.layout.empty()) {
    files.write(path(".megatron.txt"), [&](std::ostream& out) { out << megatron.layout << '\n'; });
  }
  auto const layout = layout_of(name, layer_kinds(planned.cost.model),
                                planned.cost.model.language->prediction_layers, best.boundaries,
                                best.choices, planned.machine.stages);
  files.write(path(".layout.json"), [&](std::ostream& out) {
    write_layout(layout, letters_of_plan(planned.cost.model, best), out);
  });
  if (planned.offloaded && planned.offloaded->plan.status == omnibal::solve_status::solved) {
    write_offload_files(files, name, planned, directory);
  }
  files.write(path(".plan.json"),
              [&](std::ostream& out) { out << head_json(name, planned, inputs).dump(2) << '\n'; });
}

std::array<double, 4> published_days(std::string const& model) {
  if (model == "6+20B") return {61.8, 51.9, 29.0, 21.3};
  if (model == "6+34B") return {75.4, 0, 0, 30.5};
  return {};
}

std::string times_or_dash(double first, double value) {
  return first > 0 && value > 0 ? fixed(first / value, 2) + "x" : "-";
}

std::string gigabytes(std::vector<std::int64_t> const& bytes) {
  std::string result;
  for (std::int64_t const value : bytes) {
    if (!result.empty()) result += ' ';
    result += fixed(static_cast<double>(value) * 1e-9, 0);
  }
  return result;
}

std::string heading_of(planned_scenario const& planned, std::string const& machine) {
  auto const& samples = planned.samples;
  auto const& assumed = planned.assumed;
  return counted(samples.samples.size()) + " samples under " + std::to_string(samples.capacity[0]) +
         " images and " + std::to_string(samples.capacity[1]) + " tokens, " +
         counted(samples.oversized) + " larger ones left out\n" + fixed(assumed.gpus(), 0) +
         " devices " + machine + ": " + std::to_string(assumed.stages) + " stages of " +
         std::to_string(assumed.tensor_ranks) + " tensor-parallel ranks, " +
         std::to_string(assumed.data_ranks) + " data-parallel ranks\n" +
         "Times and memory are estimates of the cost model\n";
}

std::string clips_text(planned_scenario const& planned) {
  auto const& clips = planned.samples.clips;
  if (clips.most.length == 0) return {};
  std::int64_t sum = 0;
  for (sample const& one : planned.samples.samples) sum += clips(one);
  return "The samples have " + counted(static_cast<std::uint64_t>(sum)) + " clips of " +
         std::to_string(clips.most.length) + " tokens of the audio tower, at most " +
         std::to_string(clips.most.count) + " each\n";
}

std::string remark_on(dataset const& given, dataset const& planned) {
  if (given.kind == planned.kind) return {};
  return "The model has no vision tower: samples are planned as text, with the tokens of their "
         "images\n";
}

lever_reference reference_of(planned_scenario const& planned, model_description const& model) {
  return {
      .flops_per_sample = flops_of(planned.plan.balanced_data, model) / planned.samples_of_lever(1),
      .gpu_seconds = planned.gpu_seconds(0),
      .paper_days = published_days(model.name)};
}

void write_offload_list(omnibal::offload_plan const& plan,
                        std::span<omnibal::offload_layer const> layers,
                        std::span<std::string_view const> kinds, std::ostream& out) {
  out << "layer,stage,kind";
  for (std::string_view const name : cost_module_names)
    out << ',' << name << ',' << name << "_bytes";
  out << '\n';
  for (std::size_t s = 0; s != plan.stages.size(); ++s) {
    for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
      out << l << ',' << s << ',' << kinds[l];
      for (std::size_t j = 0; j != cost_module_names.size(); ++j) {
        out << ',' << choice_names[static_cast<std::size_t>(plan.choices[l][j])] << ','
            << layers[l].activations.modules[j].bytes;
      }
      out << '\n';
    }
  }
}

std::string offload_text(planned_scenario const& planned) {
  auto const& plan = planned.offloaded->plan;
  std::size_t const sharing = planned.links.stages_per_link;
  std::string result =
      "Offload plan over links of " + fixed(planned.links.bytes_per_time.values()[0], 0) +
      " GB/s, " +
      (sharing == 1 ? "one for each device" : "each for " + std::to_string(sharing) + " stages") +
      ": ";
  if (plan.status != omnibal::solve_status::solved) return result + "none\n";
  result += "stages begin with layers";
  for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
    result += ' ' + std::to_string(plan.boundaries[s]);
  }
  for (std::size_t j = 0; j != cost_module_names.size(); ++j) {
    result += ";\n  layers whose " + std::string(cost_module_names[j]) +
              " is kept, recomputed, offloaded:";
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      std::array<std::size_t, 3> counts{};
      for (std::uint32_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        ++counts[static_cast<std::size_t>(plan.choices[l][j])];
      }
      result += (s == 0 ? " " : ", ") + std::to_string(counts[0]) + '/' +
                std::to_string(counts[1]) + '/' + std::to_string(counts[2]);
    }
  }
  result += ";\n  GB of a micro-batch that stages offload:";
  for (auto const& stage : plan.stages) {
    result += ' ' + fixed(static_cast<double>(stage.offloaded_bytes) * 1e-9, 2);
  }
  double const step = static_cast<double>(plan.step_time);
  result += ";\n  gap " + percent((step - static_cast<double>(plan.lower_bound)) / step, 3) + '\n';
  return result + "Megatron offloading: " + megatron_flags(planned) + '\n';
}

std::vector<std::string> offload_cells(std::string const& name, planned_scenario const& planned,
                                       lever_reference const& reference) {
  auto const& [plan, estimate] = *planned.offloaded;
  if (plan.status != omnibal::solve_status::solved) {
    return lacking_cells(name, plan.stage, plan.missing_bytes);
  }
  auto const memory = static_cast<std::size_t>(omnibal::training_lever::memory);
  return estimate_cells(name, planned, estimate, planned.samples_of_lever(memory), reference, 0);
}

std::vector<std::string> lever_cells(std::string const& name, planned_scenario const& planned,
                                     std::size_t lever, lever_reference const& reference) {
  auto const& [plan, estimate] = planned.plan.levers[lever];
  if (plan.status != omnibal::solve_status::solved) {
    return lacking_cells(name, plan.stage, plan.missing_bytes);
  }
  return estimate_cells(name, planned, estimate, planned.samples_of_lever(lever), reference,
                        reference.paper_days[lever]);
}

}  // namespace examples
