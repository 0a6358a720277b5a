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

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// Owner of a packing in device memory, with room for whatever the packers of cuda/ make of a
/// number of samples. Movable. Errors: `error`, and `std::length_error` above 2^32 - 1 samples.
template <device_resource Resource = stream_pool>
class device_packing {
 public:
  /// Not initialised but for the faults, of which there are none.
  device_packing(execution<Resource> const& exec, std::size_t samples)
      : groups_(exec, samples, samples),
        oversized_(exec, samples),
        oversized_count_(exec, 1),
        report_(exec, 1),
        faults_(exec, 1) {
    check(cudaMemsetAsync(faults_.data(), 0, sizeof(fault), exec.stream()));
  }

  /// Where a packer may write.
  [[nodiscard]] packing_span out() const& noexcept {
    return {groups_.out(), oversized_.span(), oversized_count_.span(), report_.span(),
            faults_.span()};
  }

  /// The groups, which later work on the stream may use.
  [[nodiscard]] device_grouping<Resource> const& groups() const& noexcept { return groups_; }
  void out() const&& = delete;
  void groups() const&& = delete;

  /// The packing on the host. *Synchronises* the stream, seven times. `function` names the packer
  /// in the texts of errors. Errors: those of the packer, for faults that it found on the device.
  [[nodiscard]] packing download(execution<Resource> const& exec,
                                 std::string_view function = "pack") const {
    synchronise_and_check(exec, device_span<fault const>(faults_.span()), function);
    packing result;
    result.groups = groups_.download(exec);
    std::uint32_t const oversized = gpu::download(exec, oversized_count_.span())[0];
    if (oversized > oversized_.size()) {
      omnibal::detail::throw_length("gpu::device_packing::download", "oversized", oversized);
    }
    result.oversized = gpu::download(exec, oversized_.span().subspan(0, oversized));
    result.report = gpu::download(exec, report_.span())[0];
    return result;
  }

 private:
  device_grouping<Resource> groups_;
  device_array<std::uint32_t, Resource> oversized_;
  device_array<std::uint32_t, Resource> oversized_count_;
  device_array<packing_report, Resource> report_;
  device_array<fault, Resource> faults_;
};

}  // namespace omnibal::inline v0::gpu
