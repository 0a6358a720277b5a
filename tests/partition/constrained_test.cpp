// SPDX-License-Identifier: Apache-2.0
// partition_layers and partition_throughput against all cuts of short chains, under every
// constraint.

#include "all_cuts.hpp"
#include "samples.hpp"

#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::empty_stages;
using omnibal::partition_constraints;
using omnibal::solve_status;
using test::cuts;

/// A chain with costs at its cuts, stages that differ, and a predicate that forbids some stages, or
/// a memory rule.
struct chain {
  std::vector<std::int64_t> costs;
  std::vector<std::int64_t> cut_costs;
  std::vector<std::int64_t> stage_costs;
  std::uint64_t forbidden = 0;  ///< in how many of 16 cases a stage does not fit
  std::vector<std::int64_t> kept_bytes;
  std::vector<std::int64_t> rule_capacity;  ///< of each stage; empty where there is no rule

  [[nodiscard]] std::int64_t sum(std::size_t first, std::size_t last) const {
    std::int64_t result = 0;
    for (std::size_t l = first; l != last; ++l) result += costs[l];
    return result;
  }
  [[nodiscard]] std::int64_t cost(std::size_t stage, std::size_t first, std::size_t last) const {
    return sum(first, last) + cut_costs[first] + cut_costs[last] + stage_costs[stage];
  }
  /// The first stages keep more of each layer, and all need room for their largest.
  [[nodiscard]] std::int64_t bytes(std::size_t stage, std::size_t first, std::size_t last) const {
    std::int64_t sum = 0;
    std::int64_t most = 0;
    for (std::size_t l = first; l != last; ++l) {
      sum += kept_bytes[l];
      most = std::max(most, kept_bytes[l]);
    }
    return sum * static_cast<std::int64_t>(stage_costs.size() - stage) + most;
  }
  [[nodiscard]] std::int64_t missing_by_rule(std::size_t stage, std::size_t first,
                                             std::size_t last) const {
    if (rule_capacity.empty() || first == last) return 0;
    return std::max<std::int64_t>(0, bytes(stage, first, last) - rule_capacity[stage]);
  }
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    if (!rule_capacity.empty()) return missing_by_rule(stage, first, last) == 0;
    return (stage * 31 + first * 17 + last * 101 + costs.size()) * 0x9e3779b97f4a7c15u >> 60 >=
           forbidden;
  }
};

struct problem {
  chain layers;
  std::size_t stages;
  partition_constraints constraints;
};

chain random_chain(test::random_amounts& random, std::size_t count, std::size_t stages) {
  chain result;
  std::int64_t const limit = random.between(0, 3) == 0 ? 2 : 100;
  for (std::size_t l = 0; l != count; ++l) result.costs.push_back(random.between(0, limit));
  bool const has_cut_costs = random.between(0, 2) != 0;
  for (std::size_t i = 0; i != count + 1; ++i) {
    result.cut_costs.push_back(has_cut_costs ? random.between(0, limit / 2) : 0);
  }
  bool const stages_differ = random.between(0, 2) == 0;
  for (std::size_t s = 0; s != stages; ++s) {
    result.stage_costs.push_back(stages_differ ? random.between(0, limit) : 0);
  }
  if (random.between(0, 3) == 0) {
    result.forbidden = static_cast<std::uint64_t>(random.between(1, 9));
  }
  return result;
}

std::vector<std::int64_t> list(test::random_amounts& random, std::size_t count, std::int64_t low,
                               std::int64_t high) {
  std::vector<std::int64_t> result(count);
  for (std::int64_t& value : result) value = random.between(low, high);
  return result;
}

/// Gives some chains a memory rule that is tight for some of them.
void add_memory_rule(test::random_amounts& random, chain& layers) {
  std::size_t const stages = layers.stage_costs.size();
  if (layers.forbidden != 0 || random.between(0, 2) != 0) return;
  layers.kept_bytes = list(random, layers.costs.size(), 0, 20);
  auto const share = static_cast<std::int64_t>(10 * layers.costs.size() / stages);
  for (std::size_t s = 0; s != stages; ++s) {
    auto const in_flight = static_cast<std::int64_t>(stages - s);
    layers.rule_capacity.push_back(random.between(share / 2 * in_flight, 2 * share * in_flight));
  }
}

