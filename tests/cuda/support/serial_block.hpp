// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block of threads on one host thread, in place of `device_block`.

#include "visit_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace test {

// Hidden as what it runs, of which its lambdas hold references.
#pragma GCC visibility push(hidden)

/// One warp of a block of threads: as `serial_block`, with 32 threads and no memory of its own.
class serial_warp {
 public:
  serial_warp(visit_order order, std::uint64_t seed) : order_(order), seed_(seed) {}

  template <class F, class Op, class T>
  [[nodiscard]] T reduce(std::size_t n, F const& f, Op const& op, T init) {
    visit(n, order_, seed_++, [&](std::size_t i) { init = op(init, f(i)); });
    return init;
  }

  template <class F>
  void once(F const& f) {
    f();
  }

 private:
  visit_order order_;
  std::uint64_t seed_;
};

/// The members of `device_block`. Each phase visits its indices in the order of the backend and
/// completes before the next one.
class serial_block {
 public:
  serial_block(unsigned threads, std::size_t shared_bytes, visit_order order, std::uint64_t seed)
      : threads_(threads), shared_(shared_bytes + alignment, 0xcd), order_(order), seed_(seed) {}

  template <class F>
  void for_each(std::size_t n, F const& f) {
    visit(n, order_, seed_++, f);
  }
  template <class F>
  void for_each_load(std::size_t n, F const& f) {
    for_each(n, f);
  }

  template <class F>
  void for_each_warp(std::size_t n, F const& f) {
    visit(n, order_, seed_++, [&](std::size_t i) {
      serial_warp warp(order_, seed_ + i);
      f(warp, i);
    });
  }

  template <class F, class Op, class T>
  [[nodiscard]] T reduce(std::size_t n, F const& f, Op const& op, T init) {
    visit(n, order_, seed_++, [&](std::size_t i) { init = op(init, f(i)); });
    return init;
  }

  template <class F, class Op, class T, class Done>
  void reduce_each(std::size_t n, std::size_t m, F const& f, Op const& op, T neutral,
                   Done const& done) {
    visit(n, order_, seed_++, [&](std::size_t i) {
      T value = neutral;
      visit(m, order_, seed_++, [&](std::size_t j) { value = op(value, f(i, j)); });
      done(i, value);
    });
  }

  template <class T>
  T exclusive_sum(T* data, std::size_t n) {
    return exclusive_sum_of(
        n, [&](std::size_t i) { return data[i]; }, data);
  }
  template <class F, class T>
  T exclusive_sum_of(std::size_t n, F const& f, T* out) {
    T sum{};
    for (std::size_t i = 0; i != n; ++i) {
      T const value = f(i);
      out[i] = sum;
      sum = static_cast<T>(sum + value);
    }
    return sum;
  }

  template <class F, class T, class Op>
  T inclusive_scan_of(std::size_t n, F const& f, T* out, Op const& op,
                      std::type_identity_t<T> /*neutral*/, std::type_identity_t<T> carry) {
    for (std::size_t i = 0; i != n; ++i) out[i] = carry = op(carry, f(i));
    return carry;
  }

  template <class F>
  void once(F const& f) {
    f();
  }

  /// Blocks run one after the other.
  [[nodiscard]] bool is_last_of(std::size_t blocks, std::uint32_t* arrived) {
    if (++*arrived != blocks) return false;
    *arrived = 0;
    return true;
  }

  template <class T>
  [[nodiscard]] T* take(std::size_t count) {
    std::size_t const bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    if (used_ + bytes + alignment > shared_.size()) {
      throw std::length_error("serial_block: the shared memory of the block is too small");
    }
    auto const base = reinterpret_cast<std::uintptr_t>(shared_.data());
    std::size_t const padding = static_cast<std::size_t>(0 - base) & (alignment - 1);
    T* const result = reinterpret_cast<T*>(shared_.data() + padding + used_);
    used_ += bytes;
    return result;
  }

  template <class Key>
  void sort_numbered(Key* keys, std::uint32_t* numbers, std::size_t n) {
    if (n > std::size_t{16} * threads_) {
      throw std::length_error("serial_block: too many keys for a sort in the block");
    }
    std::vector<std::pair<Key, std::uint32_t>> pairs(n);
    for (std::size_t i = 0; i != n; ++i) pairs[i] = {keys[i], static_cast<std::uint32_t>(i)};
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 0; i != n; ++i) {
      keys[i] = pairs[i].first;
      numbers[i] = pairs[i].second;
    }
  }

  /// The alignment of each array in the shared memory, in bytes.
  static constexpr std::size_t alignment = 16;

 private:
  unsigned threads_;
  std::vector<unsigned char> shared_;
  std::size_t used_ = 0;
  visit_order order_;
  std::uint64_t seed_;
};

#pragma GCC visibility pop

}  // namespace test
