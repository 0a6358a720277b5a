#pragma once

/// \file
/// Ranks in the order of their loads, of which a few change at a time.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Keeps its memory.
template <std::size_t R>
struct home_loads {
  whole_costs<R> costs;
  whole_costs<1> bytes;
  /// Where each sample was before, and where it is now.
  std::vector<std::uint32_t> home_of;
  std::vector<std::uint32_t> rank_of;
  /// Of each rank.
  whole_costs<R> loads;

  [[nodiscard]] std::size_t ranks() const { return loads.size(); }
  [[nodiscard]] bool is_home(std::uint32_t sample) const {
    return rank_of[sample] == home_of[sample];
  }

  void start_at_home() {
    rank_of = home_of;
    sum_loads();
  }
  void sum_loads() {
    loads.assign(loads.size(), resources<R>{});
    for (std::size_t i = 0; i != rank_of.size(); ++i) loads[rank_of[i]] += costs[i];
  }
  void move(std::uint32_t sample, std::uint32_t rank) {
    loads[rank_of[sample]] -= costs[sample];
    loads[rank] += costs[sample];
    rank_of[sample] = rank;
  }

  [[nodiscard]] std::int64_t largest_load() const {
    std::int64_t result = 0;
    for (resources<R> const& load : loads) result = std::max(result, largest_amount(load));
    return result;
  }
  [[nodiscard]] std::int64_t moved_bytes() const {
    std::int64_t result = 0;
    for (std::uint32_t i = 0; i != rank_of.size(); ++i) {
      if (!is_home(i)) result += bytes[i][0];
    }
    return result;
  }

  /// The order from the largest to the smallest sample, equal ones by index.
  [[nodiscard]] auto costs_more() const {
    return [this](std::uint32_t a, std::uint32_t b) {
      std::int64_t const cost_a = sum_of(costs[a]);
      std::int64_t const cost_b = sum_of(costs[b]);
      return cost_a > cost_b || (cost_a == cost_b && a < b);
    };
  }
};

/// A list of samples for each rank, in an order of the caller. Keeps its memory.
class sample_lists {
 public:
  /// `rank_of` has the rank of each sample; the lists have the samples in the order of `order`.
  void fill(std::span<std::uint32_t const> order, std::span<std::uint32_t const> rank_of,
            std::size_t ranks) {
    first_.assign(ranks, none);
    next_.resize(rank_of.size());
    previous_.resize(rank_of.size());
    for (std::size_t i = order.size(); i-- != 0;) {
      std::uint32_t const rank = rank_of[order[i]];
      link(order[i], rank, none, first_[rank]);
    }
  }

  /// Adds a sample before the first one that does not precede it.
  template <class Precedes>
  void insert(std::uint32_t sample, std::uint32_t rank, Precedes const& precedes) {
    std::uint32_t previous = none;
    std::uint32_t next = first_[rank];
    while (next != none && precedes(next, sample)) {
      previous = next;
      next = next_[next];
    }
    link(sample, rank, previous, next);
  }

  /// Precondition: the sample is in the list of that rank.
  void remove(std::uint32_t sample, std::uint32_t rank) {
    std::uint32_t const next = next_[sample];
    std::uint32_t const previous = previous_[sample];
    if (next != none) previous_[next] = previous;
    (previous == none ? first_[rank] : next_[previous]) = next;
  }

  /// Calls `body(sample)` for each sample of a rank.
  template <class Body>
  void for_each(std::uint32_t rank, Body const& body) const {
    for (std::uint32_t i = first_[rank]; i != none; i = next_[i]) body(i);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  void link(std::uint32_t sample, std::uint32_t rank, std::uint32_t previous, std::uint32_t next) {
    next_[sample] = next;
    previous_[sample] = previous;
    if (next != none) previous_[next] = sample;
    (previous == none ? first_[rank] : next_[previous]) = sample;
  }

  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> previous_;
};

/// Words of `ranked_load`, the least first. Keeps its memory.
class sorted_loads {
 public:
  /// `load_of` gives the load of a rank.
  template <class LoadOf>
  void reset(std::size_t ranks, LoadOf const& load_of) {
    ranked_ = ranked_load<uint128>(ranks);
    words_.clear();
    words_.reserve(ranks);
    for (std::size_t rank = 0; rank != ranks; ++rank)
      words_.push_back(ranked_(load_of(rank), rank));
    std::sort(words_.begin(), words_.end());
  }

  [[nodiscard]] std::span<uint128 const> words() const { return words_; }
  [[nodiscard]] uint128 word(std::int64_t load, std::size_t rank) const {
    return ranked_(load, rank);
  }
  [[nodiscard]] std::uint32_t rank(uint128 word) const { return ranked_.part(word); }
  [[nodiscard]] std::int64_t load(uint128 word) const { return ranked_.load(word); }

  /// The lowest rank of those with the largest load. Precondition: there is a rank.
  [[nodiscard]] std::uint32_t heaviest() const {
    uint128 const first = ranked_(ranked_.load(words_.back()), 0);
    return ranked_.part(*std::lower_bound(words_.begin(), words_.end(), first));
  }

  /// A rank has another load. Complexity: linear in the ranks between both.
  void change(std::size_t rank, std::int64_t before, std::int64_t after) {
    auto const old = std::lower_bound(words_.begin(), words_.end(), ranked_(before, rank));
    uint128 const word = ranked_(after, rank);
    auto const place = std::lower_bound(words_.begin(), words_.end(), word);
    if (place > old) {
      *std::move(old + 1, place, old) = word;
    } else {
      std::move_backward(place, old, old + 1);
      *place = word;
    }
  }

 private:
  ranked_load<uint128> ranked_{0};
  std::vector<uint128> words_;
};

}  // namespace omnibal::inline v0::detail
