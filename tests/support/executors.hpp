// SPDX-License-Identifier: Apache-2.0
#pragma once

// Executors that call their bodies in other orders and on other threads.

#include <omnibal/rng/engine.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

namespace test {

struct reversed_executor {
  void operator()(std::size_t count, std::function<void(std::size_t)> const& body) const {
    while (count-- != 0) body(count);
  }
};

struct random_executor {
  std::uint64_t seed;

  void operator()(std::size_t count, auto const& body) const {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    omnibal::rng::engine words(seed);
    for (std::size_t n = count; n > 1; --n) {
      std::swap(order[n - 1], order[static_cast<std::size_t>(omnibal::rng::below(words, n))]);
    }
    for (std::size_t const i : order) body(i);
  }
};

struct threads_executor {
  std::size_t threads;

  void operator()(std::size_t count, auto const& body) const {
    std::atomic<std::size_t> next = 0;
    auto const work = [&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
  }
};

/// Calls `check` with each executor.
inline void with_executors(std::uint64_t seed, auto const& check) {
  check(reversed_executor{});
  check(random_executor{seed});
  check(threads_executor{1});
  check(threads_executor{2});
  check(threads_executor{3});
}

}  // namespace test
