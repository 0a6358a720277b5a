// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Boundaries of virtual stages with equal numbers of layers.

#include <omnibal/check.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The number of layers between embedding and head, and the number of virtual stages.
struct staged_layers {
  std::int64_t layers = 1;
  std::int64_t stages = 1;
};

struct even_boundaries_fn {
  /// Returns boundaries of virtual stages over `layers + 2` units: embedding, layers, head. If the
  /// number of stages divides the number of layers, each stage has the same number of layers; the
  /// first stage also has the embedding, and the last stage the head. Otherwise the first stages
  /// after the embedding have one layer more. If the number of stages divides the number of units,
  /// each stage thus has the same number of units, as in Llama 3, DeepSeek-V3 and BLOOM.
  ///
  /// Complexity: linear in the stages. Memory: the result. Determinism: portable. Errors:
  /// `std::invalid_argument` if a number is not positive or if there are more stages than units.
  [[nodiscard]] std::vector<std::int64_t> operator()(staged_layers const& numbers) const {
    auto const [layers, stages] = numbers;
    detail::check_between(name, "numbers.layers", layers, 1, std::int64_t{1} << 20);
    detail::check_between(name, "numbers.stages", stages, 1, layers + 2);
    std::vector<std::int64_t> result{0};
    for (std::int64_t s = 1; s != stages; ++s) {
      result.push_back(1 + s * (layers / stages) + std::min(layers % stages, s - 1));
    }
    result.push_back(layers + 2);
    return result;
  }

 private:
  static constexpr std::string_view name = "even_boundaries";
};

/// Returns boundaries of virtual stages; see `even_boundaries_fn`.
inline constexpr even_boundaries_fn even_boundaries{};

}  // namespace omnibal::inline v0
