// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The nodes of ranks: which ranks run on the same host.

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace omnibal::inline v0::nccl {

namespace detail {

/// Returns a digest of the text, equal on all hosts.
[[nodiscard]] inline std::uint64_t digest_of_text(std::string_view text) {
  std::uint64_t digest = text.size();
  for (char const c : text) digest = rng::mix(digest + static_cast<unsigned char>(c) + 1);
  return digest;
}

/// Returns the identity of the host: a digest of `NCCL_HOSTID` if this variable is set, otherwise
/// of the name and the boot id of the host. The name alone is not enough: containers may have equal
/// names on different hosts, or different names on one host.
[[nodiscard]] inline std::uint64_t host_identity() {
  if (char const* const given = std::getenv("NCCL_HOSTID"); given != nullptr) {
    return digest_of_text(given);
  }
  char name[256] = {};
  std::string identity = ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    char boot[64] = {};
    if (std::fgets(boot, sizeof(boot), file) != nullptr) identity += boot;
    std::fclose(file);
  }
  return digest_of_text(identity);
}

}  // namespace detail

/// The nodes of all ranks, numbered in the order of their first ranks.
class node_map {
 public:
  /// Numbers the nodes: `identity[r]` is equal for two ranks if they are on the same node.
  explicit node_map(std::span<std::uint64_t const> identity) {
    std::map<std::uint64_t, std::uint32_t> number_of;
    for (std::uint64_t const host : identity) {
      node_of_.push_back(number_of.try_emplace(host, node_count_).first->second);
      node_count_ = static_cast<std::uint32_t>(number_of.size());
    }
  }

  [[nodiscard]] std::size_t node_count() const { return node_count_; }
  [[nodiscard]] std::size_t node_of(std::size_t rank) const { return node_of_[rank]; }
  /// Returns the node of each rank, as `make_plan_options::node_of` requires it, valid while this
  /// object lives.
  [[nodiscard]] std::span<std::uint32_t const> nodes() const& { return node_of_; }
  void nodes() const&& = delete;

  /// Returns `make_plan_options::ranks_per_node`, or 1 if ranks are not numbered by node. Ranks are
  /// numbered by node if each node has the same number of consecutive ranks as the first node; the
  /// last node may have fewer. Otherwise make a communicator in the order of the nodes, by
  /// `split(0, order_of(rank))`.
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

  /// Returns the place of a rank if ranks are sorted by node and then by rank.
  [[nodiscard]] int order_of(std::size_t rank) const {
    std::pair const own(node_of_[rank], rank);
    int order = 0;
    for (std::size_t other = 0; other != node_of_.size(); ++other) {
      order += std::pair(node_of_[other], other) < own ? 1 : 0;
    }
    return order;
  }

 private:
  std::vector<std::uint32_t> node_of_;
  std::uint32_t node_count_ = 0;
};

struct find_nodes_fn {
  /// Finds the ranks that share a node, equal on all ranks, from the host's name and boot id or, if
  /// it is set, from `NCCL_HOSTID`, as NCCL does. With its `nodes()` as
  /// `make_plan_options::node_of`, plans send few bytes between nodes.
  ///
  /// A collective call. Accepts any communicator. Complexity: one collective, and n log n in the
  /// ranks. Memory: 12 bytes per rank and 48 per node. Determinism: portable. Errors: the errors of
  /// the communicator.
  template <omnibal::communicator Comm>
  [[nodiscard]] node_map operator()(Comm&& comm) const {
    return node_map(all_gather(comm, detail::host_identity()));
  }
};

/// Finds the ranks that share a node; see `find_nodes_fn`.
inline constexpr find_nodes_fn find_nodes{};

}  // namespace omnibal::inline v0::nccl
