// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sets of samples on which packers fail most easily. The same seed gives the same samples
// everywhere.

#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace test {

class random_amounts {
 public:
  explicit random_amounts(std::uint64_t seed) : words_(seed) {}

  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    auto const width = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(omnibal::rng::below(words_, width));
  }

  /// In [0, limit], mostly far below it.
  std::int64_t heavy_tail(std::int64_t limit) { return between(0, limit >> between(0, 12)); }

 private:
  omnibal::rng::engine words_;
};

template <std::size_t R>
struct sample_set {
  std::string name;
  omnibal::resources<R> capacity;
  std::vector<omnibal::resources<R>> samples;
};

/// 4096 tokens, 9 images, 1000 and 300 of something else.
template <std::size_t R>
constexpr omnibal::resources<R> usual_capacity() {
  constexpr std::int64_t amounts[] = {4096, 9, 1000, 300};
  static_assert(R <= std::size(amounts));
  omnibal::resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = amounts[r];
  return result;
}

/// `amount(i, r)` is what sample i takes of resource r.
template <std::size_t R, class Amount>
std::vector<omnibal::resources<R>> make_samples(std::size_t count, Amount const& amount) {
  std::vector<omnibal::resources<R>> samples(count);
  for (std::size_t i = 0; i != count; ++i) {
    for (std::size_t r = 0; r != R; ++r) samples[i][r] = amount(i, r);
  }
  return samples;
}

/// Sets of at most `count` samples under `usual_capacity`.
template <std::size_t R>
std::vector<sample_set<R>> small_sets(std::uint64_t seed, std::size_t count) {
  auto const capacity = usual_capacity<R>();
  auto const last = static_cast<std::int64_t>(count);
  random_amounts random(seed);
  std::vector<sample_set<R>> sets;
  auto const add = [&](std::string name, std::size_t size, auto const& amount) {
    sets.push_back(
        {std::move(name), capacity, make_samples<R>(size, [&](std::size_t i, std::size_t r) {
           return amount(static_cast<std::int64_t>(i), capacity[r], r);
         })});
  };
  using number = std::int64_t;

  add("empty", 0, [](number, number, std::size_t) { return number{0}; });
  add("one", 1, [](number, number limit, std::size_t) { return limit / 2; });
  add("all equal", count, [](number, number limit, std::size_t) { return limit / 3; });
  add("one giant", count, [&](number i, number limit, std::size_t) {
    return i == last / 2 ? limit : random.between(0, limit / 50 + 1);
  });
  add("zeros", count, [](number, number, std::size_t) { return number{0}; });
  add("the capacity", count, [](number, number limit, std::size_t) { return limit; });
  add("near the capacity", count,
      [&](number, number limit, std::size_t) { return random.between(limit - 1, limit + 1); });
  add("all oversized", count, [](number i, number limit, std::size_t r) {
    return r == static_cast<std::size_t>(i) % R ? limit + 1 : 0;
  });
  add("all tiny", count,
      [&](number, number limit, std::size_t) { return random.between(0, limit / 100 + 1); });
  add("all huge", count,
      [&](number, number limit, std::size_t) { return random.between(limit / 2 + 1, limit); });
  add("two sizes", count,
      [](number i, number limit, std::size_t) { return i % 2 == 0 ? limit / 3 + 1 : limit / 2; });
  add("heavy tail", count,
      [&](number, number limit, std::size_t) { return random.heavy_tail(limit + limit / 2); });
  add("ascending", count,
      [&](number i, number limit, std::size_t) { return limit * (i + 1) / last; });
  add("descending", count,
      [&](number i, number limit, std::size_t) { return limit * (last - i) / last; });
  add("independent", count,
      [&](number, number limit, std::size_t) { return random.between(0, limit); });
  add("conflicting", count, [&](number i, number limit, std::size_t r) {
    return r == static_cast<std::size_t>(i) % R ? random.between(limit / 2, limit)
                                                : random.between(0, limit / 8);
  });
  add("small", count,
      [&](number, number limit, std::size_t) { return random.between(1, limit / 4); });
  return sets;
}

/// Every capacity and amount times `factor`, and up to `noise` more of each amount.
template <std::size_t R>
sample_set<R> scaled(sample_set<R> set, std::int64_t factor, std::int64_t noise = 0) {
  random_amounts random(static_cast<std::uint64_t>(factor));
  set.name += ", times " + std::to_string(factor) + (noise == 0 ? "" : " with noise");
  for (auto& limit : set.capacity.amounts) limit *= factor;
  for (auto& sample : set.samples) {
    for (auto& amount : sample.amounts) amount = amount * factor + random.between(0, noise);
  }
  return set;
}

/// The small sets, and the same with capacities of about 2^40 and 2^62: as multiples, and with
/// noise so that the amounts have no common divisor.
template <std::size_t R>
std::vector<sample_set<R>> all_sets(std::uint64_t seed, std::size_t count) {
  std::vector<sample_set<R>> sets = small_sets<R>(seed, count);
  std::size_t const small_count = sets.size();
  for (unsigned const shift : {28u, 50u}) {
    std::int64_t const factor = std::int64_t{1} << shift;
    for (std::size_t s = 0; s != small_count; ++s) {
      sets.push_back(scaled(sets[s], factor));
      sets.push_back(scaled(sets[s], factor, factor / 16));
    }
  }
  return sets;
}

}  // namespace test
