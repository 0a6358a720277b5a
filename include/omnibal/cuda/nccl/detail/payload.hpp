#pragma once

/// \file
/// What samples carry, in device memory.

#include <omnibal/config.hpp>
#include <omnibal/cuda/nccl/detail/row_copy.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// The payload of samples before and after an exchange: rows of equal size, or as many elements as
/// `sizes` say. Trivially copyable.
struct payload {
  std::byte const* in = nullptr;
  std::byte* out = nullptr;
  /// An element more than there are samples, in elements; null for rows.
  std::uint64_t const* in_offsets = nullptr;
  std::uint64_t* out_offsets = nullptr;
  /// The elements of each sample of the global batch; null for rows, of which each is one element.
  std::int64_t const* sizes = nullptr;
  std::uint64_t element_bytes = 1;
  /// The elements that `in` has at most, and `out` has room for.
  std::uint64_t in_room = 0;
  std::uint64_t out_room = 0;
  /// What the bytes of a sample are rounded up to on the wire, in bytes: a divisor of 16.
  std::uint32_t word = 16;

  /// Above this a size is a mistake, and positions could leave their type.
  static constexpr std::uint64_t most_elements = std::uint64_t{1} << 40;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t elements(std::uint32_t sample) const {
    if (sizes == nullptr) return 1;
    auto const count = static_cast<std::uint64_t>(sizes[sample]);
    return count > most_elements ? 0 : count;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_sound(std::uint32_t sample) const {
    return sizes == nullptr || static_cast<std::uint64_t>(sizes[sample]) <= most_elements;
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

/// The largest words by which rows of equal size are copied without much padding.
[[nodiscard]] constexpr std::uint32_t word_of_rows(std::uint64_t row_bytes) {
  constexpr std::uint64_t padding_is_little = 256;
  if (row_bytes >= padding_is_little) return 16;
  std::uint32_t word = 16;
  while (row_bytes % word != 0) word /= 2;
  return word;
}

}  // namespace omnibal::inline v0::nccl::detail
