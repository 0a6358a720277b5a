#pragma once

/// \file
/// How many numbers a model learns.

#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>
#include <omnibal/detail/check_numbers.hpp>
#include <omnibal/detail/checked_cast.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

/// The numbers that a model learns.
struct parameter_counts {
  std::int64_t total = 0;
  /// Without the experts that a token does not use.
  std::int64_t active = 0;

  [[nodiscard]] friend bool operator==(parameter_counts const&, parameter_counts const&) = default;
};

struct count_parameters_fn {
  /// The parameters of the whole model, whatever is trained.
  ///
  /// Complexity: constant for each kind of layer. Allocates nothing. Determinism: portable. Errors:
  /// those of the layers; `std::invalid_argument` for a number of layers that is negative or above
  /// 2^20, `std::overflow_error` above 2^63 - 1 parameters.
  template <costed_model Model>
  [[nodiscard]] parameter_counts operator()(Model const& model) const {
    constexpr std::string_view name = "count_parameters";
    detail::int128 total = 0;
    detail::int128 active = 0;
    detail::for_each_layer(name, model, [&](auto const& layer, std::int64_t count) {
      layer_cost const cost = layer(workload{}, parallel_degrees{}, byte_sizes{});
      total += detail::int128{count} * cost.parameters;
      active += detail::int128{count} * cost.active_parameters;
    });
    return {.total = detail::checked_cast<std::int64_t>(name, "the number of parameters", total),
            .active = detail::checked_cast<std::int64_t>(name, "the number of active parameters",
                                                         active)};
  }
};

/// The parameters of a model; see `count_parameters_fn`.
inline constexpr count_parameters_fn count_parameters{};

}  // namespace omnibal::inline v0
