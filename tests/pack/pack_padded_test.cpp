// SPDX-License-Identifier: Apache-2.0
// Padded batches: their definition, and the fewest with the least padding by brute force.

#include "error_text.hpp"
#include "packing_faults.hpp"

#include <omnibal/pack/pack_padded.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::pack_padded;
using omnibal::resources;

constexpr std::identity itself{};

/// The number of batches of a packing and the sum of their padded lengths.
using padded_result = std::pair<std::size_t, std::int64_t>;

padded_result result_of(omnibal::packing const& packed, std::vector<std::int64_t> const& lengths) {
  padded_result result{packed.groups.size(), 0};
  for (auto const group : packed.groups) {
    std::int64_t longest = 0;
    for (std::uint32_t const i : group) longest = std::max(longest, lengths[i]);
    result.second += longest * static_cast<std::int64_t>(group.size());
  }
  return result;
}

/// What is wrong with batches of two resources, empty if nothing is.
std::string padded_faults(omnibal::packing const& packed, std::vector<resources<2>> const& demands,
                          resources<2> const& capacity) {
  std::vector<std::uint32_t> seen(packed.oversized);
  for (auto const group : packed.groups) {
    resources<2> largest{};
    for (std::uint32_t const i : group) {
      for (std::size_t r = 0; r != 2; ++r) largest[r] = std::max(largest[r], demands[i][r]);
      seen.push_back(i);
    }
    for (std::size_t r = 0; r != 2; ++r) {
      if (largest[r] > capacity[r] / static_cast<std::int64_t>(group.size())) {
        return "a batch above the capacity";
      }
    }
  }
  for (std::uint32_t const i : packed.oversized) {
    if (demands[i].fits(capacity)) return "a sample that fits is oversized";
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint32_t> all(demands.size());
  std::iota(all.begin(), all.end(), 0u);
  return seen == all ? "" : "samples lost or doubled";
}

/// All ways to divide samples among batches.
class all_batches {
 public:
  all_batches(std::vector<resources<2>> const& demands, resources<2> const& capacity)
      : demands_(demands), capacity_(capacity) {}

  /// The fewest batches, and the least sum of count times the first resource.
  padded_result best() {
    place(0);
    return best_;
  }

 private:
  struct batch {
    std::int64_t count = 0;
    resources<2> largest{};
  };

  void place(std::size_t sample) {
    if (sample == demands_.size()) {
      padded_result found{batches_.size(), 0};
      for (batch const& one : batches_) found.second += one.count * one.largest[0];
      best_ = std::min(best_, found);
      return;
    }
    for (std::size_t b = 0; b <= batches_.size(); ++b) {
      bool const is_new = b == batches_.size();
      if (is_new && batches_.size() == best_.first) continue;
      batch after = is_new ? batch{} : batches_[b];
      ++after.count;
      bool fits = true;
      for (std::size_t r = 0; r != 2; ++r) {
        after.largest[r] = std::max(after.largest[r], demands_[sample][r]);
        fits = fits && after.count * after.largest[r] <= capacity_[r];
      }
      if (!fits) continue;
      if (is_new) {
        batches_.push_back(after);
        place(sample + 1);
        batches_.pop_back();
      } else {
        std::swap(batches_[b], after);
        place(sample + 1);
        std::swap(batches_[b], after);
      }
    }
  }

  std::vector<resources<2>> const& demands_;
  resources<2> capacity_;
  std::vector<batch> batches_;
  padded_result best_{std::numeric_limits<std::size_t>::max(), 0};
};

TEST_CASE("padded batches count every sample with the longest one", "[pack]") {
  std::vector<std::int64_t> const two_long{100, 10, 10, 10, 100};
  auto const three = pack_padded(two_long, itself, 150);
  CHECK(three.groups.size() == 3);
  CHECK(three.report.lower_bound == 3);
  CHECK(result_of(three, two_long) == padded_result{3, 230});
  std::vector<std::int64_t> const one_long{1, 1, 1, 1, 1, 20};
  CHECK(result_of(pack_padded(one_long, itself, 50), one_long).first == 2);
}

TEST_CASE("padded batches are the fewest, and then the least padding", "[pack]") {
  for (std::uint64_t seed = 0; seed != 4000; ++seed) {
    omnibal::rng::engine random(seed);
    auto const below = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(omnibal::rng::below(random, most));
    };
    std::vector<std::int64_t> lengths;
    std::vector<resources<2>> one;
    std::vector<resources<2>> two;
    std::int64_t const longest = 1 + below(30);
    for (auto left = below(9); left != 0; --left) {
      lengths.push_back(below(static_cast<std::uint64_t>(longest + 1)));
      one.push_back({lengths.back(), 0});
      two.push_back({lengths.back(), below(6)});
    }
    resources<2> const capacity{longest + below(60), 5 + below(12)};
    INFO("seed " << seed);
    auto const packed = pack_padded(lengths, itself, capacity[0]);
    REQUIRE(padded_faults(packed, one, capacity) == "");
    auto const best = all_batches(one, capacity).best();
    REQUIRE(result_of(packed, lengths) == best);
    REQUIRE(packed.report.lower_bound == best.first);
    // Fractions have the same batches.
    auto const halves = pack_padded(
        lengths, [](std::int64_t length) { return 0.5 * static_cast<double>(length); },
        0.5 * static_cast<double>(capacity[0]));
    REQUIRE(result_of(halves, lengths) == best);

    auto const pairs = pack_padded(two, itself, capacity);
    REQUIRE(padded_faults(pairs, two, capacity) == "");
    REQUIRE(pairs.groups.size() == all_batches(two, capacity).best().first);
  }
}

