// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "prefix_faults.hpp"
#include "tree_attention.hpp"

#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/prefix/prefix_masks.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

using omnibal::block_prefixes;
using omnibal::build_prefix_forest;
using omnibal::layout_prefixes;
using omnibal::prefix_layout;
using omnibal::slice_prefixes;

namespace {

constexpr std::uint32_t none = prefix_layout::none;

std::vector<std::uint32_t> first_indices(std::size_t count) {
  std::vector<std::uint32_t> result(count);
  std::iota(result.begin(), result.end(), 0U);
  return result;
}

/// Whether each token may attend to each, from the paths of the segments.
std::vector<std::vector<char>> mask_of(prefix_layout const& layout) {
  std::size_t const count = layout.tokens();
  std::vector<std::vector<char>> mask(count, std::vector<char>(count, 0));
  for (std::uint32_t s = 0; s != layout.nodes.size(); ++s) {
    for (std::uint32_t q = layout.cu_seqlens[s]; q != layout.cu_seqlens[s + 1]; ++q) {
      for (std::uint32_t a = s; a != none; a = layout.parents[a]) {
        for (std::uint32_t k = layout.cu_seqlens[a]; k != layout.cu_seqlens[a + 1]; ++k) {
          if (k <= q) mask[q][k] = 1;
        }
      }
    }
  }
  return mask;
}

}  // namespace

// The example of the guide, by hand.
TEST_CASE("layout_prefixes lays out tokens depth first") {
  std::vector<std::vector<int>> const sequences{{7, 7, 1}, {7, 7, 2, 3}, {9}};
  auto const forest = build_prefix_forest(sequences);
  auto const layout = layout_prefixes(forest, first_indices(3));
  CHECK(layout.cu_seqlens == std::vector<std::uint32_t>{0, 2, 3, 5, 6});
  CHECK(layout.parents == std::vector<std::uint32_t>{none, 0, 0, none});
  CHECK(layout.subtree_ends == std::vector<std::uint32_t>{3, 2, 3, 4});
  CHECK(layout.positions == std::vector<std::uint32_t>{0, 1, 2, 2, 3, 0});
  CHECK(layout.token_ends == std::vector<std::uint32_t>{5, 5, 3, 5, 5, 6});
  CHECK(layout.predictors == std::vector<std::uint32_t>{none, 0, 1, 1, 3, none});
  CHECK(layout.ends == std::vector<std::uint32_t>{1, 2, 3});
  auto const part = layout_prefixes(forest, std::vector<std::uint32_t>{1});
  CHECK(part.cu_seqlens == std::vector<std::uint32_t>{0, 2, 4});
}

// The mask of one array, the slices and the blocks must be the mask of the paths.
TEST_CASE("masks of random forests agree with the paths") {
  omnibal::rng::engine random(1);
  for (int round = 0; round != 1000; ++round) {
    auto const forest = test::random_forest(random, 10, 8, 5);
    std::vector<std::uint32_t> group;
    for (std::uint32_t i = 0; i != forest.sequence_count(); ++i) {
      if (omnibal::rng::below(random, 3) != 0) group.push_back(i);
    }
    auto const layout = layout_prefixes(forest, group);
    REQUIRE(layout.tokens() == test::union_tokens(forest, group));
    auto const mask = mask_of(layout);
    std::size_t const count = layout.tokens();
    std::vector<std::vector<char>> slices(count, std::vector<char>(count, 0));
    auto const sliced = slice_prefixes(layout);
    for (std::size_t n = 0; n != sliced.q_ranges.size(); ++n) {
      auto const [q_begin, q_end] = sliced.q_ranges[n];
      auto const [k_begin, k_end] = sliced.k_ranges[n];
      for (std::uint32_t q = q_begin; q != q_end; ++q) {
        for (std::uint32_t k = k_begin; k != k_end; ++k) {
          if (sliced.attn_type_map[n] == 0 || k - k_begin <= q - q_begin) ++slices[q][k];
        }
      }
    }
    omnibal::prefix_block_options options;
    options.queries = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 5));
    options.keys = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 5));
    auto const blocks = block_prefixes(layout, options);
    // 0: no block, 1: a partly masked block, 2: a full block.
    std::vector<std::vector<int>> kinds(blocks.rows, std::vector<int>(blocks.columns, 0));
    for (std::uint32_t row = 0; row != blocks.rows; ++row) {
      for (std::uint32_t n = 0; n != blocks.kv_num_blocks[row]; ++n) {
        ++kinds[row][blocks.kv_indices[row * blocks.columns + n]];
      }
      for (std::uint32_t n = 0; n != blocks.full_kv_num_blocks[row]; ++n) {
        kinds[row][blocks.full_kv_indices[row * blocks.columns + n]] += 2;
      }
    }
    for (std::uint32_t row = 0; row != blocks.rows; ++row) {
      for (std::uint32_t column = 0; column != blocks.columns; ++column) {
        std::size_t allowed = 0;
        for (std::size_t q = row * options.queries; q != (row + 1) * options.queries; ++q) {
          for (std::size_t k = column * options.keys; k != (column + 1) * options.keys; ++k) {
            allowed += q < count && k < count && mask[q][k] != 0 ? 1U : 0U;
          }
        }
        std::size_t const all = std::size_t{options.queries} * options.keys;
        REQUIRE(kinds[row][column] == (allowed == 0 ? 0 : allowed == all ? 2 : 1));
      }
    }
    for (std::uint32_t q = 0; q != count; ++q) {
      for (std::uint32_t k = 0; k != count; ++k) {
        bool const by_ends = k <= q && q < layout.token_ends[k];
        REQUIRE(by_ends == (mask[q][k] != 0));
        REQUIRE(slices[q][k] == mask[q][k]);
      }
    }
  }
}

