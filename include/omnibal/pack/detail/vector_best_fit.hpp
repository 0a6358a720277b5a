// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing of several resources, with an index of the open groups by their room.

#include <omnibal/config.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A map of the room in one resource to levels 0 .. count() - 1, which rise with the room.
template <class T>
class quantized_axis {
 public:
  quantized_axis() = default;
  quantized_axis(T capacity, std::size_t most) {
    if constexpr (std::floating_point<T>) {
      count_ = most;
      capacity_ = capacity;
    } else {
      while ((static_cast<std::uint64_t>(capacity) >> shift_) >= most) ++shift_;
      count_ = static_cast<std::size_t>(static_cast<std::uint64_t>(capacity) >> shift_) + 1;
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }

  [[nodiscard]] std::size_t operator()(T room) const {
    if constexpr (std::floating_point<T>) {
      double const level = std::max(0.0, room / capacity_) * static_cast<double>(count_);
      return std::min(count_ - 1, static_cast<std::size_t>(level));
    } else {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(room) >> shift_);
    }
  }

  /// Returns a room that is not above any room of this level.
  [[nodiscard]] T least(std::size_t level) const {
    if constexpr (std::floating_point<T>) {
      return level == 0
                 ? T{0}
                 : (static_cast<double>(level) - 0.5) / static_cast<double>(count_) * capacity_;
    } else {
      return static_cast<T>(static_cast<std::uint64_t>(level) << shift_);
    }
  }

 private:
  std::size_t count_ = 1;
  unsigned shift_ = 0;
  double capacity_ = 1;
};

/// Properties of the demands that the lookup of groups uses.
template <std::size_t R, class T>
struct demand_traits {
  /// The smallest demand of each resource.
  resources<R, T> smallest;
  /// False for a resource if one group has enough of it for all samples.
  bool binds[R];
  /// The binding resource in which the demands have the most different values, judged by at most
  /// 1024 demands; the last of equal resources.
  std::size_t finest;
};

/// Returns the number of different words. Precondition: no word is 2^64 - 1.
[[nodiscard]] inline std::size_t count_distinct(std::vector<std::uint64_t> const& words) {
  auto const bits = static_cast<unsigned>(std::bit_width(words.size())) + 1;
  std::vector<std::uint64_t> table(std::size_t{1} << bits, 0);
  std::size_t distinct = 0;
  for (std::uint64_t const word : words) {
    // Zero marks a free place.
    std::uint64_t const entry = word + 1;
    auto place = static_cast<std::size_t>(entry * 0x9e3779b97f4a7c15u >> (64 - bits));
    while (table[place] != 0 && table[place] != entry) place = (place + 1) % table.size();
    if (std::exchange(table[place], entry) == 0) ++distinct;
  }
  return distinct;
}

/// Returns the traits of the demands. Precondition: there are demands.
template <std::size_t R, class T, class Layout, class Demands>
[[nodiscard]] demand_traits<R, T> traits_of(Layout const& layout, Demands const& demands,
                                            resources<R, T> const& capacity) {
  using sum_type = std::conditional_t<std::floating_point<T>, double, uint128>;
  demand_traits<R, T> result{capacity, {}, R - 1};
  sum_type sums[R] = {};
  for (auto const& demand : demands) {
    for (std::size_t r = 0; r != R; ++r) {
      T const amount = layout.amount(demand, r);
      result.smallest[r] = std::min(result.smallest[r], amount);
      sums[r] += static_cast<sum_type>(amount);
    }
  }
  std::vector<std::uint64_t> values(std::min<std::size_t>(1024, demands.size()));
  std::size_t max_values = 0;
  for (std::size_t r = R; r-- != 0;) {
    result.binds[r] = sums[r] > static_cast<sum_type>(capacity[r]);
    if (!result.binds[r]) continue;
    for (std::size_t k = 0; k != values.size(); ++k) {
      T const amount = layout.amount(demands[k * demands.size() / values.size()], r);
      // There are two floating-point zeros; the sum is one of them.
      values[k] = std::bit_cast<std::uint64_t>(static_cast<T>(amount + T{}));
    }
    std::size_t const distinct = count_distinct(values);
    if (distinct > max_values) {
      max_values = distinct;
      result.finest = r;
    }
  }
  return result;
}

