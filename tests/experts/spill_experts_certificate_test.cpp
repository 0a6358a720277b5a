// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"
#include "spill_faults.hpp"

#include <omnibal/experts/spill_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace {

/// Numbers of plans that have the fewest copies, that miss a plan with the cap, and of proofs.
struct outcomes {
  std::size_t all = 0;
  std::size_t fewest = 0;
  std::size_t proven = 0;
  std::size_t missed = 0;
};

template <class Count>
std::string fault_of(omnibal::rng::engine& random, outcomes& met) {
  using omnibal::solve_status;
  auto const below = [&](std::uint64_t limit) { return omnibal::rng::below(random, limit); };
  bool const is_wide = below(16) == 0;
  std::size_t const ranks = is_wide ? 4 : 2 + below(2);
  std::size_t const experts = 1 + below(4);
  test::weight_source<Count> const source(random, 1 << 26);
  test::spill_instance given;
  std::vector<Count> tokens;
  for (std::size_t e = 0; e != experts; ++e) {
    tokens.push_back(source());
    given.tokens.push_back(tokens.back());
    given.home.push_back(static_cast<std::uint32_t>(below(ranks)));
  }
  omnibal::spill_experts_options options;
  options.max_overload = static_cast<double>(below(4)) / 8;
  options.effort = omnibal::effort::fast;
  if (below(2) == 0) options.slots = below(4);
  std::size_t const slots = options.slots.value_or(experts);
  auto const plan = omnibal::spill_experts(tokens, given.home, ranks, options);
  if (auto const fault = test::spill_faults(given, plan, slots); !fault.empty()) return fault;
  test::all_spills const all(given, ranks, plan.cap);
  std::size_t const fewest = all.fewest(slots);
  bool const is_solved = plan.status == solve_status::solved;
  if (fewest == test::all_spills::none) {
    if (is_solved) return "a plan where none exists";
    return "";
  }
  if (plan.status == solve_status::infeasible) return "infeasible, but a plan exists";
  if (plan.fewest_copies > fewest) return "bound above the fewest copies";
  if (is_solved && plan.copies.size() < fewest) return "fewer copies than any plan";
  ++met.all;
  met.fewest += is_solved && plan.copies.size() == fewest;
  met.proven += plan.proven;
  met.missed += !is_solved;
  return "";
}

}  // namespace

// Neither the bound nor a proof nor the claim that no plan exists may be wrong, and the search
// finds the fewest copies nearly always.
TEMPLATE_TEST_CASE("spill_experts: brute force over all sets of copies", "", std::int32_t,
                   std::int64_t) {
  outcomes met;
  test::certify<TestType>("spill_experts", [&](omnibal::rng::engine& random) {
    return fault_of<TestType>(random, met);
  });
  auto const all = static_cast<double>(met.all);
  std::printf("fewest copies: %.4f, proven: %.4f, no plan found: %.4f\n",
              static_cast<double>(met.fewest) / all, static_cast<double>(met.proven) / all,
              static_cast<double>(met.missed) / all);
  CHECK(met.fewest * 100 >= met.all * 97);
  CHECK(met.proven * 100 >= met.all * 90);
}
