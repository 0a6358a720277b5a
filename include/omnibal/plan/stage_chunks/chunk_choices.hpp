// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of all layers of a stage with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/min_memory.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/detail/transient_levels.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The choices of the layers of a stage.
struct stage_solution {
  /// The bytes that the memory lacks for any choices; the times are then unknown.
  int128 missing = 0;
  /// The sum over the layers of each chunk.
  std::vector<std::int64_t> times;
  /// The choices of the layers, chunk by chunk, as in `whole_choice::index`.
  std::vector<std::uint32_t> choices;

  [[nodiscard]] std::int64_t load() const {
    std::int64_t sum = 0;
    for (std::int64_t const time : times) sum += time;
    return sum;
  }
};

/// Solves the choices of stages by the greedy algorithm of multiple-choice knapsacks: all layers
/// begin with their fewest bytes, and the steps with the most gain for a byte come first. Kept
/// bytes are checked at each moment that can be the peak. For each limit on transient bytes there
/// is a problem without transient bytes.
class chunk_choices {
 public:
  chunk_choices(integer_layers const& layers, stage_budgets const& budgets)
      : layers_(layers), budgets_(budgets), limits_(limits_of(layers)), fewest_(layers, limits_) {
    for (std::size_t k = 0; k != limits_.size(); ++k) add_limit(k);
    add_fastest();
    for (chunk_counts const& units : budgets.chunks) {
      std::vector<int128> sums(units.chunks, 0);
      for (std::size_t i = 0; i != units.size(); ++i) {
        for (std::size_t c = 0; c != units.chunks; ++c) sums[c] += units[i][c];
      }
      unit_sums_.push_back(std::move(sums));
    }
  }

  /// Returns true if the limits are all transient bytes of choices, so that `missing_bytes` is
  /// exact.
  [[nodiscard]] bool knows_all_limits() const {
    return limits_.size() == layers_.transient_bytes().size();
  }
  /// The sums over the moments of the units of each chunk of a stage.
  [[nodiscard]] std::span<int128 const> unit_sums(std::size_t stage) const {
    return unit_sums_[stage];
  }

