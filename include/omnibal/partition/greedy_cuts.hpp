#pragma once

/// \file
/// Stages by one walk along the chain.

#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/partition/detail/chain_sums.hpp>
#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct greedy_cuts_fn {
  /// The anchor that OmniBal starts from: a walk along the layers that ends each stage where its
  /// cost is nearest to the mean, the earlier of two such places. Every stage has a layer. `minimax`
  /// is a better anchor.
  ///
  /// `lower_bound` is the mean or the largest cost of a layer. Complexity: linear. Memory: 8 bytes
  /// per layer. Determinism: portable for integers. Errors: those of `minimax`. Source: Yao et al.,
  /// OmniBal, ICML 2025.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, std::size_t stages,
                                Cost const& cost = {}) const {
    using cost_type = detail::chain_weight_of<Layers, Cost>;
    std::size_t const count = std::ranges::size(layers);
    detail::check_stages(name, count, stages, empty_stages::forbidden);
    std::vector<cost_type> sums;
    cost_type const largest = detail::sum_costs(name, layers, cost, sums);

    partition_result<cost_type> result;
    result.boundaries.reserve(stages + 1);
    result.boundaries.push_back(0);
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const first = result.boundaries.back();
      std::size_t const most = count - (stages - 1 - s);
      std::size_t last = s + 1 == stages ? most : first + 1;
      while (last < most && is_nearer(sums, first, last, stages)) ++last;
      result.boundaries.push_back(static_cast<std::uint32_t>(last));
      result.bottleneck =
          std::max(result.bottleneck, static_cast<cost_type>(sums[last] - sums[first]));
    }
    result.objective = result.bottleneck;
    result.lower_bound = std::max(largest, detail::least_largest(sums.back(), stages));
    result.proven = result.bottleneck == result.lower_bound;
    return result;
  }

 private:
  static constexpr std::string_view name = "greedy_cuts";

  /// Whether a stage is nearer to the mean with one more layer.
  template <class T>
  [[nodiscard]] static bool is_nearer(std::vector<T> const& sums, std::size_t first,
                                      std::size_t last, std::size_t stages) {
    using wide = std::conditional_t<std::floating_point<T>, T, detail::int128>;
    auto const now = static_cast<wide>(sums[last] - sums[first]);
    auto const then = static_cast<wide>(sums[last + 1] - sums[first]);
    return (now + then) * static_cast<wide>(stages) < 2 * static_cast<wide>(sums.back());
  }
};

/// Stages by one walk along the chain; see `greedy_cuts_fn`.
inline constexpr greedy_cuts_fn greedy_cuts{};

}  // namespace omnibal::inline v0
