// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of sample indices and packings in device memory: owners and parameters of algorithms.

#include <omnibal/check.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// Owner of groups of sample indices in device memory, with the arrays of `grouping`. Movable.
/// Errors: `error`, and `std::length_error` above 2^32 - 1 groups or items.
template <device_resource Resource = stream_pool>
class device_grouping {
 public:
  /// Allocates uninitialized room for `groups` groups and `items` items.
  device_grouping(execution<Resource> const& exec, std::size_t groups, std::size_t items)
      : device_grouping(exec, groups, items, sizeof(std::uint32_t)) {}

  /// Copies groups to the device, in the order of the stream; see `gpu::upload` for how long the
  /// groups must remain.
  [[nodiscard]] static device_grouping upload(execution<Resource> const& exec,
                                              grouping_view groups) {
    device_grouping result(exec, groups.size(), groups.item_count());
    if (groups.empty()) {
      check(cudaMemsetAsync(result.offsets_.data(), 0, sizeof(std::uint32_t), exec.stream()));
    } else {
      result.copy_in(exec, result.offsets_.data(), groups.offsets());
    }
    result.copy_in(exec, result.items_.data(), groups.items());
    // The number of groups is written byte by byte as values. A copy that a graph has captured
    // would read a variable of this call after the call has ended.
    for (std::size_t byte = 0; byte != sizeof(std::uint32_t); ++byte) {
      check(cudaMemsetAsync(result.numbers_.data() + byte,
                            static_cast<int>(groups.size() >> 8 * byte & 0xff), 1, exec.stream()));
    }
    return result;
  }

  /// Copies the groups to the host. *Synchronizes* the stream twice: first for the numbers of
  /// groups and items, then for the arrays.
  [[nodiscard]] grouping download(execution<Resource> const& exec) const {
    auto const groups = detail::start_download(exec, out().group_count);
    auto const items = detail::start_download(exec, offsets_.span().subspan(out().room(), 1));
    exec.synchronize();
    auto arrays = start_download(exec, groups[0], items[0]);
    exec.synchronize();
    return {std::move(arrays.offsets), std::move(arrays.items)};
  }

  /// Returns the output arrays for an algorithm.
  [[nodiscard]] grouping_span out() const& noexcept {
    return {offsets_.span(), items_.span(), {numbers<std::uint32_t>(), 1}};
  }
  /// Returns a view of the groups with pointers to device memory. The number of groups of the view
  /// is the number for which the arrays have room; groups that do not exist are empty. On the host
  /// only `size` and `empty` may be called.
  [[nodiscard]] grouping_view view() const& noexcept { return out().view(); }
  void out() const&& = delete;
  void view() const&& = delete;

 private:
  template <device_resource>
  friend class device_packing;

  /// Allocates the arrays, and `bytes` bytes for numbers, the first of which is the number of
  /// groups.
  device_grouping(execution<Resource> const& exec, std::size_t groups, std::size_t items,
                  std::size_t bytes)
      : offsets_(exec, checked("groups", groups) + 1),
        items_(exec, checked("items", items)),
        numbers_(exec, bytes) {}

  template <class Numbers>
  [[nodiscard]] Numbers* numbers() const {
    return reinterpret_cast<Numbers*>(numbers_.data());
  }

  struct host_arrays {
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint32_t> items;
  };

  /// Starts the copy of the first `groups` groups and `items` items to the host. The result is
  /// valid after the stream has been synchronized.
  [[nodiscard]] host_arrays start_download(execution<Resource> const& exec, std::size_t groups,
                                           std::size_t items) const {
    if (groups > out().room()) {
      omnibal::detail::throw_length("gpu::device_grouping::download", "offsets", groups);
    }
    if (items > items_.size()) {
      omnibal::detail::throw_length("gpu::device_grouping::download", "items", items);
    }
    return {detail::start_download(exec, offsets_.span().subspan(0, groups + 1)),
            detail::start_download(exec, items_.span().subspan(0, items))};
  }

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
  device_array<std::byte, Resource> numbers_;
};

/// A view of groups whose arrays are in device memory. As the type of a parameter it accepts groups
/// in device memory and rejects a `grouping` of the host, whose pointers a kernel cannot use.
struct device_groups {
  /// Views `groups`, which has pointers to device memory.
  device_groups(grouping_view groups) : view(groups) {}
  device_groups(grouping_span const& groups) : view(groups.view()) {}
  template <class Resource>
  device_groups(device_grouping<Resource> const& groups) : view(groups.view()) {}
  device_groups(grouping const&) = delete;

  grouping_view view;
};

/// Owner of a packing in device memory, with room for any result of the packers of cuda/ for a
/// number of samples. Movable. Errors: `error`, and `std::length_error` above 2^32 - 1 samples.
template <device_resource Resource = stream_pool>
class device_packing {
 public:
  /// Allocates the arrays without initialization, and sets the counts, the report and the faults to
  /// zero.
  device_packing(execution<Resource> const& exec, std::size_t samples)
      : groups_(exec, samples, samples, sizeof(numbers)), oversized_(exec, samples) {
    check(cudaMemsetAsync(on_device(), 0, sizeof(numbers), exec.stream()));
  }

  /// Returns the output arrays for a packer.
  [[nodiscard]] packing_span out() const& noexcept {
    numbers* const all = on_device();
    return {groups_.out(),
            oversized_.span(),
            {&all->oversized_count, 1},
            {&all->report, 1},
            {&all->faults, 1}};
  }

  /// Returns the groups, which later work on the stream may use.
  [[nodiscard]] device_grouping<Resource> const& groups() const& noexcept { return groups_; }
  void out() const&& = delete;
  void groups() const&& = delete;

  /// Copies the packing to the host. *Synchronizes* the stream twice: first for the counts, the
  /// report and the faults, then for the arrays. `function` names the packer in the texts of
  /// errors. Errors: the exceptions of `check` for faults that the packer has raised on the device.
  [[nodiscard]] packing download(execution<Resource> const& exec,
                                 std::string_view function = "pack") const {
    auto const all = gpu::download(exec, device_span<numbers>(on_device(), 1))[0];
    check(all.faults, function);
    std::size_t const samples = oversized_.size();
    if (all.oversized_count > samples) {
      omnibal::detail::throw_length("gpu::device_packing::download", "oversized",
                                    all.oversized_count);
    }
    packing result;
    result.report = all.report;
    auto groups = groups_.start_download(exec, all.group_count, samples - all.oversized_count);
    result.oversized =
        detail::start_download(exec, oversized_.span().subspan(0, all.oversized_count));
    exec.synchronize();
    result.groups = grouping(std::move(groups.offsets), std::move(groups.items));
    return result;
  }

 private:
  /// The counts, the report and the faults of a packing, together in device memory.
  struct numbers {
    std::uint32_t group_count;
    std::uint32_t oversized_count;
    packing_report report;
    fault faults;
  };

  [[nodiscard]] numbers* on_device() const { return groups_.template numbers<numbers>(); }

  device_grouping<Resource> groups_;
  device_array<std::uint32_t, Resource> oversized_;
};

}  // namespace omnibal::inline v0::gpu