  /// Returns the bytes for activations on a stage with these layers.
  [[nodiscard]] int128 room(std::size_t stage, chunk_ranges const& ranges) const {
    int128 result = static_cast<int128>(budgets_.memory[stage]) - budgets_.reserve[stage];
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      result -= layers_.state_bytes(ranges[c], ranges[c + 1]);
    }
    return result;
  }

  /// Returns the fewest bytes that the memory of a stage lacks; not positive if it suffices. A
  /// stage without layers lacks nothing.
  [[nodiscard]] int128 missing_bytes(std::size_t stage, chunk_ranges const& ranges) {
    if (is_empty(ranges)) return 0;
    int128 const all = room(stage, ranges);
    int128 result = most_missing;
    for (std::size_t k = 0; k != limits_.size(); ++k) {
      if (!set_fewest(stage, k, ranges)) continue;
      result = std::min(result, peak() + limits_[k] - all);
    }
    return result;
  }

  /// Finds choices for a stage. The times are no less than necessary and no proof is sought.
  void solve(std::size_t stage, chunk_ranges const& ranges, stage_solution& result) {
    result.missing = 0;
    if (take_fastest(stage, ranges, result)) return;
    int128 const all = room(stage, ranges);
    result.missing = most_missing;
    result.choices.clear();
    std::int64_t best = no_time;
    for (std::size_t k = 0; k != limits_.size(); ++k) {
      if (!set_fewest(stage, k, ranges)) continue;
      int128 const left = all - limits_[k];
      int128 const missing = std::max<int128>(peak() - left, 0);
      if (missing != 0) {
        if (result.missing != 0) result.missing = std::min(result.missing, missing);
        continue;
      }
      result.missing = 0;
      if (min_time(k, ranges) >= best) continue;
      fill(stage, k, ranges, left);
      std::int64_t time = 0;
      for (std::int64_t const one : times_) time += one;
      if (time >= best) continue;
      best = time;
      result.times = times_;
      write_choices(k, ranges, result.choices);
    }
  }

  /// Returns the most bytes of the memory of a stage that these choices use, its reserve included.
  [[nodiscard]] int128 bytes_of(std::size_t stage, chunk_ranges const& ranges,
                                std::span<std::uint32_t const> choices) const {
    std::vector<int128> kept(ranges.size() / 2, 0);
    std::int64_t transient = 0;
    std::size_t next = 0;
    for (std::size_t c = 0; c != kept.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l) {
        auto const& way = choice(l, choices[next++]);
        kept[c] += way.bytes;
        transient = std::max(transient, way.transient_bytes);
      }
    }
    int128 most = 0;
    chunk_counts const& units = budgets_.chunks[stage];
    for (std::size_t i = 0; i != units.size(); ++i) {
      int128 sum = 0;
      for (std::size_t c = 0; c != kept.size(); ++c) sum += units[i][c] * kept[c];
      most = std::max(most, sum);
    }
    return budgets_.memory[stage] - room(stage, ranges) + most + transient;
  }

  /// The choice of a layer with this number in the caller's layer.
  [[nodiscard]] whole_choice const& choice(std::size_t layer, std::uint32_t index) const {
    auto const all = layers_.by_index(layer);
    std::size_t i = 0;
    while (all[i].index != index) ++i;
    return all[i];
  }

  [[nodiscard]] static bool is_empty(chunk_ranges const& ranges) {
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      if (ranges[c] != ranges[c + 1]) return false;
    }
    return true;
  }

 private:
  /// More than any shortfall.
  static constexpr int128 most_missing = static_cast<int128>(1) << 125;
  /// The number of transient bytes up to which each of them is a limit.
  static constexpr std::size_t max_limits = 12;

  /// A step of a layer from a corner of the convex hull of its choices to the next one.
  struct layer_step {
    std::int64_t bytes;
    std::int64_t gain;
    /// The number of the choice to which the step leads.
    std::uint32_t index;
  };
  /// A step of a layer of a stage.
  struct step_of_stage {
    double gain_of_byte;
    std::uint32_t place;
    std::uint32_t chunk;
    std::uint32_t number;
    layer_step const* step;
  };

  [[nodiscard]] static std::vector<std::int64_t> limits_of(integer_layers const& layers) {
    auto all = layers.transient_bytes();
    if (all.size() <= max_limits) return all;
    return transient_levels(all).most;
  }

  void add_limit(std::size_t k) {
    pareto_fronts fronts;
    std::vector<std::int64_t> before{0};
    std::vector<std::uint32_t> first;
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      std::int64_t const time = push_front(l, limits_[k], fronts, first);
      before.push_back(before.back() + time);
    }
    std::vector<hull_step> steps;
    find_hull_steps(fronts, steps);
    std::vector<std::vector<layer_step>> of_layer(layers_.size());
    for (hull_step const& step : steps) {
      of_layer[step.layer].push_back({step.bytes, step.gain, fronts[step.layer][step.point].index});
    }
    std::vector<std::int64_t> least{0};
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      std::int64_t const time = before[l + 1] - before[l] - fronts[l].back().gain;
      least.push_back(least.back() + time);
    }
    first_time_.push_back(std::move(before));
    last_time_.push_back(std::move(least));
    first_choice_.push_back(std::move(first));
    steps_.push_back(std::move(of_layer));
  }

  /// Adds the front of a layer under a limit; returns the time of its first choice.
  std::int64_t push_front(std::size_t layer, std::int64_t limit, pareto_fronts& fronts,
                          std::vector<std::uint32_t>& first) const {
    whole_choice const* least = nullptr;
    std::int64_t time = 0;
    for (auto const& way : layers_[layer]) {
      if (way.transient_bytes > limit) continue;
      if (least == nullptr) {
        least = &way;
      } else if (way.time >= time) {
        continue;
      }
      time = way.time;
      fronts.push({way.bytes - least->bytes, least->time - way.time, way.index});
    }
    if (least == nullptr) fronts.push({0, 0, 0});
    fronts.close();
    first.push_back(least == nullptr ? 0 : least->index);
    return least == nullptr ? 0 : least->time;
  }

  /// Returns the least time under a limit with enough memory.
  [[nodiscard]] std::int64_t min_time(std::size_t k, chunk_ranges const& ranges) const {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      sum += last_time_[k][ranges[c + 1]] - last_time_[k][ranges[c]];
    }
    return sum;
  }

  void add_fastest() {
    fastest_bytes_.assign(1, 0);
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      whole_choice const* best = &layers_[l].front();
      for (auto const& way : layers_[l]) {
        if (way.time < best->time) best = &way;
      }
      fastest_.push_back(best);
      fastest_bytes_.push_back(fastest_bytes_.back() + best->bytes);
    }
  }

  /// Returns the most bytes kept at a moment, with the bytes of `kept_`.
  [[nodiscard]] int128 peak() const {
    int128 most = 0;
    for (int128 const used : used_) most = std::max(most, used);
    return most;
  }

  /// Sets the bytes kept at each moment from `kept_`.
  void set_used(std::size_t stage) {
    chunk_counts const& units = budgets_.chunks[stage];
    used_.assign(units.size(), 0);
    // Above 2^62 bytes the memory is too small whatever the units, and products would overflow.
    constexpr int128 too_many = static_cast<int128>(1) << 64;
    for (std::size_t i = 0; i != used_.size(); ++i) {
      for (std::size_t c = 0; c != kept_.size(); ++c) {
        used_[i] += units[i][c] * std::min(kept_[c], too_many);
      }
    }
  }

  /// Uses the fastest choices of all layers if they fit.
  [[nodiscard]] bool take_fastest(std::size_t stage, chunk_ranges const& ranges,
                                  stage_solution& result) {
    std::size_t const chunks = ranges.size() / 2;
    kept_.resize(chunks);
    std::int64_t transient = 0;
    for (std::size_t c = 0; c != chunks; ++c) {
      std::size_t const first = ranges[2 * c];
      std::size_t const last = ranges[2 * c + 1];
      kept_[c] = fastest_bytes_[last] - fastest_bytes_[first];
      for (std::size_t l = first; l != last; ++l) {
        transient = std::max(transient, fastest_[l]->transient_bytes);
      }
    }
    set_used(stage);
    if (!is_empty(ranges) && peak() + transient > room(stage, ranges)) return false;
    result.times.resize(chunks);
    result.choices.clear();
    for (std::size_t c = 0; c != chunks; ++c) {
      result.times[c] = layers_.min_time(ranges[2 * c], ranges[2 * c + 1]);
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l) {
        result.choices.push_back(fastest_[l]->index);
      }
    }
    return true;
  }

  /// Sets the bytes at each moment to the fewest under a limit; returns false if a layer has no
  /// choice within the limit.
  [[nodiscard]] bool set_fewest(std::size_t stage, std::size_t k, chunk_ranges const& ranges) {
    kept_.resize(ranges.size() / 2);
    for (std::size_t c = 0; c != kept_.size(); ++c) {
      if (!fewest_.exist(k, ranges[2 * c], ranges[2 * c + 1])) return false;
      kept_[c] = fewest_(k, ranges[2 * c], ranges[2 * c + 1]);
    }
    set_used(stage);
    return true;
  }

  /// Takes the steps that fit, the ones with the most gain for a byte first.
  void fill(std::size_t stage, std::size_t k, chunk_ranges const& ranges, int128 left) {
    chunk_counts const& units = budgets_.chunks[stage];
    std::size_t const chunks = ranges.size() / 2;
    times_.resize(chunks);
    order_.clear();
    std::uint32_t place = 0;
    for (std::uint32_t c = 0; c != chunks; ++c) {
      times_[c] = first_time_[k][ranges[2 * c + 1]] - first_time_[k][ranges[2 * c]];
      auto const weight = static_cast<double>(std::max<int128>(unit_sums_[stage][c], 1));
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l, ++place) {
        std::uint32_t number = 0;
        for (layer_step const& step : steps_[k][l]) {
          double const price = weight * static_cast<double>(step.bytes);
          order_.push_back({static_cast<double>(step.gain) / price, place, c, number++, &step});
        }
      }
    }
    std::sort(order_.begin(), order_.end(), [](step_of_stage const& a, step_of_stage const& b) {
      if (a.gain_of_byte != b.gain_of_byte) return a.gain_of_byte > b.gain_of_byte;
      return a.place != b.place ? a.place < b.place : a.number < b.number;
    });
    taken_.assign(place, 0);
    for (step_of_stage const& one : order_) {
      if (taken_[one.place] != one.number) continue;
      bool fits = true;
      for (std::size_t i = 0; i != used_.size() && fits; ++i) {
        fits = used_[i] + static_cast<int128>(units[i][one.chunk]) * one.step->bytes <= left;
      }
      if (!fits) continue;
      for (std::size_t i = 0; i != used_.size(); ++i) {
        used_[i] += static_cast<int128>(units[i][one.chunk]) * one.step->bytes;
      }
      ++taken_[one.place];
      times_[one.chunk] -= one.step->gain;
    }
  }

  void write_choices(std::size_t k, chunk_ranges const& ranges,
                     std::vector<std::uint32_t>& choices) const {
    choices.clear();
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      for (std::size_t l = ranges[c]; l != ranges[c + 1]; ++l) {
        std::size_t const taken = taken_[choices.size()];
        choices.push_back(taken == 0 ? first_choice_[k][l] : steps_[k][l][taken - 1].index);
      }
    }
  }

  integer_layers const& layers_;
  stage_budgets const& budgets_;
  std::vector<std::int64_t> limits_;
  min_bytes fewest_;
  /// For each limit: the times of the choices with the fewest bytes before each layer, the least
  /// times, the choices with the fewest bytes, and the steps of each layer.
  std::vector<std::vector<std::int64_t>> first_time_;
  std::vector<std::vector<std::int64_t>> last_time_;
  std::vector<std::vector<std::uint32_t>> first_choice_;
  std::vector<std::vector<std::vector<layer_step>>> steps_;
  std::vector<whole_choice const*> fastest_;
  std::vector<int128> fastest_bytes_;
  std::vector<std::vector<int128>> unit_sums_;
  std::vector<int128> kept_;
  std::vector<int128> used_;
  std::vector<std::int64_t> times_;
  std::vector<step_of_stage> order_;
  std::vector<std::size_t> taken_;
};

}  // namespace omnibal::inline v0::detail