partition_constraints random_constraints(test::random_amounts& random, std::size_t count,
                                         std::size_t stages) {
  auto const index = [&](std::size_t below) {
    return static_cast<std::uint32_t>(random.between(0, static_cast<std::int64_t>(below) - 1));
  };
  auto const is_drawn = [&](std::int64_t of) { return random.between(1, of) == 1; };
  auto const last = static_cast<std::int64_t>(count);
  partition_constraints result;
  if (is_drawn(3) || count < stages) result.empty = empty_stages::allowed;
  if (is_drawn(2)) {
    result.bytes = list(random, count, 0, 20);
    auto const mean = 10 * last / static_cast<std::int64_t>(stages);
    if (stages % 2 == 0 && is_drawn(2)) result.devices = stages / 2;
    std::size_t const devices = result.devices == 0 ? stages : result.devices;
    std::int64_t const share = result.devices == 0 ? 1 : 2;
    result.capacity = list(random, is_drawn(2) ? 1 : devices, mean / 2 * share, mean * 2 * share);
  }
  if (is_drawn(4)) result.min_layers = list(random, is_drawn(2) ? 1 : stages, 0, 3);
  if (is_drawn(4)) result.max_layers = list(random, is_drawn(2) ? 1 : stages, 1, last);
  if (count == 0) return result;
  while (is_drawn(5)) result.pinned.push_back({index(count), index(stages)});
  while (count > 1 && is_drawn(3)) result.forbidden_cuts.push_back(1 + index(count - 1));
  while (is_drawn(5)) {
    std::uint32_t const first = index(count);
    std::uint32_t const length = index(3);
    result.tied.push_back({first, std::min(first + length, static_cast<std::uint32_t>(count - 1))});
  }
  return result;
}

problem random_problem(std::uint64_t seed) {
  test::random_amounts random(seed);
  auto const stages = static_cast<std::size_t>(random.between(1, 5));
  auto const count = static_cast<std::size_t>(random.between(random.between(0, 3) == 0 ? 0 : 4, 9));
  chain layers = random_chain(random, count, stages);
  auto constraints = random_constraints(random, count, stages);
  add_memory_rule(random, layers);
  return {std::move(layers), stages, std::move(constraints)};
}

/// What stages on so many devices cost; negative where a stage does not fit.
struct stage_sums {
  std::int64_t bottleneck = 0;
  std::int64_t sum = 0;
  std::int64_t load = 0;  ///< the largest one of a device
};

stage_sums sums_of(chain const& layers, cuts const& boundaries, std::size_t devices) {
  stage_sums result;
  std::vector<std::int64_t> loads(devices, 0);
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    if (boundaries[s] == boundaries[s + 1]) continue;
    if (!layers.fits(s, boundaries[s], boundaries[s + 1])) return {-1, -1, -1};
    std::int64_t const cost = layers.cost(s, boundaries[s], boundaries[s + 1]);
    result.bottleneck = std::max(result.bottleneck, cost);
    result.sum += cost;
    loads[s % devices] += cost;
  }
  result.load = *std::max_element(loads.begin(), loads.end());
  return result;
}

using objective_and_bottleneck = std::pair<std::int64_t, std::int64_t>;

std::size_t devices_of(problem const& given) {
  return given.constraints.devices == 0 ? given.stages : given.constraints.devices;
}

/// The largest load of a device where there are no micro-batches; else that load for each of them,
/// and the time in which the first one fills the pipeline, rounded up.
std::int64_t objective_of(stage_sums const& sums, std::int64_t micro_batches, std::int64_t chunks) {
  if (micro_batches == 0) return sums.load;
  return micro_batches * sums.load + (sums.sum - sums.load + chunks - 1) / chunks;
}

