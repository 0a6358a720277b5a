// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The tokens of a group of sequences that share prefixes, as attention kernels need them.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The tokens of a group in depth-first order. A segment consists of the tokens of one node. Token
/// k may attend to token j if `j <= k` and `k < token_ends[j]`, because the tokens below a token
/// are consecutive. These two conditions define the mask completely.
struct prefix_layout {
  /// The value for "no segment" and "no token".
  static constexpr std::uint32_t none = max_index_count;

  /// The node of the forest of each segment.
  std::vector<std::uint32_t> nodes;
  /// The segment of the parent of each segment, `none` for a root.
  std::vector<std::uint32_t> parents;
  /// The end of the subtree of each segment: the segments [s, subtree_ends[s]) are s and the
  /// segments below it. A depth-first traversal enters segment s at time s and leaves it at time
  /// `subtree_ends[s]`.
  std::vector<std::uint32_t> subtree_ends;
  /// The first token of each segment, followed by the number of tokens, as attention kernels expect
  /// `cu_seqlens`.
  std::vector<std::uint32_t> cu_seqlens;
  /// The position of each token in its sequences, which is its position id.
  std::vector<std::uint32_t> positions;
  /// The end of the tokens that may attend to each token: the tokens [j, token_ends[j]) may attend
  /// to token j.
  std::vector<std::uint32_t> token_ends;
  /// The token before each token in its sequences, whose output predicts the token; `none` for the
  /// first token.
  std::vector<std::uint32_t> predictors;
  /// The sequences of the group in the given order, and the segment at which each sequence ends.
  std::vector<std::uint32_t> sequences;
  std::vector<std::uint32_t> ends;

  /// Returns the number of tokens.
  [[nodiscard]] std::size_t tokens() const { return positions.size(); }

  [[nodiscard]] friend bool operator==(prefix_layout const&, prefix_layout const&) = default;
};

struct layout_prefixes_fn {
  /// Lays out the tokens of a group of sequences, such as a group of `pack_prefixes`. The tokens of
  /// a segment are the tokens [depth - length, depth) of the first sequence of its node; see
  /// `prefix_forest::first_sequences`.
  ///
  /// Complexity: n log n in the segments, and linear in the tokens. Memory: 12 bytes for each token
  /// and 20 for each segment. Determinism: portable. Errors: `std::invalid_argument` if a sequence
  /// is not in the forest; `std::length_error` above 2^32 - 1 tokens.
  [[nodiscard]] prefix_layout operator()(prefix_forest const& forest,
                                         std::span<std::uint32_t const> group) const {
    constexpr std::string_view name = "layout_prefixes";
    constexpr std::uint32_t none = prefix_layout::none;
    prefix_layout result;
    for (std::size_t k = 0; k != group.size(); ++k) {
      if (group[k] >= forest.sequence_count()) {
        detail::throw_invalid(name, "group[", k, "] is ", group[k],
                              ", must be less than the number of sequences, ",
                              forest.sequence_count());
      }
      result.sequences.push_back(group[k]);
      result.ends.push_back(forest.ends()[group[k]]);
    }
    collect_nodes(forest, result.ends, result.nodes);
    auto const segment_of = [&](std::uint32_t node) {
      auto const found = std::lower_bound(result.nodes.begin(), result.nodes.end(), node);
      return static_cast<std::uint32_t>(found - result.nodes.begin());
    };
    for (std::uint32_t& end : result.ends) end = segment_of(end);
    result.cu_seqlens.push_back(0);
    std::uint64_t tokens = 0;
    for (std::uint32_t const node : result.nodes) {
      std::uint32_t const parent = forest.parents()[node];
      result.parents.push_back(parent == prefix_forest::no_parent ? none : segment_of(parent));
      result.subtree_ends.push_back(segment_of(forest.subtree_ends()[node]));
      detail::checked_add(name, "the number of tokens", tokens, forest.lengths()[node]);
      detail::check_index_count(name, "the layout", static_cast<std::size_t>(tokens));
      detail::check_index_count(name, "a path", static_cast<std::size_t>(forest.depths()[node]));
      result.cu_seqlens.push_back(static_cast<std::uint32_t>(tokens));
    }
    fill_tokens(forest, result);
    return result;
  }

