// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of foreign copies, and their least number by brute force over sets of copies.

#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// Tokens and homes of experts in one batch.
struct spill_instance {
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> home;
};

/// Returns a batch of which few experts have most tokens; the ranks have the same number of
/// experts.
inline spill_instance skewed_batch(std::uint64_t seed, std::size_t experts, std::size_t ranks) {
  omnibal::rng::engine random(seed);
  spill_instance result;
  for (std::size_t e = 0; e != experts; ++e) {
    std::uint64_t const limit = std::uint64_t{2} << omnibal::rng::below(random, 12);
    result.tokens.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, limit)));
    result.home.push_back(static_cast<std::uint32_t>(e * ranks / experts));
  }
  return result;
}

/// Returns what is wrong with a plan; empty if nothing is.
inline std::string spill_faults(spill_instance const& given, omnibal::spill_plan const& plan,
                                std::size_t slots) {
  using omnibal::solve_status;
  auto left = given.tokens;
  std::vector<std::int64_t> ranks(plan.rank_tokens.size(), 0);
  std::vector<std::size_t> taken(ranks.size(), 0);
  for (std::size_t e = 0; e != left.size(); ++e) {
    if (plan.home_tokens[e] < 0) return "negative tokens at home";
    left[e] -= plan.home_tokens[e];
    ranks[given.home[e]] += plan.home_tokens[e];
  }
  std::pair<std::uint32_t, std::uint32_t> before{0, 0};
  for (auto const& copy : plan.copies) {
    std::pair const here(copy.expert, copy.rank);
    if (&copy != plan.copies.data() && here <= before) return "order of copies";
    before = here;
    if (copy.tokens <= 0) return "a copy without tokens";
    if (copy.rank == given.home[copy.expert]) return "a copy at home";
    left[copy.expert] -= copy.tokens;
    ranks[copy.rank] += copy.tokens;
    ++taken[copy.rank];
  }
  if (std::count(left.begin(), left.end(), 0) != std::ssize(left)) return "tokens of an expert";
  if (*std::max_element(taken.begin(), taken.end()) > slots) return "too many foreign experts";
  if (ranks != plan.rank_tokens) return "tokens of the ranks";
  if (*std::max_element(ranks.begin(), ranks.end()) != plan.largest) return "largest rank";
  bool const is_solved = plan.status == solve_status::solved;
  if (is_solved != (plan.largest <= plan.cap)) return "status";
  if (is_solved && plan.copies.size() < plan.fewest_copies) return "fewer copies than the bound";
  if (plan.proven != (is_solved && plan.copies.size() == plan.fewest_copies)) return "proven";
  return "";
}

/// All sets of foreign copies of a small batch.
class all_spills {
 public:
  all_spills(spill_instance const& given, std::size_t ranks, std::int64_t cap)
      : given_(given), ranks_(ranks), cap_(cap) {}

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Returns the least number of copies that keep the cap, or `none`. A rank has at most `slots`.
  [[nodiscard]] std::size_t fewest(std::size_t slots) const {
    std::size_t const pairs = given_.tokens.size() * (ranks_ - 1);
    std::size_t result = none;
    for (std::size_t set = 0; set != std::size_t{1} << pairs; ++set) {
      auto const count = static_cast<std::size_t>(std::popcount(set));
      if (count < result && is_enough(set, slots)) result = count;
    }
    return result;
  }

 private:
  /// Returns true if the tokens that can only go into a set of ranks fit it, for all sets.
  [[nodiscard]] bool is_enough(std::size_t set, std::size_t slots) const {
    std::vector<std::size_t> taken(ranks_, 0);
    std::vector<std::size_t> holders;
    for (std::size_t e = 0; e != given_.tokens.size(); ++e) {
      std::size_t own = std::size_t{1} << given_.home[e];
      for (std::size_t i = 0; i != ranks_ - 1; ++i, set /= 2) {
        if (set % 2 == 0) continue;
        std::size_t const rank = i + (i >= given_.home[e] ? 1 : 0);
        own |= std::size_t{1} << rank;
        if (++taken[rank] > slots) return false;
      }
      holders.push_back(own);
    }
    for (std::size_t group = 1; group != std::size_t{1} << ranks_; ++group) {
      std::int64_t sum = 0;
      for (std::size_t e = 0; e != holders.size(); ++e) {
        sum += (holders[e] & ~group) == 0 ? given_.tokens[e] : 0;
      }
      if (sum > cap_ * std::popcount(group)) return false;
    }
    return true;
  }

  spill_instance const& given_;
  std::size_t ranks_;
  std::int64_t cap_;
};

}  // namespace test
