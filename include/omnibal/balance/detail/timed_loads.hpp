// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The loads of parts with different speeds, and the part that is first ready with a sample.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// An index of parts with different speeds by their loads of one kind. Parts of equal speed form a
/// class with a tournament of loads. A tree over the classes has, in each node, lower bounds of the
/// load over speed and of 1 / speed. A search follows the smaller bound and skips nodes whose bound
/// exceeds the time of the best part so far. Parts are compared exactly.
template <class Word>
class timed_heap {
 public:
  explicit timed_heap(part_speeds const& speeds)
      : key_(speeds.size()),
        class_of_(speeds.size()),
        place_of_(speeds.size()),
        parts_(fastest_first(speeds)) {
    std::size_t nodes = 0;
    for (std::size_t first = 0; first != parts_.size();) {
      std::int64_t const speed = speeds[parts_[first]];
      std::size_t last = first;
      while (last != parts_.size() && speeds[parts_[last]] == speed) ++last;
      for (std::size_t k = first; k != last; ++k) {
        class_of_[parts_[k]] = static_cast<std::uint32_t>(classes_.size());
        place_of_[parts_[k]] = static_cast<std::uint32_t>(k - first);
      }
      std::size_t const count = winner_tree<Word>::nodes_for(last - first);
      classes_.push_back({speed, first, last - first, nodes, count});
      nodes += count;
      first = last;
    }
    words_.resize(nodes);
    leaves_ = std::bit_ceil(classes_.size());
    bounds_.resize(2 * leaves_);
    for (std::size_t number = 0; number != classes_.size(); ++number) {
      tree(classes_[number]).fill(classes_[number].parts, [this](std::size_t place) {
        return key_(0, place);
      });
      update(number);
    }
  }

  /// Returns the open part with the smallest load over speed after the addition of `cost`; of equal
  /// parts, the lowest.
  [[nodiscard]] std::uint32_t best(resources<1> const& cost) {
    auto const amount = static_cast<double>(cost[0]);
    load_order<part_time> best{{}, 0};
    double limit = std::numeric_limits<double>::infinity();
    std::array<std::size_t, 64> waiting;
    std::size_t count = 0;
    waiting[count++] = 1;
    while (count != 0) {
      std::size_t node = waiting[--count];
      double bound = bounds_[node].after(amount);
      while (node < leaves_ && bound < limit) {
        double const left = bounds_[2 * node].after(amount);
        double const right = bounds_[2 * node + 1].after(amount);
        bool const is_right = right < left;
        waiting[count++] = 2 * node + (is_right ? 0 : 1);
        node = 2 * node + (is_right ? 1 : 0);
        bound = is_right ? right : left;
      }
      if (node < leaves_ || !(bound < limit)) continue;
      load_order<part_time> const other = best_of(classes_[node - leaves_], cost[0]);
      if (limit < std::numeric_limits<double>::infinity() && !(other < best)) continue;
      best = other;
      // Bounds are rounded, so equal times may seem different.
      limit = bound * (1.0 + 0x1p-46);
    }
    return best.part;
  }

  void add(std::size_t part, resources<1> const& cost) {
    auto const words = tree(classes_[class_of_[part]]);
    words.set(place_of_[part], words[place_of_[part]] + key_(cost[0], 0));
    update(class_of_[part]);
  }
  /// Closes a part, which gets no more samples.
  void close(std::size_t part) {
    tree(classes_[class_of_[part]]).set(place_of_[part], winner_tree<Word>::none);
    update(class_of_[part]);
  }
  /// Opens a part that was closed with this load.
  void open(std::size_t part, std::int64_t load) {
    tree(classes_[class_of_[part]]).set(place_of_[part], key_(load, place_of_[part]));
    update(class_of_[part]);
  }

 private:
  /// The parts of equal speed: `parts_[first]` and the following ones.
  struct speed_class {
    std::int64_t speed;
    std::size_t first;
    std::size_t parts;
    std::size_t first_node;
    std::size_t nodes;
  };
  /// Lower bounds of the classes below a node. If the time is infinite, no part of these classes is
  /// open.
  struct class_bound {
    double time = std::numeric_limits<double>::infinity();
    double inverse_speed = 0.0;

    [[nodiscard]] double after(double cost) const { return time + cost * inverse_speed; }
  };

  [[nodiscard]] winner_tree<Word> tree(speed_class const& from) {
    return winner_tree<Word>(std::span(words_).subspan(from.first_node, from.nodes));
  }
  [[nodiscard]] load_order<part_time> best_of(speed_class const& from, std::int64_t cost) {
    Word const least = tree(from).least();
    return {{key_.load(least) + cost, from.speed}, parts_[from.first + key_.part(least)]};
  }

  void update(std::size_t number) {
    speed_class const& changed = classes_[number];
    Word const least = tree(changed).least();
    class_bound bound;
    if (least != winner_tree<Word>::none) {
      auto const speed = static_cast<double>(changed.speed);
      bound = {static_cast<double>(key_.load(least)) / speed, 1.0 / speed};
    }
    std::size_t node = leaves_ + number;
    bounds_[node] = bound;
    while ((node >>= 1) != 0) {
      class_bound const& left = bounds_[2 * node];
      class_bound const& right = bounds_[2 * node + 1];
      bounds_[node] = {std::min(left.time, right.time),
                       std::min(left.inverse_speed, right.inverse_speed)};
    }
  }

  load_key<Word> key_;
  std::vector<std::uint32_t> class_of_;
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint32_t> parts_;
  std::vector<speed_class> classes_;
  std::vector<Word> words_;
  std::vector<class_bound> bounds_;
  std::size_t leaves_ = 0;
};

/// An index of parts with different speeds by their loads of several kinds; a search compares all
/// parts.
template <std::size_t R>
class timed_vectors {
 public:
  explicit timed_vectors(part_speeds const& speeds)
      : speeds_(speeds), loads_(speeds.size(), resources<R>{}), is_closed_(speeds.size(), 0) {}

  /// Returns the open part with the smallest largest amount over speed after the addition of
  /// `cost`; of equal parts, the lowest.
  [[nodiscard]] std::uint32_t best(resources<R> const& cost) const {
    load_order<part_time> best{{1, 0}, 0};
    for (std::uint32_t part = 0; part != loads_.size(); ++part) {
      if (is_closed_[part] != 0) continue;
      part_time const time = speeds_.time_of(part, largest_amount(loads_[part] + cost));
      best = std::min(best, load_order<part_time>{time, part});
    }
    return best.part;
  }
  void add(std::size_t part, resources<R> const& cost) { loads_[part] += cost; }
  /// Closes a part, which gets no more samples.
  void close(std::size_t part) { is_closed_[part] = 1; }

 private:
  part_speeds const& speeds_;
  integer_costs<R> loads_;
  std::vector<std::uint8_t> is_closed_;
};

/// Returns the part of each sample if parts have different speeds; see the overload without speeds.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> place_longest_first(integer_costs<R> const& costs,
                                                             count_limits room,
                                                             part_speeds const& speeds) {
  return place_sorted(costs, std::move(room), [&](auto const& place_costly) {
    if constexpr (R > 1) {
      place_costly(timed_vectors<R>(speeds));
    } else if (load_key<std::uint64_t>::can_hold(sum_of(total_of(costs)), speeds.size())) {
      place_costly(timed_heap<std::uint64_t>(speeds));
    } else {
      place_costly(timed_heap<uint128>(speeds));
    }
  });
}

}  // namespace omnibal::inline v0::detail
