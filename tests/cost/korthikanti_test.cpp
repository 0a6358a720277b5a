// SPDX-License-Identifier: Apache-2.0
// The classic form of Korthikanti et al., "Reducing activation recomputation in large transformer
// models", 2022 (arXiv 2205.05198): unfused attention, dropout, kept bytes of tables 1 and 2.

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::norm_regions;
using omnibal::recompute_choice;

constexpr std::int64_t s = 2048;
constexpr std::int64_t b = 4;
constexpr std::int64_t h = 12288;
constexpr std::int64_t a = 96;

omnibal::transformer classic_layer() {
  return {.hidden = h,
          .heads = a,
          .mlp = 4 * h,
          .feed_forward = omnibal::mlp_kind::plain,
          .norm = omnibal::norm_kind::layer,
          .kernel = omnibal::attention_kernel::unfused,
          .qkv_bias = true,
          .output_bias = true,
          .mlp_bias = true,
          .dropout = true};
}

omnibal::layer_cost classic_cost(omnibal::parallel_degrees const& degrees = {}) {
  return classic_layer()({.documents = omnibal::equal_sequences({.count = b, .length = s})},
                         degrees);
}

}  // namespace

TEST_CASE("the classic layer keeps 34 s b h + 5 a s^2 b, selective 34 s b h, full 2 s b h") {
  auto const cost = classic_cost();
  CHECK(cost[recompute_choice::none].kept_bytes == 34 * s * b * h + 5 * a * s * s * b);
  CHECK(cost[recompute_choice::selective].kept_bytes == 34 * s * b * h);
  CHECK(cost[recompute_choice::full].kept_bytes == 2 * s * b * h);
}

TEST_CASE("tensor parallelism leaves 10 s b h on every rank") {
  for (std::int64_t const t : {2, 8, 32}) {
    auto const cost = classic_cost({.tensor = t});
    CHECK(cost[recompute_choice::none].kept_bytes ==
          10 * s * b * h + 24 * s * b * h / t + 5 * a * s * s * b / t);
    CHECK(cost[recompute_choice::selective].kept_bytes == 10 * s * b * h + 24 * s * b * h / t);
    CHECK(cost[recompute_choice::full].kept_bytes == 2 * s * b * h);
    CHECK(cost.cut_bytes == 2 * s * b * h);
  }
}

TEST_CASE("with sequence parallelism everything is shared out") {
  for (std::int64_t const t : {2, 8, 32}) {
    auto const cost = classic_cost({.tensor = t, .norms = norm_regions::split});
    CHECK(cost[recompute_choice::none].kept_bytes == (34 * s * b * h + 5 * a * s * s * b) / t);
    CHECK(cost[recompute_choice::selective].kept_bytes == 34 * s * b * h / t);
    CHECK(cost[recompute_choice::full].kept_bytes == 2 * s * b * h / t);
    CHECK(cost.cut_bytes == 2 * s * b * h / t);
  }
}

TEST_CASE("FLOPs are 24 b s h^2 + 4 b s^2 h forward, and the scores again where selective") {
  auto const cost = classic_cost();
  std::int64_t const matrices = 24 * b * s * h * h;
  std::int64_t const scores = 4 * b * s * s * h;
  CHECK(cost.forward.flops == matrices + scores);
  CHECK(cost.backward.flops == 2 * (matrices + scores));
  CHECK(cost[recompute_choice::none].extra == omnibal::layer_work{});
  CHECK(cost[recompute_choice::selective].extra.flops == scores);
  CHECK(cost[recompute_choice::full].extra == cost.forward);
}

TEST_CASE("selective recomputation reads and writes the scores") {
  auto const cost = classic_cost();
  // Softmax in and out, dropout in, out and its mask.
  CHECK(cost[recompute_choice::selective].extra.moved_bytes == (2 + 2 + 2 + 2 + 1) * a * s * s * b);
}

TEST_CASE("without dropout no masks and no second copy of the scores are kept") {
  omnibal::transformer layer = classic_layer();
  layer.dropout = false;
  auto const cost = layer({.documents = omnibal::equal_sequences({.count = b, .length = s})});
  CHECK(cost[recompute_choice::none].kept_bytes == 32 * s * b * h + 2 * a * s * s * b);
}

TEST_CASE("the output layer keeps 4 s b h (1 + v / h)") {
  constexpr std::int64_t v = 51200;
  omnibal::language_head const output{.vocabulary = v, .hidden = h};
  omnibal::micro_batch_work const batch{.documents =
                                            omnibal::equal_sequences({.count = b, .length = s})};
  CHECK(output(batch)[recompute_choice::none].kept_bytes == 4 * s * b * h + 4 * s * b * v);
  auto const split = output(batch, {.tensor = 8, .norms = norm_regions::split});
  CHECK(split[recompute_choice::none].kept_bytes == (4 * s * b * h + 4 * s * b * v) / 8);
}

TEST_CASE("GPT-3 has 175 billion parameters") {
  constexpr std::int64_t v = 51200;
  std::int64_t const layer = classic_cost().parameters;
  CHECK(layer == 12 * h * h + 13 * h);
  std::int64_t const words =
      omnibal::embedding{.vocabulary = v, .hidden = h, .positions = s}({}).parameters;
  std::int64_t const total = 96 * layer + words + 2 * h;
  CHECK(total > 174'500'000'000);
  CHECK(total < 175'500'000'000);
}
