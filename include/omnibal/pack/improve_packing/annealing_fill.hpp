// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Fewer groups by simulated annealing over packings of a part of the samples.

#include <omnibal/config.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing/bin_elimination.hpp>
#include <omnibal/pack/improve_packing/bounded_knapsack.hpp>
#include <omnibal/pack/improve_packing/pack_afresh.hpp>
#include <omnibal/pack/improve_packing/subset_sum.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The temperature of simulated annealing, in integers.
class annealing_schedule {
 public:
  /// Begins with the temperature `size / parts`, the mean of the largest accepted loss.
  annealing_schedule(std::int64_t size, std::uint64_t parts)
      : first_(static_cast<uint128>(size) * fraction / parts + 1) {}

  /// Sets the temperature at `step` of `steps`. The temperature falls by a constant factor per
  /// step, to 2^-12 of the first temperature. At the end, practically no loss is accepted if values
  /// are below a few thousand.
  void set(std::uint64_t step, std::uint64_t steps) {
    constexpr std::uint64_t halvings = 12;
    auto const passed = static_cast<uint128>(step) * halvings * fraction / steps;
    auto const rest = static_cast<std::uint64_t>(passed % fraction);
    // The temperature is linear between powers of two.
    temperature_ = (first_ >> static_cast<unsigned>(passed / fraction)) * (2 * fraction - rest) /
                   (2 * fraction);
  }

  /// Returns the largest loss that is accepted: a random number with an exponential distribution,
  /// whose mean is the temperature.
  [[nodiscard]] std::int64_t largest_loss(rng::engine& words) const {
    std::uint64_t const word = words() | 1;
    auto const zeros = static_cast<unsigned>(std::countl_zero(word));
    // The logarithm to base 2 of 2^(-zeros - 1) (1 + part); a parabola approximates the logarithm
    // of 1 + part.
    std::uint64_t const part = word << zeros << 1 >> 48;
    std::uint64_t const bend = part * (fraction - part) / fraction * 344 / 1000;
    std::uint64_t const log2 = (zeros + 1) * fraction - part - bend;
    auto const loss = temperature_ * log2 / fraction * 693 / 1000 / fraction;
    return static_cast<std::int64_t>(std::min<uint128>(loss, INT64_MAX));
  }

 private:
  static constexpr std::uint64_t fraction = 1 << 16;

  uint128 first_;
  uint128 temperature_ = 0;
};

/// The values of samples in a packing. With one kind of demand and values that do not rise, the
/// value of a sample is its demand. Otherwise, the value is the sum of the demands as shares of the
/// capacity, weighted by the scarcity of each kind.
///
/// If groups cannot be full, some samples are harder to place than their size indicates. The prices
/// of a linear program would show this. Such a sample therefore gains value whenever it enters a
/// group without a gain. Source: Nagata, Braysy, "A powerful route minimization heuristic for the
/// vehicle routing problem with time windows", 2009.
template <class Layout>
class sample_values {
 public:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::size_t kinds = amounts_type::size();

  /// `input` must outlive this object.
  explicit sample_values(measured<Layout> const& input) : input_(input), size_(input) {
    values_.resize(input.size());
    reset();
    for (std::int64_t const value : values_) sum_ += static_cast<uint128>(value);
  }

  [[nodiscard]] std::int64_t operator[](std::uint32_t sample) const { return values_[sample]; }
  [[nodiscard]] amounts_type demand(std::uint32_t sample) const { return input_.amounts(sample); }
  /// Returns true if values are demands.
  [[nodiscard]] bool are_sizes() const { return kinds == 1 && !are_rising_; }

  /// Begins a search for `groups` groups. With several kinds, values rise from now on if all
  /// samples together leave more than 1/64 of the room in these groups empty. In fuller groups,
  /// only the demand of a sample counts.
  void begin(std::size_t groups) {
    if constexpr (kinds != 1) {
      auto const room = static_cast<uint128>(size(input_.capacity)) * groups;
      set_rising(sum_ < room - room / 64);
    }
  }

  /// With one kind of demand, switches whether values rise. Returns false and changes nothing if
  /// there are several kinds.
  bool alternate() {
    if constexpr (kinds == 1) set_rising(!are_rising_);
    return kinds == 1;
  }