/// Sets of depths, one for each of at most 64 cells. A depth of a cell is named by a bucket,
/// `bucket_of(cell, depth)`. Depths are below 4096 unless `is_deep`.
template <bool is_deep>
class hierarchical_bitset {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  hierarchical_bitset() = default;
  hierarchical_bitset(std::size_t cells, std::size_t depths)
      : depth_bits_(static_cast<unsigned>(std::bit_width(std::max<std::size_t>(64, depths) - 1))),
        words_(cells << (depth_bits_ - 6)),
        summaries_(cells << summary_bits()) {}

  [[nodiscard]] std::size_t bucket_count() const { return 64 * words_.size(); }
  [[nodiscard]] std::size_t bucket_of(std::size_t cell, std::size_t depth) const {
    return cell << depth_bits_ | depth;
  }

  /// Returns a bit for every cell whose set is not empty.
  [[nodiscard]] std::uint64_t cells() const { return cells_; }

  void insert(std::size_t bucket) {
    std::size_t const cell = bucket >> depth_bits_;
    std::size_t const word = word_of(bucket);
    words_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
    summaries_[(cell << summary_bits()) + word / 64] |= std::uint64_t{1} << word % 64;
    cells_ |= std::uint64_t{1} << cell;
  }

  void erase(std::size_t bucket) {
    std::size_t const cell = bucket >> depth_bits_;
    std::size_t const word = word_of(bucket);
    std::uint64_t* const summary = summaries_.data() + (cell << summary_bits());
    words_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
    // Otherwise, the code has no branches because a zero word is hard to predict.
    if (is_deep && words_[bucket / 64] != 0) return;
    std::uint64_t const word_is_empty = words_[bucket / 64] == 0 ? 1 : 0;
    summary[word / 64] &= ~(word_is_empty << word % 64);
    std::uint64_t rest = summary[0];
    for (std::size_t k = 1; is_deep && k >> summary_bits() == 0; ++k) rest |= summary[k];
    std::uint64_t const cell_is_empty = rest == 0 ? 1 : 0;
    cells_ &= ~(cell_is_empty << cell);
  }

  /// Finds the least depth of a cell that is not below `first`, or `none`.
  class search {
   public:
    search(hierarchical_bitset const& sets, std::size_t first)
        : words_(sets.words_.data()),
          summaries_(sets.summaries_.data()),
          word_bits_(sets.depth_bits_ - 6),
          summary_bits_(sets.summary_bits()),
          word_(first / 64),
          here_(~std::uint64_t{0} << first % 64),
          after_(~std::uint64_t{1} << first / 64 % 64) {}

    [[nodiscard]] std::size_t operator()(std::size_t cell) const {
      std::uint64_t const* const words = words_ + (cell << word_bits_);
      std::uint64_t const here = words[word_] & here_;
      if (here != 0) return 64 * word_ + first_of(here);
      std::size_t block = is_deep ? word_ / 64 : 0;
      std::uint64_t const* const summary = summaries_ + (is_deep ? cell << summary_bits_ : cell);
      std::uint64_t after = summary[block] & after_;
      while (is_deep && after == 0 && ++block >> summary_bits_ == 0) after = summary[block];
      if (after == 0) return none;
      std::size_t const word = 64 * block + first_of(after);
      return 64 * word + first_of(words[word]);
    }

   private:
    /// Returns the position of the first bit. Compilers omit a test for zero because one bit is
    /// always set.
    [[nodiscard]] static std::size_t first_of(std::uint64_t bits) {
      return static_cast<std::size_t>(std::countr_zero(bits | std::uint64_t{1} << 63));
    }

    std::uint64_t const* words_;
    std::uint64_t const* summaries_;
    unsigned word_bits_;
    unsigned summary_bits_;
    std::size_t word_;
    std::uint64_t here_;
    std::uint64_t after_;
  };

 private:
  /// Returns the position of the word of a bucket within the words of its cell.
  [[nodiscard]] std::size_t word_of(std::size_t bucket) const {
    return (bucket & ((std::size_t{1} << depth_bits_) - 1)) / 64;
  }

  /// Returns the logarithm to base 2 of the number of summaries of a cell.
  [[nodiscard]] unsigned summary_bits() const {
    return is_deep ? std::max(12u, depth_bits_) - 12 : 0;
  }

  unsigned depth_bits_ = 6;
  std::vector<std::uint64_t> words_;
  /// The words of each cell that are not zero, as bits.
  std::vector<std::uint64_t> summaries_;
  std::uint64_t cells_ = 0;
};

