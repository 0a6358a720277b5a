// SPDX-License-Identifier: Apache-2.0
// Schedules and functors of a user that misbehave: an error, never a crash.

#include "error_text.hpp"

#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <catch.hpp>

namespace {

using omnibal::operation_kind;
using omnibal::pipeline_unit;
using omnibal::stage_progress;

struct two_stages {
  std::size_t stages = 2;
  std::size_t micro_batches = 3;
  static constexpr bool splits_backward = false;

  [[nodiscard]] static std::size_t chunk_count() { return 1; }
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    return done.forward < 3 ? operation_kind::forward : operation_kind::backward;
  }
  [[nodiscard]] static pipeline_unit unit(operation_kind, std::uint32_t index) {
    return {.micro_batch = index};
  }
  static void check() {}
};

struct split : two_stages {
  static constexpr bool splits_backward = true;
};

struct forward_for_ever : two_stages {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const&) {
    return operation_kind::forward;
  }
};

struct backward_first : two_stages {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    return done.backward < 3 ? operation_kind::backward : operation_kind::forward;
  }
};

/// Stage 0 sends one micro-batch, stage 1 waits for three before it sends one back.
struct crossed : two_stages {
  [[nodiscard]] static operation_kind next(std::size_t stage, stage_progress const& done) {
    std::uint32_t const ahead = (stage == 0 ? 1u : 3u) + done.backward;
    return done.forward < ahead && done.forward < 3 ? operation_kind::forward
                                                    : operation_kind::backward;
  }
};

struct weight_unsplit : two_stages {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    if (done.forward < 3) return operation_kind::forward;
    return done.backward < 2 ? operation_kind::backward : operation_kind::weight;
  }
};

struct weight_first : split {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    if (done.forward < 3) return operation_kind::forward;
    return done.weight < 3 ? operation_kind::weight : operation_kind::backward;
  }
};

/// Runs one backward and never its weight.
struct backward_twice : split {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    if (done.forward < 3) return operation_kind::forward;
    if (done.backward < 3) return operation_kind::backward;
    return done.weight < 2 ? operation_kind::weight : operation_kind::forward;
  }
};

struct one_unit : two_stages {
  [[nodiscard]] static pipeline_unit unit(operation_kind, std::uint32_t) { return {}; }
};

/// Its last chunk is there only for those who ask twice.
struct growing : two_stages {
  [[nodiscard]] std::size_t chunk_count() const { return ++asked == 1 ? 1 : 5000; }
  [[nodiscard]] static pipeline_unit unit(operation_kind kind, std::uint32_t index) {
    return {.chunk = kind == operation_kind::backward ? 4000u : 0u, .micro_batch = index};
  }
  mutable int asked = 0;
};

/// Names the same unit at each second call.
struct repeating : two_stages {
  [[nodiscard]] pipeline_unit unit(operation_kind, std::uint32_t index) const {
    return {.micro_batch = ++asked > 1 ? 0 : index};
  }
  mutable int asked = 0;
};

struct one_weight : split {
  [[nodiscard]] static operation_kind next(std::size_t, stage_progress const& done) {
    if (done.forward < 3) return operation_kind::forward;
    return done.backward < 3 ? operation_kind::backward : operation_kind::weight;
  }
  [[nodiscard]] static pipeline_unit unit(operation_kind kind, std::uint32_t index) {
    return {.micro_batch = kind == operation_kind::weight ? 2 : index};
  }
};

struct unknown_chunk : two_stages {
  [[nodiscard]] static pipeline_unit unit(operation_kind, std::uint32_t index) {
    return {.chunk = 4, .micro_batch = index};
  }
};

struct unknown_micro_batch : two_stages {
  [[nodiscard]] static pipeline_unit unit(operation_kind, std::uint32_t index) {
    return {.micro_batch = index + 5};
  }
};

/// Every answer is another one.
struct fickle {
  std::size_t stages = 3;
  std::size_t micro_batches = 4;
  static constexpr bool splits_backward = true;
  std::uint32_t seed = 0;

  [[nodiscard]] static std::size_t chunk_count() { return 1; }
  [[nodiscard]] operation_kind next(std::size_t, stage_progress const&) const {
    return static_cast<operation_kind>(draw() % 3);
  }
  [[nodiscard]] pipeline_unit unit(operation_kind, std::uint32_t index) const {
    bool const lies = ++asked > 12;
    return {.chunk = lies ? draw() % 2 : 0, .micro_batch = lies ? draw() % 5 : index};
  }
  static void check() {}

