// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The loads and counts of parts, the best part for a sample, and lower bounds on the largest load.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/vector_load_index.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A tournament of words in memory of the caller: every inner node is the smaller of its two
/// children. A change costs the same for every word: one comparison without a branch for each
/// level. A heap costs more, because of branches that no processor can predict.
template <class Word>
class winner_tree {
 public:
  /// A word above all words in use; the word of an unused leaf.
  static constexpr Word none = static_cast<Word>(~Word{0});

  /// Returns the number of nodes for this number of words.
  [[nodiscard]] static std::size_t nodes_for(std::size_t words) { return 2 * std::bit_ceil(words); }

  /// Creates a view of the tree that is stored in `nodes`. Precondition: the number of nodes is a
  /// result of `nodes_for`, and all nodes are `none` or were set by `fill`.
  explicit winner_tree(std::span<Word> nodes) : nodes_(nodes.data()), leaves_(nodes.size() / 2) {}

  [[nodiscard]] Word least() const { return nodes_[1]; }
  [[nodiscard]] Word operator[](std::size_t index) const { return nodes_[leaves_ + index]; }

  /// Replaces one word.
  void set(std::size_t index, Word word) const {
    std::size_t node = leaves_ + index;
    nodes_[node] = word;
    while (node > 1) {
      Word const other = nodes_[node ^ 1];
      word = other < word ? other : word;
      node >>= 1;
      nodes_[node] = word;
    }
  }

  /// Replaces the first `count` words by `word(index)` and the others by `none`.
  template <class Function>
  void fill(std::size_t count, Function const& word) const {
    for (std::size_t i = 0; i != leaves_; ++i) nodes_[leaves_ + i] = i < count ? word(i) : none;
    for (std::size_t node = leaves_; --node > 0;) {
      Word const left = nodes_[2 * node];
      Word const right = nodes_[2 * node + 1];
      nodes_[node] = right < left ? right : left;
    }
  }

 private:
  Word* nodes_;
  std::size_t leaves_;
};

/// Packs a load and a part into a word: the load in the upper bits, the number of the part in the
/// lower bits. The words have the order of `load_order`.
template <class Word>
class load_key {
 public:
  /// Returns whether loads up to `total` fit into words that never have all bits set.
  [[nodiscard]] static constexpr bool can_hold(std::int64_t total, std::size_t parts) {
    auto const load_bits =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(total)));
    return load_bits + static_cast<std::size_t>(std::bit_width(parts)) < 8 * sizeof(Word);
  }

  explicit constexpr load_key(std::size_t parts)
      : part_bits_(static_cast<int>(std::bit_width(parts))) {}

  [[nodiscard]] constexpr Word operator()(std::int64_t load, std::size_t part) const {
    return static_cast<Word>(load) << part_bits_ | static_cast<Word>(part);
  }
  [[nodiscard]] constexpr std::int64_t load(Word word) const {
    return static_cast<std::int64_t>(word >> part_bits_);
  }
  [[nodiscard]] constexpr std::uint32_t part(Word word) const {
    return static_cast<std::uint32_t>(word & ((Word{1} << part_bits_) - 1));
  }

 private:
  int part_bits_;
};

/// An index of parts by their loads of one kind.
template <class Word>
class load_heap {
 public:
  explicit load_heap(std::size_t parts) : key_(parts) { reset(parts); }

  /// Resets to `parts` parts without loads, in the same memory.
  void reset(std::size_t parts) {
    key_ = load_key<Word>(parts);
    nodes_.resize(winner_tree<Word>::nodes_for(parts));
    tree().fill(parts, [this](std::size_t part) { return key_(0, part); });
  }

  /// Returns the open part with the smallest load, independent of the added cost.
  [[nodiscard]] std::uint32_t best(resources<1> const&) { return key_.part(tree().least()); }
  void add(std::size_t part, resources<1> const& cost) {
    tree().set(part, tree()[part] + key_(cost[0], 0));
  }
  /// Closes a part, which gets no more samples.
  void close(std::size_t part) { tree().set(part, winner_tree<Word>::none); }

 private:
  [[nodiscard]] winner_tree<Word> tree() { return winner_tree<Word>(nodes_); }

  load_key<Word> key_;
  std::vector<Word> nodes_;
};

