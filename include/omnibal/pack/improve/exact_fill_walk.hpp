#pragma once

/// \file
/// Fewer groups by simulated annealing over packings of a part of the samples.

#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve/bin_elimination.hpp>
#include <omnibal/pack/improve/bounded_knapsack.hpp>
#include <omnibal/pack/improve/pack_afresh.hpp>
#include <omnibal/pack/improve/subset_sum.hpp>
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
class cooling {
 public:
  /// Begins with one of so many `parts` of `size`: there a loss of that much is accepted now and
  /// then.
  cooling(std::int64_t size, std::uint64_t parts)
      : first_(static_cast<uint128>(size) * fraction / parts + 1) {}

  /// Sets the temperature at `step` of `steps`: it falls by a constant factor each, to 2^-12 of the
  /// first, where no loss of a whole unit is accepted among values below some thousands. To 2^-6
  /// all of 12 generated lists of 999 triplets stay above the optimum in 0.02 s, to 2^-12 and to
  /// 2^-24 one; to 2^-24 two of 12 lists of 75 samples under a capacity of 80,000 do so in 0.1 s,
  /// else none.
  void set(std::uint64_t step, std::uint64_t steps) {
    constexpr std::uint64_t halvings = 12;
    auto const passed = static_cast<uint128>(step) * halvings * fraction / steps;
    auto const rest = static_cast<std::uint64_t>(passed % fraction);
    // Between powers of two a line.
    temperature_ = (first_ >> static_cast<unsigned>(passed / fraction)) * (2 * fraction - rest) /
                   (2 * fraction);
  }

  /// The largest loss that is accepted: exponentially distributed, the temperature in the mean.
  [[nodiscard]] std::int64_t largest_loss(rng::engine& words) const {
    std::uint64_t const word = words() | 1;
    auto const zeros = static_cast<unsigned>(std::countl_zero(word));
    // The logarithm to base 2 of 2^(-zeros - 1) (1 + part), that of 1 + part by a parabola.
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

/// What samples are worth in a packing: of one kind of demand what they take; of several, and of
/// one where values rise, the sum of what they take as shares of the capacity, weighted by how
/// scarce each kind is.
///
/// Where groups cannot be full, some samples are harder to place than their size tells, as the
/// prices of a linear program would: such a sample gains value whenever it comes in at no gain.
/// Source of that: Nagata, Braysy, "A powerful route minimization heuristic for the vehicle routing
/// problem with time windows", 2009.
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
  /// True where values are demands.
  [[nodiscard]] bool are_sizes() const { return kinds == 1 && !are_rising_; }

  /// Of several kinds values may rise from now on where all samples leave a 64th or more of so many
  /// groups empty: in fuller ones what counts is what they take. With a 32nd 9 of 10 lists of 150
  /// generated triplets of three kinds stay above the optimum in 0.1 s, with a 64th two; with a
  /// 128th and where they rise in all groups ten lists of 1000 samples of two kinds take 21 and 24
  /// groups above the bound, with a 64th 19.
  void begin(std::size_t groups) {
    if constexpr (kinds != 1) {
      auto const room = static_cast<uint128>(size(input_.capacity)) * groups;
      set_rising(sum_ < room - room / 64);
    }
  }

  /// Of one kind values rise in every other search.
  /// False of several kinds, where nothing changes.
  bool alternate() {
    if constexpr (kinds == 1) set_rising(!are_rising_);
    return kinds == 1;
  }

  /// The sample came into a group that is worth no more with it.
  void raise(std::uint32_t sample) {
    // With 50 some samples outweigh others before those have found a place; with 200 and 800 twenty
    // lists each of 250 samples from 50 to 350 of 500 and from 266 to 396 of 1000 take as many
    // groups, in 0.1 s. Where none rises ten lists each of 200 samples of three and of five kinds
    // take 8 and 22 groups above the bound in place of 1 and 11; lists of one kind take as many,
    // since its descents with such values begin as hot.
    constexpr std::int64_t rises_to_double = 400;
    // So that 64 of them can be added.
    constexpr std::int64_t most = std::int64_t{1} << 48;
    if (!are_rising_ || values_[sample] > most) return;
    values_[sample] += size(input_.amounts(sample)) / rises_to_double;
  }

 private:
  /// Values that have risen fall back where they no longer rise.
  void set_rising(bool are_rising) {
    bool const has_changed = are_rising != are_rising_;
    are_rising_ = are_rising;
    if (has_changed && (kinds == 1 || !are_rising)) reset();
  }
  void reset() {
    for (std::uint32_t k = 0; k != values_.size(); ++k) values_[k] = size(input_.amounts(k));
  }

  /// Shares are up to 2^31, and never nothing.
  [[nodiscard]] std::int64_t size(amounts_type const& amounts) const {
    if (are_sizes()) return amounts[0];
    return static_cast<std::int64_t>(size_(amounts) >> 31) + 1;
  }

  measured<Layout> const& input_;
  scarcity_weighted_size<kinds, std::int64_t> size_;
  std::vector<std::int64_t> values_;
  /// Of all values at the beginning.
  uint128 sum_ = 0;
  bool are_rising_ = false;
};

/// The best samples for what a group has left: of one kind of demand by subset sums where values
/// are what samples take, else by a search.
template <std::size_t R>
class group_filling {
 public:
  using amounts_type = resources<R, std::int64_t>;
  static constexpr std::size_t most_values = bounded_knapsack<R>::most_values;

