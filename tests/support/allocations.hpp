// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the allocations of a program, of all its threads. To be included in one file of it.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace test {

inline std::atomic<std::size_t> allocation_count = 0;

}  // namespace test

// Inlined, g++ 12 takes them for a mismatched pair of allocation and release.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++test::allocation_count;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  ++test::allocation_count;
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace test {

/// The number of allocations that `call` makes.
template <class Call>
std::size_t allocations_of(Call const& call) {
  std::size_t const before = allocation_count;
  call();
  return allocation_count - before;
}

}  // namespace test
