// SPDX-License-Identifier: Apache-2.0
// A trainer that packs documents into sequences.

#include <omnibal/pack/next_fit.hpp>

#include <cstdio>
#include <functional>
#include <vector>

int main() {
  std::vector<int> const lengths{1340, 358, 811, 2400, 290};
  auto const packed = omnibal::next_fit(lengths, std::identity{}, 4096);
  std::printf("%zu sequences\n", packed.groups.size());
  return packed.groups.size() == 2 ? 0 : 1;
}
