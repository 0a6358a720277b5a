// SPDX-License-Identifier: Apache-2.0
// The device's own block against the serial one.

#include "../support/serial_block.hpp"
#include "catch.hpp"
#include "run_block.hpp"

#include <omnibal/cuda/detail/sorted_pairs.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace {

using omnibal::gpu::detail::sorted_pairs;
using stand_in::orders;
using test::serial_block;
using test::visit_order;

struct larger {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a < b ? b : a; }
};

struct both {
  std::uint64_t sum;
  std::uint32_t least;
  std::uint32_t count;
};
struct combine {
  both operator()(both const& a, both const& b) const {
    return {a.sum + b.sum, a.least < b.least ? a.least : b.least, a.count + b.count};
  }
};

/// Every phase of a block, and a digest of all that it gives.
struct all_phases {
  std::uint32_t* data;
  std::uint64_t* sums;
  std::uint64_t* digest;
  std::size_t n;

  template <class Block>
  void operator()(Block& block) const {
    auto* const copy = block.template take<std::uint32_t>(n);
    auto* const after = block.template take<std::uint64_t>(1);
    block.for_each(n, [&](std::size_t i) { copy[i] = data[i]; });
    block.for_each(n, [&](std::size_t i) { data[i] = copy[n - 1 - i] ^ 1u; });
    std::uint64_t const largest = block.reduce(
        n, [&](std::size_t i) { return std::uint64_t{data[i]}; }, larger{}, std::uint64_t{3});
    both const all = block.reduce(
        n,
        [&](std::size_t i) {
          return both{data[i], data[i], 1};
        },
        combine{}, both{5, 0xffffffffu, 0});
    // Warp i has the elements [20 i, 20 i + 45) that exist, and the last warp has none.
    auto* const of_warps = block.template take<std::uint64_t>(6);
    block.for_each_warp(6, [&](auto& warp, std::size_t i) {
      std::size_t const first = 20 * i < n ? 20 * i : n;
      std::size_t const count = i == 5 ? 0 : n - first < 45 ? n - first : 45;
      both const part = warp.reduce(
          count,
          [&](std::size_t k) {
            return both{data[first + k], data[first + k], 1};
          },
          combine{}, both{i, 77, 0});
      warp.once([&] { of_warps[i] = part.sum + part.least * 1000u + part.count; });
    });
    std::uint64_t const warps = block.reduce(
        6, [&](std::size_t i) { return of_warps[i] + i; }, larger{}, std::uint64_t{0});
    // Element i is reduced over as many others as there are, and over none.
    block.reduce_each(
        n, n, [&](std::size_t i, std::size_t j) { return data[j] < data[i] ? 1u : 0u; },
        [](std::uint32_t a, std::uint32_t b) { return a + b; }, 0u,
        [&](std::size_t i, std::uint32_t below) { copy[i] = below; });
    block.reduce_each(
        n, 0, [](std::size_t, std::size_t) { return std::uint64_t{9}; }, larger{}, std::uint64_t{2},
        [&](std::size_t i, std::uint64_t none) { sums[i] += none; });
    std::uint64_t const total = block.exclusive_sum(sums, n);
    std::uint64_t const squares = block.exclusive_sum_of(
        n, [&](std::size_t i) { return sums[i] % 97 * copy[i]; }, sums);
    std::uint64_t const last = block.inclusive_scan_of(
        n, [&](std::size_t i) { return sums[i]; }, sums, larger{}, 0, 40);
    block.once([&] {
      *after = largest + 3 * all.sum + 5 * all.least + 7 * all.count + 11 * total + 13 * warps +
               17 * squares + 19 * last;
    });
    block.for_each(n + 1, [&](std::size_t i) { digest[i] = *after; });
  }
};

struct outcome {
  std::vector<std::uint32_t> data;
  std::vector<std::uint64_t> sums;
  std::vector<std::uint64_t> digest;
  friend bool operator==(outcome const&, outcome const&) = default;
};

outcome start(std::size_t n, std::uint64_t seed, std::uint64_t values) {
  omnibal::rng::engine words(seed);
  outcome result;
  for (std::size_t i = 0; i != n; ++i) {
    result.data.push_back(static_cast<std::uint32_t>(words() % values));
    result.sums.push_back(words() % 1000);
  }
  result.digest.assign(n + 1, 0);
  return result;
}

all_phases phases(outcome& memory, std::size_t n) {
  return {memory.data.data(), memory.sums.data(), memory.digest.data(), n};
}

template <int Threads>
void check_block(std::size_t n, std::uint64_t values) {
  CAPTURE(Threads, n, values);
  outcome on_device = start(n, n, values);
  outcome expected = on_device;
  serial_block twin(Threads, 16 * n + 128, visit_order::forward, 0);
  phases(expected, n)(twin);
  all_phases const run = phases(on_device, n);
  stand_in::run_block<Threads>(16 * n + 128, run);
  CHECK(on_device == expected);
}

