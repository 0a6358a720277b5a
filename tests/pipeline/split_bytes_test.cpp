// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::chunk_layout;
using omnibal::chunk_placement;
using omnibal::list_schedule;
using omnibal::operation_kind;
using omnibal::simulate_pipeline;
using omnibal::split_bytes;
using omnibal::stage_time;

template <class Value>
using table = std::vector<std::vector<Value>>;

table<split_bytes> random_bytes(omnibal::rng::engine& random, std::size_t stages,
                                std::size_t batches) {
  table<split_bytes> result(stages);
  for (auto& stage : result) {
    for (std::size_t m = 0; m != batches; ++m) {
      auto const all = static_cast<std::int64_t>(omnibal::rng::below(random, 20));
      auto const weight = static_cast<std::int64_t>(
          omnibal::rng::below(random, static_cast<std::uint64_t>(all) + 1));
      stage.push_back({all, weight});
    }
  }
  return result;
}

/// Counts the bytes of each stage from operation to operation.
template <class Schedule>
std::vector<std::int64_t> counted_peaks(Schedule const& schedule, table<split_bytes> const& bytes) {
  std::vector<std::int64_t> peaks;
  for (std::size_t s = 0; s != schedule.stages; ++s) {
    std::int64_t now = 0;
    std::int64_t most = 0;
    omnibal::detail::for_each_operation(schedule, s, [&](operation_kind kind, auto const& unit) {
      auto const& [all, weight] =
          bytes[omnibal::virtual_stage_of(schedule, s, unit)][unit.micro_batch];
      if (kind == operation_kind::forward) now += all;
      if (kind == operation_kind::backward) now -= Schedule::splits_backward ? all - weight : all;
      if (kind == operation_kind::weight) now -= weight;
      most = std::max(most, now);
    });
    CHECK(now == 0);
    peaks.push_back(most);
  }
  return peaks;
}

}  // namespace

// The bytes of a stage depend on the order of its operations alone.
TEST_CASE("simulate_pipeline frees a part of the bytes after the gradients of the inputs") {
  omnibal::rng::engine random(1);
  for (int round = 0; round != 100; ++round) {
    std::size_t const stages = 1 + omnibal::rng::below(random, 5);
    std::size_t const batches = 2 * stages + omnibal::rng::below(random, 9);
    auto const check = [&](auto const& schedule) {
      auto const bytes = random_bytes(random, stages * schedule.chunk_count(), batches);
      auto const result =
          simulate_pipeline(schedule, stage_time<>{10, 12, 8}, std::int64_t{1}, bytes);
      CHECK(result.peak_bytes == counted_peaks(schedule, bytes));
    };
    check(omnibal::zb_h1{stages, batches});
    check(omnibal::zb_v(stages, batches));
    check(omnibal::dual_pipe_v(stages, batches));
    check(omnibal::one_f_one_b{stages, batches});
  }
}

// A whole backward pass frees all bytes, and equal parts are the same as one number.
TEST_CASE("split_bytes of equal parts are one number") {
  omnibal::zb_h1 const schedule{4, 9};
  auto const peaks = [&](auto const& bytes) {
    return simulate_pipeline(schedule, stage_time<>{3, 4, 2}, std::int64_t{0}, bytes).peak_bytes;
  };
  CHECK(peaks(split_bytes{10, 10}) == peaks(std::int64_t{10}));
  // Stage 3 postpones the weights of three micro-batches, and has one in flight.
  CHECK(peaks(split_bytes{10, 10}) == std::vector<std::int64_t>{40, 40, 40, 40});
  CHECK(peaks(split_bytes{10, 4}) == std::vector<std::int64_t>{40, 34, 28, 22});
  CHECK(peaks(split_bytes{10, 0}) == std::vector<std::int64_t>{40, 30, 20, 10});
}

// A schedule by list_schedule never exceeds the memory, and it uses what is freed early.
TEST_CASE("list_schedule uses bytes that are freed early") {
  omnibal::rng::engine random(2);
  for (int round = 0; round != 100; ++round) {
    chunk_layout layout{1 + omnibal::rng::below(random, 4), 1 + omnibal::rng::below(random, 8)};
    layout.placement = static_cast<chunk_placement>(omnibal::rng::below(random, 3));
    if (layout.placement != chunk_placement::bidirectional) {
      layout.chunks = 1 + omnibal::rng::below(random, 2);
    }
    auto const bytes = random_bytes(random, layout.stages * layout.chunks, layout.micro_batches);
    std::vector<std::int64_t> memory(layout.stages, 0);
    for (std::size_t s = 0; s != layout.stages; ++s) {
      for (std::uint32_t m = 0; m != layout.micro_batches; ++m) {
        std::int64_t needed = 0;
        for (std::uint32_t c = 0; c != layout.chunks; ++c) {
          needed += bytes[layout.virtual_stage(s, {c, m})][m].all;
        }
        memory[s] = std::max(memory[s], needed);
      }
      memory[s] += static_cast<std::int64_t>(omnibal::rng::below(random, 20));
    }
    auto const found =
        list_schedule(layout, stage_time<>{10, 12, 8}, std::int64_t{1}, bytes, memory);
    auto const peaks = counted_peaks(found.schedule, bytes);
    for (std::size_t s = 0; s != layout.stages; ++s) CHECK(peaks[s] <= memory[s]);
    CHECK(found.lower_bound <= found.makespan);
  }
  auto const makespan = [](auto const& bytes) {
    std::vector<std::int64_t> const memory(4, 22);
    return list_schedule({4, 16}, stage_time<>{10, 12, 8}, std::int64_t{1}, bytes, memory).makespan;
  };
  CHECK(makespan(split_bytes{10, 10}) == makespan(std::int64_t{10}));
  CHECK(makespan(split_bytes{10, 2}) < makespan(std::int64_t{10}));
}

// Bytes that no unit can have are named.
TEST_CASE("split_bytes that cannot be are refused") {
  auto const error = [](split_bytes const& bytes) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(
          simulate_pipeline(omnibal::zb_h1{2, 2}, stage_time<>{1, 1, 1}, std::int64_t{0}, bytes));
    });
  };
  CHECK(error({3, 4}) ==
        "omnibal::simulate_pipeline: activation bytes for the weights of stage 0, micro-batch 0 is "
        "4, must be at most all activation bytes, 3");
  CHECK(error({3, -1}).find("activation bytes for the weights of stage 0, micro-batch 0 is -1") !=
        std::string::npos);
  CHECK(error({-3, -3}).find("activation bytes of stage 0, micro-batch 0 is -3") !=
        std::string::npos);
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(
              list_schedule({2, 2}, stage_time<>{1, 1, 1}, std::int64_t{0}, split_bytes{1, 2}));
        }).find("must be at most all activation bytes, 1") != std::string::npos);
}
