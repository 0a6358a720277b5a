// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An assignment of parts to ranks that keeps the most bytes on their node and their rank.

#include <omnibal/config.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Assigns parts to places so that the sum of their gains is largest. A place has room for several
/// parts, and a part may have no place. Parts are added one after the other by shortest augmenting
/// paths. Parts have profits and places have prices. Their sum is an upper bound on the gain of any
/// assignment, and they make the lengths of all edges non-negative. Beyond a number of steps, the
/// search for each path considers only a few parts. The sum is then still a bound, but the
/// assignment may not reach it. Later calls reuse its memory.
///
/// A network has `parts()`, `places()`, `room(place)` and `largest_room()`. It calls
/// `for_each_offer(part, f)` as f(place, gain) for the places at which a part gains something. It
/// may have `hubs()`, numbered after the places. A hub represents `members(hub)`, places [first,
/// last), at each of which the part has that gain. `hub_of(place)` is the hub of a place.
///
/// Source: Kuhn, 1955; Jonker, Volgenant, "A shortest augmenting path algorithm for dense and
/// sparse linear assignment problems", 1987.
template <class Amount>
class sparse_assignment {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Assigns the parts. Precondition: no sum of gains exceeds a quarter of the largest amount.
  /// Allocates only for a network that is larger than the networks before.
  template <class Network>
  void run(Network const& network, std::uint64_t max_steps) {
    std::size_t const vertices = network.places() + network.hubs();
    room_ = network.largest_room();
    profit_.assign(network.parts(), 0);
    price_.assign(vertices, 0);
    slot_of_.assign(network.parts(), none);
    part_at_.assign(network.places() * room_, none);
    free_.assign(vertices, 0);
    for (std::size_t place = 0; place != network.places(); ++place) {
      free_[place] = static_cast<std::uint32_t>(network.room(place));
    }
    points_.assign(vertices, {});
    touched_.reserve(vertices);
    scanned_.reserve(network.parts());
    ready_.reserve(2 * vertices);
    heap_.reserve(2 * vertices);
    steps_ = 0;
    is_optimal_ = true;
    for (std::uint32_t part = 0; part != network.parts(); ++part) {
      add(part, network, steps_ < max_steps ? all_parts : few_parts);
    }
  }

  /// Returns the place of a part, or `none`.
  [[nodiscard]] std::uint32_t place_of(std::size_t part) const {
    return slot_of_[part] == none ? none : place_of_slot(slot_of_[part]);
  }
  /// Returns true if the best assignments may give the part to a place that offers this gain.
  [[nodiscard]] bool is_tight(std::size_t part, std::size_t place, Amount gain) const {
    return profit_[part] + price_[place] == gain;
  }
  [[nodiscard]] bool is_optimal() const { return is_optimal_; }

  /// Returns an upper bound on the gain of any assignment. If `is_optimal`, it is the gain of this
  /// assignment.
  template <class Network>
  [[nodiscard]] Amount bound(Network const& network) const {
    Amount sum = 0;
    for (Amount const profit : profit_) sum += profit;
    for (std::size_t place = 0; place != network.places(); ++place) {
      sum += price_[place] * static_cast<Amount>(network.room(place));
    }
    return sum;
  }

 private:
  static constexpr std::size_t few_parts = 64;
  static constexpr std::size_t all_parts = std::numeric_limits<std::size_t>::max();
  static constexpr Amount stale = -1;

  enum class state : std::uint8_t { unseen, seen, done };
  struct point {
    Amount distance = 0;
    std::uint32_t from = none;
    state reached = state::unseen;
  };
  struct scanned_part {
    std::uint32_t part;
    Amount distance;
  };
  struct waiting_point {
    Amount distance;
    std::uint32_t vertex;

    [[nodiscard]] bool operator<(waiting_point const& other) const {
      // The nearest element is on top of a heap.
      return distance != other.distance ? distance > other.distance : vertex > other.vertex;
    }
  };

  [[nodiscard]] std::uint32_t place_of_slot(std::uint32_t slot) const {
    return slot / static_cast<std::uint32_t>(room_);
  }

  template <class Network>
  void add(std::uint32_t root, Network const& network, std::size_t max_parts) {
    Amount most = 0;
    network.for_each_offer(root, [&](std::uint32_t vertex, Amount gain) {
      ++steps_;
      most = std::max(most, gain - price_[vertex]);
    });
    profit_[root] = most;
    heap_.clear();
    ready_.clear();
    scanned_.clear();
    touched_.clear();
    now_ = 0;
    best_ = std::numeric_limits<Amount>::max();
    scan(root, 0, network);
    bool const is_shortest = search(network, max_parts);
    is_optimal_ = is_optimal_ && is_shortest;
    raise_prices(is_shortest ? best_ : now_, network);
    carry_out(root);
  }

