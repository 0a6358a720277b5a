// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>
#include <vector>

namespace cookbook {

std::vector<std::int64_t> const costs{40, 38, 36, 33, 30, 30, 29, 27, 14};

std::int64_t largest_load(omnibal::grouping const& parts) {
  auto const loads = omnibal::group_loads(parts, costs, std::identity{});
  return std::ranges::max(loads, {}, [](auto const& load) { return load[0]; })[0];
}

auto const work = [](std::int64_t length) { return length + length * length / 1000; };
auto const length = std::identity{};

void even_parts() {
  auto const dealt = omnibal::deal(costs, 3);
  auto const refined = omnibal::refine_parts(costs, dealt, std::identity{});
  std::cout << "lpt " << largest_load(omnibal::lpt(costs, 3)) << ", karmarkar_karp "
            << largest_load(omnibal::karmarkar_karp(costs, 3)) << ", deal " << largest_load(dealt)
            << ", refined " << largest_load(refined) << '\n';
  // The same number of samples in every part.
  using omnibal::count_policy;
  print(omnibal::lpt(costs, 3, std::identity{}, {.count = count_policy::equal}));
  print(omnibal::lpt(costs, 4, std::identity{}, {.count = count_policy::at_most_one_apart}));
}

void ranks_of_different_speed() {
  using timed_step = std::pair<double, double>;  // the cost of the samples, and seconds
  std::vector<std::vector<timed_step>> const measured{
      {{300, 0.25}, {600, 0.45}}, {{300, 0.25}, {600, 0.45}}, {{300, 0.35}, {600, 0.65}}};
  std::vector<double> speeds;
  for (auto const& rank : measured) {
    auto const fit = omnibal::affine_fit(rank, &timed_step::first, &timed_step::second);
    speeds.push_back(1 / fit.slopes[0]);  // 1500, 1500 and 1000
  }
  auto const parts = omnibal::lpt(costs, 3, std::identity{}, {.speeds = speeds});
  print(omnibal::refine_parts(costs, parts, std::identity{}, {.speeds = speeds}));
}

void several_costs_at_once() {
  struct sample {
    int images, tokens;
  };
  std::vector<sample> const samples{{9, 100}, {1, 900}, {5, 500}, {5, 450}, {8, 150}, {2, 880}};
  auto const both = omnibal::demand_of(&sample::images, &sample::tokens);
  auto const parts = omnibal::lpt(samples, 2, both);
  for (auto const& load : omnibal::group_loads(parts, samples, both)) {
    std::cout << load[0] << " images and " << load[1] << " tokens\n";
  }
}

void padded_batches() {
  std::vector<std::int64_t> const lengths{900, 120, 110, 100, 450, 95, 90, 430};
  auto const show = [&](omnibal::grouping const& parts) {
    std::cout << "padded tokens:";
    for (auto const part : parts) {
      omnibal::padded_batch<> batch;
      for (auto const index : part) batch.add(lengths[index]);
      std::cout << ' ' << batch.value();
    }
    std::cout << '\n';
  };
  show(omnibal::balance_set_cost(lengths, 3, omnibal::padded_batch{}));
  show(omnibal::lpt(lengths, 3));  // balanced before padding
}

void with_few_bytes_moved() {
  omnibal::grouping home;  // rank 0 has the samples 0 to 2, rank 1 the next three, rank 2 the rest
  for (std::uint32_t index = 0; index != 9; ++index) {
    home.push(index);
    if (index % 3 == 2) home.close();
  }
  auto const parts = omnibal::rebalance(home, costs, costs, {.max_overload = 0.05});
  print(parts);
  std::cout << "largest load " << largest_load(home) << ", then " << largest_load(parts) << '\n';
}

void copies_of_experts() {
  std::vector<int> const loads{600, 560, 120, 120, 20, 10, 10, 10};  // tokens of each expert
  auto const first = omnibal::place_experts(loads, 2, 8);            // 2 slots on each of 8 ranks
  std::vector<int> const later{90, 560, 120, 120, 20, 400, 10, 10};
  auto const next = omnibal::place_experts(later, 2, 8, {.old = first.experts, .max_moved = 4});
  std::cout << "largest load " << first.largest_loads[0] << ", then " << next.largest_loads[0]
            << " with " << next.moved[0] << " moved copies\n";
  std::vector<int> const batch{150, 700, 90, 140, 20, 300, 10, 10};
  auto const split = omnibal::split_experts(batch, next.experts, 8);  // the tokens of each slot
  std::vector<std::uint32_t> const home{0, 1, 2, 3, 4, 5, 6, 7};      // the rank of each expert
  auto const plan = omnibal::spill_experts(batch, home, 8, {.max_overload = 0.2});
  std::cout << "largest rank of the batch " << split.largest << "; " << plan.copies.size()
            << " foreign copies, at least " << plan.fewest_copies << '\n';
}

void under_a_token_limit() {
  std::vector<std::int64_t> const tokens{900, 800, 700, 600, 500, 400, 300, 200};
  auto const even = omnibal::balance_under_capacity(tokens, 3, work, length, 1500);
  print(even.parts);
  std::cout << "largest work " << even.largest_load << ", at least " << even.lower_bound << '\n';
  auto const tight = omnibal::balance_under_capacity(tokens, 3, work, length, 1400);
  if (tight.status == omnibal::solve_status::infeasible) {
    std::cout << "1400 tokens require " << tight.parts_needed << " parts\n";
  }
  auto const batches = omnibal::micro_batches(tokens, 2, work, length, 1200);
  std::cout << batches.size() << " micro-batches on each rank\n";
}

void the_best_with_a_proof() {
  auto const best = omnibal::balance_optimally(costs, 3);
  print(best.parts);
  std::cout << best.largest_load << (best.proven ? ", the smallest possible\n" : "\n");
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_parts", even_parts},
       {"ranks_of_different_speed", ranks_of_different_speed},
       {"several_costs_at_once", several_costs_at_once},
       {"padded_batches", padded_batches},
       {"with_few_bytes_moved", with_few_bytes_moved},
       {"copies_of_experts", copies_of_experts},
       {"under_a_token_limit", under_a_token_limit},
       {"the_best_with_a_proof", the_best_with_a_proof}});
}