template <int Threads, class Key, class Of>
void check_sort(std::size_t n, Of const& of) {
  CAPTURE(Threads);
  omnibal::rng::engine words(n);
  std::vector<Key> keys(n);
  for (Key& key : keys) key = static_cast<Key>(of(words()));
  std::vector<Key> expected = keys;
  std::vector<std::uint32_t> numbers(n, 0xababababu);
  std::vector<std::uint32_t> expected_numbers = numbers;
  serial_block twin(Threads, 0, visit_order::forward, 0);
  twin.sort_numbered(expected.data(), expected_numbers.data(), n);
  stand_in::run_block<Threads>(
      0, [&](auto& block) { block.sort_numbered(keys.data(), numbers.data(), n); });
  CHECK(keys == expected);
  CHECK(numbers == expected_numbers);
}

}  // namespace

TEST_CASE("a block of the device does what the serial one does") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  for (std::size_t const n :
       {0u, 1u, 2u, 31u, 32u, 33u, 63u, 64u, 65u, 100u, 127u, 128u, 129u, 200u}) {
    check_block<32>(n, 1'000'000);
    check_block<64>(n, 7);
  }
  check_block<96>(97, 50);
  check_block<128>(300, 1'000'000'000);
}

TEST_CASE("a block numbers the keys that it sorts as the serial one does") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  for (std::size_t const n : {0u, 1u, 2u, 33u, 63u, 64u, 100u, 200u, 511u, 512u}) {
    CAPTURE(n);
    // None differ, few do in a bit far up, all do in all bits, and costs from the largest sum down.
    check_sort<32, std::uint64_t>(n, [](std::uint64_t) { return 7u; });
    check_sort<32, std::uint64_t>(n, [](std::uint64_t word) { return word >> 63 << 50 | 5u; });
    check_sort<32, std::uint64_t>(n, [](std::uint64_t word) { return word; });
    check_sort<64, std::uint64_t>(
        n, [](std::uint64_t word) { return 0x7fffffffffffffffu - word % 100'000; });
    check_sort<64, std::uint32_t>(n, [](std::uint64_t word) { return word % 64; });
    check_sort<96, std::uint32_t>(n, [](std::uint64_t word) { return word; });
  }
  check_sort<128, std::uint64_t>(2000, [](std::uint64_t word) { return word % 3000 << 20; });
}

TEST_CASE("a block merges sorted runs of pairs, and ends where it began") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  omnibal::rng::engine words(5);
  for (std::size_t const n : {0u, 1u, 2u, 3u, 4u, 63u, 64u, 65u, 200u}) {
    CAPTURE(n);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> expected;
    std::vector<std::uint64_t> keys(n);
    std::vector<std::uint32_t> values(n);
    std::vector<std::uint64_t> spare_keys(n);
    std::vector<std::uint32_t> spare_values(n);
    for (std::size_t i = 0; i != n; ++i) {
      expected.emplace_back(words() % 20, static_cast<std::uint32_t>(n - i));
    }
    std::size_t const width = n % 2 == 0 ? 1 : 4;
    for (std::size_t first = 0; first < n; first += width) {
      std::sort(expected.begin() + static_cast<std::ptrdiff_t>(first),
                expected.begin() + static_cast<std::ptrdiff_t>(std::min(first + width, n)));
    }
    stand_in::run_block<64>(0, [&](auto& block) {
      sorted_pairs pairs{keys.data(), values.data(), spare_keys.data(), spare_values.data()};
      pairs.begin_merge(n, width);
      block.for_each(n, [&](std::size_t i) {
        pairs.keys[i] = expected[i].first;
        pairs.values[i] = expected[i].second;
      });
      pairs.merge(block, n, width);
    });
    std::sort(expected.begin(), expected.end());
    for (std::size_t i = 0; i != n; ++i) {
      CHECK(expected[i] == std::pair(keys[i], values[i]));
    }
  }
}

TEST_CASE("one block of a launch is the last, and sees what the others wrote") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  constexpr unsigned blocks = 7;
  using block_type = omnibal::gpu::detail::device_block<64>;
  std::array<std::uint64_t, blocks> of_blocks{};
  std::uint64_t sum = 0;
  std::uint32_t arrived = 0;
  for (std::uint64_t round = 1; round != 3; ++round) {
    stand_in::run_threads({blocks, 64, block_type::reserved_bytes, false}, [&] {
      block_type block(stand_in::dynamic_shared_memory());
      block.once([&] { of_blocks[blockIdx.x] = round + blockIdx.x; });
      if (!block.is_last_of(blocks, &arrived)) return;
      std::uint64_t const all = block.reduce(
          blocks, [&](std::size_t b) { return of_blocks[b]; }, omnibal::gpu::detail::add{},
          std::uint64_t{0});
      block.once([&] { sum += all; });
    });
    CHECK(arrived == 0);
  }
  CHECK(sum == 21 + 7 + 21 + 14);
}

TEST_CASE("every thread of a block gets the result of a reduction and of a sum") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  std::array<std::uint64_t, 64> seen{};
  std::vector<std::uint32_t> values(40, 2);
  stand_in::run_block<64>(0, [&](auto& block) {
    std::uint64_t const largest = block.reduce(
        40, [](std::size_t i) { return std::uint64_t{i}; }, larger{}, std::uint64_t{0});
    std::uint64_t const sum = block.exclusive_sum(values.data(), 40);
    seen[threadIdx.x] = largest * 1000 + sum;
  });
  std::set<std::uint64_t> const distinct(seen.begin(), seen.end());
  CHECK(distinct == std::set<std::uint64_t>{39 * 1000 + 80});
}