  /// Continues until the shortest path is known; returns false if too many parts would be scanned.
  template <class Network>
  [[nodiscard]] bool search(Network const& network, std::size_t max_parts) {
    while (best_ != now_) {
      if (ready_.empty() && !advance()) return true;
      if (scanned_.size() >= max_parts) return false;
      std::uint32_t const vertex = ready_.back();
      ready_.pop_back();
      point& at = points_[vertex];
      if (at.reached == state::done || at.distance != now_) continue;
      at.reached = state::done;
      open(vertex, network);
    }
    return true;
  }
  [[nodiscard]] bool advance() {
    if (heap_.empty() || heap_.front().distance >= best_) return false;
    now_ = heap_.front().distance;
    ready_.push_back(heap_.front().vertex);
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    return true;
  }

  template <class Network>
  void open(std::uint32_t vertex, Network const& network) {
    if (vertex >= network.places()) {
      auto const [first, last] = network.members(vertex);
      steps_ += last - first;
      Amount const base = now_ - price_[vertex];
      for (std::uint32_t place = first; place != last; ++place) {
        reach(place, points_[vertex].from, base + price_[place]);
      }
      return;
    }
    for (std::size_t k = 0; k != network.room(vertex); ++k) {
      scan(part_at_[vertex * room_ + k], now_, network);
    }
  }

  /// Updates the distances of the vertices that a part offers, and the distance of a path that
  /// leaves the part without a place.
  template <class Network>
  void scan(std::uint32_t part, Amount distance, Network const& network) {
    scanned_.push_back({part, distance});
    Amount const base = distance + profit_[part];
    if (base < best_) {
      best_ = base;
      end_place_ = none;
      end_part_ = part;
    }
    network.for_each_offer(part, [&](std::uint32_t vertex, Amount gain) {
      ++steps_;
      reach(vertex, part, base - gain + price_[vertex]);
    });
  }

  void reach(std::uint32_t vertex, std::uint32_t from, Amount distance) {
    if (distance >= best_) return;
    point& at = points_[vertex];
    if (at.reached == state::unseen) {
      touched_.push_back(vertex);
      at.reached = state::seen;
    } else if (at.reached == state::done || at.distance <= distance) {
      return;
    }
    at.distance = distance;
    at.from = from;
    if (free_[vertex] != 0) {
      best_ = distance;
      end_place_ = vertex;
    } else if (distance == now_) {
      ready_.push_back(vertex);
    } else {
      if (heap_.size() == 2 * points_.size()) forget_outdated();
      heap_.push_back({distance, vertex});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }

  /// Removes entries of vertices that were later reached on a shorter path, so that the heap stays
  /// small.
  void forget_outdated() {
    auto const is_outdated = [this](waiting_point const& waits) {
      point const& at = points_[waits.vertex];
      return at.reached == state::done || at.distance != waits.distance;
    };
    heap_.erase(std::remove_if(heap_.begin(), heap_.end(), is_outdated), heap_.end());
    std::make_heap(heap_.begin(), heap_.end());
  }

  /// Raises prices and lowers profits within `radius`, by the difference of the radius and the
  /// distance. A hub has the lowest price of its places.
  template <class Network>
  void raise_prices(Amount radius, Network const& network) {
    for (scanned_part const& one : scanned_) profit_[one.part] -= radius - one.distance;
    for (std::uint32_t const vertex : touched_) {
      point& at = points_[vertex];
      bool const is_dearer = at.reached == state::done && vertex < network.places();
      at.reached = state::unseen;
      if (!is_dearer) continue;
      price_[vertex] += radius - at.distance;
      if (network.hubs() != 0) price_[network.hub_of(vertex)] = stale;
    }
    if (network.hubs() == 0) return;
    for (std::uint32_t const vertex : touched_) {
      if (vertex >= network.places()) continue;
      std::size_t const hub = network.hub_of(vertex);
      if (price_[hub] != stale) continue;
      auto const [first, last] = network.members(hub);
      auto const begin = price_.begin();
      price_[hub] = *std::min_element(begin + first, begin + last);
    }
  }

  /// Moves the parts along the path: each part gets the place that the next part leaves.
  void carry_out(std::uint32_t root) {
    std::uint32_t slot = none;
    if (end_place_ == none) {
      if (end_part_ == root) return;
      std::swap(slot, slot_of_[end_part_]);
    } else {
      slot = static_cast<std::uint32_t>(end_place_ * room_) + --free_[end_place_];
    }
    while (slot != none) {
      std::uint32_t const comes = points_[place_of_slot(slot)].from;
      part_at_[slot] = comes;
      std::swap(slot, slot_of_[comes]);
    }
  }

  std::size_t room_ = 1;
  std::uint64_t steps_ = 0;
  bool is_optimal_ = true;
  Amount now_ = 0;
  Amount best_ = 0;
  std::uint32_t end_place_ = none;
  std::uint32_t end_part_ = none;
  std::vector<Amount> profit_;
  std::vector<Amount> price_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<std::uint32_t> part_at_;
  std::vector<std::uint32_t> free_;
  std::vector<point> points_;
  std::vector<std::uint32_t> touched_;
  std::vector<scanned_part> scanned_;
  std::vector<std::uint32_t> ready_;
  std::vector<waiting_point> heap_;
};

/// Bytes that a part has at a place, a rank or a node.
struct bytes_at {
  std::uint32_t place;
  std::int64_t bytes;
};

/// The places at which each part has bytes, by ascending place. Later calls reuse its memory.
class kept_bytes {
 public:
  /// Removes all entries; `most` is an upper bound on the number of entries.
  void clear(std::size_t most) {
    offsets_.assign(1, 0);
    entries_.clear();
    entries_.reserve(most);
  }
  void push(std::uint32_t place, std::int64_t bytes) {
    if (entries_.size() != offsets_.back() && entries_.back().place == place) {
      entries_.back().bytes += bytes;
    } else {
      entries_.push_back({place, bytes});
    }
  }
  void close() { offsets_.push_back(entries_.size()); }

