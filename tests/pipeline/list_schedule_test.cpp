// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "event_reference.hpp"
#include "random_pipeline.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/order_micro_batches.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::chunk_layout;
using omnibal::chunk_placement;
using omnibal::list_objective;
using omnibal::list_schedule;
using omnibal::listed_operation;
using omnibal::listed_schedule;
using omnibal::operation_kind;
using omnibal::operation_lists;
using omnibal::simulate_pipeline;
using omnibal::stage_time;
using test::below;
using test::list_oracle;
using test::one_to;
using test::random_layout;
using test::random_pipeline;
using test::table;

}  // namespace

TEST_CASE("chunk_layout places each virtual stage once") {
  omnibal::rng::engine random(3);
  for (int round = 0; round != 200; ++round) {
    chunk_layout const layout = random_layout(random);
    for (std::uint32_t m = 0; m != layout.micro_batches; ++m) {
      std::vector<int> seen(layout.stages * layout.chunks, 0);
      for (std::size_t s = 0; s != layout.stages; ++s) {
        for (std::uint32_t chunk = 0; chunk != layout.chunks; ++chunk) {
          std::size_t const v = layout.virtual_stage(s, {chunk, m});
          REQUIRE(v < seen.size());
          ++seen[v];
          CHECK(layout.stage_of(v, m) == s);
        }
      }
      CHECK(std::ranges::count(seen, 1) == static_cast<std::ptrdiff_t>(seen.size()));
    }
  }
  chunk_layout const v{4, 2, 2, chunk_placement::v_shape};
  CHECK(v.virtual_stage(0, {1, 0}) == 7);
  CHECK(v.virtual_stage(3, {1, 0}) == 4);
  chunk_layout const both{4, 2, 1, chunk_placement::bidirectional};
  CHECK(both.virtual_stage(0, {0, 0}) == 0);
  CHECK(both.virtual_stage(0, {0, 1}) == 3);
}

TEST_CASE("simulate_pipeline follows the placement of the chunks") {
  omnibal::rng::engine random(5);
  for (int round = 0; round != 300; ++round) {
    random_pipeline const pipeline(random, random_layout(random));
    auto const found = list_schedule(pipeline.layout, pipeline.times, pipeline.transfers,
                                     pipeline.bytes, pipeline.memory);
    test::pipeline_costs<std::int64_t> const costs{
        .time =
            [&](operation_kind kind, std::size_t v, std::size_t m) {
              auto const& time = pipeline.times[v][m];
              if (kind == operation_kind::forward) return time.forward;
              return kind == operation_kind::backward ? time.backward : time.weight;
            },
        .transfer =
            [&](operation_kind kind, std::size_t cut, std::size_t m) {
              auto const& transfer = pipeline.transfers[cut][m];
              return kind == operation_kind::forward ? transfer.forward : transfer.backward;
            },
        .bytes = [&](std::size_t v, std::size_t m) { return pipeline.bytes[v][m]; }};
    auto const expected = test::run_events(found.schedule, costs);
    auto const result = pipeline.simulated(found.schedule);
    CHECK(result.makespan == expected.makespan);
    CHECK(result.peak_bytes == expected.peak_bytes);
    bool const same_timeline = result.timeline == expected.timeline;
    CHECK(same_timeline);
  }
}

TEST_CASE("list_schedule stays within the memory and is never longer than known schedules") {
  omnibal::rng::engine random(7);
  for (int round = 0; round != 600; ++round) {
    random_pipeline const pipeline(random, random_layout(random));
    chunk_layout const& layout = pipeline.layout;
    auto const objective = static_cast<list_objective>(round % 2);
    auto const found = list_schedule(layout, pipeline.times, pipeline.transfers, pipeline.bytes,
                                     pipeline.memory, {.objective = objective});
    auto const result = pipeline.simulated(found.schedule);
    INFO(layout.stages << " stages, " << layout.micro_batches << " micro-batches");
    CHECK(result.makespan == found.makespan);
    CHECK(pipeline.fits(result.peak_bytes));
    bool const is_step = objective == list_objective::makespan;
    CHECK(found.lower_bound <= (is_step ? found.makespan : found.longest_stage));
    auto const check_against = [&](auto const& schedule) {
      auto const known = pipeline.simulated(schedule);
      if (is_step && pipeline.fits(known.peak_bytes)) CHECK(found.makespan <= known.makespan);
    };
    if (layout.placement == chunk_placement::looped) {
      check_against(omnibal::interleaved_1f1b{layout.stages, layout.micro_batches, layout.chunks});
      if (layout.chunks == 1) {
        check_against(omnibal::one_f_one_b{layout.stages, layout.micro_batches});
        check_against(omnibal::zb_h1{layout.stages, layout.micro_batches});
      }
    }
    if (layout.placement == chunk_placement::v_shape && layout.chunks == 2) {
      check_against(omnibal::zb_v(layout.stages, layout.micro_batches));
    }

    auto const whole = list_schedule(layout, pipeline.unsplit_times(), pipeline.transfers,
                                     pipeline.bytes, pipeline.memory, {.objective = objective});
    auto const simulated = simulate_pipeline(whole.schedule, pipeline.unsplit_times(),
                                             pipeline.transfers, pipeline.bytes);
    CHECK(simulated.makespan == whole.makespan);
    CHECK(pipeline.fits(simulated.peak_bytes));
    CHECK(whole.lower_bound <= (is_step ? whole.makespan : whole.longest_stage));
  }
}