/// The best by trying all.
test::best_cuts<objective_and_bottleneck> best_of_all(problem const& given,
                                                      std::int64_t micro_batches) {
  test::best_cuts<objective_and_bottleneck> best;
  test::for_all_cuts(
      given.layers.costs.size(), given.stages, given.constraints.empty, [&](cuts const& tried) {
        if (!test::obeys_rules(tried, given.constraints)) return;
        if (test::missing_bytes(tried, given.constraints) > 0) return;
        std::size_t const devices = devices_of(given);
        stage_sums const sums = sums_of(given.layers, tried, devices);
        if (sums.bottleneck < 0) return;
        auto const chunks = static_cast<std::int64_t>(given.stages / devices);
        best.offer({objective_of(sums, micro_batches, chunks), sums.bottleneck}, tried);
      });
  return best;
}

/// What a stage lacks that is alone on its device; negative where it has more than enough.
std::int64_t missing_on_stage(problem const& given, cuts const& boundaries, std::size_t s) {
  std::int64_t const by_rule = given.layers.missing_by_rule(s, boundaries[s], boundaries[s + 1]);
  auto const& constraints = given.constraints;
  if (constraints.capacity.empty() || constraints.devices != 0) return by_rule;
  return std::max(by_rule, test::bytes_of(constraints, boundaries[s], boundaries[s + 1]) -
                               test::value_for(constraints.capacity.values(), s));
}

/// False where no memory makes these stages legal.
bool is_admitted(problem const& given, cuts const& boundaries) {
  if (!given.layers.rule_capacity.empty()) return true;
  return sums_of(given.layers, boundaries, devices_of(given)).bottleneck >= 0;
}

/// The least that all capacities lack, of stages that more memory would make legal.
void check_missing_memory(problem const& given,
                          omnibal::partition_result<std::int64_t> const& result) {
  test::best_cuts<std::int64_t> best;
  test::for_all_cuts(given.layers.costs.size(), given.stages, given.constraints.empty,
                     [&](cuts const& tried) {
                       if (!test::obeys_rules(tried, given.constraints)) return;
                       if (!is_admitted(given, tried)) return;
                       std::int64_t missing =
                           std::max<std::int64_t>(0, test::missing_bytes(tried, given.constraints));
                       for (std::size_t s = 0; s != given.stages; ++s) {
                         missing = std::max(missing, missing_on_stage(given, tried, s));
                       }
                       best.offer(missing, tried);
                     });
  CHECK(result.missing_bytes == best.value);
  CHECK(result.stage < given.stages);
  if (!best.found || best.value == 0 || given.constraints.devices != 0) return;
  std::size_t stage = 0;
  while (missing_on_stage(given, best.boundaries, stage) != best.value) ++stage;
  CHECK(result.stage == stage);
}

bool can_be_cut(problem const& given) {
  bool found = false;
  test::for_all_cuts(
      given.layers.costs.size(), given.stages, given.constraints.empty,
      [&](cuts const& tried) { found = found || test::obeys_rules(tried, given.constraints); });
  return found;
}

omnibal::partition_result<std::int64_t> solve(problem const& given, std::int64_t micro_batches,
                                              bool with_base) {
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return given.layers.cost(stage, first, last);
  };
  omnibal::weight_list<std::int64_t> base;
  if (with_base) base = given.layers.costs;
  auto const under = [&](auto const& fits) {
    if (micro_batches == 0) {
      return omnibal::partition_layers(given.layers.costs, given.stages, cost, fits,
                                       {.base = base, .constraints = given.constraints});
    }
    return omnibal::partition_throughput(given.layers.costs, given.stages, cost, fits,
                                         {.micro_batches = static_cast<std::size_t>(micro_batches),
                                          .base = base,
                                          .constraints = given.constraints});
  };
  if (given.layers.rule_capacity.empty()) {
    return under([&](std::size_t stage, std::size_t first, std::size_t last) {
      return given.layers.fits(stage, first, last);
    });
  }
  return under(
      omnibal::memory_rule{[&](std::size_t stage, std::size_t first, std::size_t last) {
                             return given.layers.bytes(stage, first, last);
                           },
                           [&](std::size_t stage) { return given.layers.rule_capacity[stage]; }});
}