  [[nodiscard]] std::span<bytes_at const> of(std::size_t part) const {
    return std::span(entries_).subspan(offsets_[part], offsets_[part + 1] - offsets_[part]);
  }
  /// Returns the entries at the places from `first` on.
  [[nodiscard]] std::span<bytes_at const> from(std::size_t part, std::size_t first) const {
    auto const row = of(part);
    auto const found = std::lower_bound(
        row.begin(), row.end(), first,
        [](bytes_at const& entry, std::size_t wanted) { return entry.place < wanted; });
    return row.subspan(static_cast<std::size_t>(found - row.begin()));
  }
  [[nodiscard]] std::int64_t operator()(std::size_t part, std::size_t place) const {
    auto const row = from(part, place);
    return !row.empty() && row[0].place == place ? row[0].bytes : 0;
  }

 private:
  std::vector<std::size_t> offsets_{0};
  std::vector<bytes_at> entries_;
};

/// The bytes of parts by rank and by node. Later calls reuse its memory.
class part_bytes {
 public:
  /// Measures parts. `home_of` has the rank of each sample; every sample is in one part.
  template <class BytesOf>
  void measure(std::span<std::uint32_t const> home_of, grouping_view parts, BytesOf const& bytes_of,
               node_layout const& layout) {
    total_ = 0;
    by_rank_.clear(home_of.size());
    by_node_.clear(home_of.size());
    sums_.assign(layout.ranks(), 0);
    touched_.reserve(layout.ranks());
    for (std::size_t part = 0; part != parts.size(); ++part) {
      touched_.clear();
      for (std::uint32_t const sample : parts[part]) {
        std::int64_t const bytes = bytes_of(sample);
        if (bytes == 0) continue;
        std::uint32_t const rank = home_of[sample];
        if (sums_[rank] == 0) touched_.push_back(rank);
        sums_[rank] += bytes;
        total_ += bytes;
      }
      std::sort(touched_.begin(), touched_.end());
      for (std::uint32_t const rank : touched_) {
        by_rank_.push(rank, sums_[rank]);
        by_node_.push(static_cast<std::uint32_t>(layout.node_of(rank)), sums_[rank]);
        sums_[rank] = 0;
      }
      by_rank_.close();
      by_node_.close();
    }
  }

  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] kept_bytes const& by_rank() const { return by_rank_; }
  [[nodiscard]] kept_bytes const& by_node() const { return by_node_; }

 private:
  std::int64_t total_ = 0;
  kept_bytes by_rank_;
  kept_bytes by_node_;
  std::vector<std::int64_t> sums_;
  std::vector<std::uint32_t> touched_;
};

/// The gain of a part on a node: the bytes of the part on the node, without their lowest bits.
struct node_network {
  kept_bytes const& by_node;
  node_layout const& layout;
  int dropped_bits;

