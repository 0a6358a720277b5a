#include "post_balance_options.hpp"

#include "machine_options.hpp"
#include "measured_layers.hpp"
#include "option_checks.hpp"

#include <omnibal/cost/layer_cost.hpp>

#include <cstdlib>
#include <string>
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

}  // namespace

std::optional<post_balance_options> parse_post_balance(int count, char const* const* words) {
  post_balance_options options;
  std::size_t simulated = 0;
  bool wants_mpi = false;
  bool wants_nccl = false;
  CLI::App app(
      "Draws global batches of text, images and sound on several ranks, balances each phase of a\n"
      "multimodal model after the draw, and shows that a toy model's gradients stay the same.",
      "post_balance");
  auto const number = [&](CLI::Option* option, std::size_t most) {
    return option->type_name("COUNT")->check(integer_between(std::size_t{1}, most));
  };
  auto* const threads = number(app.add_option("--threads", options.ranks,
                                              "Ranks that are threads of this program; the default "
                                              "is 4, and the\nranks of MPI under mpirun"),
                               1024);
  auto* const mpi = app.add_flag("--mpi", wants_mpi, "Ranks are the processes that mpirun started")
                        ->excludes(threads);
  auto* const nccl =
      app.add_flag(
             "--nccl", wants_nccl,
             "Ranks are processes with a GPU each, which talk over NCCL; started by torchrun,\n"
             "mpirun or srun with NCCL_COMM_ID=host:port of rank 0")
          ->excludes(threads)
          ->excludes(mpi);
  auto* const simulate =
      number(app.add_option("--simulate", simulated,
                            "Only make the plans for so many ranks, on one thread"),
             std::size_t{1} << 20)
          ->excludes(threads)
          ->excludes(mpi)
          ->excludes(nccl);
  auto* const per_node =
      number(app.add_option("--per-node", options.ranks_per_node,
                            "Ranks on a node; the default is 2, and 8 with --simulate"),
             std::size_t{1} << 20);
  auto* const samples =
      number(app.add_option("--samples", options.samples_per_rank,
                            "Samples that a rank draws for a step; the default is 16, and 32 with\n"
                            "--simulate"),
             65'536);
  auto* const steps = number(
      app.add_option("--steps", options.steps, "Steps; the default is 8, and 3 with --simulate"),
      1'000'000);
  app.add_option("--seed", options.seed, "Seed of everything random")
      ->type_name("NUMBER")
      ->capture_default_str();
  std::string rule = "keep_home";
  app.add_option("--balance", rule, "keep_home, which moves few bytes, or lpt")
      ->type_name("NAME")
      ->check(CLI::IsMember({"keep_home", "lpt"}))
      ->capture_default_str();
  std::string model = options.model.name;
  machine_words machine{.name = "h100-80gb"};
  std::string measured;
  std::vector<std::int64_t> batch{15, 4, 1024};
  auto* const group = app.add_option_group("Model and machine");
  add_model_option(*group, model, "Whose vision tower and language model train");
  add_machine_option(*group, machine);
  add_teraflops_option(*group, machine);
  group
      ->add_option("--measured", measured,
                   "A CSV file of measured times with the columns layer, forward_ms\n"
                   "and backward_ms: what layers of the tower and of the language model\n"
                   "reach is what a device reaches in each")
      ->type_name("FILE");
  group
      ->add_option("--measured-batch", batch,
                   "The micro-batch that was measured: tiles, documents and the tokens\n"
                   "of each; default: 15 4 1024")
      ->type_name("TILES DOCUMENTS TOKENS")
      ->expected(3)
      ->check(integer_between<std::int64_t>(1, 1 << 20));
  app.footer(
      "Exit status: 0 where the tables are complete and the gradients equal; 77 where --nccl "
      "finds\n"
      "no device; otherwise 1.");
  if (!parse_words(app, count, words)) return std::nullopt;
  if (rule == "lpt") options.rule = plan_rule::lpt;
  options.model = chosen_model(model, model_parts::both);
  auto const chosen = chosen_machine(machine);
  options.rates = {chosen.flops, chosen.flops};
  if (!measured.empty()) {
    omnibal::workload const work{
        .tiles = batch[0],
        .documents = omnibal::equal_sequences({.count = batch[1], .length = batch[2]})};
    options.rates = {reached_flops(measured, options.model, measured_part::tower, work),
                     reached_flops(measured, options.model, measured_part::language, work)};
  }
  if (per_node->count() == 0 && app.count("--machine") != 0) {
    options.ranks_per_node = static_cast<std::size_t>(chosen.ranks_per_node);
  }
  if (simulate->count() != 0) {
    options.engine = rank_engine::simulated;
    options.ranks = simulated;
    if (per_node->count() == 0 && app.count("--machine") == 0) options.ranks_per_node = 8;
    if (samples->count() == 0) options.samples_per_rank = 32;
    if (steps->count() == 0) options.steps = 3;
  } else if (wants_nccl) {
    options.engine = rank_engine::nccl;
  } else if (wants_mpi || (threads->count() == 0 && is_started_by_mpi())) {
    options.engine = rank_engine::mpi;
  }
  return options;
}

}  // namespace examples
