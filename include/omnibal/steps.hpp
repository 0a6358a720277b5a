// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules: the groups, or the samples, that each rank runs in each step.

#include <omnibal/check.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// A table of cells, one for each step and rank, each a list of indices. Cells are filled one after
/// the other, ranks fastest. This is the common base of `steps` of groups and `micro_batch_steps`
/// of samples.
class step_cells {
 public:
  /// Returns the number of complete steps.
  [[nodiscard]] std::size_t size() const noexcept { return cells_.size() / ranks_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }

  /// Returns the indices of one rank in one step. Precondition: `step < size()`, `rank < ranks()`.
  /// Spans and views are valid until this object changes or is destroyed. A temporary has no such
  /// members.
  [[nodiscard]] std::span<std::uint32_t const> operator()(std::size_t step,
                                                          std::size_t rank) const& {
    return cells_[step * ranks_ + rank];
  }
  void operator()(std::size_t step, std::size_t rank) const&& = delete;

  /// Returns all cells, the cell of rank r in step s at `s * ranks() + r`; the cells of an
  /// incomplete step follow at the end.
  [[nodiscard]] grouping_view cells() const& noexcept { return cells_; }
  void cells() const&& = delete;

  /// Appends an index to the current cell. Errors: `std::length_error` at 2^32 - 1 indices.
  void push(std::uint32_t index) { cells_.push(index); }

  /// Ends the current cell, empty or not.
  void close() { cells_.close(); }

  /// Completes a step that has begun: ends the current cell if it has indices, and adds empty cells
  /// for the remaining ranks. Does nothing after a complete step.
  void finish() {
    if (!cells_.open_group().empty()) cells_.close();
    while (cells_.size() % ranks_ != 0) cells_.close();
  }

  /// Removes all steps and keeps the memory.
  void clear() noexcept { cells_.clear(); }

  /// Allocates memory for `step_count` steps and `index_count` indices.
  void reserve(std::size_t step_count, std::size_t index_count) {
    cells_.reserve(step_count * ranks_, index_count);
  }

 protected:
  step_cells(std::string_view name, std::size_t ranks) : ranks_(ranks) {
    detail::check_positive(name, "ranks", ranks);
  }
  [[nodiscard]] friend bool operator==(step_cells const&, step_cells const&) = default;

 private:
  std::size_t ranks_;
  grouping cells_;
};

/// A schedule of groups with a cell for each step and rank. A cell contains the indices of the
/// groups that the rank runs in the step, one for each micro-batch, in the order in which the rank
/// runs them. A cell may be empty.
///
/// The steps are filled cell by cell, ranks fastest: `push` appends a group index to the current
/// cell and `close` continues with the next cell. A step exists once all of its cells are closed.
class steps : public step_cells {
 public:
  /// Creates an object without steps for `ranks` ranks. Errors: `std::invalid_argument` for 0
  /// ranks.
  explicit steps(std::size_t ranks) : step_cells("steps", ranks) {}

  /// Returns true if the groups of this cell are repetitions: they also run in another cell of this
  /// schedule, and fill the step so that no rank is idle. Complexity: logarithmic in the number of
  /// cells with repetitions. Precondition: `step < size()`, `rank < ranks()`.
  [[nodiscard]] bool is_repeat(std::size_t step, std::size_t rank) const {
    return std::binary_search(repeats_.begin(), repeats_.end(), step * ranks() + rank);
  }

  /// Ends the current cell, whose groups are repetitions.
  void close_repeat() {
    repeats_.push_back(cells().size());
    close();
  }

  /// Removes all steps and keeps the memory.
  void clear() noexcept {
    step_cells::clear();
    repeats_.clear();
  }

  [[nodiscard]] friend bool operator==(steps const&, steps const&) = default;

 private:
  /// The numbers of the cells that repeat groups, ascending.
  std::vector<std::size_t> repeats_;
};

/// A schedule of *samples* with a cell for each step and rank. A cell contains the sample indices
/// of the micro-batch that the rank runs in the step. The object is filled and read like `steps`.
/// It has its own type, because an index of a sample is not an index of a group.
class micro_batch_steps : public step_cells {
 public:
  /// Creates an object without steps for `ranks` ranks. Errors: `std::invalid_argument` for 0
  /// ranks.
  explicit micro_batch_steps(std::size_t ranks) : step_cells("micro_batch_steps", ranks) {}

