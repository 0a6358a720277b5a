// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Gathers of thousands of ranks through a leader on each node.

#include <omnibal/check.hpp>
#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Ranks that gather on their node, then among the leaders of the nodes, then on their node again.
/// A gather in a ring of N ranks has N - 1 steps. Here it has L - 1 steps among L leaders, and
/// inside a node about three steps for each rank of the node. Models `communicator`, which is
/// enough to make plans; samples are exchanged by the communicator of all ranks. Nodes may have
/// different numbers of ranks, in any order.
///
/// `node` is a communicator of the ranks of this node, which can exchange; its rank 0 is the
/// leader. The argument `leaders` is a communicator of the leaders; other ranks may pass any
/// communicator of this type, which is not used. Memory: twice the gathered bytes, padded as if
/// each node had the number of ranks of the largest node. Determinism: portable. Errors: the errors
/// of both communicators.
template <exchanging_communicator Node, communicator Leaders>
class two_level_communicator {
 public:
  /// Creates the communicator; `rank` is the rank of the caller among all ranks. A collective call.
  /// Errors: `std::invalid_argument` on all ranks unless the arguments `rank` of all ranks are 0, 1
  /// and so on, each once.
  two_level_communicator(std::size_t rank, Node node, Leaders leaders)
      : rank_(rank), node_(std::move(node)), leaders_(std::move(leaders)) {
    std::uint64_t shape[2] = {0, 0};
    if (is_leader()) {
      auto const sizes = omnibal::all_gather(leaders_, std::uint64_t{node_size()});
      shape[0] = sizes.size();
      shape[1] = *std::max_element(sizes.begin(), sizes.end());
    }
    blocks_.resize(sizeof shape);
    std::copy_n(std::as_bytes(std::span(shape)).begin(), sizeof shape, blocks_.begin());
    broadcast();
    std::copy_n(blocks_.begin(), sizeof shape, std::as_writable_bytes(std::span(shape)).begin());
    most_ = shape[1];
    places_ = shape[0] * shape[1];
    find_ranks();
  }

  [[nodiscard]] std::size_t rank() const { return rank_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    detail::check_size("two_level_communicator::all_gather", "the size of out", out.size(),
                       in.size() * size());
    gather_places(in, std::byte{});
    for (std::size_t place = 0; place != places_; ++place) {
      if (rank_at_[place] == none) continue;
      auto const block = std::span(blocks_).subspan(place * in.size(), in.size());
      std::copy(block.begin(), block.end(), out.subspan(rank_at_[place] * in.size()).begin());
    }
  }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool is_leader() { return detail::own_rank(node_) == 0; }
  [[nodiscard]] std::size_t node_size() { return detail::rank_count(node_); }

  /// Finds the rank of each place. A node has the places of its ranks one after the other, and then
  /// unused places up to the size of the largest node.
  void find_ranks() {
    constexpr std::string_view name = "two_level_communicator";
    std::uint64_t const own = rank_;
    gather_places(std::as_bytes(std::span(&own, 1)), std::byte{0xff});
    rank_at_.resize(places_);
    std::copy_n(blocks_.begin(), places_ * sizeof own,
                std::as_writable_bytes(std::span(rank_at_)).begin());
    std::vector<std::uint64_t> ranks;
    for (std::uint64_t const rank : rank_at_) {
      if (rank != none) ranks.push_back(rank);
    }
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t rank = 0; rank != ranks.size(); ++rank) {
      if (ranks[rank] == rank) continue;
      detail::throw_invalid(name, "sorted, rank[", rank, "] is ", ranks[rank], ", must be ", rank);
    }
    size_ = ranks.size();
  }

  /// Gathers the blocks of all places on all ranks; a place without a rank contains `filler`.
  void gather_places(std::span<std::byte const> in, std::byte filler) {
    block_.assign(most_ * in.size(), filler);
    node_.all_gather(in, std::span(block_).first(node_size() * in.size()));
    blocks_.resize(places_ * in.size());
    if (is_leader()) leaders_.all_gather(block_, blocks_);
    broadcast();
  }

  /// Sends `blocks_` of the leader to all ranks of its node: first a slice to each rank, then the
  /// slices of all ranks to all ranks.
  void broadcast() {
    std::size_t const ranks = node_size();
    if (ranks == 1) return;
    std::size_t const slice = (blocks_.size() + ranks - 1) / ranks;
    blocks_.resize(slice * ranks);
    block_.resize(slice);
    counts_.assign(2 * ranks, 0);
    if (is_leader()) std::fill_n(counts_.begin(), ranks, slice);
    counts_[ranks] = slice;
    auto const counts = std::span(std::as_const(counts_));
    auto const sent = std::span(std::as_const(blocks_)).first(is_leader() ? blocks_.size() : 0);
    node_.all_to_all_v(sent, counts.first(ranks), block_, counts.subspan(ranks));
    node_.all_gather(std::as_const(block_), blocks_);
  }

  std::size_t rank_;
  std::size_t size_ = 0;
  Node node_;
  Leaders leaders_;
  /// The number of ranks of the largest node, and the number of all places.
  std::size_t most_ = 0;
  std::size_t places_ = 0;
  std::vector<std::uint64_t> rank_at_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::byte> block_;
  std::vector<std::byte> blocks_;
};

}  // namespace omnibal::inline v0
