// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOT CUB: a stand-in for its reductions.

#include "../submit.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

namespace cub {

struct DeviceReduce {
  /// In a random order, which the operators given to CUB must allow.
  template <class In, class Out, class Op, class T>
  static cudaError_t Reduce(void* temporary, std::size_t& bytes, In in, Out out, std::uint32_t n,
                            Op op, T init, cudaStream_t stream) {
    return stand_in::submit(temporary, bytes, n, stream, [=] {
      std::vector<T> values;
      for (std::size_t i = 0; i != n; ++i) values.push_back(stand_in::element(in, i));
      std::shuffle(values.begin(), values.end(), std::mt19937_64(n));
      while (values.size() > 1) {
        std::size_t const pairs = values.size() / 2;
        for (std::size_t k = 0; k != pairs; ++k) {
          values[k] = op(values[k], values[values.size() - 1 - k]);
        }
        values.resize(values.size() - pairs);
      }
      *out = values.empty() ? init : op(init, values[0]);
    });
  }

  template <class In, class Out>
  static cudaError_t Sum(void* temporary, std::size_t& bytes, In in, Out out, std::uint32_t n,
                         cudaStream_t stream) {
    using value = std::remove_reference_t<decltype(*out)>;
    return Reduce(temporary, bytes, in, out, n, std::plus<value>{}, value{}, stream);
  }
};

}  // namespace cub
