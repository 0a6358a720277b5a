// SPDX-License-Identifier: Apache-2.0
#include "long_context_options.hpp"

#include "clip_options.hpp"
#include "machine_options.hpp"
#include "measured_layers.hpp"
#include "option_checks.hpp"

#include <omnibal/cost/layer_cost.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

/// What the parser writes, before it is checked as a whole.
struct long_context_words {
  std::string mix = "two-sources";
  std::string model = "llama3-8b";
  std::string family;
  bool describes = false;
  machine_words machine{};
  std::string measured;
  std::vector<std::int64_t> measured_batch{1, 4096};
  omnibal::repeated_length clips{.count = 4, .length = 1500};
  std::string output;
  std::string weights = std::string(loss_weight_names[0]);
  std::string svg;
  std::string svg_step;
};

/// Options that one of the two tasks takes.
struct task_options {
  std::vector<CLI::Option*> levels;
  std::vector<CLI::Option*> steps;
};

void add_data(CLI::App& app, long_context_words& words, long_context_options& options) {
  auto* const group = app.add_option_group("Data");
  auto* const files = add_length_options(*group, options.lengths, image_options::none);
  group
      ->add_option("--mix", words.mix,
                   "Draw the lengths of the synthetic data set from this mix: conversations and "
                   "documents, or one broad distribution")
      ->type_name("NAME")
      ->check(CLI::IsMember({"two-sources", "broad"}))
      ->capture_default_str()
      ->excludes(files);
  add_synthetic_option(*group, options.synthetic_samples, 1, 100'000'000, files);
  add_seed_option(*group, options.seed);
  group
      ->add_option("--ranks", options.ranks,
                   "Train on this number of devices: a multiple of 8, or of --ranks-per-node if "
                   "steps are compared")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, std::int64_t{1} << 20))
      ->capture_default_str();
}

/// Returns the option of the directory.
CLI::Option* add_output(CLI::App& app, long_context_words& words) {
  auto* const group = app.add_option_group("Output");
  auto* const output =
      group
          ->add_option("--output", words.output,
                       "Write plans into this directory (docs/reference/files.md): the fastest "
                       "plan of levels, or the plans of all methods for steps. Default: no plan")
          ->type_name("DIRECTORY");
  group
      ->add_option("--weights", words.weights,
                   "Divide the losses of a written step by the average tokens of a step of the "
                   "epoch, or by the tokens of this step")
      ->type_name("NAME")
      ->check(CLI::IsMember({"epoch", "step"}))
      ->capture_default_str()
      ->needs(output);
  return output;
}

/// Returns what comparisons of steps do not use.
CLI::Option* add_model(CLI::App& app, long_context_words& words) {
  auto* const group = app.add_option_group("Model and machine");
  add_model_option(*group, words.model, "Train the language model of this model.");
  add_clip_options(*group, words.clips,
                   "Set the audio clips in every " + std::to_string(tokens_with_clips) +
                       " tokens of the samples if the model has an audio tower. The default is "
                       "lowered, to one at least, if the clips have more tokens");
  add_family_option(*group, words.family);
  add_describe_option(*group, words.describes);
  add_machine_option(*group, words.machine)
      ->description(
          "Compute times and memory for this machine. A name, or a file "
          "(docs/reference/models.md). Names: " +
          names_of(known_machines()) + ". Default: a100-80gb for levels, h100-80gb for steps");
  auto* const memory = add_memory_option(*group, words.machine);
  auto* const teraflops = add_teraflops_option(*group, words.machine);
  auto* const measured =
      group
          ->add_option("--measured", words.measured,
                       "Compute the speed of a device from the measured times in this CSV file "
                       "with the columns layer, forward_ms and backward_ms. Default: --teraflops")
          ->type_name("FILE")
          ->excludes(teraflops);
  group
      ->add_option("--measured-batch", words.measured_batch,
                   "State the measured micro-batch: the number of documents and the tokens of "
                   "each. Default: 1 4096")
      ->type_name("DOCUMENTS TOKENS")
      ->expected(2)
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->needs(measured);
  return memory;
}

