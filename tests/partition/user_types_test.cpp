// SPDX-License-Identifier: Apache-2.0
// A trainer's own layers, cost and memory rule go through every function as they are.

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

/// What a profiler wrote down.
struct measured_layer {
  std::string name;
  float forward_ms;
  float backward_ms;
  std::uint64_t weight_bytes;
  std::uint64_t kept_bytes;
  unsigned sent_kilobytes;

  [[nodiscard]] float milliseconds() const { return forward_ms + backward_ms; }
};

std::vector<measured_layer> vision_language_model() {
  std::vector<measured_layer> layers{{"patch embedding", 1, 0, 10, 40, 90}};
  for (int i = 0; i != 11; ++i) layers.push_back({"vision", 4, 8, 120, 300, 90});
  layers.push_back({"projector", 1, 2, 110, 50, 40});
  for (int i = 0; i != 12; ++i) layers.push_back({"language", 7, 14, 390, 120, 40});
  layers.push_back({"head", 3, 6, 200, 20, 0});
  return layers;
}

/// The trainer's own idea of a stage: compute, plus what crosses its cuts, on devices that differ.
class trainer {
 public:
  explicit trainer(std::vector<measured_layer> const& layers) : layers_(layers) {}

  [[nodiscard]] double stage_ms(std::size_t stage, std::size_t first, std::size_t last) const {
    double sum = 0;
    for (std::size_t l = first; l != last; ++l) {
      sum += static_cast<double>(layers_[l].milliseconds());
    }
    if (first != 0) sum += 0.01 * layers_[first - 1].sent_kilobytes;
    return stage == 0 ? 1.25 * sum : sum;
  }
  [[nodiscard]] std::uint64_t stage_bytes(std::size_t stage, std::size_t first,
                                          std::size_t last) const {
    std::uint64_t bytes = 0;
    for (std::size_t l = first; l != last; ++l) {
      std::size_t const in_flight = 4 - stage;
      bytes += 8 * layers_[l].weight_bytes + in_flight * layers_[l].kept_bytes;
    }
    return bytes;
  }
  [[nodiscard]] bool has_room(std::size_t stage, std::size_t first, std::size_t last) const {
    return stage_bytes(stage, first, last) <= 26'000;
  }

 private:
  std::vector<measured_layer> const& layers_;
};

}  // namespace

TEST_CASE("a trainer's layers go through partition_minimax and the greedy walk") {
  auto const layers = vision_language_model();
  auto const by_method = omnibal::partition_minimax(layers, 4, &measured_layer::milliseconds);
  auto const by_lambda = omnibal::partition_minimax(
      layers, 4, [](measured_layer const& l) { return l.forward_ms + l.backward_ms; });
  CHECK(by_method == by_lambda);
  CHECK(by_method.boundaries.back() == layers.size());
  omnibal::partition_minimax_workspace<float> workspace;
  CHECK(omnibal::partition_minimax(layers, 4, &measured_layer::milliseconds, {}, workspace) ==
        by_method);
  std::vector<float> const speeds{1.0f, 1.0f, 0.5f, 1.0f};
  CHECK(omnibal::partition_minimax(layers, speeds, &measured_layer::milliseconds).bottleneck >
        by_method.bottleneck);
}

TEST_CASE("a trainer's cost and memory rule go through the general partitions") {
  auto const layers = vision_language_model();
  trainer const own(layers);
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.stage_ms(stage, first, last);
  };
  auto const has_room = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.has_room(stage, first, last);
  };
  auto const plain = omnibal::partition_layers(layers, 4, cost, has_room);
  auto const quick = omnibal::partition_layers(layers, 4, cost, has_room,
                                               {.base = {layers, &measured_layer::milliseconds}});
  CHECK(quick == plain);
  CHECK(plain.status == omnibal::solve_status::solved);
  for (std::size_t s = 0; s != 4; ++s) {
    CHECK(own.has_room(s, plain.boundaries[s], plain.boundaries[s + 1]));
  }
  CHECK(omnibal::partition_layers(layers, 4, cost).bottleneck <= plain.bottleneck);

  auto const step = omnibal::partition_throughput(
      layers, 4, cost, has_room,
      {.micro_batches = 16,
       .base = {layers, &measured_layer::milliseconds},
       .constraints = {.bytes = {layers, &measured_layer::weight_bytes},
                       .capacity = {3000},
                       .pinned = {{0, 0}, {12, 1}},
                       .tied = {{11, 12}}}});
  CHECK(step.status == omnibal::solve_status::solved);
  CHECK(step.bottleneck >= plain.bottleneck);
  CHECK(step.boundaries[1] <= 11);
  CHECK(step.objective > 15 * step.bottleneck);
}

