// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOT CUB: a stand-in for its radix sorts.

#include "../submit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace cub {

/// Two arrays, of which one holds the values.
template <class T>
struct DoubleBuffer {
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() const { return d_buffers[selector]; }
  T* Alternate() const { return d_buffers[1 - selector]; }

  T* d_buffers[2];
  int selector = 0;
};

struct DeviceRadixSort {
  template <class Key, class Value>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, Key const* keys, Key* sorted,
                               Value const* values, Value* moved, std::uint32_t n, int begin_bit,
                               int end_bit, cudaStream_t stream) {
    static_assert(std::is_unsigned_v<Key>);
    return stand_in::submit(temporary, bytes, n, stream, [=] {
      auto const order = sorted_order(keys, n, begin_bit, end_bit);
      for (std::size_t i = 0; i != n; ++i) sorted[i] = keys[order[i]];
      for (std::size_t i = 0; i != n; ++i) moved[i] = values[order[i]];
    });
  }

  template <class Key, class Value>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, std::uint32_t n, int begin_bit,
                               int end_bit, cudaStream_t stream) {
    bool const moves = is_odd(begin_bit, end_bit);
    Key* const from = keys.Current();
    Key* const spare = keys.Alternate();
    Value* const from_values = values.Current();
    Value* const spare_values = values.Alternate();
    if (temporary != nullptr && moves) {
      keys.selector = 1 - keys.selector;
      values.selector = 1 - values.selector;
    }
    return stand_in::submit(temporary, bytes, n, stream, [=] {
      auto const order = sorted_order(from, n, begin_bit, end_bit);
      place(from, spare, order, moves);
      place(from_values, spare_values, order, moves);
    });
  }

 private:
  /// Whether passes of eight bits end in the other array.
  static bool is_odd(int begin_bit, int end_bit) { return (end_bit - begin_bit + 7) / 8 % 2 != 0; }

  template <class Key>
  static std::vector<std::uint32_t> sorted_order(Key const* keys, std::size_t n, int begin_bit,
                                                 int end_bit) {
    std::vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    int const bits = end_bit - begin_bit;
    if (bits == 0) return order;
    auto const digits = [&](std::uint32_t i) {
      return static_cast<std::uint64_t>(keys[i]) >> begin_bit &
             (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      return digits(left) < digits(right);
    });
    return order;
  }

  /// What is left in the other array is anything.
  template <class T>
  static void place(T* from, T* spare, std::vector<std::uint32_t> const& order, bool moves) {
    std::vector<T> sorted;
    for (std::uint32_t const i : order) sorted.push_back(from[i]);
    stand_in::spoil(from, order.size() * sizeof(T));
    stand_in::spoil(spare, order.size() * sizeof(T));
    std::copy(sorted.begin(), sorted.end(), moves ? spare : from);
  }
};

}  // namespace cub