  [[nodiscard]] std::size_t parts() const { return layout.ranks(); }
  [[nodiscard]] std::size_t places() const { return layout.nodes(); }
  [[nodiscard]] std::size_t room(std::size_t node) const { return layout.ranks_in(node); }
  [[nodiscard]] std::size_t largest_room() const { return layout.ranks_per_node(); }
  template <class F>
  void for_each_offer(std::uint32_t part, F const& f) const {
    for (bytes_at const& at : by_node.of(part)) f(at.place, at.bytes >> dropped_bits);
  }

  [[nodiscard]] static std::size_t hubs() { return 0; }
  [[nodiscard]] static std::size_t hub_of(std::size_t) { return 0; }
  [[nodiscard]] static std::pair<std::uint32_t, std::uint32_t> members(std::size_t) { return {}; }
};

/// Returns the gain of a part on a rank as one number: its bytes on the node, and for equal bytes
/// its bytes on the rank. Both have at most 61 bits.
[[nodiscard]] inline int128 combined_gain(std::int64_t on_node, std::int64_t on_rank) {
  return (int128{on_node} << 62) + on_rank;
}

/// The combined gain of a part on the ranks of the nodes in `allowed`; a node is the hub of its
/// ranks.
struct rank_network {
  kept_bytes const& allowed;
  kept_bytes const& by_rank;
  node_layout const& layout;
  int dropped_bits;

  [[nodiscard]] std::size_t parts() const { return layout.ranks(); }
  [[nodiscard]] std::size_t places() const { return layout.ranks(); }
  [[nodiscard]] static std::size_t room(std::size_t) { return 1; }
  [[nodiscard]] static std::size_t largest_room() { return 1; }
  template <class F>
  void for_each_offer(std::uint32_t part, F const& f) const {
    for (bytes_at const& node : allowed.of(part)) {
      std::int64_t const on_node = node.bytes >> dropped_bits;
      f(static_cast<std::uint32_t>(layout.ranks()) + node.place, combined_gain(on_node, 0));
      std::size_t const first = layout.first_rank(node.place);
      for (bytes_at const& rank : by_rank.from(part, first)) {
        if (rank.place >= first + layout.ranks_in(node.place)) break;
        f(rank.place, combined_gain(on_node, rank.bytes >> dropped_bits));
      }
    }
  }

  [[nodiscard]] std::size_t hubs() const { return layout.nodes(); }
  [[nodiscard]] std::size_t hub_of(std::size_t rank) const {
    return layout.ranks() + layout.node_of(rank);
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> members(std::size_t hub) const {
    std::size_t const node = hub - layout.ranks();
    std::size_t const first = layout.first_rank(node);
    return {static_cast<std::uint32_t>(first),
            static_cast<std::uint32_t>(first + layout.ranks_in(node))};
  }
};

/// Places one part on each rank. Later calls reuse its memory.
///
/// Parts are first assigned to nodes, by their bytes on nodes only. The prices of that assignment
/// show the pairs of a part and a node in the best assignments. Among these pairs, parts are then
/// assigned to ranks.
class rank_placer {
 public:
  /// The default number of steps, which limits the work.
  static constexpr std::uint64_t max_steps = std::uint64_t{1} << 25;

