#pragma once

/// \file
/// The smallest bottleneck of equally fast stages, by bisection on sums that occur.

#include <omnibal/partition/detail/chain_sums.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The number of steps from which on a plain binary search is too slow.
inline constexpr std::size_t many_steps = 32;

/// The largest number up to `most` for which `holds`, as it does for all smaller ones and for
/// zero. Looks near `guess` first, in steps that double.
template <class Holds>
[[nodiscard]] std::size_t most_steps(std::size_t most, std::size_t guess, Holds const& holds) {
  std::size_t low = 0;
  std::size_t high = most;
  if (most > many_steps) {
    guess = std::min(guess, most);
    if (holds(guess)) {
      low = guess;
      for (std::size_t step = many_steps / 4; step < high - low; step *= 2) {
        if (!holds(low + step)) {
          high = low + step - 1;
          break;
        }
        low += step;
      }
    } else {
      high = guess - 1;
      for (std::size_t step = many_steps / 4; step < high - low; step *= 2) {
        if (holds(high - step)) {
          low = high - step;
          break;
        }
        high -= step + 1;
      }
    }
  }
  for (std::size_t left = high - low; left != 0;) {
    std::size_t const half = (left + 1) / 2;
    low += holds(low + half) ? half : 0;
    left -= half;
  }
  return low;
}

/// The layers [first, last) as a stage that is as long as a limit allows.
template <class T>
struct walked_stage {
  std::uint32_t first;
  std::uint32_t last;
  T load;
  T overflow;  ///< the load with one layer more, or the largest value where there is none

  /// Whether a stage from there on under that limit is this one.
  [[nodiscard]] bool is_that_of(std::uint32_t begin, T limit) const {
    return begin == first && load <= limit && limit < overflow;
  }
};

/// Limits that are probed together, in ascending order.
template <class T>
struct probe_limits {
  static constexpr std::size_t most = 4;

  std::array<T, most> values{};
  std::size_t count = 0;

  /// Adds a limit that is in [low, high) and above the last one; others change nothing.
  void add(T limit, T low, T high) {
    if (!(low <= limit && limit < high) || count == most) return;
    if (count != 0 && limit <= values[count - 1]) return;
    values[count++] = limit;
  }
};

/// Where a stage ends at each of the limits.
using joint_ends = std::array<std::uint32_t, probe_limits<double>::most>;

/// The stages of three probes, and the ends of one at several limits. A stage at a limit between
/// two others ends between theirs, and is theirs where it begins with one of them and the limit
/// leaves that as it is.
template <class T>
struct probed_stages {
  std::vector<walked_stage<T>> low;   ///< at the largest limit that was too small
  std::vector<walked_stage<T>> high;  ///< at the smallest limit that sufficed
  std::vector<walked_stage<T>> now;
  std::vector<joint_ends> joint;

  void reset(std::size_t stages, std::size_t layers) {
    constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
    low.assign(stages + 1, {nowhere, 0, T{}, T{}});
    high.assign(stages + 1, {nowhere, static_cast<std::uint32_t>(layers), T{}, T{}});
    now.resize(stages + 1);
    joint.resize(stages + 1);
  }
};

/// Ends stages at several limits. The searches of one limit do not wait for those of the others,
/// and most have no branch that a processor could guess wrong: four take about as long as one.
template <class T>
class joint_probe {
 public:
  /// `length` is the usual number of layers of a stage.
  joint_probe(std::span<T const> sums, probe_limits<T> const& limits, std::size_t length)
      : sums_(sums) {
    for (std::size_t k = 0; k != width; ++k) {
      limits_[k] = limits.values[std::min(k, limits.count - 1)];
    }
    length_.fill(length);
  }

  /// Writes where the stages end. Those of the limits end between `low` and `high`.
  void run(std::span<walked_stage<T> const> low, std::span<walked_stage<T> const> high,
           std::span<joint_ends> ends) {
    for (std::size_t s = 1; s + 1 < ends.size(); ++s) {
      if (high[s].last - low[s].last <= narrow) {
        search_all(low[s].last, high[s].last);
      } else {
        for (std::size_t k = 0; k != width; ++k) approach(k, low[s].last, high[s].last);
        finish_all();
      }
      for (std::size_t k = 0; k != width; ++k) {
        length_[k] = last_[k] - first_[k];
        first_[k] = last_[k];
        ends[s][k] = static_cast<std::uint32_t>(last_[k]);
        // Where the next search will begin.
        __builtin_prefetch(sums_.data() + std::min(last_[k] + 2 * length_[k], sums_.size() - 1));
      }
    }
  }

 private:
  static constexpr std::size_t width = probe_limits<T>::most;
  /// The width up to which all of a window is searched.
  static constexpr std::size_t narrow = 255;
  /// How far from a guess most ends lie.
  static constexpr std::size_t reach = 16;

