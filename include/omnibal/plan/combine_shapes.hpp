#pragma once

/// \file
/// One plan for micro-batches of several shapes.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The layers of a model for micro-batches of one shape, such as the groups of a level of length.
template <weight Time = std::int64_t>
struct shape_layers {
  /// How many micro-batches have this shape, or any numbers in proportion.
  std::int64_t count = 1;
  std::vector<plan_layer<Time>> layers;
};

struct combine_shapes_fn {
  /// Layers for a plan that micro-batches of all these shapes run with: the times are the means
  /// over the micro-batches, integers rounded up; the bytes are the largest of all shapes, so that
  /// no order of the micro-batches exceeds the memory.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` for no shapes, counts that are negative or all zero, another number of
  /// layers or of choices than in the first shape and times and bytes that are negative or not
  /// finite; `std::overflow_error` where the counts add up to more than 2^63 - 1.
  template <weight Time>
  [[nodiscard]] std::vector<plan_layer<Time>> operator()(
      std::vector<shape_layers<Time>> const& shapes) const {
    if (shapes.empty()) detail::throw_invalid(name, "there are no shapes");
    std::int64_t total = 0;
    for (std::size_t s = 0; s != shapes.size(); ++s) {
      detail::check_weight(name, "count", s, shapes[s].count);
      detail::checked_add(name, "the sum of the counts", total, shapes[s].count);
      check_size("shapes[" + detail::to_text(s) + "]", "layers", shapes[s].layers.size(),
                 shapes[0].layers.size());
    }
    if (total == 0) detail::throw_invalid(name, "all counts are 0");
    std::vector<plan_layer<Time>> result(shapes[0].layers.size());
    for (std::size_t l = 0; l != result.size(); ++l) combine(shapes, total, l, result[l]);
    return result;
  }

 private:
  static constexpr std::string_view name = "combine_shapes";

  static void check_size(std::string const& place, std::string_view what, std::size_t size,
                         std::size_t expected) {
    if (size == expected) return;
    detail::throw_invalid(name, place + " has " + detail::to_text(size) + " " + std::string(what) +
                                    ", the first has " + detail::to_text(expected));
  }

  template <weight Time>
  static void combine(std::vector<shape_layers<Time>> const& shapes, std::int64_t total,
                      std::size_t layer, plan_layer<Time>& result) {
    result.choices.resize(shapes[0].layers[layer].choices.size());
    for (auto const& shape : shapes) {
      auto const& given = shape.layers[layer];
      check_size("layer " + detail::to_text(layer), "choices", given.choices.size(),
                 result.choices.size());
      detail::check_weight(name, "state_bytes", layer, given.state_bytes);
      result.state_bytes = std::max(result.state_bytes, given.state_bytes);
    }
    for (std::size_t c = 0; c != result.choices.size(); ++c) {
      using sum_type = std::conditional_t<std::floating_point<Time>, Time, detail::int128>;
      sum_type sum{};
      auto& combined = result.choices[c];
      for (auto const& shape : shapes) {
        auto const& way = shape.layers[layer].choices[c];
        detail::check_weight(name, "time", layer, way.time);
        detail::check_weight(name, "bytes", layer, way.bytes);
        detail::check_weight(name, "transient_bytes", layer, way.transient_bytes);
        sum += static_cast<sum_type>(way.time) * static_cast<sum_type>(shape.count);
        combined.bytes = std::max(combined.bytes, way.bytes);
        combined.transient_bytes = std::max(combined.transient_bytes, way.transient_bytes);
      }
      if constexpr (std::floating_point<Time>) {
        combined.time = sum / static_cast<Time>(total);
      } else {
        combined.time = static_cast<Time>((sum + total - 1) / total);
      }
    }
  }
};

/// Layers for micro-batches of several shapes; see `combine_shapes_fn`.
inline constexpr combine_shapes_fn combine_shapes{};

}  // namespace omnibal::inline v0
