#pragma once

/// \file
/// Lengths in device memory, of one rank and of all.

#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::nccl {

/// The lengths of the samples of this rank. `T` is `std::int64_t`, or `resources` of it where a
/// sample has several lengths.
template <class T = std::int64_t>
struct local_lengths {
  local_lengths() = default;
  /// A length for each sample.
  template <std::convertible_to<gpu::device_span<T const>> Values>
  local_lengths(Values const& of_samples) : values(of_samples) {}
  /// The first `*number` of the values, where only the device knows how many there are.
  local_lengths(gpu::device_span<T const> of_samples, gpu::device_span<std::uint32_t const> number)
      : values(of_samples), count(number) {}

  gpu::device_span<T const> values;
  /// One element, or none where all values count.
  gpu::device_span<std::uint32_t const> count;
};

/// Where the lengths of all ranks are written: arrays of the caller.
template <class T = std::int64_t>
struct gathered_lengths {
  /// Rank r has the lengths [offsets[r], offsets[r + 1]); one element more than there are ranks.
  gpu::device_span<std::uint32_t> offsets;
  gpu::device_span<T> lengths;
  /// One word, or none: then a fault traps, as `gpu::fault` says. The faults in it, of this and
  /// earlier calls, become those of all ranks.
  gpu::device_span<gpu::fault> faults;
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

/// A 64-bit integer, or several in a row.
template <class T>
inline constexpr std::size_t kinds_of_length = sizeof(T) / sizeof(std::int64_t);

template <class T>
concept device_length = std::is_trivially_copyable_v<T> &&
    (std::same_as<T, std::int64_t> || std::same_as<T, resources<kinds_of_length<T>, std::int64_t>>);

}  // namespace omnibal::inline v0::nccl::detail
