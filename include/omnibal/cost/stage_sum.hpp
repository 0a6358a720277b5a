#pragma once

/// \file
/// From the costs of layers to that of a stage.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <functional>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The cost of the layers [first, last), whichever stage has them: a `stage_cost` that looks at two
/// numbers. `stage_sum` makes it.
///
/// Precondition of a call: first <= last, and last at most the number of layers.
template <weight Cost>
class stage_sums {
 public:
  [[nodiscard]] std::size_t layers() const noexcept { return before_.size() - 1; }

  [[nodiscard]] Cost operator()(std::size_t /*stage*/, std::size_t first, std::size_t last) const {
    return before_[last] - before_[first];
  }

 private:
  friend struct stage_sum_fn;

  /// The sum of the costs of all layers before each, and of all.
  std::vector<Cost> before_{Cost{}};
};

struct stage_sum_fn {
  /// A functor (stage, first, last) to the sum of a cost of the layers [first, last):
  /// `stage_sum(costs, &layer_cost::flops)`, or a lambda with an `accelerator`. Layers may be a
  /// trainer's own.
  ///
  /// Complexity: linear; constant for a call of the result. Memory: 8 bytes for each layer.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for a cost that is negative
  /// or not finite, `std::overflow_error` where the sum of all leaves its type.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, Cost const& cost = {}) const {
    constexpr std::string_view name = "stage_sum";
    using cost_type = detail::working_weight<demand_result<Cost, sample_reference<Layers>>>;
    stage_sums<cost_type> result;
    result.before_.reserve(std::ranges::size(layers) + 1);
    cost_type sum{};
    std::size_t index = 0;
    for (auto&& layer : layers) {
      auto const value =
          detail::to_working<cost_type>({name, "cost", index}, std::invoke(cost, layer));
      detail::check_weight(name, "cost", index, value);
      detail::checked_add(name, "the sum of the costs", sum, value);
      result.before_.push_back(sum);
      ++index;
    }
    return result;
  }
};

/// The cost of runs of layers; see `stage_sum_fn`.
inline constexpr stage_sum_fn stage_sum{};

}  // namespace omnibal::inline v0
