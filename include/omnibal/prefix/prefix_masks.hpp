// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Masks of sequences that share prefixes, in the forms of two attention libraries.

#include <omnibal/check.hpp>
#include <omnibal/prefix/prefix_layout.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Slices of a mask. In a slice, the tokens of a range of queries attend to all tokens of a range
/// of keys, or causally to the tokens of the same range. This is the form of `flex_flash_attn_func`
/// of MagiAttention, whose `attn_type_map` has 0 for full and 1 for causal attention.
struct prefix_slices {
  /// The ranges [begin, end) of the queries and of the keys of each slice.
  std::vector<std::array<std::uint32_t, 2>> q_ranges;
  std::vector<std::array<std::uint32_t, 2>> k_ranges;
  std::vector<std::uint32_t> attn_type_map;

  [[nodiscard]] friend bool operator==(prefix_slices const&, prefix_slices const&) = default;
};

struct slice_prefixes_fn {
  /// Returns the slices of a layout: each segment attends causally to itself and fully to its
  /// ancestors. Ancestors whose tokens are adjacent are one range of keys. No pair of tokens is in
  /// two slices.
  ///
  /// Complexity: linear in the result and in the depths of the segments. Determinism: portable.
  [[nodiscard]] prefix_slices operator()(prefix_layout const& layout) const {
    prefix_slices result;
    for (std::uint32_t s = 0; s != layout.nodes.size(); ++s) {
      std::array<std::uint32_t, 2> const own{layout.cu_seqlens[s], layout.cu_seqlens[s + 1]};
      if (own[0] == own[1]) continue;
      result.q_ranges.push_back(own);
      result.k_ranges.push_back(own);
      result.attn_type_map.push_back(1);
      std::array<std::uint32_t, 2> run{own[0], own[0]};
      bool is_open = false;
      for (std::uint32_t a = layout.parents[s]; a != prefix_layout::none; a = layout.parents[a]) {
        std::array<std::uint32_t, 2> const keys{layout.cu_seqlens[a], layout.cu_seqlens[a + 1]};
        if (keys[0] == keys[1]) continue;
        if (is_open && keys[1] == run[0]) {
          run[0] = keys[0];
          continue;
        }
        if (is_open) add(result, own, run);
        run = keys;
        is_open = true;
      }
      if (is_open) add(result, own, run);
    }
    return result;
  }

 private:
  static void add(prefix_slices& result, std::array<std::uint32_t, 2> queries,
                  std::array<std::uint32_t, 2> keys) {
    result.q_ranges.push_back(queries);
    result.k_ranges.push_back(keys);
    result.attn_type_map.push_back(0);
  }
};

/// Returns the mask of a layout as slices; see `slice_prefixes_fn`.
inline constexpr slice_prefixes_fn slice_prefixes{};

/// Blocks of a mask. Row q lists the blocks of keys to which queries of block q attend. The first
/// `kv_num_blocks[q]` of the `columns` elements of row q of `kv_indices` are the blocks that are
/// partly masked. `full_kv_num_blocks` and `full_kv_indices` list the blocks without masked pairs
/// in the same way. This is the form of `BlockMask.from_kv_blocks` of FlexAttention, without its
/// dimensions for batch and head.
struct prefix_block_mask {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<std::uint32_t> kv_num_blocks;
  std::vector<std::uint32_t> kv_indices;
  std::vector<std::uint32_t> full_kv_num_blocks;
  std::vector<std::uint32_t> full_kv_indices;

  [[nodiscard]] friend bool operator==(prefix_block_mask const&,
                                       prefix_block_mask const&) = default;
};

struct prefix_block_options {
  /// The numbers of tokens in a block of queries and in a block of keys.
  std::uint32_t queries = 128;
  std::uint32_t keys = 128;
};

struct block_prefixes_fn {
  /// Returns the blocks of the mask of a layout. Padding tokens after the end of the layout fill
  /// the last block. They attend to no token, so a block with padding tokens is partly masked.
  /// `mask_mod` of FlexAttention is `(k <= q) & (q < token_ends[k])`.
  ///
  /// Complexity: linear in the number of pairs of blocks, and in the tokens of blocks of keys for
  /// each row of queries in which a subtree of their tokens ends. Memory: 8 bytes for each pair of
  /// blocks. Determinism: portable. Errors: `std::invalid_argument` if a block has no tokens.
  [[nodiscard]] prefix_block_mask operator()(prefix_layout const& layout,
                                             prefix_block_options const& options = {}) const {
    constexpr std::string_view name = "block_prefixes";
    detail::check_positive(name, "options.queries", options.queries);
    detail::check_positive(name, "options.keys", options.keys);
    auto const count = static_cast<std::uint32_t>(layout.tokens());
    prefix_block_mask result;
    result.rows = blocks_of(count, options.queries);
    result.columns = blocks_of(count, options.keys);
    std::size_t const pairs = std::size_t{result.rows} * result.columns;
    result.kv_num_blocks.assign(result.rows, 0);
    result.full_kv_num_blocks.assign(result.rows, 0);
    result.kv_indices.assign(pairs, 0);
    result.full_kv_indices.assign(pairs, 0);
    // For most pairs of blocks, the smallest and the largest of the ends of the tokens of the keys
    // decide the kind of the pair.
    std::vector<std::uint32_t> least(result.columns, count);
    std::vector<std::uint32_t> most(result.columns, 0);
    for (std::uint32_t k = 0; k != count; ++k) {
      std::uint32_t const block = k / options.keys;
      least[block] = std::min(least[block], layout.token_ends[k]);
      most[block] = std::max(most[block], layout.token_ends[k]);
    }
    for (std::uint32_t row = 0; row != result.rows; ++row) {
      std::uint64_t const first = std::uint64_t{row} * options.queries;
      std::uint64_t const last = first + options.queries;
      for (std::uint32_t column = 0; column != result.columns; ++column) {
        std::uint64_t const begin = std::uint64_t{column} * options.keys;
        std::uint64_t const end = begin + options.keys;
        if (begin >= last) break;
        if (most[column] <= first) continue;
        bool const is_full = last <= count && end <= first + 1 && last <= least[column];
        if (is_full) {
          append(result.full_kv_num_blocks, result.full_kv_indices, row, column, result.columns);
        } else if (has_pair(layout, first, std::min<std::uint64_t>(last, count), begin,
                            std::min<std::uint64_t>(end, count))) {
          append(result.kv_num_blocks, result.kv_indices, row, column, result.columns);
        }
      }
    }
    return result;
  }

 private:
  [[nodiscard]] static std::uint32_t blocks_of(std::uint32_t tokens, std::uint32_t block) {
    return tokens / block + (tokens % block != 0 ? 1 : 0);
  }

  static void append(std::vector<std::uint32_t>& counts, std::vector<std::uint32_t>& indices,
                     std::uint32_t row, std::uint32_t column, std::uint32_t columns) {
    indices[std::size_t{row} * columns + counts[row]++] = column;
  }

  /// Returns true if a query of [first, last) may attend to a key of [begin, end).
  [[nodiscard]] static bool has_pair(prefix_layout const& layout, std::uint64_t first,
                                     std::uint64_t last, std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t k = begin; k != end; ++k) {
      if (std::max(first, k) < std::min<std::uint64_t>(last, layout.token_ends[k])) return true;
    }
    return false;
  }
};

/// Returns the blocks of the mask of a layout; see `block_prefixes_fn`.
inline constexpr block_prefixes_fn block_prefixes{};

}  // namespace omnibal::inline v0
