// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every partition gives for seeded integers.
// expected/partition.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

/// Every partition of seeded chains, a line for each.
void print_partition(std::uint64_t seed) {
  test::random_amounts random(seed);
  std::map<std::string, test::fnv1a> hashes;
  for (std::size_t const layers : {16u, 97u, 1000u}) {
    std::vector<std::int64_t> costs(layers);
    std::vector<std::int64_t> cut_costs(layers + 1);
    std::vector<std::int64_t> bytes(layers);
    std::vector<std::int64_t> sums(layers + 1, 0);
    for (std::size_t l = 0; l != layers; ++l) {
      costs[l] = random.heavy_tail(1'000'000);
      cut_costs[l] = random.between(0, 500'000);
      bytes[l] = random.between(0, 1000);
      sums[l + 1] = sums[l] + costs[l];
    }
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return sums[last] - sums[first] + cut_costs[first] + static_cast<std::int64_t>(stage);
    };
    for (std::size_t const stages : {2u, 8u, 16u}) {
      auto const add = [&](std::string const& name, auto const& result) {
        hashes[name].add(digest_of(result.boundaries));
        hashes[name].add(static_cast<std::uint64_t>(result.objective));
        hashes[name].add(static_cast<std::uint64_t>(result.missing_bytes));
        hashes[name].add(result.stage);
      };
      omnibal::partition_constraints const memory{
          .bytes = bytes,
          .capacity = {static_cast<std::int64_t>(700 * layers / stages)},
          .max_layers = {static_cast<std::int64_t>(3 * layers / stages)}};
      auto const anchor = omnibal::partition_minimax(costs, stages);
      add("partition_minimax", anchor);
      add("partition_layers", omnibal::partition_layers(layers, stages, cost, {}, {.base = costs}));
      add("partition_layers, constraints",
          omnibal::partition_layers(layers, stages, cost, {},
                                    {.base = costs, .constraints = memory}));
      add("partition_throughput",
          omnibal::partition_throughput(layers, stages, cost, {},
                                        {.micro_batches = 9, .base = costs}));
      auto const first_cut = [](std::span<std::uint32_t const> at) { return at[1]; };
      auto const near = omnibal::neighbors(anchor.boundaries, 2);
      for (auto const& found : omnibal::search_cuts(near, cost, 30, first_cut).candidates) {
        hashes["search"].add(digest_of(found.boundaries));
        hashes["search"].add(static_cast<std::uint64_t>(found.score));
      }
    }
  }
  for (auto const& [name, hash] : hashes) {
    print(name + " of seed " + std::to_string(seed), hash.value());
  }
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{1}, std::uint64_t{2}}) print_partition(seed);
}
