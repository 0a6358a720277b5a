// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shufflers on 64-bit and 32-bit items, each against the plain loop that it replaces.

#include "compare.hpp"
#include "yardsticks.hpp"

#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

template <class Item, class Shuffle, class Yardstick>
void shuffle(benchmark::State& state) {
  std::vector<Item> items(bench::size_of(state));
  std::iota(items.begin(), items.end(), Item{0});
  std::uint64_t round = 0;
  bench::compare(state, Yardstick(items.size()), [&] {
    Shuffle{}(std::span<Item>(items), round++);
    benchmark::ClobberMemory();
    return items.data();
  });
}

namespace rng = omnibal::rng;

BENCHMARK(shuffle<std::uint64_t, rng::fisher_yates, bench::plain_shuffle>)
    ->Name("fisher_yates/64_bit")
    ->Apply(bench::sizes);
BENCHMARK(shuffle<std::uint32_t, rng::fisher_yates, bench::plain_shuffle>)
    ->Name("fisher_yates/32_bit")
    ->Apply(bench::sizes);
BENCHMARK(shuffle<std::uint64_t, rng::numpy_shuffle, bench::numpy_plain_shuffle>)
    ->Name("numpy_shuffle/64_bit")
    ->Apply(bench::sizes);
BENCHMARK(shuffle<std::uint64_t, rng::feistel, bench::plain_shuffle>)
    ->Name("feistel/64_bit")
    ->Apply(bench::sizes);

}  // namespace
