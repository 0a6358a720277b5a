// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::estimate_makespan;
using omnibal::gpipe;
using omnibal::interleaved_1f1b;
using omnibal::one_f_one_b;
using omnibal::operation_kind;
using omnibal::simulate_pipeline;
using omnibal::stage_time;
using omnibal::transfer_time;
using omnibal::zb_h1;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Error, class Call>
void check_refused(Call const& call, std::string const& text) {
  std::string const error = test::error_text<Error>(call);
  INFO(error);
  bool const is_ours = error.find("omnibal::") == 0;
  CHECK(is_ours);
  bool const names_argument = error.find(text) != std::string::npos;
  CHECK(names_argument);
}

/// Its second stage runs backward what it has not run forward.
struct backward_first {
  std::size_t stages = 2;
  std::size_t micro_batches = 2;
  static constexpr bool splits_backward = false;

  [[nodiscard]] static std::size_t chunk_count() { return 1; }
  [[nodiscard]] operation_kind next(std::size_t stage, omnibal::stage_progress const& done) const {
    bool const goes_forward = stage == 0 ? done.forward < 2 : done.backward == 1;
    return goes_forward ? operation_kind::forward : operation_kind::backward;
  }
  [[nodiscard]] static omnibal::pipeline_unit unit(operation_kind, std::uint32_t index) {
    return {.micro_batch = index};
  }
  void check() const {}
};

}  // namespace

TEST_CASE("simulate_pipeline refuses schedules that cannot be") {
  stage_time<> const time{1, 2};
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(gpipe{0, 3}, time);
      },
      "gpipe: stages is 0");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(one_f_one_b{3, 0}, time);
      },
      "one_f_one_b: micro_batches is 0");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(zb_h1{3, 0}, time);
      },
      "zb_h1: micro_batches is 0");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(interleaved_1f1b{4, 4, 0}, time);
      },
      "interleaved_1f1b: chunks is 0");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(interleaved_1f1b{4, 6, 2, 3}, time);
      },
      "interleaved_1f1b: group is 3, must be at least stages, which is 4");
  check_refused<std::length_error>(
      [&] {
        return simulate_pipeline(gpipe{1, std::size_t{1} << 32}, time);
      },
      "gpipe: micro_batches is 4294967296, must be at most 4294967295");
  check_refused<std::length_error>(
      [&] {
        return simulate_pipeline(interleaved_1f1b{1, 65536, 65536}, time);
      },
      "simulate_pipeline: schedule.micro_batches * schedule.chunk_count() is 4294967296, must be "
      "at most");
}

TEST_CASE("simulate_pipeline refuses schedules whose operations wait for each other") {
  check_refused<std::invalid_argument>(
      [] {
        return simulate_pipeline(backward_first{}, stage_time{1, 2});
      },
      "the schedule does not end, its stages wait for each other: stage 0 waits for the input of "
      "backward of micro-batch 0");
}

TEST_CASE("simulate_pipeline refuses ranges of another size") {
  one_f_one_b const schedule{3, 4};
  check_refused<std::invalid_argument>(
      [&] { return simulate_pipeline(schedule, std::vector<stage_time<>>(4)); },
      "simulate_pipeline: times has 4 values for 3 virtual stages");
  check_refused<std::invalid_argument>(
      [&] {
        std::vector<std::vector<stage_time<>>> times(3, std::vector<stage_time<>>(4));
        times[1].pop_back();
        return simulate_pipeline(schedule, times);
      },
      "times[1] has 3 values for 4 micro-batches");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 2}, std::vector<int>(3));
      },
      "transfers has 3 values for 2 cuts");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(interleaved_1f1b{2, 4, 3}, stage_time{1, 2}, 0,
                                 std::vector<int>(2));
      },
      "bytes has 2 values for 6 virtual stages");
}

