// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what forests of shared prefixes give for seeded integers.
// expected/prefix.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../prefix/prefix_faults.hpp"
#include "../support/fnv1a.hpp"
#include "digest.hpp"

#include <omnibal/prefix/balance_prefixes.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/prefix/prefix_exchange.hpp>
#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/prefix/prefix_masks.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

void print_forests(std::string const& name, std::size_t nodes, std::size_t sequences,
                   std::uint64_t longest) {
  test::fnv1a forests;
  test::fnv1a bounds;
  test::fnv1a groups;
  test::fnv1a balanced;
  test::fnv1a layouts;
  omnibal::rng::engine random(nodes);
  for (std::uint64_t seed = 0; seed != 8; ++seed) {
    auto const forest = test::random_forest(random, nodes, sequences, longest);
    std::uint64_t const capacity = 4 * longest + omnibal::rng::below(random, 4 * longest);
    for (auto const list : {forest.parents(), forest.subtree_ends(), forest.ends()}) {
      forests.add(digest_of(list));
    }
    forests.add(digest_of(forest.lengths()));
    auto const bound = omnibal::prefix_bound(forest, capacity);
    bounds.add(bound.tokens);
    bounds.add(bound.groups);
    omnibal::pack_prefixes_options options;
    options.seed = seed;
    options.multiple_of = 1 + seed % 3;
    options.steps = 4096;
    auto const packed = omnibal::pack_prefixes(forest, capacity, options);
    groups.add(digest_of(packed.groups.offsets()));
    groups.add(digest_of(packed.groups.items()));
    groups.add(digest_of(packed.tokens));
    groups.add(digest_of(packed.oversized));
    omnibal::balance_prefixes_options balance;
    balance.packing = options;
    balance.packing.multiple_of = 1;
    // Works that are whole numbers have exact sums.
    auto const steps =
        omnibal::balance_prefixes(forest, 3, capacity, omnibal::prefix_work{1.0, 2.0}, balance);
    balanced.add(digest_of(steps.batches.cells().offsets()));
    balanced.add(digest_of(steps.batches.cells().items()));
    auto const count = static_cast<std::uint32_t>(forest.sequence_count());
    std::vector<std::uint32_t> const homes{0, count / 3, count / 2, count};
    auto const moved = omnibal::prefix_exchange(forest, homes, steps.batches.cells(), 4);
    balanced.add(moved.plan.digest());
    for (std::size_t g = 0; g != packed.groups.size(); ++g) {
      auto const layout = omnibal::layout_prefixes(forest, packed.groups[g]);
      layouts.add(digest_of(layout.positions));
      layouts.add(digest_of(layout.token_ends));
      layouts.add(digest_of(layout.predictors));
      layouts.add(digest_of(omnibal::slice_prefixes(layout).attn_type_map));
      layouts.add(digest_of(omnibal::block_prefixes(layout, {16, 8}).kv_indices));
    }
  }
  print("build_prefix_forest, " + name, forests.value());
  print("prefix_bound, " + name, bounds.value());
  print("pack_prefixes, " + name, groups.value());
  print("balance_prefixes and prefix_exchange, " + name, balanced.value());
  print("layout_prefixes and its masks, " + name, layouts.value());
}

}  // namespace

int main() {
  print_forests("few sequences", 12, 8, 9);
  print_forests("some sequences", 200, 150, 40);
  print_forests("many sequences", 1500, 1000, 100);
}
