// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Differencing of tuples of loads.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Tuples of the loads of all parts. As long as a tuple has empty parts, each other part has one
/// sample. The tuple is then a ring of these samples, and joining two rings costs constant time. A
/// tuple without empty parts is a tournament of loads with a slot for each part. The number of a
/// sample is its place in the given order.
template <class Word>
class load_tuples {
 public:
  struct tuple {
    /// The number of the last sample of the ring, or of the tournament.
    std::uint32_t number;
    /// The number of parts that are not empty.
    std::uint32_t size;
    std::int64_t largest;
  };

  /// Creates the tuples. Precondition: there are several parts.
  load_tuples(integer_costs<1> const& costs, std::span<std::uint32_t const> order,
              std::size_t parts)
      : parts_(parts), key_(parts), tree_size_(winner_tree<Word>::nodes_for(parts)) {
    samples_.reserve(order.size());
    for (std::uint32_t const sample : order) {
      samples_.push_back({costs[sample][0], static_cast<std::uint32_t>(samples_.size())});
    }
    // Every tournament has no fewer samples than there are parts.
    std::size_t const most = order.size() / parts;
    nodes_.reserve(most * tree_size_);
    slots_.reserve(most * parts);
  }

  /// Returns the tuple in which one part has the sample at `place` and the other parts are empty.
  [[nodiscard]] tuple of_sample(std::uint32_t place) const {
    return {place, 1, samples_[place].cost};
  }

  /// Returns the tuple in which each of `count` parts has one of the samples from `place` on, and
  /// the other parts are empty. Precondition: `count` is below the number of parts, and the first
  /// of these samples has the largest cost.
  [[nodiscard]] tuple of_samples(std::uint32_t place, std::uint32_t count) {
    std::uint32_t const last = place + count - 1;
    for (std::uint32_t k = place; k != last; ++k) samples_[k].next = k + 1;
    samples_[last].next = place;
    return {last, count, samples_[place].cost};
  }

  /// Returns the largest load minus the smallest.
  [[nodiscard]] std::int64_t difference(tuple const& of) {
    return is_full(of) ? of.largest - key_.load(tree(of.number).least()) : of.largest;
  }

  /// Combines two tuples: adds the largest load of one tuple to the smallest load of the other, the
  /// second largest to the second smallest, and so on.
  [[nodiscard]] tuple combine(tuple longer, tuple shorter) {
    if (longer.size < shorter.size) std::swap(longer, shorter);
    longer.largest = std::max(longer.largest, shorter.largest);
    if (is_full(longer) && shorter.size == 1) {
      join_least(longer, load_of(shorter.number));
      return longer;
    }
    if (std::size_t{longer.size} + shorter.size < parts_) {
      // The swap joins two rings into one.
      std::swap(samples_[longer.number].next, samples_[shorter.number].next);
      longer.size += shorter.size;
      return longer;
    }
    descend(shorter, descending_);
    if (is_full(shorter)) free_.push_back(shorter.number);
    if (!is_full(longer)) longer = to_tournament(longer);
    join_descending(longer);
    return longer;
  }

  /// Calls `body(k, place)` for each sample in part k of a tuple.
  template <class Body>
  void for_each_sample(tuple const& of, Body const& body) {
    descend(of, descending_);
    for (std::uint32_t k = 0; k != descending_.size(); ++k) {
      chain const& samples = descending_[k].samples;
      body(k, samples.first);
      for (std::uint32_t place = samples.first; place != samples.last;) {
        place = samples_[place].next;
        body(k, place);
      }
    }
  }

 private:
  struct linked_sample {
    std::int64_t cost;
    /// The sample after this one in its ring or chain.
    std::uint32_t next;
  };
  struct chain {
    std::uint32_t first;
    std::uint32_t last;
  };
  struct chained_load {
    std::int64_t load;
    chain samples;
  };

  [[nodiscard]] chained_load load_of(std::uint32_t place) const {
    return {samples_[place].cost, {place, place}};
  }
  [[nodiscard]] bool is_full(tuple const& of) const { return of.size == parts_; }
  [[nodiscard]] winner_tree<Word> tree(std::uint32_t number) {
    return winner_tree<Word>(std::span(nodes_).subspan(number * tree_size_, tree_size_));
  }
  [[nodiscard]] std::span<chain> slots(std::uint32_t number) {
    return std::span(slots_).subspan(number * parts_, parts_);
  }

  /// Adds `added` to a slot, whose present load is `load`.
  void join(tuple& to, std::uint32_t slot, std::int64_t load, chained_load const& added) {
    chain& samples = slots(to.number)[slot];
    samples_[added.samples.last].next = samples.first;
    samples.first = added.samples.first;
    load += added.load;
    tree(to.number).set(slot, key_(load, slot));
    to.largest = std::max(to.largest, load);
  }

  void join_least(tuple& to, chained_load const& added) {
    Word const least = tree(to.number).least();
    join(to, key_.part(least), key_.load(least), added);
  }

  /// Adds `descending_` to a tournament: its first loads fill the empty slots, and the others are
  /// added to the smallest loads.
  void join_descending(tuple& to) {
    auto const loads = tree(to.number);
    std::size_t const apart = parts_ - to.size;
    std::size_t const joined = descending_.size() - apart;
    ascending_.clear();
    if (joined > to.size / 8) {
      for (std::size_t slot = 0; slot != to.size; ++slot) ascending_.push_back(loads[slot]);
      std::sort(ascending_.begin(), ascending_.end());
    } else {
      for (std::size_t i = 0; i != joined; ++i) {
        ascending_.push_back(loads.least());
        loads.set(key_.part(loads.least()), loads.none);
      }
    }
    for (std::size_t i = 0; i != joined; ++i) {
      join(to, key_.part(ascending_[i]), key_.load(ascending_[i]), descending_[apart + i]);
    }
    for (std::size_t i = 0; i != apart; ++i) {
      std::size_t const slot = to.size + i;
      slots(to.number)[slot] = descending_[i].samples;
      loads.set(slot, key_(descending_[i].load, slot));
    }
    to.size = static_cast<std::uint32_t>(parts_);
  }