  explicit group_filling(amounts_type const& capacity) : sums_(sums_for(capacity)) {}

  /// Fills `room` with samples that have these demands and values: the largest sum of values that
  /// is found. `are_sizes` says whether values are demands.
  std::int64_t fill(std::span<amounts_type const> demands, std::span<std::int64_t const> values,
                    bool are_sizes, amounts_type const& room) {
    if constexpr (R == 1) {
      by_sums_ = are_sizes;
      if (by_sums_) return sums_.fill(values, room[0]);
    }
    return search_.fill(demands, values, room);
  }

  /// True where the last filling has the sample at `position`.
  [[nodiscard]] bool has(std::size_t position) const {
    if constexpr (R == 1) {
      if (by_sums_) return sums_.has(position);
    }
    return search_.has(position);
  }

  /// The work of the last call, in operations on a word.
  [[nodiscard]] std::size_t work() const {
    if constexpr (R == 1) {
      if (by_sums_) return sums_.work();
    }
    return search_.work();
  }

 private:
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

/// Samples that lie in groups or, loose, in a pool, and the steps between such packings.
///
/// A step forces a sample of the pool into a group and fills what that leaves of it with the best
/// subset of the samples that the group had and of some of the pool. The pool then has what the
/// others do not hold. Samples above half of the capacity are lifted, of several kinds those of the
/// one with most such samples: as no two of them share a group they stay where they are, and groups
/// differ in what they leave.
template <class Layout>
class partial_packing {
 public:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::size_t kinds = amounts_type::size();

  /// `input` must outlive this object.
  explicit partial_packing(measured<Layout> const& input)
      : values_(input), capacity_(input.capacity), next_(input.size()), filling_(input.capacity) {
    candidates_.reserve(most_candidates);
    demands_.reserve(most_candidates);
    worths_.reserve(most_candidates);
    choose_lifted_kind(input);
  }

  /// Takes over `groups` but those that `is_dissolved`, whose samples come into the pool. There
  /// shall be `target` groups in the end.
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

  /// Of one kind of demand: values rise from now on, or no longer. False of several.
  bool alternate_values() { return values_.alternate(); }
  [[nodiscard]] bool are_sizes() const { return values_.are_sizes(); }

  /// True where the pool is no larger than so many groups, and has not been packed as it is.
  [[nodiscard]] bool may_fit(std::size_t most) const {
    return has_changed_ && fits(pool_load_, most);
  }

