// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The work of a vision or audio tower next to the pipeline of a language model, and the results of
/// a simulation and of a placement of both.

#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The work of an encoder whose features a language model in a pipeline reads. The lists have one
/// entry for each micro-batch. Empty lists of transfers and bytes mean zero.
///
/// A micro-batch is encoded in `pieces` parts of equal size, such as its images or groups of them.
/// A piece runs forward on a device and later backward on the same device. A frozen encoder has
/// backward times of zero.
template <scalar_measure T = std::int64_t>
struct encoder_work {
  /// The times of the whole encoder. A `weight` is part of the backward pass.
  std::vector<stage_time<T>> times{};
  /// The times to send the features to the language model, and the gradients back, if the two lie
  /// on different devices.
  std::vector<transfer_time<T>> transfers{};
  /// The bytes that a device keeps from the forward pass to the end of the backward pass.
  std::vector<std::int64_t> activation_bytes{};
  /// The bytes of the features, and of their gradients. Features wait on the stage that reads them
  /// until its forward pass begins. Gradients wait on the device of the encoder from the first
  /// backward pass of a reader to the end of the backward pass of the encoder.
  std::vector<std::int64_t> output_bytes{};
  std::size_t pieces = 1;
  /// The devices that have the encoder. Devices below the number of stages are the stages; the
  /// following ones run nothing else. If empty, all stages have the encoder.
  std::vector<std::uint32_t> devices{};
  /// The virtual stages of the language model that read the features. A model that adds features in
  /// several layers (DeepStack, cross-attention) may have several.
  std::vector<std::uint32_t> readers{0};

  [[nodiscard]] friend bool operator==(encoder_work const&, encoder_work const&) = default;
};

/// The part of a model to which an operation belongs.
enum class model_part : std::uint8_t { language, encoder };

/// An operation of a device.
struct placed_operation {
  model_part part = model_part::language;
  operation_kind kind = operation_kind::forward;
  /// The chunk of the language model, or the piece of the encoder's work.
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
  /// The share of the time of all devices that they spend idle.
  double bubble_share = 0;
  /// The time that each device works.
  std::vector<T> busy;
  /// The most bytes that each device keeps at once: activations of both parts, features and their
  /// gradients.
  std::vector<std::int64_t> peak_bytes;
  /// The operations of the language model, for each stage in order.
  std::vector<timed_operation<T>> language;
  /// The operations of the encoder, for each device in order. `stage` is the device, `chunk` the
  /// piece.
  std::vector<timed_operation<T>> encoder;

  [[nodiscard]] friend bool operator==(encoder_simulation const&,
                                       encoder_simulation const&) = default;
};

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

}  // namespace omnibal::inline v0
