// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/numpy.hpp>
#include <omnibal/sample/bundles.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cookbook {

// The tokens of 800 groups, as a packer may leave them.
std::vector<std::int64_t> make_loads() {
  omnibal::rng::engine random(1);
  std::vector<std::int64_t> made(800);
  for (auto& load : made)
    load = 2000 + static_cast<std::int64_t>(omnibal::rng::below(random, 2000));
  return made;
}

std::vector<std::int64_t> const loads = make_loads();

void even_steps() {
  // Every rank makes the same schedule; each takes its row.
  auto const even = omnibal::schedule_steps(loads, 8, {.seed = 42, .epoch = 3});
  auto const random = omnibal::schedule_steps(loads, 8, {.seed = 42, .max_dist_ratio = 1});
  std::cout << "step 0:";
  for (std::size_t rank = 0; rank != 8; ++rank) {
    for (auto const group : even(0, rank)) std::cout << ' ' << loads[group];
  }
  std::cout << "\nranks wait " << omnibal::dist_ratio(even, loads) << " of a step, "
            << omnibal::dist_ratio(random, loads) << " where groups are dealt at random\n";
  auto const next = omnibal::schedule_steps(loads, 8, {.seed = 42, .epoch = 4});
  std::cout << "pairs of groups meet in the next epoch " << omnibal::step_overlap(even, next)
            << " times as often as by chance\n";
}

void what_an_epoch_leaves() {
  // 800 groups on 7 ranks: 114 full steps and 2 groups, which run first in the next epoch.
  omnibal::schedule_steps_options options{.seed = 42,
                                          .remainder = omnibal::remainder_policy::carry};
  auto const first = omnibal::schedule_steps(loads, 7, options);
  options.carried = omnibal::unscheduled_groups(first, loads.size(), options.carried);
  std::cout << first.size() << " steps, " << options.carried.size() << " groups are left\n";
  options.epoch = 1;
  auto const second = omnibal::schedule_steps(loads, 7, options);
  std::cout << second.size() << " steps, "
            << omnibal::unscheduled_groups(second, loads.size(), options.carried).size()
            << " are left\n";
}

void several_groups_on_a_rank() {
  auto const report = [](omnibal::steps const& steps) {
    std::cout << steps.size() << " steps, waiting " << omnibal::dist_ratio(steps, loads)
              << ", the totals of steps vary " << omnibal::step_spread(steps, loads).totals
              << " times as much as random ones\n";
  };
  auto const steps = omnibal::schedule_steps(loads, 4, {.groups_per_rank = 5});
  std::cout << "rank 0 runs";
  for (auto const group : steps(0, 0)) std::cout << ' ' << loads[group];
  std::cout << '\n';
  report(steps);
  report(omnibal::schedule_steps(loads, 4));  // one group: even, but of one size
}

void batches_of_your_own() {
  // What a sampler of yours gives: batches in the order of steps and ranks.
  std::vector<std::vector<std::uint32_t>> batches{{0, 1}, {2}, {3}, {4, 5}};
  auto const steps = omnibal::make_steps(batches, 2, {.groups = 6});
  std::cout << steps.size() << " steps, ranks wait " << omnibal::dist_ratio(steps, loads) << '\n';
  // A group that runs twice is an error.
  batches[3] = {4, 1};
  try {
    std::cout << omnibal::make_steps(batches, 2, {.groups = 6}).size() << " steps\n";
  } catch (std::invalid_argument const& error) {
    std::cout << error.what() << '\n';
  }
}

