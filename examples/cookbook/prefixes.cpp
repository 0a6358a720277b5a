// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <cstdint>
#include <iostream>
#include <vector>

namespace cookbook {

// Two prompts of four tokens with three answers each.
std::vector<std::vector<int>> const sequences{{1, 2, 3, 4, 10},     {1, 2, 3, 4, 11, 12},
                                              {1, 2, 3, 4, 13},     {5, 6, 7, 8, 14},
                                              {5, 6, 7, 8, 15, 16}, {5, 6, 7, 8, 15, 17, 18}};
auto const forest = omnibal::build_prefix_forest(sequences);

void pack_sequences_that_share_prefixes() {
  auto const packed = omnibal::pack_prefixes(forest, 10);
  print(packed.groups);
  std::cout << forest.all_tokens() << " tokens, " << packed.computed_tokens
            << " computed, at least " << packed.bound.tokens << "; at least " << packed.bound.groups
            << " groups\n";
}

void even_work_on_all_ranks() {
  auto const steps = omnibal::balance_prefixes(forest, 2, 10);
  std::vector<int> const prompts{0, 0, 0, 1, 1, 1};  // the answers to a prompt on one rank
  auto const kept = omnibal::balance_prefixes(forest, 2, 10, omnibal::prefix_work{}, prompts);
  std::cout << "work " << steps.work[0] << ' ' << steps.work[1] << ", with prompts kept "
            << kept.work[0] << ' ' << kept.work[1] << '\n';
  std::vector<int> const homes{0, 2, 6};  // rank 0 has sequences 0 and 1
  auto const moved = omnibal::prefix_exchange(forest, homes, kept.batches.cells(), 4);
  std::cout << moved.plan.moved_bytes() << " bytes move\n";
}

void masks_and_losses_for_kernels() {
  std::vector<std::uint32_t> const group{0, 1};
  auto const layout = omnibal::layout_prefixes(forest, group);
  std::vector<double> const advantages{0.5, -1.5};
  std::vector<std::uint32_t> const prompt_lengths{4, 4};
  auto const weights = omnibal::prefix_loss_weights(layout, advantages, prompt_lengths);
  for (std::size_t k = 0; k != layout.tokens(); ++k) {
    std::cout << layout.positions[k] << ' ' << layout.token_ends[k] << ' ' << weights[k] << "; ";
  }
  std::cout << omnibal::slice_prefixes(layout).q_ranges.size() << " slices\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"pack_sequences_that_share_prefixes", pack_sequences_that_share_prefixes},
       {"even_work_on_all_ranks", even_work_on_all_ranks},
       {"masks_and_losses_for_kernels", masks_and_losses_for_kernels}});
}