 private:
  static void collect_nodes(prefix_forest const& forest, std::vector<std::uint32_t> ends,
                            std::vector<std::uint32_t>& nodes) {
    std::sort(ends.begin(), ends.end());
    std::uint32_t before = prefix_forest::no_parent;
    for (std::uint32_t const end : ends) {
      // Ancestors that do not follow the end of the path before are already in the list.
      for (std::uint32_t v = end; v != prefix_forest::no_parent; v = forest.parents()[v]) {
        if (before != prefix_forest::no_parent && v <= before) break;
        nodes.push_back(v);
      }
      before = end;
    }
    std::sort(nodes.begin(), nodes.end());
  }

  static void fill_tokens(prefix_forest const& forest, prefix_layout& result) {
    std::size_t const count = result.cu_seqlens.back();
    result.positions.reserve(count);
    result.token_ends.reserve(count);
    result.predictors.reserve(count);
    // The last token of the path through each segment; a segment may have no tokens.
    std::vector<std::uint32_t> last(result.nodes.size());
    for (std::size_t s = 0; s != result.nodes.size(); ++s) {
      std::uint32_t const begin = result.cu_seqlens[s];
      std::uint32_t const end = result.cu_seqlens[s + 1];
      auto position = static_cast<std::uint32_t>(forest.depths()[result.nodes[s]] - (end - begin));
      std::uint32_t before =
          result.parents[s] == prefix_layout::none ? prefix_layout::none : last[result.parents[s]];
      for (std::uint32_t k = begin; k != end; ++k) {
        result.positions.push_back(position++);
        result.token_ends.push_back(result.cu_seqlens[result.subtree_ends[s]]);
        result.predictors.push_back(before);
        before = k;
      }
      last[s] = before;
    }
  }
};

/// Lays out the tokens of a group of sequences that share prefixes; see `layout_prefixes_fn`.
inline constexpr layout_prefixes_fn layout_prefixes{};

struct prefix_loss_weights_fn {
  /// Returns the weight of each token of a layout in the loss: the sum of `weights` over the
  /// sequences whose loss has the token. The loss of a sequence begins at its element of `begins`,
  /// a position such as the length of its prompt. Its element of `weights` multiplies this loss;
  /// examples are 1, and its advantage divided by its length. The output at `predictors[k]`
  /// predicts token k. The loss of a batch is the sum, over its tokens, of the weight times the
  /// loss of the prediction. This sum equals the sum of the losses of the sequences without shared
  /// prefixes. The first token of a sequence has no prediction, so its weight is zero.
  ///
  /// `weights` and `begins` have an element for each sequence of the layout, in the order of
  /// `layout.sequences`. Complexity: linear in the tokens of all sequences. Determinism: portable,
  /// because the weights of a token are added in the order of the sequences. Errors:
  /// `std::invalid_argument` if a list has another length or a weight is not finite.
  [[nodiscard]] std::vector<double> operator()(prefix_layout const& layout,
                                               std::span<double const> weights,
                                               std::span<std::uint32_t const> begins) const {
    constexpr std::string_view name = "prefix_loss_weights";
    detail::check_size(name, "weights", weights.size(), layout.sequences.size(), "sequences");
    detail::check_size(name, "begins", begins.size(), layout.sequences.size(), "sequences");
    std::vector<double> result(layout.tokens(), 0.0);
    for (std::size_t i = 0; i != weights.size(); ++i) {
      double const weight = weights[i];
      if (!(weight - weight == 0.0)) {
        detail::throw_invalid(name, "weights[", i, "] is ", weight, ", must be finite");
      }
      for (std::uint32_t s = layout.ends[i]; s != prefix_layout::none; s = layout.parents[s]) {
        for (std::uint32_t k = layout.cu_seqlens[s]; k != layout.cu_seqlens[s + 1]; ++k) {
          if (layout.positions[k] < begins[i] || layout.predictors[k] == prefix_layout::none) {
            continue;
          }
          result[k] += weight;
        }
      }
    }
    return result;
  }
};

/// Returns the weight of each token of a layout in the loss; see `prefix_loss_weights_fn`.
inline constexpr prefix_loss_weights_fn prefix_loss_weights{};

}  // namespace omnibal::inline v0