  /// Raises the value of a sample that entered a group without increasing the value of the group.
  /// Changes nothing if values do not rise.
  void raise(std::uint32_t sample) {
    // The number of rises that double a value.
    constexpr std::int64_t rises_to_double = 400;
    // The limit allows the sum of 64 values.
    constexpr std::int64_t most = std::int64_t{1} << 48;
    if (!are_rising_ || values_[sample] > most) return;
    values_[sample] += size(input_.amounts(sample)) / rises_to_double;
  }

 private:
  /// Resets the values when they no longer rise. With one kind, also resets them when they begin to
  /// rise, because their unit changes.
  void set_rising(bool are_rising) {
    bool const has_changed = are_rising != are_rising_;
    are_rising_ = are_rising;
    if (has_changed && (kinds == 1 || !are_rising)) reset();
  }
  void reset() {
    for (std::uint32_t k = 0; k != values_.size(); ++k) values_[k] = size(input_.amounts(k));
  }

  /// Returns the initial value for `amounts`. Shares are up to 2^31 and never zero.
  [[nodiscard]] std::int64_t size(amounts_type const& amounts) const {
    if (are_sizes()) return amounts[0];
    return static_cast<std::int64_t>(size_(amounts) >> 31) + 1;
  }

  measured<Layout> const& input_;
  scarcity_weighted_size<kinds, std::int64_t> size_;
  std::vector<std::int64_t> values_;
  /// The sum of all initial values.
  uint128 sum_ = 0;
  bool are_rising_ = false;
};

/// The best samples for the room that a group has left. With one kind of demand, subset sums find
/// these samples if values are demands; otherwise, a search finds them.
template <std::size_t R>
class group_filling {
 public:
  using amounts_type = resources<R, std::int64_t>;
  static constexpr std::size_t max_values = bounded_knapsack<R>::max_values;

  explicit group_filling(amounts_type const& capacity) : sums_(sums_for(capacity)) {}

  /// Fills `room` with samples that have these demands and values. Returns the largest sum of
  /// values that is found. `are_sizes` is true if values are demands.
  std::int64_t fill(std::span<amounts_type const> demands, std::span<std::int64_t const> values,
                    bool are_sizes, amounts_type const& room) {
    std::int64_t const value = evaluate_filling(demands, values, are_sizes, room);
    if constexpr (checks_gains) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i != values.size(); ++i) sum += has(i) ? values[i] : 0;
      check_gain({"annealing_fill", "filling"}, value, sum);
    }
    return value;
  }

  /// Returns true if the last filling contains the sample at `position`.
  [[nodiscard]] bool has(std::size_t position) const {
    if constexpr (R == 1) {
      if (by_sums_) return sums_.has(position);
    }
    return search_.has(position);
  }

  /// Returns the work of the last call, in operations on a word.
  [[nodiscard]] std::size_t work() const {
    if constexpr (R == 1) {
      if (by_sums_) return sums_.work();
    }
    return search_.work();
  }

 private:
  /// Selects the best samples and returns the sum of their values.
  std::int64_t evaluate_filling(std::span<amounts_type const> demands,
                                std::span<std::int64_t const> values, bool are_sizes,
                                amounts_type const& room) {
    if constexpr (R == 1) {
      by_sums_ = are_sizes;
      if (by_sums_) return sums_.fill(values, room[0]);
    }
    return search_.fill(demands, values, room);
  }

  struct no_sums {};
  using sums_type = std::conditional_t<R == 1, subset_sum, no_sums>;

  [[nodiscard]] static sums_type sums_for(amounts_type const& capacity) {
    if constexpr (R == 1) {
      return subset_sum(capacity[0]);
    } else {
      return {};
    }
  }

  sums_type sums_;
  bounded_knapsack<R> search_;
  bool by_sums_ = false;
};

