#pragma once

/// \file
/// Schedules: which groups, or which samples, each rank runs in each step.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// Steps x ranks of lists of indices, filled cell by cell, ranks fastest: what `steps` of groups
/// and `micro_batch_steps` of samples have in common.
class step_cells {
 public:
  /// The number of complete steps.
  [[nodiscard]] std::size_t size() const noexcept { return cells_.size() / ranks_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }

  /// The indices of one rank in one step. Precondition: `step < size()`, `rank < ranks()`. Spans
  /// and views live as long as this object, unchanged; of a temporary there are none.
  [[nodiscard]] std::span<std::uint32_t const> operator()(std::size_t step,
                                                          std::size_t rank) const& {
    return cells_[step * ranks_ + rank];
  }
  void operator()(std::size_t step, std::size_t rank) const&& = delete;

  /// All cells, that of rank r in step s at `s * ranks() + r`; cells of an incomplete step follow.
  [[nodiscard]] grouping_view cells() const& noexcept { return cells_; }
  void cells() const&& = delete;

  /// Appends an index to the current cell. Errors: `std::length_error` at 2^32 - 1 indices.
  void push(std::uint32_t index) { cells_.push(index); }

  /// Ends the current cell, empty or not.
  void close() { cells_.close(); }

  /// Completes a step that has begun: ends a cell with indices in it and adds empty cells for the
  /// remaining ranks. Does nothing after a complete step.
  void finish() {
    if (!cells_.open_group().empty()) cells_.close();
    while (cells_.size() % ranks_ != 0) cells_.close();
  }

  /// Removes all steps and keeps the memory.
  void clear() noexcept { cells_.clear(); }

  /// Allocates for this many steps and indices.
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

/// Steps x ranks x micro-batches of group indices. A cell, the group indices of one rank in one
/// step, lists the micro-batches in the order in which the rank runs them; it may be empty.
///
/// It is filled cell by cell, ranks fastest: `push` appends a group index to the current cell and
/// `close` goes on to the next. A step exists once all of its cells are closed.
class steps : public step_cells {
 public:
  /// No steps, for this many ranks. Errors: `std::invalid_argument` for no rank.
  explicit steps(std::size_t ranks) : step_cells("steps", ranks) {}

  /// True where the groups of this cell are repetitions: they fill the step so that no rank is
  /// idle, and ran in another cell of this schedule. Complexity: logarithmic in the number of such
  /// cells. Precondition: `step < size()`, `rank < ranks()`.
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

/// Steps x ranks of *sample* indices: a cell is the micro-batch that a rank runs in a step. Filled
/// and read as `steps`, and another type, as an index of a sample is none of a group.
class micro_batch_steps : public step_cells {
 public:
  /// No steps, for this many ranks. Errors: `std::invalid_argument` for no rank.
  explicit micro_batch_steps(std::size_t ranks) : step_cells("micro_batch_steps", ranks) {}

  [[nodiscard]] friend bool operator==(micro_batch_steps const&,
                                       micro_batch_steps const&) = default;
};

}  // namespace omnibal::inline v0
