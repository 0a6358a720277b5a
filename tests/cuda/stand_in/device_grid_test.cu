// SPDX-License-Identifier: Apache-2.0
// The device's own grid against the serial one.

#include "../support/serial_grid.hpp"
#include "catch.hpp"
#include "run_block.hpp"

#include <omnibal/rng/engine.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace {

using stand_in::orders;
using test::serial_grid;
using test::visit_order;

struct larger {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a < b ? b : a; }
};
struct plus {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

/// Every phase of a grid; `digest` gets all that it gives.
struct all_phases {
  std::uint64_t* data;
  std::uint64_t* copy;
  std::uint64_t* tiles;
  std::uint64_t* digest;
  std::size_t n;

  static constexpr std::size_t tile = 50;

  template <class Grid>
  void operator()(Grid& grid) const {
    grid.for_each(n, [&](std::size_t i) { copy[i] = data[i]; });
    grid.for_each(n, [&](std::size_t i) { data[i] = copy[n - 1 - i] ^ 1u; });
    std::uint64_t const largest = grid.reduce(
        n, [&](std::size_t i) { return data[i]; }, larger{}, std::uint64_t{3});
    std::uint64_t const sum = grid.reduce(
        n, [&](std::size_t i) { return data[i]; }, plus{}, std::uint64_t{100});
    std::uint64_t const total = grid.inclusive_scan_of(
        n, [&](std::size_t i) { return data[i]; }, data, plus{}, 0);
    std::uint64_t const most = grid.inclusive_scan_of(
        n, [&](std::size_t i) { return copy[i]; }, copy, larger{}, 0);
    std::size_t const tile_count = (n + tile - 1) / tile;
    grid.for_each_block(tile_count, [&](auto& block, std::size_t t) {
      std::size_t const here = n - t * tile < tile ? n - t * tile : tile;
      auto* const shared = block.template take<std::uint64_t>(tile);
      block.for_each(here, [&](std::size_t i) { shared[i] = data[t * tile + i]; });
      std::uint64_t const all = block.reduce(
          here, [&](std::size_t i) { return shared[here - 1 - i]; }, plus{}, std::uint64_t{0});
      block.once([&] { tiles[t] = all; });
    });
    std::size_t points = 0;
    for (std::size_t const limit : {n, n / 2, n / 3, std::size_t{0}, n == 0 ? 0 : n - 1}) {
      points = 31 * points + grid.partition_point(n, [&](std::size_t i) { return i < limit; });
    }
    std::uint64_t const answer = largest + 3 * sum + 5 * total + 7 * most + 11 * points;
    grid.for_each(n + 1, [&](std::size_t i) { digest[i] = answer; });
    grid.once([&] { digest[n + 1] = tile_count; });
  }
};

struct outcome {
  std::vector<std::uint64_t> data;
  std::vector<std::uint64_t> copy;
  std::vector<std::uint64_t> tiles;
  std::vector<std::uint64_t> digest;
  friend bool operator==(outcome const&, outcome const&) = default;
};

outcome start(std::size_t n) {
  omnibal::rng::engine words(n);
  outcome result;
  for (std::size_t i = 0; i != n; ++i) result.data.push_back(words() % 100'000);
  result.copy.assign(n, 0);
  result.tiles.assign(n / all_phases::tile + 1, 0);
  result.digest.assign(n + 2, 0);
  return result;
}

all_phases phases(outcome& memory, std::size_t n) {
  return {memory.data.data(), memory.copy.data(), memory.tiles.data(), memory.digest.data(), n};
}

template <int Threads>
void check_grid(unsigned blocks, std::size_t n) {
  CAPTURE(Threads, blocks, n);
  constexpr std::size_t shared_bytes = 8 * all_phases::tile + 16;
  outcome on_device = start(n);
  outcome expected = on_device;
  serial_grid twin(Threads, shared_bytes, visit_order::forward, 0);
  phases(expected, n)(twin);
  stand_in::run_grid<Threads>(blocks, shared_bytes, phases(on_device, n));
  CHECK(on_device == expected);
}

}  // namespace

TEST_CASE("a grid of the device does what the serial one does") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  for (std::size_t const n : {0u, 1u, 31u, 32u, 33u, 64u, 100u, 500u}) {
    check_grid<32>(1, n);
    check_grid<32>(3, n);
  }
  check_grid<64>(2, 1000);
  check_grid<64>(1, 129);
  check_grid<32>(5, 2000);
}

TEST_CASE("partition points are found among any number of indices") {
  for (std::size_t const n :
       {0u, 1u, 2u, 31u, 32u, 33u, 34u, 64u, 65u, 1023u, 1024u, 1025u, 1090u}) {
    std::array<std::size_t, 32> wrong{};
    stand_in::run_grid<32>(1, 0, [&](auto& grid) {
      std::size_t const stride = n < 50 ? 1 : n / 23;
      for (std::size_t k = 0; k <= n / stride + 1; ++k) {
        std::size_t const limit = k * stride < n ? k * stride : n;
        std::size_t const found = grid.partition_point(n, [&](std::size_t i) { return i < limit; });
        if (found != limit) ++wrong[threadIdx.x];
      }
    });
    CAPTURE(n);
    std::size_t all_wrong = 0;
    for (std::size_t const count : wrong) all_wrong += count;
    CHECK(all_wrong == 0);
  }
}
