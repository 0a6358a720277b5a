// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs the algorithms of cuda/ on one host thread, in place of `device_backend`.

#include "serial_block.hpp"
#include "serial_grid.hpp"
#include "visit_order.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <type_traits>
#include <vector>

namespace test {

// Hidden as what it runs, of which its lambdas hold references.
#pragma GCC visibility push(hidden)

/// The members of `device_backend`. The indices of a step are visited in a chosen order: an
/// algorithm without races gives the same for each. Scratch is filled with the byte 0xCD, each
/// array in an allocation of its own.
class serial_backend {
 public:
  explicit serial_backend(visit_order order = visit_order::forward, std::uint64_t seed = 0)
      : order_(order), seed_(seed) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T* scratch(std::size_t count) {
    std::size_t const bytes = count * sizeof(T);
    scratch_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    auto* const memory = static_cast<std::byte*>(
        ::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{alignment}));
    arrays_.emplace_back(memory);
    std::memset(memory, 0xcd, bytes);
    return reinterpret_cast<T*>(memory);
  }

  template <class F>
  void for_each(std::size_t n, F const f) {
    static_assert(std::is_trivially_copyable_v<F>);
    if (n == 0) return;
    visit(n, order_, next_seed(), f);
  }

  template <int Threads, class F>
  void for_each_block(std::size_t blocks, std::size_t shared_bytes, F const f) {
    static_assert(std::is_trivially_copyable_v<F>);
    static_assert(Threads % 32 == 0 && Threads >= 32 && Threads <= 1024);
    if (blocks == 0) return;
    visit(blocks, order_, next_seed(), [&](std::size_t index) {
      serial_block block(Threads, shared_bytes, order_, seed_ + index);
      f(block, index);
    });
  }

  template <int Threads, class F>
  void for_grid(std::size_t /*threads*/, std::size_t shared_bytes, F const f) {
    static_assert(std::is_trivially_copyable_v<F>);
    static_assert(Threads % 32 == 0 && Threads >= 32 && Threads <= 1024);
    static_cast<void>(scratch<unsigned char>(omnibal::gpu::detail::grid_exchange_bytes));
    serial_grid grid(Threads, shared_bytes, order_, next_seed());
    f(grid);
  }

  template <class Key, class Value>
  void sort_pairs(Key* keys, Value* values, std::size_t n, int begin_bit = 0,
                  int end_bit = static_cast<int>(8 * sizeof(Key))) {
    if (n == 0) return;
    std::vector<std::size_t> const order = sorted_order(keys, n, begin_bit, end_bit);
    apply(order, keys);
    apply(order, values);
  }
  template <class T>
  void fill_zero(T* to, std::size_t n) {
    if (n == 0) return;
    ++launches_;
    std::memset(static_cast<void*>(to), 0, n * sizeof(T));
  }

  /// The steps run: launches of kernels, copies and fills on a device.
  [[nodiscard]] std::size_t launches() const { return launches_; }
  /// The scratch taken, each array rounded up to the alignment.
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }

  /// The alignment of each array of scratch, in bytes.
  static constexpr std::size_t alignment = 256;

 private:
  template <class T>
  struct element {
    T const* in;
    T operator()(std::size_t i) const { return in[i]; }
  };

  struct release {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{alignment});
    }
  };

  [[nodiscard]] std::uint64_t next_seed() {
    ++launches_;
    return seed_ += 0x10001;
  }

  template <class Key>
  [[nodiscard]] static std::vector<std::size_t> sorted_order(Key const* keys, std::size_t n,
                                                             int begin_bit, int end_bit) {
    static_assert(std::is_unsigned_v<Key>);
    int const bits = end_bit - begin_bit;
    Key const mask = bits >= static_cast<int>(8 * sizeof(Key))
                         ? static_cast<Key>(~Key{0})
                         : static_cast<Key>((Key{1} << bits) - 1);
    auto const digits = [&](std::size_t i) {
      return static_cast<Key>(keys[i] >> begin_bit & mask);
    };
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return digits(a) < digits(b); });
    return order;
  }

  template <class T>
  void apply(std::vector<std::size_t> const& order, T* data) {
    ++launches_;
    std::vector<T> const before(data, data + order.size());
    for (std::size_t i = 0; i != order.size(); ++i) data[i] = before[order[i]];
  }

  visit_order order_;
  std::uint64_t seed_;
  std::size_t launches_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte, release>> arrays_;
};

static_assert(omnibal::gpu::detail::grid_backend<serial_backend> &&
              omnibal::gpu::detail::thread_block<serial_block> &&
              omnibal::gpu::detail::thread_group<serial_grid> &&
              omnibal::gpu::detail::thread_team<serial_warp>);

#pragma GCC visibility pop

}  // namespace test
