// SPDX-License-Identifier: Apache-2.0
/// \file
/// Balances global batches of text, images and sound after they were drawn, each phase of a
/// multimodal model by itself, and moves the samples: `post_balance --help`.

#include "models/toy_model.hpp"
#include "options/post_balance_options.hpp"
#include "plans/balanced_training.hpp"
#include "plans/run_on_ranks.hpp"
#include "readers/batch_source.hpp"
#include "readers/modality_mix.hpp"
#include "readers/progress.hpp"
#include "reports/phase_report.hpp"
#include "reports/table.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/collectives.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/orchestrate.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace examples;

double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

template <class Call>
double seconds_of(Call&& call) {
  auto const begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Calls `go_on(balance)`.
template <class GoOn>
void with_balancer(plan_rule rule, GoOn const& go_on) {
  switch (rule) {
    case plan_rule::rebalance: go_on(omnibal::rebalance); return;
    case plan_rule::lpt: go_on(omnibal::lpt); return;
  }
}

batch_source source_of(post_balance_options const& options) {
  if (options.lengths.files.empty()) return {};
  progress hidden(visibility::hidden);
  return {read_lengths(options.lengths, hidden), options.model.document_tokens_of_tile()};
}

batch_measures measure_batch(post_balance_options const& options, batch_source const& source,
                             std::size_t ranks, std::size_t step, modality_costs const& costs) {
  batch_measures batch;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    batch.add_rank(source.draw({options.seed, step, rank, options.samples_per_rank}, ranks), costs);
  }
  return batch;
}

/// Makes the plans of both kinds of placement for a step and reports them. The processor time is
/// that of the plans that know nodes.
template <class Balance>
double report_step(post_balance_options const& options, batch_measures const& batch,
                   Balance const& balance, omnibal::make_orchestration_workspace& workspace,
                   phase_report& report) {
  auto const language = batch.language(balance);
  auto const encoders = batch.of_encoders(balance);
  auto const blind = omnibal::make_orchestration(batch.offsets, language, encoders);
  auto const make = [&] {
    omnibal::make_orchestration(batch.offsets, language, encoders,
                                {.ranks_per_node = options.ranks_per_node}, workspace);
  };
  // The first call takes memory.
  make();
  double const begin = processor_seconds();
  make();
  double const seconds = processor_seconds() - begin;
  report.add(batch, blind, workspace.result());
  return seconds;
}

void print_head(post_balance_options const& options, batch_source const& source, std::size_t ranks,
                std::string const& kind) {
  std::cout << options.steps << " steps of " << options.samples_per_rank << " samples on each of "
            << ranks << ' ' << kind << ", " << options.ranks_per_node << " on a node";
  if (source.size() != 0) std::cout << "; " << counted(source.size()) << " samples in the files";
  std::cout << "\n\n";
}

void simulate(post_balance_options const& options, batch_source const& source) {
  modality_costs const costs(options.model, options.rates);
  phase_report report(options.ranks_per_node);
  planning_time planning;
  omnibal::make_orchestration_workspace workspace;
  with_balancer(options.rule, [&](auto const& balance) {
    for (std::size_t step = 0; step != options.steps; ++step) {
      auto const batch = measure_batch(options, source, options.ranks, step, costs);
      planning.seconds += report_step(options, batch, balance, workspace, report);
    }
  });
  planning.seconds /= static_cast<double>(options.steps);
  print_head(options, source, options.ranks, "simulated ranks");
  report.print(std::cout);
  std::cout << '\n';
  print_overhead(report, planning, std::cout);
}

/// One rank's part of all steps.
template <class Comm, class Balance>
class trainer {
 public:
  trainer(post_balance_options const& options, batch_source const& source, Comm& comm,
          Balance const& balance)
      : options_(options),
        source_(source),
        comm_(comm),
        balance_(balance),
        rank_(static_cast<std::size_t>(comm.rank())),
        ranks_(static_cast<std::size_t>(comm.size())),
        costs_(options.model, options.rates),
        report_(options.ranks_per_node) {}

