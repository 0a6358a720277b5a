// SPDX-License-Identifier: Apache-2.0
/// \file
/// Cuts vision-language models into the stages of a pipeline by several rules and shows how even
/// these are: `cut_vlm --help`.

#include "models/measured_layers.hpp"
#include "models/vlm_layers.hpp"
#include "options/clip_options.hpp"
#include "options/cut_options.hpp"
#include "pictures/cut_picture.hpp"
#include "plans/vlm_cuts.hpp"
#include "reports/pipeline_layout.hpp"
#include "reports/staged_files.hpp"
#include "reports/table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace examples;

std::string in_gigabytes(std::int64_t bytes) {
  return fixed(static_cast<double>(bytes) / 1e9, 1) + " GB";
}

void print_rules(model_cuts const& model, std::int64_t memory_bytes) {
  std::vector<std::string> header{"stages", "lower bound, ms"};
  for (named_rule const& one : cut_rules) header.emplace_back(one.name);
  table shown(header);
  bool exceeds = false;
  bool lacks = false;
  for (stage_comparison const& one : model.by_stages) {
    std::vector<std::string> row{std::to_string(one.stages),
                                 fixed(static_cast<double>(one.lower_bound) / 1e6, 1)};
    for (stage_plan const& plan : one.plans) {
      bool const is_within = plan.largest_bytes <= memory_bytes;
      if (!plan.is_feasible()) {
        row.push_back("needs " + in_gigabytes(plan.largest_bytes));
        lacks = true;
        continue;
      }
      row.push_back((is_within ? "" : "! ") + fixed(plan.over_bound, 3));
      exceeds = exceeds || !is_within;
    }
    shown.add(std::move(row));
  }
  shown.print(std::cout);
  if (exceeds) std::cout << "!: a stage needs more than " << in_gigabytes(memory_bytes) << '\n';
  if (!lacks) return;
  std::cout << (model.chunks == 1 ? "needs: no cuts fit devices with less\n"
                                  : "needs: the search found no cuts for devices with less\n");
}

/// A number of each plan that is feasible, in millions, for each number of stages and each rule.
void print_millions(model_cuts const& model, std::string const& title,
                    std::int64_t stage_plan::*number) {
  std::vector<std::string> header{title};
  for (named_rule const& one : cut_rules) header.emplace_back(one.name);
  table shown(header);
  for (stage_comparison const& one : model.by_stages) {
    std::vector<std::string> row{std::to_string(one.stages) + " stages"};
    for (stage_plan const& plan : one.plans) {
      double const millions = static_cast<double>(plan.*number) / 1e6;
      row.push_back(plan.is_feasible() ? fixed(millions, 1) : "-");
    }
    shown.add(std::move(row));
  }
  std::cout << '\n';
  shown.print(std::cout);
}

/// The stages by the last rule, for the numbers of stages that fit.
void print_cuts(model_cuts const& model) {
  auto const fits = [](stage_comparison const& one) { return one[cut_rule::memory].is_feasible(); };
  if (std::ranges::none_of(model.by_stages, fits)) return;
  std::cout << '\n';
  table shown({model.chunks == 1 ? "layers of each stage, with traffic and memory"
                                 : "layers of each virtual stage, by the estimated step",
               "stages", "most memory"});
  for (stage_comparison const& one : model.by_stages) {
    if (!fits(one)) continue;
    stage_plan const& plan = one[cut_rule::memory];
    std::string counts;
    for (std::size_t s = 0; s + 1 != plan.boundaries.size(); ++s) {
      if (s != 0) counts += ' ';
      counts += std::to_string(plan.boundaries[s + 1] - plan.boundaries[s]);
    }
    shown.add({counts, std::to_string(one.stages), in_gigabytes(plan.largest_bytes)});
  }
  shown.print(std::cout);
}

/// The layers as so many stages have them, with what was measured.
std::vector<vlm_layer> layers_for(model_description const& given, std::size_t stages,
                                  cut_options const& options) {
  training_setting setting = options.training;
  setting.degrees.pipeline = static_cast<std::int64_t>(stages);
  setting.batch.tiles = tiles_of(given, options);
  setting.batch.clips = omnibal::equal_sequences(clips_of(given, options));
  auto layers = model_layers(given, setting);
  if (!options.measured.empty()) use_measured_layers(options.measured, layers);
  return layers;
}

/// A line for a model with an audio tower, whose clips the other options limit.
void print_clips(model_description const& given, cut_options const& options) {
  if (!given.audio) return;
  auto const clips = clips_of(given, options);
  std::cout << "A micro-batch has " << text_of(clips);
  if (given.vision) std::cout << " and " << tiles_of(given, options) << " tiles";
  std::cout << '\n';
}