  /// One step; the work that it took. Precondition: groups and pool are not empty.
  std::size_t step(cooling const& temperature, rng::engine& words) {
    // What a step takes beside the filling: an operation is then 1.1 to 1.7 ns in lists of short
    // and of long fillings, with 32 1.3 to 2.3, with 128 0.8 to 1.2 and only fewer of them for a
    // time.
    constexpr std::size_t other_work = 64;
    std::swap(pool_[rng::below(words, pool_.size())], pool_.back());
    std::uint32_t const forced = pool_.back();
    // Multiples of the golden ratio come to all groups equally often.
    cursor_ += 0x9e3779b97f4a7c15u;
    group& into =
        groups_[static_cast<std::size_t>(static_cast<uint128>(cursor_) * groups_.size() >> 64)];
    amounts_type const demand = values_.demand(forced);
    if (!demand.fits(into.room)) return other_work / 4;
    std::size_t const loose = choose_candidates(into, words);
    amounts_type const rest = into.room - demand;
    if (!kept_load_.fits(rest)) return other_work;
    std::int64_t const gain = values_[forced] + fill(rest - kept_load_) - replaced_value_;
    if (gain <= 0) values_.raise(forced);
    if (-gain <= temperature.largest_loss(words)) carry_out(into, loose);
    return other_work + filling_.work();
  }

  /// Packs the pool into `most` groups where it can, the most valuable sample first and the best
  /// subset of the others beside it; false where a sample is left.
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

  /// Appends the groups; the samples in the pool are in none.
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
  static constexpr std::size_t most_candidates = group_filling<kinds>::most_values;
  /// Pools and groups mostly have fewer samples. With 16, 24 and 48 of the pool and with 16 and 48
  /// of the group generated lists of all kinds take as many groups.
  static constexpr std::size_t most_of_pool = most_candidates / 2;
  static constexpr std::size_t most_of_group = most_candidates / 2;

  /// What it has for samples that are not lifted, their load, and the first of their list.
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

