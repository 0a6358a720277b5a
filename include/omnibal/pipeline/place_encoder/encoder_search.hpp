// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search of `place_encoder`. Input: the tables of a language model and an encoder, and the
/// memory of the devices. Output: the best placement among all candidates and moves.

#include <omnibal/check.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/detail/encoder_run.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/place_encoder/encoder_bound.hpp>
#include <omnibal/pipeline/place_encoder/gap_placement.hpp>
#include <omnibal/pipeline/place_encoder/outer_placement.hpp>
#include <omnibal/pipeline/place_encoder/placement_moves.hpp>
#include <omnibal/pipeline/place_encoder/window_placement.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Simulates candidates from three generators, then random moves of the best candidate.
///
/// | generator | operations of the encoder |
/// |---|---|
/// | `outer_placement` | before and behind the whole language model |
/// | `gap_placement` | in the idle times of the step without the encoder |
/// | `window_placement` | by rules, while the step runs |
template <class T>
class encoder_search {
 public:
  /// `memory` has the largest number of bytes of each device; if it is empty, the memory is
  /// unlimited.
  encoder_search(std::string_view function, encoder_problem<T> const& problem,
                 std::span<std::int64_t const> memory)
      : function_(function), problem_(problem), memory_(memory), order_(order_of_need(problem)) {
    best_.language_makespan = problem.language_makespan;
    best_.lower_bound = encoder_bound<T>(problem).value();
  }

  void try_candidates() {
    best_.before_makespan = propose(outer_placement(problem_, order_));
    for (gap_rule const& rule : gap_rules) {
      if (is_best()) return;
      propose(gap_placement<T>(problem_, order_, rule).run());
    }
    std::vector<std::int64_t> const room = room_of_encoder();
    for (std::size_t window = 1;; window = std::min(2 * window, order_.size())) {
      try_window(window, room);
      if (window == order_.size()) return;
    }
  }

  void try_moves(std::size_t simulations) {
    if (best_.lists.empty()) return;
    placement_moves<T> moves(problem_);
    placed_lists tried;
    search_budget budget(simulations);
    for (; !budget.is_spent() && !is_best(); budget.spend()) {
      tried = best_.lists;
      moves.move(tried);
      encoder_run<T> run(function_, problem_, tried);
      if (!run.try_run() || run.makespan() > best_.step.makespan) continue;
      auto step = run.result();
      if (!fits(step)) continue;
      best_.step = std::move(step);
      best_.lists.swap(tried);
    }
  }

  /// Returns the best placement. Throws if no placement fits into the memory.
  [[nodiscard]] encoder_placement<T> result() && {
    if (best_.lists.empty()) {
      throw_invalid(function_, "no placement of the encoder was found within the memory, ",
                    list_text(memory_), "; the best one without a limit keeps ",
                    list_text(unlimited_peaks_));
    }
    // Sums of floating-point times are rounded, so the bound may exceed the time of the step.
    best_.lower_bound = std::min(best_.lower_bound, best_.step.makespan);
    return std::move(best_);
  }

 private:
  static constexpr gap_rule gap_rules[] = {
      {.from_last = true, .prefers_idle = true}, {.from_last = true}, {.prefers_idle = true}, {}};
  /// The numbers of urgent micro-batches that are tried with each window and with each entry of
  /// `gap_choices`.
  static constexpr std::size_t urgent_counts[] = {0, 1, 2, 4};
  static constexpr window_rule gap_choices[] = {
      {},
      {.is_backward_urgent = true},
      {.fills_every_gap = true},
      {.is_backward_urgent = true, .fills_every_gap = true}};

  /// Returns the micro-batches in the order in which the first reader begins them.
  [[nodiscard]] static std::vector<std::uint32_t> order_of_need(encoder_problem<T> const& problem) {
    std::vector<T> begins(problem.batches);
    for (auto const& list : problem.language) {
      for (auto const& one : list) {
        bool const is_forward = one.kind == operation_kind::forward;
        if (!is_forward || one.virtual_stage != problem.readers.front()) continue;
        begins[one.micro_batch] = one.begin;
      }
    }
    std::vector<std::uint32_t> order(problem.batches);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::ranges::stable_sort(order, {}, [&](std::uint32_t m) { return begins[m]; });
    return order;
  }

  /// Proposes the placements of all rules with window size `window`.
  void try_window(std::size_t window, std::vector<std::int64_t> const& room) {
    for (std::size_t const urgent : urgent_counts) {
      if (urgent > window) return;
      for (window_rule rule : gap_choices) {
        if (is_best()) return;
        rule.window = window;
        rule.urgent = urgent;
        propose(window_placement<T>(problem_, order_, room, rule).run());
      }
    }
  }

  [[nodiscard]] bool is_best() const {
    return !best_.lists.empty() && best_.step.makespan <= best_.lower_bound;
  }

  [[nodiscard]] bool fits(encoder_simulation<T> const& step) const {
    for (std::size_t d = 0; d != memory_.size(); ++d) {
      if (step.peak_bytes[d] > memory_[d]) return false;
    }
    return true;
  }

  /// Keeps lists if they are better than the best lists so far. Returns their makespan, or zero if
  /// there are no lists.
  T propose(placed_lists&& lists) {
    if (lists.empty()) return T{};
    auto step = encoder_run<T>(function_, problem_, lists).run();
    T const makespan = step.makespan;
    if (unlimited_peaks_.empty() || makespan < unlimited_) {
      unlimited_ = makespan;
      unlimited_peaks_ = step.peak_bytes;
    }
    if (!fits(step)) return makespan;
    if (!best_.lists.empty() && best_.step.makespan <= makespan) return makespan;
    best_.step = std::move(step);
    best_.lists = std::move(lists);
    return makespan;
  }

  /// Returns the bytes of each device that the language model leaves free at its peak.
  [[nodiscard]] std::vector<std::int64_t> room_of_encoder() const {
    std::vector<std::int64_t> room(problem_.devices, std::numeric_limits<std::int64_t>::max());
    for (std::size_t d = 0; d != memory_.size(); ++d) {
      room[d] = memory_[d] - (d < problem_.stages ? problem_.language_peaks[d] : 0);
    }
    return room;
  }

  std::string_view function_;
  encoder_problem<T> const& problem_;
  std::span<std::int64_t const> memory_;
  std::vector<std::uint32_t> order_;
  encoder_placement<T> best_;
  /// The shortest makespan without regard to the memory, and the peak of the bytes of each device
  /// in this step.
  T unlimited_{};
  std::vector<std::int64_t> unlimited_peaks_;
};

}  // namespace omnibal::inline v0::detail
