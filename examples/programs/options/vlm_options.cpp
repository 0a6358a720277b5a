// SPDX-License-Identifier: Apache-2.0
#include "vlm_options.hpp"

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
  machine_words machine{.name = "a100-80gb-products"};
  rank_words ranks{};
  std::size_t stages = 4;
  std::size_t micro_batches = 16;
  std::size_t batch_samples = 4;
  std::vector<std::int64_t> capacity;
  std::optional<std::int64_t> reserve_gigabytes{};
  std::vector<std::string> recompute{recompute_names.begin(), recompute_names.end()};
  std::string measured;
  std::vector<std::int64_t> measured_batch{15, 4, 1024};
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
                       "Image tiles and tokens of a micro-batch; by default chosen for the\n"
                       "samples of a random one")
          ->type_name("TILES TOKENS")
          ->expected(2)
          ->check(integer_between<std::int64_t>(1, std::int64_t{1} << 40));
  group
      ->add_option("--batch", words.batch_samples,
                   "Samples of a random micro-batch; with --capacity as many as groups have")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str()
      ->excludes(capacity);
  group->add_option("--micro-batches", words.micro_batches, "Micro-batches of a rank in a step")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str();
}

void add_model(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Model");
  group
      ->add_option("--model", words.models,
                   "Models to plan, each with a --model of its own: names, files\n"
                   "(docs/reference/models.md; also config.json of public models),\n"
                   "TOWER+LANGUAGE. Names:\n" +
                       names_of(known_models()))
      ->type_name("NAME|FILE")
      ->allow_extra_args(false)
      ->capture_default_str();
  add_family_option(*group, words.family);
  group
      ->add_option("--recompute", words.recompute,
                   "What layers may do in the last plan: none (keep everything),\n"
                   "selective, full (keep the input); several with commas")
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(
          CLI::IsMember(std::vector<std::string>(recompute_names.begin(), recompute_names.end())))
      ->default_str("none,selective,full");
  auto* const measured =
      group
          ->add_option("--measured", words.measured,
                       "A CSV file of measured times with the columns layer, forward_ms\n"
                       "and backward_ms, and perhaps kept_mb and state_mb, of a run\n"
                       "without recomputation; a layer is a number or a run such as\n"
                       "1-45. Needs one --model")
          ->type_name("FILE");
  group
      ->add_option("--measured-batch", words.measured_batch,
                   "The micro-batch that was measured: tiles, documents and the tokens\n"
                   "of each; default: 15 4 1024")
      ->type_name("TILES DOCUMENTS TOKENS")
      ->expected(3)
      ->check(integer_between<std::int64_t>(0, 1 << 20))
      ->needs(measured);
}

void add_machine(CLI::App& app, vlm_words& words) {
  auto* const group = app.add_option_group("Machine");
  add_machine_option(*group, words.machine);
  add_memory_option(*group, words.machine);
  group
      ->add_option("--reserve", words.reserve_gigabytes,
                   "GB of the memory for other things, instead of the machine's")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(0, 1'000'000));
  add_teraflops_option(*group, words.machine);
  add_link_option(*group, words.machine);
  group->add_option("--stages", words.stages, "Stages of the pipeline")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 10))
      ->capture_default_str();
  add_rank_options(*group, words.ranks);
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
          "Write plans, traces and pictures into this directory\n(docs/reference/files.md)")
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
  group->add_option("--rounds", method.rounds, "Rounds of sampling and filtering")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 20))
      ->capture_default_str();
  group
      ->add_option("--keep-below", method.token_slack,
                   "A group is kept that has all tiles of the capacity, or all tokens but\n"
                   "for so many")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(0, std::int64_t{1} << 40))
      ->capture_default_str();
  group->add_option("--radius", method.radius, "By how many layers the cuts of the anchor may move")
      ->type_name("LAYERS")
      ->check(integer_between<std::size_t>(0, 1 << 10))
      ->capture_default_str();
  group->add_option("--top", method.candidates, "Cuts with the best scores that are measured")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1 << 16))
      ->capture_default_str();
  group
      ->add_option("--traffic", method.weights.traffic,
                   "Weight of the mean traffic in the score, beside the variance over the\n"
                   "square of the mean time of a stage")
      ->type_name("WEIGHT")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""))
      ->capture_default_str();
  auto* const steps =
      group->add_option("--measured-steps", method.steps, "Steps for which cuts are simulated")
          ->type_name("COUNT")
          ->check(integer_between<std::size_t>(1, 1 << 20))
          ->capture_default_str();
  group
      ->add_option("--measure", options.command,
                   "A command of the shell that measures cuts instead: it gets the first\n"
                   "layer of each stage but the first as arguments and prints seconds,\n"
                   "or inf where the cuts cannot run")
      ->type_name("COMMAND")
      ->excludes(steps);
}

void check_plan(CLI::App const& app, vlm_words const& words, vlm_options& options) {
  for (std::string const& name : words.models) {
    options.models.push_back(chosen_model(name, model_parts::language, words.family));
  }
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
  auto& assumed = options.scenario.assumed;
  assumed.stages = words.stages;
  assumed.tensor_ranks = ranks.tensor;
  assumed.data_ranks = static_cast<std::size_t>(ranks.data);
  assumed.expert_ranks = ranks.expert;
  assumed.micro_batches = words.micro_batches;
  assumed.batch_samples = words.batch_samples;
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
      "Plans the training of vision-language and language models and simulates it, lever by\n"
      "lever: random micro-batches and stages of equal parameters with everything recomputed;\n"
      "packed micro-batches; exact cuts; cuts and what layers keep together.",
      "plan_vlm");
  app.footer(
      "Exit status: 0 where the tables are complete, also where no plan fits the memory and no\n"
      "--output was asked for; otherwise 1, and no file was written.");
  add_data(app, typed, options);
  add_model(app, typed);
  add_machine(app, typed);
  auto* const output = add_output(app, typed);
  output->add_flag("--sensitivity", options.wants_sensitivity,
                   "Show what other assumptions would give");
  output
      ->add_option("--replay", typed.replayed,
                   "Only simulate this NAME.plan.json again, with the files beside it, and\n"
                   "refuse all other options;\n"
                   "fails where other figures come out or a stage exceeds its memory")
      ->type_name("FILE");
  if (!parse_words(app, count, words)) return std::nullopt;
  check_not_empty(app, "--replay", "the name of a file");
  check_replay(app);
  check_plan(app, typed, options);
  return options;
}

std::optional<published_options> parse_published(int count, char const* const* words) {
  published_options options;
  vlm_words typed;
  CLI::App app(
      "Plans the training of vision-language and language models as OmniBal was published:\n"
      "groups by sampling and filtering, dealt at random; cuts near those of a greedy walk,\n"
      "ranked by variance and traffic, the best of them measured; layers that no longer\n"
      "recompute, from two readings of the memory. Shows it beside this library's plan.",
      "plan_as_published");
  app.footer(
      "Exit status: 0 where the tables are complete, also where no plan fits the memory and no\n"
      "--output was asked for; otherwise 1, and no file was written.");
  add_data(app, typed, options.common);
  add_model(app, typed);
  add_machine(app, typed);
  add_published(app, options);
  add_output(app, typed);
  if (!parse_words(app, count, words)) return std::nullopt;
  check_not_empty(app, "--measure", "a command");
  check_plan(app, typed, options.common);
  if (!options.command.empty() && options.common.models.size() != 1) {
    throw std::runtime_error("--measure measures one model: say which with --model");
  }
  return options;
}

}  // namespace examples