void check_against_all(problem const& given, std::int64_t micro_batches, bool with_base) {
  auto const best = best_of_all(given, micro_batches);
  auto const result = solve(given, micro_batches, with_base);
  bool const is_shared = devices_of(given) != given.stages;
  CHECK((result.proven || (is_shared && micro_batches != 0)));
  if (!best.found) {
    CHECK(result.status == solve_status::infeasible);
    CHECK(result.boundaries.empty());
    check_missing_memory(given, result);
    return;
  }
  CHECK(result.status == solve_status::solved);
  if (is_shared) {
    // Stages of shared devices are chosen by the schedule, and of equal ones the even ones.
    REQUIRE(result.boundaries.size() == given.stages + 1);
    CHECK(test::obeys_rules(result.boundaries, given.constraints));
    CHECK(test::missing_bytes(result.boundaries, given.constraints) <= 0);
    stage_sums const sums = sums_of(given.layers, result.boundaries, devices_of(given));
    auto const chunks = static_cast<std::int64_t>(given.stages / devices_of(given));
    CHECK(result.objective == objective_of(sums, micro_batches, chunks));
    CHECK(result.bottleneck == sums.bottleneck);
    CHECK(result.objective >= best.value.first);
    CHECK(result.lower_bound <= best.value.first);
    if (result.proven) CHECK(result.objective == best.value.first);
    return;
  }
  CHECK(result.objective == best.value.first);
  CHECK(result.lower_bound == best.value.first);
  CHECK(result.bottleneck == best.value.second);
  CHECK(result.boundaries == best.boundaries);
}

}  // namespace

TEST_CASE("the best of all cuts is found under every constraint, with a base and without") {
  std::size_t contradictions = 0;
  std::size_t solved = 0;
  std::size_t rules = 0;
  for (std::uint64_t seed = 0; seed != 6000; ++seed) {
    problem const given = random_problem(seed);
    INFO("seed " << seed << ", " << given.layers.costs.size() << " layers, " << given.stages
                 << " stages");
    if (!can_be_cut(given)) {
      ++contradictions;
      CHECK_THROWS_AS(solve(given, 0, false), std::invalid_argument);
      CHECK_THROWS_AS(solve(given, 4, true), std::invalid_argument);
      continue;
    }
    for (std::int64_t const micro_batches : {0, 1, 2, 8, 1000}) {
      INFO(micro_batches << " micro-batches");
      check_against_all(given, micro_batches, false);
      check_against_all(given, micro_batches, true);
    }
    ++solved;
    if (!given.layers.rule_capacity.empty()) ++rules;
  }
  CHECK(contradictions > 300);
  CHECK(solved > 3000);
  CHECK(rules > 1000);
}

TEST_CASE("the largest number of bytes may be missing") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  auto const one = [](std::size_t, std::size_t, std::size_t) { return 1; };
  auto const missing = [&](std::size_t stages, partition_constraints const& rules) {
    auto const result = omnibal::partition_layers(2, stages, one, {}, {.constraints = rules});
    CHECK(result.status == solve_status::infeasible);
    CHECK(result.proven);
    return result.missing_bytes;
  };
  partition_constraints rules{.bytes = {largest / 2, largest / 2 + 1}, .capacity = {0}};
  CHECK(missing(1, rules) == largest);
  rules.devices = 1;
  CHECK(missing(2, rules) == largest);
  rules.empty = empty_stages::allowed;
  CHECK(missing(2, rules) == largest);
}

TEST_CASE("of a device and a stage that lack as much the first is named") {
  auto const one = [](std::size_t, std::size_t, std::size_t) { return 1; };
  auto const bytes = [](std::size_t stage, std::size_t, std::size_t) { return stage == 0 ? 9 : 0; };
  omnibal::memory_rule const rule{bytes, 5};
  partition_constraints const rules{.bytes = {0, 4}, .capacity = {0}, .devices = 2};
  auto const result = omnibal::partition_layers(2, 2, one, rule, {.constraints = rules});
  CHECK(result.missing_bytes == 4);
  CHECK(result.stage == 0);
  partition_constraints shared{.bytes = {0, 4, 0, 0}, .capacity = {0}, .devices = 2};
  auto const four = omnibal::partition_layers(4, 4, one, rule, {.constraints = shared});
  CHECK(four.missing_bytes == 4);
  CHECK(four.stage == 0);
}