  void run() {
    for (std::size_t step = 0; step != options_.steps; ++step) {
      auto const samples =
          source_.draw({options_.seed, step, rank_, options_.samples_per_rank}, ranks_);
      omnibal::orchestration const& plans = plan(samples);
      auto const balanced = sum_over_ranks(comm_, train_balanced(comm_, model_, plans, samples));
      if (sum_over_ranks(comm_, train_at_home(model_, samples)) != balanced) {
        throw std::runtime_error("step " + std::to_string(step) +
                                 ": the gradients of exchanged samples differ");
      }
      if (rank_ == 0) compare_with_simulation(step, plans.digest());
    }
  }

  void print(std::string const& kind) const {
    auto const steps = static_cast<double>(options_.steps);
    print_head(options_, source_, ranks_, kind);
    report_.print(std::cout);
    std::cout << "\ngradients of a toy model: equal with and without the exchange in all "
              << options_.steps << " steps\n(integers modulo 2^64, no tolerance)\n";
    print_overhead(report_, {planning_.collective_seconds / steps, planning_.seconds / steps},
                   std::cout);
  }

 private:
  omnibal::orchestration const& plan(std::vector<multimodal_sample> const& samples) {
    auto const encoder = [this](modality kind) {
      return omnibal::encoder_phase{
          [kind](multimodal_sample const& sample) { return sample.sizes_of(kind); },
          [this, kind](std::int64_t size) { return costs_.encoder_time(kind, size); },
          [this, kind](std::int64_t size) { return costs_.input_bytes(kind, size); },
          [this, kind](std::int64_t size) { return costs_.output_bytes(kind, size); }, balance_};
    };
    omnibal::language_phase const language{
        [this](multimodal_sample const& sample) { return costs_.language_time(sample); },
        [](multimodal_sample const& sample) { return modality_costs::text_bytes(sample); },
        balance_};
    std::tuple const encoders{encoder(modality::image), encoder(modality::sound)};
    omnibal::make_plan_options const options{.ranks_per_node = options_.ranks_per_node};
    // All ranks begin at once.
    static_cast<void>(omnibal::all_equal(comm_, 0));
    planning_.collective_seconds += seconds_of(
        [&] { omnibal::orchestrate(comm_, samples, language, encoders, options, workspace_); });
    return workspace_.result();
  }

  /// One rank alone can make everybody's plans, since they depend on the measures only.
  void compare_with_simulation(std::size_t step, std::uint64_t digest) {
    auto const batch = measure_batch(options_, source_, ranks_, step, costs_);
    planning_.seconds += report_step(options_, batch, balance_, simulation_, report_);
    if (simulation_.result().digest() != digest) {
      throw std::runtime_error("step " + std::to_string(step) + ": the simulated plans differ");
    }
  }

  post_balance_options const& options_;
  batch_source const& source_;
  Comm& comm_;
  Balance const& balance_;
  std::size_t rank_;
  std::size_t ranks_;
  modality_costs costs_;
  toy_model model_;
  omnibal::orchestrate_workspace<modality_count> workspace_;
  omnibal::make_orchestration_workspace simulation_;
  phase_report report_;
  planning_time planning_;
};

void run(post_balance_options const& options) {
  batch_source const source = source_of(options);
  if (options.engine == rank_engine::simulated) return simulate(options, source);
  std::string const kind = options.engine == rank_engine::threads ? "threads" : "processes";
  run_on_ranks(options, [&](auto& comm) {
    with_balancer(options.rule, [&](auto const& balance) {
      trainer one(options, source, comm, balance);
      one.run();
      if (comm.rank() == 0) one.print(kind);
    });
  });
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = parse_post_balance(count, words);
    if (options) run(*options);
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to the standard output");
    return 0;
  } catch (no_device const& error) {
    std::cerr << "post_balance: error: " << error.what() << '\n';
    return 77;
  } catch (std::exception const& error) {
    std::cerr << "post_balance: error: " << error.what() << '\n';
    return 1;
  }
}
