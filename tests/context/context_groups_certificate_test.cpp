// SPDX-License-Identifier: Apache-2.0
// Bounds, proofs and shortages of `context_groups`, compared with all plans of small instances, and
// how far its heuristic is from the best.

#include "certificate.hpp"
#include "context_faults.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using test::context_question;
using test::number_between;

/// Every plan: samples into groups, groups into micro-steps, a degree for each group.
class all_plans {
 public:
  explicit all_plans(context_question const& question) : question_(question) {}

  double best() {
    split(0);
    return best_;
  }

 private:
  struct open_group {
    std::vector<std::uint32_t> samples;
    std::uint32_t step = 0;
    std::uint32_t degree = 0;
    std::int64_t bytes = 0;
  };

  void split(std::uint32_t sample) {
    if (sample == question_.lengths.size()) return choose_step(0, 0);
    for (std::size_t g = 0; g != groups_.size(); ++g) {
      groups_[g].samples.push_back(sample);
      split(sample + 1);
      groups_[g].samples.pop_back();
    }
    groups_.push_back({{sample}, 0, 0, 0});
    split(sample + 1);
    groups_.pop_back();
  }

  void choose_step(std::size_t group, std::uint32_t steps) {
    if (group == groups_.size()) return choose_degree(0, steps);
    for (std::uint32_t step = 0; step <= steps; ++step) {
      groups_[group].step = step;
      choose_step(group + 1, std::max(steps, step + 1));
    }
  }

  void choose_degree(std::size_t group, std::uint32_t steps) {
    if (group == groups_.size()) return evaluate(steps);
    for (std::uint32_t degree = 1; degree <= question_.ranks; ++degree) {
      if (!question_.allows(degree)) continue;
      std::int64_t bytes = 0;
      for (std::uint32_t const sample : groups_[group].samples) {
        bytes += question_.bytes(question_.lengths[sample], degree);
      }
      if (bytes > question_.max_capacity(degree)) continue;
      groups_[group].degree = degree;
      groups_[group].bytes = bytes;
      choose_degree(group + 1, steps);
    }
  }

  void evaluate(std::uint32_t steps) {
    std::uint32_t const multiple = question_.options.multiple;
    double makespan = question_.cost.micro_step * ((steps + multiple - 1) / multiple * multiple);
    for (std::uint32_t step = 0; step != steps; ++step) {
      std::vector<open_group const*> own;
      for (open_group const& group : groups_) {
        if (group.step == step) own.push_back(&group);
      }
      std::vector<bool> const busy(question_.ranks);
      makespan += longest(own, 0, busy);
      if (makespan >= best_) return;
    }
    best_ = makespan;
  }

  /// The least time of the longest of these groups from the given one on, each at every rank where
  /// it may start; infinite if they do not fit.
  [[nodiscard]] double longest(std::vector<open_group const*> const& groups, std::size_t at,
                               std::vector<bool> const& busy) const {
    if (at == groups.size()) return 0;
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t const degree = groups[at]->degree;
    for (std::uint32_t first = 0; first + degree <= question_.ranks; ++first) {
      if (!question_.may_start_at(first, degree)) continue;
      if (groups[at]->bytes > question_.capacity(first, degree)) continue;
      auto const own = busy.begin() + first;
      if (std::find(own, own + degree, true) != own + degree) continue;
      double const time = question_.time(groups[at]->samples, degree, first);
      if (time >= least) continue;
      std::vector<bool> taken = busy;
      std::fill_n(taken.begin() + first, degree, true);
      least = std::min(least, std::max(time, longest(groups, at + 1, taken)));
    }
    return least;
  }