  [[nodiscard]] static std::size_t all_ones_if(bool condition) {
    return std::size_t{0} - static_cast<std::size_t>(condition);
  }

  [[nodiscard]] bool is_within(std::size_t k, std::size_t last) const {
    return sums_[last] - sums_[first_[k]] <= limits_[k];
  }

  [[nodiscard]] std::array<T, width> sums_before() const {
    std::array<T, width> result;
    for (std::size_t k = 0; k != width; ++k) result[k] = sums_[first_[k]];
    return result;
  }

  /// The last ends in [low, high] within the limits. Precondition: `low` is.
  void search_all(std::size_t low, std::size_t high) {
    auto const before = sums_before();
    last_.fill(low);
    for (std::size_t left = high - low; left != 0;) {
      std::size_t const half = (left + 1) / 2;
      for (std::size_t k = 0; k != width; ++k) {
        bool const fits = sums_[last_[k] + half] - before[k] <= limits_[k];
        last_[k] += half & all_ones_if(fits);
      }
      left -= half;
    }
  }

  /// Leaves fewer than `2 * reach` ends behind `last_[k]`.
  void approach(std::size_t k, std::size_t low, std::size_t high) {
    std::size_t from = guess(k, low, high);
    from -= std::min(from - low, reach);
    for (std::size_t step = 2 * reach; !is_within(k, from); step *= 2) {
      from -= std::min(from - low, step);
    }
    std::size_t step = 2 * reach;
    for (; step <= high - from && is_within(k, from + step); step *= 2) from += step;
    std::size_t left = std::min(step - 1, high - from);
    while (left >= 2 * reach) {
      std::size_t const half = (left + 1) / 2;
      if (is_within(k, from + half)) from += half;
      left -= half;
    }
    last_[k] = from;
    left_[k] = left;
  }

  /// An end after as many layers as the last stage had, moved by a step of Newton's method with the
  /// mean of these layers as the slope.
  [[nodiscard]] std::size_t guess(std::size_t k, std::size_t low, std::size_t high) const {
    std::size_t const usual = std::clamp(first_[k] + length_[k], low, high);
    auto const load = static_cast<double>(sums_[usual] - sums_[first_[k]]);
    auto const room = static_cast<double>(limits_[k]);
    double const scale = load < 2 * room && room < 2 * load ? room / load : 1.0;
    double const steps = scale * static_cast<double>(usual - first_[k]);
    return std::clamp(first_[k] + static_cast<std::size_t>(steps), low, high);
  }

  void finish_all() {
    auto const before = sums_before();
    for (std::size_t half = reach; half != 0; half /= 2) {
      for (std::size_t k = 0; k != width; ++k) {
        std::size_t const step = std::min(half, left_[k]);
        std::size_t const ones = all_ones_if(sums_[last_[k] + step] - before[k] <= limits_[k]);
        last_[k] += step & ones;
        left_[k] = ((left_[k] - step) & ones) | ((step - 1) & ~ones);
      }
    }
  }

  std::span<T const> sums_;
  std::array<T, width> limits_{};
  std::array<std::size_t, width> first_{};
  std::array<std::size_t, width> last_{};
  std::array<std::size_t, width> length_{};
  std::array<std::size_t, width> left_{};
};

/// Cuts a chain into at most as many stages as there are, all equally fast.
template <class T>
class even_chain {
 public:
  even_chain(std::span<T const> sums, std::size_t stages, probed_stages<T>& probed)
      : sums_(sums),
        stages_(stages),
        mean_length_(std::max<std::size_t>(layers() / stages, many_steps)),
        probed_(probed) {
    probed_.reset(stages, layers());
  }

  /// The smallest possible bottleneck. `largest` is the largest cost of a layer.
  ///
  /// A probe ends at the largest load that it realised or at the smallest one that was too much,
  /// so that both ends of the bisection are sums that occur.
  [[nodiscard]] T bottleneck(T largest) {
    T const mean = least_largest(sums_.back(), stages_);
    T low = std::max(largest, mean);
    T high = std::min(sums_.back(), greedy_limit(mean, largest));
    // In short chains the searches are too short to pay.
    if (stages_ >= many && mean_length_ > many_steps) narrow_jointly(mean, low, high);
    while (low < high) narrow(middle(low, high), low, high);
    return high;
  }

