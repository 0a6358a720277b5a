#pragma once

/// \file
/// The twin of a grid of blocks on one host thread.

#include <omnibal/cuda/detail/serial_block.hpp>
#include <omnibal/cuda/detail/visit_order.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

/// Blocks that all run at once and work in phases: what `serial_block` is for one block. Every call
/// ends with a barrier for all blocks. What is not inside a call every thread computes for itself:
/// it may read what a phase wrote, and no phase may change that before the next barrier but one.
class serial_grid {
 public:
  serial_grid(unsigned threads, std::size_t shared_bytes, visit_order order, std::uint64_t seed)
      : threads_(threads), shared_bytes_(shared_bytes), order_(order), seed_(seed) {}

  /// `f(i)` for all `i < n`, in any order, at once.
  template <class F>
  void for_each(std::size_t n, F const& f) {
    visit(n, order_, seed_++, f);
  }

  /// `f(block, i)` for all `i < n`, in any order, at once; a block as a whole runs each, with shared
  /// memory of its own.
  template <class F>
  void for_each_block(std::size_t n, F const& f) {
    visit(n, order_, seed_++, [&](std::size_t i) {
      serial_block block(threads_, shared_bytes_, order_, seed_ + i);
      f(block, i);
    });
  }

  /// `op` over `init` and `f(i)` for all `i < n`. `op` is associative and commutative.
  template <class F, class Op, class T>
  [[nodiscard]] T reduce(std::size_t n, F const& f, Op const& op, T init) {
    visit(n, order_, seed_++, [&](std::size_t i) { init = op(init, f(i)); });
    return init;
  }

  /// Replaces each element by `op` over the elements up to it; returns the last, or `neutral` where
  /// there is none. `op` is associative and commutative, `neutral` its neutral element.
  template <class T, class Op>
  T inclusive_scan(T* data, std::size_t n, Op const& op, std::type_identity_t<T> neutral) {
    for (std::size_t i = 0; i != n; ++i) data[i] = neutral = op(neutral, data[i]);
    return neutral;
  }

  /// The number of indices below `n` before the first one for which `holds` is false; all after that
  /// are false too. No barrier for the other blocks.
  template <class Predicate>
  [[nodiscard]] std::size_t partition_point(std::size_t n, Predicate const& holds) {
    std::size_t first = 0;
    while (first != n) {
      std::size_t const middle = first + (n - first) / 2;
      if (holds(middle)) {
        first = middle + 1;
      } else {
        n = middle;
      }
    }
    return first;
  }

  /// One thread calls `f()`.
  template <class F>
  void once(F const& f) {
    f();
  }

 private:
  unsigned threads_;
  std::size_t shared_bytes_;
  visit_order order_;
  std::uint64_t seed_;
};

}  // namespace omnibal::inline v0::gpu::detail
