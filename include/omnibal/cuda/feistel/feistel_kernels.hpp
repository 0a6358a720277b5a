// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order of the Feistel shuffler, written or applied on any backend.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

struct write_order {
  rng::permutation order;
  std::uint32_t* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = static_cast<std::uint32_t>(order(i));
  }
};

template <class T>
struct write_shuffled {
  rng::permutation order;
  T const* in;
  T* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const { out[i] = in[order(i)]; }
};

template <kernel_backend Backend>
void write_feistel_order(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                         std::uint32_t* out, std::size_t n) {
  backend.for_each(n, write_order{shuffle.order(n, round), out});
}

template <kernel_backend Backend, class T>
void feistel_shuffle(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                     T const* in, T* out, std::size_t n) {
  backend.for_each(n, write_shuffled<T>{shuffle.order(n, round), in, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