/// The clips whose tokens stand in `tokens_with_clips` tokens.
omnibal::repeated_length checked_clips(CLI::App const& app, model_description const& model,
                                       omnibal::repeated_length clips) {
  std::int64_t const of_clip = model.audio->document_tokens(clips.length);
  std::int64_t const most = tokens_with_clips / of_clip;
  if (app.count("--clips") == 0) clips.count = std::clamp<std::int64_t>(most, 1, clips.count);
  if (clips.count <= most) return clips;
  throw std::runtime_error("--clips: is " + std::to_string(clips.count) + ", must be at most " +
                           std::to_string(most) + ", because a clip becomes " +
                           std::to_string(of_clip) + " tokens of " + model.name);
}

/// Which model trains on what.
void choose_machine(CLI::App const& app, long_context_words words, long_context_options& options) {
  options.model = chosen_model(words.model, model_parts::language, words.family);
  if (options.model.cross || has_cross_attention(*options.model.language)) {
    throw std::runtime_error("--model: " + options.model.name + " attends to " +
                             (options.model.audio ? "clips" : "tiles") +
                             ", and samples have tokens of the language model only");
  }
  check_clip_options(app, {options.model});
  if (options.model.audio) options.clips = checked_clips(app, options.model, words.clips);
  bool const has_steps = options.task == long_context_task::steps;
  if (app.count("--machine") == 0) words.machine.name = has_steps ? "h100-80gb" : "a100-80gb";
  options.machine = chosen_machine(words.machine);
  if (!words.measured.empty()) {
    omnibal::micro_batch_work const batch{
        .documents = omnibal::equal_sequences(
            {.count = words.measured_batch[0], .length = words.measured_batch[1]})};
    options.machine.flops =
        reached_flops(words.measured, options.model, measured_part::language, batch);
  }
  if (app.count("--ranks") == 0 && options.machine.ranks != 0) {
    options.ranks = options.machine.ranks;
  }
  if (app.count("--ranks-per-node") == 0) {
    options.ranks_per_node = static_cast<std::uint32_t>(options.machine.ranks_per_node);
  }
}

std::vector<CLI::Option*> add_levels(CLI::App& app, long_context_words& words,
                                     long_context_options& options) {
  auto* const group =
      app.add_option_group("Levels over an epoch (without --step-samples and --step-tokens)");
  auto* const svg =
      group
          ->add_option("--svg", words.svg,
                       "Draw levels and idle time into this file. Default: no picture")
          ->type_name("FILE");
  auto* const first =
      group
          ->add_option("--short-first", options.short_first_steps,
                       "Begin the written plan with this number of steps that have packs of the "
                       "shortest level only")
          ->type_name("STEPS")
          ->check(integer_between<std::uint64_t>(0, std::numeric_limits<std::uint32_t>::max()))
          ->capture_default_str();
  return {svg, first};
}

