// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Levels of length with their own degrees and micro-steps.

#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Hierarchical balance packing (Yao et al., NeurIPS 2025) within one step. Dynamic programming
/// over the ends of levels finds, of all partitions of half-octaves of the length into levels, the
/// one with the least time. The time follows from areas and bytes.
class length_levels {
 public:
  /// Memory: 40 bytes for each pair of half-octaves with samples, reused between calls.
  void measure(context_instance const& instance, context_memory memory) {
    cut(instance, memory);
    select_degrees(instance);
    std::size_t const count = cuts_.size();
    choices_.assign(count * count, {});
    for (std::size_t first = 0; first + 1 < count; ++first) {
      std::uint32_t least = 0;
      for (std::size_t last = first + 1; last != count; ++last) {
        least = std::max(least, cuts_[last - 1].least);
        choices_[first * count + last] = choose(instance, cuts_[first], cuts_[last], least);
      }
    }
  }

  /// Writes the best levels, at most `most`, longest samples first. Returns the time of their
  /// areas, which their longest samples may exceed.
  double part(std::size_t most, std::vector<context_target>& targets) {
    std::size_t const count = cuts_.size();
    parts_.assign(count, {.time = unlimited});
    parts_[0].time = 0;
    std::size_t levels = 0;
    for (double before = unlimited; levels != most; ++levels) {
      std::size_t const row = parts_.size() - count;
      parts_.resize(parts_.size() + count, {.time = unlimited});
      for (std::size_t last = 1; last != count; ++last) extend(row, last);
      double const time = parts_.back().time;
      if (!(time < before)) break;
      before = time;
    }
    return write(levels, targets);
  }

 private:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  /// The first sample of a half-octave, sums over all samples before it, and the least degree that
  /// fits the samples up to the next cut.
  struct length_cut {
    std::uint32_t sample = 0;
    std::uint32_t least = 0;
    double tokens = 0;
    double squares = 0;
    double bytes = 0;
  };

  /// The best degree of a level and its times: the larger of the time of its areas and its longest
  /// sample, and the time of its areas only.
  struct level_choice {
    std::uint32_t degree = 0;
    std::uint64_t steps = 1;
    double alone = 0;
    double time = unlimited;
    double load = 0;
  };

  /// The best levels of the first half-octaves, of which the last one begins at `first`.
  struct parted {
    double time = 0;
    std::size_t first = 0;
  };

  [[nodiscard]] static std::uint64_t half_octave(context_sample const& sample) {
    auto const length = static_cast<std::uint64_t>(sample.length);
    auto const width = static_cast<unsigned>(std::bit_width(length));
    return 2 * std::uint64_t{width} + (width > 1 ? length >> (width - 2) & 1 : 0);
  }

  void cut(context_instance const& instance, context_memory memory) {
    auto const& samples = instance.samples;
    cuts_.clear();
    length_cut sums;
    for (std::uint32_t i = 0; i != samples.size(); ++i) {
      if (i == 0 || half_octave(samples[i]) != half_octave(samples[i - 1])) {
        sums.sample = i;
        cuts_.push_back(sums);
      }
      cuts_.back().least = std::max(cuts_.back().least, samples[i].least);
      sums.tokens += samples[i].tokens;
      sums.squares += samples[i].squares;
      sums.bytes += static_cast<double>(memory(samples[i].length, 1));
    }
    sums.sample = static_cast<std::uint32_t>(samples.size());
    cuts_.push_back(sums);
  }

  /// Selects degrees with at least twice the ranks of the previous degree.
  void select_degrees(context_instance const& instance) {
    degrees_.clear();
    std::uint32_t ranks = 0;
    for (std::uint32_t d = 0; d != instance.degrees.size(); ++d) {
      if (instance.degrees[d].ranks / 2 < ranks) continue;
      ranks = instance.degrees[d].ranks;
      degrees_.push_back(d);
    }
  }

  [[nodiscard]] level_choice choose(context_instance const& instance, length_cut const& from,
                                    length_cut const& to, std::uint32_t least) const {
    double const step_bytes =
        static_cast<double>(instance.ranks) * static_cast<double>(instance.capacity);
    double const bytes = to.bytes - from.bytes;
    double const steps = bytes > step_bytes ? std::ceil(bytes / step_bytes) : 1;
    double const fixed = steps * instance.fixed_time(1);
    level_choice best;
    for (std::uint32_t const d : degrees_) {
      if (d < least) continue;
      degree_time const& time = instance.degrees[d].time;
      double const groups = instance.ranks / instance.degrees[d].ranks;
      double const load = steps * time.fixed + (time.linear * (to.tokens - from.tokens) +
                                                time.quadratic * (to.squares - from.squares)) /
                                                   groups;
      double const alone = instance.alone(instance.samples[from.sample], d);
      double const needed = fixed + std::max(alone, load);
      if (needed >= best.time) continue;
      auto const whole_steps =
          static_cast<std::uint64_t>(std::min(steps, static_cast<double>(instance.samples.size())));
      best = {d, whole_steps, alone, needed, fixed + load};
    }
    return best;
  }

  /// Adds the best level that ends at `last` to the levels of a row with one level fewer.
  void extend(std::size_t row, std::size_t last) {
    std::size_t const count = cuts_.size();
    parted& own = parts_[row + count + last];
    for (std::size_t first = 0; first != last; ++first) {
      double const time = parts_[row + first].time + choices_[first * count + last].time;
      if (time < own.time) own = {time, first};
    }
  }

  double write(std::size_t levels, std::vector<context_target>& targets) const {
    std::size_t const count = cuts_.size();
    targets.resize(levels);
    double load = 0;
    for (std::size_t last = count - 1; levels != 0; --levels) {
      std::size_t const first = parts_[levels * count + last].first;
      level_choice const& choice = choices_[first * count + last];
      targets[levels - 1] = {.micro_steps = choice.steps,
                             .longest = choice.alone,
                             .min_degree = choice.degree,
                             .end = cuts_[last].sample};
      load += choice.load;
      last = first;
    }
    return load;
  }

  std::vector<length_cut> cuts_;
  std::vector<std::uint32_t> degrees_;
  std::vector<level_choice> choices_;
  std::vector<parted> parts_;
};

}  // namespace omnibal::inline v0::detail
