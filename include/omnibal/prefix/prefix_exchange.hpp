// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange plans that move a shared prefix once to each rank.

#include <omnibal/check.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The plan for the exchange of the nodes of a forest. The samples of `plan` are copies of nodes:
/// sample k is the tokens of node `nodes[k]`, sent to one rank.
struct prefix_exchange_plan {
  exchange_plan plan;
  /// The node of each sample of the plan, in the order before the exchange.
  std::vector<std::uint32_t> nodes;
};

struct prefix_exchange_fn {
  /// Plans the exchange that brings each rank the nodes of its sequences, each node once. Before
  /// the exchange, rank r has the sequences [home_offsets[r], home_offsets[r + 1]) of the forest.
  /// Afterwards it has the sequences of the cells r, r + ranks, ... of `cells`, such as
  /// `steps.batches.cells()` of `balance_prefixes`. A rank receives its nodes in depth-first order.
  /// If the rank has the node before the exchange, it sends the node to itself. Otherwise it
  /// receives the node from the rank of the lowest sequence whose path contains the node.
  /// `exchange_samples` moves the tokens.
  ///
  /// A sequence may be in no cell, if it is oversized. Complexity: k log k for k copies of
  /// nodes, and log(ranks) for each node of the forest. Memory: 40 bytes for each copy of a node.
  /// Determinism: portable. Errors: `std::invalid_argument` if offsets do not ascend from zero to
  /// the number of sequences, or if the number of cells is not a multiple of the ranks. It is also
  /// thrown if a cell has an index that is not a sequence, or if `token_bytes` is negative. Further
  /// errors: `std::overflow_error` if the sum of the bytes exceeds 2^63 - 1.
  template <offset_range Offsets>
  [[nodiscard]] prefix_exchange_plan operator()(prefix_forest const& forest,
                                                Offsets const& home_offsets, groups_argument cells,
                                                std::int64_t token_bytes,
                                                placement_options const& options = {}) const {
    std::vector<std::uint32_t> offsets;
    detail::copy_home_offsets(name, home_offsets, offsets);
    detail::check_weight(name, "token_bytes", token_bytes);
    std::size_t const ranks = offsets.size() - 1;
    if (offsets.back() != forest.sequence_count()) {
      detail::throw_invalid(name, "home_offsets ends with ", offsets.back(),
                            ", must end with the number of sequences, ", forest.sequence_count());
    }
    if (cells.size() % ranks != 0) {
      detail::throw_invalid(name, "there are ", cells.size(), " cells for ", ranks, " ranks");
    }
    auto const sent = copies_of_ranks(forest, offsets, cells);
    prefix_exchange_plan result;
    std::vector<std::uint32_t> sample_offsets{0};
    for (auto const& copies : sent) {
      for (node_copy const& copy : copies) result.nodes.push_back(copy.node);
      detail::check_index_count(name, "the list of copies", result.nodes.size());
      sample_offsets.push_back(static_cast<std::uint32_t>(result.nodes.size()));
    }
    grouping const parts = received_copies(sent, result.nodes);
    auto const bytes = [&](std::uint32_t sample) {
      std::uint64_t const length = forest.lengths()[result.nodes[sample]];
      if (length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        detail::throw_overflow(name, "the length of a node");
      }
      return detail::checked_product(name, "the bytes of a node", static_cast<std::int64_t>(length),
                                     token_bytes);
    };
    result.plan = make_plan(sample_offsets, parts, bytes, options);
    return result;
  }

 private:
  static constexpr std::string_view name = "prefix_exchange";

  /// A node that a rank sends, and its receiver.
  struct node_copy {
    std::uint32_t node;
    std::uint32_t to;
  };

  /// Returns the copies that each rank sends. A rank that needs a node sends the node to itself if
  /// it has the node; otherwise the rank of the lowest sequence of the node sends it.
  [[nodiscard]] static std::vector<std::vector<node_copy>> copies_of_ranks(
      prefix_forest const& forest, std::span<std::uint32_t const> home_offsets,
      grouping_view cells) {
    std::size_t const ranks = home_offsets.size() - 1;
    std::vector<std::uint32_t> const lowest = lowest_ranks(forest, home_offsets);
    std::vector<std::vector<node_copy>> sent(ranks);
    std::vector<std::uint32_t> home_mark(forest.size(), prefix_forest::no_parent);
    std::vector<std::uint32_t> needed_mark(forest.size(), prefix_forest::no_parent);
    std::vector<std::uint32_t> needed;
    for (std::uint32_t to = 0; to != ranks; ++to) {
      for (std::uint32_t i = home_offsets[to]; i != home_offsets[to + 1]; ++i) {
        mark(forest, i, to, home_mark, [](std::uint32_t) {});
      }
      needed.clear();
      for (std::size_t cell = to; cell < cells.size(); cell += ranks) {
        for (std::uint32_t const i : cells[cell]) {
          if (i >= forest.sequence_count()) {
            detail::throw_invalid(name, "cell ", cell, " has sequence ", i, ", but there are ",
                                  forest.sequence_count());
          }
          mark(forest, i, to, needed_mark, [&](std::uint32_t v) { needed.push_back(v); });
        }
      }
      std::sort(needed.begin(), needed.end());
      for (std::uint32_t const v : needed) {
        sent[home_mark[v] == to ? to : lowest[v]].push_back({v, to});
      }
    }
    return sent;
  }

  /// Returns the rank of the lowest sequence of each node before the exchange.
  [[nodiscard]] static std::vector<std::uint32_t> lowest_ranks(
      prefix_forest const& forest, std::span<std::uint32_t const> home_offsets) {
    std::vector<std::uint32_t> result;
    result.reserve(forest.size());
    for (std::uint32_t const first : forest.first_sequences()) {
      auto const next = std::upper_bound(home_offsets.begin(), home_offsets.end(), first);
      result.push_back(static_cast<std::uint32_t>(next - home_offsets.begin() - 1));
    }
    return result;
  }

  /// Returns the copies that each rank receives, by ascending node. A copy is its index in the list
  /// of all sent copies, whose nodes are `nodes`.
  [[nodiscard]] static grouping received_copies(std::span<std::vector<node_copy> const> sent,
                                                std::span<std::uint32_t const> nodes) {
    std::vector<std::vector<std::uint32_t>> received(sent.size());
    std::uint32_t next = 0;
    for (auto const& copies : sent) {
      for (node_copy const& copy : copies) received[copy.to].push_back(next++);
    }
    grouping parts;
    for (auto& copies : received) {
      std::sort(copies.begin(), copies.end(), [&](std::uint32_t left, std::uint32_t right) {
        return nodes[left] < nodes[right];
      });
      for (std::uint32_t const copy : copies) parts.push(copy);
      parts.close();
    }
    return parts;
  }

  /// Marks the nodes of the path of a sequence for a rank, from the end of the sequence up to the
  /// first node that is already marked. Calls `visit` for each of them.
  template <class Visit>
  static void mark(prefix_forest const& forest, std::uint32_t sequence, std::uint32_t rank,
                   std::vector<std::uint32_t>& marks, Visit const& visit) {
    std::uint32_t v = forest.ends()[sequence];
    while (v != prefix_forest::no_parent && marks[v] != rank) {
      marks[v] = rank;
      visit(v);
      v = forest.parents()[v];
    }
  }
};

/// Plans the exchange that brings each rank the nodes of its sequences; see `prefix_exchange_fn`.
inline constexpr prefix_exchange_fn prefix_exchange{};

}  // namespace omnibal::inline v0
