// SPDX-License-Identifier: Apache-2.0
// Every call that takes a workspace, with nothing before it that has a default.

#include "to_vector.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::self_communicator;

using numbers = std::vector<std::int64_t>;

numbers const lengths{30, 10, 25, 7, 7, 90, 4, 12, 61, 5};
std::vector<std::uint32_t> const offsets{0, 6, 7, 10};

constexpr auto twice = [](std::int64_t length) { return 2 * length; };

}  // namespace

TEST_CASE("partition_minimax takes a workspace in the place of what has a default") {
  omnibal::partition_minimax_workspace<> workspace;
  CHECK(omnibal::partition_minimax(lengths, 3, workspace) ==
        omnibal::partition_minimax(lengths, 3));
  CHECK(omnibal::partition_minimax(lengths, 3, twice, workspace) ==
        omnibal::partition_minimax(lengths, 3, twice));
  CHECK(&omnibal::partition_minimax(lengths, 3, twice, workspace) == &workspace.result());
  omnibal::partition_minimax_workspace<double> floating;
  auto const half = [](std::int64_t length) { return 0.5 * static_cast<double>(length); };
  CHECK(omnibal::partition_minimax(lengths, 3, half, floating) ==
        omnibal::partition_minimax(lengths, 3, half));
  // Options that are braces are still options.
  CHECK(omnibal::partition_minimax(lengths, 3, twice, {}) ==
        omnibal::partition_minimax(lengths, 3, twice));
  CHECK(omnibal::partition_minimax(lengths, 3, twice, {}, workspace) ==
        omnibal::partition_minimax(lengths, 3, twice));
}

TEST_CASE("rebalance takes a workspace in the place of options") {
  omnibal::rebalance_workspace<> workspace;
  auto const home = omnibal::deal(lengths, 3);
  auto const expected = omnibal::rebalance(home, lengths, lengths);
  CHECK(omnibal::rebalance(home, lengths, lengths, workspace) == expected);
  CHECK(&omnibal::rebalance(home, lengths, lengths, workspace) == &workspace.result());
  CHECK(omnibal::rebalance(home, lengths, lengths, {}) == expected);
  omnibal::rebalance_workspace<2> of_two;
  auto const cost = [](std::uint32_t i) { return omnibal::resources{lengths[i], twice(i)}; };
  CHECK(omnibal::rebalance(home, cost, lengths, of_two) == omnibal::rebalance(home, cost, lengths));
}

TEST_CASE("make_plan takes a workspace in the place of options or a balancer") {
  omnibal::make_plan_workspace<> workspace;
  auto const expected = omnibal::make_plan(offsets, lengths, lengths);
  CHECK(omnibal::make_plan(offsets, lengths, lengths, workspace) == expected);
  CHECK(&omnibal::make_plan(offsets, lengths, lengths, workspace) == &workspace.result());
  omnibal::make_plan_options const options{.ranks_per_node = 3, .max_overload = 0.0};
  CHECK(omnibal::make_plan(offsets, lengths, lengths, options, workspace) ==
        omnibal::make_plan(offsets, lengths, lengths, options));
  CHECK(omnibal::make_plan(offsets, lengths, lengths, {.max_overload = 0.0}, workspace) ==
        omnibal::make_plan(offsets, lengths, lengths, {.max_overload = 0.0}));
  CHECK(omnibal::make_plan(offsets, lengths, lengths, {}) == expected);
  CHECK(omnibal::make_plan(offsets, lengths, lengths, {}, workspace) == expected);
  CHECK(omnibal::make_plan(offsets, lengths, lengths, {}, omnibal::rebalance, workspace) ==
        expected);
}

TEST_CASE("make_plan takes a workspace where parts are given") {
  omnibal::make_plan_workspace<> workspace;
  auto const parts = omnibal::deal(lengths, 6);
  auto const expected = omnibal::make_plan(offsets, parts, lengths);
  CHECK(omnibal::make_plan(offsets, parts, lengths, workspace) == expected);
  CHECK(&omnibal::make_plan(offsets, parts, lengths, workspace) == &workspace.result());
  CHECK(omnibal::make_plan(offsets, parts, lengths, {}) == expected);
  CHECK(omnibal::make_plan(offsets, parts, lengths, {}, workspace) == expected);
}

