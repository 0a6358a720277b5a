// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The arguments of the algorithms of cuda/: costs of one or several steps, other data, and
/// functors.

#include <omnibal/concepts.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

namespace omnibal::inline v0::gpu {

/// A span of costs in device memory, whose elements have one of four types.
struct cost_span : std::variant<device_span<std::int64_t const>, device_span<std::int32_t const>,
                                device_span<std::uint32_t const>, device_span<float const>> {
  using variant::variant;
  template <class T>
  cost_span(T const* costs, std::size_t count) : variant(device_span<T const>(costs, count)) {}

  [[nodiscard]] std::size_t size() const {
    return std::visit([](auto const& costs) { return costs.size(); },
                      static_cast<variant const&>(*this));
  }
};

/// Costs on the device that are balanced step by step, all steps in one call: the costs of a global
/// batch, or of every step of an epoch. Trivially copyable; does not own the arrays.
///
/// `offsets` has the position of the first sample of each step, followed by the end of the last
/// step: the samples of step s are [offsets[s], offsets[s + 1]), and the first offset is zero.
/// Without offsets all costs are one step. The last offset may be less than the number of costs.
/// For example, a number of samples that only the device knows is one step with the offsets 0 and
/// this number.
///
/// Costs of other types than `std::int64_t` are first converted to it in scratch, 8 bytes for each
/// sample, in one launch. Floating-point costs become the whole numbers that the host computes for
/// a step.
struct cost_steps {
  /// Creates costs without a step.
  cost_steps() = default;

  /// Creates one step of all costs.
  template <std::convertible_to<cost_span> Costs>
  cost_steps(Costs const& of_samples)
      : costs(of_samples), step_count(1), largest_step(costs.size()) {}

  /// Creates `offsets.size() - 1` steps. `max_step_samples` is an upper bound, known on the host,
  /// on the size of the largest step. With a smaller bound more steps fit into shared memory.
  cost_steps(cost_span of_samples, device_span<std::uint32_t const> step_offsets,
             std::size_t max_step_samples)
      : costs(of_samples),
        offsets(step_offsets),
        step_count(step_offsets.empty() ? 0 : step_offsets.size() - 1),
        largest_step(max_step_samples < costs.size() ? max_step_samples : costs.size()) {}

  cost_span costs;
  device_span<std::uint32_t const> offsets;
  std::size_t step_count = 0;
  std::size_t largest_step = 0;
};

/// The type of the elements of an array in device memory.
template <class Array>
using device_element_of =
    std::remove_cvref_t<decltype(*detail::data_of(std::declval<Array const&>()))>;

/// An array in device memory: `device_span`, `device_array`, `cuda::std::span`,
/// `thrust::device_vector` and any other type with a pointer and a size.
template <class Array>
concept device_range = requires(Array const& array) {
  { detail::data_of(array) } -> std::convertible_to<void const*>;
  { array.size() } -> std::convertible_to<std::size_t>;
};

/// An array of integers in device memory.
template <class Array>
concept device_integers = device_range<Array> && scalar_measure<device_element_of<Array>> &&
    std::integral<device_element_of<Array>>;

/// An array of demands in device memory: resources of integers, or integers, which represent one
/// resource.
template <class Array>
concept device_demands = device_range<Array> && integral_measure<device_element_of<Array>>;

/// An array of amounts in device memory: resources or weights, which may be integers or
/// floating-point numbers.
template <class Array>
concept device_amounts = device_range<Array> && measure<device_element_of<Array>>;

/// A predicate on the load of a group that is copied to kernels unchanged and is also callable in
/// device code.
template <class Rule, class Load>
concept device_keep_rule = keep_rule<Rule, Load> && std::is_trivially_copyable_v<Rule>;

}  // namespace omnibal::inline v0::gpu