/// The room of each group.
template <class Layout>
struct group_rooms {
  Layout layout;
  typename Layout::room_type const* rooms;
};

/// The groups with room, by cells of their rooms in all resources except for one, the fine
/// resource. Within a cell, groups are sorted by levels of the fine room. The group with the least
/// fine room that a sample fits is therefore found by scanning bits. There are at most 64 cells, so
/// that one word says which cells contain groups.
///
/// If every room has a level of its own, the search is exact. Otherwise, at most `probes` groups of
/// a cell are tried, and one that fits may be missed.
template <std::size_t R, class T>
class open_bin_index {
 public:
  using amounts_type = resources<R, T>;

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// A group in a list, with its predecessor there.
  struct place {
    std::uint32_t group = none;
    std::uint32_t before = none;
    std::uint32_t cell = 0;
    std::uint32_t level = 0;
  };

  open_bin_index(amounts_type const& capacity, demand_traits<R, T> const& traits,
                 std::size_t sample_count)
      : fine_(traits.finest), next_(sample_count) {
    // The number of levels is exact for common capacities and limited by the number of samples.
    std::size_t const max_levels =
        std::max({std::clamp<std::size_t>(16 * sample_count, 4096, 32768),
                  std::min<std::size_t>(sample_count, 131072), sample_count / 4});
    std::size_t cells = 1;
    std::size_t kinds_left = 0;
    for (std::size_t r = 0; r != R; ++r) kinds_left += r != fine_ && traits.binds[r] ? 1 : 0;
    auto const divide = [&](std::size_t r, std::size_t most) {
      coarse_[r] = quantized_axis<T>(capacity[r], most);
      strides_[r] = cells;
      cells *= coarse_[r].count();
    };
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_ && traits.binds[r]) divide(r, root(max_cells / cells, kinds_left--));
    }
    // A resource that does not bind has the levels that the fine resource can spare.
    std::size_t const fine_levels =
        quantized_axis<T>(capacity[fine_], std::max<std::size_t>(1, max_levels / cells)).count();
    for (std::size_t r = 0; r != R; ++r) {
      if (r == fine_ || traits.binds[r]) continue;
      std::size_t const spare = max_levels / fine_levels / cells;
      divide(r, std::clamp<std::size_t>(spare, 1, max_cells / cells));
    }
    levels_ = quantized_axis<T>(capacity[fine_], std::max<std::size_t>(1, max_levels / cells));
    occupied_ = level_sets(cells, levels_.count());
    heads_.assign(cells * levels_.count(), none);
    for (std::size_t cell = 0; cell != cells; ++cell) {
      for (std::size_t r = 0; r != R; ++r) {
        if (r != fine_) least_[cell][r] = coarse_[r].least(level_of(cell, r));
      }
    }
  }

  /// Returns the group with the least score among the groups that fit, or `none`. Among equal
  /// scores, the lower cell wins. Among equal rooms, the group that has had the room for the
  /// shortest time wins.
  template <class Layout, class Score>
  [[nodiscard]] place find(group_rooms<Layout> const& groups,
                           typename Layout::demand_type const& demand, Score const& score) const {
    amounts_type const amounts = groups.layout.amounts(demand);
    place best;
    bool found = false;
    decltype(score(amounts, amounts)) best_score{};
    std::uint64_t candidates = occupied_.cells() & ~std::uint64_t{0} << cell_of(amounts);
    while (candidates != 0) {
      auto const cell = static_cast<std::size_t>(std::countr_zero(candidates));
      candidates &= candidates - 1;
      if (!reaches(cell, amounts)) continue;
      if (found && !(score(min_left(cell, amounts), amounts) < best_score)) {
        if constexpr (R == 2) break;
        continue;
      }
      place const found_here = first_fit(groups, cell, demand, levels_(amounts[fine_]));
      if (found_here.group == none) continue;
      amounts_type const left = left_after(groups, found_here.group, amounts);
      auto const new_score = score(left, amounts);
      if (found && !(new_score < best_score)) continue;
      found = true;
      best = found_here;
      best_score = new_score;
    }
    return best;
  }

  /// Finds a group, removes it and returns it.
  template <class Layout, class Score>
  std::uint32_t take(group_rooms<Layout> const& groups, typename Layout::demand_type const& demand,
                     Score const& score) {
    place const found = find(groups, demand, score);
    if (found.group != none) remove(found);
    return found.group;
  }

  void remove(place const& taken) {
    std::uint32_t const after = next_[taken.group];
    if (taken.before != none) {
      next_[taken.before] = after;
      return;
    }
    heads_[taken.cell * levels_.count() + taken.level] = after;
    if (after == none) occupied_.erase(occupied_.bucket_of(taken.cell, taken.level));
  }

  /// Adds a group with the room `left`.
  void push(std::uint32_t group, amounts_type const& left) {
    std::size_t const cell = cell_of(left);
    std::size_t const level = levels_(left[fine_]);
    std::uint32_t& head = heads_[cell * levels_.count() + level];
    next_[group] = std::exchange(head, group);
    occupied_.insert(occupied_.bucket_of(cell, level));
  }

 private:
  using level_sets = hierarchical_bitset<true>;

  static constexpr std::size_t max_cells = 64;
  static constexpr unsigned probes = 16;

  /// Returns the largest number whose `degree`-th power is at most `value`.
  [[nodiscard]] static std::size_t root(std::size_t value, std::size_t degree) {
    std::size_t result = 1;
    for (;;) {
      std::size_t power = 1;
      for (std::size_t k = 0; k != degree; ++k) power *= result + 1;
      if (power > value) return result;
      ++result;
    }
  }

  [[nodiscard]] std::size_t level_of(std::size_t cell, std::size_t r) const {
    return cell / strides_[r] % coarse_[r].count();
  }

  /// Returns the cell of groups with this room, which is also the lowest cell that can fit these
  /// amounts.
  [[nodiscard]] std::size_t cell_of(amounts_type const& amounts) const {
    std::size_t cell = 0;
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) cell += strides_[r] * coarse_[r](amounts[r]);
    }
    return cell;
  }

  /// Returns false if the rooms of the cell are too small in a coarse resource.
  [[nodiscard]] bool reaches(std::size_t cell, amounts_type const& amounts) const {
    if constexpr (R > 2) {
      for (std::size_t r = 0; r != R; ++r) {
        if (r != fine_ && level_of(cell, r) < coarse_[r](amounts[r])) return false;
      }
    }
    return true;
  }

  /// Returns the room of a group after these amounts; rounding does not make the room negative.
  template <class Layout>
  [[nodiscard]] static amounts_type left_after(group_rooms<Layout> const& groups,
                                               std::uint32_t group, amounts_type const& amounts) {
    amounts_type left = groups.layout.left(groups.rooms[group]) - amounts;
    if constexpr (std::floating_point<T>) {
      for (T& amount : left.amounts) amount = std::max(T{0}, amount);
    }
    return left;
  }

  /// Returns a lower bound on the room of every group of the cell after these amounts.
  [[nodiscard]] amounts_type min_left(std::size_t cell, amounts_type const& amounts) const {
    amounts_type left{};
    for (std::size_t r = 0; r != R; ++r) {
      if (r != fine_) left[r] = std::max(T{0}, static_cast<T>(least_[cell][r] - amounts[r]));
    }
    return left;
  }

  template <class Layout>
  [[nodiscard]] place first_fit(group_rooms<Layout> const& groups, std::size_t cell,
                                typename Layout::demand_type const& demand,
                                std::size_t level) const {
    // In the level of the demand, the fine room may be too small; above this level, only the other
    // rooms may be.
    std::size_t const lowest = level;
    unsigned tried = 0;
    for (; level != levels_.count(); ++level) {
      level = typename level_sets::search(occupied_, level)(cell);
      if (level == level_sets::none) return {};
      place here{heads_[cell * levels_.count() + level], none, static_cast<std::uint32_t>(cell),
                 static_cast<std::uint32_t>(level)};
      while (here.group != none && tried != probes) {
        if (groups.layout.fits(groups.rooms[here.group], demand)) return here;
        ++tried;
        here.before = std::exchange(here.group, next_[here.group]);
      }
      if (level == lowest) tried = 0;
      if (tried == probes) return {};
    }
    return {};
  }

  std::size_t fine_;
  quantized_axis<T> coarse_[R] = {};
  std::size_t strides_[R] = {};
  quantized_axis<T> levels_;
  /// The levels of each cell that hold groups.
  level_sets occupied_;
  amounts_type least_[max_cells] = {};
  std::vector<std::uint32_t> heads_;
  /// The successor of each group in its list.
  unset_array<std::uint32_t> next_;
};

