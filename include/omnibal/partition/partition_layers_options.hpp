#pragma once

/// \file
/// Options of the partitions with general stage costs.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/partition/constraints.hpp>
#include <omnibal/partition/weight_list.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <ranges>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0 {

/// Options of `partition_layers`; `C` is the type of a cost in the result.
template <weight C>
struct partition_layers_options {
  /// One weight for each layer: the sum over some layers is never more than they cost as a stage.
  /// Makes the search short.
  weight_list<C> base{};
  /// One for each stage, where stages differ in speed: the sum of `base` over some layers, divided
  /// by the speed of a stage, is never more than they cost as that stage. The stage cost itself is
  /// not divided, as it knows the stage.
  weight_list<double> speeds{};
  partition_constraints constraints{};
  /// With `devices`: how many partial solutions may be kept at a time before the search becomes
  /// inexact.
  std::size_t labels = 100'000;
};

/// Options of `partition_throughput`: those of `partition_layers`, and the micro-batches.
template <weight C>
struct partition_throughput_options {
  /// The number of micro-batches of a step; must be positive.
  std::size_t micro_batches = 0;
  weight_list<C> base{};
  weight_list<double> speeds{};
  partition_constraints constraints{};
  std::size_t labels = 100'000;
};

/// A predicate that no stage fails.
struct fits_always {
  [[nodiscard]] constexpr bool operator()(std::size_t, std::size_t, std::size_t) const {
    return true;
  }
};

/// A number of layers, or a range of them, of which only the size counts.
template <class Layers>
concept layer_chain = std::integral<Layers> || sample_range<Layers>;

namespace detail {

/// The type of a stage's cost in the result: 64-bit integers, or `double` where it floats.
template <class StageCost>
using stage_weight_of = working_weight<std::remove_cvref_t<
    std::invoke_result_t<StageCost const&, std::size_t, std::size_t, std::size_t>>>;

/// Throws where there are more layers than indices can name, or fewer than none.
template <layer_chain Layers>
[[nodiscard]] std::size_t count_layers(std::string_view function, Layers const& layers) {
  std::size_t count = 0;
  if constexpr (sample_range<Layers>) {
    count = std::ranges::size(layers);
  } else {
    if constexpr (std::signed_integral<Layers>) check_weight(function, "layers", 0, layers);
    count = static_cast<std::size_t>(layers);
  }
  check_index_count(function, "layers", count);
  return count;
}

}  // namespace detail

}  // namespace omnibal::inline v0
