// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <span>
#include <vector>

namespace cookbook {

// The tokens of 800 groups.
std::vector<std::int64_t> const loads = [] {
  omnibal::rng::engine random(1);
  std::vector<std::int64_t> made(800);
  for (auto& load : made)
    load = 2000 + static_cast<std::int64_t>(omnibal::rng::below(random, 2000));
  return made;
}();

void even_steps() {
  auto const even = omnibal::schedule_steps(loads, 8, {.seed = 42, .epoch = 3});
  auto const random = omnibal::schedule_steps(loads, 8, {.seed = 42, .max_dist_ratio = 1});
  std::cout << "step 0:";
  for (std::size_t rank = 0; rank != 8; ++rank) std::cout << ' ' << loads[even(0, rank)[0]];
  auto const next = omnibal::schedule_steps(loads, 8, {.seed = 42, .epoch = 4});
  std::cout << "\nidle share " << omnibal::dist_ratio(even, loads) << ", at random "
            << omnibal::dist_ratio(random, loads) << "; overlap with the next epoch "
            << omnibal::step_overlap(even, next) << '\n';
}

void what_an_epoch_leaves() {
  // 800 groups on 7 ranks: 114 full steps and 2 groups, which run first in the next epoch.
  omnibal::schedule_steps_options options{.seed = 42,
                                          .remainder = omnibal::remainder_policy::carry};
  for (; options.epoch != 2; ++options.epoch) {
    auto const steps = omnibal::schedule_steps(loads, 7, options);
    options.carried = omnibal::unscheduled_groups(steps, loads.size(), options.carried);
    std::cout << steps.size() << " steps, " << options.carried.size() << " groups are left\n";
  }
}

void several_groups_on_a_rank() {
  auto const report = [](omnibal::steps const& steps) {
    std::cout << steps.size() << " steps, idle share " << omnibal::dist_ratio(steps, loads)
              << ", spread " << omnibal::step_spread(steps, loads).totals << '\n';
  };
  report(omnibal::schedule_steps(loads, 4, {.groups_per_rank = 5}));
  report(omnibal::schedule_steps(loads, 4));
}

void batches_of_your_own() {
  // Batches of any sampler, in the order of steps and ranks.
  std::vector<std::vector<std::uint32_t>> const batches{{0, 1}, {2}, {3}, {4, 5}};
  auto const steps = omnibal::make_steps(batches, 2, {.groups = 6});
  std::cout << steps.size() << " steps, idle share " << omnibal::dist_ratio(steps, loads) << '\n';
  std::vector<std::int64_t> const ranks{900, 1000, 800};  // of one step
  std::cout << omnibal::dist_ratio(ranks) << " of the step is idle, " << omnibal::pad_ratio(ranks)
            << " padding; largest over mean " << omnibal::imbalance(ranks) << '\n';
}

void stop_and_continue_on_other_ranks() {
  omnibal::schedule_steps_options const options{.seed = 42};
  std::vector<int> runs(loads.size());
  omnibal::sampler_state checkpoint;  // the same on every rank
  for (std::size_t rank = 0; rank != 8; ++rank) {
    omnibal::step_sampler sampler(loads, {.ranks = 8, .rank = rank}, options);
    for (int step = 0; step != 5; ++step)
      for (auto const group : sampler.next()) ++runs[group];
    checkpoint = sampler.state();
  }
  for (std::size_t rank = 0; rank != 6; ++rank) {
    omnibal::step_sampler sampler(loads, {.ranks = 6, .rank = rank}, options, checkpoint);
    while (!sampler.done())
      for (auto const group : sampler.next()) ++runs[group];
  }
  std::cout << std::count(runs.begin(), runs.end(), 1) << " of 800 groups ran once\n";

  // Without packing: step 100,000,000 of a billion samples, at once.
  omnibal::epoch_sampler sampler(1'000'000'000, {.ranks = 4, .rank = 1}, {.seed = 42, .batch = 2});
  sampler.seek(100'000'000);
  for (auto const sample : sampler.next()) std::cout << sample << ' ';
  std::cout << "of " << sampler.step_count() << " steps" << '\n';
}

void several_data_sets() {
  struct source {
    char const* name;
    std::uint64_t samples;
    int weight;
  };
  std::vector<source> const sources{{"text", 900, 7}, {"images", 500, 2}, {"video", 100, 1}};
  omnibal::mixture const mixed(sources, &source::samples, &source::weight,
                               {.seed = 42, .end = omnibal::source_end::stop, .window = 10});
  omnibal::epoch_sampler positions(
      mixed.size(), {.ranks = 2, .rank = 1},
      {.batch = 5, .order = omnibal::sample_order::given, .contents = mixed.digest()});
  for (auto const position : positions.next()) {
    auto const draw = mixed(position);
    std::cout << sources[draw.source].name << ' ' << draw.sample << ", ";
  }
  std::cout << "step 0 of " << positions.step_count() << ", " << mixed.size() << " draws\n";
}

void bundles_and_other_groups_in_every_epoch() {
  struct turn {
    int conversation, tokens;
  };
  std::vector<turn> const turns{{7, 300}, {4, 500}, {7, 200}, {4, 100},
                                {9, 650}, {5, 400}, {6, 550}, {8, 500}};
  auto const talks = omnibal::bundle_by(turns, &turn::conversation);
  auto const tokens = omnibal::bundle_loads(talks, turns, &turn::tokens);
  auto const is_full = [](auto const& load) { return load[0] >= 1000; };
  auto const pack = [&](std::uint64_t seed) {
    return omnibal::isf(tokens, std::identity{}, 1200, {}, is_full,
                        omnibal::rng::fisher_yates{seed});
  };
  for (std::uint64_t epoch = 0; epoch != 2; ++epoch) {
    // A rank that resumes recomputes the packing of its epoch from the seed and the epoch.
    print(omnibal::unbundle(omnibal::repack(42, epoch, pack), talks).groups);
  }
}

void the_same_loss_for_every_token() {
  // The tokens with a loss of each rank in this step.
  std::vector<std::int64_t> const loss_tokens{4000, 3900, 4100, 2000};
  double const scale = omnibal::loss_normalizer(loss_tokens);
  std::cout << "each rank multiplies its sum of losses by 1 / " << 1 / scale << '\n';
}

void orders_that_are_the_same_everywhere() {
  std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5, 6, 7};
  omnibal::rng::numpy_shuffle{42}(std::span(order), 0);  // np.random.RandomState(42).shuffle
  omnibal::rng::permutation const any_place(1'000'000'000'000, 42);
  auto const first = any_place(0);
  std::cout << order[0] << ' ' << order[1] << "; " << first << " is at place "
            << any_place.inverse(first) << '\n';
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_steps", even_steps},
       {"what_an_epoch_leaves", what_an_epoch_leaves},
       {"several_groups_on_a_rank", several_groups_on_a_rank},
       {"batches_of_your_own", batches_of_your_own},
       {"stop_and_continue_on_other_ranks", stop_and_continue_on_other_ranks},
       {"several_data_sets", several_data_sets},
       {"bundles_and_other_groups_in_every_epoch", bundles_and_other_groups_in_every_epoch},
       {"the_same_loss_for_every_token", the_same_loss_for_every_token},
       {"orders_that_are_the_same_everywhere", orders_that_are_the_same_everywhere}});
}
