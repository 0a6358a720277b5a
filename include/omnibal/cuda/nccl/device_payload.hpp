// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Payloads of samples in device memory, and the report of an exchange on a stream.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::nccl {

/// Samples of equal size: row i is the elements [i * row_length, (i + 1) * row_length). Received
/// samples are written to the first rows.
template <class T>
struct device_rows {
  gpu::device_span<T> values;
  std::size_t row_length = 1;

  /// Returns the same rows, read-only.
  template <std::same_as<T const> U>
    requires(!std::is_const_v<T>)
  operator device_rows<U>() const { return {values, row_length}; }
};

/// Samples of different sizes, one after the other: sample i is the elements [offsets[i],
/// offsets[i + 1]), and `offsets` has an element more than there are samples. For received samples
/// `offsets` is an output; its elements after the last received sample are the end of this sample.
template <class T>
struct device_payloads {
  gpu::device_span<T> values;
  gpu::device_span<std::conditional_t<std::is_const_v<T>, std::uint64_t const, std::uint64_t>>
      offsets;

  /// Returns the same samples, read-only.
  template <std::same_as<T const> U>
    requires(!std::is_const_v<T>)
  operator device_payloads<U>() const { return {values, offsets}; }
};

/// The report that an exchange on a stream writes to device memory on each rank; the previous
/// contents do not matter.
struct exchange_report {
  /// The faults of this rank, or of all ranks in the bounded form. `no_room` if a message did not
  /// fit into its slot or the arrivals did not fit into the output. Then the arrivals are
  /// unspecified, but the samples before the exchange are unchanged. Therefore the exact form can
  /// do the same exchange.
  gpu::fault faults = gpu::fault::none;
  /// The number of samples that this rank has after the exchange.
  std::uint32_t arrivals = 0;
  /// The number of elements of these samples: rows, or values of payloads.
  std::uint64_t elements = 0;
  /// The number of bytes that this rank has sent to other ranks.
  std::uint64_t sent_bytes = 0;
  /// The size in bytes of the largest message that this rank sends to another rank, or of all such
  /// messages in the bounded form. A slot of this size would have been enough.
  std::uint64_t largest_message = 0;
};

/// Returns the number of bytes that the bounded form sends for each byte of samples, because it
/// sends a whole slot to each of the other ranks. Returns 0 if nothing was sent. Precondition:
/// `ranks > 0`.
[[nodiscard]] inline double padding_factor(exchange_report const& report, std::size_t slot_bytes,
                                           std::size_t ranks) {
  if (report.sent_bytes == 0) return 0.0;
  double const sent = static_cast<double>(slot_bytes) * static_cast<double>(ranks - 1);
  return sent / static_cast<double>(report.sent_bytes);
}

}  // namespace omnibal::inline v0::nccl