/// A packing of some samples in groups, with a pool of the other samples, and the steps between
/// such packings.
///
/// A step forces a sample of the pool into a group. The step fills the remaining room with the best
/// subset of the previous samples of the group and of some samples of the pool. All samples that
/// are then in no group form the pool. Samples above half of the capacity are lifted. With several
/// kinds, the kind with the most such samples decides. Lifted samples remain in their groups
/// because no two of them share a group. Groups therefore differ in the room that their lifted
/// samples leave.
template <class Layout>
class partial_packing {
 public:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::size_t kinds = amounts_type::size();

  /// `input` must outlive this object.
  explicit partial_packing(measured<Layout> const& input)
      : values_(input), capacity_(input.capacity), next_(input.size()), filling_(input.capacity) {
    candidates_.reserve(max_candidates);
    demands_.reserve(max_candidates);
    worths_.reserve(max_candidates);
    choose_lifted_kind(input);
  }

  /// Copies `groups`, except for each group g with `is_dissolved(g)`, whose samples enter the pool.
  /// `target` is the number of groups that the search tries to reach. Precondition: no dissolved
  /// group contains a lifted sample.
  template <class Dissolved>
  void assign(grouping const& groups, Dissolved const& is_dissolved, std::size_t target) {
    groups_.clear();
    pool_.clear();
    lifted_.clear();
    weightless_.clear();
    for (uint128& load : pool_load_) load = 0;
    values_.begin(target);
    has_changed_ = true;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      bool const is_loose = is_dissolved(g);
      if (!is_loose) groups_.push_back({capacity_, {}, none});
      for (std::uint32_t const sample : groups[g]) {
        amounts_type const demand = values_.demand(sample);
        if (demand == amounts_type{}) {
          weightless_.push_back(sample);
        } else if (is_lifted(sample)) {
          groups_.back().room -= demand;
          lifted_.push_back({sample, static_cast<std::uint32_t>(groups_.size() - 1)});
        } else if (is_loose) {
          loosen(sample);
        } else {
          groups_.back().load += demand;
          put(groups_.back(), sample);
        }
      }
    }
  }

  [[nodiscard]] bool is_lifted(std::uint32_t sample) const {
    std::int64_t const amount = values_.demand(sample)[lifted_kind_];
    return amount > capacity_[lifted_kind_] - amount;
  }
  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::span<std::uint32_t const> pool() const { return pool_; }
  [[nodiscard]] std::int64_t value(std::uint32_t sample) const { return values_[sample]; }

  /// With one kind of demand, switches whether values rise. Returns false if there are several
  /// kinds.
  bool alternate_values() { return values_.alternate(); }
  [[nodiscard]] bool are_sizes() const { return values_.are_sizes(); }

  /// Returns true if the load of the pool is at most `most` capacities and the pool has changed
  /// since the last attempt to pack it.
  [[nodiscard]] bool may_fit(std::size_t most) const {
    return has_changed_ && fits(pool_load_, most);
  }

  /// Performs one step and returns its work. Precondition: groups and pool are not empty.
  std::size_t step(annealing_schedule const& temperature, rng::engine& words) {
    // The work of a step besides the filling, in operations on a word.
    constexpr std::size_t other_work = 64;
    std::swap(pool_[rng::below(words, pool_.size())], pool_.back());
    std::uint32_t const forced = pool_.back();
    // Multiples of the golden ratio select all groups equally often.
    cursor_ += 0x9e3779b97f4a7c15u;
    group& into =
        groups_[static_cast<std::size_t>(static_cast<uint128>(cursor_) * groups_.size() >> 64)];
    amounts_type const demand = values_.demand(forced);
    if (!demand.fits(into.room)) return other_work / 4;
    std::size_t const loose = order_candidates(into, words);
    amounts_type const rest = into.room - demand;
    if (!kept_load_.fits(rest)) return other_work;
    std::int64_t const gain = evaluate_step(forced, rest - kept_load_);
    if (-gain <= temperature.largest_loss(words)) {
      apply_checked(
          {"annealing_fill", "step"}, gain, [&] { return -value_of(into); },
          [&] { apply_step(into, loose); });
    }
    if (gain <= 0) values_.raise(forced);
    return other_work + filling_.work();
  }

  /// Packs the pool into at most `most` groups if possible. Each group contains the most valuable
  /// sample that is left and the best subset of the other samples. Returns false if a sample is
  /// left.
  bool pack_pool(std::size_t most, grouping& packed) {
    has_changed_ = false;
    packed.clear();
    left_.assign(pool_.begin(), pool_.end());
    std::sort(left_.begin(), left_.end(), [this](std::uint32_t one, std::uint32_t other) {
      return values_[one] != values_[other] ? values_[one] > values_[other] : one < other;
    });
    auto load = pool_load_;
    for (; most != 0 && !left_.empty(); --most) {
      if (!fits(load, most)) return false;
      amounts_type const filled = fill_from_left(packed);
      for (std::size_t r = 0; r != kinds; ++r) load[r] -= static_cast<uint128>(filled[r]);
      packed.close();
    }
    return left_.empty();
  }

  /// Appends the groups to `result`, without the samples of the pool.
  void append_to(grouping& result) const {
    for (std::uint32_t const sample : weightless_) result.push(sample);
    auto lifted = lifted_.begin();
    for (std::uint32_t g = 0; g != groups_.size(); ++g) {
      for (; lifted != lifted_.end() && lifted->group == g; ++lifted) result.push(lifted->sample);
      for (std::uint32_t k = groups_[g].first; k != none; k = next_[k]) result.push(k);
      result.close();
    }
  }

 private:
  using total_type = std::array<uint128, kinds>;

  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr std::size_t max_candidates = group_filling<kinds>::max_values;
  /// The largest number of candidates from the pool, and from a group. Most pools and groups have
  /// fewer samples.
  static constexpr std::size_t max_of_pool = max_candidates / 2;
  static constexpr std::size_t max_of_group = max_candidates / 2;

  /// The room of a group for samples that are not lifted, the load of these samples, and the first
  /// sample of their list.
  struct group {
    amounts_type room;
    amounts_type load;
    std::uint32_t first;
  };
  struct lifted_sample {
    std::uint32_t sample;
    std::uint32_t group;
  };

  void choose_lifted_kind(measured<Layout> const& input) {
    std::array<std::size_t, kinds> above_half = {};
    for (std::size_t r = 0; r != kinds; ++r) {
      auto const amount = input.amounts_of(r);
      for (std::size_t k = 0; k != input.size(); ++k) {
        above_half[r] += amount(k) > capacity_[r] - amount(k) ? 1u : 0u;
      }
    }
    lifted_kind_ = static_cast<std::size_t>(std::max_element(above_half.begin(), above_half.end()) -
                                            above_half.begin());
  }

  [[nodiscard]] bool fits(total_type const& load, std::size_t groups) const {
    for (std::size_t r = 0; r != kinds; ++r) {
      if (load[r] > static_cast<uint128>(capacity_[r]) * groups) return false;
    }
    return true;
  }

  void put(group& into, std::uint32_t sample) {
    next_[sample] = into.first;
    into.first = sample;
  }
  void loosen(std::uint32_t sample) {
    pool_.push_back(sample);
    amounts_type const demand = values_.demand(sample);
    for (std::size_t r = 0; r != kinds; ++r) pool_load_[r] += static_cast<uint128>(demand[r]);
  }

  /// Chooses candidates, in random order: samples of the pool except for its last sample, and
  /// samples of `from`. Moves the chosen samples of the pool before its last sample and returns
  /// their number. `from` keeps the end of a list with more than `max_of_group` samples.
  std::size_t order_candidates(group const& from, rng::engine& words) {
    candidates_.clear();
    std::size_t const others = pool_.size() - 1;
    std::size_t const loose = std::min(others, max_of_pool);
    for (std::size_t k = 0; k != loose; ++k) {
      std::size_t const last = others - 1 - k;
      if (others != loose) std::swap(pool_[last], pool_[rng::below(words, last + 1)]);
      candidates_.push_back(pool_[last]);
    }
    std::uint32_t k = from.first;
    kept_load_ = from.load;
    replaced_value_ = 0;
    for (; k != none && candidates_.size() != loose + max_of_group; k = next_[k]) {
      candidates_.push_back(k);
      kept_load_ -= values_.demand(k);
      replaced_value_ += values_[k];
    }
    first_kept_ = k;
    for (std::size_t n = candidates_.size(); n > 1; --n) {
      std::swap(candidates_[n - 1], candidates_[rng::below(words, n)]);
    }
    return loose;
  }

  /// Finds the best candidates that fit `room` and returns their value.
  std::int64_t fill(amounts_type const& room) {
    worths_.clear();
    demands_.clear();
    for (std::uint32_t const sample : candidates_) {
      worths_.push_back(values_[sample]);
      demands_.push_back(values_.demand(sample));
    }
    return filling_.fill(demands_, worths_, values_.are_sizes(), room);
  }

  /// Returns the gain if a group receives the forced sample and the best candidates for `room`: the
  /// increase of the value of the group.
  [[nodiscard]] std::int64_t evaluate_step(std::uint32_t forced, amounts_type const& room) {
    return values_[forced] + fill(room) - replaced_value_;
  }
  /// Returns the value of the samples of a group that are not lifted, summed over the samples.
  [[nodiscard]] std::int64_t value_of(group const& one) const {
    std::int64_t value = 0;
    for (std::uint32_t k = one.first; k != none; k = next_[k]) value += values_[k];
    return value;
  }

  /// Assigns to `into` the forced sample, the samples of the subset, and the samples that the group
  /// keeps.
  void apply_step(group& into, std::size_t loose) {
    has_changed_ = true;
    std::uint32_t const forced = pool_.back();
    pool_.resize(pool_.size() - 1 - loose);
    for (std::size_t r = 0; r != kinds; ++r) pool_load_[r] += static_cast<uint128>(into.load[r]);
    into.load = kept_load_ + values_.demand(forced);
    into.first = first_kept_;
    put(into, forced);
    for (std::size_t i = 0; i != candidates_.size(); ++i) {
      if (filling_.has(i)) {
        put(into, candidates_[i]);
        into.load += values_.demand(candidates_[i]);
      } else {
        pool_.push_back(candidates_[i]);
      }
    }
    for (std::size_t r = 0; r != kinds; ++r) pool_load_[r] -= static_cast<uint128>(into.load[r]);
  }

  /// Moves samples from `left_`, whose values descend, into a new group and returns the load of the
  /// group.
  amounts_type fill_from_left(grouping& packed) {
    amounts_type room = capacity_;
    std::size_t rest = 0;
    // If there are too many samples for one filling, the more valuable samples are placed one after
    // the other.
    std::size_t const by_filling = std::min(left_.size() - 1, max_candidates);
    std::size_t const in_turn = left_.size() - by_filling;
    for (std::size_t i = 0; i != in_turn; ++i) {
      std::uint32_t const sample = left_[i];
      amounts_type const demand = values_.demand(sample);
      if (demand.fits(room)) {
        room -= demand;
        packed.push(sample);
      } else {
        left_[rest++] = sample;
      }
    }
    candidates_.assign(left_.end() - static_cast<std::ptrdiff_t>(by_filling), left_.end());
    fill(room);
    for (std::size_t i = 0; i != by_filling; ++i) {
      if (filling_.has(i)) {
        packed.push(candidates_[i]);
        room -= values_.demand(candidates_[i]);
      } else {
        left_[rest++] = candidates_[i];
      }
    }
    left_.resize(rest);
    return capacity_ - room;
  }

  sample_values<Layout> values_;
  amounts_type capacity_;
  std::vector<group> groups_;
  /// The next sample of the same group.
  std::vector<std::uint32_t> next_;
  std::size_t lifted_kind_ = 0;
  std::vector<lifted_sample> lifted_;
  /// Samples of zero demand, which fit any group.
  std::vector<std::uint32_t> weightless_;
  std::vector<std::uint32_t> pool_;
  /// The sum of the demands in the pool.
  total_type pool_load_ = {};
  bool has_changed_ = false;

  group_filling<kinds> filling_;
  std::vector<std::uint32_t> candidates_;
  /// The demands of the candidates.
  std::vector<amounts_type> demands_;
  std::vector<std::int64_t> worths_;
  std::uint32_t first_kept_ = none;
  std::uint64_t cursor_ = 0;
  amounts_type kept_load_ = {};
  /// The total value of the candidates that came from the group.
  std::int64_t replaced_value_ = 0;
  std::vector<std::uint32_t> left_;
};

