// SPDX-License-Identifier: Apache-2.0
// Laws that hold for every configuration.

#include "random_layers.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstddef>
#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::layer_cost;
using omnibal::norm_regions;
using omnibal::recompute_choice;
using omnibal::sharded_state;
using omnibal::training_mode;

template <class Check>
void for_random_layers(std::uint64_t seed, Check const& check) {
  for (std::uint64_t run = 0; run != 300; ++run) {
    INFO("seed " << seed << ", run " << run);
    test::random_amounts random(1000 * seed + run);
    auto const layer = test::random_transformer(random);
    auto const batch = test::random_documents(random);
    check(layer, batch, random);
  }
}

/// Of `ranks` ranks together there is at least as much as of one alone.
void check_together(layer_cost const& one, std::int64_t ranks, layer_cost const& whole) {
  CHECK(one.forward.flops * ranks >= whole.forward.flops);
  CHECK(one.backward.flops * ranks >= whole.backward.flops);
  CHECK(one.forward.moved_bytes * ranks >= whole.forward.moved_bytes);
  CHECK(one.parameters * ranks >= whole.parameters);
  CHECK(one.state_bytes() * ranks >= whole.state_bytes());
  CHECK(one.cut_bytes * ranks >= whole.cut_bytes);
  for (std::size_t i = 0; i != one.choices.size(); ++i) {
    CHECK(one.choices[i].kept_bytes * ranks >= whole.choices[i].kept_bytes);
    CHECK(one.choices[i].extra.flops * ranks >= whole.choices[i].extra.flops);
  }
}

/// No rank has more than one alone would have.
void check_not_more(layer_cost const& one, layer_cost const& whole) {
  CHECK(one.forward.flops <= whole.forward.flops);
  CHECK(one.parameters <= whole.parameters);
  CHECK(one.state_bytes() <= whole.state_bytes());
  CHECK(one.cut_bytes <= whole.cut_bytes);
  for (std::size_t i = 0; i != one.choices.size(); ++i) {
    CHECK(one.choices[i].kept_bytes <= whole.choices[i].kept_bytes);
    CHECK(one.choices[i].transient_bytes <= whole.choices[i].transient_bytes);
  }
}

}  // namespace

TEST_CASE("what is kept falls and what is made again rises from none to full") {
  for_random_layers(1, [](auto const& layer, auto const& batch, auto& random) {
    auto const cost = layer(batch, {.tensor = std::int64_t{1} << random.between(0, 3)});
    auto const& none = cost[recompute_choice::none];
    auto const& selective = cost[recompute_choice::selective];
    auto const& full = cost[recompute_choice::full];
    CHECK(none.kept_bytes >= selective.kept_bytes);
    CHECK(selective.kept_bytes >= full.kept_bytes);
    CHECK(none.transient_bytes <= selective.transient_bytes);
    CHECK(selective.transient_bytes <= full.transient_bytes);
    CHECK(none.extra == omnibal::layer_work{});
    CHECK(selective.extra.flops <= full.extra.flops);
    CHECK(selective.extra.moved_bytes <= full.extra.moved_bytes);
    if (layer.training != training_mode::forward_only) CHECK(full.extra == cost.forward);
  });
}

TEST_CASE("tensor parallelism with split norms shares out all but norms, latents and sent tokens") {
  for_random_layers(2, [](auto const& layer, auto const& batch, auto& random) {
    std::int64_t const ranks = std::int64_t{1} << random.between(1, 3);
    auto const whole = layer(batch);
    auto const one = layer(batch, {.tensor = ranks, .norms = norm_regions::split});
    check_together(one, ranks, whole);
    check_not_more(one, whole);
    bool const has_copies = layer.kv_heads != 0 && layer.kv_heads < ranks;
    if (has_copies) return;
    CHECK(one.forward.flops * ranks == whole.forward.flops);
    CHECK(one.cut_bytes * ranks == whole.cut_bytes);
    bool const keeps_inputs = layer.training == training_mode::all;
    std::int64_t const gathered = keeps_inputs ? (ranks - 1) * 2 * layer.experts.active *
                                                     layer.hidden * batch.documents.tokens
                                               : 0;
    for (auto const choice : {recompute_choice::none, recompute_choice::selective}) {
      CHECK(one[choice].kept_bytes * ranks == whole[choice].kept_bytes + gathered);
    }
    CHECK(one[recompute_choice::full].kept_bytes * ranks ==
          whole[recompute_choice::full].kept_bytes);
  });
}

