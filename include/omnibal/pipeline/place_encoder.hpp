// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The placement of a vision or audio tower in the idle times of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/place_encoder/encoder_search.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_encoder.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct place_encoder_options {
  /// The number of moves that the local search simulates; 0 means that only the candidates are
  /// simulated.
  std::size_t simulations = 2000;
};

struct place_encoder_fn {
  /// Returns lists in which the devices of a pipeline run an encoder in the idle time of the
  /// language model. Each device keeps the order of the schedule and runs forward and backward
  /// passes of the encoder in between. The range `memory` has the largest number of bytes of each
  /// device; if it is empty, the memory is unlimited. The other arguments are the arguments of
  /// `simulate_encoder`.
  ///
  /// The step is never longer than `before_makespan`, if the lists of that step fit into the
  /// memory. The candidates are placements in the idle times of the step without the encoder, and
  /// placements by rules. The rules state how many micro-batches the encoder may be ahead, and
  /// whether it has priority over the language model. A local search then moves random pieces of
  /// the best candidate, and keeps a move unless the step becomes longer. The search ends early if
  /// the step reaches the bound. With more pieces the encoder fits into shorter idle times.
  ///
  /// Complexity: a simulation for each candidate and for each move. There are up to 16 candidates
  /// for each doubling of the number of micro-batches, 89 for 32 micro-batches, and
  /// `options.simulations` moves. Memory: about 200 bytes for each operation, and 8 bytes for each
  /// pair of an operation and a stage. Determinism: portable for integers. Errors: the errors of
  /// `simulate_encoder`; `std::invalid_argument` if `memory` does not have an entry for each
  /// device, or if an entry is negative. It is also thrown if the language model without the
  /// encoder exceeds an entry, and if no candidate fits into the memory.
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
    detail::encoder_search<time_type> search(name, problem, memory);
    search.try_candidates();
    search.try_moves(options.simulations);
    return std::move(search).result();
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
};

/// Returns lists that run an encoder in the idle times of a pipeline; see `place_encoder_fn`.
inline constexpr place_encoder_fn place_encoder{};

}  // namespace omnibal::inline v0