/// Reduces the number of groups of a packing, pass by pass, by simulated annealing of the size of
/// the pool of a `partial_packing`.
///
/// The groups with the smallest loads are dissolved: the number of groups to save, and two more. In
/// the end, the pool may fill the two additional groups. It has enough samples to fill the other
/// groups exactly. When the pool fits the additional groups, the packing has saved the intended
/// number of groups. The temperature falls over some passes; then the pool is packed again. If the
/// new packing saves nothing, the next descent is to save half of the groups and takes twice the
/// passes. To save a single group, descents with several kinds of demand dissolve two and four
/// additional groups in turn. With one kind, there are two descents before the number of passes
/// doubles. The first descent uses sizes alone, which fills groups exactly. The second uses values
/// that rise, because groups that hold the largest possible number of samples may not be full.
///
/// Memory: 16 bytes per sample and 8 + 16R per group; a step allocates nothing unless the pool
/// grows. Sources: Loh, Golden, Wasil, "Solving the one-dimensional bin packing problem with a
/// weight annealing heuristic", 2008; Buljubasic, Vasquez, "Consistent neighborhood search for
/// one-dimensional bin packing and two-dimensional vector packing", 2016.
template <class Layout>
class annealing_fill {
 public:
  /// `input` must outlive this object.
  annealing_fill(measured<Layout> const& input, std::uint64_t seed)
      : input_(input), words_(seed, stream), state_(input), temperature_(first_temperature()) {}