/// The state of the demands after a packing. They are freed as soon as they have been read, because
/// the groups need the memory.
enum class demands_after { kept, freed };

/// Packs samples in this order by best-fit; each sample fits an empty group.
template <class Layout, class Score>
[[nodiscard]] group_assignment fit_by_index(measured<Layout>& input, demands_after after,
                                            std::vector<std::uint32_t> const& order,
                                            Score const& score) {
  using demand_type = typename Layout::demand_type;
  // Demands of one word are read in place, at any address, and `ahead` samples in advance. Wider
  // demands are first copied into the order. Rooms overwrite these copies, because no more groups
  // are open than demands have been read. The memory is therefore 24 + 8R bytes per sample.
  constexpr bool is_wide = sizeof(demand_type) > sizeof(std::uint64_t);
  constexpr std::size_t ahead = 16;
  std::size_t const count = order.size();
  if (count == 0) return group_assignment(0);
  auto const layout = input.layout;
  auto const traits = traits_of(layout, input.demands, input.capacity);
  auto const min_demand = layout.encode(traits.smallest);
  unset_array<demand_type> rooms(count);
  if constexpr (is_wide) {
    for (std::size_t k = 0; k != count; ++k) rooms[k] = input.demands[order[k]];
    if (after == demands_after::freed) release(input.demands);
  }
  demand_type const* const demands = is_wide ? rooms.data() : input.demands.data();
  group_rooms<Layout> const groups{layout, rooms.data()};
  open_bin_index open(input.capacity, traits, count);
  group_assignment result(count);
  for (std::size_t k = 0; k != count; ++k) {
    if (!is_wide && k + ahead < count) __builtin_prefetch(demands + order[k + ahead]);
    auto const demand = demands[is_wide ? k : order[k]];
    std::uint32_t group = open.take(groups, demand, score);
    if (group == open.none) {
      group = result.open(1).first;
      rooms[group] = layout.empty_room();
    }
    layout.take(rooms[group], demand);
    result.assign(group);
    if (layout.fits(rooms[group], min_demand)) open.push(group, layout.left(rooms[group]));
  }
  if (after == demands_after::freed) release(input.demands);
  return result;
}

