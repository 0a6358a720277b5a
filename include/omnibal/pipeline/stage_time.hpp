#pragma once

/// \file
/// What the operations and transfers of a pipeline take.

#include <omnibal/resources.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// What a stage takes for one micro-batch, in any unit, such as nanoseconds. An aggregate;
/// `stage_time{1.5, 3.0}` is a `stage_time<double>`.
template <weight T = std::int64_t>
struct stage_time {
  T forward{};
  /// The backward pass without `weight`.
  T backward{};
  /// The part of the backward pass that makes the gradients of the weights, where it is known by
  /// itself. Schedules that do not split the backward pass add it to `backward`.
  T weight{};

  [[nodiscard]] friend bool operator==(stage_time const&, stage_time const&) = default;
};

template <weight... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 3)
stage_time(T...)
->stage_time<detail::working_weight<T...>>;

/// What it takes to send a micro-batch from a stage to the next one, and gradients back.
template <weight T = std::int64_t>
struct transfer_time {
  T forward{};
  T backward{};

  [[nodiscard]] friend bool operator==(transfer_time const&, transfer_time const&) = default;
};

template <weight... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 2)
transfer_time(T...)
->transfer_time<detail::working_weight<T...>>;

}  // namespace omnibal::inline v0
