// SPDX-License-Identifier: Apache-2.0
#include "vlm_options.hpp"

#include "clip_options.hpp"
#include "machine_options.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "synthetic.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

/// What is typed, before it is checked and becomes `vlm_options`.
struct vlm_words {
  std::vector<std::string> models{"6+20B", "6+34B"};
  std::string family;
  bool describes = false;
  machine_words machine{.name = "a100-80gb-products"};
  rank_words ranks{};
  std::size_t stages = 4;
  std::size_t chunks = 1;
  std::size_t micro_batches = 16;
  std::size_t batch_samples = 4;
  std::vector<std::int64_t> capacity;
  std::optional<std::int64_t> reserve_gigabytes{};
  std::int64_t offload_gigabytes = 0;
  std::size_t offload_stages = 1;
  std::vector<std::string> recompute{recompute_names.begin(), recompute_names.end()};
  std::string measured;
  std::vector<std::int64_t> measured_batch{15, 4, 1024};
  omnibal::repeated_length clips{.count = 1, .length = 1500};
  std::string output;
  std::string replayed;
};

void add_data(CLI::App& app, vlm_words& words, vlm_options& options) {
  auto* const group = app.add_option_group("Data");
  auto* const files = add_length_options(*group, options.lengths, image_options::offered);
  add_synthetic_option(*group, options.synthetic_samples, 1024, std::size_t{1} << 22, files);
  add_seed_option(*group, options.seed);
  auto* const capacity =
      group
          ->add_option("--capacity", words.capacity,
                       "Limit the image tiles and the tokens of a micro-batch. Default: chosen so "
                       "that micro-batches have --batch samples on average")
          ->type_name("TILES TOKENS")
          ->expected(2)
          ->check(integer_between<std::int64_t>(1, std::int64_t{1} << 40));
  group
      ->add_option("--batch", words.batch_samples,
                   "Put this number of samples into a random micro-batch; with --capacity, the "
                   "average number of samples of a group")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str()
      ->excludes(capacity);
  group
      ->add_option("--micro-batches", words.micro_batches,
                   "Set the number of micro-batches of a rank in a step")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str();
}

void add_model(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Model");
  group
      ->add_option("--model", words.models,
                   "Plan this model; repeat the option for several models." + model_words())
      ->type_name("NAME|FILE")
      ->allow_extra_args(false)
      ->capture_default_str();
  group
      ->add_option("--recompute", words.recompute,
                   "Allow these choices of recomputation for each layer of the last plan, with "
                   "commas between them. none: keep all activations; full: keep the input only")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(
          CLI::IsMember(std::vector<std::string>(recompute_names.begin(), recompute_names.end())))
      ->default_str("none,selective,full");
  auto* const measured =
      group
          ->add_option("--measured", words.measured,
                       "Read measured times of layers, of a run without recomputation, from this "
                       "CSV file with the columns layer, forward_ms and backward_ms, and "
                       "optionally kept_mb and state_mb. A layer is a number, or a range such as "
                       "1-45. Requires one --model. Default: all costs are modeled")
          ->type_name("FILE");
  group
      ->add_option("--measured-batch", words.measured_batch,
                   "State the measured micro-batch: the numbers of tiles and documents, and the "
                   "tokens of each document. Default: 15 4 1024")
      ->type_name("TILES DOCUMENTS TOKENS")
      ->expected(3)
      ->check(integer_between<std::int64_t>(0, 1 << 20))
      ->needs(measured);
  add_clip_options(
      *group, words.clips,
      "Set the most audio clips of a sample if the model has an audio tower. A sample has fewer "
      "if its tokens have no room for the tokens of this number of clips");
  add_family_option(*group, words.family);
  add_describe_option(*group, words.describes);
}

void add_machine(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Machine");
  add_machine_option(*group, words.machine);
  add_memory_option(*group, words.machine);
  group
      ->add_option(
          "--reserve", words.reserve_gigabytes,
          "Reserve this part of the memory for other purposes. Default: the reserve of the "
          "machine")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(0, 1'000'000));
  add_teraflops_option(*group, words.machine);
  add_link_option(*group, words.machine);
  group->add_option("--stages", words.stages, "Set the number of stages of the pipeline")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 10))
      ->capture_default_str();
  add_rank_options(*group, words.ranks);
}

/// Only plan_vlm offloads.
void add_offload(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Offloading");
  auto* const link =
      group
          ->add_option("--offload", words.offload_gigabytes,
                       "Plan once more with a link of this rate in each direction between each "
                       "device and the memory of the host: each module of a layer is kept, "
                       "recomputed or offloaded. Default: nothing is offloaded")
          ->type_name("GB/s")
          ->check(integer_between<std::int64_t>(1, 1'000'000))
          ->excludes(app.get_option("--recompute"));
  group
      ->add_option("--offload-sharing", words.offload_stages,
                   "Share each of these links between the devices of this number of neighboring "
                   "stages, in equal parts")
      ->type_name("STAGES")
      ->check(integer_between<std::size_t>(1, 1 << 10))
      ->capture_default_str()
      ->needs(link);
}

