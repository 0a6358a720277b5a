// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Measured times and bytes of layers from a file, in place of the modeled ones.

#include "vlm_layers.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace examples {

/// What was measured of a layer for one micro-batch on one rank.
struct measured_layer {
  std::int64_t forward_nanoseconds = 0;
  std::int64_t backward_nanoseconds = 0;
  /// From the forward to the backward pass; parameters, gradients and optimizer.
  std::optional<std::int64_t> kept_bytes{};
  std::optional<std::int64_t> state_bytes{};

  [[nodiscard]] friend bool operator==(measured_layer const&, measured_layer const&) = default;
};

/// By layer; nothing for those that were not measured.
using measured_layers = std::vector<std::optional<measured_layer>>;

/// Reads a CSV file for a model of so many layers.
///
/// The header has `layer`, `forward_ms` and `backward_ms`, and may have `kept_mb` and `state_mb`;
/// other columns are ignored. A layer is a number from zero, or a run of layers that take the same,
/// such as `1-45`; no layer may occur twice. Milliseconds and megabytes are decimal numbers from 0
/// to 10^9, rounded to nanoseconds and bytes.
///
/// Errors: `input_error`, also where no layer takes time and all were measured.
[[nodiscard]] measured_layers read_measured_layers(std::filesystem::path const& path,
                                                   std::size_t layers);

/// Replaces times and bytes of the layers that a file names; the others keep theirs. The backward
/// pass includes what is made again, and what is kept is what is left then. Errors: `input_error`;
/// the layers are as before then.
void use_measured_layers(std::filesystem::path const& path, std::span<vlm_layer> layers);

/// The FLOPs that a device reaches in a second in the measured layers of some part of a model, with
/// a micro-batch of this work. Errors: `input_error`, also where none of these layers was measured
/// or they took no time.
enum class measured_part { tower, language };
[[nodiscard]] std::int64_t reached_flops(std::filesystem::path const& path,
                                         model_description const& model, measured_part part,
                                         omnibal::micro_batch_work const& batch);

/// Corrects modeled costs by what was measured of one micro-batch without recomputation: times,
/// and the bytes kept by the choices none and selective, in proportion; the state is that measured.
/// A layer whose modeled time is zero takes the measured one in proportion to the tokens of the
/// documents.
class layer_profile {
 public:
  /// Corrects nothing.
  layer_profile() = default;
  /// `modeled` are the costs of that micro-batch, `batch` is its work.
  layer_profile(measured_layers measured, omnibal::micro_batch_work const& batch,
                std::span<omnibal::layer_cost const> modeled, omnibal::device_model const& device);

  /// `costs` are those of all layers for a micro-batch.
  void correct(omnibal::micro_batch_work const& batch, std::span<omnibal::layer_cost> costs) const;

  /// As given, to write down.
  [[nodiscard]] measured_layers const& measured() const { return measured_; }
  [[nodiscard]] omnibal::micro_batch_work const& batch() const { return batch_; }

 private:
  /// Of a layer: factors of work, or FLOPs for each token where there is no work; factor of what is
  /// kept.
  struct correction {
    double forward = 1;
    double backward = 1;
    double forward_of_token = 0;
    double backward_of_token = 0;
    double kept = 1;
  };

  measured_layers measured_;
  omnibal::micro_batch_work batch_;
  std::vector<correction> corrections_;
};

}  // namespace examples