  /// Places the parts. `home_of` has the rank of each sample; every sample is in one part.
  template <class BytesOf>
  void run(std::span<std::uint32_t const> home_of, grouping_view parts, BytesOf const& bytes_of,
           given_nodes const& nodes, std::uint64_t steps = max_steps) {
    layout_.set(nodes, parts.size());
    if (!layout_.is_sorted()) {
      home_place_.clear();
      for (std::uint32_t const rank : home_of) home_place_.push_back(layout_.place_of(rank));
      home_of = home_place_;
    }
    bytes_.measure(home_of, parts, bytes_of, layout_);
    // Gains are then sums of two numbers of 61 bits, and sums of gains stay below 2^125.
    auto const bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes_.total())));
    dropped_bits_ = std::max(0, bits - 61);
    nodes_.run(node_places(), steps);
    if (layout_.ranks_per_node() == 1) {
      take_places(nodes_);
    } else {
      assign_ranks(home_of.size(), steps);
      take_places(ranks_);
    }
    fill();
  }

  [[nodiscard]] std::uint32_t rank_of(std::size_t part) const {
    return layout_.rank_at(rank_of_[part]);
  }
  /// Returns the part of a rank.
  [[nodiscard]] std::uint32_t part_at(std::size_t rank) const {
    return part_at_[layout_.place_of(rank)];
  }
  /// Returns whether it is proven that no placement is better.
  [[nodiscard]] bool is_proven() const {
    return dropped_bits_ == 0 && nodes_.is_optimal() &&
           (layout_.ranks_per_node() == 1 || ranks_.is_optimal());
  }

  [[nodiscard]] std::int64_t moved_bytes() const {
    return bytes_.total() -
           sum_over_parts([&](std::size_t p) { return bytes_.by_rank()(p, rank_of_[p]); });
  }
  [[nodiscard]] std::int64_t moved_bytes_across_nodes() const {
    return bytes_.total() - sum_over_parts([&](std::size_t p) {
             return bytes_.by_node()(p, layout_.node_of(rank_of_[p]));
           });
  }

  /// Returns a lower bound of the bytes that a placement moves across nodes.
  [[nodiscard]] std::int64_t min_across_nodes() const {
    int128 max_kept = nodes_.bound(node_places());
    // Each part may keep nearly one unit more than was counted.
    if (dropped_bits_ != 0) max_kept = (max_kept + layout_.ranks()) << dropped_bits_;
    return bytes_.total() - static_cast<std::int64_t>(std::min<int128>(max_kept, bytes_.total()));
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] node_network node_places() const {
    return {bytes_.by_node(), layout_, dropped_bits_};
  }
  template <class Value>
  [[nodiscard]] std::int64_t sum_over_parts(Value const& value) const {
    std::int64_t sum = 0;
    for (std::size_t part = 0; part != layout_.ranks(); ++part) sum += value(part);
    return sum;
  }
  /// Returns the sum of the gains of all parts, with part p on rank `rank_of(p)`.
  template <class RankOf>
  [[nodiscard]] int128 sum_of_gains(RankOf const& rank_of) const {
    int128 sum = 0;
    for (std::size_t part = 0; part != layout_.ranks(); ++part) {
      std::size_t const rank = rank_of(part);
      sum += combined_gain(bytes_.by_node()(part, layout_.node_of(rank)) >> dropped_bits_,
                           bytes_.by_rank()(part, rank) >> dropped_bits_);
    }
    return sum;
  }

  void assign_ranks(std::size_t samples, std::uint64_t steps) {
    allowed_.clear(samples);
    for (std::uint32_t part = 0; part != layout_.ranks(); ++part) {
      for (bytes_at const& at : bytes_.by_node().of(part)) {
        bool const is_chosen = nodes_.place_of(part) == at.place;
        if (is_chosen || nodes_.is_tight(part, at.place, at.bytes >> dropped_bits_)) {
          allowed_.push(at.place, at.bytes);
        }
      }
      allowed_.close();
    }
    rank_network const network{allowed_, bytes_.by_rank(), layout_, dropped_bits_};
    ranks_.run(network, steps);
  }

  template <class Assignment>
  void take_places(Assignment const& assignment) {
    rank_of_.resize(layout_.ranks());
    part_at_.assign(layout_.ranks(), none);
    for (std::uint32_t part = 0; part != layout_.ranks(); ++part) {
      rank_of_[part] = assignment.place_of(part);
      if (rank_of_[part] != none) part_at_[rank_of_[part]] = part;
    }
  }

  /// Places the parts that have no rank yet: part r on rank r if this rank is free, otherwise on
  /// any free rank. If it is as good to place every part r on rank r, does so.
  void fill() {
    for (std::uint32_t part = 0; part != layout_.ranks(); ++part) {
      std::uint32_t const own = layout_.place_of(part);
      if (rank_of_[part] == none && part_at_[own] == none) put(part, own);
    }
    std::uint32_t free = 0;
    for (std::uint32_t part = 0; part != layout_.ranks(); ++part) {
      if (rank_of_[part] != none) continue;
      while (part_at_[free] != none) ++free;
      put(part, free);
    }
    auto const own = [this](std::size_t part) { return std::size_t{layout_.place_of(part)}; };
    auto const chosen = [this](std::size_t part) { return std::size_t{rank_of_[part]}; };
    if (sum_of_gains(own) < sum_of_gains(chosen)) return;
    for (std::uint32_t part = 0; part != layout_.ranks(); ++part) {
      put(part, layout_.place_of(part));
    }
  }
  void put(std::uint32_t part, std::uint32_t rank) {
    rank_of_[part] = rank;
    part_at_[rank] = part;
  }

  /// The layout of the nodes. The members below identify ranks by their places in the layout.
  node_layout layout_;
  std::vector<std::uint32_t> home_place_;
  int dropped_bits_ = 0;
  part_bytes bytes_;
  sparse_assignment<std::int64_t> nodes_;
  kept_bytes allowed_;
  sparse_assignment<int128> ranks_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint32_t> part_at_;
};

}  // namespace omnibal::inline v0::detail