  context_question const& question_;
  std::vector<open_group> groups_;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Whole numbers, so that sums are exact.
omnibal::degree_time draw_time(omnibal::rng::engine& random, std::uint32_t degree) {
  auto const up_to = [&](std::int64_t most) {
    return static_cast<double>(number_between(random, 0, most));
  };
  bool const is_shared = number_between(random, 0, 3) != 0;
  double const share = is_shared ? 12.0 / degree : 1.0;
  return {up_to(3), share * up_to(4) + (is_shared ? up_to(1) : 1.0), share * up_to(2)};
}

context_question draw_question(omnibal::rng::engine& random) {
  context_question question;
  question.ranks = static_cast<std::uint32_t>(number_between(random, 1, 4));
  if (number_between(random, 0, 3) == 0) {
    question.options.ranks_per_node = 2;
    question.ranks = 2 * static_cast<std::uint32_t>(number_between(random, 1, 2));
  }
  if (number_between(random, 0, 3) == 0) {
    question.options.placement = omnibal::group_placement::blocks;
    std::uint32_t const node = std::max(1u, question.options.ranks_per_node);
    question.ranks = node * static_cast<std::uint32_t>(number_between(random, 1, 6 / node));
    if (node != 1 && number_between(random, 0, 1) == 0) {
      question.options.ranks_per_node = 3;
      question.ranks = 6;
    }
  }
  // One row for all degrees, shared among more and more ranks, or any rows.
  bool const is_regular = number_between(random, 0, 1) == 0;
  omnibal::degree_time const whole{static_cast<double>(number_between(random, 0, 5)), 12, 12};
  for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
    question.cost.degrees.push_back(
        is_regular
            ? omnibal::degree_time{whole.fixed, whole.linear / degree, whole.quadratic / degree}
            : draw_time(random, degree));
    auto& row = question.cost.degrees.back();
    if (row.fixed == 0 && row.linear == 0 && row.quadratic == 0) row.linear = 1;
  }
  question.cost.micro_step = static_cast<double>(number_between(random, 0, 20));
  for (auto left = number_between(random, 1, 4); left != 0; --left) {
    question.lengths.push_back(number_between(random, 0, number_between(random, 1, 12)));
  }
  question.token_bytes = number_between(random, 0, 2);
  question.rank_bytes = number_between(random, 0, 2);
  question.options.capacity = number_between(random, 1, 30);
  question.options.multiple = static_cast<std::uint32_t>(number_between(random, 1, 2));
  if (number_between(random, 0, 2) == 0) {
    question.options.degrees = omnibal::powers_of_two(question.ranks);
  }
  if (number_between(random, 0, 2) == 0) {
    for (std::uint32_t rank = 0; rank != question.ranks; ++rank) {
      question.options.speeds.push_back(static_cast<double>(number_between(random, 1, 4)));
    }
  }
  if (number_between(random, 0, 2) == 0) {
    for (std::uint32_t rank = 0; rank != question.ranks; ++rank) {
      question.options.capacities.push_back(number_between(random, 1, 30));
    }
  }
  return question;
}

