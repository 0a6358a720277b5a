// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace cookbook {

std::vector<std::int64_t> const costs{40, 38, 36, 33, 30, 30, 29, 27, 14};

std::int64_t largest_load(omnibal::grouping const& parts) {
  std::int64_t largest = 0;
  for (auto const& load : omnibal::group_loads(parts, costs, std::identity{})) {
    largest = std::max(largest, load[0]);
  }
  return largest;
}

void even_parts() {
  // All are called alike: samples, the number of parts, what a sample costs.
  auto const longest_first = omnibal::lpt(costs, 3);
  auto const differencing = omnibal::karmarkar_karp(costs, 3);
  auto const dealt = omnibal::deal(costs, 3);
  print(longest_first);
  std::cout << "lpt " << largest_load(longest_first) << ", karmarkar_karp "
            << largest_load(differencing) << ", deal " << largest_load(dealt) << '\n';
  auto const refined = omnibal::refine_parts(costs, dealt, std::identity{});
  std::cout << "deal refined " << largest_load(refined) << '\n';
  // No parts are below the mean.
  auto const total = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
  std::cout << "the least possible is at least " << (total + 2) / 3 << '\n';
}

void as_many_samples_in_every_part() {
  using omnibal::count_policy;
  print(omnibal::lpt(costs, 3, std::identity{}, {.count = count_policy::equal}));
  // Nine samples do not divide by four.
  try {
    print(omnibal::lpt(costs, 4, std::identity{}, {.count = count_policy::equal}));
  } catch (std::invalid_argument const& error) {
    std::cout << error.what() << '\n';
  }
  auto const near =
      omnibal::lpt(costs, 4, std::identity{}, {.count = count_policy::at_most_one_apart});
  for (std::size_t part = 0; part != 4; ++part) std::cout << near[part].size() << ' ';
  std::cout << "samples, the largest load is " << largest_load(near) << '\n';
}

void several_costs_at_once() {
  struct sample {
    int images, tokens;
  };
  std::vector<sample> const samples{{9, 100}, {1, 900}, {5, 500}, {5, 450}, {8, 150}, {2, 880}};
  // A cost of two kinds, each compared as a share of its sum: units do not matter.
  auto const both = omnibal::demand_of(&sample::images, &sample::tokens);
  auto const parts = omnibal::lpt(samples, 2, both);
  for (auto const& load : omnibal::group_loads(parts, samples, both)) {
    std::cout << load[0] << " images and " << load[1] << " tokens\n";
  }
}

void padded_batches() {
  std::vector<std::int64_t> const lengths{900, 120, 110, 100, 450, 95, 90, 430};
  // A padded batch costs count * longest, which is no sum of its samples.
  auto const show = [&](omnibal::grouping const& parts) {
    print(parts);
    for (std::size_t p = 0; p != parts.size(); ++p) {
      omnibal::padded_batch<> batch;
      for (auto const index : parts[p]) batch.add(lengths[index]);
      std::cout << "  " << batch.value() << " padded tokens\n";
    }
  };
  show(omnibal::balance_set_cost(lengths, 3, omnibal::padded_batch{}));
  show(omnibal::lpt(lengths, 3));  // even before padding
}

void with_few_bytes_moved() {
  // Rank 0 has drawn the samples 0 to 2, rank 1 the next three, rank 2 the rest.
  omnibal::grouping home;
  for (std::uint32_t index = 0; index != 9; ++index) {
    home.push(index);
    if (index % 3 == 2) home.close();
  }
  auto const parts = omnibal::rebalance(home, costs, costs, {.max_overload = 0.05});
  print(parts);
  std::cout << "the largest load is " << largest_load(home) << " at home, " << largest_load(parts)
            << " now\n";
}

void under_a_hard_cap() {
  std::vector<std::int64_t> const tokens{900, 800, 700, 600, 500, 400, 300, 200};
  auto const work = [](std::int64_t length) { return length + length * length / 1000; };
  auto const length = [](std::int64_t given) { return given; };
  auto const even = omnibal::balance_under_capacity(tokens, 3, work, length, 1500);
  print(even.parts);
  std::cout << "largest work " << even.largest_load << ", at least " << even.lower_bound << '\n';
  auto const tight = omnibal::balance_under_capacity(tokens, 3, work, length, 1400);
  if (tight.status == omnibal::solve_status::infeasible) {
    std::cout << "1400 tokens take " << tight.parts_needed << " parts\n";
  }
}

void micro_batches_for_every_rank() {
  std::vector<std::int64_t> const tokens{900, 800, 700, 600, 500, 400, 300, 200, 100, 100};
  auto const work = [](std::int64_t length) { return length + length * length / 1000; };
  auto const length = [](std::int64_t given) { return given; };
  auto const batches = omnibal::micro_batches(tokens, 2, work, length, 1200);
  for (std::size_t m = 0; m != batches.size(); ++m) {
    for (std::size_t rank = 0; rank != 2; ++rank) {
      std::cout << "micro-batch " << m << " of rank " << rank << ":";
      for (auto const index : batches(m, rank)) std::cout << ' ' << tokens[index];
      std::cout << '\n';
    }
  }
}

void the_best_with_a_proof() {
  auto const report = [](auto const& found) {
    std::cout << found.largest_load;
    if (found.proven) {
      std::cout << ", the least possible\n";
    } else {
      std::cout << ", no parts are below " << found.lower_bound << '\n';
    }
  };
  auto const best = omnibal::balance_optimally(costs, 3);
  print(best.parts);
  report(best);
  // The search is exponential: a limit in nodes, not in seconds, ends it everywhere at one place.
  report(omnibal::balance_optimally(costs, 3, std::identity{}, {.nodes = 10}));
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"even_parts", even_parts},
       {"as_many_samples_in_every_part", as_many_samples_in_every_part},
       {"several_costs_at_once", several_costs_at_once},
       {"padded_batches", padded_batches},
       {"with_few_bytes_moved", with_few_bytes_moved},
       {"under_a_hard_cap", under_a_hard_cap},
       {"micro_batches_for_every_rank", micro_batches_for_every_rank},
       {"the_best_with_a_proof", the_best_with_a_proof}});
}
