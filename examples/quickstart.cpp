// SPDX-License-Identifier: Apache-2.0
#include <omnibal/omnibal.hpp>

#include <cstdio>
#include <vector>

struct sample {
  int images, tokens;
};

int main() {
  std::vector<sample> const samples{{5, 1340}, {1, 358},  {3, 811}, {9, 2400},
                                    {1, 290},  {5, 1310}, {3, 790}, {2, 700}};
  auto const demand = omnibal::demand_of(&sample::images, &sample::tokens);
  auto const packed = omnibal::best_packing(samples, demand, omnibal::resources{9, 4096});

  for (std::size_t group = 0; group != packed.groups.size(); ++group) {
    std::printf("mini-batch %zu:", group);
    for (auto const index : packed.groups[group]) std::printf(" %u", index);
    std::printf("\n");
  }
  std::printf("no packing has fewer than %zu groups\n", packed.report.lower_bound);
}