/// True if all values of a list are equal.
template <class Value>
bool is_even(std::vector<Value> const& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

TEST_CASE("plans of groups agree with all plans of small instances") {
  double sum_of_gaps = 0;
  double largest_gap = 0;
  std::uint64_t solved = 0;
  test::certify<double>("context_groups", [&](omnibal::rng::engine& random) -> std::string {
    context_question question = draw_question(random);
    double const best = all_plans(question).best();
    question.options.effort = omnibal::effort::fast;
    auto const fast = question.plan();
    question.options.effort = omnibal::effort::normal;
    auto const plan = question.plan();
    if (best == std::numeric_limits<double>::infinity()) {
      bool const is_said = plan.status == omnibal::solve_status::infeasible &&
                           fast.status == omnibal::solve_status::infeasible;
      if (!is_said) return "infeasible, and not said so";
      return question.fits(question.lengths[plan.sample]) ? "the sample that is named fits" : "";
    }
    for (auto const* made : {&fast, &plan}) {
      std::string const found = test::context_faults(question, *made);
      if (!found.empty()) return found;
      if (made->lower_bound > best * (1 + 1e-9)) return "a bound above the optimum";
      if (made->makespan < best * (1 - 1e-9)) return "a plan below the optimum";
    }
    bool const has_equal_ranks =
        is_even(question.options.speeds) && is_even(question.options.capacities);
    if (has_equal_ranks && !plan.proven) return "not proven";
    if (plan.proven && !test::is_close(plan.makespan, best)) return "not the optimum";
    ++solved;
    double const gap = best > 0 ? fast.makespan / best - 1 : 0.0;
    sum_of_gaps += gap;
    largest_gap = std::max(largest_gap, gap);
    return {};
  });
  std::printf(
      "fast plans of %llu instances: %.2f %% above the optimum in the mean, %.0f %% at most\n",
      static_cast<unsigned long long>(solved), 100 * sum_of_gaps / static_cast<double>(solved),
      100 * largest_gap);
  CHECK(sum_of_gaps < 0.04 * static_cast<double>(solved));
}

/// Conversations and a few documents on up to eight ranks, in nodes of four now and then.
context_question draw_mixture(omnibal::rng::engine& random) {
  context_question question;
  question.ranks = static_cast<std::uint32_t>(number_between(random, 2, 8));
  if (number_between(random, 0, 3) == 0) {
    question.ranks = 8;
    question.options.ranks_per_node = 4;
  }
  if (number_between(random, 0, 2) == 0) {
    question.options.degrees = omnibal::powers_of_two(question.ranks);
  }
  auto const shared = static_cast<double>(number_between(random, 0, 100));
  for (std::uint32_t degree = 1; degree <= question.ranks; ++degree) {
    double const others = degree == 1 ? 0 : 1;
    question.cost.degrees.push_back(
        {10 + shared * others, (1 + 0.1 * others) / degree, 0.001 / degree});
  }
  question.cost.micro_step = static_cast<double>(number_between(random, 0, 50));
  question.options.capacity = number_between(random, 1000, 4000);
  for (auto left = number_between(random, 5, 7); left != 0; --left) {
    bool const is_document = number_between(random, 0, 4) == 0;
    std::int64_t const most = is_document ? question.options.capacity : 800;
    question.lengths.push_back(number_between(random, most / 10, most));
  }
  return question;
}

TEST_CASE("plans of a few fillings are near those of branch and bound") {
  constexpr int instances = 10'000;
  double sum_of_gaps = 0;
  double largest_gap = 0;
  double sum_of_bounds = 0;
  int best_ones = 0;
  int proven = 0;
  for (int k = 0; k != instances; ++k) {
    omnibal::rng::engine random(static_cast<std::uint64_t>(k));
    context_question question = draw_mixture(random);
    question.options.effort = omnibal::effort::fast;
    auto const fast = question.plan();
    question.options.effort = omnibal::effort::normal;
    auto const best = question.plan();
    INFO("seed " << k);
    REQUIRE(test::context_faults(question, fast) == "");
    REQUIRE(test::context_faults(question, best) == "");
    if (!best.proven) continue;
    ++proven;
    REQUIRE(fast.lower_bound <= best.makespan * (1 + 1e-9));
    double const gap = fast.makespan / best.makespan - 1;
    sum_of_gaps += gap;
    largest_gap = std::max(largest_gap, gap);
    sum_of_bounds += best.makespan / fast.lower_bound - 1;
    if (gap < 1e-9) ++best_ones;
  }
  std::printf(
      "fast plans of %d mixtures, %d proven: %.2f %% above the optimum in the mean, %.1f %% at "
      "most, %d are the best; the optimum is %.1f %% above the bound\n",
      instances, proven, 100 * sum_of_gaps / proven, 100 * largest_gap, best_ones,
      100 * sum_of_bounds / proven);
  CHECK(proven > instances / 2);
  CHECK(sum_of_gaps < 0.08 * proven);
}

}  // namespace
