// SPDX-License-Identifier: Apache-2.0
// Packs and balances samples with the module alone.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

import omnibal;

int main() {
  std::vector<std::uint32_t> const lengths{3000, 1200, 900, 2900, 700, 300};
  auto const packed = omnibal::best_fit_decreasing(lengths, std::identity{}, 4096);
  auto const loads = omnibal::group_loads(packed.groups, lengths, std::identity{});
  auto const parts = omnibal::lpt(loads, 3, std::identity{});
  omnibal::rng::engine random(7);
  auto const sum = omnibal::resources(std::int64_t{1}, 2) + omnibal::resources(std::int64_t{3}, 4);
  auto const [images, tokens] = sum;

  std::size_t samples = 0;
  for (auto const group : packed.groups) samples += group.size();
  bool const is_right = samples == lengths.size() && packed.groups.size() == 3 &&
                        parts.size() == 3 && random() != random() && images == 4 && tokens == 6;
  std::printf("%zu groups of %zu samples\n", packed.groups.size(), samples);
  return is_right ? 0 : 1;
}