// The promise of the whole folder: shared prefixes change neither the loss nor a gradient.
TEST_CASE("loss and gradients with shared prefixes equal separate sequences") {
  omnibal::rng::engine random(2);
  for (int round = 0; round != 20; ++round) {
    std::vector<std::vector<std::uint32_t>> sequences(1 + omnibal::rng::below(random, 7));
    for (auto& sequence : sequences) {
      // Some begin with an earlier sequence, whole or in part.
      auto const& model = sequences[omnibal::rng::below(random, sequences.size())];
      std::size_t const kept = omnibal::rng::below(random, model.size() + 1);
      std::vector<std::uint32_t> tokens(model.begin(),
                                        model.begin() + static_cast<std::ptrdiff_t>(kept));
      for (std::uint64_t k = 1 + omnibal::rng::below(random, 6); k != 0; --k) {
        tokens.push_back(static_cast<std::uint32_t>(omnibal::rng::below(random, 5)));
      }
      sequence = tokens;
    }
    std::vector<double> weights;
    std::vector<std::uint32_t> begins;
    for (auto const& sequence : sequences) {
      weights.push_back(static_cast<double>(omnibal::rng::below(random, 2000)) / 1000.0 - 1.0);
      begins.push_back(static_cast<std::uint32_t>(omnibal::rng::below(random, sequence.size())));
    }
    test::tree_attention const model(5, 16, 6, 7);
    auto const forest = build_prefix_forest(sequences);
    auto const layout = layout_prefixes(forest, first_indices(sequences.size()));
    auto const shared = model.run(test::shared_batch(forest, layout, sequences, weights, begins));
    test::loss_and_gradients separate;
    for (std::size_t i = 0; i != sequences.size(); ++i) {
      separate.add(model.run(test::one_sequence(sequences[i], weights[i], begins[i])));
    }
    REQUIRE(std::abs(shared.loss - separate.loss) <= 1e-6 * (1.0 + std::abs(separate.loss)));
    REQUIRE(shared.gradients.size() == separate.gradients.size());
    for (std::size_t p = 0; p != shared.gradients.size(); ++p) {
      REQUIRE(std::abs(shared.gradients[p] - separate.gradients[p]) <= 1e-6);
    }
  }
}

// The gradient of the reference itself, against differences of its loss.
TEST_CASE("the reference of attention has the gradient of its loss") {
  std::vector<std::uint32_t> const tokens{1, 4, 0, 2, 3};
  test::tree_attention model(5, 8, 4, 3);
  auto const batch = test::one_sequence(tokens, 0.7, 1);
  auto const exact = model.run(batch);
  double largest = 0.0;
  for (std::size_t p = 0; p < exact.gradients.size(); p += 7) {
    double const step = 1e-5;
    model.parameter(p) += step;
    double const above = model.run(batch).loss;
    model.parameter(p) -= 2 * step;
    double const below = model.run(batch).loss;
    model.parameter(p) += step;
    CHECK(std::abs((above - below) / (2 * step) - exact.gradients[p]) < 1e-7);
    largest = std::max(largest, std::abs(exact.gradients[p]));
  }
  CHECK(largest > 1e-3);
}

// Each sequence counts its own loss once, also on shared tokens.
TEST_CASE("prefix_loss_weights counts sequences") {
  std::vector<std::vector<int>> const sequences{{7, 7, 1}, {7, 7, 2, 3}, {7, 7}};
  auto const forest = build_prefix_forest(sequences);
  auto const layout = layout_prefixes(forest, first_indices(3));
  std::vector<double> const ones(3, 1.0);
  CHECK(omnibal::prefix_loss_weights(layout, ones, std::vector<std::uint32_t>{0, 0, 0}) ==
        std::vector<double>{0, 3, 1, 1, 1});
  CHECK(omnibal::prefix_loss_weights(layout, ones, std::vector<std::uint32_t>{2, 3, 1}) ==
        std::vector<double>{0, 1, 1, 0, 1});
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)omnibal::prefix_loss_weights(layout, ones, std::vector<std::uint32_t>{2});
        }) == "omnibal::prefix_loss_weights: begins has 1 values for 3 sequences");
  std::vector<double> const bad{1.0, 1.0, NAN};
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)omnibal::prefix_loss_weights(layout, bad, std::vector<std::uint32_t>(3));
        }) == "omnibal::prefix_loss_weights: weights[2] is nan, must be finite");
}

// The errors must name the argument and the value.
TEST_CASE("layouts name wrong arguments") {
  auto const forest = build_prefix_forest(std::vector<std::vector<int>>{{1}});
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)layout_prefixes(forest, std::vector<std::uint32_t>{0, 4});
        }) ==
        "omnibal::layout_prefixes: group[1] is 4, must be less than the number of "
        "sequences, 1");
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)block_prefixes(prefix_layout{}, {0, 128});
        }) == "omnibal::block_prefixes: options.queries is 0, must be positive");
  CHECK(block_prefixes(layout_prefixes(forest, {})).rows == 0);
}