  /// The smallest boundaries with loads up to `limit`, in which every stage has a layer where
  /// `fewest` is one. Precondition: `limit` is at least the smallest possible bottleneck.
  void cut_leftmost(T limit, std::size_t fewest, std::vector<std::uint32_t>& boundaries) {
    boundaries.resize(stages_ + 1);
    std::size_t last = layers();
    boundaries[stages_] = static_cast<std::uint32_t>(last);
    for (std::size_t s = stages_; s-- != 1;) {
      std::size_t const least = s * fewest;
      std::size_t const most = std::min<std::size_t>(last - fewest, probed_.high[s].last);
      last = nearest(last, limit, least, most);
      boundaries[s] = static_cast<std::uint32_t>(last);
    }
    boundaries[0] = 0;
  }

 private:
  /// The stages from which on several limits are probed at a time.
  static constexpr std::size_t many = 256;

  struct outcome {
    bool fits;
    T value;
  };

  [[nodiscard]] std::size_t layers() const { return sums_.size() - 1; }

  /// A limit that suffices: every stage but the last is then fuller than the mean.
  [[nodiscard]] T greedy_limit(T mean, T largest) const {
    if constexpr (std::floating_point<T>) {
      return (mean + largest) * (1 + 16 * std::numeric_limits<T>::epsilon());
    } else {
      return largest < sums_.back() - mean ? static_cast<T>(mean + largest) : sums_.back();
    }
  }

  /// Moves an end of the bisection by a probe.
  void narrow(T limit, T& low, T& high) {
    outcome const probed = probe(limit);
    (probed.fits ? high : low) = probed.value;
  }

  /// Makes a long bisection short: by a probe at limits where the result is likely, and by another
  /// one between the two that are left.
  void narrow_jointly(T mean, T& low, T& high) {
    if (low >= high) return;
    auto const likely = likely_limits(mean, low, high);
    if (likely.count == 0) {
      narrow(low, low, high);
    } else {
      probe_all(likely, low, high);
    }
    if (low < high) probe_all(even_limits(low, high), low, high);
  }

  /// Limits about the mean and what stages leave unused, by stages from every part of the chain.
  [[nodiscard]] probe_limits<T> likely_limits(T mean, T low, T high) const {
    constexpr std::size_t samples = 512;
    auto const sum = static_cast<double>(sums_.back());
    std::size_t const step = layers() / std::min(samples, stages_);
    double share = 0;
    double unused = 0;
    for (std::size_t i = 0; i + step <= layers() && sums_.back() - sums_[i] > low; i += step) {
      std::size_t const last = furthest(i, low, i, layers());
      double const part = static_cast<double>(sums_[i + step] - sums_[i]) / sum;
      share += part;
      unused += part * static_cast<double>(low - (sums_[last] - sums_[i]));
    }
    probe_limits<T> limits;
    if (share == 0) return limits;
    for (double const factor : {0.9, 0.97, 1.03, 1.1}) {
      limits.add(moved(mean, factor * unused / share, high), low, high);
    }
    return limits;
  }

  /// Limits that cut the range between two into equal parts.
  [[nodiscard]] static probe_limits<T> even_limits(T low, T high) {
    probe_limits<T> limits;
    auto const part = static_cast<T>((high - low) / static_cast<T>(probe_limits<T>::most + 1));
    limits.add(static_cast<T>(low + part), low, high);
    while (limits.count != probe_limits<T>::most && part != 0) {
      std::size_t const before = limits.count;
      limits.add(static_cast<T>(limits.values[before - 1] + part), low, high);
      if (limits.count == before) break;
    }
    return limits;
  }

  /// `from + offset`, but for integers not above `most`.
  [[nodiscard]] static T moved(T from, double offset, T most) {
    if constexpr (std::floating_point<T>) {
      return from + offset;
    } else {
      if (offset >= static_cast<double>(most - from)) return most;
      // The difference may have been rounded up.
      return static_cast<T>(from + std::min(static_cast<T>(offset), static_cast<T>(most - from)));
    }
  }

  /// Moves the ends of the bisection by a probe at several limits.
  void probe_all(probe_limits<T> const& limits, T& low, T& high) {
    joint_probe<T> probe(sums_, limits, mean_length_);
    probe.run(probed_.low, probed_.high, probed_.joint);
    auto const is_enough = [&](std::size_t k) {
      return sums_.back() - sums_[probed_.joint[stages_ - 1][k]] <= limits.values[k];
    };
    std::size_t enough = 0;
    while (enough != limits.count && !is_enough(enough)) ++enough;
    if (enough != 0) low = take_stages(enough - 1, probed_.low).overflow;
    if (enough != limits.count) high = take_stages(enough, probed_.high).load;
  }

