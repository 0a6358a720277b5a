// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The data, the options and the result of a search for the configuration of a training step.

#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/plan/training_step.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0 {

/// The samples of a training step: sequences of one length, or samples of a data set that are
/// packed into micro-batches.
struct step_data {
  /// The number of sequences of a step, over all ranks. If `lengths` is not empty, the number of
  /// samples of a step.
  std::int64_t sequences = 0;
  /// The tokens of a sequence; 0 if `lengths` is not empty.
  std::int64_t tokens = 0;
  /// The tokens of a packed document; 0 means that a sequence is one document.
  std::int64_t document_tokens = 0;
  /// The tokens of each sample of the data set. A planned step has the averages of the data set.
  std::vector<std::int64_t> lengths{};
  /// The image tiles of each sample; empty if there are none.
  std::vector<std::int64_t> tiles{};
};

/// A rule for the boundaries of virtual stages.
enum class stage_cuts {
  even,      ///< `even_boundaries`: equal numbers of layers
  balanced,  ///< the least seconds of the slowest virtual stage (`partition_minimax`)
};

/// The devices, the space and the software of `plan_configuration`. Members that list values
/// restrict the search to these values; if a list is empty, the search chooses among all values.
struct plan_configuration_options {
  /// The number of devices; all of them are used.
  std::int64_t devices = 0;
  /// The bytes of the memory of a device, and the part of these bytes that is reserved for other
  /// uses: the CUDA context, buffers of communication, the cache of the allocator.
  std::int64_t memory_bytes = 0;
  std::int64_t reserve_bytes = 0;
  /// The degrees of each kind of parallelism. If a list of degrees is empty, the search tries the
  /// divisors of `devices` that the model allows; it then tries tensor degrees up to the devices of
  /// a node.
  std::vector<std::int64_t> tensor_parallel{};
  std::vector<std::int64_t> pipeline_parallel{};
  /// The numbers of chunks of the model on a stage; 1 is 1F1B. A number above 1 requires that the
  /// number of stages divides the number of micro-batches.
  std::vector<std::int64_t> virtual_pipeline{};
  /// The degrees of context parallelism. Twice the degree must divide the tokens of a sequence, or
  /// the capacity if samples are packed.
  std::vector<std::int64_t> context_parallel{};
  std::vector<std::int64_t> expert_parallel{};
  /// The numbers of sequences of a micro-batch; must be empty if `lengths` are given.
  std::vector<std::int64_t> micro_batch_sizes{};
  /// The capacities, in tokens, of micro-batches that are packed from `lengths`; must be empty
  /// without `lengths`. If the list is empty, the search tries the longest sample, rounded up to a
  /// multiple of 256, times 1, 1.5, 2, 3, 4, 6 up to 64.
  std::vector<std::int64_t> token_capacities{};
  std::vector<recompute_choice> recompute{};
  /// The bytes per second of one device to the memory of its host and back; 0 if nothing is
  /// offloaded. The memory of the host is given for one device.
  double offload_bytes_per_second = 0;
  std::int64_t host_memory_bytes = std::numeric_limits<std::int64_t>::max();
  /// The offloaded shares of the kept activations, in percent. If the list is empty and there is a
  /// rate, the search tries 0, 25, 50, 75 and 100.
  std::vector<std::int64_t> offload_percent{};
  /// If the list is empty, the search tries all choices except `gradients`, because `predict_step`
  /// does not time its repeated reductions.
  std::vector<sharded_state> sharding{};
  /// If the list is empty, the search tries only `split` if there is more than one tensor-parallel
  /// rank.
  std::vector<norm_regions> norms{};
  std::vector<stage_cuts> cuts{};
  /// The numbers of the software, which the search does not choose; see the members of the same
  /// names of `training_step`.
  matmul_precision precision = matmul_precision::bf16;
  byte_sizes bytes{};
  std::int64_t reduced_bytes = 2;
  std::int64_t gathered_bytes = 2;
  std::int64_t bucket_bytes = 500'000'000;
  communication layer_communication = communication::blocking;
  communication gradient_communication = communication::overlapped;
  /// The number of configurations with other degrees that are returned in addition to the best one.
  std::size_t runners_up = 4;
  /// The largest number of steps that are simulated. If the search needs more, the result is not
  /// proven.
  std::int64_t predictions = 1'000'000;
};

/// A configuration with its prediction.
struct planned_configuration {
  /// The step; `predict_step` returns the seconds of `prediction` for it.
  training_step step{};
  /// The largest micro-batch of the step; `prediction` has the bytes of this micro-batch. It equals
  /// the micro-batch of `step` unless samples are packed.
  micro_batch_work largest{};
  /// The capacities of packed micro-batches in tokens and in tiles; 0 without packing.
  std::int64_t token_capacity = 0;
  std::int64_t tile_capacity = 0;
  /// The offloaded share of the kept activations in percent.
  std::int64_t offload_percent = 0;
  /// The share of the model FLOPs of the step that are spent on padding.
  double padding = 0;
  step_prediction prediction{};
};

/// The choices of a configuration that define families of configurations.
enum class configuration_choice {
  tensor_parallel,
  pipeline_parallel,
  context_parallel,
  expert_parallel,
  schedule,     ///< the value 1 is 1F1B, the value 2 means several chunks on a stage
  micro_batch,  ///< sequences, or the capacity in tokens if samples are packed
  recompute,    ///< the value is a `recompute_choice`
  sharding,     ///< the value is a `sharded_state`
  offload,      ///< the offloaded share in percent
};

/// The reason why a family is slower than the best configuration. Either no member fits into the
/// memory, or the reason is a part of the step: the part that exceeds the same part of the best
/// configuration by the most seconds.
enum class loss_reason {
  memory,
  computation,  ///< products, attention, memory-bound work, launches and the optimizer
  bubble,
  links,  ///< between devices, and to hosts
  padding,
};

/// All configurations that share one value of a choice, if the best configuration has another
/// value.
struct configuration_family {
  configuration_choice choice{};
  std::int64_t value = 0;
  loss_reason reason = loss_reason::memory;
  /// The best configuration of the family, unless the reason is `memory`.
  planned_configuration best{};
  /// If the reason is `memory`, a lower bound of the bytes that any configuration of the family
  /// needs on a device, without the reserve. If it is within the memory, the memory of the host is
  /// exceeded.
  std::int64_t min_bytes = 0;
};

/// The result of `plan_configuration`.
struct configuration_plan {
  /// The status: infeasible if no configuration fits into the memory; `not_found` if the search
  /// ended before it found one.
  solve_status status = solve_status::solved;
  planned_configuration best{};
  /// The best configurations with other degrees, the fastest first.
  std::vector<planned_configuration> runners_up{};
  /// The families that do not contain the best configuration, in the order of
  /// `configuration_choice`. If the search ends early, some families may be absent.
  std::vector<configuration_family> families{};
  /// A lower bound of the seconds of a step: no configuration of the space that fits is faster.
  double lower_bound = 0;
  /// True if the search proves that `best`, `runners_up` and the best configuration of each family
  /// are optimal.
  bool proven = false;
  /// If infeasible, a lower bound of the bytes that a device needs, without the reserve. If it is
  /// within the memory, the memory of the host is exceeded.
  std::int64_t min_bytes = 0;
  /// The number of configurations in the space, and the number of configurations that were
  /// simulated.
  std::int64_t configurations = 0;
  std::int64_t predictions = 0;
  /// The FLOPs of the model for the samples of a step, without recomputation and padding. The model
  /// FLOPs utilization is this number divided by seconds, devices and the peak rate of a device.
  double flops = 0;
};

}  // namespace omnibal::inline v0