  [[nodiscard]] std::uint32_t draw() const {
    state = state * 1664525u + 1013904223u + seed;
    return state >> 16;
  }
  mutable std::uint32_t state = 1;
  mutable int asked = 0;
};

template <class Schedule>
std::string error_of(Schedule const& schedule) {
  return test::error_text<std::invalid_argument>([&] {
    static_cast<void>(omnibal::simulate_pipeline(schedule, omnibal::stage_time{1, 2, 1}, 0, 10));
  });
}

}  // namespace

TEST_CASE("simulate_pipeline says what is wrong with a schedule") {
  CHECK(error_of(two_stages{}) == "no error");
  CHECK(error_of(two_stages{.stages = 0}) ==
        "omnibal::simulate_pipeline: schedule.stages is 0, must be positive");
  CHECK(error_of(two_stages{.micro_batches = 0}) ==
        "omnibal::simulate_pipeline: schedule.micro_batches is 0, must be positive");
  CHECK(error_of(one_unit{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 1) is chunk 0, micro-batch 0, which "
        "another "
        "index is too");
  CHECK(error_of(one_weight{}) ==
        "omnibal::simulate_pipeline: schedule.unit(weight, 1) is chunk 0, micro-batch 2, which "
        "another "
        "index is too");
  CHECK(error_of(repeating{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 1) is chunk 0, micro-batch 0, which "
        "another "
        "index is too");
  CHECK(error_of(growing{}) ==
        "omnibal::simulate_pipeline: schedule.unit(backward, 0) is chunk 4000, micro-batch 0, "
        "there are 1 "
        "chunks and 3 micro-batches");
  CHECK(error_of(unknown_chunk{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 0) is chunk 4, micro-batch 0, there "
        "are 1 "
        "chunks and 3 micro-batches");
  CHECK(error_of(unknown_micro_batch{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 0) is chunk 0, micro-batch 5, there "
        "are 1 "
        "chunks and 3 micro-batches");
  CHECK(
      error_of(weight_unsplit{}) ==
      "omnibal::simulate_pipeline: schedule.next(1) is weight, but the schedule does not split the "
      "backward pass");
  CHECK(error_of(weight_first{}) ==
        "omnibal::simulate_pipeline: schedule.next(0) is weight of micro-batch 0 in chunk 0 before "
        "its "
        "backward has run");
  CHECK(error_of(forward_for_ever{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 3) is chunk 0, micro-batch 3, there "
        "are 1 "
        "chunks and 3 micro-batches");
  CHECK(error_of(backward_twice{}) ==
        "omnibal::simulate_pipeline: schedule.unit(forward, 3) is chunk 0, micro-batch 3, there "
        "are 1 "
        "chunks and 3 micro-batches");
}

TEST_CASE("simulate_pipeline says which stage waits for what") {
  CHECK(error_of(backward_first{}) ==
        "omnibal::simulate_pipeline: the schedule does not end, its stages wait for each other: "
        "stage 0 "
        "waits for the input of backward of micro-batch 0, stage 1 waits for the input of backward "
        "of micro-batch 0");
  CHECK(error_of(crossed{}) ==
        "omnibal::simulate_pipeline: the schedule does not end, its stages wait for each other: "
        "stage 0 "
        "waits for the input of backward of micro-batch 0, stage 1 waits for the input of forward "
        "of micro-batch 1");
}

TEST_CASE("simulate_pipeline survives a schedule and functors that change their answers") {
  for (std::uint32_t seed = 0; seed != 2000; ++seed) {
    fickle schedule;
    schedule.seed = seed;
    auto const time = [&](std::size_t, std::size_t) {
      return omnibal::stage_time{schedule.draw() % 9, schedule.draw() % 9, schedule.draw() % 9};
    };
    auto const bytes = [&](std::size_t, std::size_t) {
      return static_cast<std::int64_t>(schedule.draw()) << (schedule.draw() % 40);
    };
    try {
      auto const result = omnibal::simulate_pipeline(schedule, time, 0, bytes);
      CHECK(result.makespan >= 0);
    } catch (std::exception const& error) {
      CHECK(std::string(error.what()).find("omnibal::simulate_pipeline: ") == 0);
    }
  }
}
