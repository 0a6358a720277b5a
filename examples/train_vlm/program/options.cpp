// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "option_checks.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace train_vlm {

namespace {

std::map<std::string, form_kind> const form_names{{"padded", form_kind::padded},
                                                  {"unpadded", form_kind::unpadded},
                                                  {"random_packs", form_kind::random_packs},
                                                  {"even_packs", form_kind::even_packs},
                                                  {"post_balanced", form_kind::post_balanced}};

template <class Enum>
void add_choice(CLI::App& group, std::string const& name, Enum& value,
                std::map<std::string, Enum> const& names, std::string const& text) {
  std::string words;
  std::string chosen;
  for (auto const& [word, meant] : names) {
    words += (words.empty() ? "" : "|") + word;
    if (meant == value) chosen = word;
  }
  group.add_option(name, value, text)
      ->type_name(words)
      ->transform(CLI::CheckedTransformer(names).description(""))
      ->default_str(chosen);
}

template <class Integer>
void add_count(CLI::App& group, std::string const& name, Integer& value, Integer least,
               Integer most, std::string const& text, std::string const& unit = "COUNT") {
  group.add_option(name, value, text)
      ->type_name(unit)
      ->check(examples::integer_between(least, most))
      ->capture_default_str();
}

void add_data_options(CLI::App& app, train_options& options) {
  auto& group = *app.add_option_group("Data");
  auto* const files =
      examples::add_length_options(group, options.lengths, examples::image_options::offered);
  constexpr std::size_t most = std::size_t{1} << 30;
  examples::add_synthetic_option(group, options.synthetic_samples, 1, most, files);
  add_count(group, "--limit", options.limit, std::size_t{0}, most,
            "Read only this number of samples from the start; 0 reads all");
  add_count<std::int64_t>(group, "--shrink", options.shrink, 1, 256,
                          "Replace this number of tokens of the data by one token of the model: by "
                          "default the 256 tokens of a tile become 16",
                          "TOKENS");
  group
      .add_option("--target-batch", options.target_batch,
                  "Choose a capacity for the data, such that packs have at least this number of "
                  "samples on average. Not with a capacity")
      ->type_name("COUNT")
      ->check(examples::number_that_is("at least 1", [](double value) { return value >= 1; }))
      ->capture_default_str();
  group
      .add_option("--capacity-images", options.capacity_images,
                  "Limit the image tiles of a pack. Default: chosen, or 9 with --capacity-tokens")
      ->type_name("TILES")
      ->check(examples::integer_between<std::int64_t>(1, 1 << 20));
  group
      .add_option("--capacity-tokens", options.capacity_tokens,
                  "Limit the tokens of a pack, counted before --shrink. Default: chosen, or 4096 "
                  "with --capacity-images")
      ->type_name("TOKENS")
      ->check(examples::integer_between<std::int64_t>(1, 1 << 30));
  add_choice<oversized_kind>(
      group, "--oversized", options.oversized,
      {{"error", oversized_kind::error}, {"own-group", oversized_kind::own_group}},
      "Refuse a sample above the capacity, or give it a group of its own");
}

void add_training_options(CLI::App& app, train_options& options) {
  auto& group = *app.add_option_group("Training");
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  add_choice(group, "--form", options.form, form_names,
             "Form the batches of the ranks by this method");
  add_choice<weight_kind>(
      group, "--weights", options.weight,
      {{"step", weight_kind::step}, {"epoch", weight_kind::epoch}, {"means", weight_kind::means}},
      "Divide losses by the tokens of the step or of an average step of the epoch, or average the "
      "means of ranks");
  add_count(group, "--ranks", options.ranks, std::size_t{1}, std::size_t{1024},
            "Start this number of processes");
  add_count(group, "--batch", options.batch, std::size_t{0}, std::size_t{1} << 20,
            "Put this number of samples into a batch that is not packed; 0 takes the average of "
            "the packs");
  group
      .add_option("--max-dist-ratio", options.max_dist_ratio,
                  "Limit the average idle share of balanced steps")
      ->type_name("SHARE")
      ->capture_default_str();
  add_count(group, "--seed", options.seed, std::uint64_t{0}, most,
            "Set the seed of all random choices", "NUMBER");
  group.add_option("--learning-rate", options.learning_rate, "Set the learning rate of AdamW")
      ->type_name("RATE")
      ->capture_default_str();
  add_count(group, "--epochs", options.epochs, std::uint64_t{1}, most,
            "Train this number of epochs");
  add_count(group, "--steps", options.steps, std::uint64_t{0}, most,
            "Stop after this number of steps; 0 runs all");
  add_count(group, "--micro-batches", options.micro_batches, std::size_t{1}, std::size_t{4096},
            "Set the number of packs of a step of a pipeline");
  add_count<std::int64_t>(group, "--timeout", options.timeout_seconds, 1, 86400,
                          "Fail if a rank waits longer than this for another rank", "SECONDS");
}

void add_measuring_options(CLI::App& app, train_options& options) {
  auto& group = *app.add_option_group("Measuring");
  add_count(group, "--runs", options.runs, std::size_t{1}, std::size_t{1000},
            "Measure the median of this number of runs");
  group
      .add_option("--replay", options.replayed_ranks,
                  "Replay these numbers of ranks, such as 8,32. Default: 8,32,64")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  group.add_flag("--offload", options.offloads,
                 "Keep, recompute or offload in --task memory, and check the predicted peaks");
  group
      .add_option("--svg", options.svg, "Draw --task learning into this file. Default: no picture")
      ->type_name("FILE");
}

void add_state_options(CLI::App& app, train_options& options) {
  auto& group = *app.add_option_group("State");
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  group
      .add_option(
          "--checkpoint", options.checkpoint,
          "Write a checkpoint to this file at the end and when the run stops. Default: none")
      ->type_name("FILE");
  add_count(group, "--checkpoint-every", options.checkpoint_every, std::uint64_t{0}, most,
            "Also write a checkpoint after each such number of steps; 0 writes none", "STEPS");
  group.add_flag("--resume", options.resumes, "Resume from --checkpoint");
  group
      .add_option(
          "--log", options.log,
          "Write the samples of the steps of each rank into this directory. Default: no log")
      ->type_name("DIRECTORY");
}

void add_model_options(CLI::App& app, model_size& model) {
  auto& group = *app.add_option_group("Model");
  auto const number = [&](std::string const& name, std::int64_t& value, std::string const& text) {
    add_count<std::int64_t>(group, name, value, 1, 65536, text);
  };
  number("--vision-width", model.vision_width, "Set the width of the image encoder");
  number("--vision-layers", model.vision_layers, "Set the layers of the image encoder");
  number("--width", model.width, "Set the width of the language model");
  number("--layers", model.layers, "Set the layers of the language model");
  number("--heads", model.heads, "Set the attention heads of both");
}

}  // namespace