  /// Performs one pass over `groups`, which never increases their number. No packing has fewer than
  /// `bound` groups. Precondition: there are more than `bound` groups.
  void run(grouping& groups, std::size_t bound) {
    if (!is_open_) open(groups, groups.size() - bound);
    if (is_exhausted_) return;
    std::size_t const of_pass = work_of_pass();
    work_ += of_pass;
    for (search_budget budget(of_pass); !budget.is_spent();) {
      if (state_.may_fit(max_packed_)) {
        if (state_.pack_pool(max_packed_, packed_)) {
          adopt(groups, packed_);
          return;
        }
        budget.spend(sort_work * state_.pool().size());
      }
      temperature_.set(done_ + budget.spent(), of_pass * passes_);
      budget.spend(state_.step(temperature_, words_));
    }
    done_ += of_pass;
    if (done_ >= of_pass * passes_) end_descent(groups);
  }

  /// Returns the work of all passes, in operations on words.
  [[nodiscard]] std::size_t work() const { return work_; }

  /// Returns true if no step is possible.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  static constexpr std::uint64_t lifted = std::uint64_t{1} << 63;
  /// The stream of random numbers; the exchanges use stream 0.
  static constexpr std::uint64_t stream = 1;
  static constexpr std::size_t kinds = Layout::amounts_type::size();
  /// The number of additional groups that are dissolved. With one additional group, the pool has
  /// too few samples to choose from; with more than two, too few groups are left to fill.
  static constexpr std::size_t few_spare = 2;
  /// The number of additional groups in every other descent for a single group, with several kinds.
  static constexpr std::size_t many_spare = 4;
  /// The work that the budget is charged for an attempt to pack the pool, in operations on words
  /// per sample of the pool. The charge limits passes with many such attempts.
  static constexpr std::size_t sort_work = 16;