model_cuts cut_model(model_description const& given, cut_options const& options) {
  std::size_t const layers = layer_kinds(given).size();
  std::size_t const chunks = options.machine.chunks;
  if (options.max_stages * chunks > layers) {
    throw std::runtime_error("--stages: is " + std::to_string(options.max_stages) +
                             (chunks == 1 ? "" : " with --chunks " + std::to_string(chunks)) +
                             ", but " + given.name + " has " + std::to_string(layers) + " layers");
  }
  model_cuts result{.name = given.name, .chunks = chunks, .by_stages = {}};
  for (std::size_t stages = options.min_stages; stages <= options.max_stages; ++stages) {
    result.by_stages.push_back(
        compare_cuts(layers_for(given, stages, options), stages, options.machine));
  }
  return result;
}

/// Writes a layout for each number of stages that fits, with the cuts of the last rule. Returns the
/// number of layouts.
std::size_t write_layouts(staged_files& files, model_description const& given,
                          model_cuts const& cuts, cut_options const& options) {
  auto const kinds = layer_kinds(given);
  std::vector<std::uint32_t> choices;
  for (std::string_view const kind : kinds) {
    auto const choice = choice_of(kind, options.training.recomputed);
    choices.push_back(static_cast<std::uint32_t>(choice));
  }
  std::size_t written = 0;
  for (stage_comparison const& one : cuts.by_stages) {
    auto const& plan = one[cut_rule::memory];
    if (!plan.is_feasible()) continue;
    auto const layout = layout_of(given.name, kinds, given.language->prediction_layers,
                                  plan.boundaries, choices, one.stages);
    std::string const obstacle = megatron_obstacle(given, plan.boundaries, one.stages);
    auto const megatron = obstacle.empty() ? megatron_letters(given, plan.boundaries)
                                           : megatron_export{"", "none: " + obstacle};
    auto const path =
        options.output / (given.name + "." + std::to_string(one.stages) + ".layout.json");
    files.write(path, [&](std::ostream& out) { write_layout(layout, megatron, out); });
    ++written;
  }
  return written;
}

/// Never replaces an input by an output.
void check_output(cut_options const& options) {
  namespace fs = std::filesystem;
  auto const status = fs::symlink_status(options.svg);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status)) {
    throw std::runtime_error("--svg: " + options.svg.string() + " is not a regular file");
  }
  if (fs::exists(options.measured) && fs::equivalent(options.measured, options.svg)) {
    throw std::runtime_error("--svg: " + options.svg.string() + " is an input");
  }
}

void flush_output() {
  std::cout.flush();
  if (!std::cout) throw std::runtime_error("cannot write to the standard output");
}

void run(cut_options const& options) {
  check_output(options);
  std::vector<model_cuts> models;
  std::vector<std::string> kinds;
  for (model_description const& one : options.models) {
    models.push_back(cut_model(one, options));
    kinds.push_back(kinds_of(layers_for(one, options.min_stages, options)));
  }

  staged_files files;
  if (!options.svg.empty()) {
    files.write(options.svg, [&](std::ostream& out) { write_cut_picture(models, out); });
  }
  std::size_t layouts = 0;
  for (std::size_t m = 0; m != models.size() && !options.output.empty(); ++m) {
    layouts += write_layouts(files, options.models[m], models[m], options);
  }
  std::cout << "The slowest stage over the lower bound, by what is made even.\n"
            << (options.measured.empty() ? "Times are estimates of the cost model.\n"
                                         : "Times are estimates from the measured layers.\n");
  for (std::size_t m = 0; m != models.size(); ++m) {
    std::cout << '\n' << models[m].name << ": layers " << kinds[m] << '\n';
    print_clips(options.models[m], options);
    std::cout << '\n';
    print_rules(models[m], options.machine.memory_bytes);
    if (models[m].chunks != 1) {
      print_millions(models[m], "ms of a step, estimated", &stage_plan::step_nanoseconds);
    }
    print_millions(models[m], "MB a micro-batch sends, each way", &stage_plan::sent_bytes);
    print_cuts(models[m]);
  }
  if (!options.svg.empty()) std::cout << "\nPicture: " << options.svg.string() << '\n';
  if (!options.output.empty()) {
    std::cout << "\nLayouts: " << layouts << " in " << options.output.string() << '\n';
  }
  flush_output();
  files.commit();
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = parse_cut_options(count, words);
    if (options) run(*options);
    flush_output();
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "cut_vlm: error: " << error.what() << '\n';
    return 1;
  }
}