TEST_CASE("context groups take a workspace in the place of options") {
  omnibal::context_cost const cost{.degrees = {{1, 1, 0}, {1, 0.6, 0}}};
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  omnibal::context_groups_workspace workspace;
  auto const expected = omnibal::context_groups(lengths, 2, cost, memory);
  CHECK(omnibal::context_groups(lengths, 2, cost, memory, workspace) == expected);
  CHECK(&omnibal::context_groups(lengths, 2, cost, memory, workspace) == &workspace.result());
  CHECK(omnibal::context_groups(lengths, 2, cost, memory, {}, workspace) == expected);
}

TEST_CASE("pieces of context groups and their exchange take a workspace in the place of options") {
  omnibal::context_plan plan{
      .micro_step_offsets = {0, 1}, .groups = {{1, 2, 1}}, .samples = omnibal::deal(lengths, 1)};
  omnibal::context_pieces_workspace cutter;
  auto const layout = omnibal::context_pieces(plan, lengths, 3);
  CHECK(&omnibal::context_pieces(plan, lengths, 3, cutter) == &cutter.result());
  auto const pieces = test::to_vector(layout.pieces());
  CHECK(test::to_vector(cutter.result().pieces()) == pieces);
  CHECK(test::to_vector(omnibal::context_pieces(plan, lengths, 3, {}, cutter).pieces()) == pieces);
  CHECK(omnibal::context_pieces(plan, lengths, 3, {.multiple = 16}, cutter).pieces().size() <
        layout.pieces().size());
  omnibal::context_exchange_workspace planner;
  auto const expected = omnibal::context_exchange(layout, offsets, 2);
  CHECK(omnibal::context_exchange(layout, offsets, 2, planner) == expected);
  CHECK(&omnibal::context_exchange(layout, offsets, 2, planner) == &planner.result());
  CHECK(omnibal::context_exchange(layout, offsets, 2, {}, planner) == expected);
}

TEST_CASE("plans of several ranks take a workspace in the place of options or a balancer") {
  self_communicator const comm;
  omnibal::plan_exchange_workspace<> workspace;
  auto const expected = omnibal::plan_exchange(comm, lengths, twice, twice);
  CHECK(omnibal::plan_exchange(comm, lengths, twice, twice, workspace) == expected);
  CHECK(&omnibal::plan_exchange(comm, lengths, twice, twice, workspace) == &workspace.result());
  CHECK(omnibal::plan_exchange(comm, lengths, twice, twice, {.max_overload = 0.5}, workspace) ==
        omnibal::plan_exchange(comm, lengths, twice, twice, {.max_overload = 0.5}));
  CHECK(omnibal::plan_exchange(comm, lengths, twice, twice, {}) == expected);
  CHECK(omnibal::plan_exchange(comm, lengths, twice, twice, {}, workspace) == expected);
  CHECK(omnibal::plan_exchange(self_communicator(), lengths, twice, twice, workspace) == expected);
}

TEST_CASE("compose takes a workspace in the place of options") {
  omnibal::compose_workspace workspace;
  auto const plan = omnibal::make_plan(offsets, lengths, lengths);
  auto const back = plan.inverse();
  auto const expected = omnibal::compose(plan, back, lengths);
  CHECK(omnibal::compose(plan, back, lengths, workspace) == expected);
  CHECK(&omnibal::compose(plan, back, lengths, workspace) == &workspace.result());
  CHECK(omnibal::compose(plan, back, lengths, {}) == expected);
  CHECK(omnibal::compose(plan, back, lengths, {}, workspace) == expected);
}

TEST_CASE("orchestrations take a workspace in the place of options") {
  omnibal::language_phase const language{lengths, lengths};
  omnibal::make_orchestration_workspace workspace;
  auto const expected = omnibal::make_orchestration(offsets, language, std::tuple<>());
  CHECK(omnibal::make_orchestration(offsets, language, std::tuple<>(), workspace).digest() ==
        expected.digest());
  CHECK(&omnibal::make_orchestration(offsets, language, std::tuple<>(), workspace) ==
        &workspace.result());
  CHECK(omnibal::make_orchestration(offsets, language, std::tuple<>(), {}).digest() ==
        expected.digest());

  self_communicator const comm;
  auto const images = [](std::int64_t length) {
    return numbers(static_cast<std::size_t>(length % 3), length);
  };
  omnibal::language_phase const of_sample{twice, twice};
  std::tuple const encoders{omnibal::encoder_phase{images, twice, twice, twice}};
  omnibal::orchestrate_workspace<1> of_ranks;
  auto const all = omnibal::orchestrate(comm, lengths, of_sample, encoders);
  CHECK(omnibal::orchestrate(comm, lengths, of_sample, encoders, of_ranks).digest() ==
        all.digest());
  CHECK(&omnibal::orchestrate(comm, lengths, of_sample, encoders, of_ranks) == &of_ranks.result());
  CHECK(omnibal::orchestrate(comm, lengths, of_sample, encoders, {}).digest() == all.digest());
}

