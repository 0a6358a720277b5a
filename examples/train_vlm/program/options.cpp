#include "options.hpp"

#include "option_checks.hpp"

#include <map>
#include <stdexcept>
#include <utility>

#include <CLI/CLI.hpp>

namespace train_vlm {

namespace {

std::map<std::string, form_kind> const form_names{{"padded", form_kind::padded},
                                                  {"unpadded", form_kind::unpadded},
                                                  {"random_packs", form_kind::random_packs},
                                                  {"even_packs", form_kind::even_packs},
                                                  {"post_balanced", form_kind::post_balanced}};

template <class Enum>
void add_choice(CLI::App& app, std::string const& name, Enum& value,
                std::map<std::string, Enum> const& names, std::string const& text) {
  std::string all;
  for (auto const& entry : names) all += (all.empty() ? "" : ", ") + entry.first;
  app.add_option(name, value, text + ": " + all)
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(names).description(""));
}

template <class Integer>
void add_count(CLI::App& app, std::string const& name, Integer& value, Integer least, Integer most,
               std::string const& text) {
  app.add_option(name, value, text)
      ->type_name("COUNT")
      ->check(examples::integer_between(least, most))
      ->capture_default_str();
}

void add_data_options(CLI::App& app, train_options& options) {
  app.add_option("lengths", options.inputs,
                 "Files of lengths that pack_dataset reads; without one the lengths are synthetic")
      ->type_name("FILE");
  app.add_option("--images-field", options.fields.images, "Field or column of the image tiles");
  app.add_option("--tokens-field", options.fields.tokens, "Field or column of the tokens");
  constexpr std::size_t most = std::size_t{1} << 30;
  add_count(app, "--synthetic", options.synthetic_samples, std::size_t{1}, most,
            "Samples of synthetic lengths");
  add_count(app, "--limit", options.limit, std::size_t{0}, most, "The first samples; 0 for all");
  add_count<std::int64_t>(
      app, "--shrink", options.shrink, 1, 256,
      "Tokens of the data for one of the model: 256 of a tile are 16 by default");
  add_count<std::int64_t>(app, "--capacity-images", options.capacity_images, 1, 1 << 20,
                          "Image tiles of a pack");
  add_count<std::int64_t>(app, "--capacity-tokens", options.capacity_tokens, 1, 1 << 30,
                          "Tokens of a pack, before they are shrunk");
  add_choice<oversized_kind>(app, "--oversized", options.oversized,
                             {{"error", oversized_kind::error}, {"alone", oversized_kind::alone}},
                             "A sample above the capacity");
}

void add_training_options(CLI::App& app, train_options& options) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  add_choice(app, "--form", options.form, form_names, "How samples come to ranks");
  add_choice<weight_kind>(
      app, "--weights", options.weight,
      {{"step", weight_kind::step}, {"epoch", weight_kind::epoch}, {"means", weight_kind::means}},
      "What losses are divided by");
  add_count(app, "--ranks", options.ranks, std::size_t{1}, std::size_t{1024}, "Processes");
  add_count(app, "--batch", options.batch, std::size_t{0}, std::size_t{1} << 20,
            "Samples of a rank in a step where they are not packed; 0 for as many as packs have");
  app.add_option("--max-dist-ratio", options.max_dist_ratio, "Waiting that even steps may keep")
      ->capture_default_str();
  add_count(app, "--seed", options.seed, std::uint64_t{0}, most, "Seed of everything random");
  app.add_option("--learning-rate", options.learning_rate, "Of AdamW")->capture_default_str();
  add_count(app, "--epochs", options.epochs, std::uint64_t{1}, most, "Epochs");
  add_count(app, "--steps", options.steps, std::uint64_t{0}, most, "The most steps; 0 for all");
  add_count(app, "--runs", options.runs, std::size_t{1}, std::size_t{1000}, "Runs of a median");
  add_count(app, "--micro-batches", options.micro_batches, std::size_t{1}, std::size_t{4096},
            "Packs of a step of a pipeline");
  app.add_option("--replay", options.replayed_ranks, "Numbers of ranks to replay")
      ->delimiter(',')
      ->type_name("COUNT,...");
  app.add_option("--checkpoint", options.checkpoint, "Written at the end, and where the run stops")
      ->type_name("FILE");
  add_count(app, "--checkpoint-every", options.checkpoint_every, std::uint64_t{0}, most,
            "Steps between checkpoints; 0 for none");
  app.add_flag("--resume", options.resumes, "Go on from the checkpoint");
  app.add_option("--log", options.log, "Each rank writes the samples of its steps here")
      ->type_name("FOLDER");
  app.add_option("--svg", options.svg, "A picture of --task learning")->type_name("FILE");
  add_count<std::int64_t>(app, "--timeout", options.timeout_seconds, 1, 86400,
                          "Seconds that a rank waits for the others");
}

void add_model_options(CLI::App& app, model_size& model) {
  auto const number = [&](std::string const& name, std::int64_t& value, std::string const& text) {
    add_count<std::int64_t>(app, name, value, 1, 65536, text);
  };
  number("--vision-width", model.vision_width, "Width of the image encoder");
  number("--vision-layers", model.vision_layers, "Its layers");
  number("--width", model.width, "Width of the language model");
  number("--layers", model.layers, "Its layers");
  number("--heads", model.heads, "Heads of both");
}

}  // namespace

std::optional<train_options> parse_options(int count, char const* const* words) {
  train_options options;
  CLI::App app("Trains a small vision-language model on several processes over Gloo.", "train_vlm");
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
                        "What to do");
  add_data_options(app, options);
  add_training_options(app, options);
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
