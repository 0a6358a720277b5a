// SPDX-License-Identifier: Apache-2.0
#pragma once

// A grid of blocks on one host thread, in place of `device_grid`.

#include "serial_block.hpp"
#include "visit_order.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace test {

// Hidden as what it runs, of which its lambdas hold references.
#pragma GCC visibility push(hidden)

/// The members of `device_grid`: what `serial_block` is for one block.
class serial_grid {
 public:
  serial_grid(unsigned threads, std::size_t shared_bytes, visit_order order, std::uint64_t seed)
      : threads_(threads), shared_bytes_(shared_bytes), order_(order), seed_(seed) {}

  template <class F>
  void for_each(std::size_t n, F const& f) {
    visit(n, order_, seed_++, f);
  }

  template <class F>
  void for_each_block(std::size_t n, F const& f) {
    visit(n, order_, seed_++, [&](std::size_t i) {
      serial_block block(threads_, shared_bytes_, order_, seed_ + i);
      f(block, i);
    });
  }

  template <class F, class Op, class T>
  [[nodiscard]] T reduce(std::size_t n, F const& f, Op const& op, T init) {
    visit(n, order_, seed_++, [&](std::size_t i) { init = op(init, f(i)); });
    return init;
  }

  template <class F, class T, class Op>
  T inclusive_scan_of(std::size_t n, F const& f, T* out, Op const& op,
                      std::type_identity_t<T> neutral) {
    for (std::size_t i = 0; i != n; ++i) out[i] = neutral = op(neutral, f(i));
    return neutral;
  }

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

#pragma GCC visibility pop

}  // namespace test