TEST_CASE("gather_lengths takes a workspace in the place of what has a default") {
  self_communicator const comm;
  omnibal::gather_lengths_workspace<> workspace;
  CHECK(omnibal::gather_lengths(comm, lengths, workspace) ==
        omnibal::gather_lengths(comm, lengths));
  CHECK(omnibal::gather_lengths(comm, lengths, twice, workspace) ==
        omnibal::gather_lengths(comm, lengths, twice));
  CHECK(&omnibal::gather_lengths(comm, lengths, workspace) == &workspace.result());
  CHECK(omnibal::gather_lengths(comm, lengths, twice, {}) ==
        omnibal::gather_lengths(comm, lengths, twice));
  // Samples that are no lengths, with a functor and without options.
  struct image {
    int tiles;
    int tokens;
  };
  std::vector<image> const samples{{1, 2}, {3, 4}};
  auto const both = [](image const& one) { return omnibal::resources{one.tiles, one.tokens}; };
  omnibal::gather_lengths_workspace<2> of_two;
  CHECK(omnibal::gather_lengths(comm, samples, both, of_two) ==
        omnibal::gather_lengths(comm, samples, both));
}

TEST_CASE("simulate_pipeline takes a workspace in the place of what has a default") {
  omnibal::one_f_one_b const schedule{.stages = 3, .micro_batches = 5};
  omnibal::stage_time<std::int64_t> const times{2, 4};
  omnibal::simulate_pipeline_workspace<> workspace;
  using omnibal::simulate_pipeline;
  CHECK(simulate_pipeline(schedule, times, workspace) == simulate_pipeline(schedule, times));
  CHECK(simulate_pipeline(schedule, times, 1, workspace) == simulate_pipeline(schedule, times, 1));
  CHECK(simulate_pipeline(schedule, times, 1, 7, workspace) ==
        simulate_pipeline(schedule, times, 1, 7));
  CHECK(&simulate_pipeline(schedule, times, workspace) == &workspace.result());
  CHECK(simulate_pipeline(schedule, times, 1, 7, {}) == simulate_pipeline(schedule, times, 1, 7));
  CHECK(simulate_pipeline(schedule, times, 1, 7, {}, workspace) ==
        simulate_pipeline(schedule, times, 1, 7));
  omnibal::simulate_pipeline_workspace<double> floating;
  CHECK(simulate_pipeline(schedule, times, 0.5, floating) ==
        simulate_pipeline(schedule, times, 0.5));
}

TEST_CASE("exchange_samples has nothing before its workspace that has a default") {
  self_communicator const comm;
  omnibal::exchange_samples_workspace workspace;
  auto const plan = omnibal::plan_exchange(comm, lengths, twice, twice);
  numbers moved;
  omnibal::exchange_samples(comm, plan, lengths, moved, workspace);
  CHECK(moved == omnibal::exchange_samples(comm, plan, lengths));
}

// A workspace for costs of another kind is none.
static_assert(std::invocable<omnibal::partition_minimax_fn, numbers, std::size_t, std::identity,
                             omnibal::partition_minimax_workspace<>&>);
static_assert(!std::invocable<omnibal::partition_minimax_fn, numbers, std::size_t, std::identity,
                              omnibal::partition_minimax_workspace<double>&>);
static_assert(std::invocable<omnibal::rebalance_fn, omnibal::grouping, numbers, numbers,
                             omnibal::rebalance_workspace<1>&>);
static_assert(!std::invocable<omnibal::rebalance_fn, omnibal::grouping, numbers, numbers,
                              omnibal::rebalance_workspace<2>&>);
static_assert(!std::invocable<omnibal::make_plan_fn, std::vector<std::uint32_t>, numbers, numbers,
                              omnibal::make_plan_workspace<2>&>);
static_assert(!std::invocable<omnibal::plan_exchange_fn, self_communicator, numbers, std::identity,
                              std::identity, omnibal::plan_exchange_workspace<2>&>);
static_assert(!std::invocable<omnibal::gather_lengths_fn, self_communicator, numbers,
                              omnibal::gather_lengths_workspace<2>&>);
static_assert(
    !std::invocable<omnibal::simulate_pipeline_fn, omnibal::one_f_one_b,
                    omnibal::stage_time<double>, omnibal::simulate_pipeline_workspace<>&>);
