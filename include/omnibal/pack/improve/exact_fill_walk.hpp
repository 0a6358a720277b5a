#pragma once

/// \file
/// Fewer groups by simulated annealing over packings of a part of the samples.

#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve/pack_afresh.hpp>
#include <omnibal/pack/improve/subset_sum.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The temperature of simulated annealing, in integers.
class cooling {
 public:
  /// Begins with a twentieth of `size`: there a loss of that many is accepted now and then.
  explicit cooling(std::int64_t size) : first_(static_cast<uint128>(size) * fraction / 20 + 1) {}

  /// Sets the temperature at `step` of `steps`: it falls by a constant factor each, to 2^-12 of the
  /// first, where no loss of a whole unit is accepted among values below some thousands.
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

/// Samples that lie in groups or, loose, in a pool, and the steps between such packings.
///
/// A step forces a sample of the pool into a group and fills what that leaves of it with the best
/// subset of the samples that the group had and of some of the pool. The pool then has what the
/// others do not hold. Samples above half of the capacity are lifted: as no two of them share a
/// group they stay where they are, and groups differ in what they leave.
class partial_packing {
 public:
  /// The sizes must outlive this object, and are at most the capacity.
  partial_packing(std::span<std::int64_t const> sizes, std::int64_t capacity)
      : sizes_(sizes), capacity_(capacity), next_(sizes.size()), subset_(capacity) {}

  /// Takes over `groups` but those that `is_dissolved`, whose samples come into the pool.
  template <class Dissolved>
  void assign(grouping const& groups, Dissolved const& is_dissolved) {
    groups_.clear();
    pool_.clear();
    lifted_.clear();
    weightless_.clear();
    pool_size_ = 0;
    has_changed_ = true;
    for (std::size_t g = 0; g != groups.size(); ++g) {
      bool const is_loose = is_dissolved(g);
      if (!is_loose) groups_.push_back({capacity_, 0, none});
      for (std::uint32_t const sample : groups[g]) {
        if (sizes_[sample] == 0) {
          weightless_.push_back(sample);
        } else if (is_lifted(sample)) {
          groups_.back().room -= sizes_[sample];
          lifted_.push_back({sample, static_cast<std::uint32_t>(groups_.size() - 1)});
        } else if (is_loose) {
          loosen(sample);
        } else {
          groups_.back().load += sizes_[sample];
          put(groups_.back(), sample);
        }
      }
    }
  }

  [[nodiscard]] bool is_lifted(std::uint32_t sample) const {
    return sizes_[sample] > capacity_ - sizes_[sample];
  }
  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::span<std::uint32_t const> pool() const { return pool_; }

  /// True where the pool is no larger than so many groups, and has not been packed as it is.
  [[nodiscard]] bool may_fit(std::size_t most) const {
    return has_changed_ && pool_size_ <= static_cast<uint128>(capacity_) * most;
  }

  /// One step; the work that it took. Precondition: groups and pool are not empty.
  std::size_t step(cooling const& temperature, rng::engine& words) {
    constexpr std::size_t other_work = 64;
    std::swap(pool_[rng::below(words, pool_.size())], pool_.back());
    std::uint32_t const forced = pool_.back();
    // Multiples of the golden ratio come to all groups equally often.
    cursor_ += 0x9e3779b97f4a7c15u;
    group& into =
        groups_[static_cast<std::size_t>(static_cast<uint128>(cursor_) * groups_.size() >> 64)];
    if (sizes_[forced] > into.room) return other_work / 4;
    std::size_t const loose = choose_candidates(into, words);
    std::int64_t const room = into.room - kept_size_ - sizes_[forced];
    if (room < 0) return other_work;
    std::int64_t const load = into.room - room + subset_.fill(values(), room);
    if (into.load - load <= temperature.largest_loss(words)) carry_out(into, load, loose);
    return other_work + subset_.work();
  }

