// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The maximum units in flight of each chunk of the stages of a schedule.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The units that a stage keeps of each of its chunks, at each moment that can be the peak of its
/// memory. For any bytes of the chunks, the peak of the stage is at most the largest of `sum over
/// chunks of counts * bytes` over these moments.
struct chunk_counts {
  std::size_t chunks = 1;
  /// A row of `chunks` numbers for each moment. No row is dominated: each row exceeds any other row
  /// in at least one number.
  std::vector<std::int64_t> counts{};

  /// Returns the number of rows.
  [[nodiscard]] std::size_t size() const { return counts.size() / chunks; }
  /// Returns the numbers of units of the chunks at a moment.
  [[nodiscard]] std::span<std::int64_t const> operator[](std::size_t moment) const& {
    return std::span(counts).subspan(moment * chunks, chunks);
  }
  void operator[](std::size_t moment) const&& = delete;

  [[nodiscard]] friend bool operator==(chunk_counts const&, chunk_counts const&) = default;
};

struct chunks_in_flight_fn {
  /// Returns, for each stage, the units of each chunk that the stage keeps at the moments that can
  /// be its peak. A stage keeps a unit for the same time as in `peak_in_flight`. The function
  /// counts units after each forward pass, and leaves out counts that another moment exceeds or
  /// equals in all chunks. If the units of a chunk have equal bytes, the largest sum over the
  /// moments is exactly the peak of `simulate_pipeline`.
  ///
  /// Complexity: a call of `next` for each operation, and a comparison with each row of the result
  /// for each forward pass. Memory: the result. Determinism: portable. Errors: the errors of the
  /// schedule; `std::invalid_argument` if a unit is of a chunk that does not exist, or if a unit is
  /// freed before its forward pass.
  template <pipeline_schedule Schedule>
  [[nodiscard]] std::vector<chunk_counts> operator()(Schedule const& schedule) const {
    schedule.check();
    detail::check_at_least_one(name, "schedule.chunk_count()", schedule.chunk_count());
    std::vector<chunk_counts> result;
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      result.push_back(of_stage(schedule, stage));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "chunks_in_flight";

  template <class Schedule>
  [[nodiscard]] static chunk_counts of_stage(Schedule const& schedule, std::size_t stage) {
    constexpr auto last =
        Schedule::splits_backward ? operation_kind::weight : operation_kind::backward;
    chunk_counts result{.chunks = schedule.chunk_count()};
    std::vector<std::int64_t> kept(result.chunks, 0);
    detail::for_each_operation(
        schedule, stage, [&](operation_kind kind, pipeline_unit const& unit) {
          if (unit.chunk >= result.chunks) {
            detail::throw_invalid(name, "schedule.unit is chunk ", unit.chunk, ", there are ",
                                  result.chunks, " chunks");
          }
          if (kind == operation_kind::forward) {
            ++kept[unit.chunk];
            add(kept, result);
          } else if (kind == last && --kept[unit.chunk] < 0) {
            detail::throw_invalid(name, "stage ", stage, " frees a unit of chunk ", unit.chunk,
                                  " that it does not keep");
          }
        });
    return result;
  }

  [[nodiscard]] static bool is_below(std::span<std::int64_t const> left,
                                     std::span<std::int64_t const> right) {
    return std::equal(left.begin(), left.end(), right.begin(),
                      [](std::int64_t a, std::int64_t b) { return a <= b; });
  }

  /// Adds a row unless another row is at least as large in all numbers. Removes the rows that the
  /// new row exceeds or equals in all numbers.
  static void add(std::vector<std::int64_t> const& row, chunk_counts& rows) {
    for (std::size_t i = 0; i != rows.size(); ++i) {
      if (is_below(row, rows[i])) return;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i != rows.size(); ++i) {
      if (is_below(rows[i], row)) continue;
      std::copy_n(rows.counts.begin() + static_cast<std::ptrdiff_t>(i * rows.chunks), rows.chunks,
                  rows.counts.begin() + static_cast<std::ptrdiff_t>(kept * rows.chunks));
      ++kept;
    }
    rows.counts.resize(kept * rows.chunks);
    rows.counts.insert(rows.counts.end(), row.begin(), row.end());
  }
};

/// Returns the maximum units in flight of each chunk of each stage; see `chunks_in_flight_fn`.
inline constexpr chunks_in_flight_fn chunks_in_flight{};

}  // namespace omnibal::inline v0
