// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The moves in `rebalance` that a rule for counts requires.

#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// Moves samples until the number of samples on each rank is within its limits. Each rank that
/// sends has a k-d tree of its samples, in which each node stores the box of the costs. Later calls
/// reuse its memory.
template <std::size_t R>
class count_mover {
 public:
  /// Moves samples. Each sample moves from the rank with the largest load that may lose a sample to
  /// the rank with the smallest load that may gain a sample. Ranks outside of their limits go
  /// first. The sender selects the sample that leaves the least excess above the target on both
  /// ranks; then the fewest bytes and the lowest index decide. Precondition: all samples are at
  /// home.
  void run(assignment_state<R>& state, std::int64_t target) {
    rank_count_limits const& counts = state.counts;
    auto const is_above = [&](std::size_t rank) { return counts.is_above(rank); };
    auto const is_below = [&](std::size_t rank) { return counts.is_below(rank); };
    bool follows = true;
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      follows = follows && !is_above(rank) && !is_below(rank);
    }
    if (follows) return;
    collect_parts(state.home_of, state.ranks(), offsets_, samples_);
    boxes_.resize(samples_.size());
    has_tree_.assign(state.ranks(), false);
    // A rank never sends samples after it has received some, or receives after it has sent some.
    pair_ranks(state, target, is_above, is_below);
    pair_ranks(
        state, target, [&](std::size_t rank) { return counts.may_leave(rank); }, is_below);
    pair_ranks(state, target, is_above, [&](std::size_t rank) { return counts.may_arrive(rank); });
  }

 private:
  using rank_queue = std::vector<load_order<std::int64_t>>;
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// The costs of a sample by kind and, with several kinds, their sum.
  static constexpr std::size_t axes = R == 1 ? 1 : R + 1;
  using point = std::array<std::int64_t, axes>;
  /// The smallest and largest costs of samples of one rank, and the sample with the fewest bytes.
  struct box {
    point min;
    point max;
    std::int64_t bytes = 0;
    std::uint32_t sample = none;
  };
  /// The samples of a node.
  struct range {
    std::size_t first;
    std::size_t last;

    [[nodiscard]] std::size_t size() const { return last - first; }
    [[nodiscard]] std::size_t middle() const { return first + size() / 2; }
    [[nodiscard]] range left() const { return {first, middle()}; }
    [[nodiscard]] range right() const { return {middle(), last}; }
  };
  /// The excess, the bytes and the index by which a sample is chosen; for a node with several
  /// samples, a lower bound on these keys.
  using move_key = std::tuple<std::int64_t, std::int64_t, std::uint32_t>;
  /// The sample with the smallest key until now.
  struct choice {
    move_key key{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max(),
                 none};
    std::size_t place = 0;
  };
  struct sender_and_receiver {
    std::uint32_t from;
    std::uint32_t to;
  };

  /// Moves samples from ranks that `leaves` accepts to ranks that `arrives` accepts.
  template <class Leaves, class Arrives>
  void pair_ranks(assignment_state<R>& state, std::int64_t target, Leaves const& leaves,
                  Arrives const& arrives) {
    senders_.clear();
    receivers_.clear();
    for (std::uint32_t rank = 0; rank != state.ranks(); ++rank) {
      if (leaves(rank)) push_sender(state, rank);
      if (arrives(rank)) push_receiver(state, rank);
    }
    while (!senders_.empty() && !receivers_.empty()) {
      sender_and_receiver const ranks{pop(senders_), pop(receivers_)};
      move_one(state, target, ranks);
      if (leaves(ranks.from)) push_sender(state, ranks.from);
      if (arrives(ranks.to)) push_receiver(state, ranks.to);
    }
  }

  void push_sender(assignment_state<R> const& state, std::uint32_t rank) {
    push(senders_, {-largest_amount(state.loads[rank]), rank});
  }
  void push_receiver(assignment_state<R> const& state, std::uint32_t rank) {
    push(receivers_, {largest_amount(state.loads[rank]), rank});
  }
  static bool is_later(load_order<std::int64_t> a, load_order<std::int64_t> b) { return b < a; }
  static void push(rank_queue& queue, load_order<std::int64_t> entry) {
    queue.push_back(entry);
    std::push_heap(queue.begin(), queue.end(), is_later);
  }
  static std::uint32_t pop(rank_queue& queue) {
    std::pop_heap(queue.begin(), queue.end(), is_later);
    std::uint32_t const rank = queue.back().part;
    queue.pop_back();
    return rank;
  }

  void move_one(assignment_state<R>& state, std::int64_t target, sender_and_receiver ranks) {
    range const root{offsets_[ranks.from], offsets_[ranks.from + 1]};
    if (!has_tree_[ranks.from]) build(state, root, 0);
    has_tree_[ranks.from] = true;
    resources<R> const& from = state.loads[ranks.from];
    resources<R> const& to = state.loads[ranks.to];
    auto const key_of = [&](box const& node) {
      std::int64_t excess = 0;
      std::int64_t lost = 0;
      std::int64_t gained = 0;
      for (std::size_t r = 0; r != R; ++r) {
        // The excess of both ranks is convex in the moved cost, and smallest at this cost.
        std::int64_t const least = std::min(from[r] - target, target - to[r]);
        std::int64_t const moved = std::clamp(least, node.min[r], node.max[r]);
        excess += std::max<std::int64_t>(0, from[r] - moved - target) +
                  std::max<std::int64_t>(0, to[r] + moved - target);
        lost += from[r] - target;
        gained += to[r] - target;
      }
      // A sum of costs bounds the excess of either rank.
      if (R != 1) excess = std::max({excess, lost - node.max.back(), gained + node.min.back()});
      return move_key{excess, node.bytes, node.sample};
    };
    choice best;
    search(state, root, key_of, best);
    state.move(samples_[best.place], ranks.to);
    renew(state, root, best.place);
  }

  [[nodiscard]] static point point_of(assignment_state<R> const& state, std::uint32_t sample) {
    point result;
    for (std::size_t r = 0; r != R; ++r) result[r] = state.costs[sample][r];
    if (R != 1) result.back() = sum_of(state.costs[sample]);
    return result;
  }

  /// Sorts the samples of a node into a tree. The axes take turns in splitting.
  void build(assignment_state<R> const& state, range node, std::size_t axis) {
    if (node.size() < 2) return;
    auto const at = [this](std::size_t place) {
      return samples_.begin() + static_cast<std::ptrdiff_t>(place);
    };
    std::nth_element(at(node.first), at(node.middle()), at(node.last),
                     [&](std::uint32_t a, std::uint32_t b) {
                       return std::tuple(point_of(state, a)[axis], state.bytes[a][0], a) <
                              std::tuple(point_of(state, b)[axis], state.bytes[b][0], b);
                     });
    build(state, node.left(), (axis + 1) % axes);
    build(state, node.right(), (axis + 1) % axes);
    join(state, node);
  }

  /// Finds the sample of a node with the smallest key. Stores it in `best` if its key is below the
  /// key of `best`.
  template <class KeyOf>
  void search(assignment_state<R> const& state, range node, KeyOf const& key_of,
              choice& best) const {
    box const own = box_of(state, node);
    if (own.sample == none) return;
    move_key const key = key_of(own);
    if (!(key < best.key)) return;
    if (node.size() == 1) {
      best = {key, node.first};
      return;
    }
    bool const is_left_first =
        key_of(box_of(state, node.left())) <= key_of(box_of(state, node.right()));
    search(state, is_left_first ? node.left() : node.right(), key_of, best);
    search(state, is_left_first ? node.right() : node.left(), key_of, best);
  }

  /// Updates the boxes of all nodes that contain a place after its sample has left.
  void renew(assignment_state<R> const& state, range node, std::size_t place) {
    if (node.size() < 2) return;
    renew(state, place < node.middle() ? node.left() : node.right(), place);
    join(state, node);
  }

  /// Computes the box of a node from its halves.
  void join(assignment_state<R> const& state, range node) {
    box result = box_of(state, node.left());
    box const other = box_of(state, node.right());
    if (result.sample == none) {
      result = other;
    } else if (other.sample != none) {
      for (std::size_t r = 0; r != axes; ++r) {
        result.min[r] = std::min(result.min[r], other.min[r]);
        result.max[r] = std::max(result.max[r], other.max[r]);
      }
      if (std::tie(other.bytes, other.sample) < std::tie(result.bytes, result.sample)) {
        result.bytes = other.bytes;
        result.sample = other.sample;
      }
    }
    boxes_[node.middle()] = result;
  }

  /// Returns the box of the samples of a node that have not left. The box is stored at the middle
  /// of the node, which is the middle of no other node.
  [[nodiscard]] box box_of(assignment_state<R> const& state, range node) const {
    if (node.size() > 1) return boxes_[node.middle()];
    std::uint32_t const sample = samples_[node.first];
    point const at = point_of(state, sample);
    return {at, at, state.bytes[sample][0], state.is_home(sample) ? sample : none};
  }

  /// The samples of each rank, in the order of the tree if there is one.
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> samples_;
  std::vector<box> boxes_;
  std::vector<bool> has_tree_;
  rank_queue senders_;
  rank_queue receivers_;
};

}  // namespace omnibal::inline v0::detail
