// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Levels of length with their own degrees and micro-steps.

#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Hierarchical balance packing (Yao et al., NeurIPS 2025) within one step. Dynamic programming
/// over the ends of levels finds the partition of the half-octaves of the length into levels that
/// requires the least time. Times are estimated from areas and bytes.
class length_levels {
 public:
  /// Chooses the best degree of each possible level. Memory: 40 bytes for each pair of half-octaves
  /// with samples, reused between calls.
  void measure(context_instance const& instance, context_memory memory) {
    cut_half_octaves(instance, memory);
    select_degrees(instance);
    std::size_t const count = cuts_.size();
    choices_.assign(count * count, {});
    for (std::size_t first = 0; first + 1 < count; ++first) {
      std::uint32_t min_degree_index = 0;
      for (std::size_t end = first + 1; end != count; ++end) {
        min_degree_index = std::max(min_degree_index, cuts_[end - 1].min_degree_index);
        choices_[first * count + end] =
            choose_degree(instance, cuts_[first], cuts_[end], min_degree_index);
      }
    }
  }

  /// The targets of the levels, longest samples first, in the memory of `length_levels`. `time` is
  /// the time of their areas, which their longest samples may exceed.
  struct level_partition {
    std::span<level_target const> targets{};
    double time = 0;
  };

  /// Returns the best partition into at most `max_count` levels, which is valid until the next
  /// call. Precondition: `measure` was called.
  [[nodiscard]] level_partition partition(std::size_t max_count) {
    std::size_t const count = cuts_.size();
    prefixes_.assign(count, {.time = unlimited});
    prefixes_[0].time = 0;
    std::size_t levels = 0;
    for (double before = unlimited; levels != max_count; ++levels) {
      std::size_t const row = prefixes_.size() - count;
      prefixes_.resize(prefixes_.size() + count, {.time = unlimited});
      for (std::size_t end = 1; end != count; ++end) extend(row, end);
      double const time = prefixes_.back().time;
      if (!(time < before)) break;
      before = time;
    }
    return read_levels(levels);
  }

 private:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  /// The first sample of a half-octave, the sums over all samples before it, and the least degree
  /// that fits the samples up to the next cut.
  struct length_cut {
    std::uint32_t sample = 0;
    std::uint32_t min_degree_index = 0;
    double tokens = 0;
    double squares = 0;
    double bytes = 0;
  };

  /// The best degree of a level and its number of micro-steps. `longest` is the time of its longest
  /// sample. `area_time` is the time that its areas require, and `time` is the larger of the two.
  struct level_choice {
    std::uint32_t degree_index = 0;
    std::uint64_t micro_steps = 1;
    double longest = 0;
    double time = unlimited;
    double area_time = 0;
  };

  /// The best partition of the half-octaves before a cut: its time, and the cut at which its last
  /// level begins.
  struct best_prefix {
    double time = 0;
    std::size_t first = 0;
  };

  [[nodiscard]] static std::uint64_t half_octave(context_sample const& sample) {
    auto const length = static_cast<std::uint64_t>(sample.length);
    auto const width = static_cast<unsigned>(std::bit_width(length));
    return 2 * std::uint64_t{width} + (width > 1 ? length >> (width - 2) & 1 : 0);
  }

  void cut_half_octaves(context_instance const& instance, context_memory memory) {
    auto const& samples = instance.samples;
    cuts_.clear();
    length_cut sums;
    for (std::uint32_t i = 0; i != samples.size(); ++i) {
      if (i == 0 || half_octave(samples[i]) != half_octave(samples[i - 1])) {
        sums.sample = i;
        cuts_.push_back(sums);
      }
      cuts_.back().min_degree_index =
          std::max(cuts_.back().min_degree_index, samples[i].min_degree_index);
      sums.tokens += samples[i].tokens;
      sums.squares += samples[i].squares;
      sums.bytes += static_cast<double>(memory(samples[i].length, 1));
    }
    sums.sample = static_cast<std::uint32_t>(samples.size());
    cuts_.push_back(sums);
  }

  /// Selects degrees with at least twice the ranks of the previous degree.
  void select_degrees(context_instance const& instance) {
    degree_indices_.clear();
    std::uint32_t ranks = 0;
    for (std::uint32_t d = 0; d != instance.degrees.size(); ++d) {
      if (instance.degrees[d].ranks / 2 < ranks) continue;
      ranks = instance.degrees[d].ranks;
      degree_indices_.push_back(d);
    }
  }

  /// Returns the best degree of the level between two cuts.
  [[nodiscard]] level_choice choose_degree(context_instance const& instance, length_cut const& from,
                                           length_cut const& to,
                                           std::uint32_t min_degree_index) const {
    double const step_bytes = instance.total_capacity;
    double const bytes = to.bytes - from.bytes;
    double const steps = bytes > step_bytes ? std::ceil(bytes / step_bytes) : 1;
    double const fixed = steps * instance.fixed_time(1);
    double const mean_speed = instance.total_speed / instance.ranks;
    level_choice best;
    for (std::uint32_t const d : degree_indices_) {
      if (d < min_degree_index) continue;
      degree_time const& time = instance.degrees[d].time;
      double const groups = instance.ranks / instance.degrees[d].ranks * mean_speed;
      double const load = steps * time.fixed + (time.linear * (to.tokens - from.tokens) +
                                                time.quadratic * (to.squares - from.squares)) /
                                                   groups;
      double const longest = instance.time_alone(instance.samples[from.sample], d);
      double const needed = fixed + std::max(longest, load);
      if (needed >= best.time) continue;
      auto const whole_steps =
          static_cast<std::uint64_t>(std::min(steps, static_cast<double>(instance.samples.size())));
      best = {.degree_index = d,
              .micro_steps = whole_steps,
              .longest = longest,
              .time = needed,
              .area_time = fixed + load};
    }
    return best;
  }

  /// Finds the best last level that ends at the cut `end`, behind the prefixes with one level
  /// fewer, which begin at `row`.
  void extend(std::size_t row, std::size_t end) {
    std::size_t const count = cuts_.size();
    best_prefix& best = prefixes_[row + count + end];
    for (std::size_t first = 0; first != end; ++first) {
      double const time = prefixes_[row + first].time + choices_[first * count + end].time;
      if (time < best.time) best = {time, first};
    }
  }

  /// Reads the levels of the best partition, from the last cut back to the first cut.
  [[nodiscard]] level_partition read_levels(std::size_t levels) {
    std::size_t const count = cuts_.size();
    targets_.resize(levels);
    double time = 0;
    for (std::size_t end = count - 1; levels != 0; --levels) {
      std::size_t const first = prefixes_[levels * count + end].first;
      level_choice const& choice = choices_[first * count + end];
      targets_[levels - 1] = {.micro_steps = choice.micro_steps,
                              .longest = choice.longest,
                              .min_degree_index = choice.degree_index,
                              .end = cuts_[end].sample};
      time += choice.area_time;
      end = first;
    }
    return {targets_, time};
  }

  /// The half-octaves that have samples, and the end of all samples.
  std::vector<length_cut> cuts_;
  /// The indices of the degrees that levels may have.
  std::vector<std::uint32_t> degree_indices_;
  /// The best degree of each level: row `first`, column `end` of a square matrix over the cuts.
  std::vector<level_choice> choices_;
  /// The best partitions: row k contains the partitions into k levels, by last cut.
  std::vector<best_prefix> prefixes_;
  std::vector<level_target> targets_;
};

}  // namespace omnibal::inline v0::detail