TEST_CASE("a trainer's memory rule goes through the general partitions and says what is missing") {
  auto const layers = vision_language_model();
  trainer const own(layers);
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.stage_ms(stage, first, last);
  };
  auto const bytes = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.stage_bytes(stage, first, last);
  };
  auto const has_room = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.has_room(stage, first, last);
  };
  omnibal::memory_rule const rule{bytes, 26'000};
  CHECK(omnibal::partition_layers(layers, 4, cost, rule) ==
        omnibal::partition_layers(layers, 4, cost, has_room));
  CHECK(omnibal::partition_layers(layers, 4, cost, rule,
                                  {.base = {layers, &measured_layer::milliseconds}}) ==
        omnibal::partition_layers(layers, 4, cost, has_room));
  CHECK(omnibal::partition_throughput(layers, 4, cost, rule, {.micro_batches = 16}) ==
        omnibal::partition_throughput(layers, 4, cost, has_room, {.micro_batches = 16}));

  // Where there is no room the rule says how much is missing, and that is the least.
  omnibal::memory_rule const narrow{bytes, 12'000u};
  auto const missing = omnibal::partition_layers(layers, 4, cost, narrow);
  CHECK(missing.status == omnibal::solve_status::infeasible);
  CHECK(missing.missing_bytes > 0);
  CHECK(missing.stage < 4);
  CHECK(
      omnibal::partition_throughput(layers, 4, cost, narrow, {.micro_batches = 16}).missing_bytes ==
      missing.missing_bytes);
  std::int64_t const enough = 12'000 + missing.missing_bytes;
  CHECK(omnibal::partition_layers(layers, 4, cost, omnibal::memory_rule{bytes, enough}).status ==
        omnibal::solve_status::solved);
  CHECK(
      omnibal::partition_layers(layers, 4, cost, omnibal::memory_rule{bytes, enough - 1}).status ==
      omnibal::solve_status::infeasible);

  // Devices that differ, beside a list of what layers take elsewhere.
  auto const of_device = [](std::size_t stage) { return stage == 0 ? 20'000u : 30'000u; };
  omnibal::memory_rule const uneven{bytes, of_device};
  auto const both = omnibal::partition_layers(
      layers, 4, cost, uneven,
      {.constraints = {.bytes = {layers, &measured_layer::weight_bytes}, .capacity = {2800}}});
  REQUIRE(both.status == omnibal::solve_status::solved);
  for (std::size_t s = 0; s != 4; ++s) {
    CHECK(own.stage_bytes(s, both.boundaries[s], both.boundaries[s + 1]) <= of_device(s));
  }

  // Candidates that the rule refuses need not be measured.
  auto const near = omnibal::neighbors(both.boundaries, 1);
  auto const seconds_if_room = [&](std::span<std::uint32_t const> boundaries) {
    double slowest = 0;
    for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
      if (!uneven(s, boundaries[s], boundaries[s + 1])) {
        return std::numeric_limits<double>::infinity();
      }
      slowest = std::max(slowest, own.stage_ms(s, boundaries[s], boundaries[s + 1]));
    }
    return slowest;
  };
  auto const found = omnibal::search_cuts(near, cost, 27, seconds_if_room);
  CHECK(found.candidates[found.best].measured <= both.bottleneck);
}

TEST_CASE("a trainer's layers and stopwatch go through the search") {
  auto const layers = vision_language_model();
  trainer const own(layers);
  auto const anchor = omnibal::partition_minimax(layers, 4, &measured_layer::milliseconds);
  omnibal::cut_score const score({layers, &measured_layer::forward_ms},
                                 {layers, &measured_layer::sent_kilobytes}, 4, {.traffic = 0.01});
  auto const stopwatch = [&](std::span<std::uint32_t const> boundaries) {
    double slowest = 0;
    for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
      slowest = std::max(slowest, own.stage_ms(s, boundaries[s], boundaries[s + 1]));
    }
    return slowest;
  };
  auto const near = omnibal::neighbors(anchor.boundaries, 2);
  auto const found = omnibal::search_cuts(near, score, 20, stopwatch);
  CHECK(found.measurements == 20);
  CHECK(found.candidates[found.best].measured <= stopwatch(anchor.boundaries));
  auto const own_score = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return own.stage_ms(stage, first, last) * own.stage_ms(stage, first, last);
  };
  CHECK(omnibal::search_cuts(near, own_score, 3, stopwatch).measurements == 3);
}
