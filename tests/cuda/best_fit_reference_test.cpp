// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "packing_faults.hpp"
#include "reference/best_fit_rounds.hpp"
#include "samples.hpp"

#include <omnibal/concepts.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::resources;
using test::best_fit_rounds;
using numbers = std::vector<std::int64_t>;

static_assert(omnibal::packer<decltype(best_fit_rounds), numbers, std::identity, std::int64_t>);
static_assert(omnibal::packer<decltype(best_fit_rounds), std::vector<resources<1>>, std::identity,
                              resources<1>>);
static_assert(!std::is_invocable_v<decltype(best_fit_rounds), std::vector<resources<2>>,
                                   std::identity, resources<2>>);
static_assert(
    !std::is_invocable_v<decltype(best_fit_rounds), std::vector<double>, std::identity, double>);
static_assert(!std::is_invocable_v<decltype(best_fit_rounds), numbers, std::identity, double>);

struct naive_group {
  std::int64_t room;
  std::vector<std::uint32_t> items;
};

/// The rounds by looking at every group for every sample. No size is zero or above the capacity.
class naive_rounds {
 public:
  naive_rounds(numbers const& sizes, std::int64_t capacity) : sizes_(sizes), capacity_(capacity) {
    waiting_.resize(sizes.size());
    std::iota(waiting_.begin(), waiting_.end(), 0u);
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return sizes_[a] > sizes_[b]; });
    while (!waiting_.empty()) run_round();
  }

  [[nodiscard]] omnibal::grouping groups() const {
    omnibal::grouping result;
    for (naive_group const& group : groups_) {
      auto items = group.items;
      std::sort(items.begin(), items.end(), [&](std::uint32_t a, std::uint32_t b) {
        return sizes_[a] > sizes_[b] || (sizes_[a] == sizes_[b] && a < b);
      });
      for (std::uint32_t const item : items) result.push(item);
      result.close();
    }
    return result;
  }
  [[nodiscard]] std::size_t rounds() const { return rounds_; }

 private:
  [[nodiscard]] static std::int64_t shares(std::int64_t amount, std::int64_t of) {
    return amount / of + (amount % of != 0 ? 1 : 0);
  }

  void run_round() {
    ++rounds_;
    std::int64_t const largest = sizes_[waiting_.front()];
    std::vector<std::uint32_t> window;
    for (std::uint32_t const k : waiting_) {
      // 4 * size >= 3 * largest, without leaving the type.
      bool const near = sizes_[k] >= largest - largest / 4;
      if (near || largest <= capacity_ / 64) window.push_back(k);
    }
    open(window, largest);

    std::vector<std::int64_t> places(groups_.size(), 0);
    std::vector<std::int64_t> const rooms = rooms_of_groups();
    for (std::size_t g = 0; g != groups_.size(); ++g) places[g] = rooms[g] / largest;
    std::vector<std::uint32_t> taken;
    for (std::uint32_t const k : window) {
      std::size_t best = groups_.size();
      // A group for one sample first, then one for more; the least room; the later one.
      auto const better = [&](std::size_t g) {
        if (best == groups_.size()) return true;
        bool const single = rooms[g] < 2 * largest;
        bool const best_single = rooms[best] < 2 * largest;
        if (single != best_single) return single;
        return rooms[g] <= rooms[best];
      };
      for (std::size_t g = 0; g != groups_.size(); ++g) {
        bool const single = rooms[g] / largest < 2;
        bool const free = single ? places[g] >= 0 && rooms[g] >= sizes_[k] : places[g] > 0;
        if (free && better(g)) best = g;
      }
      if (best == groups_.size()) continue;
      places[best] = rooms[best] / largest < 2 ? -1 : places[best] - 1;
      groups_[best].room -= sizes_[k];
      groups_[best].items.push_back(k);
      taken.push_back(k);
    }
    std::erase_if(waiting_, [&](std::uint32_t k) {
      return std::find(taken.begin(), taken.end(), k) != taken.end();
    });
  }

  void open(std::vector<std::uint32_t> const& window, std::int64_t largest) {
    std::int64_t most = 0;
    std::int64_t rooms = 0;
    std::int64_t sum = 0;
    std::int64_t too_large_sum = 0;
    std::int64_t large = 0;
    for (naive_group const& group : groups_) {
      most = std::max(most, group.room);
      if (group.room >= sizes_[window.back()]) rooms += group.room;
    }
    for (std::uint32_t const k : window) {
      sum += sizes_[k];
      if (sizes_[k] <= most) continue;
      too_large_sum += sizes_[k];
      if (sizes_[k] > capacity_ / 2) ++large;
    }
    std::int64_t count = std::max(large, shares(too_large_sum, capacity_));
    if (largest <= capacity_ / 8 && sum > rooms) {
      count = std::max(count, shares(sum - rooms, capacity_));
    }
    for (std::int64_t k = 0; k != count; ++k) groups_.push_back({capacity_, {}});
  }

  [[nodiscard]] std::vector<std::int64_t> rooms_of_groups() const {
    std::vector<std::int64_t> result;
    for (naive_group const& group : groups_) result.push_back(group.room);
    return result;
  }

  numbers const& sizes_;
  std::int64_t capacity_;
  std::vector<std::uint32_t> waiting_;
  std::vector<naive_group> groups_;
  std::size_t rounds_ = 0;
};

}  // namespace

