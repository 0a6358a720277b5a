#pragma once

/// \file
/// What samples carry, in device memory, as callers give it.

#include <omnibal/check.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/nccl/detail/payload.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::nccl {

/// Samples of equal size: row i is the elements [i * row_length, (i + 1) * row_length). What is
/// received is written to the first rows.
template <class T>
struct device_rows {
  gpu::device_span<T> values;
  std::size_t row_length = 1;

  /// The same rows, not to be changed.
  template <std::same_as<T const> U>
    requires(!std::is_const_v<T>)
  operator device_rows<U>() const { return {values, row_length}; }
};

/// Samples of different sizes, one after the other: sample i is the elements
/// [offsets[i], offsets[i + 1]), and `offsets` has an element more than there are samples. For what
/// is received, `offsets` is written too: its elements after the last arrival all are the end.
template <class T>
struct device_payloads {
  gpu::device_span<T> values;
  gpu::device_span<std::conditional_t<std::is_const_v<T>, std::uint64_t const, std::uint64_t>>
      offsets;

  /// The same samples, not to be changed.
  template <std::same_as<T const> U>
    requires(!std::is_const_v<T>)
  operator device_payloads<U>() const { return {values, offsets}; }
};

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

template <class T>
[[nodiscard]] payload payload_of(std::string_view function,
                                 device_rows<std::type_identity_t<T> const> const& in,
                                 device_rows<T> const& out) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (in.row_length == 0 || in.row_length != out.row_length) {
    omnibal::detail::throw_invalid(function, "the rows have " +
                                                 omnibal::detail::to_text(in.row_length) + " and " +
                                                 omnibal::detail::to_text(out.row_length) +
                                                 " elements, must have the same number, not 0");
  }
  payload load;
  load.in = reinterpret_cast<std::byte const*>(in.values.data());
  load.out = reinterpret_cast<std::byte*>(out.values.data());
  load.element_bytes = in.row_length * sizeof(T);
  load.in_room = in.values.size() / in.row_length;
  load.out_room = out.values.size() / out.row_length;
  load.word = word_of_rows(load.element_bytes);
  return load;
}

/// `sizes` are those of all samples; `most_arrivals` is what the plan has room for.
template <class T>
[[nodiscard]] payload payload_of(std::string_view function, std::int64_t const* sizes,
                                 device_payloads<std::type_identity_t<T> const> const& in,
                                 device_payloads<T> const& out, std::size_t most_arrivals) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (in.offsets.empty()) omnibal::detail::throw_invalid(function, "the offsets are empty");
  if (out.offsets.size() < most_arrivals + 1) {
    omnibal::detail::throw_invalid(
        function, "the offsets of the output have " + omnibal::detail::to_text(out.offsets.size()) +
                      " elements, must have " + omnibal::detail::to_text(most_arrivals + 1));
  }
  payload load;
  load.in = reinterpret_cast<std::byte const*>(in.values.data());
  load.out = reinterpret_cast<std::byte*>(out.values.data());
  load.in_offsets = in.offsets.data();
  load.out_offsets = out.offsets.data();
  load.sizes = sizes;
  load.element_bytes = sizeof(T);
  load.in_room = in.values.size();
  load.out_room = out.values.size();
  return load;
}

}  // namespace omnibal::inline v0::nccl::detail
