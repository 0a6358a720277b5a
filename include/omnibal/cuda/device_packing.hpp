#pragma once

/// \file
/// A packing in device memory.

#include <omnibal/check.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// Owner of a packing in device memory, with room for whatever the packers of cuda/ make of a
/// number of samples. Movable. Errors: `error`, and `std::length_error` above 2^32 - 1 samples.
template <device_resource Resource = stream_pool>
class device_packing {
 public:
  /// Not initialised but for the faults, of which there are none.
  device_packing(execution<Resource> const& exec, std::size_t samples)
      : groups_(exec, samples, samples, sizeof(numbers)), oversized_(exec, samples) {
    check(cudaMemsetAsync(on_device(), 0, sizeof(numbers), exec.stream()));
  }

  /// Where a packer may write.
  [[nodiscard]] packing_span out() const& noexcept {
    numbers* const all = on_device();
    return {groups_.out(),
            oversized_.span(),
            {&all->oversized_count, 1},
            {&all->report, 1},
            {&all->faults, 1}};
  }

  /// The groups, which later work on the stream may use.
  [[nodiscard]] device_grouping<Resource> const& groups() const& noexcept { return groups_; }
  void out() const&& = delete;
  void groups() const&& = delete;

  /// The packing on the host. *Synchronises* the stream, twice: one copy of all numbers comes
  /// before those of the arrays. `function` names the packer in the texts of errors. Errors: those
  /// of the packer, for faults that it found on the device.
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
    exec.synchronise();
    result.groups = grouping(std::move(groups.offsets), std::move(groups.items));
    return result;
  }

 private:
  /// What a packing has besides arrays.
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
