// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A schedule as a list of operations for each stage.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// An operation of a list: its kind and its unit.
struct listed_operation {
  operation_kind kind = operation_kind::forward;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;

  [[nodiscard]] friend bool operator==(listed_operation const&, listed_operation const&) = default;
};

/// The operations of each stage, in the order in which the stage runs them.
using operation_lists = std::vector<std::vector<listed_operation>>;

/// A schedule that runs the operations of a list on each stage. `SplitsBackward` is true if the
/// gradients of the weights are separate operations.
///
/// Memory: 20 bytes for each operation.
template <bool SplitsBackward = true>
struct listed_schedule : chunk_layout {
  static constexpr bool splits_backward = SplitsBackward;

  listed_schedule() = default;

  /// Creates the schedule from a list for each stage. Errors: the errors of `chunk_layout::check`;
  /// `std::invalid_argument` unless each stage has one list with each operation of each unit once.
  /// In the list, the backward pass must follow the forward pass, and the gradients of the weights
  /// the backward pass. `simulate_pipeline` checks whether stages wait for each other forever.
  listed_schedule(chunk_layout const& layout, operation_lists const& lists) : chunk_layout(layout) {
    chunk_layout::check(name);
    detail::check_size(name, "lists", lists.size(), stages, "stages");
    for (std::size_t stage = 0; stage != stages; ++stage) append(stage, lists[stage]);
  }

  /// Returns the operations of a stage.
  [[nodiscard]] std::span<listed_operation const> operations(std::size_t stage) const {
    return std::span(operations_).subspan(stage * operation_count(), operation_count());
  }

  [[nodiscard]] operation_kind next(std::size_t stage, stage_progress const& done) const {
    std::size_t const begun = std::size_t{done.forward} + done.backward + done.weight;
    return operations_[stage * operation_count() + begun].kind;
  }
  [[nodiscard]] pipeline_unit unit(std::size_t stage, operation_kind kind,
                                   std::uint32_t index) const {
    return units_[static_cast<std::size_t>(kind)][stage * unit_count() + index];
  }
  void check() const {
    chunk_layout::check(name);
    if (operations_.size() == stages * operation_count()) return;
    detail::throw_invalid(name, "the lists have ", operations_.size(), " operations, ", stages,
                          " stages, ", micro_batches, " micro-batches and ", chunks,
                          " chunks need ", stages * operation_count());
  }

  [[nodiscard]] friend bool operator==(listed_schedule const&, listed_schedule const&) = default;

 private:
  static constexpr std::string_view name = "listed_schedule";
  static constexpr std::size_t kinds = SplitsBackward ? 3 : 2;

  [[nodiscard]] std::size_t unit_count() const { return micro_batches * chunks; }
  [[nodiscard]] std::size_t operation_count() const { return unit_count() * kinds; }

  /// Appends the list of a stage. `passes` counts the operations that each unit has had; this count
  /// must equal the number of the kind of the next operation of the unit.
  void append(std::size_t stage, std::vector<listed_operation> const& list) {
    std::vector<std::uint8_t> passes(unit_count(), 0);
    for (std::size_t i = 0; i != list.size(); ++i) {
      auto const& [kind, chunk, micro_batch] = list[i];
      auto const number = static_cast<std::size_t>(kind);
      if (number >= kinds || chunk >= chunks || micro_batch >= micro_batches) {
        throw_operation(stage, i, list[i], "does not exist");
      }
      std::uint8_t& passed = passes[chunk * micro_batches + micro_batch];
      if (number < passed) throw_operation(stage, i, list[i], "is listed twice");
      if (number > passed) throw_operation(stage, i, list[i], "has no operation before it");
      ++passed;
      units_[number].push_back({.chunk = chunk, .micro_batch = micro_batch});
    }
    detail::check_size(name, detail::joined_text("lists[", stage, "]"), list.size(),
                       operation_count(), "operations");
    operations_.insert(operations_.end(), list.begin(), list.end());
  }

  [[noreturn]] static void throw_operation(std::size_t stage, std::size_t index,
                                           listed_operation const& operation,
                                           std::string_view why) {
    constexpr std::array<std::string_view, 3> names{"forward", "backward", "weight"};
    std::size_t const kind = std::min<std::size_t>(static_cast<std::size_t>(operation.kind), 2);
    detail::throw_invalid(name, "lists[", stage, "][", index, "], ", names[kind],
                          " of micro-batch ", operation.micro_batch, " in chunk ", operation.chunk,
                          ", ", why);
  }

  std::vector<listed_operation> operations_;
  std::array<std::vector<pipeline_unit>, 3> units_;
};

}  // namespace omnibal::inline v0
