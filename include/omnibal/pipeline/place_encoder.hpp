// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The placement of a vision or audio tower in the idle times of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/detail/encoder_run.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/place_encoder/encoder_bound.hpp>
#include <omnibal/pipeline/place_encoder/gap_placement.hpp>
#include <omnibal/pipeline/place_encoder/placement_moves.hpp>
#include <omnibal/pipeline/place_encoder/window_placement.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_encoder.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The operations of a language model and an encoder, and the step that they make.
template <scalar_measure T>
struct encoder_placement {
  /// The operations of each device.
  placed_lists lists;
  /// The times and the memory of the lists, by `simulate_encoder`.
  encoder_simulation<T> step;
  /// The time of the step without the encoder.
  T language_makespan{};
  /// The time of the step if the devices run all forward passes of the encoder before the language
  /// model, and all backward passes after it. These lists may exceed the memory.
  T before_makespan{};
  /// No placement makes the step shorter, as long as the operations of the language model keep
  /// their order.
  T lower_bound{};

  [[nodiscard]] friend bool operator==(encoder_placement const&,
                                       encoder_placement const&) = default;
};

struct place_encoder_options {
  /// The number of placements that the local search simulates; 0 means only the candidates.
  std::size_t simulations = 2000;
};

struct place_encoder_fn {
  /// Returns lists in which the devices of a pipeline run an encoder while the language model
  /// waits. Each device keeps the order of the schedule and runs forward and backward passes of the
  /// encoder in between. `memory` has the most bytes of each device, or is empty if the memory is
  /// unlimited. The other arguments are as in `simulate_encoder`.
  ///
  /// The step is never longer than `before_makespan`, if those lists fit into the memory. The
  /// candidates are placements in the idle times of the step without the encoder, and placements by
  /// rules: how many micro-batches the encoder may be ahead, and whether it goes before the
  /// language model. With more pieces the encoder fits into shorter idle times.
  ///
  /// Complexity: up to about 100 simulations. Memory: about 200 bytes for each operation, and 8 for
  /// each operation and stage. Determinism: portable for integers. Errors: the errors of
  /// `simulate_encoder`; `std::invalid_argument` if `memory` does not have an entry for each
  /// device, if an entry is negative, if the language model alone exceeds it, and if no candidate
  /// fits into the memory.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes, scalar_measure T>
  [[nodiscard]] encoder_placement<encoder_time<Times, Transfers, T>> operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers, Bytes const& bytes,
      encoder_work<T> const& encoder, std::span<std::int64_t const> memory = {},
      place_encoder_options const& options = {}) const {
    using time_type = encoder_time<Times, Transfers, T>;
    auto const problem =
        detail::make_encoder_problem<time_type>(name, schedule, times, transfers, bytes, encoder);
    check_memory(problem, memory);
    search<time_type> found(problem, memory);
    found.try_candidates();
    found.try_moves(options.simulations);
    return std::move(found).result();
  }

 private:
  static constexpr std::string_view name = "place_encoder";

  template <class T>
  static void check_memory(detail::encoder_problem<T> const& problem,
                           std::span<std::int64_t const> memory) {
    if (memory.empty()) return;
    detail::check_size(name, "memory", memory.size(), problem.devices, "devices");
    for (std::size_t d = 0; d != memory.size(); ++d) {
      std::int64_t const least = d < problem.stages ? problem.language_peaks[d] : 0;
      if (memory[d] >= least) continue;
      detail::throw_invalid(name, "memory[", d, "] is ", memory[d], ", must be at least ", least,
                            ", which the schedule of the language model keeps");
    }
  }

  /// The best lists that have been found.
  template <class T>
  class search {
   public:
    search(detail::encoder_problem<T> const& problem, std::span<std::int64_t const> memory)
        : problem_(problem), memory_(memory), order_(order_of_need(problem)) {
      best_.language_makespan = problem.language_makespan;
      best_.lower_bound = detail::encoder_bound<T>(problem).value();
    }

    void try_candidates() {
      best_.before_makespan = propose(lists_before());
      for (bool const from_last : {true, false}) {
        for (bool const prefers_idle : {true, false}) {
          if (is_best()) return;
          detail::gap_rule const rule{from_last, prefers_idle};
          propose(detail::gap_placement<T>(problem_, order_, rule).run());
        }
      }
      std::vector<std::int64_t> const room = room_of_encoder();
      for (std::size_t window = 1;; window = std::min(2 * window, order_.size())) {
        for (std::size_t urgent = 0; urgent <= std::min<std::size_t>(window, 4);
             urgent = 2 * urgent + (urgent == 0 ? 1 : 0)) {
          for (unsigned flags = 0; flags != 4; ++flags) {
            if (is_best()) return;
            propose(
                detail::window_placement<T>(problem_, order_, room,
                                            {window, urgent, (flags & 1U) != 0, (flags & 2U) != 0})
                    .run());
          }
        }
        if (window == order_.size()) return;
      }
    }

    void try_moves(std::size_t simulations) {
      if (best_.lists.empty()) return;
      detail::placement_moves<T> moves(problem_);
      placed_lists tried;
      detail::search_budget budget(simulations);
      for (; !budget.is_spent() && !is_best(); budget.spend()) {
        tried = best_.lists;
        moves.move(tried);
        detail::encoder_run<T> run(name, problem_, tried);
        if (!run.try_run() || run.makespan() > best_.step.makespan) continue;
        auto step = run.result();
        if (!fits(step)) continue;
        best_.step = std::move(step);
        best_.lists.swap(tried);
      }
    }

    [[nodiscard]] encoder_placement<T> result() && {
      if (best_.lists.empty()) {
        detail::throw_invalid(name, "no placement of the encoder was found within the memory, ",
                              detail::list_text(memory_), "; the best one without a limit keeps ",
                              detail::list_text(unlimited_peaks_));
      }
      // The sums of floating-point times may be rounded to more than the time of the step.
      best_.lower_bound = std::min(best_.lower_bound, best_.step.makespan);
      return std::move(best_);
    }

   private:
    /// Returns the micro-batches in the order in which the first reader begins them.
    [[nodiscard]] static std::vector<std::uint32_t> order_of_need(
        detail::encoder_problem<T> const& problem) {
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

    [[nodiscard]] bool is_best() const {
      return !best_.lists.empty() && best_.step.makespan <= best_.lower_bound;
    }

    [[nodiscard]] bool fits(encoder_simulation<T> const& step) const {
      for (std::size_t d = 0; d != memory_.size(); ++d) {
        if (step.peak_bytes[d] > memory_[d]) return false;
      }
      return true;
    }

    /// Keeps lists if they are the best ones. Returns their time.
    T propose(placed_lists&& lists) {
      if (lists.empty()) return T{};
      auto step = detail::encoder_run<T>(name, problem_, lists).run();
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

    /// Returns lists with the forward passes of the encoder first and the backward passes last. The
    /// device with the least work of the encoder takes the next piece.
    [[nodiscard]] placed_lists lists_before() const {
      placed_lists lists(problem_.devices);
      placed_lists backward(problem_.devices);
      std::vector<T> work(problem_.devices);
      for (std::uint32_t const m : order_) {
        for (std::uint32_t j = 0; j != problem_.pieces; ++j) {
          std::uint32_t const d = *std::ranges::min_element(
              problem_.encoder_devices, {}, [&](std::uint32_t one) { return work[one]; });
          auto const& piece = problem_.work[m * problem_.pieces + j];
          work[d] += piece.forward + piece.backward;
          lists[d].push_back({model_part::encoder, operation_kind::forward, j, m});
          backward[d].push_back({model_part::encoder, operation_kind::backward, j, m});
        }
      }
      for (std::size_t s = 0; s != problem_.stages; ++s) {
        for (auto const& one : problem_.language[s]) {
          lists[s].push_back({model_part::language, one.kind, one.chunk, one.micro_batch});
        }
      }
      for (std::size_t d = 0; d != lists.size(); ++d) {
        lists[d].insert(lists[d].end(), backward[d].begin(), backward[d].end());
      }
      return lists;
    }

    /// Returns the bytes of each device that the language model never needs.
    [[nodiscard]] std::vector<std::int64_t> room_of_encoder() const {
      std::vector<std::int64_t> room(problem_.devices, std::numeric_limits<std::int64_t>::max());
      for (std::size_t d = 0; d != memory_.size(); ++d) {
        room[d] = memory_[d] - (d < problem_.stages ? problem_.language_peaks[d] : 0);
      }
      return room;
    }

    detail::encoder_problem<T> const& problem_;
    std::span<std::int64_t const> memory_;
    std::vector<std::uint32_t> order_;
    encoder_placement<T> best_;
    /// The shortest step regardless of the memory, and what it keeps.
    T unlimited_{};
    std::vector<std::int64_t> unlimited_peaks_;
  };
};

/// Returns lists that run an encoder in the idle times of a pipeline; see `place_encoder_fn`.
inline constexpr place_encoder_fn place_encoder{};

}  // namespace omnibal::inline v0