TEST_CASE("tensor parallelism alone halves the matrices and leaves the norms") {
  for_random_layers(3, [](auto const& layer, auto const& batch, auto&) {
    auto const whole = layer(batch);
    auto const one = layer(batch, {.tensor = 2});
    check_together(one, 2, whole);
    check_not_more(one, whole);
    CHECK(one.cut_bytes == whole.cut_bytes);
    bool const has_whole_matrices = layer.latent.key_value_rank > 0 || layer.experts.routed > 0;
    bool const has_copies = layer.kv_heads == 1;
    if (!has_whole_matrices && !has_copies) {
      CHECK(2 * one.forward.flops == whole.forward.flops);
    }
  });
}

TEST_CASE("sequence parallelism shares out tokens and no parameters") {
  for_random_layers(4, [](auto const& layer, auto const& batch, auto&) {
    auto const whole = layer(batch);
    for (std::int64_t const ranks : {2, 4, 8}) {
      auto const one = layer(batch, {.sequence = ranks, .sharding = sharded_state::nothing});
      CHECK(one.parameters == whole.parameters);
      CHECK(one.state_bytes() == whole.state_bytes());
      CHECK(one.forward.flops * ranks == whole.forward.flops);
      CHECK(one.cut_bytes * ranks == whole.cut_bytes);
      CHECK(one[recompute_choice::none].kept_bytes * ranks ==
            whole[recompute_choice::none].kept_bytes);
    }
  });
}

TEST_CASE("data parallelism shares out the state that it is told to, and nothing else") {
  for_random_layers(5, [](auto const& layer, auto const& batch, auto& random) {
    std::int64_t const ranks = random.between(2, 1000);
    auto const whole = layer(batch);
    auto const with = [&](sharded_state sharding) {
      return layer(batch, {.data = ranks, .sharding = sharding});
    };
    auto const share = [&](std::int64_t bytes_each, std::int64_t bytes) {
      std::int64_t const parameters = bytes / bytes_each;
      return (parameters + ranks - 1) / ranks * bytes_each;
    };
    CHECK(with(sharded_state::nothing) == whole);
    auto const optimizer = with(sharded_state::optimizer);
    CHECK(optimizer.forward == whole.forward);
    CHECK(optimizer.choices == whole.choices);
    CHECK(optimizer.parameters == whole.parameters);
    CHECK(optimizer.parameter_bytes == whole.parameter_bytes);
    CHECK(optimizer.gradient_bytes == whole.gradient_bytes);
    CHECK(with(sharded_state::gradients).parameter_bytes == whole.parameter_bytes);
    if (layer.experts.routed > 0) return;
    CHECK(optimizer.optimizer_bytes == share(12, whole.optimizer_bytes));
    CHECK(with(sharded_state::gradients).gradient_bytes == share(4, whole.gradient_bytes));
    CHECK(with(sharded_state::parameters).parameter_bytes == share(2, whole.parameter_bytes));
  });
}

TEST_CASE("a layer that runs has whole the parameters and gradients that ranks share out") {
  for_random_layers(5, [](auto const& layer, auto const& batch, auto& random) {
    std::int64_t const ranks = random.between(2, 1000);
    auto const whole = layer(batch);
    std::int64_t const gradients = layer.training == training_mode::all ? whole.gradient_bytes : 0;
    auto const more = [&](omnibal::parallel_degrees const& degrees) {
      auto const cost = layer(batch, degrees);
      std::int64_t const result =
          cost.choices[0].transient_bytes - whole.choices[0].transient_bytes;
      for (std::size_t c = 0; c != cost.choices.size(); ++c) {
        CHECK(cost.choices[c].transient_bytes - whole.choices[c].transient_bytes == result);
        CHECK(cost.choices[c].kept_bytes == whole.choices[c].kept_bytes);
        CHECK(cost.choices[c].extra == whole.choices[c].extra);
      }
      return result;
    };
    CHECK(more({.data = ranks, .sharding = sharded_state::optimizer}) == 0);
    CHECK(more({.data = ranks, .sharding = sharded_state::gradients}) == gradients);
    CHECK(more({.data = ranks, .sharding = sharded_state::parameters}) ==
          gradients + whole.parameter_bytes);
    // A single rank has everything whole already.
    CHECK(more({.sharding = sharded_state::parameters}) == 0);
  });
}