TEST_CASE("simulate_pipeline refuses numbers that are negative or not finite") {
  zb_h1 const schedule{2, 3};
  auto const times = [&](auto forward, auto backward, auto weight) {
    return [=](std::size_t stage, std::size_t micro_batch) {
      bool const is_bad = stage == 1 && micro_batch == 2;
      using time_type = omnibal::stage_time<decltype(forward)>;
      return is_bad ? time_type{forward, backward, weight} : time_type{1, 1, 1};
    };
  };
  check_refused<std::invalid_argument>([&] { return simulate_pipeline(schedule, times(-3, 1, 1)); },
                                       "forward time of stage 1, micro-batch 2 is -3");
  check_refused<std::invalid_argument>([&] { return simulate_pipeline(schedule, times(1, -4, 1)); },
                                       "backward time of stage 1, micro-batch 2 is -4");
  check_refused<std::invalid_argument>([&] { return simulate_pipeline(schedule, times(1, 1, -5)); },
                                       "weight time of stage 1, micro-batch 2 is -5");
  check_refused<std::invalid_argument>(
      [&] { return simulate_pipeline(schedule, times(not_a_number, 1.0, 1.0)); }, "nan");
  check_refused<std::invalid_argument>(
      [&] { return simulate_pipeline(schedule, times(1.0, infinity, 1.0)); }, "is inf");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, transfer_time{-1, 1});
      },
      "forward transfer of stage 0, micro-batch 0 is -1");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, transfer_time{1, -2});
      },
      "backward transfer of stage 0, micro-batch 0 is -2");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, -0.5);
      },
      "is -0.5");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, 0, -7);
      },
      "activation bytes of stage 0, micro-batch 0 is -7");
  check_refused<std::invalid_argument>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, 0, std::uint64_t{1} << 63);
      },
      "9223372036854775808");
}

TEST_CASE("simulate_pipeline refuses sums that leave their type") {
  one_f_one_b const schedule{2, 3};
  check_refused<std::overflow_error>(
      [&] {
        return simulate_pipeline(schedule, stage_time{largest / 4, largest / 4});
      },
      "the makespan");
  check_refused<std::overflow_error>(
      [&] {
        return simulate_pipeline(schedule, stage_time<>{1, largest, 1});
      },
      "a backward time");
  check_refused<std::overflow_error>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, largest);
      },
      "the makespan");
  check_refused<std::overflow_error>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1e308, 1e308});
      },
      "the makespan");
  check_refused<std::overflow_error>(
      [&] {
        return simulate_pipeline(schedule, stage_time{1, 1}, 0, largest);
      },
      "the sum of activation bytes");
  CHECK(simulate_pipeline(one_f_one_b{1, 3}, stage_time{largest / 6, largest / 6}, 0, largest)
            .makespan == largest / 6 * 6);
}

TEST_CASE("estimate_makespan refuses what has no makespan") {
  std::vector<std::int64_t> const times{3, 4};
  check_refused<std::invalid_argument>([&] { return estimate_makespan(times, 0); },
                                       "estimate_makespan: batch_count is 0");
  check_refused<std::invalid_argument>([] { return estimate_makespan(std::vector<int>{}, 3); },
                                       "stages is 0");
  check_refused<std::invalid_argument>(
      [] {
        return estimate_makespan(std::vector<int>{1, -2}, 3);
      },
      "time[1] is -2");
  check_refused<std::invalid_argument>(
      [] { return estimate_makespan(std::vector<double>{not_a_number}, 3); }, "time[0]");
  check_refused<std::invalid_argument>(
      [] { return estimate_makespan(std::vector<std::uint64_t>{std::uint64_t{1} << 63}, 3); },
      "time[0]");
  check_refused<std::overflow_error>(
      [] {
        return estimate_makespan(std::vector<std::int64_t>{largest, 1}, 3);
      },
      "the makespan");
  check_refused<std::overflow_error>(
      [] { return estimate_makespan(std::vector<std::int64_t>{largest / 2}, 4); }, "the makespan");
}