void samples_one_by_one() {
  omnibal::epoch_sampler_options const options{.seed = 42, .batch = 2};
  omnibal::epoch_sampler sampler(1'000'000'000, {.ranks = 4, .rank = 1}, options);
  for (auto const sample : sampler.next()) std::cout << sample << ' ';
  sampler.seek(100'000'000);  // at once: no array of indices
  for (auto const sample : sampler.next()) std::cout << sample << ' ';
  std::cout << "\nstep " << sampler.step() << " of " << sampler.step_count() << '\n';

  // The state of any rank is a checkpoint for all, and for another number of them.
  omnibal::epoch_sampler resumed(1'000'000'000, {.ranks = 2}, options, sampler.state());
  for (auto const sample : resumed.next()) std::cout << sample << ' ';
  std::cout << "\nstep " << resumed.step() << " of " << resumed.step_count() << " on two ranks\n";
}

void stop_and_go_on_with_other_ranks() {
  omnibal::schedule_steps_options const options{.seed = 42};
  std::vector<int> runs(loads.size());
  omnibal::sampler_state checkpoint;  // 176 bytes, the same on every rank
  for (std::size_t rank = 0; rank != 8; ++rank) {
    omnibal::step_sampler sampler(loads, {.ranks = 8, .rank = rank}, options);
    for (int step = 0; step != 5; ++step) {
      for (auto const group : sampler.next()) ++runs[group];
    }
    checkpoint = sampler.state();
  }
  for (std::size_t rank = 0; rank != 6; ++rank) {
    omnibal::step_sampler sampler(loads, {.ranks = 6, .rank = rank}, options, checkpoint);
    while (!sampler.done()) {
      for (auto const group : sampler.next()) ++runs[group];
    }
  }
  std::cout << std::count(runs.begin(), runs.end(), 1) << " of 800 groups ran once\n";
}

void several_data_sets() {
  struct source {
    char const* name;
    std::uint64_t samples;
    int weight;
  };
  std::vector<source> const sources{{"text", 900, 7}, {"images", 500, 2}, {"video", 100, 1}};
  // The mixture ends before a source would have to start again: video after 100 of its samples.
  omnibal::mixture const mixed(sources, &source::samples, &source::weight,
                               {.seed = 42, .end = omnibal::source_end::stop, .window = 10});
  std::cout << "positions 0 to 9:";
  for (std::uint64_t position = 0; position != 10; ++position) {
    auto const draw = mixed(position);
    std::cout << ' ' << sources[draw.source].name << ' ' << draw.sample;
  }

  // Ranks share its positions; the digest in the state tells other sources or weights.
  omnibal::epoch_sampler_options const options{
      .batch = 5, .order = omnibal::sample_order::given, .contents = mixed.digest()};
  omnibal::epoch_sampler positions(mixed.size(), {.ranks = 2, .rank = 1}, options);
  std::vector<int> draws(sources.size());
  while (!positions.done()) {
    for (auto const position : positions.next()) ++draws[mixed(position).source];
  }
  std::cout << "\nof " << mixed.size() << " draws rank 1 took";
  for (std::size_t s = 0; s != sources.size(); ++s) {
    std::cout << ' ' << draws[s] << " of " << sources[s].name;
  }

  // Without `end` sources start again and the mixture is endless: you say how far a run goes.
  omnibal::mixture const endless(sources, &source::samples, &source::weight,
                                 {.seed = 42, .window = 10});
  omnibal::epoch_sampler const run(5'000, {.ranks = 2, .rank = 1}, options);
  std::cout << "\nan endless one has " << endless.size() << " draws, this run " << run.step_count()
            << " steps\n";
}

void what_must_stay_together() {
  struct turn {
    int conversation, tokens;
  };
  std::vector<turn> const turns{{7, 300}, {4, 500}, {7, 200}, {4, 100}, {9, 650}};
  auto const talks = omnibal::bundle_by(turns, &turn::conversation);
  auto const tokens = omnibal::bundle_loads(talks, turns, &turn::tokens);
  for (std::size_t talk = 0; talk != talks.size(); ++talk) {
    std::cout << talks[talk].size() << " turns with " << tokens[talk][0] << " tokens\n";
  }
  auto const packed = omnibal::isf(tokens, std::identity{}, 1200);
  print(talks);
  print(omnibal::unbundle(packed, talks).groups);
}

void other_groups_in_every_epoch() {
  std::vector<std::int64_t> const lengths(loads.begin(), loads.begin() + 8);
  auto const is_full = [](auto const& load) { return load[0] >= 8000; };
  auto const pack = [&](std::uint64_t seed) {
    return omnibal::isf(lengths, std::identity{}, 9000, {}, is_full,
                        omnibal::rng::fisher_yates{seed});
  };
  for (std::uint64_t epoch = 0; epoch != 2; ++epoch) {
    // A rank that resumes makes the packing of its epoch again, from the same two numbers.
    auto const packed = omnibal::repack(42, epoch, pack);
    std::cout << "epoch " << epoch << ": ";
    print(packed.groups);
  }
}

void the_same_loss_for_every_token() {
  // Tokens with a loss of each rank in this step, as gathered, and the sums of their losses.
  std::vector<std::int64_t> const loss_tokens{4000, 3900, 4100, 2000};
  std::vector<double> const loss_sums{8000, 7800, 8200, 6000};
  // A rank multiplies its sum by this; the mean of the gradients over the ranks is then the mean
  // of all tokens. The mean of the ranks' own means favors the tokens of the last rank.
  double const scale = omnibal::loss_normalizer(loss_tokens);
  double scaled = 0, means = 0;
  for (std::size_t rank = 0; rank != 4; ++rank) {
    scaled += scale * loss_sums[rank] / 4;
    means += loss_sums[rank] / static_cast<double>(loss_tokens[rank]) / 4;
  }
  std::cout << "1 / " << 1 / scale << ": loss " << scaled << " of a token, instead of " << means
            << '\n';
}

void how_even_how_random() {
  auto const steps = omnibal::schedule_steps(loads, 8, {.epoch = 0});
  auto const next = omnibal::schedule_steps(loads, 8, {.epoch = 1});
  std::vector<std::int64_t> const ranks{900, 1000, 800};
  std::cout << "padded to the longest: " << omnibal::pad_ratio(ranks) << " is padding\n"
            << "waiting for the slowest: " << omnibal::dist_ratio(ranks) << " in this step, "
            << omnibal::dist_ratio(steps, loads) << " in the epoch\n"
            << "largest over mean: " << omnibal::imbalance(ranks) << '\n'
            << "pairs of groups meet again " << omnibal::step_overlap(steps, next)
            << " times as often as by chance\n"
            << "the totals of steps vary " << omnibal::step_spread(steps, loads).totals
            << " times as much as random ones\n";
}

void orders_that_are_the_same_everywhere() {
  std::vector<std::uint32_t> order(8);
  std::iota(order.begin(), order.end(), 0u);
  auto numpy = order;
  omnibal::rng::fisher_yates{42}(std::span(order), 0);
  omnibal::rng::numpy_shuffle{42}(std::span(numpy), 0);  // np.random.RandomState(42).shuffle
  omnibal::rng::permutation const any_place(1'000'000'000'000, 42);
  for (auto const index : order) std::cout << index << ' ';
  std::cout << '\n';
  for (auto const index : numpy) std::cout << index << ' ';
  auto const first = any_place(0);
  std::cout << "\n" << first << " is at place " << any_place.inverse(first) << '\n';
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_steps", even_steps},
       {"what_an_epoch_leaves", what_an_epoch_leaves},
       {"several_groups_on_a_rank", several_groups_on_a_rank},
       {"batches_of_your_own", batches_of_your_own},
       {"samples_one_by_one", samples_one_by_one},
       {"stop_and_go_on_with_other_ranks", stop_and_go_on_with_other_ranks},
       {"several_data_sets", several_data_sets},
       {"what_must_stay_together", what_must_stay_together},
       {"other_groups_in_every_epoch", other_groups_in_every_epoch},
       {"the_same_loss_for_every_token", the_same_loss_for_every_token},
       {"how_even_how_random", how_even_how_random},
       {"orders_that_are_the_same_everywhere", orders_that_are_the_same_everywhere}});
}
