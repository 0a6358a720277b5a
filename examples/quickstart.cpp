// SPDX-License-Identifier: Apache-2.0
#include <omnibal/omnibal.hpp>

#include <cstdio>
#include <vector>

struct sample {
  int images, tokens;
};

int main() {
  std::vector<sample> const samples{{5, 1640}, {1, 358}, {3, 811}, {9, 3100}, {1, 290},
                                    {5, 1710}, {3, 790}, {2, 900}, {4, 1480}, {3, 640}};
  auto const demand = omnibal::demand_of(&sample::images, &sample::tokens);
  auto const packed = omnibal::best_packing(samples, demand, omnibal::resources{9, 4096});
  auto const loads = omnibal::group_loads(packed.groups, samples, demand);
  auto const steps = omnibal::schedule_steps(loads, 2);

  for (std::size_t step = 0; step != steps.size(); ++step) {
    for (std::size_t rank = 0; rank != 2; ++rank) {
      std::printf("step %zu, rank %zu: samples", step, rank);
      for (auto const group : steps(step, rank)) {
        for (auto const index : packed.groups[group]) std::printf(" %u", index);
      }
      std::printf("\n");
    }
  }
  std::printf("no packing has fewer than %zu micro-batches\n", packed.report.lower_bound);
}