/// The size of a sample in units of 2^-32, by `measure` and the other measure in turn. From attempt
/// 2 on, the size has random weights of resources and factors of samples, all in [1/2, 1).
template <std::size_t R, class T>
class sample_size {
 public:
  sample_size(resources<R, T> const& capacity, size_measure measure, std::size_t attempt = 0)
      : share_(capacity),
        takes_sum_((measure == size_measure::sum_of_shares) == (attempt % 2 == 0)),
        varies_(attempt > 1),
        words_(0, attempt) {
    for (std::uint64_t& weight : weights_) weight = half_to_one(words_());
  }

  [[nodiscard]] std::uint64_t operator()(resources<R, T> const& amounts, std::size_t sample) const {
    if (!varies_) return whole([&](std::size_t r) { return share_(amounts[r], r); }) >> 31;
    std::uint64_t const size =
        whole([&](std::size_t r) { return (share_(amounts[r], r) >> 16) * weights_[r]; });
    return (size >> 16) * half_to_one(words_.word(R + sample)) >> 31;
  }

 private:
  [[nodiscard]] static std::uint64_t half_to_one(std::uint64_t word) {
    return (word >> 49) | std::uint64_t{1} << 15;
  }

  /// Returns the shares of a sample as one number; `share(r)` is the share of resource r.
  template <class Share>
  [[nodiscard]] std::uint64_t whole(Share const& share) const {
    std::uint64_t sum = 0;
    std::uint64_t largest = 0;
    for (std::size_t r = 0; r != R; ++r) {
      sum += share(r);
      largest = std::max(largest, share(r));
    }
    return takes_sum_ ? sum : largest;
  }

  capacity_shares<R, T> share_;
  bool takes_sum_;
  bool varies_;
  rng::engine words_;
  std::uint64_t weights_[R] = {};
};

/// Packs samples by best-fit decreasing by `score`, the largest samples by `size` first.
template <class Layout, class Size, class Score>
[[nodiscard]] grouping vector_best_fit(measured<Layout>& input, demands_after after,
                                       Size const& size, Score const& score) {
  std::vector<std::uint32_t> order = order_descending(
      input.size(), [&size, layout = input.layout, first = input.demands.data()](std::size_t k) {
        return size(layout.amounts(first[k]), k);
      });
  auto assigned = fit_by_index(input, after, order, score);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

}  // namespace omnibal::inline v0::detail
