// SPDX-License-Identifier: Apache-2.0
#include <omnibal/pack/best_packing.hpp>

#include <functional>
#include <vector>

int main() {
  std::vector<int> const lengths{900, 700, 300, 100};
  auto const packed = omnibal::best_packing(lengths, std::identity{}, 1000);
  return packed.groups.size() == 2 ? 0 : 1;
}
