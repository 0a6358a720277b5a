// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Time and memory of a step of a pipeline that also runs an encoder.

#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/detail/encoder_run.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/resources.hpp>

#include <string_view>

namespace omnibal::inline v0 {

/// The type of the times of a step with an encoder.
template <stage_times Times, transfer_times Transfers, scalar_measure T>
using encoder_time = detail::working_weight<simulated_time<Times, Transfers>, T>;

struct simulate_encoder_fn {
  /// Simulates a step of a language model in a pipeline whose devices also run an encoder. Each
  /// device runs its list in order and begins each operation as soon as its inputs have arrived.
  /// The forward pass of a reader waits for the features of all pieces of its micro-batch. The
  /// backward pass of a piece waits for the backward passes of all readers. Transfers delay their
  /// receiver, but no device is busy during a transfer. Times, transfers and bytes of the language
  /// model are given as for `simulate_pipeline`. The lists must have the operations of the language
  /// model in the order of the schedule, and the forward and backward pass of each piece on a
  /// device that runs the encoder.
  ///
  /// Complexity: a few steps for each operation, and n log n for the memory. Memory: about 100
  /// bytes for each operation. Determinism: portable for integers. Errors: the errors of
  /// `simulate_pipeline` for the language model; `std::invalid_argument` if a list of the encoder
  /// does not have an entry for each micro-batch. It is also thrown if a time, a transfer or bytes
  /// are negative or not finite, if a device or a reader does not exist or is named twice, or if
  /// there is no reader. It is thrown as well if an operation of the lists is missing, wrong or on
  /// a wrong device, and if an operation waits forever. Further errors: `std::overflow_error` if
  /// the sum of all times or of the bytes of a device exceeds its type; `std::length_error` if
  /// there are more than 2^32 - 1 pieces.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes, scalar_measure T>
  [[nodiscard]] encoder_simulation<encoder_time<Times, Transfers, T>> operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers, Bytes const& bytes,
      encoder_work<T> const& encoder, placed_lists const& lists) const {
    using time_type = encoder_time<Times, Transfers, T>;
    auto const problem =
        detail::make_encoder_problem<time_type>(name, schedule, times, transfers, bytes, encoder);
    return detail::encoder_run<time_type>(name, problem, lists).run();
  }

 private:
  static constexpr std::string_view name = "simulate_encoder";
};

/// Simulates a step of a pipeline with an encoder; see `simulate_encoder_fn`.
inline constexpr simulate_encoder_fn simulate_encoder{};

}  // namespace omnibal::inline v0