void add_chunks(CLI::App& app, vlm_words& words) {
  app.get_option_group("Machine")
      ->add_option("--chunks", words.chunks,
                   "Put this number of chunks of the model on each stage, as virtual stages of "
                   "interleaved 1F1B. The default, 1, is 1F1B. Chunks in a V are not simulated, "
                   "because costs do not split the backward pass; cut_vlm cuts them")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 10))
      ->capture_default_str()
      ->excludes(app.get_option("--offload"));
}

/// Refuses an option that was typed with nothing behind it.
void check_not_empty(CLI::App const& app, char const* option, std::string const& rule) {
  if (app.count(option) == 0 || !app[option]->as<std::string>().empty()) return;
  throw std::runtime_error(std::string(option) + " is empty, must be " + rule);
}

CLI::App* add_output(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Output");
  group
      ->add_option(
          "--output", words.output,
          "Write plans, traces and pictures into this directory (docs/reference/files.md). "
          "Default: no files")
      ->type_name("DIRECTORY");
  return group;
}

/// Refuses what a replay does not use: the written plan has it.
void check_replay(CLI::App const& app) {
  if (app.count("--replay") == 0) return;
  for (CLI::App const* const group : app.get_subcommands(nullptr)) {
    for (CLI::Option const* const option : group->get_options()) {
      if (option->count() == 0 || option->get_name() == "--replay") continue;
      throw std::runtime_error(option->get_name() +
                               " is not for --replay, which simulates a plan as it was written");
    }
  }
}

/// What OmniBal leaves to choose.
void add_published(CLI::App& app, published_options& options) {
  auto* const group = app.add_option_group("Published method");
  published_method& method = options.method;
  group
      ->add_option("--rounds", method.rounds, "Run this number of rounds of sampling and filtering")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 20))
      ->capture_default_str();
  group
      ->add_option("--keep-below", method.token_slack,
                   "Keep a group whose tiles fill the capacity, or whose tokens fill it except for "
                   "this number")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(0, std::int64_t{1} << 40))
      ->capture_default_str();
  group
      ->add_option("--radius", method.radius,
                   "Move the cuts of the anchor by at most this number of layers")
      ->type_name("LAYERS")
      ->check(integer_between<std::size_t>(0, 1 << 10))
      ->capture_default_str();
  group
      ->add_option("--top", method.candidates,
                   "Measure this number of cuts, those with the best scores")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str();
  group
      ->add_option("--traffic", method.weights.traffic,
                   "Weight the average traffic in the score by this number; the weight of the "
                   "squared coefficient of variation of the stage times is 1")
      ->type_name("WEIGHT")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""))
      ->capture_default_str();
  auto* const steps =
      group->add_option("--measured-steps", method.steps, "Simulate cuts for this number of steps")
          ->type_name("COUNT")
          ->check(integer_between<std::size_t>(1, 1 << 20))
          ->capture_default_str();
  group
      ->add_option("--measure", options.command,
                   "Measure cuts by this command of the shell: its arguments are the first layer "
                   "of each stage except the first, and it prints seconds, or inf if the cuts "
                   "cannot run. Default: cuts are simulated")
      ->type_name("COMMAND")
      ->excludes(steps);
}

void check_plan(CLI::App const& app, vlm_words const& words, vlm_options& options) {
  for (std::string const& name : words.models) {
    options.models.push_back(chosen_model(name, model_parts::language, words.family));
  }
  check_clip_options(app, options.models);
  for (char const* const option : {"--measured", "--output"}) {
    check_not_empty(app, option, "the name of a file");
  }
  if (!words.measured.empty() && options.models.size() != 1) {
    throw std::runtime_error("--measured has the times of one model: say which with --model");
  }
  auto machine = chosen_machine(words.machine);
  if (words.reserve_gigabytes) machine.reserve_bytes = giga * *words.reserve_gigabytes;
  if (machine.reserve_bytes >= machine.memory_bytes) {
    throw std::runtime_error("--reserve: " + std::to_string(machine.reserve_bytes) +
                             " bytes leave nothing of a memory of " +
                             std::to_string(machine.memory_bytes));
  }
  rank_words ranks = words.ranks;
  fit_ranks(app, machine, static_cast<std::int64_t>(words.stages), ranks);
  check_ranks(ranks, options.models);
  options.machine_name = machine.name;
  options.scenario = scenario_on("as assumed", machine);
  options.scenario.clips = words.clips;
  auto& assumed = options.scenario.assumed;
  assumed.stages = words.stages;
  assumed.chunks = words.chunks;
  assumed.tensor_ranks = ranks.tensor;
  assumed.data_ranks = static_cast<std::size_t>(ranks.data);
  assumed.expert_ranks = ranks.expert;
  assumed.micro_batches = words.micro_batches;
  assumed.batch_samples = words.batch_samples;
  options.scenario.offload_bytes_per_second = giga * words.offload_gigabytes;
  options.scenario.offload_stages = words.offload_stages;
  assumed.recomputed = {};
  for (std::string const& name : words.recompute) {
    auto const found = std::ranges::find(recompute_names, name);
    assumed.recomputed[static_cast<std::size_t>(found - recompute_names.begin())] = true;
  }
  if (!words.capacity.empty()) {
    options.scenario.capacity = {words.capacity[0], words.capacity[1]};
  }
  if (app.count("--measured-batch") != 0) {
    auto const& batch = words.measured_batch;
    std::int64_t const tiles = options.models.front().max_tiles(batch[1] * batch[2]);
    if (batch[0] > tiles) {
      throw std::runtime_error("--measured-batch: has " + std::to_string(batch[0]) +
                               " tiles, must have at most " + std::to_string(tiles) + " in " +
                               std::to_string(batch[1] * batch[2]) + " tokens of " +
                               options.models.front().name);
    }
  }
  options.measured = words.measured;
  options.measured_batch = {
      .tiles = words.measured_batch[0],
      .documents = omnibal::equal_sequences(
          {.count = words.measured_batch[1], .length = words.measured_batch[2]})};
  if (options.models.front().audio) {
    sample_clips const clips = clips_for(options.models.front(), words.clips);
    std::int64_t const of_tiles = words.measured_batch[0] * clips.tile_tokens;
    std::int64_t const tokens = options.measured_batch.documents.tokens - of_tiles;
    std::int64_t const most = words.clips.count * words.measured_batch[1];
    options.measured_batch.clips = omnibal::equal_sequences(
        {.count =
             clips.document_tokens == 0 ? most : std::min(most, tokens / clips.document_tokens),
         .length = words.clips.length});
  }
  options.output = words.output;
  options.replayed = words.replayed;
}

}  // namespace

