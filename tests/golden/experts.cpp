// SPDX-License-Identifier: Apache-2.0
// Prints digests of placements of experts, splits of their tokens and foreign copies for seeded
// integers.
// expected/experts.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "digest.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/experts/split_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

/// Returns loads of which few are large.
std::vector<std::int64_t> draw_loads(omnibal::rng::engine& random, std::size_t count) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i != count; ++i) {
    std::uint64_t const limit = std::uint64_t{1} << omnibal::rng::below(random, 14);
    result.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, limit)));
  }
  return result;
}

void print_placements(std::string const& name, std::size_t experts, std::size_t slots,
                      std::size_t ranks, std::size_t nodes) {
  omnibal::rng::engine random(experts);
  omnibal::place_experts_options options;
  options.layers = 6;
  options.nodes = nodes;
  options.groups = 2 * nodes;
  auto const loads = draw_loads(random, 6 * experts);
  auto const old = omnibal::place_experts(loads, slots, ranks, options);
  print("place_experts, " + name, digest_of(old.experts));
  options.old = old.experts;
  options.max_moved = old.experts.size() / 5;
  auto const later = draw_loads(random, 6 * experts);
  auto const next = omnibal::place_experts(later, slots, ranks, options);
  print("place_experts with a budget, " + name, digest_of(next.experts));
  auto const batch = draw_loads(random, experts);
  std::size_t const count = ranks * slots;
  for (std::size_t l = 0; l != 2; ++l) {
    auto const split =
        omnibal::split_experts(batch, std::span(next.experts).subspan(l * count, count), ranks);
    print("split_experts, " + name, digest_of(split.tokens));
  }
}

void print_spills(std::string const& name, std::size_t experts, std::size_t ranks,
                  double max_overload) {
  omnibal::rng::engine random(ranks);
  std::vector<std::uint32_t> home;
  for (std::size_t e = 0; e != experts; ++e) {
    home.push_back(static_cast<std::uint32_t>(e * ranks / experts));
  }
  for (int batch = 0; batch != 3; ++batch) {
    auto const plan = omnibal::spill_experts(draw_loads(random, experts), home, ranks,
                                             {.max_overload = max_overload});
    std::vector<std::int64_t> all{plan.largest, static_cast<std::int64_t>(plan.fewest_copies)};
    for (auto const& copy : plan.copies) {
      all.insert(all.end(), {copy.expert, copy.rank, copy.tokens});
    }
    print("spill_experts, " + name, digest_of(all));
  }
}

}  // namespace

int main() {
  print_placements("few experts", 12, 4, 4, 1);
  print_placements("two nodes", 64, 5, 16, 2);
  print_placements("many ranks", 256, 5, 64, 1);
  print_spills("few ranks", 32, 8, 0);
  print_spills("many ranks", 128, 64, 0.1);
}
