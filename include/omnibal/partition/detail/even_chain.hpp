#pragma once

/// \file
/// The smallest bottleneck of equally fast stages, by bisection on sums that occur.

#include <omnibal/partition/detail/chain_sums.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The cuts of three probes. A probe cuts as far to the right as a limit allows; a cut at a limit
/// between two others lies between their cuts.
struct probe_cuts {
  std::vector<std::uint32_t> low;   ///< at the largest limit that was too small
  std::vector<std::uint32_t> high;  ///< at the smallest limit that sufficed
  std::vector<std::uint32_t> now;

  void reset(std::size_t stages, std::size_t layers) {
    low.assign(stages + 1, 0);
    high.assign(stages + 1, static_cast<std::uint32_t>(layers));
    now.assign(stages + 1, 0);
  }
};

/// Cuts a chain into at most as many stages as there are, all equally fast.
template <class T>
class even_chain {
 public:
  even_chain(std::span<T const> sums, std::size_t stages, probe_cuts& cuts)
      : sums_(sums),
        stages_(stages),
        mean_length_(std::max<std::size_t>(layers() / stages, wide)),
        cuts_(cuts) {
    cuts_.reset(stages, layers());
  }

  /// The smallest possible bottleneck. `largest` is the largest cost of a layer.
  ///
  /// A probe ends at the largest load that it realised or at the smallest one that was too much,
  /// so that both ends of the bisection are sums that occur.
  [[nodiscard]] T bottleneck(T largest) {
    T const mean = least_largest(sums_.back(), stages_);
    T low = std::max(largest, mean);
    T high = std::min(sums_.back(), greedy_limit(mean, largest));
    while (low < high) {
      T const limit = middle(low, high);
      outcome const probed = probe(limit);
      (probed.fits ? high : low) = probed.value;
    }
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
      std::size_t const most = std::min<std::size_t>(last - fewest, cuts_.high[s]);
      last = nearest(last, limit, least, most);
      boundaries[s] = static_cast<std::uint32_t>(last);
    }
    boundaries[0] = 0;
  }

 private:
  /// The width from which on a plain binary search is too slow.
  static constexpr std::size_t wide = 32;

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

  [[nodiscard]] outcome probe(T limit) {
    T realised{};
    T overflow = std::numeric_limits<T>::max();
    std::size_t first = 0;
    for (std::size_t s = 1; s != stages_; ++s) {
      T const start = sums_[first];
      std::size_t const low = std::max<std::size_t>(first, cuts_.low[s]);
      std::size_t const last = furthest(first, limit, low, cuts_.high[s]);
      cuts_.now[s] = static_cast<std::uint32_t>(last);
      if (last == layers()) {
        std::fill(cuts_.now.begin() + static_cast<std::ptrdiff_t>(s), cuts_.now.end(),
                  static_cast<std::uint32_t>(last));
        realised = std::max(realised, static_cast<T>(sums_[last] - start));
        cuts_.high.swap(cuts_.now);
        return {true, realised};
      }
      realised = std::max(realised, static_cast<T>(sums_[last] - start));
      overflow = std::min(overflow, static_cast<T>(sums_[last + 1] - start));
      first = last;
      T const rest = static_cast<T>(sums_.back() - sums_[last]);
      std::size_t const left = stages_ - s;
      if (is_above(rest, limit, left) && least_largest(rest, left) > limit) {
        std::copy_n(cuts_.now.begin() + 1, s, cuts_.low.begin() + 1);
        return {false, std::min(overflow, least_largest(rest, left))};
      }
    }
    T const rest = static_cast<T>(sums_.back() - sums_[first]);
    if (rest <= limit) {
      cuts_.now[stages_] = static_cast<std::uint32_t>(layers());
      cuts_.high.swap(cuts_.now);
      return {true, std::max(realised, rest)};
    }
    cuts_.low.swap(cuts_.now);
    return {false, std::min(overflow, rest)};
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

  /// The largest number up to `most` for which `holds`, as it does for all smaller ones and for
  /// zero. Looks near `guess` first, in steps that double.
  template <class Holds>
  [[nodiscard]] static std::size_t most_steps(std::size_t most, std::size_t guess,
                                              Holds const& holds) {
    std::size_t low = 0;
    std::size_t high = most;
    if (most > wide) {
      guess = std::min(guess, most);
      if (holds(guess)) {
        low = guess;
        for (std::size_t step = wide / 4; step < high - low; step *= 2) {
          if (!holds(low + step)) {
            high = low + step - 1;
            break;
          }
          low += step;
        }
      } else {
        high = guess - 1;
        for (std::size_t step = wide / 4; step < high - low; step *= 2) {
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

  std::span<T const> sums_;
  std::size_t stages_;
  std::size_t mean_length_;
  probe_cuts& cuts_;
};

}  // namespace omnibal::inline v0::detail
