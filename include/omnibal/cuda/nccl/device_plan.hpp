// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A plan of an exchange in device memory: a view and its owner.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl {

/// The arrays of an `exchange_plan` on a device, with the bounds of the host on their sizes.
/// Trivially copyable; does not own the arrays, which are for example in a `device_plan`. Equal on
/// all ranks except for `max_home` and `max_arrivals`.
struct device_plan_view {
  /// Rank r has the samples [home_offsets[r], home_offsets[r + 1]) before the exchange, and the
  /// slots [arrival_offsets[r], arrival_offsets[r + 1]) after it.
  std::uint32_t const* home_offsets = nullptr;
  std::uint32_t const* arrival_offsets = nullptr;
  /// The sample in each slot, and the slot of each sample.
  std::uint32_t const* item_at = nullptr;
  std::uint32_t const* slot_of = nullptr;
  std::uint32_t ranks = 0;
  /// The largest number of samples of all ranks together, and the largest numbers of samples of
  /// this rank before and after the exchange.
  std::uint32_t max_samples = 0;
  std::uint32_t max_home = 0;
  std::uint32_t max_arrivals = 0;

  /// Returns the plan that moves every sample back to its place before the exchange.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr device_plan_view inverse() const {
    return {arrival_offsets, home_offsets, slot_of,      item_at,
            ranks,           max_samples,  max_arrivals, max_home};
  }
};

/// The room of a plan on the device.
struct plan_room {
  std::size_t ranks = 1;
  /// The largest number of samples of any rank before the exchange. All ranks must pass the same
  /// value.
  std::size_t max_samples = 0;
  /// The largest number of samples of this rank after the exchange. The default is the number of
  /// all samples, because one rank may receive all short samples.
  std::size_t max_arrivals = static_cast<std::size_t>(-1);
};

/// Owner of a plan in device memory, which `post_balance` writes or the host uploads. Memory: 8
/// bytes per sample and per rank. Errors: `gpu::error`; `std::length_error` above 2^32 - 1 samples.
template <gpu::device_resource Resource = gpu::stream_pool>
class device_plan {
 public:
  device_plan(gpu::execution<Resource> const& exec, plan_room const& room)
      : device_plan(checked_sizes(room), exec) {}

  /// Copies a plan of the host to the device, and *synchronizes* the stream; `rank` is the rank of
  /// the caller.
  [[nodiscard]] static device_plan upload(gpu::execution<Resource> const& exec,
                                          exchange_plan const& plan, std::size_t rank) {
    if (rank >= plan.ranks()) {
      omnibal::detail::throw_invalid("nccl::device_plan::upload", "the rank is ", rank,
                                     ", but the plan is for ", plan.ranks(), " ranks");
    }
    sizes const found{.ranks = index(plan.ranks()),
                      .samples = index(plan.sample_count()),
                      .home = index(plan.home_count(rank)),
                      .arrivals = index(plan.arrivals(rank).size())};
    device_plan result({}, exec);
    result.sizes_ = found;
    result.home_offsets_ = gpu::upload(exec, plan.home_offsets());
    result.arrival_offsets_ = gpu::upload(exec, plan.arrivals().offsets());
    result.item_at_ = gpu::upload(exec, plan.arrivals().items());
    result.slot_of_ = gpu::upload(exec, plan.departures().items());
    return result;
  }

  [[nodiscard]] device_plan_view view() const& noexcept {
    return {home_offsets_.data(), arrival_offsets_.data(), item_at_.data(), slot_of_.data(),
            sizes_.ranks,         sizes_.samples,          sizes_.home,     sizes_.arrivals};
  }
  operator device_plan_view() const& noexcept { return view(); }
  void view() const&& = delete;
  operator device_plan_view() const&& = delete;

  /// Returns the offsets of the ranks before the exchange, for code that writes a plan.
  [[nodiscard]] gpu::device_span<std::uint32_t> home_offsets() const noexcept {
    return home_offsets_.span();
  }
  [[nodiscard]] gpu::device_span<std::uint32_t> arrival_offsets() const noexcept {
    return arrival_offsets_.span();
  }
  [[nodiscard]] gpu::device_span<std::uint32_t> item_at() const noexcept { return item_at_.span(); }
  [[nodiscard]] gpu::device_span<std::uint32_t> slot_of() const noexcept { return slot_of_.span(); }

 private:
  struct sizes {
    std::uint32_t ranks = 0;
    std::uint32_t samples = 0;
    std::uint32_t home = 0;
    std::uint32_t arrivals = 0;
  };

  device_plan(sizes const& room, gpu::execution<Resource> const& exec)
      : sizes_(room),
        home_offsets_(exec, std::size_t{room.ranks} + 1),
        arrival_offsets_(exec, std::size_t{room.ranks} + 1),
        item_at_(exec, room.samples),
        slot_of_(exec, room.samples) {}

  [[nodiscard]] static std::uint32_t index(std::size_t count) {
    omnibal::detail::check_index_count("nccl::device_plan", "the global batch", count);
    return static_cast<std::uint32_t>(count);
  }

  [[nodiscard]] static sizes checked_sizes(plan_room const& room) {
    std::uint32_t const ranks = index(room.ranks);
    std::uint32_t const home = index(room.max_samples);
    if (ranks == 0) omnibal::detail::throw_invalid("nccl::device_plan", "there are no ranks");
    std::uint32_t const samples = index(room.ranks * room.max_samples);
    return {ranks, samples, home,
            static_cast<std::uint32_t>(std::min<std::size_t>(samples, room.max_arrivals))};
  }

  sizes sizes_;
  gpu::device_array<std::uint32_t, Resource> home_offsets_;
  gpu::device_array<std::uint32_t, Resource> arrival_offsets_;
  gpu::device_array<std::uint32_t, Resource> item_at_;
  gpu::device_array<std::uint32_t, Resource> slot_of_;
};

template <gpu::device_resource Resource>
device_plan(gpu::execution<Resource> const&, plan_room const&) -> device_plan<Resource>;

}  // namespace omnibal::inline v0::nccl
