// SPDX-License-Identifier: Apache-2.0
// Prints digests of placements of experts for seeded integers.
// expected/experts.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "digest.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
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
}

}  // namespace

int main() {
  print_placements("few experts", 12, 4, 4, 1);
  print_placements("two nodes", 64, 5, 16, 2);
  print_placements("many ranks", 256, 5, 64, 1);
}