std::vector<CLI::Option*> add_steps(CLI::App& app, long_context_words& words,
                                    long_context_options& options) {
  auto* const group = app.add_option_group("Steps (with --step-samples or --step-tokens)");
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  auto* const samples =
      group
          ->add_option("--step-samples", options.size.samples,
                       "Compare methods on steps of this number of samples. Default: "
                       "compare levels over an epoch")
          ->type_name("COUNT")
          ->check(integer_between<std::uint64_t>(1, most));
  group
      ->add_option("--step-tokens", options.size.tokens,
                   "Compare methods on steps of this number of tokens. Default: "
                   "compare levels over an epoch")
      ->type_name("COUNT")
      ->check(integer_between<std::uint64_t>(1, std::uint64_t{1} << 62))
      ->excludes(samples);
  auto* const node =
      group
          ->add_option("--ranks-per-node", options.ranks_per_node,
                       "Set the number of ranks of a node, between which links are fast")
          ->type_name("COUNT")
          ->check(integer_between<std::uint32_t>(1, 65'536))
          ->capture_default_str();
  auto* const degrees = group
                            ->add_option("--degrees", options.degrees,
                                         "Allow these degrees of context parallelism, such as "
                                         "1,2,4,8. Default: all")
                            ->type_name("LIST")
                            ->delimiter(',')
                            ->allow_extra_args(false)
                            ->check(integer_between<std::uint32_t>(1, 65'536));
  auto* const tokens =
      group
          ->add_option("--rank-tokens", options.rank_tokens,
                       "Limit the tokens that the memory of a rank holds at a time")
          ->type_name("COUNT")
          ->check(integer_between<std::int64_t>(1, most))
          ->capture_default_str();
  auto* const svg =
      group
          ->add_option("--svg-step", words.svg_step,
                       "Draw the ranks of the first step over time into this file. Default: no "
                       "picture")
          ->type_name("FILE");
  return {node, degrees, tokens, svg};
}

[[noreturn]] void refuse(std::string const& option, std::string const& problem) {
  throw std::runtime_error(option + ": " + problem);
}

void check_multiple(long_context_options const& options, std::int64_t of) {
  if (options.ranks % of == 0) return;
  refuse("--ranks",
         "is " + std::to_string(options.ranks) + ", must be a multiple of " + std::to_string(of));
}

void check_steps(long_context_options& options) {
  constexpr std::int64_t max_ranks = 65'536;
  constexpr std::int64_t max_drawn = 4096;
  if (options.ranks > max_ranks) {
    refuse("--ranks", "is " + std::to_string(options.ranks) + ", must be at most " +
                          std::to_string(max_ranks) + " where steps are compared");
  }
  check_multiple(options, options.ranks_per_node);
  if (!options.svg_step.empty() && options.ranks > max_drawn) {
    refuse("--svg-step", "draws at most " + std::to_string(max_drawn) + " ranks, --ranks is " +
                             std::to_string(options.ranks));
  }
  auto& degrees = options.degrees;
  std::ranges::sort(degrees);
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  if (!degrees.empty() && degrees.back() > options.ranks) {
    refuse("--degrees", "has " + std::to_string(degrees.back()) + ", must be at most " +
                            std::to_string(options.ranks) + ", the ranks");
  }
}

/// Throws for options of the other task.
void check_task(long_context_options& options, task_options const& of) {
  bool const has_steps = options.task == long_context_task::steps;
  for (CLI::Option const* const option : has_steps ? of.levels : of.steps) {
    if (option->count() == 0) continue;
    refuse(option->get_name(), has_steps ? "is for levels, not with --step-samples or --step-tokens"
                                         : "is for --step-samples or --step-tokens");
  }
  if (has_steps) {
    check_steps(options);
  } else {
    check_multiple(options, 8);
  }
}

}  // namespace

std::optional<long_context_options> parse_long_context(int count, char const* const* words) {
  long_context_options options;
  long_context_words text;
  CLI::App app(
      "Packs long and short samples in levels of length, as hierarchical balance packing does, and "
      "compares the simulated training of a language model with plain packing.\n"
      "With --step-samples or --step-tokens, compares three methods that run given steps: one "
      "degree of context parallelism for all samples, levels, and groups of ranks of different "
      "sizes.",
      "pack_long_context");
  app.footer(
      example_and_status("pack_long_context lengths.jsonl --token-field length --ranks 64",
                         "0 if the tables are complete; otherwise 1, and no file is written."));
  add_data(app, text, options);
  auto* const memory = add_model(app, text);
  task_options of{add_levels(app, text, options), add_steps(app, text, options)};
  auto* const output = add_output(app, text);
  // The last of them, --short-first, is of the written plan.
  of.levels.back()->needs(output);
  of.levels.push_back(memory);
  if (!parse_words(app, count, words)) return std::nullopt;
  if (text.describes) {
    print_models({text.model}, text.family);
    return std::nullopt;
  }
  if (text.mix == "broad") options.mix = length_mix::broad;
  if (options.size.samples != 0 || options.size.tokens != 0) {
    options.task = long_context_task::steps;
  }
  choose_machine(app, text, options);
  options.output = text.output;
  if (text.weights == loss_weight_names[1]) options.weights = loss_weights::step;
  options.svg = text.svg;
  options.svg_step = text.svg_step;
  check_task(options, of);
  return options;
}

}  // namespace examples
