// SPDX-License-Identifier: Apache-2.0
// Long samples wait until a step is even with them: docs/guides/long_contexts.md.

#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

// 64 ranks in nodes of eight, memory for 16K tokens on each; a sample has one node at most.
constexpr std::uint32_t ranks = 64;
constexpr std::uint32_t widest = 8;
omnibal::context_groups_options const options{.capacity = 16'384, .ranks_per_node = widest};

std::int64_t memory(std::int64_t length, std::uint32_t degree) {
  return omnibal::padded_piece_tokens(length, degree);
}

// 512 conversations of 500 tokens; every other step one is a document of 100,000.
std::vector<std::int64_t> next_lengths(omnibal::rng::engine& random) {
  std::vector<std::int64_t> lengths(512, 500);
  if (omnibal::rng::below(random, 2) == 0) lengths[99] = 100'000;
  return lengths;
}

// Seconds of forty steps in which samples wait for at most `max_delay` steps.
double train(omnibal::context_cost const& cost, std::uint32_t max_delay) {
  omnibal::deferral_queue queue({.group_size = ranks / widest, .max_delay = max_delay});
  auto const on_a_node = [&](std::int64_t length) {
    if (memory(length, 1) <= options.capacity) return 0.0;  // runs in micro-steps of its own
    auto const tokens = static_cast<double>(length);
    return cost.degrees[widest - 1](tokens, tokens * tokens);
  };
  omnibal::rng::engine random(1);
  omnibal::context_groups_workspace workspace;
  double seconds = 0;
  auto const run = [&](omnibal::deferral_step const& step) {
    auto const& plan =
        omnibal::context_groups(step.lengths, ranks, cost, memory, options, workspace);
    seconds += plan.makespan;  // plan.samples[g] are the samples step.ids[i] of group g
  };
  for (std::uint64_t step = 0; step != 40; ++step) {
    auto const lengths = next_lengths(random);  // of all ranks, as `gather_lengths` gives them
    std::vector<std::uint64_t> ids(lengths.size());
    for (std::size_t i = 0; i != ids.size(); ++i) ids[i] = 512 * step + i;
    run(queue.push(ids, lengths, on_a_node));
  }
  run(queue.flush());
  return seconds;
}

int main() {
  omnibal::context_cost cost{.micro_step = 0.002};
  for (std::uint32_t degree = 1; degree <= widest; ++degree) {
    cost.degrees.push_back({0.002, 1.2e-4 / degree, 2e-9 / degree});
  }
  double const at_once = train(cost, 0);
  for (std::uint32_t const max_delay : {2u, 4u, 8u, 16u}) {
    std::printf("at most %2u steps late: %.2f of the time\n", max_delay,
                train(cost, max_delay) / at_once);
  }
}