  [[nodiscard]] friend bool operator==(micro_batch_steps const&,
                                       micro_batch_steps const&) = default;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// A range of numbers of any integer type except `bool`.
template <class Range>
concept number_range = std::ranges::input_range<Range const> &&
    std::integral<std::ranges::range_value_t<Range const>> &&
    !std::same_as<std::ranges::range_value_t<Range const>, bool>;

/// A range of cells, such as a grouping.
template <class Range>
concept cell_range =
    std::ranges::input_range<Range const> && number_range<std::ranges::range_value_t<Range const>>;

/// A range of steps, each a range of cells.
template <class Range>
concept cells_of_steps_range =
    std::ranges::input_range<Range const> && cell_range<std::ranges::range_value_t<Range const>>;

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The batches that `make_steps` accepts: a range of numbers, one for each cell; or a range of
/// cells, ranks fastest; or a range of steps, each with one cell for each rank.
template <class Range>
concept batch_range =
    detail::number_range<Range> || detail::cell_range<Range> || detail::cells_of_steps_range<Range>;

struct make_steps_options {
  /// The number of groups. If the number of groups is given, a group index that is not below it or
  /// that occurs twice is an error. `unscheduled_groups` lists the groups that do not occur.
  std::optional<std::size_t> groups{};
};

struct make_steps_fn {
  /// Creates steps from given batches, such as the batches of the sampler of a trainer, and checks
  /// them. The numbers are indices of groups, or of samples if each sample is a group. `batches` is
  /// a range
  ///
  /// - of steps, each a range of the cells of its ranks, such as a `grouping` with a part per rank;
  /// - of cells, ranks fastest: rank r of step s has the cell `s * ranks + r`;
  /// - of numbers, one for each cell, ranks fastest; the last ranks may be idle in the last step.
  ///
  /// `make_steps({{0, 1}, {2}}, 2)` is one step of two ranks. A cell may be empty. No cell is
  /// marked as a repetition.
  ///
  /// Complexity: linear. Memory: 4 bytes for each number and cell, and one byte for each of
  /// `options.groups`. Determinism: portable. Errors: `std::invalid_argument` for no rank, a step
  /// that does not have one cell for each rank, cells that are not whole steps, and a number that
  /// is negative or not a 32-bit index. If `options.groups` is given, it is also thrown for a
  /// number that is not below this option or that occurs twice. Further errors: `std::length_error`
  /// above 2^32 - 1 numbers.
  template <batch_range Batches = std::vector<std::vector<std::uint32_t>>>
  [[nodiscard]] steps operator()(Batches const& batches, std::size_t ranks,
                                 make_steps_options const& options = {}) const {
    detail::check_positive(name, "ranks", ranks);
    steps result(ranks);
    if constexpr (detail::number_range<Batches>) {
      for (auto const number : batches) {
        push(result, number);
        result.close();
      }
      result.finish();
    } else if constexpr (detail::cell_range<Batches>) {
      add_cells(result, batches);
      std::size_t const count = result.cells().size();
      if (count % ranks != 0) throw_cells("batches", count, ranks);
    } else {
      for (auto&& step : batches) {
        std::size_t const before = result.cells().size();
        add_cells(result, step);
        std::size_t const count = result.cells().size() - before;
        if (count != ranks) throw_cells(detail::joined_text("step ", before / ranks), count, ranks);
      }
    }
    if (options.groups) {
      detail::permutation_check named(name, "batches", "groups", *options.groups);
      named.take(result.cells().items());
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "make_steps";

  template <class Cells>
  static void add_cells(steps& result, Cells const& cells) {
    for (auto&& cell : cells) {
      for (auto const number : cell) push(result, number);
      result.close();
    }
  }

  template <class Number>
  static void push(steps& result, Number number) {
    auto const index = static_cast<std::uint32_t>(number);
    if (!detail::holds<std::uint32_t>(number) || index == max_index_count) {
      std::size_t const cell = result.cells().size();
      detail::throw_invalid(name, "step ", cell / result.ranks(), ", rank ", cell % result.ranks(),
                            " names ", number, ", which is no 32-bit index");
    }
    result.push(index);
  }

  [[noreturn]] static void throw_cells(std::string_view of, std::size_t count, std::size_t ranks) {
    detail::throw_invalid(name, of, " has ", count, " cells, must have one for each of the ", ranks,
                          " ranks in each step");
  }
};

/// Creates steps from given batches; see `make_steps_fn`.
inline constexpr make_steps_fn make_steps{};

}  // namespace omnibal::inline v0
