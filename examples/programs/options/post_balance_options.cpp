// SPDX-License-Identifier: Apache-2.0
#include "post_balance_options.hpp"

#include "machine_options.hpp"
#include "measured_layers.hpp"
#include "option_checks.hpp"

#include <omnibal/cost/layer_cost.hpp>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

/// Whether a launcher of MPI has started this process; each sets one of these.
bool is_started_by_mpi() {
  for (char const* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

/// What is typed, before it is checked and becomes `post_balance_options`.
struct typed_options {
  std::size_t simulated = 0;
  bool wants_mpi = false;
  bool wants_nccl = false;
  std::string rule = "rebalance";
  std::string model;
  std::string family;
  bool describes = false;
  machine_words machine{.name = "h100-80gb"};
  std::string measured;
  std::vector<std::int64_t> measured_batch{15, 4, 1024};
};

CLI::Option* as_count(CLI::Option* option, std::size_t most) {
  return option->type_name("COUNT")->check(integer_between(std::size_t{1}, most));
}

void add_data(CLI::App& app, post_balance_options& options) {
  auto* const group = app.add_option_group("Data");
  add_length_options(*group, options.lengths, image_options::offered);
  as_count(
      group->add_option("--samples", options.samples_per_rank,
                        "Draw this number of samples on each rank in a step. Default: 16, or 32 "
                        "with --simulate"),
      65'536);
  as_count(group->add_option("--steps", options.steps,
                             "Run this number of steps. Default: 8, or 3 with --simulate"),
           1'000'000);
  add_seed_option(*group, options.seed);
}

void add_ranks(CLI::App& app, typed_options& typed, post_balance_options& options) {
  auto* const group = app.add_option_group("Ranks");
  constexpr std::size_t most = std::size_t{1} << 20;
  auto* const threads =
      as_count(group->add_option("--threads", options.ranks,
                                 "Run this number of ranks as threads of this program. Default: 4, "
                                 "or under mpirun the ranks of MPI"),
               1024);
  auto* const mpi =
      group
          ->add_flag("--mpi", typed.wants_mpi, "Run the ranks as the processes that mpirun started")
          ->excludes(threads);
  auto* const nccl =
      group
          ->add_flag("--nccl", typed.wants_nccl,
                     "Run the ranks as processes with one GPU each over NCCL, started by "
                     "torchrun, mpirun or srun with NCCL_COMM_ID=host:port of rank 0")
          ->excludes(threads)
          ->excludes(mpi);
  as_count(
      group->add_option("--simulate", typed.simulated,
                        "Only plan, on one thread, for this number of ranks. Default: the ranks "
                        "exist and train"),
      most)
      ->excludes(threads)
      ->excludes(mpi)
      ->excludes(nccl);
  as_count(group->add_option("--per-node", options.ranks_per_node,
                             "Set the number of ranks of a node. Default: from --machine if given, "
                             "else 2, or 8 with --simulate"),
           most);
  group
      ->add_option("--balance", typed.rule,
                   "Balance by this method. rebalance: moves few bytes; lpt: assigns the largest "
                   "sample first, to the rank with the lowest load")
      ->type_name("NAME")
      ->check(CLI::IsMember({"rebalance", "lpt"}))
      ->capture_default_str();
}

void add_model(CLI::App& app, typed_options& typed) {
  auto* const group = app.add_option_group("Model and machine");
  add_model_option(*group, typed.model,
                   "Train the vision tower and the language model of this model.");
  add_family_option(*group, typed.family);
  add_describe_option(*group, typed.describes);
  add_machine_option(*group, typed.machine);
  auto* const teraflops = add_teraflops_option(*group, typed.machine);
  auto* const measured =
      group
          ->add_option(
              "--measured", typed.measured,
              "Compute the speed of a device, in the tower and in the language model, from "
              "the measured times in this CSV file with the columns layer, forward_ms and "
              "backward_ms. Default: --teraflops")
          ->type_name("FILE")
          ->excludes(teraflops);
  group
      ->add_option("--measured-batch", typed.measured_batch,
                   "State the measured micro-batch: the numbers of tiles and documents, and the "
                   "tokens of each document. Default: 15 4 1024")
      ->type_name("TILES DOCUMENTS TOKENS")
      ->expected(3)
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->needs(measured);
}

void choose_engine(CLI::App const& app, typed_options const& typed, post_balance_options& options) {
  if (typed.simulated != 0) {
    options.engine = rank_engine::simulated;
    options.ranks = typed.simulated;
    if (app.count("--samples") == 0) options.samples_per_rank = 32;
    if (app.count("--steps") == 0) options.steps = 3;
  } else if (typed.wants_nccl) {
    options.engine = rank_engine::nccl;
  } else if (typed.wants_mpi || (app.count("--threads") == 0 && is_started_by_mpi())) {
    options.engine = rank_engine::mpi;
  }
  bool const are_processes =
      options.engine == rank_engine::mpi || options.engine == rank_engine::nccl;
  if (are_processes &&
      std::ranges::find(options.lengths.files, "-") != options.lengths.files.end()) {
    throw std::runtime_error(
        "files: - is the standard input, which a launcher gives to one process alone; ranks that "
        "are processes need the name of a file");
  }
}

post_balance_options checked(CLI::App const& app, typed_options const& typed,
                             post_balance_options options) {
  if (typed.rule == "lpt") options.rule = plan_rule::lpt;
  options.model = chosen_model(typed.model, model_parts::both, typed.family);
  if (options.model.audio) {
    throw std::runtime_error("--model: " + options.model.name +
                             " has an audio tower, but all sounds run through a tower of the size "
                             "of Whisper here; a model file with \"vision\" and \"language\" has "
                             "the other parts only");
  }
  auto const machine = chosen_machine(typed.machine);
  options.rates = {machine.flops, machine.flops};
  if (!typed.measured.empty()) {
    auto const& batch = typed.measured_batch;
    omnibal::micro_batch_work const work{
        .tiles = batch[0],
        .documents = omnibal::equal_sequences({.count = batch[1], .length = batch[2]})};
    options.rates = {reached_flops(typed.measured, options.model, measured_part::tower, work),
                     reached_flops(typed.measured, options.model, measured_part::language, work)};
  }
  if (app.count("--per-node") == 0) {
    if (app.count("--machine") != 0) {
      options.ranks_per_node = static_cast<std::size_t>(machine.ranks_per_node);
    } else if (typed.simulated != 0) {
      options.ranks_per_node = 8;
    }
  }
  choose_engine(app, typed, options);
  return options;
}

}  // namespace

std::optional<post_balance_options> parse_post_balance(int count, char const* const* words) {
  post_balance_options options;
  typed_options typed;
  typed.model = options.model.name;
  CLI::App app(
      "Draws global batches of text, images and sound on several ranks, or of the samples of "
      "length "
      "files, balances each phase of a multimodal model after the draw, and checks that the "
      "gradients of a toy model stay the same.",
      "post_balance");
  app.footer(example_and_status(
      "post_balance --threads 4 --samples 16",
      "0 if the tables are complete and the gradients are equal; 77 if --nccl finds no device; "
      "otherwise 1."));
  add_ranks(app, typed, options);
  add_data(app, options);
  add_model(app, typed);
  if (!parse_words(app, count, words)) return std::nullopt;
  if (typed.describes) {
    print_models({typed.model}, typed.family);
    return std::nullopt;
  }
  return checked(app, typed, std::move(options));
}

}  // namespace examples
