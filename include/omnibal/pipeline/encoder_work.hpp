// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The work of a vision or audio tower in addition to the pipeline of a language model, and the
/// results of a simulation and of a placement of both.

#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The work of an encoder whose features a language model in a pipeline reads. Each list has one
/// entry for each micro-batch. If a list of transfers or bytes is empty, its values are zero.
///
/// A micro-batch is encoded in `pieces` parts of equal size, such as its images or groups of
/// images. A piece runs its forward pass on a device and later its backward pass on the same
/// device. The backward times of a frozen encoder are zero.
template <scalar_measure T = std::int64_t>
struct encoder_work {
  /// The times of the whole encoder for each micro-batch. The time `weight` is part of the backward
  /// pass.
  std::vector<stage_time<T>> times{};
  /// The times to send the features to the language model and the gradients back, if encoder and
  /// reader run on different devices.
  std::vector<transfer_time<T>> transfers{};
  /// The bytes that a device keeps from the begin of the forward pass to the end of the backward
  /// pass.
  std::vector<std::int64_t> activation_bytes{};
  /// The bytes of the features, and of their gradients. The stage that reads features keeps them
  /// until its forward pass begins. The device of the encoder keeps gradients from the first
  /// backward pass of a reader to the end of the backward pass of the encoder.
  std::vector<std::int64_t> output_bytes{};
  std::size_t pieces = 1;
  /// The devices that run the encoder. Numbers below the number of stages are stages; higher
  /// numbers are devices that run nothing else. If the list is empty, all stages run the encoder.
  std::vector<std::uint32_t> devices{};
  /// The virtual stages of the language model that read the features. A model that adds features in
  /// several layers (DeepStack, cross-attention) may have several.
  std::vector<std::uint32_t> readers{0};

  [[nodiscard]] friend bool operator==(encoder_work const&, encoder_work const&) = default;
};

/// The part of a model to which an operation belongs.
enum class model_part : std::uint8_t { language, encoder };

/// An operation in the list of a device.
struct placed_operation {
  model_part part = model_part::language;
  operation_kind kind = operation_kind::forward;
  /// The chunk of the language model, or the piece of the encoder.
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;

  [[nodiscard]] friend bool operator==(placed_operation const&, placed_operation const&) = default;
};

/// The operations of each device, in the order in which the device runs them.
using placed_lists = std::vector<std::vector<placed_operation>>;

/// The times and the memory of a step with an encoder.
template <scalar_measure T>
struct encoder_simulation {
  /// The end of the last operation.
  T makespan{};
  /// The idle time of all devices as a share of their total time.
  double bubble_share = 0;
  /// The time that each device works.
  std::vector<T> busy;
  /// The peak of the bytes of each device: activations of both parts, features and their gradients.
  std::vector<std::int64_t> peak_bytes;
  /// The operations of the language model, for each stage in order.
  std::vector<timed_operation<T>> language;
  /// The operations of the encoder, for each device in order. The member `stage` is the device, and
  /// `chunk` is the piece.
  std::vector<timed_operation<T>> encoder;

  [[nodiscard]] friend bool operator==(encoder_simulation const&,
                                       encoder_simulation const&) = default;
};

/// The operations of a language model and an encoder, and the times and memory of the step.
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
  /// A lower bound of the makespan of all placements in which the operations of the language model
  /// keep their order.
  T lower_bound{};

  [[nodiscard]] friend bool operator==(encoder_placement const&,
                                       encoder_placement const&) = default;
};

}  // namespace omnibal::inline v0
