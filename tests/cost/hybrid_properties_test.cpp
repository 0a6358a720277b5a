// SPDX-License-Identifier: Apache-2.0
// Laws of layers with recurrent parts, spans, gates, indexers and adapters.

#include "random_layers.hpp"

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstddef>
#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::layer_cost;
using omnibal::norm_regions;
using omnibal::recompute_choice;
using omnibal::training_mode;

template <class Check>
void for_random_layers(std::uint64_t seed, Check const& check) {
  for (std::uint64_t run = 0; run != 400; ++run) {
    INFO("seed " << seed << ", run " << run);
    test::random_amounts random(1000 * seed + run);
    auto const layer = test::random_hybrid(random);
    auto const spans = omnibal::attention_spans(layer);
    auto const batch = test::random_documents(random, spans);
    check(layer, batch, random);
  }
}

/// The ranks together have at least what one alone has, and each rank has at most as much.
void check_shares(layer_cost const& one, std::int64_t ranks, layer_cost const& whole) {
  auto const check = [&](std::int64_t share, std::int64_t all) {
    CHECK(share <= all);
    CHECK(share * ranks >= all);
  };
  check(one.forward.flops, whole.forward.flops);
  check(one.backward.flops, whole.backward.flops);
  check(one.parameters, whole.parameters);
  check(one.active_parameters, whole.active_parameters);
  check(one.state_bytes(), whole.state_bytes());
  check(one.cut_bytes, whole.cut_bytes);
  for (std::size_t i = 0; i != one.choices.size(); ++i) {
    check(one.choices[i].kept_bytes, whole.choices[i].kept_bytes);
    check(one.choices[i].extra.flops, whole.choices[i].extra.flops);
  }
}

/// Returns true if a tensor-parallel rank has more than its share of something but parameters.
bool has_whole_parts(omnibal::transformer const& layer, std::int64_t ranks) {
  bool const has_attention = layer.heads != 0;
  bool const has_copies = has_attention && layer.kv_heads != 0 && layer.kv_heads < ranks;
  bool const has_indexer = has_attention && layer.indexer.heads != 0;
  bool const has_groups =
      layer.space.heads != 0 && layer.space.step_rank == 0 && layer.space.groups < ranks;
  bool const is_first = layer.space.step_rank != 0;
  return has_copies || has_indexer || has_groups || is_first || layer.experts.routed != 0;
}

}  // namespace

TEST_CASE("kept bytes fall and recomputed work rises, for all kinds of parts") {
  for_random_layers(1, [](auto const& layer, auto const& batch, auto& random) {
    auto const cost = layer(batch, {.tensor = std::int64_t{1} << random.between(0, 3)});
    auto const& [none, selective, full] = cost.choices;
    CHECK(none.kept_bytes >= selective.kept_bytes);
    CHECK(selective.kept_bytes >= full.kept_bytes);
    CHECK(none.transient_bytes <= selective.transient_bytes);
    CHECK(selective.transient_bytes <= full.transient_bytes);
    CHECK(selective.extra.flops <= full.extra.flops);
    CHECK(selective.extra.moved_bytes <= full.extra.moved_bytes);
  });
}

TEST_CASE("tensor-parallel ranks have shares of all kinds of parts") {
  for_random_layers(2, [](auto const& layer, auto const& batch, auto& random) {
    std::int64_t const ranks = std::int64_t{1} << random.between(1, 3);
    auto const whole = layer(batch);
    check_shares(layer(batch, {.tensor = ranks}), ranks, whole);
    auto const one = layer(batch, {.tensor = ranks, .norms = norm_regions::split});
    check_shares(one, ranks, whole);
    if (has_whole_parts(layer, ranks)) return;
    CHECK(one.forward.flops * ranks == whole.forward.flops);
    CHECK(one.backward.flops * ranks == whole.backward.flops);
    for (std::size_t i = 0; i != one.choices.size(); ++i) {
      CHECK(one.choices[i].kept_bytes * ranks == whole.choices[i].kept_bytes);
    }
  });
}

TEST_CASE("sequence-parallel ranks share the tokens of all kinds of parts") {
  for_random_layers(3, [](auto const& layer, auto const& batch, auto&) {
    auto const whole = layer(batch);
    for (std::int64_t const ranks : {2, 8}) {
      auto const one = layer(batch, {.sequence = ranks});
      check_shares(one, ranks, whole);
      CHECK(one.parameters == whole.parameters);
      CHECK(one[recompute_choice::full].kept_bytes * ranks ==
            whole[recompute_choice::full].kept_bytes);
    }
  });
}

