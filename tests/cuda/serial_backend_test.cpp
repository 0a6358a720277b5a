// SPDX-License-Identifier: Apache-2.0
#include "support/serial_backend.hpp"

#include "list_order.hpp"

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/exclusive_sum.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::gpu::detail::scratch_meter;
using test::serial_backend;
using test::serial_block;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

struct note_visit {
  std::vector<std::size_t>* visited;
  void operator()(std::size_t i) const { visited->push_back(i); }
};

// A step with a race: each element takes what its left neighbor has.
struct take_left {
  std::uint32_t* values;
  void operator()(std::size_t i) const {
    if (i != 0) values[i] = values[i - 1];
  }
};

struct plus {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a + b; }
};

struct square {
  std::uint32_t operator()(std::size_t i) const { return static_cast<std::uint32_t>(i * i); }
};

// Reverses the part of an array that a block owns through its shared memory, and sums it.
struct reverse_tiles {
  std::uint32_t* data;
  std::uint32_t* sums;
  std::size_t tile;

  template <class Block>
  void operator()(Block& block, std::size_t index) const {
    std::uint32_t* const part = data + index * tile;
    auto* const copy = block.template take<std::uint32_t>(tile);
    auto* const total = block.template take<std::uint32_t>(1);
    block.for_each(tile, [&](std::size_t i) { copy[i] = part[i]; });
    block.for_each(tile, [&](std::size_t i) { part[i] = copy[tile - 1 - i]; });
    std::uint32_t const sum = block.reduce(
        tile, [&](std::size_t i) { return part[i]; }, plus{}, std::uint32_t{0});
    block.once([&] { *total = sum; });
    block.for_each(1, [&](std::size_t) { sums[index] = *total; });
  }
};

struct take_too_much {
  template <class Block>
  void operator()(Block& block, std::size_t) const {
    static_cast<void>(block.template take<std::uint32_t>(4));
    static_cast<void>(block.template take<std::uint32_t>(1));
  }
};

}  // namespace

TEST_CASE("every order visits every index once, and the orders differ") {
  test::list_set<std::vector<std::size_t>> different;
  for (visit_order const order : orders) {
    serial_backend backend(order, 5);
    std::vector<std::size_t> visited;
    backend.for_each(100, note_visit{&visited});
    different.insert(visited);
    REQUIRE(std::set<std::size_t>(visited.begin(), visited.end()).size() == 100);
    REQUIRE(visited.size() == 100);
    CHECK(backend.launches() == 1);
    backend.for_each(0, note_visit{&visited});
    CHECK(backend.launches() == 1);
  }
  CHECK(different.size() == 3);
}

TEST_CASE("a step whose indices depend on each other is not the same in every order") {
  test::list_set<std::vector<std::uint32_t>> different;
  for (visit_order const order : orders) {
    serial_backend backend(order);
    std::vector<std::uint32_t> values(50);
    std::iota(values.begin(), values.end(), 0u);
    backend.for_each(values.size(), take_left{values.data()});
    different.insert(values);
  }
  CHECK(different.size() == 3);
}

TEST_CASE("scratch is poisoned, aligned, and measured as it is used") {
  auto const algorithm = [](auto& backend) {
    auto* const words = backend.template scratch<std::uint32_t>(100);
    auto* const bytes = backend.template scratch<std::uint8_t>(1);
    auto* const none = backend.template scratch<std::uint64_t>(0);
    backend.fill_zero(words, 1);
    return std::make_pair(words, reinterpret_cast<std::uintptr_t>(bytes) |
                                     reinterpret_cast<std::uintptr_t>(words) |
                                     reinterpret_cast<std::uintptr_t>(none));
  };
  serial_backend backend;
  scratch_meter meter;
  auto const [words, addresses] = algorithm(backend);
  CHECK(words[0] == 0);
  CHECK(words[1] == 0xcdcdcdcdu);
  CHECK(addresses % 256 == 0);
  CHECK(algorithm(meter).second % 256 == 0);
  CHECK(backend.scratch_bytes() == 512 + 256);
  CHECK(meter.scratch_bytes() == backend.scratch_bytes());
}

TEST_CASE("sums of any number of tiles") {
  for (visit_order const order : orders) {
    serial_backend backend(order, 9);
    for (std::size_t const n : {0u, 1u, 4u, 4096u, 4097u, 20'000u}) {
      std::vector<std::uint32_t> out(n);
      omnibal::gpu::detail::exclusive_sum_of(backend, n, square{}, out.data());
      std::uint32_t sum = 0;
      for (std::uint32_t i = 0; i != n; ++i) {
        REQUIRE(out[i] == sum);
        sum += i * i;
      }
    }
  }
}

TEST_CASE("sorting by some of the bits is stable") {
  serial_backend backend;
  std::vector<std::uint32_t> keys{0x21, 0x12, 0x11, 0x22};
  std::vector<std::uint32_t> values{0, 1, 2, 3};
  backend.sort_pairs(keys.data(), values.data(), 4, 0, 4);
  CHECK(keys == std::vector<std::uint32_t>{0x21, 0x11, 0x12, 0x22});
  CHECK(values == std::vector<std::uint32_t>{0, 2, 1, 3});
  backend.sort_pairs(keys.data(), values.data(), 4, 4, 8);
  CHECK(keys == std::vector<std::uint32_t>{0x11, 0x12, 0x21, 0x22});
  CHECK(values == std::vector<std::uint32_t>{2, 1, 0, 3});
}

TEST_CASE("the phases of a block see what the phase before wrote") {
  for (visit_order const order : orders) {
    serial_backend backend(order, 3);
    std::vector<std::uint32_t> data{1, 2, 3, 4, 5, 6};
    std::vector<std::uint32_t> sums(2);
    backend.for_each_block<64>(2, 32, reverse_tiles{data.data(), sums.data(), 3});
    CHECK(data == std::vector<std::uint32_t>{3, 2, 1, 6, 5, 4});
    CHECK(sums == std::vector<std::uint32_t>{6, 15});
  }
}

TEST_CASE("a block sums and sorts in place, and knows how much shared memory it has") {
  serial_block block(32, 64, visit_order::backward, 1);
  std::uint32_t values[] = {4, 0, 5};
  CHECK(block.exclusive_sum(values, 3) == 9);
  CHECK(values[2] == 4);
  std::uint32_t keys[] = {2, 1, 2, 0};
  std::uint32_t indices[4];
  block.sort_numbered(keys, indices, 4);
  CHECK(std::vector<std::uint32_t>(keys, keys + 4) == std::vector<std::uint32_t>{0, 1, 2, 2});
  CHECK(std::vector<std::uint32_t>(indices, indices + 4) == std::vector<std::uint32_t>{3, 1, 0, 2});

  serial_backend backend;
  CHECK_NOTHROW(backend.for_each_block<32>(1, 32, take_too_much{}));
  CHECK_THROWS_AS(backend.for_each_block<32>(1, 31, take_too_much{}), std::length_error);
}
