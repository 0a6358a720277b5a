// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"
#include "split_faults.hpp"

#include <omnibal/experts/split_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

template <class Count>
std::string fault_of(omnibal::rng::engine& random) {
  auto const below = [&](std::uint64_t limit) { return omnibal::rng::below(random, limit); };
  std::size_t const ranks = 1 + below(5);
  std::size_t const slots = 1 + below(4);
  std::size_t const experts = 1 + below(ranks * slots);
  test::weight_source<Count> const source(random, 1 << 26);
  test::split_instance given;
  std::vector<Count> tokens(experts, 0);
  for (std::size_t s = 0; s != ranks * slots; ++s) {
    given.placement.push_back(static_cast<std::uint32_t>(below(experts)));
    tokens[given.placement.back()] = source();
  }
  for (Count const count : tokens) given.tokens.push_back(count);
  bool const has_first = below(3) == 0;
  for (std::size_t r = 0; r != ranks; ++r) {
    given.first_tokens.push_back(has_first ? source() : Count{0});
  }
  omnibal::split_experts_options options;
  if (has_first) options.first_tokens = given.first_tokens;
  auto const split = omnibal::split_experts(tokens, given.placement, ranks, options);
  if (auto const fault = test::split_faults(given, split); !fault.empty()) return fault;
  if (split.largest != given.least_largest()) return "not the least largest rank";
  return "";
}

}  // namespace

// The promise of the function is exactness: no set of ranks may leave a doubt.
TEMPLATE_TEST_CASE("split_experts: brute force over all sets of ranks", "", std::int32_t,
                   std::int64_t, std::uint32_t) {
  test::certify<TestType>("split_experts", fault_of<TestType>);
}