TEST_CASE("experts on their own tensor-parallel ranks keep the work and the shares") {
  for_random_layers(4, [](auto const& layer, auto const& batch, auto& random) {
    std::int64_t const own = std::int64_t{1} << random.between(0, 2);
    auto const whole = layer(batch);
    auto const shared = layer(batch, {.tensor = 4, .data = 8});
    auto const folded = layer(batch, {.tensor = 4, .data = 8, .expert = 8, .expert_tensor = own});
    CHECK(folded.forward.moved_bytes == shared.forward.moved_bytes);
    CHECK(folded.forward.flops <= shared.forward.flops);
    CHECK(folded.backward.flops <= shared.backward.flops);
    // Ranks that share an expert repeat the outer products of its adapters.
    if (layer.adapters.rank == 0) CHECK(folded.forward.flops == shared.forward.flops);
    if (layer.experts.routed == 0) {
      CHECK(folded == shared);
      return;
    }
    CHECK(folded.parameters * 4 * 8 >= whole.parameters);
    CHECK(folded.active_parameters >= shared.active_parameters);
    CHECK(folded[recompute_choice::none].kept_bytes <= shared[recompute_choice::none].kept_bytes);
    auto const at_once = layer(batch, {.tensor = 4, .data = 8, .expert_tensor = 4});
    CHECK(at_once == shared);
  });
}

TEST_CASE("adapters cost little, and less training costs less, for all kinds of parts") {
  for_random_layers(5, [](auto layer, auto const& batch, auto&) {
    layer.adapters = {};
    auto const with = [&](training_mode training) {
      layer.training = training;
      return layer(batch);
    };
    auto const all = with(training_mode::all);
    auto const passing = with(training_mode::input_gradients);
    auto const frozen = with(training_mode::forward_only);
    CHECK(passing.forward == all.forward);
    CHECK(frozen.forward == all.forward);
    CHECK(passing.backward.flops <= all.backward.flops);
    CHECK(frozen.backward.flops == 0);
    CHECK(frozen[recompute_choice::none].kept_bytes == 0);
    CHECK(passing[recompute_choice::none].kept_bytes <= all[recompute_choice::none].kept_bytes);
    CHECK(passing.optimizer_bytes == 0);
    layer.training = training_mode::input_gradients;
    layer.adapters.rank = 1;
    auto const adapted = layer(batch);
    CHECK(adapted.optimizer_bytes == 12 * (adapted.parameters - passing.parameters));
    CHECK(adapted[recompute_choice::none].kept_bytes >= passing[recompute_choice::none].kept_bytes);
  });
}

TEST_CASE("FP8 adds copies of matrices and no other state") {
  for_random_layers(6, [](auto const& layer, auto const& batch, auto&) {
    auto const bf16 = layer(batch);
    auto const fp8 = layer(batch, {}, omnibal::fp8_bytes);
    auto const mxfp8 = layer(batch, {}, omnibal::mxfp8_bytes);
    CHECK(fp8.parameter_bytes >= bf16.parameter_bytes);
    CHECK(fp8.parameter_bytes <= 2 * bf16.parameter_bytes);
    CHECK(fp8.optimizer_bytes == bf16.optimizer_bytes);
    CHECK(fp8.forward == bf16.forward);
    CHECK(fp8.parameter_bytes == mxfp8.parameter_bytes);
    CHECK(mxfp8[recompute_choice::none].kept_bytes >= fp8[recompute_choice::none].kept_bytes);
  });
}

TEST_CASE("a part of a head of any length has the loss of the whole") {
  test::random_amounts random(7);
  for (int run = 0; run != 200; ++run) {
    auto const batch = test::random_documents(random);
    omnibal::language_head head{.vocabulary = random.between(1, 100'000),
                                .hidden = random.between(1, 8000)};
    auto const whole = head(batch);
    head.loss_chunk = random.between(1, 5000);
    auto const chunked = head(batch);
    CHECK(chunked.forward == whole.forward);
    CHECK(chunked.backward.flops == 3 * chunked.forward.flops);
    for (std::size_t i = 0; i != whole.choices.size(); ++i) {
      CHECK(chunked.choices[i].kept_bytes <= whole.choices[i].kept_bytes);
      CHECK(chunked.choices[i].transient_bytes <=
            whole.choices[i].transient_bytes + whole.choices[0].kept_bytes);
    }
  }
}
