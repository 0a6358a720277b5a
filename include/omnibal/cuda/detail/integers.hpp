// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Integer functions for device code, and updates of shared words.

#include <omnibal/config.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

template <class T>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T smaller_of(T left, T right) {
  return right < left ? right : left;
}
template <class T>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T larger_of(T left, T right) {
  return left < right ? right : left;
}

/// Returns the number of parts of `size` elements that cover `count` elements.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t parts_of(std::size_t count,
                                                                 std::size_t size) {
  return (count + size - 1) / size;
}

/// Returns the first index of [first, last) for which `holds` is false, or `last`. `holds` must be
/// false for all later indices too. The search has branches, because kernels require fewer
/// registers for it than for the search of the host.
template <class Index, class Predicate>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr Index first_false(Index first, Index last,
                                                              Predicate const& holds) {
  while (first != last) {
    Index const middle = first + (last - first) / 2;
    if (holds(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// Returns the number of bits that are set.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t count_bits(std::uint32_t word) {
  return static_cast<std::uint32_t>(__builtin_popcount(word));
}

/// Returns the sum, or the largest value if the sum exceeds it. Therefore sums do not depend on the
/// order of additions.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t saturating_sum(std::uint64_t left,
                                                                         std::uint64_t right) {
  std::uint64_t const sum = left + right;
  return sum < left ? ~std::uint64_t{0} : sum;
}

/// Operations for reductions and scans.
struct add_saturating {
  OMNIBAL_HOST_DEVICE constexpr std::uint64_t operator()(std::uint64_t left,
                                                         std::uint64_t right) const {
    return saturating_sum(left, right);
  }
};
struct add {
  template <class T>
  OMNIBAL_HOST_DEVICE constexpr T operator()(T left, T right) const {
    return static_cast<T>(left + right);
  }
};
struct unite_bits {
  template <class T>
  OMNIBAL_HOST_DEVICE constexpr T operator()(T left, T right) const {
    return static_cast<T>(left | right);
  }
};
struct take_larger {
  template <class T>
  OMNIBAL_HOST_DEVICE constexpr T operator()(T left, T right) const {
    return larger_of(left, right);
  }
};
struct take_smaller {
  template <class T>
  OMNIBAL_HOST_DEVICE constexpr T operator()(T left, T right) const {
    return smaller_of(left, right);
  }
};

/// Returns a pointer to a word of 32 or 64 bits, of the type that the atomic functions accept.
OMNIBAL_HOST_DEVICE inline std::uint32_t* device_word(std::uint32_t* word) { return word; }
OMNIBAL_HOST_DEVICE inline unsigned long long* device_word(std::uint64_t* word) {
  return reinterpret_cast<unsigned long long*>(word);
}

/// Adds `value` to `*word`. Returns the value before, which depends on the order of additions.
template <class T>
OMNIBAL_HOST_DEVICE T atomic_add(T* word, std::type_identity_t<T> value) {
#if defined(__CUDA_ARCH__)
  return static_cast<T>(atomicAdd(device_word(word), value));
#else
  T const before = *word;
  *word = before + value;
  return before;
#endif
}

/// Replaces `*word` by `min(*word, value)`.
template <class T>
OMNIBAL_HOST_DEVICE void atomic_min(T* word, std::type_identity_t<T> value) {
#if defined(__CUDA_ARCH__)
  atomicMin(device_word(word), value);
#else
  *word = smaller_of(*word, value);
#endif
}

/// Adds `which` to the faults in `*faults`. If `faults` is null, the function ends the kernel with
/// an error, which the next synchronization reports; on the host it throws.
OMNIBAL_HOST_DEVICE inline void raise(fault* faults, fault which) {
#if defined(__CUDA_ARCH__)
  if (faults == nullptr) __trap();
  atomicOr(reinterpret_cast<unsigned int*>(faults), static_cast<unsigned int>(which));
#else
  if (faults == nullptr) gpu::check(which, "fault");
  *faults = *faults | which;
#endif
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