TEST_CASE("experts are gathered from the ranks that share them, and not if no other rank does") {
  for_random_layers(6, [](auto const& layer, auto const& batch, auto&) {
    if (layer.experts.routed == 0 || layer.training != training_mode::all) return;
    std::int64_t const matrices = layer.feed_forward == omnibal::mlp_kind::gated ? 3 : 2;
    std::int64_t const experts = layer.experts.routed * matrices * layer.hidden * layer.experts.mlp;
    auto const transient = [&](std::int64_t expert, sharded_state sharding) {
      return layer(batch, {.data = 8, .expert = expert, .sharding = sharding})
          .choices[0]
          .transient_bytes;
    };
    auto const gathered = [&](std::int64_t expert) {
      return transient(expert, sharded_state::parameters) -
             transient(expert, sharded_state::optimizer);
    };
    std::int64_t const dense = layer(batch).parameters - experts;
    CHECK(gathered(1) == 6 * (dense + experts));
    CHECK(gathered(4) == 6 * (dense + experts / 4));
    CHECK(gathered(8) == 6 * dense);
  });
}

TEST_CASE("expert parallelism shares out the routed experts and not their work") {
  for_random_layers(6, [](auto const& layer, auto const& batch, auto&) {
    if (layer.experts.routed == 0) return;
    auto const whole = layer(batch, {.data = 8});
    auto const one = layer(batch, {.data = 8, .expert = 8});
    std::int64_t const matrices = layer.feed_forward == omnibal::mlp_kind::gated ? 3 : 2;
    std::int64_t const experts = layer.experts.routed * matrices * layer.hidden * layer.experts.mlp;
    CHECK(whole.parameters - one.parameters == experts - experts / 8);
    CHECK(one.active_parameters == whole.active_parameters);
    CHECK(one.forward == whole.forward);
    CHECK(one.choices == whole.choices);
    // Eight ranks share the state of the dense part, and each has that of its own experts.
    std::int64_t const dense = whole.parameters - experts;
    if (layer.training != training_mode::all) return;
    CHECK(one.optimizer_bytes == 12 * ((dense + 7) / 8 + experts / 8));
  });
}

TEST_CASE("active parameters are at most all, and all without experts") {
  for_random_layers(7, [](auto const& layer, auto const& batch, auto&) {
    auto const cost = layer(batch);
    CHECK(cost.active_parameters <= cost.parameters);
    bool const uses_all = layer.experts.routed == 0 || layer.experts.active == layer.experts.routed;
    CHECK((cost.active_parameters == cost.parameters) == uses_all);
  });
}

TEST_CASE("more of anything never costs less") {
  for_random_layers(8, [](auto const& layer, auto const& batch, auto&) {
    auto const before = layer(batch);
    auto more = batch;
    more.documents.count += 1;
    more.documents.tokens += 8;
    more.documents.squares += 64;
    check_not_more(before, layer(more));
    auto wider = layer;
    wider.hidden += 8;
    if (wider.mlp > 0) wider.mlp += 8;
    check_not_more(before, wider(batch));
  });
}

TEST_CASE("less training takes less memory and time") {
  for_random_layers(9, [](auto layer, auto const& batch, auto&) {
    layer.training = training_mode::all;
    auto const all = layer(batch);
    layer.training = training_mode::input_gradients;
    auto const passing = layer(batch);
    layer.training = training_mode::forward_only;
    auto const frozen = layer(batch);
    check_not_more(passing, all);
    check_not_more(frozen, passing);
    CHECK(passing.backward.flops <= all.backward.flops);
    CHECK(passing.backward.flops >= all.forward.flops);
    CHECK(all.backward.flops == 2 * all.forward.flops);
    CHECK(passing.forward == all.forward);
    CHECK(frozen.forward == all.forward);
  });
}

TEST_CASE("the work of documents is the sum of their works") {
  for_random_layers(10, [](auto const& layer, auto const& batch, auto& random) {
    auto const other = test::random_documents(random);
    auto together = batch;
    together.documents.count += other.documents.count;
    together.documents.tokens += other.documents.tokens;
    together.documents.squares += other.documents.squares;
    together.context.tokens += other.context.tokens;
    together.context.pairs += other.context.pairs;
    auto const sum = layer(together);
    auto const left = layer(batch);
    auto const right = layer(other);
    CHECK(sum.forward.flops == left.forward.flops + right.forward.flops);
    CHECK(sum.backward.flops == left.backward.flops + right.backward.flops);
    CHECK(sum.cut_bytes == left.cut_bytes + right.cut_bytes);
    for (std::size_t i = 0; i != sum.choices.size(); ++i) {
      CHECK(sum.choices[i].kept_bytes == left.choices[i].kept_bytes + right.choices[i].kept_bytes);
    }
    CHECK(sum.parameters == left.parameters);
  });
}
