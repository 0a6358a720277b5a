// SPDX-License-Identifier: Apache-2.0
// How much memory the packers and the scheduler take at most, results included, by counting every
// allocation of this program.

#include "packers.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>
#include <malloc.h>

namespace {

std::size_t bytes_in_use = 0;
std::size_t max_bytes = 0;

}  // namespace

// Inlined, g++ 12 takes them for a mismatched pair of allocation and release.
[[gnu::noinline]] void* operator new(std::size_t size, std::nothrow_t const&) noexcept {
  void* const block = std::malloc(size);
  bytes_in_use += malloc_usable_size(block);
  max_bytes = std::max(max_bytes, bytes_in_use);
  return block;
}
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* const block = operator new(size, std::nothrow)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* pointer) noexcept {
  bytes_in_use -= malloc_usable_size(pointer);
  std::free(pointer);
}
[[gnu::noinline]] void operator delete(void* pointer, std::size_t) noexcept {
  operator delete(pointer);
}

namespace {

/// The most bytes in use while `body` runs and its result lives, beyond those in use before.
template <class Body>
std::size_t peak_bytes(Body const& body) {
  std::size_t const before = bytes_in_use;
  max_bytes = before;
  auto const result = body();
  static_cast<void>(result);
  return max_bytes - before;
}

template <std::size_t R>
void check_memory(test::sample_set<R> const& set) {
  std::size_t const count = set.samples.size();
  auto const check = [&](std::string const& algorithm, auto const& body) {
    std::size_t const bytes = peak_bytes(body);
    INFO(algorithm << ", " << set.name << ": "
                   << static_cast<double>(bytes) / static_cast<double>(count)
                   << " bytes per sample");
    CHECK(bytes <= (24 + 8 * R) * count + 512 * 1024);
    CHECK(bytes >= 4 * count);
  };
  auto const most = omnibal::reaches_most(set.capacity);
  omnibal::isf_options const options{.rounds = 2};
  auto const demand = std::identity{};
  test::for_each_packer([&](std::string const& name, auto const& pack) {
    check(name, [&] { return pack(set.samples, demand, set.capacity); });
  });
  check("isf with fisher_yates", [&] {
    return omnibal::isf(set.samples, demand, set.capacity, options, most,
                        omnibal::rng::fisher_yates{1});
  });
  check("isf with numpy_shuffle", [&] {
    return omnibal::isf(set.samples, demand, set.capacity, options, most,
                        omnibal::rng::numpy_shuffle{1});
  });
  check("packing_bound", [&] { return omnibal::packing_bound(set.samples, demand, set.capacity); });
}

}  // namespace

TEMPLATE_TEST_CASE("packers take at most 24 + 8R bytes per sample", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  constexpr std::size_t count = 150'000;
  constexpr std::int64_t factor = std::int64_t{1} << 28;
  std::set<std::string> const chosen{"zeros", "one giant", "all huge", "heavy tail", "ascending"};
  for (auto const& set : test::small_sets<TestType::value>(1, count)) {
    if (!chosen.contains(set.name)) continue;
    check_memory(set);
    check_memory(test::scaled(set, factor));
    check_memory(test::scaled(set, factor, factor / 16));
  }
}

TEMPLATE_TEST_CASE(
    "schedules take at most 24 + 14R bytes per group, 10R more with several per rank", "[slow]",
    (std::integral_constant<std::size_t, 1>), (std::integral_constant<std::size_t, 2>),
    (std::integral_constant<std::size_t, 4>)) {
  constexpr std::size_t kinds = TestType::value;
  constexpr std::size_t count = 150'000;
  std::set<std::string> const chosen{"zeros", "one giant"};
  for (auto const& set : test::small_sets<kinds>(1, count)) {
    if (!chosen.contains(set.name)) continue;
    for (std::uint32_t const of_rank : {1u, 2u, 4u, 16u}) {
      for (bool const positions : {false, true}) {
        std::size_t const bytes = peak_bytes([&] {
          return omnibal::schedule_steps(set.samples, 8,
                                         {.groups_per_rank = of_rank, .even_positions = positions});
        });
        INFO(set.name << ", " << of_rank << " groups per rank"
                      << (positions ? ", even positions: " : ": ")
                      << static_cast<double>(bytes) / static_cast<double>(count)
                      << " bytes per group");
        CHECK(bytes <= (24 + (of_rank == 1 ? 14 : 24) * kinds) * count + 512 * 1024);
        CHECK(bytes >= 8 * count);
      }
    }
  }
}
