#pragma once

/// \file
/// What stages must satisfy besides being even.

#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/partition/weight_list.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

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

}  // namespace omnibal::inline v0
