// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "random_layers.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::quadratic_cost;

static_assert(omnibal::cost_function<quadratic_cost, std::int64_t>);

/// What a batch of these documents costs the layers of a model.
template <class Model>
std::int64_t flops_of(Model const& model, omnibal::micro_batch_work const& batch) {
  std::int64_t sum = 0;
  for (auto const& cost : omnibal::layer_costs(model, batch)) sum += cost.flops();
  return sum;
}

struct sample {
  std::int64_t tiles;
  std::int64_t tokens;
};

}  // namespace

TEST_CASE("the cost of a sample is a polynomial") {
  constexpr quadratic_cost cost{.linear = 7, .quadratic = 3};
  static_assert(cost(0) == 0);
  static_assert(cost(10) == 370);
  static_assert((2 * cost + cost)(10) == 1110);
}

TEST_CASE("the costs of documents add up to that of their batch") {
  for (std::uint64_t run = 0; run != 200; ++run) {
    INFO("run " << run);
    test::random_amounts random(run);
    auto layer = test::random_transformer(random);
    layer.cross = {};
    auto const cost = layer.sample_cost();
    std::vector<std::int64_t> lengths(5);
    std::int64_t sum = 0;
    for (auto& length : lengths) {
      length = random.heavy_tail(5000);
      sum += cost(length);
    }
    CHECK(sum == layer({.documents = omnibal::sequences_of(lengths)}).flops());
    CHECK(omnibal::document_cost(layer) == cost);
  }
}

TEST_CASE("a document costs what layers with all kinds of parts compute for it") {
  for (std::uint64_t run = 0; run != 400; ++run) {
    INFO("run " << run);
    test::random_amounts random(run);
    auto layer = test::random_hybrid(random);
    layer.cross = {};
    auto const cost = layer.sample_cost();
    std::vector<std::int64_t> lengths(5);
    std::int64_t sum = 0;
    for (auto& length : lengths) {
      length = random.heavy_tail(8000);
      CHECK(cost(length) ==
            layer({.documents = omnibal::equal_sequences({.count = 1, .length = length})}).flops());
      sum += cost(length);
    }
    auto const spans = omnibal::attention_spans(layer);
    CHECK(sum == layer({.documents = omnibal::sequences_of(lengths, {}, spans)}).flops());
    omnibal::prediction_layer const prediction{.layer = layer, .vocabulary = 1000};
    CHECK(prediction.sample_cost()(lengths[0]) ==
          prediction({.documents = omnibal::equal_sequences({.count = 1, .length = lengths[0]})})
              .flops());
  }
}

TEST_CASE("a sample of a vision-language model costs what its tiles and its tokens cost") {
  auto const& model = omnibal::internvl_6_20b;
  auto const tiles = omnibal::tile_cost(model);
  auto const tokens = omnibal::document_cost(model);
  std::vector<sample> const samples{{1, 300}, {5, 1500}, {0, 4000}};
  std::int64_t sum = 0;
  std::vector<std::int64_t> lengths;
  for (auto const& [images, length] : samples) {
    sum += tiles(images) + tokens(length);
    lengths.push_back(length);
  }
  CHECK(sum == flops_of(model, {.tiles = 6, .documents = omnibal::sequences_of(lengths)}));
  CHECK(tiles.quadratic == 0);
  CHECK(tiles(3) == 3 * tiles(1));
}

TEST_CASE("every tower has its cost of a sample") {
  omnibal::audio_transformer const audio{.hidden = 32, .heads = 8, .mlp = 20};
  auto const clips = omnibal::equal_sequences({.count = 1, .length = 50});
  CHECK(audio.sample_cost()(50) == audio({.clips = clips}).flops());
  CHECK(omnibal::clip_cost(audio) == audio.sample_cost());
  auto const& vision = omnibal::internvit_6b.layer;
  CHECK(vision.sample_cost()(1025) == vision({.tiles = 1}).flops());
  CHECK(omnibal::tile_cost(vision)(1) == vision({.tiles = 1}).flops());
  auto const& output = omnibal::yi_34b.output;
  CHECK(output.sample_cost() ==
        quadratic_cost{.linear = std::int64_t{6} * 7168 * 64000, .quadratic = 0});
}

TEST_CASE("frozen layers cost less of a sample") {
  omnibal::transformer layer{.hidden = 32, .heads = 8, .mlp = 20};
  auto const trained = layer.sample_cost();
  layer.training = omnibal::training_mode::input_gradients;
  CHECK(layer.sample_cost() ==
        quadratic_cost{.linear = trained.linear / 3 * 2, .quadratic = trained.quadratic});
  layer.training = omnibal::training_mode::forward_only;
  CHECK(layer.sample_cost() ==
        quadratic_cost{.linear = trained.linear / 3, .quadratic = trained.quadratic / 3});
}

TEST_CASE("lpt balances FLOPs") {
  test::random_amounts random(3);
  std::vector<std::int64_t> lengths(512);
  for (auto& length : lengths) length = 1 + random.heavy_tail(100'000);
  auto const cost = omnibal::document_cost(omnibal::llama3_8b);
  auto const parts = omnibal::lpt(lengths, 8, cost);
  std::int64_t largest = 0;
  std::int64_t total = 0;
  for (std::size_t part = 0; part != parts.size(); ++part) {
    std::int64_t load = 0;
    for (auto const item : parts[part]) load += cost(lengths[item]);
    largest = std::max(largest, load);
    total += load;
  }
  CHECK(static_cast<double>(largest) < 1.01 * static_cast<double>(total) / 8);
}

TEST_CASE("bad lengths and costs are errors") {
  quadratic_cost const cost{.linear = 7, .quadratic = std::int64_t{1} << 20};
  auto const invalid = [&](std::int64_t length) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(cost(length)); });
  };
  CHECK(invalid(-1) == "omnibal::quadratic_cost: length is -1, must be from 0 to 1099511627776");
  CHECK(invalid(std::numeric_limits<std::int64_t>::max()) ==
        "omnibal::quadratic_cost: length is 9223372036854775807, must be from 0 to 1099511627776");
  auto const overflow = [](auto const& call) {
    return test::error_text<std::overflow_error>([&] { static_cast<void>(call()); });
  };
  CHECK(overflow([&] { return cost(std::int64_t{1} << 22); }) ==
        "omnibal::quadratic_cost: the cost of a sample exceeds the largest value of its type");
  CHECK(overflow([&] { return (std::int64_t{1} << 50) * cost; }) ==
        "omnibal::quadratic_cost: a multiple of a cost exceeds the largest value of its type");
  CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(-1 * cost); }) ==
        "omnibal::quadratic_cost: factor is -1, must be finite and not negative");
  quadratic_cost const negative{.linear = -7};
  CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(negative(3)); }) ==
        "omnibal::quadratic_cost: linear is -7, must be finite and not negative");
}
