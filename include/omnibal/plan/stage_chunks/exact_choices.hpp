// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Choices of a stage by `select_recompute`.

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Solves the choices of a stage by `select_recompute`, which accepts one number of units for each
/// chunk. The peak of a stage may be at several moments with different numbers of units. With the
/// most units of all moments the choices never exceed the memory; with the units of one moment the
/// solution is a relaxation.
class exact_choices {
 public:
  exact_choices(chunk_problem const& problem, chunk_choices const& choices)
      : problem_(problem), choices_(choices) {}

  /// Returns choices of a stage, solved for the most units of all moments and for the moment with
  /// the most units. Choices that exceed the memory at any moment are left out.
  [[nodiscard]] std::vector<stage_solution> solve(std::size_t stage,
                                                  chunk_ranges const& ranges) const {
    std::vector<stage_solution> result;
    chunk_counts const& units = problem_.budgets.chunks[stage];
    chunk_units most(units.chunks, 0);
    std::size_t heaviest = 0;
    std::int64_t most_units = 0;
    for (std::size_t i = 0; i != units.size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t c = 0; c != units.chunks; ++c) {
        most[c] = std::max(most[c], units[i][c]);
        sum += units[i][c];
      }
      if (sum <= most_units) continue;
      most_units = sum;
      heaviest = i;
    }
    add_solution(stage, ranges, most, result);
    if (units.size() > 1) add_solution(stage, ranges, units[heaviest], result);
    return result;
  }

  /// Returns a lower bound of the time of a stage from the relaxations for its first moments.
  [[nodiscard]] std::int64_t min_load(std::size_t stage, chunk_ranges const& ranges) const {
    constexpr std::size_t max_moments = 4;
    std::int64_t least = problem_.min_load(ranges);
    chunk_counts const& units = problem_.budgets.chunks[stage];
    for (std::size_t i = 0; i != std::min(units.size(), max_moments); ++i) {
      least = std::max(least, select(stage, ranges, units[i]).lower_bound);
    }
    return least;
  }

 private:
  using chunk_units = std::vector<std::int64_t>;

  /// Adds the choices that are optimal for these units to `solutions`. Does nothing if the choices
  /// exceed the memory at any moment or if bytes exceed the range of their type.
  void add_solution(std::size_t stage, chunk_ranges const& ranges,
                    std::span<std::int64_t const> units,
                    std::vector<stage_solution>& solutions) const {
    auto const selected = select(stage, ranges, units);
    if (selected.status != solve_status::solved) return;
    stage_solution result;
    result.times.assign(units.size(), 0);
    std::size_t next = 0;
    for (std::size_t c = 0; c != units.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l, ++next) {
        auto const& way = problem_.layers.by_index(l)[selected.choices[next]];
        result.times[c] += way.time;
        result.choices.push_back(way.index);
      }
    }
    int128 const bytes = choices_.bytes_of(stage, ranges, result.choices);
    if (bytes <= problem_.budgets.memory[stage]) solutions.push_back(std::move(result));
  }

  [[nodiscard]] recompute_result<std::int64_t> select(std::size_t stage, chunk_ranges const& ranges,
                                                      std::span<std::int64_t const> units) const {
    std::vector<std::vector<whole_choice>> layers;
    // Larger bytes exceed every memory. The limit keeps the sum over all layers in range.
    auto const count = static_cast<int128>(problem_.layers.size());
    int128 const most = (static_cast<int128>(1) << 62) / std::max<int128>(count, 1);
    for (std::size_t c = 0; c != units.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l) {
        auto& choices = layers.emplace_back();
        for (whole_choice way : problem_.layers.by_index(l)) {
          int128 const bytes = static_cast<int128>(way.bytes) * units[c];
          way.bytes = static_cast<std::int64_t>(std::min(bytes, most));
          choices.push_back(way);
        }
      }
    }
    auto const room = saturate_cast<std::int64_t>(choices_.room(stage, ranges));
    return select_recompute(layers, room,
                            {.effort = problem_.options.effort,
                             .states = problem_.options.states,
                             .max_gap = problem_.options.max_gap});
  }

  chunk_problem const& problem_;
  chunk_choices const& choices_;
};

}  // namespace omnibal::inline v0::detail