std::optional<train_options> parse_options(int count, char const* const* words) {
  train_options options;
  CLI::App app(
      "Trains a small vision-language model on several processes over Gloo, and measures the gains "
      "from balanced data, cuts and recomputation.",
      "train_vlm");
  app.footer(
      examples::example_and_status("train_vlm --ranks 2 --steps 4 --synthetic 400",
                                   "0 if the task is complete and its checks hold; otherwise 1."));
  add_choice<task_kind>(app, "--task", options.task,
                        {{"train", task_kind::train},
                         {"compare", task_kind::compare},
                         {"replay", task_kind::replay},
                         {"gradients", task_kind::gradients},
                         {"curves", task_kind::curves},
                         {"learning", task_kind::learning},
                         {"long", task_kind::long_contexts},
                         {"memory", task_kind::memory},
                         {"pipeline", task_kind::pipeline}},
                        "Run this task");
  add_training_options(app, options);
  add_data_options(app, options);
  add_measuring_options(app, options);
  add_state_options(app, options);
  add_model_options(app, options.model);
  if (!examples::parse_words(app, count, words)) return std::nullopt;
  model_size& model = options.model;
  if (model.width % (2 * model.heads) != 0 || model.vision_width % (2 * model.heads) != 0) {
    throw std::runtime_error("--heads is " + std::to_string(model.heads) +
                             ", twice that must divide --width and --vision-width");
  }
  if (options.resumes && options.checkpoint.empty()) {
    throw std::runtime_error("--resume needs --checkpoint");
  }
  if (options.checkpoint_every != 0 && options.checkpoint.empty()) {
    throw std::runtime_error("--checkpoint-every needs --checkpoint");
  }
  if (app.count("--capacity-images") + app.count("--capacity-tokens") != 0) {
    if (app.count("--target-batch") != 0) {
      throw std::runtime_error("--target-batch chooses a capacity, and one is given");
    }
    options.target_batch = 0;
    if (options.capacity_images == 0) options.capacity_images = 9;
    if (options.capacity_tokens == 0) options.capacity_tokens = 4096;
  }
  auto const check_task = [&app](char const* option, bool acts) {
    if (app.count(option) == 0 || acts) return;
    throw std::runtime_error(std::string(option) + " has no effect in this --task");
  };
  check_task("--svg", options.task == task_kind::learning);
  check_task("--offload", options.task == task_kind::memory);
  check_task("--replay",
             options.task == task_kind::replay || options.task == task_kind::long_contexts);
  model.tile_tokens = (256 + options.shrink - 1) / options.shrink;
  if (options.task == task_kind::replay || options.task == task_kind::memory) options.ranks = 1;
  return options;
}

std::string to_text(form_kind form) {
  for (auto const& [name, value] : form_names) {
    if (value == form) return name;
  }
  return {};
}

std::string lasting_options(train_options const& options) {
  std::string text;
  auto const add = [&](std::string const& name, auto value) {
    text += (text.empty() ? "" : " ") + name + " " + std::to_string(value);
  };
  model_size const& model = options.model;
  text = "--form " + to_text(options.form);
  add("--shrink", options.shrink);
  add("--target-batch", options.target_batch);
  add("--capacity-images", options.capacity_images);
  add("--capacity-tokens", options.capacity_tokens);
  add("--seed", options.seed);
  add("--vision-width", model.vision_width);
  add("--vision-layers", model.vision_layers);
  add("--width", model.width);
  add("--layers", model.layers);
  add("--heads", model.heads);
  return text;
}

}  // namespace train_vlm
