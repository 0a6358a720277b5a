#pragma once

/// \file
/// Updates of shared words, whose result does not depend on the order in which threads make them.

#include <omnibal/config.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// `*word += value`, and the value before, which does depend on the order.
OMNIBAL_HOST_DEVICE inline std::uint32_t atomic_add(std::uint32_t* word, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(word, value);
#else
  std::uint32_t const before = *word;
  *word = before + value;
  return before;
#endif
}

/// The same for 64 bits.
OMNIBAL_HOST_DEVICE inline std::uint64_t atomic_add(std::uint64_t* word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(reinterpret_cast<unsigned long long*>(word), value);
#else
  std::uint64_t const before = *word;
  *word = before + value;
  return before;
#endif
}

/// `*word = max(*word, value)`.
OMNIBAL_HOST_DEVICE inline void atomic_max(std::uint32_t* word, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMax(word, value);
#else
  if (value > *word) *word = value;
#endif
}
OMNIBAL_HOST_DEVICE inline void atomic_max(std::uint64_t* word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  atomicMax(reinterpret_cast<unsigned long long*>(word), value);
#else
  if (value > *word) *word = value;
#endif
}

/// `*word = min(*word, value)`.
OMNIBAL_HOST_DEVICE inline void atomic_min(std::uint32_t* word, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMin(word, value);
#else
  if (value < *word) *word = value;
#endif
}
OMNIBAL_HOST_DEVICE inline void atomic_min(std::uint64_t* word, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
  atomicMin(reinterpret_cast<unsigned long long*>(word), value);
#else
  if (value < *word) *word = value;
#endif
}

/// Adds `which` to the faults in `*faults`; a null pointer means that nobody asks.
OMNIBAL_HOST_DEVICE inline void raise(fault* faults, fault which) {
  if (faults == nullptr) return;
#if defined(__CUDA_ARCH__)
  atomicOr(reinterpret_cast<unsigned int*>(faults), static_cast<unsigned int>(which));
#else
  *faults = *faults | which;
#endif
}

}  // namespace omnibal::inline v0::gpu::detail
