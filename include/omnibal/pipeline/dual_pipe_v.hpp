// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule DualPipeV.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Builds the list of operations of a stage. Each chunk runs its micro-batches in order; postponed
/// gradients of weights also run in order.
class dual_pipe_list {
 public:
  void forward(std::uint32_t chunk) {
    list_.push_back({operation_kind::forward, chunk, forward_[chunk]++});
  }
  /// Appends the whole backward pass.
  void backward(std::uint32_t chunk) {
    std::uint32_t const m = backward_[chunk]++;
    list_.push_back({operation_kind::backward, chunk, m});
    list_.push_back({operation_kind::weight, chunk, m});
  }
  /// Appends the backward pass for the inputs, and postpones the gradients of the weights.
  void inputs(std::uint32_t chunk) {
    std::uint32_t const m = backward_[chunk]++;
    list_.push_back({operation_kind::backward, chunk, m});
    postponed_.push_back({operation_kind::weight, chunk, m});
  }
  /// Appends the oldest postponed gradients of weights, if there are any.
  void weight() {
    if (next_ != postponed_.size()) list_.push_back(postponed_[next_++]);
  }

  [[nodiscard]] std::vector<listed_operation> take() { return std::move(list_); }

 private:
  std::vector<listed_operation> list_;
  std::array<std::uint32_t, 2> forward_{};
  std::array<std::uint32_t, 2> backward_{};
  std::vector<listed_operation> postponed_;
  std::size_t next_ = 0;
};

}  // namespace detail

struct dual_pipe_v_fn {
  /// Returns the schedule DualPipeV for `batches` micro-batches with two chunks in a V. A stage
  /// runs forward and backward passes of its two chunks in turn, so that a trainer can overlap the
  /// communication of one pass with the computation of the other. An overlapped pair is two
  /// operations here, the forward pass first. The order is the same, but a simulation adds the
  /// times of both passes. In most backward passes the gradients of the weights follow immediately;
  /// they are postponed when the pipeline fills and drains. A stage keeps at most 2 * stages + 1
  /// units of half the size. The order does not depend on times; `list_schedule` finds an order for
  /// given times. Source: DeepSeek, DualPipe, 2025; Qi et al., "Pipeline parallelism with
  /// controllable memory", 2024.
  ///
  /// Complexity: linear. Memory: 20 bytes for each operation. Determinism: portable. Errors:
  /// `std::invalid_argument` if there are no stages, or fewer micro-batches than twice the stages.
  [[nodiscard]] listed_schedule<> operator()(std::size_t stages, std::size_t batches) const {
    chunk_layout const layout{stages, batches, 2, chunk_placement::v_shape};
    layout.check(name);
    if (batches < 2 * stages) {
      detail::throw_invalid(name, "batches is ", batches,
                            ", must be at least twice the stages, which is ", 2 * stages);
    }
    operation_lists lists;
    for (std::size_t s = 0; s != stages; ++s) lists.push_back(list_of(stages, batches, s));
    return listed_schedule<>(layout, lists);
  }

 private:
  static constexpr std::string_view name = "dual_pipe_v";

  [[nodiscard]] static std::vector<listed_operation> list_of(std::size_t stages,
                                                             std::size_t batches,
                                                             std::size_t stage) {
    detail::dual_pipe_list list;
    std::size_t const after = stages - 1 - stage;
    // The pipeline fills: first chunk 0, then both chunks in turn.
    for (std::size_t i = 0; i != 2 * after; ++i) list.forward(0);
    for (std::size_t i = 0; i != stage + 1; ++i) {
      list.forward(0);
      list.forward(1);
    }
    // The first gradients arrive.
    for (std::size_t i = 0; i != after; ++i) {
      list.inputs(1);
      list.weight();
      list.forward(1);
    }
    // Pairs of a forward and a backward pass, until chunk 0 has no forward passes left.
    for (std::size_t i = 0; i != batches - 2 * stages + stage + 1; ++i) {
      list.forward(0);
      list.backward(1);
      list.forward(1);
      list.backward(0);
    }
    for (std::size_t i = 0; i != after; ++i) {
      list.backward(1);
      list.forward(1);
      list.backward(0);
    }
    // The pipeline drains. In the second half only the gradients of the inputs are urgent, because
    // other stages wait for them.
    std::size_t const whole = stage + 1;
    for (std::size_t i = 0; i != 2 * (stage + 1); ++i) {
      std::uint32_t const chunk = i % 2 == 0 ? 1 : 0;
      if (i < whole) {
        list.backward(chunk);
      } else {
        list.inputs(chunk);
      }
    }
    for (std::size_t i = 0; i != after; ++i) {
      list.weight();
      list.inputs(0);
    }
    for (std::size_t i = 0; i != stage + 1; ++i) list.weight();
    return list.take();
  }
};

/// Returns the schedule DualPipeV; see `dual_pipe_v_fn`.
inline constexpr dual_pipe_v_fn dual_pipe_v{};

}  // namespace omnibal::inline v0
