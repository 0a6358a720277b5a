// SPDX-License-Identifier: Apache-2.0
// Profiles and packers that say something else each time they are asked: an error or some answer,
// and never a crash.

#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rng::below;

/// Anything, the extremes among it.
std::int64_t any_number(omnibal::rng::engine& random) {
  switch (below(random, 4)) {
    case 0: return omnibal::unknown_shortage;
    case 1: return std::int64_t{1} << below(random, 63);
    case 2: return -(std::int64_t{1} << below(random, 63));
    default: return static_cast<std::int64_t>(below(random, 100));
  }
}

/// Calls `ask` and lets it fail with any error of the standard library.
template <class Ask>
void survive(Ask const& ask, std::size_t& answers) {
  try {
    ask();
    ++answers;
  } catch (std::logic_error const&) {
  } catch (std::runtime_error const&) {
  }
}

}  // namespace

TEST_CASE("Levels are selected or an error is thrown for a profile that changes its mind") {
  std::size_t answers = 0;
  for (std::uint64_t seed = 0; seed != 5000; ++seed) {
    omnibal::rng::engine random(seed);
    auto const profile = [&](omnibal::packing_level const&) {
      std::int64_t nanoseconds = any_number(random);
      if (seed % 2 == 0 && nanoseconds <= 0) nanoseconds = 7;
      return omnibal::level_reading{any_number(random), nanoseconds};
    };
    omnibal::level_search const search{
        .layers = 9, .lengths = {4, 16, 64, 256}, .reserve_bytes = 5};
    std::vector<std::int64_t> const samples{1, 5, 17, 65, 200, 1000};
    survive([&] { static_cast<void>(omnibal::select_levels(profile, search)); }, answers);
    survive([&] { static_cast<void>(omnibal::select_levels(profile, search, samples)); }, answers);
  }
  CHECK(answers != 0);
}

TEST_CASE("Levels are packed or an error is thrown for a packer that changes its mind") {
  std::size_t answers = 0;
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    omnibal::rng::engine random(seed);
    auto const pack = [&](std::span<std::int64_t const> lengths, std::identity const& demand,
                          std::int64_t capacity) {
      auto packed = omnibal::best_fit_decreasing(lengths, demand, capacity);
      switch (below(random, 5)) {
        case 0: packed.groups.push(static_cast<std::uint32_t>(below(random, 40))); break;
        case 1: packed.groups = {}; break;
        case 2: packed.report.lower_bound = below(random, 9); break;
        default: break;
      }
      if (below(random, 3) == 0) packed.groups.close();
      return packed;
    };
    std::vector<std::int64_t> const lengths{1, 9, 3, 16, 2, 30, 12, 7, 64, 5, 100};
    std::vector<std::int64_t> const levels{8, 32, 64};
    survive(
        [&] {
          auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels, pack);
          REQUIRE(packed.groups.item_count() == lengths.size() - packed.oversized.size());
        },
        answers);
  }
  CHECK(answers != 0);
}

TEST_CASE("Tokens of samples are measured once") {
  std::vector<int> const samples(20);
  std::size_t calls = 0;
  omnibal::rng::engine random(1);
  auto const length = [&](int) {
    ++calls;
    return static_cast<std::int64_t>(below(random, 64));
  };
  std::vector<std::int64_t> const levels{8, 64};
  auto const packed = omnibal::pack_levels(samples, length, levels);
  CHECK(calls == samples.size());
  CHECK(packed.groups.item_count() == samples.size());
}