/// An index of parts by their loads of `R` kinds.
template <std::size_t R>
using part_loads = std::conditional_t<R == 1, load_heap<uint128>, vector_load_index<R>>;

/// The counts of samples of each part under a policy. If each sample goes into a part with room,
/// there is room for all samples.
class count_limits {
 public:
  /// Creates counts without limits.
  explicit count_limits(std::size_t parts)
      : counts_(parts, 0), floor_(std::numeric_limits<std::size_t>::max()) {}

  /// Creates counts under a policy. Errors: `std::invalid_argument` if the policy requires equal
  /// counts that are not possible.
  count_limits(std::string_view function, count_policy policy, std::size_t samples,
               std::size_t parts)
      : count_limits(parts) {
    if (policy == count_policy::any) return;
    floor_ = samples / parts;
    extra_ = samples % parts;
    if (policy == count_policy::equal && extra_ != 0) {
      throw_invalid(function, to_text(samples) + " samples do not give " + to_text(parts) +
                                  " parts with equal counts");
    }
  }

  [[nodiscard]] std::size_t parts() const { return counts_.size(); }
  /// Returns the number of samples in a part.
  [[nodiscard]] std::size_t operator[](std::size_t part) const { return counts_[part]; }
  [[nodiscard]] bool is_full(std::size_t part) const {
    return counts_[part] >= floor_ + (extra_ != 0 ? 1 : 0);
  }

  /// Adds a sample to a part with room. Returns true if no further part may exceed the floor, so
  /// that all parts with `floor` samples become full.
  bool add(std::size_t part) { return ++counts_[part] > floor_ && --extra_ == 0; }

  /// Reverts an `add`.
  void remove(std::size_t part) {
    if (counts_[part]-- > floor_) ++extra_;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::size_t floor_;
  /// The number of parts that may still exceed the floor by one sample.
  std::size_t extra_ = 0;
};

/// Returns the samples from the largest to the smallest cost; samples with equal costs by index.
/// With several kinds, the cost is the sum of the amounts.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> largest_first(integer_costs<R> const& costs) {
  return order_descending(costs.size(), [&costs](std::size_t i) { return sum_of(costs[i]); });
}

/// Returns the number of samples with a cost above zero. `order` is the order of `largest_first`.
template <std::size_t R>
[[nodiscard]] std::size_t count_costly(integer_costs<R> const& costs,
                                       std::span<std::uint32_t const> order) {
  std::size_t result = order.size();
  while (result != 0 && sum_of(costs[order[result - 1]]) == 0) --result;
  return result;
}

/// Assigns `samples` to parts with room; `weight(sample)` is the increase of the loads. The
/// function reads the weights of some samples before it assigns any of these. Random reads of
/// memory therefore overlap; otherwise each read would wait for the part of the previous sample.
template <class Loads, class Weight>
void place(std::span<std::uint32_t const> samples, Weight const& weight, Loads& loads,
           count_limits& room, std::vector<std::uint32_t>& part_of) {
  constexpr std::size_t most = 64;
  std::array<std::remove_cvref_t<decltype(weight(0))>, most> costs;
  for (std::size_t first = 0; first < samples.size(); first += most) {
    auto const some = samples.subspan(first, std::min(most, samples.size() - first));
    for (std::size_t k = 0; k != some.size(); ++k) costs[k] = weight(some[k]);
    for (std::size_t k = 0; k != some.size(); ++k) {
      std::uint32_t const part = loads.best(costs[k]);
      part_of[some[k]] = part;
      loads.add(part, costs[k]);
      bool const leaves_less = room.add(part);
      if (room.is_full(part)) loads.close(part);
      for (std::size_t p = 0; leaves_less && p != room.parts(); ++p) {
        if (room.is_full(p)) loads.close(p);
      }
    }
  }
}

/// Assigns samples with zero cost to the parts with the fewest samples.
inline void place_zero_cost(std::span<std::uint32_t const> samples, count_limits& room,
                            std::vector<std::uint32_t>& part_of) {
  if (samples.empty()) return;
  load_heap<uint128> counts(room.parts());
  for (std::size_t part = 0; part != room.parts(); ++part) {
    counts.add(part, {static_cast<std::int64_t>(room[part])});
    if (room.is_full(part)) counts.close(part);
  }
  auto const one = [](std::uint32_t) { return resources<1>{1}; };
  place(samples, one, counts, room, part_of);
}

