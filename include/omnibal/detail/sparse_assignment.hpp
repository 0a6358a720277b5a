#pragma once

/// \file
/// The best assignment of parts to places where each part gains at a few of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Gives parts to places so that the sum of their gains is largest. A place has room for several
/// parts, and a part may stay without one. Parts are added one after the other by shortest
/// augmenting paths; profits of parts and prices of places, whose sum no assignment exceeds, keep
/// the lengths of edges from being negative. Beyond a number of steps each path is searched for
/// among a few parts only: the sum stays a bound, but the assignment may miss it. Keeps its memory.
///
/// A network has `parts()`, `places()`, `room(place)` and `largest_room()`, and calls
/// `for_each_offer(part, f)` as f(place, gain) for the places where a part gains something. It may
/// have `hubs()`, numbered after the places: one stands for `members(hub)`, places [first, last),
/// at each of which the part has that gain. `hub_of(place)` is the hub of a place.
///
/// Source: Kuhn, 1955; Jonker, Volgenant, "A shortest augmenting path algorithm for dense and
/// sparse linear assignment problems", 1987.
template <class Amount>
class sparse_assignment {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// No sum of gains exceeds a quarter of the largest amount. Allocates only beyond the largest
  /// network so far.
  template <class Network>
  void run(Network const& network, std::uint64_t most_steps) {
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
      add(part, network, steps_ < most_steps ? all_parts : few_parts);
    }
  }

  /// The place of a part, or `none`.
  [[nodiscard]] std::uint32_t place_of(std::size_t part) const {
    return slot_of_[part] == none ? none : place_of_slot(slot_of_[part]);
  }
  /// True where the best assignments may give the part to a place that offers this gain.
  [[nodiscard]] bool is_tight(std::size_t part, std::size_t place, Amount gain) const {
    return profit_[part] + price_[place] == gain;
  }
  [[nodiscard]] bool is_optimal() const { return is_optimal_; }

  /// No assignment gains more; where `is_optimal` this one gains as much.
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
      // The nearest on top of a heap.
      return distance != other.distance ? distance > other.distance : vertex > other.vertex;
    }
  };

  [[nodiscard]] std::uint32_t place_of_slot(std::uint32_t slot) const {
    return slot / static_cast<std::uint32_t>(room_);
  }

  template <class Network>
  void add(std::uint32_t root, Network const& network, std::size_t most_parts) {
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
    bool const is_shortest = search(network, most_parts);
    is_optimal_ = is_optimal_ && is_shortest;
    raise_prices(is_shortest ? best_ : now_, network);
    carry_out(root);
  }

  /// Goes on to the nearest vertices until the shortest path is known; false where that would look
  /// at too many parts.
  template <class Network>
  [[nodiscard]] bool search(Network const& network, std::size_t most_parts) {
    while (best_ != now_) {
      if (ready_.empty() && !advance()) return true;
      if (scanned_.size() >= most_parts) return false;
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

  /// From a part to its offers, or to having no place.
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

  /// Removes what was reached on a shorter way since, so that the heap stays small.
  void forget_outdated() {
    auto const is_outdated = [this](waiting_point const& waits) {
      point const& at = points_[waits.vertex];
      return at.reached == state::done || at.distance != waits.distance;
    };
    heap_.erase(std::remove_if(heap_.begin(), heap_.end(), is_outdated), heap_.end());
    std::make_heap(heap_.begin(), heap_.end());
  }

  /// All within `radius` pay as much more as they are nearer.
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

  /// Along the path each part takes the place that the next one leaves.
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

}  // namespace omnibal::inline v0::detail
