// SPDX-License-Identifier: Apache-2.0
// Experts, with sums made by hand.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::transformer;
using enum omnibal::recompute_choice;

/// Documents of 4 and 6 tokens.
constexpr std::int64_t tokens = 10;
constexpr omnibal::micro_batch_work documents{
    .documents = {.count = 2, .tokens = 10, .squares = 16 + 36}};

constexpr transformer sparse{
    .hidden = 32, .heads = 8, .experts = {.routed = 8, .active = 2, .shared = 1, .mlp = 6}};

}  // namespace

TEST_CASE("shared experts may have a width of their own") {
  transformer layer = sparse;
  layer.experts.shared_mlp = 10;
  auto const cost = layer(documents);
  CHECK(cost.parameters == 4 * 32 * 32 + 2 * 32 + 32 * 8 + 8 * 3 * 32 * 6 + 3 * 32 * 10);
  CHECK(cost.active_parameters == 4 * 32 * 32 + 2 * 32 + 32 * 8 + 2 * 3 * 32 * 6 + 3 * 32 * 10);
  CHECK(cost.forward.flops ==
        2 * tokens * cost.active_parameters - 2 * tokens * 2 * 32 + 2 * 32 * (16 + 36));
}

TEST_CASE("routed experts may work on a narrower latent") {
  transformer layer = sparse;
  layer.experts.latent_width = 12;
  layer.feed_forward = omnibal::mlp_kind::plain;
  auto const cost = layer(documents);
  std::int64_t const fixed = 4 * 32 * 32 + 32 * 8 + 2 * 32 * 12 + 2 * 32 * 6;
  CHECK(cost.parameters == fixed + 8 * 2 * 12 * 6 + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * (fixed + 2 * 2 * 12 * 6) + 2 * 32 * (16 + 36));
  std::int64_t const kept = 8 * 32 + 8 * 32       // norms; queries, keys, values and output
                            + 4 * 8               // probabilities of the router in fp32
                            + 2 * 12              // input of the matrix behind the experts
                            + 2 * 2 * (12 + 12)   // sent and returned, for two experts
                            + 2 * 4 * 6 + 4 * 6;  // hidden numbers of two experts and one
  CHECK(cost[none].kept_bytes == tokens * kept);
}

TEST_CASE("experts and their router may have biases") {
  transformer layer = sparse;
  layer.experts.shared = 0;
  auto const without = layer(documents);
  layer.experts.has_bias = true;
  auto const cost = layer(documents);
  CHECK(cost.parameters - without.parameters == 8 + 8 * (2 * 6 + 32));
  CHECK(cost.active_parameters - without.active_parameters == 8 + 2 * (2 * 6 + 32));
  CHECK(cost.forward == without.forward);
  // Of two ranks that share an expert each has the whole bias of its output.
  auto const shared = layer(documents, {.tensor = 2});
  layer.experts.has_bias = false;
  CHECK(shared.parameters - layer(documents, {.tensor = 2}).parameters == 8 + 8 * (6 + 32));
}

TEST_CASE("experts may be whole on each tensor-parallel rank") {
  // Of 2 tensor-parallel and 4 data-parallel ranks each has one expert.
  omnibal::parallel_degrees const folded{.tensor = 2, .data = 4, .expert = 8, .expert_tensor = 1};
  auto const cost = sparse(documents, folded);
  std::int64_t const one_expert = 3 * 32 * 6;
  std::int64_t const dense = 4 * 32 * 32 / 2 + 2 * 32 + 32 * 8 + 3 * 32 * 6 / 2;
  CHECK(cost.parameters == dense + one_expert);
  // Each token uses two whole experts of the ranks.
  CHECK(cost.active_parameters == dense + 2 * one_expert);
  // The work is spread over the tensor-parallel ranks, however experts are.
  CHECK(cost.forward.flops == sparse(documents, {.tensor = 2, .data = 4}).forward.flops);
  // No other rank has this expert; four ranks share the state of the dense part.
  CHECK(cost.optimizer_bytes == 12 * (dense / 4 + one_expert));
  CHECK(cost.gradient_bytes == 4 * (dense + one_expert));
}

TEST_CASE("ranks that share the matrices of an expert gather its tokens") {
  using omnibal::norm_regions;
  transformer layer = sparse;
  layer.experts.mlp = 8;
  auto const with = [&](std::int64_t expert_tensor) {
    return layer(
        documents,
        {.tensor = 4, .data = 2, .norms = norm_regions::split, .expert_tensor = expert_tensor});
  };
  std::int64_t const input = tokens * 2 * 2 * 32;
  CHECK(with(2)[none].kept_bytes - with(1)[none].kept_bytes == input / 4);
  CHECK(with(4)[none].kept_bytes - with(1)[none].kept_bytes == 3 * input / 4);
  CHECK(with(0) == with(4));
  CHECK(4 * with(1)[none].kept_bytes == layer(documents)[none].kept_bytes);
}

TEST_CASE("the router reads its input in bf16 also if matrices keep FP8") {
  transformer layer = sparse;
  layer.experts.shared = 0;
  auto const fp8 = layer(documents, {}, omnibal::fp8_bytes);
  std::int64_t const kept = 2 * (2 * 32 + 32) + 2 * 4 * 32 + 32  // norms and attention
                            + 2 * 32 + 4 * 8                     // input of the router, its output
                            + 2 * (32 + 2 * 32)                  // sent in FP8, returned in bf16
                            + 2 * (2 * 2 * 6 + 6);
  CHECK(fp8[none].kept_bytes == tokens * kept);
  CHECK(fp8.parameter_bytes - layer(documents).parameter_bytes ==
        2 * (4 * 32 * 32 + 8 * 3 * 32 * 6));
}