/// Places samples from the largest to the smallest cost and returns the part of each. Samples with
/// zero cost are placed last. `with_loads(body)` calls `body(loads)` once with the loads of empty
/// parts.
template <std::size_t R, class WithLoads>
[[nodiscard]] std::vector<std::uint32_t> place_sorted(integer_costs<R> const& costs,
                                                      count_limits room,
                                                      WithLoads const& with_loads) {
  std::vector<std::uint32_t> const order = largest_first(costs);
  std::vector<std::uint32_t> part_of(order.size());
  std::size_t const costly = count_costly(costs, std::span(order));
  with_loads([&](auto loads) {
    auto const cost = [&costs](std::uint32_t sample) -> resources<R> const& {
      return costs[sample];
    };
    place(std::span(order).first(costly), cost, loads, room, part_of);
  });
  place_zero_cost(std::span(order).subspan(costly), room, part_of);
  return part_of;
}

/// Returns the part of each sample by longest processing time first.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> place_longest_first(integer_costs<R> const& costs,
                                                             count_limits room) {
  std::size_t const parts = room.parts();
  return place_sorted(costs, std::move(room), [&](auto const& place_costly) {
    if constexpr (R > 1) {
      place_costly(vector_load_index<R>(parts));
    } else if (std::int64_t const total = sum_of(total_of(costs));
               load_key<std::uint64_t>::can_hold(total, parts)) {
      place_costly(load_heap<std::uint64_t>(parts));
    } else {
      place_costly(load_heap<uint128>(parts));
    }
  });
}

/// Returns a lower bound on the largest amount in any part. The bound is the largest of the mean,
/// the largest cost and, for one kind, the sum of the two smallest among the `parts + 1` largest
/// costs. Two of the samples with these costs share a part. `order` is the order of
/// `largest_first`.
template <std::size_t R>
[[nodiscard]] std::int64_t min_load(integer_costs<R> const& costs,
                                    std::span<std::uint32_t const> order, std::size_t parts) {
  std::int64_t result = 0;
  for (std::int64_t const sum : total_of(costs).amounts) {
    auto const count = static_cast<std::int64_t>(parts);
    result = std::max(result, sum / count + (sum % count != 0 ? 1 : 0));
  }
  for (resources<R> const& cost : costs) result = std::max(result, largest_amount(cost));
  if (R == 1 && order.size() > parts) {
    result = std::max(result, costs[order[parts - 1]][0] + costs[order[parts]][0]);
  }
  return result;
}

/// Returns the largest amount of any kind in any part; `part_of` contains the part of each sample.
template <std::size_t R>
[[nodiscard]] std::int64_t largest_load(integer_costs<R> const& costs,
                                        std::span<std::uint32_t const> part_of, std::size_t parts) {
  integer_costs<R> loads(parts, resources<R>{});
  std::int64_t result = 0;
  for (std::size_t i = 0; i != part_of.size(); ++i) {
    loads[part_of[i]] += costs[i];
    result = std::max(result, largest_amount(loads[part_of[i]]));
  }
  return result;
}

/// Converts a bound in whole numbers to the scale of the cost functor, minus a margin for rounding.
template <class Load>
[[nodiscard]] Load given_bound(std::int64_t bound, integer_costs<1> const& costs,
                               std::vector<Load> const& given) {
  if constexpr (std::integral<Load>) {
    return bound;
  } else {
    auto const whole = static_cast<Load>(total_of(costs)[0]);
    if (whole <= 0) return Load{};
    Load total{};
    for (Load const load : given) total += load;
    Load const rounding =
        4 * std::numeric_limits<Load>::epsilon() * static_cast<Load>(given.size() + 4);
    return static_cast<Load>(bound) / whole * total * (1 - std::min(Load{1}, rounding));
  }
}

/// Returns the largest load of a part. `given` has the load of each item.
template <class Load>
[[nodiscard]] Load largest_given_load(grouping const& parts, std::vector<Load> const& given) {
  Load largest{};
  for (auto const& part : parts) {
    Load sum{};
    for (std::uint32_t const item : part) sum += given[item];
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace omnibal::inline v0::detail
