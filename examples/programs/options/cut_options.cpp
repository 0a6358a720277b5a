// SPDX-License-Identifier: Apache-2.0
#include "cut_options.hpp"

#include "clip_options.hpp"
#include "machine_options.hpp"
#include "option_checks.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

/// What is typed, before it is checked and becomes `cut_options`.
struct typed_options {
  std::vector<std::string> models{"6+20B", "6+34B"};
  std::string family;
  bool describes = false;
  machine_words machine{.name = "a100-80gb"};
  rank_words ranks{};
  std::pair<std::size_t, std::size_t> stages{4, 16};
  std::int64_t tiles = 15;
  omnibal::repeated_length clips{.count = 4, .length = 1500};
  omnibal::repeated_length documents{.count = 4, .length = 1024};
  std::string recompute = "none";
  std::int64_t micro_batches = 64;
  std::size_t chunks = 1;
  std::string placement = "looped";
  std::string measured;
  std::string svg;
  std::string output;
};

omnibal::recompute_choice recompute_choice_of(std::string const& name) {
  auto const found = std::ranges::find(recompute_names, name);
  return static_cast<omnibal::recompute_choice>(found - recompute_names.begin());
}

void add_model_options(CLI::App& app, typed_options& typed) {
  auto* const group = app.add_option_group("Model");
  group
      ->add_option("--model", typed.models,
                   "Cut this model; repeat the option for several models." + model_words())
      ->type_name("NAME|FILE")
      ->allow_extra_args(false)
      ->capture_default_str();
  group
      ->add_option("--tiles", typed.tiles,
                   "Set the image tiles of a micro-batch. The default is lowered if the tokens of "
                   "the tiles exceed the documents")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(0, 1 << 16))
      ->capture_default_str();
  add_clip_options(
      *group, typed.clips,
      "Set the audio clips of a micro-batch of a model with an audio tower. The default "
      "is lowered, to one at least, if the tokens of the clips exceed the documents");
  group
      ->add_option("--documents", typed.documents.count,
                   "Set the number of packed documents of a micro-batch")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 10))
      ->capture_default_str();
  group
      ->add_option("--length", typed.documents.length,
                   "Set the tokens of a document, including the tokens of images and clips")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
  group
      ->add_option("--recompute", typed.recompute,
                   "Recompute these activations in the layers of both towers")
      ->type_name("NAME")
      ->check(
          CLI::IsMember(std::vector<std::string>(recompute_names.begin(), recompute_names.end())))
      ->capture_default_str();
  group
      ->add_option("--measured", typed.measured,
                   "Read measured times of layers from this CSV file with the columns layer, "
                   "forward_ms and backward_ms, and optionally kept_mb and state_mb. A layer is a "
                   "number, or a range such as 1-45. Requires one --model. Default: all costs are "
                   "modeled")
      ->type_name("FILE");
  add_family_option(*group, typed.family);
  add_describe_option(*group, typed.describes);
}

void add_machine_options(CLI::App& app, typed_options& typed) {
  auto* const group = app.add_option_group("Machine");
  group
      ->add_option("--stages", typed.stages,
                   "Cut into each number of stages in this range. Default: 4 16")
      ->type_name("MIN MAX")
      ->check(integer_between<std::size_t>(1, 1 << 10));
  add_machine_option(*group, typed.machine);
  add_memory_option(*group, typed.machine);
  add_teraflops_option(*group, typed.machine);
  add_link_option(*group, typed.machine);
  add_rank_options(*group, typed.ranks);
  group
      ->add_option("--micro-batches", typed.micro_batches,
                   "Set the number of micro-batches of a step")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
}

void add_chunk_options(CLI::App& app, typed_options& typed) {
  auto* const group = app.get_option_group("Machine");
  auto* const chunks =
      group
          ->add_option("--chunks", typed.chunks,
                       "Put this number of chunks of the model on each stage, as virtual stages. "
                       "The last rule then minimizes the estimated step within the memory")
          ->type_name("COUNT")
          ->check(integer_between<std::size_t>(1, 1 << 10))
          ->capture_default_str();
  group
      ->add_option("--placement", typed.placement,
                   "Place the chunks looped, for interleaved 1F1B, or in a v, for ZB-V with two "
                   "chunks")
      ->type_name("NAME")
      ->check(CLI::IsMember(std::vector<std::string>{"looped", "v"}))
      ->capture_default_str()
      ->needs(chunks);
}

/// Refuses chunks that no schedule, picture or file of this program has.
void check_chunks(CLI::App const& app, typed_options const& typed) {
  if (typed.placement == "v" && typed.chunks != 2) {
    throw std::runtime_error("--placement: is v, which needs --chunks 2, but --chunks is " +
                             std::to_string(typed.chunks));
  }
  if (typed.placement == "v" && app.count("--output") != 0) {
    throw std::runtime_error(
        "--placement: is v, but the layouts of --output have looped chunks only");
  }
  if (typed.chunks != 1 && app.count("--svg") != 0) {
    throw std::runtime_error("--svg: the picture has stages with one chunk, but --chunks is " +
                             std::to_string(typed.chunks));
  }
}

/// The tokens of the documents that clips leave to tiles.
std::int64_t tokens_beside_clips(model_description const& model, cut_options const& options) {
  auto const clips = clips_of(model, options);
  std::int64_t const of_clip = model.audio ? model.audio->document_tokens(clips.length) : 0;
  return options.training.batch.documents.tokens - clips.count * of_clip;
}

