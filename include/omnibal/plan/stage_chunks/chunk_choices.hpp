// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of all layers of a stage with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/min_memory.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/detail/transient_levels.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/limited_choices.hpp>
#include <omnibal/plan/stage_chunks/moment_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The choices of the layers of a stage, and their times.
struct stage_solution {
  /// The smallest number of bytes by which the stage exceeds its memory with any choices; if it is
  /// positive, the times are not set.
  int128 missing = 0;
  /// The time of each chunk: the sum of the times of its layers.
  std::vector<std::int64_t> times;
  /// The choices of the layers, chunk by chunk, as in `whole_choice::index`.
  std::vector<std::uint32_t> choices;

  [[nodiscard]] std::int64_t load() const {
    std::int64_t sum = 0;
    for (std::int64_t const time : times) sum += time;
    return sum;
  }
};

/// Solves the choices of stages by the greedy algorithm for multiple-choice knapsacks. All layers
/// begin with their fewest bytes, and the algorithm takes the steps that save the most time for a
/// byte first. Kept bytes are checked at each moment that can be the peak. The algorithm solves one
/// problem without transient bytes for each limit on transient bytes.
class chunk_choices {
 public:
  chunk_choices(integer_layers const& layers, stage_budgets const& budgets)
      : layers_(layers), budgets_(budgets), limits_(limits_of(layers)), fewest_(layers, limits_) {
    for (std::int64_t const limit : limits_) within_.emplace_back(layers, limit);
    for (std::size_t l = 0; l != layers.size(); ++l) add_fastest(layers[l]);
    for (chunk_counts const& units : budgets.chunks) add_unit_sums(units);
  }

  /// Returns true if each value of the transient bytes of the choices is a limit. Then
  /// `missing_bytes` is exact.
  [[nodiscard]] bool knows_all_limits() const {
    return limits_.size() == layers_.transient_bytes().size();
  }
  /// Returns the units of each chunk of a stage, summed over the moments.
  [[nodiscard]] std::span<int128 const> unit_sums(std::size_t stage) const {
    return unit_sums_[stage];
  }

