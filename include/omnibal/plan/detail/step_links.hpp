// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of the communication between stages and between data-parallel ranks.

#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/detail/timed_runs.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Times the communication between stages and between data-parallel ranks.
template <class Pieces>
class step_links {
 public:
  step_links(training_step const& step, machine const& on, Pieces const& pieces)
      : step_(step), on_(on), pieces_(pieces) {}

  /// Adds the time of a transfer to each pass of each stage. The tensor-parallel ranks of a stage
  /// each transfer a part of the bytes.
  void add_transfers(std::vector<virtual_stage_cost>& parts) const {
    parallel_degrees const& degrees = step_.degrees;
    if (degrees.pipeline == 1) return;
    double bytes = 0;
    for (auto const& part : parts) bytes = std::max(bytes, part.cut_bytes);
    if (degrees.norms == norm_regions::replicated) bytes /= static_cast<double>(degrees.tensor);
    double const seconds =
        pieces_.communicate(on_, {.kind = collective_kind::transfer,
                                  .bytes = bytes,
                                  .ranks = 2,
                                  .stride = degrees.tensor * degrees.sequence * degrees.data});
    bool const overlaps =
        step_.layer_communication == communication::overlapped && step_.chunks > 1;
    for (auto& part : parts) {
      auto const exposed = [&](double work) {
        return overlaps ? pieces_.overlap(seconds, work) : seconds;
      };
      part.forward.transfer = exposed(part.forward.total());
      part.backward.transfer = exposed(part.backward.total());
    }
  }

  /// Adds the times of the gathers of sharded parameters to both passes of a stage, and the time of
  /// the scatter of their gradients to the backward pass.
  void add_gathers(virtual_stage_cost& part) const {
    double const gather = over_ranks(part, step_.gathered_bytes, part.units);
    double const scatter = over_ranks(part, step_.reduced_bytes, part.units);
    part.forward.gradients = pieces_.overlap(gather, part.forward.total());
    part.backward.gradients = pieces_.overlap(gather + scatter, part.backward.total());
  }

  /// Returns the times of the reduction of gradients and of the optimizer on a stage; `work` is the
  /// seconds that the stage computes in a micro-batch.
  [[nodiscard]] step_seconds after_backward(virtual_stage_cost const& stage, double work) const {
    step_seconds result;
    double const ranks = static_cast<double>(step_.degrees.data * step_.degrees.sequence);
    double const copies =
        step_.state_ranks == 0 ? 1.0 : ranks / static_cast<double>(step_.state_ranks);
    result.optimizer = pieces_.optimizer(on_, stage.optimizer_bytes * copies);
    if (step_.degrees.sharding == sharded_state::parameters) return result;
    double const seconds = reduction(stage);
    bool const reduces_only = step_.degrees.sharding == sharded_state::nothing;
    // Gathers of parameters overlap the forward pass, reductions the backward pass.
    double const covered = reduces_only ? work / 2 : work;
    result.gradients = step_.gradient_communication == communication::overlapped
                           ? pieces_.overlap(seconds, covered)
                           : seconds;
    return result;
  }

 private:
  /// The ranks that have the same parameters, and the distance between their numbers.
  struct rank_group {
    std::int64_t ranks = 1;
    std::int64_t stride = 1;
  };

  [[nodiscard]] rank_group dense_group() const {
    return {step_.degrees.data * step_.degrees.sequence, step_.degrees.tensor};
  }

  [[nodiscard]] rank_group expert_group() const {
    std::int64_t const shared = step_.degrees.expert * expert_tensor_of(step_.degrees);
    std::int64_t const all = step_.degrees.tensor * step_.degrees.data * step_.degrees.sequence;
    return {std::max<std::int64_t>(1, all / shared), shared};
  }

  [[nodiscard]] double calls(double bytes) const {
    return std::ceil(bytes / static_cast<double>(step_.bucket_bytes));
  }

  [[nodiscard]] double gathered(double bytes, rank_group group, double calls) const {
    return pieces_.communicate(on_, {.kind = collective_kind::gather,
                                     .bytes = bytes,
                                     .ranks = group.ranks,
                                     .stride = group.stride,
                                     .calls = calls});
  }

  [[nodiscard]] double over_ranks(virtual_stage_cost const& part, std::int64_t bytes,
                                  double calls) const {
    auto const number = static_cast<double>(bytes);
    return gathered(number * part.parameters, dense_group(), calls) +
           gathered(number * part.expert_parameters, expert_group(), calls);
  }

  [[nodiscard]] double reduced(double parameters, rank_group group) const {
    double const bytes = static_cast<double>(step_.reduced_bytes) * parameters;
    if (parameters <= 0) return 0;
    if (step_.degrees.sharding == sharded_state::nothing) {
      return pieces_.communicate(on_, {.kind = collective_kind::all_reduce,
                                       .bytes = bytes,
                                       .ranks = group.ranks,
                                       .stride = group.stride});
    }
    double const weights = static_cast<double>(step_.gathered_bytes) * parameters;
    std::int64_t const sharing =
        step_.state_ranks == 0 ? group.ranks : std::min(step_.state_ranks, group.ranks);
    rank_group const inner{sharing, group.stride};
    double const both =
        gathered(bytes, inner, calls(bytes)) + gathered(weights, inner, calls(weights));
    return both + pieces_.communicate(on_, {.kind = collective_kind::all_reduce,
                                            .bytes = bytes / static_cast<double>(sharing),
                                            .ranks = group.ranks / sharing,
                                            .stride = group.stride * sharing,
                                            .calls = calls(bytes)});
  }

  [[nodiscard]] double reduction(virtual_stage_cost const& stage) const {
    return reduced(stage.parameters, dense_group()) +
           reduced(stage.expert_parameters, expert_group());
  }

  training_step const& step_;
  machine const& on_;
  Pieces const& pieces_;
};

}  // namespace omnibal::inline v0::detail
