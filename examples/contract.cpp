// SPDX-License-Identifier: Apache-2.0
#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

int main() {
  std::vector<std::int64_t> const lengths{900, 5000, 700, 3000};
  // A part of the samples: their indices, and a functor that looks them up.
  std::vector<std::uint32_t> const checked{0, 1, 3};
  auto const tokens = [&](std::uint32_t index) { return lengths[index]; };

  // A sample that exceeds the capacity alone is in no group. Nothing else says so.
  auto const packed = omnibal::best_fit_decreasing(checked, tokens, 4096);
  for (std::uint32_t const position : packed.oversized) {
    std::printf("document %u is in no group\n", checked[position]);
  }

  // A problem without a solution is a status.
  auto const parts = omnibal::balance_under_capacity(checked, 2, tokens, tokens, 4096);
  if (parts.status == omnibal::solve_status::infeasible) std::printf("no two parts hold all\n");

  // A wrong argument is an exception.
  try {
    static_cast<void>(omnibal::best_fit_decreasing(checked, tokens, 0));
  } catch (std::invalid_argument const& error) {
    std::printf("%s\n", error.what());
  }
}
