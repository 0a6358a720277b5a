#pragma once

/// \file
/// Runs the algorithms of cuda/ on one host thread, for tests: the twin of the device backend.

#include <omnibal/cuda/detail/grid_exchange.hpp>
#include <omnibal/cuda/detail/serial_block.hpp>
#include <omnibal/cuda/detail/serial_grid.hpp>
#include <omnibal/cuda/detail/visit_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::gpu::detail {

/// A backend runs parallel steps one after the other; `device_backend` has the same members. Every
/// count is known on the host; one that only the device knows lives in memory, and the functors look
/// at it. So an algorithm is a fixed sequence of launches and can be captured in a graph.
///
/// This one visits the indices of a step in a chosen order: an algorithm without races gives the
/// same for each. Scratch is filled with the byte 0xCD, each array in an allocation of its own.
class serial_backend {
 public:
  explicit serial_backend(visit_order order = visit_order::forward, std::uint64_t seed = 0)
      : order_(order), seed_(seed) {}

  /// `count` elements that are valid until the algorithm ends, not initialised.
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

  /// `f(i)` for all `i < n`, in any order, at once.
  template <class F>
  void for_each(std::size_t n, F const f) {
    static_assert(std::is_trivially_copyable_v<F>);
    if (n == 0) return;
    visit(n, order_, next_seed(), f);
  }

  /// `f(block, index)` for `blocks` blocks of `Threads` threads with `shared_bytes` of shared memory
  /// each, in any order, at once. An array in the shared memory takes a multiple of 16 bytes.
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

  /// `f(grid)` once, with a grid of blocks of `Threads` threads that all run at once, as many as
  /// `items` indices keep busy; each block has `shared_bytes` of shared memory.
  template <int Threads, class F>
  void for_grid(std::size_t /*items*/, std::size_t shared_bytes, F const f) {
    static_assert(std::is_trivially_copyable_v<F>);
    static_assert(Threads % 32 == 0 && Threads >= 32 && Threads <= 1024);
    static_cast<void>(scratch<unsigned char>(grid_exchange_bytes));
    serial_grid grid(Threads, shared_bytes, order_, next_seed());
    f(grid);
  }

  /// `out[i]` is the sum of `f(0) .. f(i - 1)`; `f` may read `out[i]` for f(i) alone.
  template <class F, class T>
  void exclusive_sum_of(std::size_t n, F const f, T* out) {
    if (n == 0) return;
    ++launches_;
    T sum{};
    for (std::size_t i = 0; i != n; ++i) {
      T const value = f(i);
      out[i] = sum;
      sum = static_cast<T>(sum + value);
    }
  }

  /// `out[i]` is `op` over `in[0 .. i]`. `op` is associative. `out` may equal `in`.
  template <class T, class Op>
  void inclusive_scan(T const* in, T* out, std::size_t n, Op const op) {
    inclusive_scan_of(n, element<T>{in}, out, op);
  }
  /// `out[i]` is `op` over `f(0) .. f(i)`; `f` may read `out[i]` for f(i) alone.
  template <class F, class T, class Op>
  void inclusive_scan_of(std::size_t n, F const f, T* out, Op const op) {
    if (n == 0) return;
    ++launches_;
    T state = f(0);
    out[0] = state;
    for (std::size_t i = 1; i != n; ++i) {
      T const value = f(i);
      state = op(state, value);
      out[i] = state;
    }
  }

  /// `*out` is `op` over `init` and `f(0) .. f(n - 1)`. `op` is associative and commutative.
  template <class F, class T, class Op>
  void reduce_of(std::size_t n, F const f, T* out, Op const op, T init) {
    visit(n, order_, next_seed(), [&](std::size_t i) { init = op(init, f(i)); });
    *out = init;
  }

  /// Sorts by the bits [begin_bit, end_bit) of unsigned keys, ascending and stably, in place.
  template <class Key, class Value>
  void sort_pairs(Key* keys, Value* values, std::size_t n, int begin_bit = 0,
                  int end_bit = static_cast<int>(8 * sizeof(Key))) {
    if (n == 0) return;
    std::vector<std::size_t> const order = sorted_order(keys, n, begin_bit, end_bit);
    apply(order, keys);
    apply(order, values);
  }
  /// Sets all bytes of `n` elements to zero.
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

}  // namespace omnibal::inline v0::gpu::detail