  /// Brings samples of the pool but the last, and of `from`, into random order. Those of the pool
  /// are before the last; returns their number. Of a long list `from` keeps all but the first.
  std::size_t choose_candidates(group const& from, rng::engine& words) {
    candidates_.clear();
    std::size_t const others = pool_.size() - 1;
    std::size_t const loose = std::min(others, most_of_pool);
    for (std::size_t k = 0; k != loose; ++k) {
      std::size_t const last = others - 1 - k;
      if (others != loose) std::swap(pool_[last], pool_[rng::below(words, last + 1)]);
      candidates_.push_back(pool_[last]);
    }
    std::uint32_t k = from.first;
    kept_load_ = from.load;
    replaced_value_ = 0;
    for (; k != none && candidates_.size() != loose + most_of_group; k = next_[k]) {
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

  /// The value of the best candidates that fit.
  std::int64_t fill(amounts_type const& room) {
    worths_.clear();
    demands_.clear();
    for (std::uint32_t const sample : candidates_) {
      worths_.push_back(values_[sample]);
      demands_.push_back(values_.demand(sample));
    }
    return filling_.fill(demands_, worths_, values_.are_sizes(), room);
  }

  /// Gives `into` the forced sample, those of the subset, and those that are kept.
  void carry_out(group& into, std::size_t loose) {
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

  /// Takes a group out of `left_`, whose values descend; its load.
  amounts_type fill_from_left(grouping& packed) {
    amounts_type room = capacity_;
    std::size_t rest = 0;
    // Of many samples the more valuable ones go in one after the other.
    std::size_t const by_filling = std::min(left_.size() - 1, most_candidates);
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
  /// They fit any group, and fill none.
  std::vector<std::uint32_t> weightless_;
  std::vector<std::uint32_t> pool_;
  /// The sum of the demands in the pool.
  total_type pool_load_ = {};
  bool has_changed_ = false;

  group_filling<kinds> filling_;
  std::vector<std::uint32_t> candidates_;
  /// Of the candidates.
  std::vector<amounts_type> demands_;
  std::vector<std::int64_t> worths_;
  std::uint32_t first_kept_ = none;
  std::uint64_t cursor_ = 0;
  amounts_type kept_load_ = {};
  /// Of the candidates that the group had.
  std::int64_t replaced_value_ = 0;
  std::vector<std::uint32_t> left_;
};

/// Makes packings with fewer groups, pass by pass, by simulated annealing of the size of the pool
/// of a `partial_packing`.
///
/// The groups with the most room are dissolved: as many as shall be saved, and two more that the
/// pool may take in the end, where it holds enough for the others to fill exactly. When the pool
/// fits these, so many groups are saved. Temperature falls over some passes, after which the pool
/// is packed afresh; where that saves nothing, half as many groups shall be saved and the next
/// descent takes twice as long. To save a single group, descents of several kinds of demand
/// dissolve two and four more in turn. Of one kind there are two descents before that time doubles:
/// one by sizes alone, which fills groups exactly, and one by values that rise, since groups that
/// hold as many samples as can be may not be full.
///
/// Memory: 16 bytes per sample and 8 + 16R per group; a step allocates nothing but where the pool
/// grows. Sources: Loh, Golden, Wasil, "Solving the one-dimensional bin packing problem with a
/// weight annealing heuristic", 2008; Buljubasic, Vasquez, "Consistent neighborhood search for
/// one-dimensional bin packing and two-dimensional vector packing", 2016.
template <class Layout>
class exact_fill_walk {
 public:
  /// `input` must outlive this object.
  exact_fill_walk(measured<Layout> const& input, std::uint64_t seed)
      : input_(input), words_(seed, stream), state_(input), temperature_(first_temperature()) {}

  /// One pass over `groups`, after which they are fewer or as many. No packing has fewer than
  /// `bound`. Precondition: they are more than that.
  void run(grouping& groups, std::size_t bound) {
    if (!is_open_) open(groups, groups.size() - bound);
    if (is_exhausted_) return;
    std::size_t const budget = work_of_pass();
    work_ += budget;
    for (std::size_t work = 0; work < budget;) {
      if (state_.may_fit(most_packed_)) {
        if (state_.pack_pool(most_packed_, packed_)) {
          adopt(groups, packed_);
          return;
        }
        work += sort_work * state_.pool().size();
      }
      temperature_.set(done_ + work, budget * passes_);
      work += state_.step(temperature_, words_);
    }
    done_ += budget;
    if (done_ >= budget * passes_) end_descent(groups);
  }

  /// The work of all passes, in operations on words.
  [[nodiscard]] std::size_t work() const { return work_; }

  /// True where no step is possible.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  static constexpr std::uint64_t lifted = std::uint64_t{1} << 63;
  /// The exchanges have stream 0.
  static constexpr std::uint64_t stream = 1;
  static constexpr std::size_t kinds = Layout::amounts_type::size();
  /// Of one group the pool would have too few samples to choose from: of 12 generated lists of 25
  /// triplets under a capacity of 80,000 all fail in 0.1 s, none with two or three. Of more too few
  /// groups are left to fill: of 16 lists of 25 groups of four under 6000 one fails with three,
  /// eight do with four, none with two.
  static constexpr std::size_t few_spare = 2;
  /// Of several kinds every other descent for a single group has more: without them and with three
  /// all of ten lists of 150 generated triplets of three kinds stay above the optimum in 0.1 s, two
  /// with four, none with six, with which seven of ten lists of 99 triplets of two kinds do, four
  /// with four. With four in all descents packings of pairs, as of Caprara and Toth's class 6, have
  /// more groups.
  static constexpr std::size_t many_spare = 4;
  /// For each sample of the pool, as much work as so many operations on words: a limit to passes
  /// whose pool often fits. In generated lists of all kinds that is rare, and 0 to 64 make no
  /// difference.
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

  /// Of the mean value an 80th where values are sizes: of 24 generated lists of 999 triplets 3 stay
  /// above the optimum in 0.02 s, with a 40th 8 of 12, with a 20th all, with a 160th none, which
  /// gains nothing for triplets under a capacity of 80,000. A fifth where values rise: of 24 lists
  /// of 500 samples from 266 to 396 of 1000 none stays above, with a tenth 3 of 12, with a 20th 7
  /// of 24, with a third none, which is slower for those triplets. Of several kinds a 28th: 20
  /// lists each of 150 triplets of three kinds and 201 of five take 3 and 36 groups above the
  /// optimum in 0.1 s, with a 20th 9 and 33, with a 40th 1 and 41, with an 80th none and 41.
  [[nodiscard]] cooling first_temperature() const {
    std::uint64_t const parts = kinds != 1 ? 28 : state_.are_sizes() ? 80 : 5;
    return cooling(mean_value(), parts);
  }

  /// Of one kind about 14 ns for each sample, as long as a pass by exchanges takes when most groups
  /// are full; of several about 20 ns for each of its demands, less than such a pass. A few more,
  /// so that a pass over few samples has some steps. Half and twice as much in a pass, and 16 or
  /// 256 samples more, find as many groups in a time.
  [[nodiscard]] std::size_t work_of_pass() const {
    constexpr std::size_t of_sample = kinds == 1 ? 14 : 32 * kinds;
    return of_sample * (64 + input_.size());
  }

  /// Dissolves the groups with the smallest loads, of those without a lifted sample.
  void open(grouping const& groups, std::size_t above_bound) {
    save_ = std::min(most_saved_, above_bound);
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
    // Of equal loads the first groups.
    auto ties =
        dissolved - static_cast<std::size_t>(std::count_if(
                        loads.begin(), loads.end(), [&](auto load) { return load < *last; }));
    auto const is_dissolved = [&](std::size_t g) {
      return loads[g] < *last || (loads[g] == *last && ties != 0 && ties-- != 0);
    };
    state_.assign(groups, is_dissolved, groups.size() - save_);
    most_packed_ = dissolved - save_;
    is_open_ = true;
    done_ = 0;
  }

  /// The loads, from 2^63 on those of groups with a lifted sample.
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

  /// The groups of the state and those of its pool.
  void adopt(grouping& groups, grouping const& of_pool) {
    grouping after;
    after.reserve(state_.size() + of_pool.size(), input_.size());
    state_.append_to(after);
    for (auto const group : of_pool) {
      for (std::uint32_t const sample : group) after.push(sample);
      after.close();
    }
    groups = std::move(after);
    is_open_ = false;
  }

  /// Goes on from the packing with the pool packed afresh where that has no more groups.
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
    // A quarter and three quarters as many find as much. In one and a half times the time instead
    // of twice, twelve lists of 5000 samples take 31 groups above the bound in 0.02 s, with twice
    // 22, with four times 16, but then two of twelve lists of 75 samples under a capacity of 80,000
    // stay above the optimum in 0.1 s, with twice none. The steps of 2^20 passes fit 64 bits.
    most_saved_ = std::max<std::size_t>(1, save_ / 2);
    passes_ = std::min(2 * passes_, std::size_t{1} << 20);
  }

  measured<Layout> const& input_;
  rng::engine words_;
  partial_packing<Layout> state_;
  cooling temperature_;
  grouping packed_;
  std::size_t most_saved_ = static_cast<std::size_t>(-1);
  std::size_t save_ = 0;
  std::size_t spare_ = few_spare;
  std::size_t most_packed_ = 0;
  std::size_t passes_ = 1;
  std::size_t done_ = 0;
  std::size_t work_ = 0;
  bool is_open_ = false;
  bool is_exhausted_ = false;
};

}  // namespace omnibal::inline v0::detail
