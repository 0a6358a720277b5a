#pragma once

/// \file
/// Groups that are in device memory, as algorithms take them.

#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/grouping_span.hpp>
#include <omnibal/grouping.hpp>

namespace omnibal::inline v0::gpu {

/// A view of groups whose arrays are in device memory: a parameter that takes what has them there and
/// refuses a `grouping` of the host, whose pointers a kernel could not follow.
struct device_groups {
  /// `groups` has pointers to device memory.
  device_groups(grouping_view groups) : view(groups) {}
  device_groups(grouping_span const& groups) : view(groups.view()) {}
  template <class Resource>
  device_groups(device_grouping<Resource> const& groups) : view(groups.view()) {}
  device_groups(grouping const&) = delete;

  grouping_view view;
};

}  // namespace omnibal::inline v0::gpu