  /// Makes `stages` those of a limit that was probed with others. Returns the largest load of a
  /// stage and the smallest with one layer more.
  walked_stage<T> take_stages(std::size_t k, std::vector<walked_stage<T>>& stages) const {
    std::size_t first = 0;
    T realised{};
    T overflow = std::numeric_limits<T>::max();
    for (std::size_t s = 1; s != stages_; ++s) {
      stages[s] = stage_of(first, probed_.joint[s][k]);
      realised = std::max(realised, stages[s].load);
      overflow = std::min(overflow, stages[s].overflow);
      first = stages[s].last;
    }
    auto const rest = static_cast<T>(sums_.back() - sums_[first]);
    return {0, 0, std::max(realised, rest), std::min(overflow, rest)};
  }

  [[nodiscard]] walked_stage<T> stage_of(std::size_t first, std::size_t last) const {
    T overflow = std::numeric_limits<T>::max();
    if (last != layers()) overflow = static_cast<T>(sums_[last + 1] - sums_[first]);
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last),
            static_cast<T>(sums_[last] - sums_[first]), overflow};
  }

  [[nodiscard]] outcome probe(T limit) {
    T realised{};
    T overflow = std::numeric_limits<T>::max();
    std::uint32_t first = 0;
    for (std::size_t s = 1; s != stages_; ++s) {
      walked_stage<T>& stage = probed_.now[s];
      bool const is_new = !known_stage(s, first, limit, stage);
      if (is_new) stage = new_stage(s, first, limit);
      realised = std::max(realised, stage.load);
      overflow = std::min(overflow, stage.overflow);
      first = stage.last;
      if (first == layers()) {
        std::fill(probed_.now.begin() + static_cast<std::ptrdiff_t>(s) + 1, probed_.now.end(),
                  stage_of(first, first));
        probed_.high.swap(probed_.now);
        return {true, realised};
      }
      if (!is_new) continue;
      T const rest = static_cast<T>(sums_.back() - sums_[first]);
      std::size_t const left = stages_ - s;
      if (is_above(rest, limit, left) && least_largest(rest, left) > limit) {
        std::copy_n(probed_.now.begin() + 1, s, probed_.low.begin() + 1);
        return {false, std::min(overflow, least_largest(rest, left))};
      }
    }
    T const rest = static_cast<T>(sums_.back() - sums_[first]);
    if (rest <= limit) {
      probed_.high.swap(probed_.now);
      return {true, std::max(realised, rest)};
    }
    probed_.low.swap(probed_.now);
    return {false, std::min(overflow, rest)};
  }

  /// Finds the stage in an earlier probe; most are there once the limits are near to each other.
  [[nodiscard]] bool known_stage(std::size_t s, std::uint32_t first, T limit,
                                 walked_stage<T>& stage) const {
    for (auto const* const before : {&probed_.low[s], &probed_.high[s]}) {
      if (!before->is_that_of(first, limit)) continue;
      stage = *before;
      return true;
    }
    return false;
  }

  [[nodiscard]] walked_stage<T> new_stage(std::size_t s, std::uint32_t first, T limit) const {
    std::size_t const low = std::max(first, probed_.low[s].last);
    return stage_of(first, furthest(first, limit, low, probed_.high[s].last));
  }

  /// Whether `rest` is more than `stages` times `limit`, but for rounding.
  [[nodiscard]] static bool is_above(T rest, T limit, std::size_t stages) {
    if constexpr (std::floating_point<T>) {
      return rest > limit * static_cast<T>(stages);
    } else {
      return static_cast<int128>(limit) * static_cast<int128>(stages) < static_cast<int128>(rest);
    }
  }

  /// The last position in [low, high] up to which a stage from `first` on stays within the limit.
  /// Precondition: it does at `low`.
  [[nodiscard]] std::size_t furthest(std::size_t first, T limit, std::size_t low,
                                     std::size_t high) const {
    T const start = sums_[first];
    T const* const from = sums_.data() + low;
    // Where the next search will begin.
    __builtin_prefetch(sums_.data() + std::min(first + 2 * mean_length_, layers()));
    std::size_t const guess = first + mean_length_ - std::min(first + mean_length_, low);
    return low + most_steps(high - low, guess,
                            [=](std::size_t steps) { return from[steps] - start <= limit; });
  }

  /// The first position in [low, high] from which a stage to `last` stays within the limit.
  /// Precondition: it does from `high`.
  [[nodiscard]] std::size_t nearest(std::size_t last, T limit, std::size_t low,
                                    std::size_t high) const {
    T const end = sums_[last];
    T const* const from = sums_.data() + high;
    __builtin_prefetch(sums_.data() + (last - std::min(last, 2 * mean_length_)));
    std::size_t const guess = mean_length_ - std::min(mean_length_, last - high);
    return high - most_steps(high - low, guess,
                             [=](std::size_t steps) { return end - *(from - steps) <= limit; });
  }

  std::span<T const> sums_;
  std::size_t stages_;
  std::size_t mean_length_;
  probed_stages<T>& probed_;
};

}  // namespace omnibal::inline v0::detail