  /// Returns the loads of a ring as a tournament with empty slots.
  [[nodiscard]] tuple to_tournament(tuple const& from) {
    auto number = static_cast<std::uint32_t>(slots_.size() / parts_);
    if (free_.empty()) {
      nodes_.resize(nodes_.size() + tree_size_);
      slots_.resize(slots_.size() + parts_);
    } else {
      number = free_.back();
      free_.pop_back();
    }
    tuple const result{number, from.size, from.largest};
    std::uint32_t place = from.number;
    tree(number).fill(from.size, [&](std::size_t slot) {
      place = samples_[place].next;
      slots(number)[slot] = {place, place};
      return key_(samples_[place].cost, slot);
    });
    return result;
  }

  /// Writes the loads of a tuple from the largest to the smallest.
  void descend(tuple const& of, std::vector<chained_load>& result) {
    result.clear();
    if (is_full(of)) {
      for (std::uint32_t slot = 0; slot != parts_; ++slot) {
        result.push_back({key_.load(tree(of.number)[slot]), slots(of.number)[slot]});
      }
    } else {
      std::uint32_t place = of.number;
      for (std::uint32_t i = 0; i != of.size; ++i) {
        place = samples_[place].next;
        result.push_back(load_of(place));
      }
    }
    auto const precedes = [](chained_load const& a, chained_load const& b) {
      return a.load > b.load || (a.load == b.load && a.samples.first < b.samples.first);
    };
    if (!std::is_sorted(result.begin(), result.end(), precedes)) {
      std::sort(result.begin(), result.end(), precedes);
    }
  }

  std::size_t parts_;
  load_key<Word> key_;
  std::size_t tree_size_;
  std::vector<linked_sample> samples_;
  /// The nodes of the tournaments, by number.
  std::vector<Word> nodes_;
  /// The samples of the load in each slot, by number of the tournament.
  std::vector<chain> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<chained_load> descending_;
  std::vector<Word> ascending_;
};

/// Combines the two tuples with the largest differences until only one is left.
template <class Word>
class differencing {
 public:
  /// Creates the tuples. `samples` have positive costs and are in the order of `largest_first`,
  /// except for the last `apart` samples. These samples start as one tuple, with the largest cost
  /// first, so that no part receives two of them. Precondition: `apart` is below the number of
  /// parts.
  differencing(integer_costs<1> const& costs, std::span<std::uint32_t const> samples,
               std::size_t parts, std::size_t apart = 0)
      : samples_(samples), last_(samples.size() - apart), tuples_(costs, samples, parts) {
    if (apart == 0) return;
    put(tuples_.of_samples(static_cast<std::uint32_t>(last_), static_cast<std::uint32_t>(apart)));
  }

  /// Calls `body(sample, part)` for each sample.
  template <class Body>
  void run(Body const& body) {
    if (samples_.empty()) return;
    tuple_type largest = take_largest();
    while (next_ != last_ || !waiting_.empty()) {
      largest = tuples_.combine(largest, take_largest());
      if (is_largest(largest)) continue;
      put(largest);
      largest = take_largest();
    }
    tuples_.for_each_sample(
        largest, [&](std::uint32_t part, std::uint32_t place) { body(samples_[place], part); });
  }

 private:
  using tuple_type = typename load_tuples<Word>::tuple;

  struct waiting_tuple {
    std::int64_t difference;
    std::uint32_t number;
    tuple_type tuple;

    /// Compares differences; of equal differences, the older tuple goes first.
    friend bool operator<(waiting_tuple const& a, waiting_tuple const& b) {
      return a.difference < b.difference || (a.difference == b.difference && a.number > b.number);
    }
  };

  /// Returns whether the tuple with the largest difference is the next sorted sample instead of the
  /// top of the heap. If differences are equal, the heap goes first.
  [[nodiscard]] bool is_sample_next() const {
    if (next_ == last_) return false;
    return waiting_.empty() || waiting_.front().difference < tuples_.of_sample(next_).largest;
  }

  [[nodiscard]] tuple_type take_largest() {
    if (is_sample_next()) return tuples_.of_sample(next_++);
    std::pop_heap(waiting_.begin(), waiting_.end());
    tuple_type const result = waiting_.back().tuple;
    waiting_.pop_back();
    return result;
  }

  void put(tuple_type const& tuple) {
    waiting_.push_back({tuples_.difference(tuple), number_++, tuple});
    std::push_heap(waiting_.begin(), waiting_.end());
  }

  /// Returns whether no other tuple has a larger difference.
  [[nodiscard]] bool is_largest(tuple_type const& tuple) {
    std::int64_t const difference = tuples_.difference(tuple);
    return (next_ == last_ || difference >= tuples_.of_sample(next_).largest) &&
           (waiting_.empty() || difference >= waiting_.front().difference);
  }

  std::span<std::uint32_t const> samples_;
  /// The end of the samples that start as tuples of their own.
  std::size_t last_;
  std::uint32_t next_ = 0;
  load_tuples<Word> tuples_;
  std::vector<waiting_tuple> waiting_;
  std::uint32_t number_ = 0;
};

}  // namespace omnibal::inline v0::detail