  [[nodiscard]] std::int64_t mean_value() const {
    uint128 sum = 0;
    std::size_t count = 0;
    for (std::uint32_t k = 0; k != input_.size(); ++k) {
      if (state_.is_lifted(k)) continue;
      sum += static_cast<uint128>(state_.value(k));
      ++count;
    }
    return count == 0 ? 0 : static_cast<std::int64_t>(sum / count);
  }

  /// Returns a fraction of the mean value. With one kind, the fraction is an 80th if values are
  /// sizes and a fifth if values rise. With several kinds, the fraction is a 28th.
  [[nodiscard]] annealing_schedule first_temperature() const {
    std::uint64_t const parts = kinds != 1 ? 28 : state_.are_sizes() ? 80 : 5;
    return annealing_schedule(mean_value(), parts);
  }

  /// Returns the work of a pass, in operations on words: with one kind, similar to a pass by
  /// exchanges when most groups are full; with several kinds, less. The constant gives a pass over
  /// few samples some steps.
  [[nodiscard]] std::size_t work_of_pass() const {
    constexpr std::size_t of_sample = kinds == 1 ? 14 : 32 * kinds;
    return of_sample * (64 + input_.size());
  }

  /// Dissolves the groups with the smallest loads among the groups without a lifted sample.
  void open(grouping const& groups, std::size_t above_bound) {
    save_ = std::min(max_saved_, above_bound);
    std::vector<std::uint64_t> const loads = loads_of(groups);
    auto const is_whole = [](std::uint64_t load) { return load < lifted; };
    auto const whole =
        static_cast<std::size_t>(std::count_if(loads.begin(), loads.end(), is_whole));
    std::size_t const dissolved = std::min({save_ + spare_, whole, groups.size() - 1});
    is_exhausted_ = dissolved < save_;
    if (is_exhausted_) return;
    std::vector<std::uint64_t> order(loads);
    auto const last = order.begin() + static_cast<std::ptrdiff_t>(dissolved - 1);
    std::nth_element(order.begin(), last, order.end());
    // Among equal loads, the first groups are dissolved.
    auto ties =
        dissolved - static_cast<std::size_t>(std::count_if(
                        loads.begin(), loads.end(), [&](auto load) { return load < *last; }));
    auto const is_dissolved = [&](std::size_t g) {
      return loads[g] < *last || (loads[g] == *last && ties != 0 && ties-- != 0);
    };
    state_.assign(groups, is_dissolved, groups.size() - save_);
    max_packed_ = dissolved - save_;
    is_open_ = true;
    done_ = 0;
  }

