// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The conversion of costs of any type into whole numbers.

#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/step_table.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/detail/conversions.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Converts integers to 64 bits.
template <class T>
struct widen_costs {
  T const* given;
  std::int64_t* out;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const { out[i] = given[i]; }
};

/// Converts the floating-point costs of each step into whole numbers, equal to `measure_costs` on
/// the host.
struct round_costs {
  step_table table;
  float const* given;
  std::int64_t* out;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t step) const {
    step_range const range = table[step];
    auto const cost = [&](std::size_t i) {
      return checked_weight<double>(given[range.first + i], table.faults());
    };
    double total = block.reduce(range.size, cost, add{}, 0.0);
    // Only the exponent of the sum matters, and the order of additions seldom changes it. If it
    // could, one thread adds the costs in their order.
    int exponent = 0;
    double const mantissa = std::frexp(total, &exponent);
    double const doubt = 0x1p-51 * range.size;
    if (mantissa < 0.5 + doubt || mantissa > 1.0 - doubt) {
      auto const in_order = [&](std::size_t) {
        double sum = 0.0;
        for (std::uint32_t i = 0; i != range.size; ++i) sum += cost(i);
        return sum;
      };
      total = block.reduce(1, in_order, add{}, 0.0);
    }
    auto const whole = omnibal::detail::fixed_point::by_power_of_two(total);
    block.for_each(range.size, [&](std::size_t i) { out[range.first + i] = whole(cost(i)); });
  }
};

/// Returns the steps with costs of the type `std::int64_t`. These are the given costs if they have
/// this type, otherwise converted costs in scratch.
template <kernel_backend Backend>
[[nodiscard]] step_table with_whole_costs(Backend& backend, cost_steps const& steps,
                                          fault* faults) {
  auto const measure = [&]<class T>(device_span<T const> given) {
    if constexpr (std::same_as<T, std::int64_t>) {
      return step_table(steps, given.data(), faults);
    } else {
      auto* const costs = backend.template scratch<std::int64_t>(given.size());
      step_table const table(steps, costs, faults);
      if constexpr (std::floating_point<T>) {
        backend.template for_each_block<512>(steps.step_count, 0,
                                             round_costs{table, given.data(), costs});
      } else {
        backend.for_each(given.size(), widen_costs<T>{given.data(), costs});
      }
      return table;
    }
  };
  return std::visit(measure, static_cast<cost_span::variant const&>(steps.costs));
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
