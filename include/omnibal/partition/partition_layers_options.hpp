#pragma once

/// \file
/// Constraints and options of the partitions.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/partition/weight_list.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// Whether as many stages as asked for must have layers, or at most as many.
enum class empty_stages { forbidden, allowed };

/// A layer that runs on a certain stage.
struct pinned_layer {
  std::uint32_t layer;
  std::uint32_t stage;
};

/// The layers from `first` to `last`, both included, which must share a stage.
struct tied_layers {
  std::uint32_t first;
  std::uint32_t last;
};

/// Nothing by default. Lists of one value hold for every stage.
struct partition_constraints {
  empty_stages empty = empty_stages::forbidden;
  /// What each layer takes in memory; used with `capacity`.
  weight_list<std::int64_t> bytes{};
  /// What each stage, or each device, has.
  weight_list<std::int64_t> capacity{};
  /// The fewest layers of each stage that has any.
  weight_list<std::int64_t> min_layers{};
  /// The most layers of each stage.
  weight_list<std::int64_t> max_layers{};
  std::vector<pinned_layer> pinned{};
  /// No stage may begin with one of these layers.
  std::vector<std::uint32_t> forbidden_cuts{};
  std::vector<tied_layers> tied{};
  /// Virtual stages: stage s runs on device s modulo `devices`, and the memory of a device holds
  /// all of its stages. Zero: as many devices as stages.
  std::size_t devices = 0;
};

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

/// Throws unless so many layers can be cut into so many stages.
inline void check_stages(std::string_view function, std::size_t layers, std::size_t stages,
                         empty_stages empty) {
  check_positive(function, "stages", stages);
  check_index_count(function, "the result", stages);
  if (empty == empty_stages::allowed || layers >= stages) return;
  throw_invalid(function, to_text(layers) + " layers do not give " + to_text(stages) +
                              " stages a layer each, and empty stages are forbidden");
}

/// For what is no stage cost any type, so that an error names the concept.
template <class StageCost>
struct stage_weight {
  using type = std::int64_t;
};

template <stage_cost StageCost>
struct stage_weight<StageCost> {
  using type = working_weight<std::remove_cvref_t<
      std::invoke_result_t<StageCost const&, std::size_t, std::size_t, std::size_t>>>;
};

/// The type of a stage's cost in the result: 64-bit integers, or `double` where it floats.
template <class StageCost>
using stage_weight_of = typename stage_weight<StageCost>::type;

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