/// Refuses clips that become more tokens than the documents have.
void check_clips(cut_options const& options) {
  std::int64_t const tokens = options.training.batch.documents.tokens;
  for (model_description const& model : options.models) {
    if (tokens_beside_clips(model, options) >= 0) continue;
    std::int64_t const of_clip = model.audio->document_tokens(options.clips.length);
    throw std::runtime_error("--clips: is " + std::to_string(clips_of(model, options).count) +
                             ", must be at most " + std::to_string(tokens / of_clip) +
                             ", because a clip becomes " + std::to_string(of_clip) + " tokens of " +
                             model.name + " and the documents have " + std::to_string(tokens));
  }
}

/// Refuses tiles that become more tokens than the documents have.
void check_tiles(cut_options const& options) {
  for (model_description const& model : options.models) {
    std::int64_t const tokens = tokens_beside_clips(model, options);
    std::int64_t const tiles = options.training.batch.tiles;
    std::int64_t const most = model.max_tiles(tokens);
    if (!model.vision || tiles <= most) continue;
    throw std::runtime_error("--tiles: is " + std::to_string(tiles) + ", must be at most " +
                             std::to_string(most) + ", because a tile becomes " +
                             std::to_string(model.document_tokens_of_tile()) + " tokens of " +
                             model.name + " and the documents have " + std::to_string(tokens) +
                             (model.audio ? " beside the clips" : ""));
  }
}

cut_options checked(CLI::App const& app, typed_options const& typed) {
  check_chunks(app, typed);
  cut_options options;
  for (std::string const& name : typed.models) {
    options.models.push_back(chosen_model(name, model_parts::language, typed.family));
  }
  std::tie(options.min_stages, options.max_stages) = typed.stages;
  if (options.min_stages > options.max_stages) {
    throw std::runtime_error("--stages: " + std::to_string(options.min_stages) + " is above " +
                             std::to_string(options.max_stages));
  }
  auto const machine = chosen_machine(typed.machine);
  rank_words ranks = typed.ranks;
  if (options.min_stages == options.max_stages) {
    fit_ranks(app, machine, static_cast<std::int64_t>(options.min_stages), ranks);
  }
  check_ranks(ranks, options.models);
  bool const has_tower = std::ranges::any_of(
      options.models, [](model_description const& model) { return model.vision.has_value(); });
  if (app.count("--tiles") != 0 && typed.tiles != 0 && !has_tower) {
    throw std::runtime_error("--tiles: is " + std::to_string(typed.tiles) +
                             ", but no model has a vision tower");
  }
  check_clip_options(app, options.models);
  options.has_given_clips = app.count("--clips") != 0;
  options.clips = typed.clips;
  options.training = {
      .batch = {.tiles = typed.tiles, .documents = omnibal::equal_sequences(typed.documents)},
      .degrees = {.tensor = ranks.tensor,
                  .data = ranks.data,
                  .expert = ranks.expert,
                  .norms = omnibal::norm_regions::split},
      .device = machine.device(),
      .recomputed = recompute_choice_of(typed.recompute)};
  check_clips(options);
  if (app.count("--tiles") != 0) check_tiles(options);
  options.machine = {.memory_bytes = machine.memory_bytes,
                     .link_bytes_per_second = machine.link_bytes,
                     .micro_batches = typed.micro_batches,
                     .chunks = typed.chunks,
                     .placement = typed.placement == "v" ? omnibal::chunk_placement::v_shape
                                                         : omnibal::chunk_placement::looped};
  for (char const* const option : {"--measured", "--svg", "--output"}) {
    if (app.count(option) != 0 && app[option]->as<std::string>().empty()) {
      throw std::runtime_error(std::string(option) + " is empty, must be the name of a file");
    }
  }
  if (app.count("--measured") != 0 && options.models.size() != 1) {
    throw std::runtime_error("--measured has the times of one model: say which with --model");
  }
  options.measured = typed.measured;
  options.svg = typed.svg;
  options.output = typed.output;
  return options;
}

}  // namespace

omnibal::repeated_length clips_of(model_description const& model, cut_options const& options) {
  if (!model.audio) return {};
  auto result = options.clips;
  std::int64_t const of_clip = model.audio->document_tokens(result.length);
  if (options.has_given_clips || of_clip == 0) return result;
  std::int64_t const most = options.training.batch.documents.tokens / of_clip;
  result.count = std::clamp<std::int64_t>(most, 1, result.count);
  return result;
}

std::int64_t tiles_of(model_description const& model, cut_options const& options) {
  if (!model.vision) return options.training.batch.tiles;
  return std::min(options.training.batch.tiles,
                  model.max_tiles(tokens_beside_clips(model, options)));
}

std::optional<cut_options> parse_cut_options(int count, char const* const* words) {
  typed_options typed;
  CLI::App app(
      "Cuts vision-language and language models into the stages of a pipeline: by parameters, by "
      "the number of layers, by time, by time with the traffic between stages, and within the "
      "memory of the devices. Prints, for each, by how much the slowest stage exceeds the lower "
      "bound.",
      "cut_vlm");
  app.footer(example_and_status(
      "cut_vlm --model 6+20B --stages 4 8 --memory 80",
      "0 if the table is complete, even if no cuts fit the memory; otherwise 1, and no file is "
      "written."));
  add_model_options(app, typed);
  add_machine_options(app, typed);
  add_chunk_options(app, typed);
  auto* const output = app.add_option_group("Output");
  output->add_option("--svg", typed.svg, "Draw the table into this file. Default: no picture")
      ->type_name("FILE");
  output
      ->add_option(
          "--output", typed.output,
          "Write the stages of each model and number of stages that fit, by the last rule, "
          "into this directory as layouts for trainers (docs/reference/files.md). "
          "Default: no files")
      ->type_name("DIRECTORY");
  if (!parse_words(app, count, words)) return std::nullopt;
  if (typed.describes) {
    print_models(typed.models, typed.family);
    return std::nullopt;
  }
  return checked(app, typed);
}

}  // namespace examples