TEST_CASE("list_schedule is never longer than ZB-H1 in the memory of 1F1B") {
  omnibal::rng::engine random(5);
  for (int round = 0; round != 300; ++round) {
    std::size_t const stages = 2 + omnibal::rng::below(random, 4);
    std::size_t const micro_batches = one_to(random, 9);
    std::uint64_t const range = below(random, 2) == 1 ? 4 : 40;
    table<stage_time<>> times(stages);
    for (auto& stage : times) {
      for (std::size_t m = 0; m != micro_batches; ++m) {
        auto& time = stage.emplace_back();
        time.forward = below(random, range);
        time.backward = below(random, range);
        time.weight = below(random, range);
      }
    }
    std::vector<std::int64_t> const memory(stages, static_cast<std::int64_t>(stages));
    auto const found =
        list_schedule({stages, micro_batches}, times, std::int64_t{1}, std::int64_t{1}, memory);
    auto const known =
        simulate_pipeline(omnibal::zb_h1{stages, micro_batches}, times, std::int64_t{1});
    CHECK(found.makespan <= known.makespan);
  }
}

TEST_CASE("most lists of small pipelines are optimal") {
  // Their times differ by any factor. The certificate compares the bound with all lists.
  omnibal::rng::engine random(11);
  int best = 0;
  for (int round = 0; round != 60; ++round) {
    auto const objective = static_cast<list_objective>(round % 2);
    chunk_layout const layout{.stages = 2, .micro_batches = 2};
    random_pipeline const pipeline(random, layout);
    auto const found = list_schedule(layout, pipeline.times, pipeline.transfers, pipeline.bytes,
                                     pipeline.memory, {.objective = objective});
    std::int64_t const time =
        objective == list_objective::makespan ? found.makespan : found.longest_stage;
    std::int64_t const least = list_oracle(pipeline, objective, true).least(time + 1);
    REQUIRE(found.lower_bound <= least);
    REQUIRE(least <= time);
    best += time == least ? 1 : 0;
  }
  CHECK(best > 50);
}

TEST_CASE("the bound is the optimum of equal micro-batches in one chunk without transfers") {
  // (stages - 1) * (forward + backward - weight) of idle time: the last stage waits for its first
  // input, and at the end for gradients that return to the first stage.
  for (auto const& [stages, micro_batches] :
       std::vector<std::pair<std::size_t, std::size_t>>{{3, 6}, {4, 8}, {8, 16}, {8, 32}}) {
    std::vector<std::int64_t> const memory(stages, static_cast<std::int64_t>(stages));
    auto const found = list_schedule({stages, micro_batches}, stage_time<>{20, 24, 16},
                                     std::int64_t{0}, std::int64_t{1}, memory);
    CHECK(found.makespan == static_cast<std::int64_t>(60 * micro_batches + 28 * (stages - 1)));
    CHECK(found.lower_bound == found.makespan);
  }
}

TEST_CASE("list_schedule runs the micro-batches of a chunk in the same order on all stages") {
  omnibal::rng::engine random(17);
  int shorter = 0;
  for (int round = 0; round != 200; ++round) {
    random_pipeline const pipeline(random, random_layout(random));
    chunk_layout const& layout = pipeline.layout;
    auto const objective = static_cast<list_objective>(round % 2);
    auto const listed = [&](omnibal::list_order order) {
      return list_schedule(layout, pipeline.times, pipeline.transfers, pipeline.bytes,
                           pipeline.memory, {.objective = objective, .micro_batches = order});
    };
    auto const given = listed(omnibal::list_order::given);
    auto const searched = listed(omnibal::list_order::searched);
    bool const is_step = objective == list_objective::makespan;
    std::int64_t const gain =
        is_step ? given.makespan - searched.makespan : given.longest_stage - searched.longest_stage;
    CHECK(gain >= 0);
    shorter += gain > 0 ? 1 : 0;

    // The micro-batches of a virtual stage, in the order of its passes of a kind.
    auto const orders = [&](listed_schedule<> const& schedule, operation_kind kind) {
      table<std::uint32_t> result(layout.stages * layout.chunks);
      for (std::size_t s = 0; s != layout.stages; ++s) {
        for (listed_operation const& one : schedule.operations(s)) {
          std::size_t const v = layout.virtual_stage(s, {one.chunk, one.micro_batch});
          if (one.kind == kind) result[v].push_back(one.micro_batch);
        }
      }
      return result;
    };
    // Micro-batches of different directions pass a virtual stage on different stages.
    auto const by_direction = [&](std::vector<std::uint32_t> order) {
      if (layout.placement == chunk_placement::bidirectional) {
        std::stable_partition(order.begin(), order.end(),
                              [](std::uint32_t m) { return m % 2 == 0; });
      }
      return order;
    };
    for (auto const kind : {operation_kind::forward, operation_kind::backward}) {
      for (auto const& order : orders(given.schedule, kind)) {
        auto ascending = order;
        std::ranges::sort(ascending);
        CHECK(by_direction(order) == by_direction(ascending));
      }
      auto const first = by_direction(orders(searched.schedule, operation_kind::forward)[0]);
      for (auto const& order : orders(searched.schedule, kind)) {
        CHECK(by_direction(order) == first);
      }
    }
  }
  CHECK(shorter > 40);
}