TEST_CASE("best_fit_rounds has the groups of naive rounds") {
  test::random_amounts random(5);
  for (std::int64_t const capacity : {1, 7, 63, 64, 100, 1000, 4096}) {
    for (std::int64_t const share : {1, 2, 3, 8, 30}) {
      for (int repeat = 0; repeat != 6; ++repeat) {
        numbers sizes(static_cast<std::size_t>(random.between(0, 120)));
        for (auto& size : sizes) {
          size = repeat % 2 == 0 ? random.between(1, std::max<std::int64_t>(1, capacity / share))
                                 : 1 + random.heavy_tail(capacity - 1);
        }
        INFO(capacity << " / " << share << ", " << sizes.size() << " samples");
        auto const result = best_fit_rounds(sizes, std::identity{}, capacity);
        naive_rounds const naive(sizes, capacity);
        REQUIRE(result.groups == naive.groups());
        REQUIRE(result.report.rounds == naive.rounds());
      }
    }
  }
}

TEST_CASE("best_fit_rounds is sound, and takes few more groups than best_fit_decreasing") {
  for (std::size_t const count : {std::size_t{150}, std::size_t{3000}}) {
    for (auto const& set : test::all_sets<1>(1, count)) {
      INFO(set.name << ", " << count);
      auto const result = best_fit_rounds(set.samples, std::identity{}, set.capacity);
      CHECK(test::fault(result, set.samples, set.capacity) == "");
      auto const best_fit =
          omnibal::best_fit_decreasing(set.samples, std::identity{}, set.capacity);
      CHECK(result.oversized == best_fit.oversized);
      CHECK(result.report.lower_bound <= best_fit.groups.size());
      CHECK(100 * result.groups.size() <= 101 * best_fit.groups.size() + 100);
      CHECK(result.report.rounds <= 50);
    }
  }
}

TEST_CASE("best_fit_rounds of few samples is near the fewest groups") {
  test::random_amounts random(2);
  std::size_t optimal = 0;
  for (int repeat = 0; repeat != 2000; ++repeat) {
    std::int64_t const capacity = random.between(1, 40);
    auto const samples = test::make_samples<1>(
        static_cast<std::size_t>(random.between(0, 9)),
        [&](std::size_t, std::size_t) { return random.between(0, capacity); });
    resources<1> const limits{capacity};
    auto const result = best_fit_rounds(samples, std::identity{}, limits);
    REQUIRE(test::fault(result, samples, limits) == "");
    auto const fewest = test::min_groups(samples, limits);
    REQUIRE(result.groups.size() >= fewest);
    REQUIRE(result.report.lower_bound <= fewest);
    REQUIRE(2 * result.groups.size() <= 3 * fewest + 1);
    if (result.groups.size() == fewest) ++optimal;
  }
  CHECK(optimal >= 1950);
}

TEST_CASE("best_fit_rounds takes amounts near the limits of their type") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  numbers const halves(9, largest / 2);
  CHECK(best_fit_rounds(halves, std::identity{}, largest).groups.size() == 5);
  numbers const wholes(9, largest);
  CHECK(best_fit_rounds(wholes, std::identity{}, largest).groups.size() == 9);
  numbers const thirds(9, largest / 3);
  CHECK(best_fit_rounds(thirds, std::identity{}, largest).groups.size() == 3);
}

TEST_CASE("best_fit_rounds puts samples that take nothing into the first group") {
  auto const result = best_fit_rounds(numbers{0, 5, 0}, std::identity{}, 5);
  CHECK(result.groups == omnibal::grouping({0, 3}, {1, 0, 2}));
  CHECK(result.report.rounds == 2);
  CHECK(result.report.item_rounds == 3);
  auto const nothing = best_fit_rounds(numbers{0, 0}, std::identity{}, 5);
  CHECK(nothing.groups == omnibal::grouping({0, 2}, {0, 1}));
  CHECK(nothing.report.lower_bound == 1);
  auto const none = best_fit_rounds(numbers{}, std::identity{}, 5);
  CHECK(none.groups.empty());
  CHECK(none.report.rounds == 0);
}

TEST_CASE("best_fit_rounds refuses what no packer takes") {
  CHECK_THROWS_AS(best_fit_rounds(numbers{1}, std::identity{}, 0), std::invalid_argument);
  CHECK_THROWS_AS(best_fit_rounds(numbers{-1}, std::identity{}, 5), std::invalid_argument);
}
