#pragma once

/// \file
/// Which ranks share a node.

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/nccl/detail/host_identity.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::nccl {

/// The nodes of all ranks, numbered in the order of their first ranks.
class node_map {
 public:
  /// `identity[r]` is equal for two ranks where they are on the same node.
  explicit node_map(std::span<std::uint64_t const> identity) : node_of_(identity.size()) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ranks;
    for (std::uint64_t const host : identity) {
      ranks.emplace_back(host, static_cast<std::uint32_t>(ranks.size()));
    }
    std::sort(ranks.begin(), ranks.end());
    // The first rank of a node stands for it until the nodes are numbered.
    for (std::size_t i = 0; i != ranks.size(); ++i) {
      bool const is_first = i == 0 || ranks[i].first != ranks[i - 1].first;
      node_of_[ranks[i].second] = is_first ? ranks[i].second : node_of_[ranks[i - 1].second];
    }
    for (std::uint32_t rank = 0; rank != node_of_.size(); ++rank) {
      std::uint32_t const first = node_of_[rank];
      node_of_[rank] = first == rank ? node_count_++ : node_of_[first];
    }
  }

  [[nodiscard]] std::size_t node_count() const { return node_count_; }
  [[nodiscard]] std::size_t node_of(std::size_t rank) const { return node_of_[rank]; }
  [[nodiscard]] std::span<std::uint32_t const> nodes() const { return node_of_; }

  /// What `make_plan_options` asks for, or 1 where ranks are not numbered by node: each node has as
  /// many consecutive ranks as the first one, the last may have fewer. Then ask for a communicator
  /// in the order of the nodes, by `split(0, order_of(rank))`.
  [[nodiscard]] std::size_t ranks_per_node() const {
    if (node_of_.empty()) return 1;
    auto const first_other = std::find_if(node_of_.begin(), node_of_.end(),
                                          [](std::uint32_t node) { return node != 0; });
    auto const width = static_cast<std::size_t>(first_other - node_of_.begin());
    for (std::size_t rank = 0; rank != node_of_.size(); ++rank) {
      if (node_of_[rank] != rank / width) return 1;
    }
    return width;
  }

  /// The place of a rank where ranks are sorted by node and then by rank.
  [[nodiscard]] int order_of(std::size_t rank) const {
    int order = 0;
    for (std::size_t other = 0; other != node_of_.size(); ++other) {
      bool const is_before =
          node_of_[other] != node_of_[rank] ? node_of_[other] < node_of_[rank] : other < rank;
      if (is_before) ++order;
    }
    return order;
  }

 private:
  std::vector<std::uint32_t> node_of_;
  std::uint32_t node_count_ = 0;
};

struct find_nodes_fn {
  /// Which ranks share a node, equal on all ranks, from the host's name and boot id or, where it is
  /// set, from `NCCL_HOSTID`, as NCCL finds it. With `make_plan_options::ranks_per_node` from it,
  /// plans let few bytes leave a node.
  ///
  /// A collective call of one collective; for any communicator. Complexity: n log n in the ranks.
  /// Memory: 28 bytes per rank. Determinism: portable. Errors: those of the communicator.
  template <omnibal::communicator Comm>
  [[nodiscard]] node_map operator()(Comm&& comm) const {
    return node_map(all_gather(comm, detail::host_identity()));
  }
};

/// Which ranks share a node; see `find_nodes_fn`.
inline constexpr find_nodes_fn find_nodes{};

}  // namespace omnibal::inline v0::nccl