  /// Returns the bytes that remain for activations on a stage with these layers.
  [[nodiscard]] int128 room(std::size_t stage, chunk_ranges const& ranges) const {
    int128 result = static_cast<int128>(budgets_.memory[stage]) - budgets_.reserve[stage];
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      result -= layers_.state_bytes(ranges[c], ranges[c + 1]);
    }
    return result;
  }

  /// Returns the smallest number of bytes by which a stage exceeds its memory, over all choices of
  /// its layers; zero or negative if some choices fit. Returns zero for a stage without layers.
  [[nodiscard]] int128 missing_bytes(std::size_t stage, chunk_ranges const& ranges) {
    if (is_empty(ranges)) return 0;
    int128 const all = room(stage, ranges);
    int128 result = most_missing;
    for (std::size_t k = 0; k != limits_.size(); ++k) {
      if (!set_fewest(stage, k, ranges)) continue;
      result = std::min(result, kept_.peak() + limits_[k] - all);
    }
    return result;
  }

  /// Finds choices for a stage. The choices fit the memory, but may be slower than necessary, and
  /// the function proves no bound.
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
      int128 const missing = std::max<int128>(kept_.peak() - left, 0);
      if (missing != 0) {
        if (result.missing != 0) result.missing = std::min(result.missing, missing);
        continue;
      }
      result.missing = 0;
      if (min_time(within_[k], ranges) >= best) continue;
      take_steps(stage, within_[k], ranges, left);
      std::int64_t time = 0;
      for (std::int64_t const one : times_) time += one;
      if (time >= best) continue;
      best = time;
      result.times = times_;
      write_choices(within_[k], ranges, result.choices);
    }
  }

  /// Returns the peak of the bytes that a stage uses with these choices, including its reserve.
  [[nodiscard]] int128 bytes_of(std::size_t stage, chunk_ranges const& ranges,
                                std::span<std::uint32_t const> choices) const {
    std::vector<int128> of_chunk(ranges.size() / 2, 0);
    std::int64_t transient = 0;
    std::size_t next = 0;
    for (std::size_t c = 0; c != of_chunk.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l) {
        auto const& way = choice(l, choices[next++]);
        of_chunk[c] += way.bytes;
        transient = std::max(transient, way.transient_bytes);
      }
    }
    moment_bytes kept;
    kept.set(budgets_.chunks[stage], of_chunk);
    return budgets_.memory[stage] - room(stage, ranges) + kept.peak() + transient;
  }

  [[nodiscard]] static bool is_empty(chunk_ranges const& ranges) {
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      if (ranges[c] != ranges[c + 1]) return false;
    }
    return true;
  }

 private:
  /// Larger than the shortfall of any stage.
  static constexpr int128 most_missing = static_cast<int128>(1) << 125;
  /// If the choices have at most this number of distinct transient bytes, each value is a limit.
  static constexpr std::size_t max_limits = 12;

  /// A step of a layer to its next choice. `place` is the index of the layer within the stage,
  /// chunk by chunk, and `number` the index of the step within the layer.
  struct stage_step {
    double gain_of_byte;
    std::uint32_t place;
    std::uint32_t chunk;
    std::uint32_t number;
    limited_choices::step const* step;
  };

  [[nodiscard]] static std::vector<std::int64_t> limits_of(integer_layers const& layers) {
    auto all = layers.transient_bytes();
    if (all.size() <= max_limits) return all;
    return transient_levels(all).most;
  }

  void add_fastest(std::span<whole_choice const> layer) {
    whole_choice const* best = &layer.front();
    for (auto const& way : layer) {
      if (way.time < best->time) best = &way;
    }
    fastest_.push_back(best);
    fastest_bytes_.push_back(fastest_bytes_.back() + best->bytes);
  }

  void add_unit_sums(chunk_counts const& units) {
    auto& sums = unit_sums_.emplace_back(units.chunks, 0);
    for (std::size_t i = 0; i != units.size(); ++i) {
      for (std::size_t c = 0; c != units.chunks; ++c) sums[c] += units[i][c];
    }
  }

  /// Returns the choice with index `index` in the caller's list of choices of the layer.
  [[nodiscard]] whole_choice const& choice(std::size_t layer, std::uint32_t index) const {
    auto const all = layers_.by_index(layer);
    std::size_t i = 0;
    while (all[i].index != index) ++i;
    return all[i];
  }

  /// Returns the least time of the layers with the choices within a limit and with enough memory.
  [[nodiscard]] static std::int64_t min_time(limited_choices const& within,
                                             chunk_ranges const& ranges) {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      sum += within.min_time(ranges[c], ranges[c + 1]);
    }
    return sum;
  }

  /// Writes the fastest choices of all layers to `result` if they fit the memory. Returns false if
  /// they do not fit.
  [[nodiscard]] bool take_fastest(std::size_t stage, chunk_ranges const& ranges,
                                  stage_solution& result) {
    std::size_t const chunks = ranges.size() / 2;
    of_chunk_.resize(chunks);
    std::int64_t transient = 0;
    for (std::size_t c = 0; c != chunks; ++c) {
      std::size_t const first = ranges[2 * c];
      std::size_t const last = ranges[2 * c + 1];
      of_chunk_[c] = fastest_bytes_[last] - fastest_bytes_[first];
      for (std::size_t l = first; l != last; ++l) {
        transient = std::max(transient, fastest_[l]->transient_bytes);
      }
    }
    kept_.set(budgets_.chunks[stage], of_chunk_);
    if (!is_empty(ranges) && kept_.peak() + transient > room(stage, ranges)) return false;
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

  /// Sets the kept bytes to the fewest bytes of choices within limit number `k`. Returns false if a
  /// layer has no choice within the limit.
  [[nodiscard]] bool set_fewest(std::size_t stage, std::size_t k, chunk_ranges const& ranges) {
    of_chunk_.resize(ranges.size() / 2);
    for (std::size_t c = 0; c != of_chunk_.size(); ++c) {
      if (!fewest_.exist(k, ranges[2 * c], ranges[2 * c + 1])) return false;
      of_chunk_[c] = fewest_(k, ranges[2 * c], ranges[2 * c + 1]);
    }
    kept_.set(budgets_.chunks[stage], of_chunk_);
    return true;
  }

  /// Chooses the steps that fit into `left` bytes. Steps that save the most time for a byte come
  /// first.
  void take_steps(std::size_t stage, limited_choices const& within, chunk_ranges const& ranges,
                  int128 left) {
    std::size_t const chunks = ranges.size() / 2;
    times_.resize(chunks);
    order_.clear();
    std::uint32_t place = 0;
    for (std::uint32_t c = 0; c != chunks; ++c) {
      times_[c] = within.first_time(ranges[2 * c], ranges[2 * c + 1]);
      auto const weight = static_cast<double>(std::max<int128>(unit_sums_[stage][c], 1));
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l, ++place) {
        add_steps(within.steps(l), weight, place, c);
      }
    }
    std::sort(order_.begin(), order_.end(), [](stage_step const& a, stage_step const& b) {
      if (a.gain_of_byte != b.gain_of_byte) return a.gain_of_byte > b.gain_of_byte;
      return a.place != b.place ? a.place < b.place : a.number < b.number;
    });
    taken_.assign(place, 0);
    for (stage_step const& one : order_) {
      if (taken_[one.place] != one.number) continue;
      if (!kept_.add(one.chunk, one.step->bytes, left)) continue;
      ++taken_[one.place];
      times_[one.chunk] -= one.step->gain;
    }
  }

  void add_steps(std::span<limited_choices::step const> steps, double weight, std::uint32_t place,
                 std::uint32_t chunk) {
    std::uint32_t number = 0;
    for (auto const& step : steps) {
      double const price = weight * static_cast<double>(step.bytes);
      order_.push_back({static_cast<double>(step.gain) / price, place, chunk, number++, &step});
    }
  }

  /// Writes the choice that each layer has after its taken steps.
  void write_choices(limited_choices const& within, chunk_ranges const& ranges,
                     std::vector<std::uint32_t>& choices) const {
    choices.clear();
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      for (std::size_t l = ranges[c]; l != ranges[c + 1]; ++l) {
        choices.push_back(within.choice_after(l, taken_[choices.size()]));
      }
    }
  }

  integer_layers const& layers_;
  stage_budgets const& budgets_;
  std::vector<std::int64_t> limits_;
  min_bytes fewest_;
  /// The choices within each limit, in the order of the limits.
  std::vector<limited_choices> within_;
  /// The fastest choice of each layer, and the sums of their bytes before each layer.
  std::vector<whole_choice const*> fastest_;
  std::vector<int128> fastest_bytes_{0};
  std::vector<std::vector<int128>> unit_sums_;
  /// The bytes of a unit of each chunk, and the bytes that the stage keeps at each moment.
  std::vector<int128> of_chunk_;
  moment_bytes kept_;
  /// The times of the chunks and the number of steps of each layer after `take_steps`.
  std::vector<std::int64_t> times_;
  std::vector<stage_step> order_;
  std::vector<std::size_t> taken_;
};

}  // namespace omnibal::inline v0::detail
