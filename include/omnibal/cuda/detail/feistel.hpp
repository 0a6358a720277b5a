#pragma once

/// \file
/// The order of the Feistel shuffler, written out or applied.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/narrow_permutation.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The permutation of `shuffle.order(n, round)`. Precondition: `n < 2^32`.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr narrow_permutation order_of(rng::feistel const& shuffle,
                                                                        std::uint32_t n,
                                                                        std::uint64_t round) {
  return {n, rng::engine(shuffle.seed, round).word(0)};
}

struct write_order {
  narrow_permutation order;
  std::uint32_t* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = order(static_cast<std::uint32_t>(i));
  }
};

template <class T>
struct write_shuffled {
  narrow_permutation order;
  T const* in;
  T* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = in[order(static_cast<std::uint32_t>(i))];
  }
};

template <class Backend>
void write_feistel_order(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                         std::uint32_t* out, std::size_t n) {
  backend.for_each(n, write_order{order_of(shuffle, static_cast<std::uint32_t>(n), round), out});
}

template <class Backend, class T>
void feistel_shuffle(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                     T const* in, T* out, std::size_t n) {
  backend.for_each(
      n, write_shuffled<T>{order_of(shuffle, static_cast<std::uint32_t>(n), round), in, out});
}

}  // namespace omnibal::inline v0::gpu::detail
