// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <iostream>
#include <numeric>
#include <tuple>
#include <vector>

namespace cookbook {

using communicator = omnibal::thread_communicator;
using document = std::vector<std::uint16_t>;

// What the data loader of a rank has drawn.
std::vector<document> draw(std::size_t rank) {
  std::vector<std::size_t> const lengths[] = {
      {1800, 1700, 1500}, {700, 600}, {1600, 100}, {900, 50}};
  std::vector<document> drawn;
  for (std::size_t const length : lengths[rank]) drawn.emplace_back(length);
  return drawn;
}

std::int64_t work(document const& tokens) {
  auto const length = static_cast<std::int64_t>(tokens.size());
  return length + length * length / 1000;
}

std::size_t bytes(document const& tokens) { return 2 * tokens.size(); }

void a_step_that_evens_itself() {
  communicator::run(4, [](communicator& comm) {
    auto const drawn = draw(comm.rank());
    auto const plan = omnibal::plan_exchange(comm, drawn, work, bytes);
    auto const mine = omnibal::exchange_samples(comm, plan, drawn);

    std::vector<float> losses;  // the forward and backward pass
    for (auto const& tokens : mine) losses.push_back(static_cast<float>(tokens.size()));

    auto const own = omnibal::exchange_samples(comm, plan.inverse(), losses);
    auto const before = omnibal::gather_lengths(comm, drawn, work);
    auto const after = omnibal::gather_lengths(comm, mine, work);
    if (comm.rank() != 0) return;
    auto const sum = [](auto const& row) {
      return std::accumulate(row.begin(), row.end(), std::int64_t{0});
    };
    for (std::size_t rank = 0; rank != 4; ++rank) {
      std::cout << "rank " << rank << ": " << sum(before[rank]) << " -> " << sum(after[rank])
                << '\n';
    }
    std::cout << own.size() << " losses for " << drawn.size() << " documents, "
              << plan.moved_bytes() << " bytes moved\n";
  });
}

void lengths_on_every_rank() {
  communicator::run(4, [](communicator& comm) {
    auto const lengths = omnibal::gather_lengths(comm, draw(comm.rank()), &document::size);
    if (comm.rank() != 3) return;
    for (std::size_t rank = 0; rank != lengths.size(); ++rank) {
      for (auto const length : lengths[rank]) std::cout << length << ' ';
      std::cout << (rank == 3 ? "\n" : "| ");
    }
    // All of them in a row, for anything that is decided without messages, as on every rank here.
    print(omnibal::lpt(lengths.values(), 4));
  });
}

void several_fields_of_a_sample() {
  communicator::run(2, [](communicator& comm) {
    std::vector<document> const tokens = draw(comm.rank());
    std::vector<int> labels(tokens.size(), static_cast<int>(comm.rank()));
    auto const plan = omnibal::plan_exchange(comm, tokens, work, bytes);
    // All fields of a sample travel together, each of its own type. The plan was compared when it
    // was made: `agreed` spares the comparison.
    auto const [my_tokens, my_labels] =
        omnibal::exchange_samples(comm, omnibal::agreed(plan), tokens, labels);
    if (comm.rank() != 1) return;
    for (std::size_t i = 0; i != my_tokens.size(); ++i) {
      std::cout << my_tokens[i].size() << " tokens of rank " << my_labels[i] << '\n';
    }
  });
}

void how_it_would_be_on_512_ranks() {
  // A plan needs no ranks: this is what they would agree on.
  omnibal::rng::engine random(5);
  std::vector<std::int64_t> costs(512 * 16), offsets(513);
  for (auto& cost : costs) {
    cost = static_cast<std::int64_t>(1000 >> omnibal::rng::below(random, 8));
    cost += static_cast<std::int64_t>(omnibal::rng::below(random, 40));
  }
  for (std::size_t rank = 0; rank <= 512; ++rank)
    offsets[rank] = static_cast<std::int64_t>(16 * rank);
  auto const report = [&](char const* name, omnibal::exchange_plan const& plan) {
    std::int64_t largest = 0;
    for (std::size_t rank = 0; rank != 512; ++rank) {
      std::int64_t load = 0;
      for (auto const sample : plan.arrivals(rank)) load += costs[sample];
      largest = std::max(largest, load);
    }
    std::cout << name << ": the slowest has " << largest << ", " << plan.moved_bytes()
              << " bytes move, " << plan.moved_bytes_across_nodes() << " across nodes\n";
  };
  auto const options = omnibal::make_plan_options{.ranks_per_node = 8};
  report("rebalance", omnibal::make_plan(offsets, costs, costs, options));
  report("lpt", omnibal::make_plan(offsets, costs, costs, options, omnibal::lpt));
}

void an_arrangement_for_each_phase() {
  struct sample {
    std::int64_t text;
    std::vector<std::int64_t> images;
  };
  communicator::run(2, [](communicator& comm) {
    std::vector<std::vector<sample>> const drawn{{{900, {256, 1024}}, {400, {}}},
                                                 {{300, {256}}, {200, {4096}}, {100, {}}}};
    omnibal::language_phase const language{[](sample const& s) { return s.text * s.text; },
                                           [](sample const& s) { return 2 * s.text; }};
    omnibal::encoder_phase const vision{
        &sample::images, [](std::int64_t patches) { return patches; },
        [](std::int64_t patches) { return 588 * patches; },
        [](std::int64_t patches) { return 2048 * patches; }, omnibal::padded_batch{}};
    auto const plans = omnibal::orchestrate(comm, drawn[comm.rank()], language, std::tuple{vision});
    if (comm.rank() != 0) return;
    auto const& routes = plans.encoders[0];
    for (std::size_t rank = 0; rank != 2; ++rank) {
      std::cout << "rank " << rank << " encodes";
      for (auto const image : routes.inputs.arrivals(rank)) std::cout << ' ' << image;
      std::cout << " and trains samples";
      for (auto const index : plans.samples.arrivals(rank)) std::cout << ' ' << index;
      std::cout << '\n';
    }
    std::cout << routes.outputs.moved_bytes() << " bytes of outputs change their rank\n";
  });
}

void a_cap_that_is_never_exceeded() {
  communicator::run(2, [](communicator& comm) {
    auto const drawn = draw(comm.rank());
    auto const cost_and_tokens = [](document const& d) {
      return omnibal::resources{work(d), static_cast<std::int64_t>(d.size())};
    };
    auto const plan =
        omnibal::plan_exchange(comm, drawn, cost_and_tokens, bytes, {}, omnibal::under_cap{3200});
    auto const mine = omnibal::exchange_samples(comm, plan, drawn);
    std::size_t tokens = 0;
    for (auto const& d : mine) tokens += d.size();
    auto const all = omnibal::gather_lengths(comm, std::vector{tokens});
    if (comm.rank() == 0) std::cout << all[0][0] << " and " << all[1][0] << " tokens\n";
  });
}

void plans_a_step_ahead() {
  // Its communicator is for it alone: one of MPI or Gloo where there are several ranks.
  omnibal::plan_dispatcher<std::vector<document>, omnibal::exchange_plan> plans(
      omnibal::self_communicator{}, [](auto& comm, std::vector<document> const& drawn) {
        return omnibal::plan_exchange(comm, drawn, work, bytes);
      });
  plans.submit(draw(0));
  for (std::size_t step = 0; step != 3; ++step) {
    if (step != 2) plans.submit(draw(step + 1));  // planned while this step trains
    auto const plan = plans.next();
    std::cout << "step " << step << " has " << plan.sample_count() << " documents\n";
  }
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"a_step_that_evens_itself", a_step_that_evens_itself},
       {"lengths_on_every_rank", lengths_on_every_rank},
       {"several_fields_of_a_sample", several_fields_of_a_sample},
       {"how_it_would_be_on_512_ranks", how_it_would_be_on_512_ranks},
       {"an_arrangement_for_each_phase", an_arrangement_for_each_phase},
       {"a_cap_that_is_never_exceeded", a_cap_that_is_never_exceeded},
       {"plans_a_step_ahead", plans_a_step_ahead}});
}