TEST_CASE("padded batches of many samples keep their promises", "[pack]") {
  omnibal::rng::engine random(5);
  std::vector<std::int64_t> lengths(20'000);
  std::vector<resources<2>> demands;
  for (std::int64_t& length : lengths) {
    length = static_cast<std::int64_t>(
        1 + omnibal::rng::below(random, 16u << omnibal::rng::below(random, 9)));
    demands.push_back({length, static_cast<std::int64_t>(omnibal::rng::below(random, 10))});
  }
  resources<2> const capacity{4096, 60};
  auto const packed = pack_padded(demands, itself, capacity);
  CHECK(padded_faults(packed, demands, capacity) == "");
  // No more than without the choice of cuts, and less padding.
  auto const plain = pack_padded(lengths, itself, 4096);
  std::vector<std::int64_t> sorted(lengths);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  padded_result greedy{0, 0};
  for (std::size_t begin = 0; begin != sorted.size(); ++greedy.first) {
    auto const count = std::min<std::size_t>(static_cast<std::size_t>(4096 / sorted[begin]),
                                             sorted.size() - begin);
    greedy.second += static_cast<std::int64_t>(count) * sorted[begin];
    begin += count;
  }
  auto const found = result_of(plain, lengths);
  CHECK(found.first == greedy.first);
  CHECK(found.second < greedy.second);
}

TEST_CASE("padded batches of extreme numbers", "[pack]") {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> const lengths{largest, 0, largest / 2, largest / 2, 1, 0};
  auto const packed = pack_padded(lengths, itself, largest);
  // The largest is alone, the halves are a batch, and the others another one.
  CHECK(packed.groups.size() == 3);
  CHECK(packed.oversized.empty());
  CHECK(pack_padded(std::vector<int>{}, itself, 5).groups.empty());
  CHECK(pack_padded(std::vector<int>{0, 0, 0}, itself, 5).groups.size() == 1);
  auto const mixed = pack_padded(std::vector<int>{7, 2, 9}, itself, 6);
  CHECK(mixed.oversized == std::vector<std::uint32_t>{0, 2});
  CHECK(mixed.groups.size() == 1);
  // 0.1 three times is above 0.3 in floating-point numbers.
  std::vector<double> const tenths(3, 0.1);
  CHECK(pack_padded(tenths, itself, 0.3).groups.size() == 2);
  // Below 3.5, the quotient by 0.7 is rounded up to 5.
  std::vector<double> const fifths(5, 0.7);
  CHECK(pack_padded(fifths, itself, std::nextafter(3.5, 0.0)).groups.size() == 2);
  // All shares are a third if they are rounded, but only two samples like the last one fit.
  constexpr std::int64_t third = (std::int64_t{1} << 60) + 1;
  std::vector<resources<2>> const thirds{{third, 1}, {third, 1}, {third + 1, 1}};
  resources<2> const capacity{3 * third, 3};
  CHECK(padded_faults(pack_padded(thirds, itself, capacity), thirds, capacity) == "");
}

TEST_CASE("wrong arguments of pack_padded are named with their values", "[pack]") {
  auto const error_of = [](std::vector<std::int64_t> const& lengths, std::int64_t capacity) {
    return test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(pack_padded(lengths, itself, capacity)); });
  };
  CHECK(error_of({1}, 0) == "omnibal::pack_padded: capacity[0] is 0, must be positive and finite");
  CHECK(error_of({1, -3}, 5) ==
        "omnibal::pack_padded: demand of sample 1 is -3 in resource 0, must be finite and not "
        "negative");
}

}  // namespace