namespace omnibal::inline v0::nccl::detail {

[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t round_up(std::uint64_t bytes,
                                                                   std::uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The payload of samples before and after an exchange: rows of equal size, or the numbers of
/// elements in `sizes`. Trivially copyable.
struct payload {
  std::byte const* in = nullptr;
  std::byte* out = nullptr;
  /// The positions of the samples in elements, one more than there are samples; null for rows.
  std::uint64_t const* in_offsets = nullptr;
  std::uint64_t* out_offsets = nullptr;
  /// The elements of each sample of the global batch; null for rows, each of which is one element.
  std::int64_t const* sizes = nullptr;
  std::uint64_t element_bytes = 1;
  /// The largest number of elements of `in`, and the room of `out` in elements.
  std::uint64_t in_room = 0;
  std::uint64_t out_room = 0;
  /// The unit to which the bytes of a sample are rounded up on the wire, in bytes: a divisor of 16.
  std::uint32_t word = 16;

  /// The largest number of elements of a sample. A larger number is a mistake of the caller, and
  /// positions could overflow.
  static constexpr std::uint64_t max_elements = std::uint64_t{1} << 40;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t elements(std::uint32_t sample) const {
    if (sizes == nullptr) return 1;
    auto const count = static_cast<std::uint64_t>(sizes[sample]);
    return count > max_elements ? 0 : count;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_sound(std::uint32_t sample) const {
    return sizes == nullptr || static_cast<std::uint64_t>(sizes[sample]) <= max_elements;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t bytes(std::uint32_t sample) const {
    return elements(sample) * element_bytes;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t wire_bytes(std::uint32_t sample) const {
    return round_up(bytes(sample), word);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::byte const* row_in(std::uint32_t position) const {
    return in + (in_offsets == nullptr ? position : in_offsets[position]) * element_bytes;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::byte* row_out(std::uint32_t position) const {
    return out + (out_offsets == nullptr ? position : out_offsets[position]) * element_bytes;
  }
};

/// Returns the size, in bytes, of the largest words that copy rows of `row_bytes` bytes without
/// much padding.
[[nodiscard]] constexpr std::uint32_t word_of_rows(std::uint64_t row_bytes) {
  constexpr std::uint64_t padding_is_little = 256;
  if (row_bytes >= padding_is_little) return 16;
  std::uint32_t word = 16;
  while (row_bytes % word != 0) word /= 2;
  return word;
}

/// Throws if the output overlaps the input.
template <class In, class Out>
void check_apart(std::string_view function, std::string_view argument,
                 gpu::device_span<In> const& in, gpu::device_span<Out> const& out) {
  auto const begin = [](auto const& span) { return reinterpret_cast<std::uintptr_t>(span.data()); };
  bool const is_apart = in.empty() || out.empty() || begin(in) + in.size_bytes() <= begin(out) ||
                        begin(out) + out.size_bytes() <= begin(in);
  if (is_apart) return;
  omnibal::detail::throw_invalid(function, "out", argument, " overlaps in", argument,
                                 ", must lie elsewhere");
}

template <class T>
[[nodiscard]] payload payload_of(std::string_view function,
                                 device_rows<std::type_identity_t<T> const> const& in,
                                 device_rows<T> const& out) {
  static_assert(std::is_trivially_copyable_v<T>);
  check_apart(function, ".values", in.values, out.values);
  if (in.row_length == 0 || in.row_length != out.row_length) {
    omnibal::detail::throw_invalid(function, "the rows have ", in.row_length, " and ",
                                   out.row_length, " elements, must have the same number, not 0");
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

/// Returns the payload of samples of different sizes. `sizes` has the number of elements of each
/// sample of the global batch. The argument `max_arrivals` is the largest number of samples of this
/// rank after the exchange; `out.offsets` must have at least one element more.
template <class T>
[[nodiscard]] payload payload_of(std::string_view function, std::int64_t const* sizes,
                                 device_payloads<std::type_identity_t<T> const> const& in,
                                 device_payloads<T> const& out, std::size_t max_arrivals) {
  static_assert(std::is_trivially_copyable_v<T>);
  check_apart(function, ".values", in.values, out.values);
  check_apart(function, ".offsets", in.offsets, out.offsets);
  if (in.offsets.empty()) omnibal::detail::throw_invalid(function, "the offsets are empty");
  if (out.offsets.size() < max_arrivals + 1) {
    omnibal::detail::throw_invalid(function, "the offsets of the output have ", out.offsets.size(),
                                   " elements, must have ", max_arrivals + 1);
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

namespace omnibal::inline v0::nccl {

/// A field of samples that `exchange_exact` moves together with other fields, of any type: rows, or
/// payloads and the sizes of all samples. Refers to all of its arguments.
class stream_field {
 public:
  template <class T>
  stream_field(device_rows<std::type_identity_t<T> const> const& in, device_rows<T> const& out)
      : load_(detail::payload_of(name, in, out)) {}
  template <class T>
  stream_field(gpu::device_span<std::int64_t const> sizes,
               device_payloads<std::type_identity_t<T> const> const& in,
               device_payloads<T> const& out)
      : load_(detail::payload_of(name, sizes.data(), in, out, 0)),
        offsets_room_(out.offsets.size()) {}

 private:
  friend struct exchange_exact_fn;

  static constexpr std::string_view name = "nccl::exchange_exact";

  detail::payload load_;
  std::size_t offsets_room_ = static_cast<std::size_t>(-1);
};

}  // namespace omnibal::inline v0::nccl