  /// Returns the load of each group, with bit 63 set if the group contains a lifted sample.
  [[nodiscard]] std::vector<std::uint64_t> loads_of(grouping const& groups) const {
    std::vector<std::uint64_t> loads(groups.size());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      for (std::uint32_t const sample : groups[g]) {
        loads[g] += static_cast<std::uint64_t>(state_.value(sample));
        if (state_.is_lifted(sample)) loads[g] |= lifted;
      }
    }
    return loads;
  }

  /// Replaces `groups` by the groups of the state and the groups of its pool.
  void adopt(grouping& groups, grouping const& pool_groups) {
    grouping after;
    after.reserve(state_.size() + pool_groups.size(), input_.size());
    state_.append_to(after);
    for (auto const group : pool_groups) {
      for (std::uint32_t const sample : group) after.push(sample);
      after.close();
    }
    groups = std::move(after);
    is_open_ = false;
  }

  /// Ends a descent. Packs the pool again, and replaces `groups` by the groups of the state and of
  /// this packing if their number is not larger. Then sets the parameters of the next descent.
  void end_descent(grouping& groups) {
    grouping const packed = pack_afresh(input_, state_.pool());
    std::size_t const count = groups.size();
    if (state_.size() + packed.size() <= count) adopt(groups, packed);
    done_ = 0;
    if (groups.size() < count) return;
    if (save_ > 1) {
      is_open_ = false;
    } else if (state_.alternate_values()) {
      temperature_ = first_temperature();
      if (!state_.are_sizes()) return;
    } else {
      spare_ = few_spare + many_spare - spare_;
      is_open_ = false;
    }
    // The steps of 2^20 passes fit 64 bits.
    max_saved_ = std::max<std::size_t>(1, save_ / 2);
    passes_ = std::min(2 * passes_, std::size_t{1} << 20);
  }

  measured<Layout> const& input_;
  rng::engine words_;
  partial_packing<Layout> state_;
  annealing_schedule temperature_;
  grouping packed_;
  std::size_t max_saved_ = static_cast<std::size_t>(-1);
  std::size_t save_ = 0;
  std::size_t spare_ = few_spare;
  std::size_t max_packed_ = 0;
  std::size_t passes_ = 1;
  std::size_t done_ = 0;
  std::size_t work_ = 0;
  bool is_open_ = false;
  bool is_exhausted_ = false;
};

}  // namespace omnibal::inline v0::detail