TEST_CASE("the exchange of micro-batches claims the times and the memory of its lists") {
  omnibal::rng::engine random(19);
  int improved = 0;
  for (int round = 0; round != 200; ++round) {
    random_pipeline const pipeline(random, random_layout(random));
    auto const problem = omnibal::detail::make_list_problem<std::int64_t>(
        "test", pipeline.layout, pipeline.times, pipeline.transfers, pipeline.bytes,
        pipeline.memory);
    auto const objective = static_cast<list_objective>(round % 2);
    omnibal::detail::weight_filler<std::int64_t> filler(problem, objective);
    auto const passes = omnibal::detail::pass_order<std::int64_t>(problem, problem.times, {}).run();
    operation_lists given;
    static_cast<void>(filler.run(passes, 0, given));
    operation_lists lists = given;
    omnibal::detail::micro_batch_exchange<std::int64_t> search("test", problem, objective);
    omnibal::rng::engine draws(1);
    auto const times = search.improve(lists, 0, omnibal::detail::search_budget(50), draws);
    if (!times) {
      CHECK(lists == given);
      continue;
    }
    ++improved;
    listed_schedule<> const schedule(pipeline.layout, lists);
    auto const measured = omnibal::detail::replay(problem, schedule);
    CHECK(measured.makespan == times->makespan);
    CHECK(measured.longest_stage == times->longest_stage);
    CHECK(omnibal::detail::fits(problem, schedule));
    listed_schedule<> const before(pipeline.layout, given);
    CHECK(measured.of(objective) < omnibal::detail::replay(problem, before).of(objective));
  }
  CHECK(improved > 40);
}

TEST_CASE("zb_v has no gaps after the first operation if all passes take the same time") {
  for (auto const& [stages, micro_batches] : std::vector<std::pair<std::size_t, std::size_t>>{
           {2, 2}, {4, 8}, {8, 8}, {8, 16}, {16, 32}}) {
    auto const schedule = omnibal::zb_v(stages, micro_batches);
    auto const result = simulate_pipeline(schedule, stage_time<>{1, 1, 1});
    CHECK(result.makespan == static_cast<std::int64_t>(6 * micro_batches + stages - 1));
    auto const peaks = omnibal::peak_in_flight(schedule);
    CHECK(std::ranges::max(peaks) <= static_cast<std::int64_t>(2 * stages));
  }
  // 1F1B with whole layers in one chunk takes (stages - 1) * 6 longer than its work.
  for (std::size_t const stages : {4U, 8U, 16U}) {
    std::size_t const micro_batches = 2 * stages;
    auto const work = static_cast<std::int64_t>(6 * micro_batches);
    auto const waiting = static_cast<std::int64_t>(6 * (stages - 1));
    auto const half = omnibal::v_half(stages, micro_batches);
    CHECK(simulate_pipeline(half, stage_time<>{1, 1, 1}).makespan < work + waiting * 3 / 5);
    CHECK(std::ranges::max(omnibal::peak_in_flight(half)) <= static_cast<std::int64_t>(stages + 2));
    auto const least = omnibal::v_min(stages, micro_batches);
    CHECK(simulate_pipeline(least, stage_time<>{1, 1, 1}).makespan < work + waiting * 3 / 4);
    CHECK(std::ranges::max(omnibal::peak_in_flight(least)) <=
          static_cast<std::int64_t>((2 * stages + 2) / 3 + 2));
  }
}

