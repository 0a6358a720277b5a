#pragma once

/// \file
/// The most even stages of a chain, on the device.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/check_size.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/run_minimax.hpp>
#include <omnibal/cuda/detail/scratch_meter.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/partition_span.hpp>
#include <omnibal/partition/minimax.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::gpu {

struct minimax_fn {
  /// The stages of `omnibal::minimax` for integral costs in device memory: the smallest possible
  /// largest cost of a stage, and of all such stages those with the leftmost cuts. There is none for
  /// floating-point costs, whose sums on the device would not be those of the host.
  ///
  /// Bisection on sums that occur, in a fixed number of passes, of which those after the end do
  /// nothing. Where stages are few, a warp for each of 4095 limits walks from stage to stage; else a
  /// pass searches the end of a stage from every layer at once and walks by chunks.
  ///
  /// Complexity: linear for the sums; then at most six passes with a few accesses to memory for each
  /// stage, or about twenty passes over the layers. These are submitted for as many bits as the type
  /// of a cost has: costs of 32 bits take half the launches of those of 64. Memory: 8 bytes of
  /// scratch per layer, or 18 to 78 where there are many stages. Determinism: portable. Errors on
  /// the host: `std::invalid_argument` for no stages, for fewer layers than stages where empty ones
  /// are forbidden and for boundaries that have no room; `std::length_error` above 2^32 - 1 layers or
  /// stages. Faults on the device, with which the stages mean nothing: `invalid_amount` for a cost
  /// that is negative or above 2^63 - 1, `overflow` where the sum of the costs is. Source: Pinar,
  /// Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", JPDC 2004.
  template <device_resource Resource, device_integers Costs>
  void operator()(execution<Resource> const& exec, Costs const& costs, std::size_t stages,
                  minimax_options const& options, partition_span const& out) const {
    check_sizes(costs.size(), stages, options);
    detail::check_room(name, "boundaries", out.boundaries.size(), stages + 1);
    detail::run_on_device(exec, [&](auto& backend) {
      run(backend, costs.data(), costs.size(), stages, options,
          {out.boundaries.data(), out.bottleneck.data(), out.faults.data()});
    });
  }

  /// The scratch that a call takes for so many layers and stages, in bytes. Ask on the
  /// device of the call. Errors: those of the call.
  [[nodiscard]] std::size_t scratch_bytes(std::size_t layers, std::size_t stages,
                                          minimax_options const& options = {}) const {
    check_sizes(layers, stages, options);
    detail::scratch_meter meter;
    run(meter, static_cast<std::int64_t const*>(nullptr), layers, stages, options, {});
    return meter.scratch_bytes();
  }

 private:
  static constexpr std::string_view name = "gpu::minimax";

  static void check_sizes(std::size_t layers, std::size_t stages, minimax_options const& options) {
    omnibal::detail::check_index_count(name, "layers", layers);
    omnibal::detail::check_stages(name, layers, stages, options.empty);
  }

  template <class Backend, class Cost>
  static void run(Backend& backend, Cost const* costs, std::size_t layers, std::size_t stages,
                  minimax_options const& options, detail::minimax_output const& out) {
    detail::run_minimax(backend, costs, layers, stages,
                        options.empty == empty_stages::forbidden ? 1 : 0, out,
                        detail::plan_minimax(layers, stages));
  }
};

/// The most even stages of a chain, on the device; see `minimax_fn`.
inline constexpr minimax_fn minimax{};

}  // namespace omnibal::inline v0::gpu
