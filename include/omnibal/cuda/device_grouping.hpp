#pragma once

/// \file
/// Groups of sample indices in device memory: an owner, and what algorithms take.

#include <omnibal/check.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// Owner of groups of sample indices in device memory; the arrays of `grouping`. Movable. Errors:
/// `error`, and `std::length_error` above 2^32 - 1 groups or items.
template <device_resource Resource = stream_pool>
class device_grouping {
 public:
  /// Room for this many groups and items, not initialised.
  device_grouping(execution<Resource> const& exec, std::size_t groups, std::size_t items)
      : offsets_(exec, checked("groups", groups) + 1),
        items_(exec, checked("items", items)),
        group_count_(exec, 1) {}

  /// Copies groups to the device, in the order of the stream; see `gpu::upload` for how long they
  /// must stay.
  [[nodiscard]] static device_grouping upload(execution<Resource> const& exec,
                                              grouping_view groups) {
    device_grouping result(exec, groups.size(), groups.item_count());
    auto const count = static_cast<std::uint32_t>(groups.size());
    if (groups.empty()) {
      check(cudaMemsetAsync(result.offsets_.data(), 0, sizeof(std::uint32_t), exec.stream()));
    } else {
      result.copy_in(exec, result.offsets_.data(), groups.offsets());
    }
    result.copy_in(exec, result.items_.data(), groups.items());
    result.copy_in(exec, result.group_count_.data(), std::span(&count, 1));
    return result;
  }

  /// The groups on the host. *Synchronises* the stream, three times: each size comes before what it
  /// is the size of.
  [[nodiscard]] grouping download(execution<Resource> const& exec) const {
    std::uint32_t const groups = gpu::download(exec, group_count_.span())[0];
    if (groups > offsets_.size() - 1) {
      omnibal::detail::throw_length("gpu::device_grouping::download", "offsets", groups);
    }
    auto offsets = gpu::download(exec, offsets_.span().subspan(0, std::size_t{groups} + 1));
    if (offsets.back() > items_.size()) {
      omnibal::detail::throw_length("gpu::device_grouping::download", "items", offsets.back());
    }
    auto items = gpu::download(exec, items_.span().subspan(0, offsets.back()));
    return {std::move(offsets), std::move(items)};
  }

  /// Where an algorithm may write groups.
  [[nodiscard]] grouping_span out() const& noexcept {
    return {offsets_.span(), items_.span(), group_count_.span()};
  }
  /// The groups as pointers to device memory: as many as there is room for, the last ones empty.
  /// Only `size`, `empty` and the calls of device code are of use.
  [[nodiscard]] grouping_view view() const& noexcept { return out().view(); }
  void out() const&& = delete;
  void view() const&& = delete;

 private:
  [[nodiscard]] static std::size_t checked(std::string_view argument, std::size_t count) {
    omnibal::detail::check_index_count("gpu::device_grouping", argument, count);
    return count;
  }

  static void copy_in(execution<Resource> const& exec, std::uint32_t* to,
                      std::span<std::uint32_t const> from) {
    if (from.empty()) return;
    check(
        cudaMemcpyAsync(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, exec.stream()));
  }

  device_array<std::uint32_t, Resource> offsets_;
  device_array<std::uint32_t, Resource> items_;
  device_array<std::uint32_t, Resource> group_count_;
};

/// A view of groups whose arrays are in device memory: a parameter that takes what has them there
/// and refuses a `grouping` of the host, whose pointers a kernel could not follow.
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