TEST_CASE("list_schedule is within a few percent of its bound") {
  // Times of every pass between 83 and 117 %; memory of ZB-V for chunks in a V, of two pipelines
  // for one.
  omnibal::rng::engine random(13);
  for (std::size_t const chunks : {std::size_t{1}, std::size_t{2}}) {
    chunk_layout const layout{8, 32, chunks,
                              chunks == 1 ? chunk_placement::looped : chunk_placement::v_shape};
    table<stage_time<>> times(8 * chunks);
    for (auto& stage : times) {
      for (std::size_t m = 0; m != 32; ++m) {
        std::int64_t const percent = 83 + below(random, 35);
        stage.push_back({percent * 100, percent * 120, percent * 80});
      }
    }
    std::vector<std::int64_t> const memory(8, 16);
    auto const found = list_schedule(layout, times, std::int64_t{500}, std::int64_t{1}, memory);
    CHECK(static_cast<double>(found.makespan) < 1.01 * static_cast<double>(found.lower_bound));
  }
}

TEST_CASE("listed_schedule runs the lists of other schedules as they do") {
  omnibal::interleaved_1f1b const schedule{3, 6, 2};
  auto const lists = omnibal::detail::lists_of<false>(schedule);
  listed_schedule<false> const listed({3, 6, 2}, lists);
  auto const options = omnibal::simulate_pipeline_options{omnibal::timeline_policy::recorded};
  auto const times = stage_time<>{3, 5};
  auto const first = simulate_pipeline(schedule, times, std::int64_t{1}, std::int64_t{1}, options);
  auto const second = simulate_pipeline(listed, times, std::int64_t{1}, std::int64_t{1}, options);
  bool const is_same = first == second;
  CHECK(is_same);
  CHECK(omnibal::order_micro_batches(listed, times).makespan ==
        omnibal::order_micro_batches(schedule, times).makespan);
}

TEST_CASE("listed_schedule and list_schedule refuse what no pipeline can run") {
  using test::error_text;
  auto const f = [](std::uint32_t m) { return listed_operation{operation_kind::forward, 0, m}; };
  auto const b = [](std::uint32_t m) { return listed_operation{operation_kind::backward, 0, m}; };
  chunk_layout const layout{1, 2};
  auto const listed = [&](std::vector<listed_operation> list) {
    return error_text<std::invalid_argument>(
        [&] { listed_schedule<false>(layout, {std::move(list)}); });
  };
  CHECK(listed({f(0), f(1), b(0)}) ==
        "omnibal::listed_schedule: lists[0] has 3 values for 4 operations");
  CHECK(listed({f(0), f(0), b(0), b(1)}) ==
        "omnibal::listed_schedule: lists[0][1], forward of micro-batch 0 in chunk 0, is listed "
        "twice");
  CHECK(listed({f(0), b(1), f(1), b(0)}) ==
        "omnibal::listed_schedule: lists[0][1], backward of micro-batch 1 in chunk 0, has no "
        "operation before it");
  CHECK(listed({f(0), f(2)}) ==
        "omnibal::listed_schedule: lists[0][1], forward of micro-batch 2 in chunk 0, does not "
        "exist");
  CHECK(error_text<std::invalid_argument>([&] {
          listed_schedule<false>({2, 1}, {{f(0), b(0)}});
        }) == "omnibal::listed_schedule: lists has 1 values for 2 stages");

  auto const scheduled = [](chunk_layout const& given, std::int64_t bytes,
                            std::vector<std::int64_t> const& memory) {
    return error_text<std::invalid_argument>([&] {
      static_cast<void>(
          list_schedule(given, stage_time<>{1, 1, 1}, std::int64_t{0}, bytes, memory));
    });
  };
  CHECK(scheduled({2, 2, 2, chunk_placement::bidirectional}, 1, {}) ==
        "omnibal::list_schedule: chunks is 2, must be 1 if the placement is bidirectional");
  CHECK(scheduled({2, 2, 2}, 3, {6, 5}) ==
        "omnibal::list_schedule: memory[1] is 5, must be at least 6, which micro-batch 0 keeps");
  CHECK(scheduled({2, 2}, 1, {6}) == "omnibal::list_schedule: memory has 1 values for 2 stages");
  CHECK(scheduled({0, 2}, 1, {}).find("stages") != std::string::npos);
  CHECK(error_text<std::overflow_error>([] {
          static_cast<void>(list_schedule(
              {2, 2}, stage_time<>{std::numeric_limits<std::int64_t>::max() / 3, 0, 0}));
        }).find("the sum of all times") != std::string::npos);
  listed_schedule<> const both =
      list_schedule({2, 2, 1, chunk_placement::bidirectional}, stage_time<>{1, 1, 1}).schedule;
  CHECK(error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::order_micro_batches(both, stage_time<>{1, 1, 1}));
        }) ==
        "omnibal::order_micro_batches: micro-batches 0 and 1 pass stage 0 as different virtual "
        "stages, which is not supported");
}
