// SPDX-License-Identifier: Apache-2.0
// What a caller has to look at: docs/reference/contract.md.

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

struct document {
  std::int64_t tokens;
  bool is_checked;
};

int main() {
  std::vector<document> const documents{{900, true}, {5000, true}, {700, false}, {3000, true}};

  // A part of the samples without a view: their indices, and a functor that looks them up.
  std::vector<std::uint32_t> checked;
  for (std::uint32_t i = 0; i != documents.size(); ++i) {
    if (documents[i].is_checked) checked.push_back(i);
  }
  auto const tokens = [&](std::uint32_t index) { return documents[index].tokens; };

  // What exceeds the capacity alone is in no group. Nothing else says so.
  auto const packed = omnibal::best_fit_decreasing(checked, tokens, 4096);
  for (std::uint32_t const position : packed.oversized) {
    std::printf("document %u is in no group\n", checked[position]);
  }

  // A question without an answer is a status.
  auto const parts = omnibal::balance_under_capacity(checked, 2, tokens, tokens, 4096);
  if (parts.status == omnibal::solve_status::infeasible) std::printf("no two parts hold all\n");

  // A wrong argument is an exception.
  try {
    static_cast<void>(omnibal::best_fit_decreasing(checked, tokens, 0));
  } catch (std::invalid_argument const& error) {
    std::printf("%s\n", error.what());
  }
}
