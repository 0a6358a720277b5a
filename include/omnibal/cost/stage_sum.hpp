#pragma once

/// \file
/// From the costs of layers to that of a stage.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <functional>
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
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for a cost that is
  /// negative or not finite, `std::overflow_error` where the sum of all leaves its type,
  /// `std::length_error` above 2^32 - 1 layers.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, Cost const& cost = {}) const {
    stage_sums<detail::chain_weight_of<Layers, Cost>> result;
    detail::sum_costs("stage_sum", layers, cost, result.before_);
    return result;
  }
};

/// The cost of runs of layers; see `stage_sum_fn`.
inline constexpr stage_sum_fn stage_sum{};

}  // namespace omnibal::inline v0