  /// Packs the pool into `most` groups where it can, the largest sample first and the best subset
  /// of the others beside it; false where a sample is left.
  bool pack_pool(std::size_t most, grouping& packed) {
    has_changed_ = false;
    packed.clear();
    left_.assign(pool_.begin(), pool_.end());
    std::sort(left_.begin(), left_.end(), [this](std::uint32_t one, std::uint32_t other) {
      return sizes_[one] != sizes_[other] ? sizes_[one] > sizes_[other] : one < other;
    });
    uint128 size = pool_size_;
    for (; most != 0 && !left_.empty(); --most) {
      if (size > static_cast<uint128>(capacity_) * most) return false;
      size -= static_cast<uint128>(fill_from_left(packed));
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
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr std::size_t most_of_pool = subset_sum::most_values / 2;
  static constexpr std::size_t most_of_group = subset_sum::most_values / 2;

  /// What it has for samples that are not lifted, their load, and the first of their list.
  struct group {
    std::int64_t room;
    std::int64_t load;
    std::uint32_t first;
  };
  struct lifted_sample {
    std::uint32_t sample;
    std::uint32_t group;
  };

  void put(group& into, std::uint32_t sample) {
    next_[sample] = into.first;
    into.first = sample;
  }
  void loosen(std::uint32_t sample) {
    pool_.push_back(sample);
    pool_size_ += static_cast<uint128>(sizes_[sample]);
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
    kept_size_ = from.load;
    for (; k != none && candidates_.size() != loose + most_of_group; k = next_[k]) {
      candidates_.push_back(k);
      kept_size_ -= sizes_[k];
    }
    first_kept_ = k;
    for (std::size_t n = candidates_.size(); n > 1; --n) {
      std::swap(candidates_[n - 1], candidates_[rng::below(words, n)]);
    }
    return loose;
  }

  [[nodiscard]] std::span<std::int64_t const> values() {
    values_.clear();
    for (std::uint32_t const sample : candidates_) values_.push_back(sizes_[sample]);
    return values_;
  }

  /// Gives `into` the forced sample, those of the subset, and those that are kept.
  void carry_out(group& into, std::int64_t load, std::size_t loose) {
    pool_size_ += static_cast<uint128>(into.load);
    pool_size_ -= static_cast<uint128>(load);
    has_changed_ = true;
    std::uint32_t const forced = pool_.back();
    pool_.resize(pool_.size() - 1 - loose);
    into.load = load;
    into.first = first_kept_;
    put(into, forced);
    for (std::size_t i = 0; i != candidates_.size(); ++i) {
      if (subset_.has(i)) {
        put(into, candidates_[i]);
      } else {
        pool_.push_back(candidates_[i]);
      }
    }
  }

  /// Takes a group out of `left_`, whose sizes descend; its load.
  std::int64_t fill_from_left(grouping& packed) {
    std::int64_t room = capacity_;
    std::size_t rest = 0;
    // Of many samples the larger ones go in one after the other.
    std::size_t const by_subset = std::min(left_.size() - 1, subset_sum::most_values);
    std::size_t const in_turn = left_.size() - by_subset;
    for (std::size_t i = 0; i != in_turn; ++i) {
      std::uint32_t const sample = left_[i];
      if (sizes_[sample] <= room) {
        room -= sizes_[sample];
        packed.push(sample);
      } else {
        left_[rest++] = sample;
      }
    }
    candidates_.assign(left_.end() - static_cast<std::ptrdiff_t>(by_subset), left_.end());
    room -= subset_.fill(values(), room);
    for (std::size_t i = 0; i != by_subset; ++i) {
      if (subset_.has(i)) {
        packed.push(candidates_[i]);
      } else {
        left_[rest++] = candidates_[i];
      }
    }
    left_.resize(rest);
    return capacity_ - room;
  }

  std::span<std::int64_t const> sizes_;
  std::int64_t capacity_;
  std::vector<group> groups_;
  /// The next sample of the same group.
  std::vector<std::uint32_t> next_;
  std::vector<lifted_sample> lifted_;
  /// They fit any group, and fill none.
  std::vector<std::uint32_t> weightless_;
  std::vector<std::uint32_t> pool_;
  /// The sum of the sizes in the pool.
  uint128 pool_size_ = 0;
  bool has_changed_ = false;

  subset_sum subset_;
  std::vector<std::uint32_t> candidates_;
  std::vector<std::int64_t> values_;
  std::uint32_t first_kept_ = none;
  std::uint64_t cursor_ = 0;
  std::int64_t kept_size_ = 0;
  std::vector<std::uint32_t> left_;
};

/// Makes packings with fewer groups, pass by pass, by simulated annealing of the size of the pool
/// of a `partial_packing`.
///
/// The groups with the most room are dissolved: as many as shall be saved, and two more that the
/// pool may take in the end, where it holds enough for the others to fill exactly. When the pool
/// fits these two, so many groups are saved. Temperature falls over some passes, after which the
/// pool is packed afresh; where that saves nothing, half as many groups shall be saved and the next
/// descent takes twice as long.
///
/// Sources: Loh, Golden, Wasil, "Solving the one-dimensional bin packing problem with a weight
/// annealing heuristic", 2008; Buljubasic, Vasquez, "Consistent neighborhood search for
/// one-dimensional bin packing and two-dimensional vector packing", 2016.
template <class Layout>
class exact_fill_walk {
 public:
  /// `input` must outlive this object.
  exact_fill_walk(measured<Layout> const& input, std::uint64_t seed)
      : input_(input),
        words_(seed, stream),
        sizes_(sizes_of(input)),
        state_(sizes_, input.capacity[0]),
        temperature_(mean_size()) {}

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
  /// Of one group the pool would have too few samples to choose from, of more too few groups would
  /// be left to fill.
  static constexpr std::size_t spare = 2;
  /// For each sample of the pool, as much work as so many operations on words.
  static constexpr std::size_t sort_work = 16;

  [[nodiscard]] static std::vector<std::int64_t> sizes_of(measured<Layout> const& input) {
    std::vector<std::int64_t> sizes(input.size());
    for (std::size_t k = 0; k != sizes.size(); ++k) sizes[k] = input.amounts(k)[0];
    return sizes;
  }
  [[nodiscard]] std::int64_t mean_size() const {
    uint128 sum = 0;
    std::size_t count = 0;
    for (std::uint32_t k = 0; k != sizes_.size(); ++k) {
      if (state_.is_lifted(k)) continue;
      sum += static_cast<uint128>(sizes_[k]);
      ++count;
    }
    return count == 0 ? 0 : static_cast<std::int64_t>(sum / count);
  }

  /// About 14 ns for each sample, as long as a pass by exchanges takes when most groups are full.
  [[nodiscard]] std::size_t work_of_pass() const { return 14 * (64 + sizes_.size()); }

  /// Dissolves the groups with the smallest loads, of those without a lifted sample.
  void open(grouping const& groups, std::size_t above_bound) {
    save_ = std::min(most_saved_, above_bound);
    std::vector<std::uint64_t> const loads = loads_of(groups);
    auto const is_whole = [](std::uint64_t load) { return load < lifted; };
    auto const whole =
        static_cast<std::size_t>(std::count_if(loads.begin(), loads.end(), is_whole));
    std::size_t const dissolved = std::min({save_ + spare, whole, groups.size() - 1});
    is_exhausted_ = dissolved < save_;
    if (is_exhausted_) return;
    std::vector<std::uint64_t> order(loads);
    auto const last = order.begin() + static_cast<std::ptrdiff_t>(dissolved - 1);
    std::nth_element(order.begin(), last, order.end());
    // Of equal loads the first groups.
    auto ties =
        dissolved - static_cast<std::size_t>(std::count_if(
                        loads.begin(), loads.end(), [&](auto load) { return load < *last; }));
    state_.assign(groups, [&](std::size_t g) {
      return loads[g] < *last || (loads[g] == *last && ties != 0 && ties-- != 0);
    });
    most_packed_ = dissolved - save_;
    is_open_ = true;
    done_ = 0;
  }

  /// The loads, from 2^63 on those of groups with a lifted sample.
  [[nodiscard]] std::vector<std::uint64_t> loads_of(grouping const& groups) const {
    std::vector<std::uint64_t> loads(groups.size());
    for (std::size_t g = 0; g != groups.size(); ++g) {
      for (std::uint32_t const sample : groups[g]) {
        loads[g] += static_cast<std::uint64_t>(sizes_[sample]);
        if (state_.is_lifted(sample)) loads[g] |= lifted;
      }
    }
    return loads;
  }

  /// The groups of the state and those of its pool.
  void adopt(grouping& groups, grouping const& of_pool) {
    grouping after;
    after.reserve(state_.size() + of_pool.size(), sizes_.size());
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
    if (save_ > 1) is_open_ = false;
    most_saved_ = std::max<std::size_t>(1, save_ / 2);
    passes_ = std::min(2 * passes_, std::size_t{1} << 20);
  }

  measured<Layout> const& input_;
  rng::engine words_;
  std::vector<std::int64_t> sizes_;
  partial_packing state_;
  cooling temperature_;
  grouping packed_;
  std::size_t most_saved_ = static_cast<std::size_t>(-1);
  std::size_t save_ = 0;
  std::size_t most_packed_ = 0;
  std::size_t passes_ = 1;
  std::size_t done_ = 0;
  std::size_t work_ = 0;
  bool is_open_ = false;
  bool is_exhausted_ = false;
};

}  // namespace omnibal::inline v0::detail