dataset lengths_of(vlm_options const& given) {
  if (given.lengths.files.empty()) return synthetic_lengths(given.synthetic_samples, given.seed);
  progress hidden(visibility::hidden);
  return read_lengths(given.lengths, hidden);
}

dataset lengths_for(dataset data, model_description const& model) {
  if (model.vision) return data;
  for (sample& one : data.samples) one.images = 0;
  data.kind = sample_kind::text;
  return data;
}

layer_profile profile_of(vlm_options const& given, model_description const& model,
                         vlm_scenario const& scenario) {
  if (given.measured.empty()) return {};
  auto const modeled = omnibal::layer_costs(padded(model, scenario.assumed.tensor_ranks),
                                            given.measured_batch, scenario.assumed.degrees());
  return {read_measured_layers(given.measured, modeled.size()), given.measured_batch, modeled,
          scenario.assumed.device};
}

std::optional<vlm_options> parse_vlm(int count, char const* const* words) {
  vlm_options options;
  vlm_words typed;
  CLI::App app(
      "Plans the training of vision-language and language models and simulates it, one measure "
      "after the other: random micro-batches, and stages of equal parameters that recompute "
      "everything; packed micro-batches; exact cuts; cuts chosen together with recomputation; with "
      "--offload, also with offloading.",
      "plan_vlm");
  app.footer(example_and_status(
      "plan_vlm --model 6+20B --stages 4 --output plans",
      "0 if the tables are complete, even if no plan fits the memory and there is no --output; "
      "otherwise 1, and no file is written."));
  add_model(app, typed);
  add_machine(app, typed);
  add_offload(app, typed);
  add_chunks(app, typed);
  add_data(app, typed, options);
  auto* const output = add_output(app, typed);
  output->add_flag("--sensitivity", options.wants_sensitivity,
                   "Print the results of other assumptions, too");
  output
      ->add_option("--replay", typed.replayed,
                   "Simulate this NAME.plan.json, with the files next to it, and check its "
                   "figures and the memory of each stage. All other options are refused. Default: "
                   "make plans")
      ->type_name("FILE");
  if (!parse_words(app, count, words)) return std::nullopt;
  if (typed.describes) {
    print_models(typed.models, typed.family);
    return std::nullopt;
  }
  check_not_empty(app, "--replay", "the name of a file");
  check_replay(app);
  check_plan(app, typed, options);
  return options;
}

std::optional<published_options> parse_published(int count, char const* const* words) {
  published_options options;
  vlm_words typed;
  CLI::App app(
      "Plans the training of vision-language and language models as OmniBal was published: groups "
      "by sampling and filtering in random order; cuts near those of a greedy walk, ranked by "
      "variance and traffic, the best of them measured; layers that no longer recompute, from two "
      "readings of the memory. Compares the plan with the plan of this library.",
      "plan_as_published");
  app.footer(example_and_status(
      "plan_as_published --model 6+20B --stages 4 --rounds 20",
      "0 if the tables are complete, even if no plan fits the memory and there is no --output; "
      "otherwise 1, and no file is written."));
  add_model(app, typed);
  add_machine(app, typed);
  add_data(app, typed, options.common);
  add_published(app, options);
  add_output(app, typed);
  if (!parse_words(app, count, words)) return std::nullopt;
  if (typed.describes) {
    print_models(typed.models, typed.family);
    return std::nullopt;
  }
  check_not_empty(app, "--measure", "a command");
  check_plan(app, typed, options.common);
  if (!options.command.empty() && options.common.models.size() != 1) {
    throw std::runtime_error("--measure measures one model: say which with --model");
  }
  return options;
}

}  // namespace examples
