// The schedules of an epoch by either algorithm: what both promise.

#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"
#include "schedules.hpp"

#include <omnibal/balance/left_out.hpp>
#include <omnibal/balance/schedule_rounds.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::left_out;
using omnibal::remainder_policy;
using omnibal::step_overlap;
using omnibal::steps;

using numbers = std::vector<std::int64_t>;
template <std::size_t R>
using load_vectors = std::vector<omnibal::resources<R>>;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// Cells are cut one after the other.
struct one_by_one {
  using options = omnibal::schedule_steps_options;
  static constexpr auto& schedule = omnibal::schedule_steps;
  static constexpr char const* name = "schedule_steps";
  static constexpr char const* loads_name = "cost";
  /// How many overlaps of consecutive epochs a mean is taken of.
  static constexpr std::uint64_t epochs = 4;
  static constexpr double overlap_beside_a_giant = 2.2;
};

/// Many cells are cut at a time.
struct in_rounds {
  using options = omnibal::schedule_rounds_options;
  static constexpr auto& schedule = omnibal::schedule_rounds;
  static constexpr char const* name = "schedule_rounds";
  static constexpr char const* loads_name = "loads";
  static constexpr std::uint64_t epochs = 8;
  static constexpr double overlap_beside_a_giant = 2.4;
};

template <class Scheduler>
using options_of = typename Scheduler::options;

template <class Scheduler>
std::string schedule_fault(steps const& schedule, std::size_t groups, std::size_t ranks,
                           options_of<Scheduler> const& options = {}) {
  return test::schedule_fault(schedule, groups, ranks,
                              {.remainder = options.remainder, .carried = options.carried});
}

/// Two resources that do not depend on each other, one with few values, one with many.
load_vectors<2> independent_loads(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  load_vectors<2> loads(count);
  for (auto& load : loads) load = {random.between(16, 18), random.between(5000, 6000)};
  return loads;
}

/// The mean overlap of consecutive epochs.
template <class Scheduler, class Loads>
double mean_overlap(Loads const& loads, std::size_t ranks, double tolerance) {
  double sum = 0;
  for (std::uint64_t epoch = 0; epoch != Scheduler::epochs; ++epoch) {
    sum += step_overlap(
        Scheduler::schedule(loads, ranks, {.epoch = epoch, .max_dist_ratio = tolerance}),
        Scheduler::schedule(loads, ranks, {.epoch = epoch + 1, .max_dist_ratio = tolerance}));
  }
  return sum / static_cast<double>(Scheduler::epochs);
}

template <class Scheduler, std::size_t R>
void check_that_every_group_runs_once() {
  for (std::size_t const count : {1u, 7u, 60u, 211u}) {
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : {1u, 2u, 7u, 60u, 64u, 300u}) {
        for (remainder_policy const policy : policies) {
          for (double const tolerance : {0.0, 0.005, 0.1, 1.0, 1e300}) {
            options_of<Scheduler> const options{
                .seed = count, .epoch = ranks, .max_dist_ratio = tolerance, .remainder = policy};
            INFO(set.name << ", " << count << " groups, " << ranks << " ranks, policy "
                          << static_cast<int>(policy) << ", tolerance " << tolerance);
            auto const schedule = Scheduler::schedule(set.samples, ranks, options);
            REQUIRE(schedule_fault<Scheduler>(schedule, set.samples.size(), ranks, options) == "");
            REQUIRE(Scheduler::schedule(set.samples, ranks, options) == schedule);
          }
        }
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("every group runs once, whatever the loads", "[slow]", one_by_one, in_rounds) {
  check_that_every_group_runs_once<TestType, 1>();
  check_that_every_group_runs_once<TestType, 2>();
  check_that_every_group_runs_once<TestType, 3>();
}

TEMPLATE_TEST_CASE("one resource is as even as asked for, or nearly as even as when it is sorted",
                   "", one_by_one, in_rounds) {
  for (auto const& set : test::cost_sets<1>(3, 230)) {
    for (std::size_t const ranks : {2u, 8u, 23u}) {
      double const sorted =
          test::worst_dist_ratio(test::sorted_steps(set.samples, ranks, 0), set.samples);
      for (double const tolerance : {0.0, 0.001, 0.005, 0.03, 0.2}) {
        INFO(set.name << ", " << ranks << " ranks, tolerance " << tolerance);
        auto const schedule = TestType::schedule(set.samples, ranks, {.max_dist_ratio = tolerance});
        CHECK(test::worst_dist_ratio(schedule, set.samples) <=
              std::max(tolerance, sorted + tolerance / 4) + 1e-8);
      }
    }
  }
}

TEMPLATE_TEST_CASE("few groups with similar loads are nearly as even as they can be", "",
                   one_by_one, in_rounds) {
  test::random_amounts random(11);
  for (int round = 0; round != 20; ++round) {
    load_vectors<1> loads(round % 2 == 0 ? 6 : 7);
    for (auto& load : loads) load[0] = random.between(1000, 1100);
    for (std::size_t const ranks : {2u, 3u}) {
      auto const schedule = TestType::schedule(loads, ranks, {.max_dist_ratio = 0});
      double const least = test::least_dist_ratio(loads, ranks);
      CHECK(test::worst_dist_ratio(schedule, loads) >= least - 1e-12);
      CHECK(test::worst_dist_ratio(schedule, loads) <= least * 1.05);
    }
  }
}

TEMPLATE_TEST_CASE("several resources are even at once", "", one_by_one, in_rounds) {
  auto const loads = independent_loads(20'003, 1);
  for (std::size_t const ranks : {2u, 8u, 64u}) {
    for (double const tolerance : {0.006, 0.02}) {
      INFO(ranks << " ranks, tolerance " << tolerance);
      auto const schedule = TestType::schedule(loads, ranks, {.max_dist_ratio = tolerance});
      double const of_last_step = 1.0 / static_cast<double>(schedule.size());
      CHECK(test::worst_dist_ratio(schedule, loads) < std::max(tolerance, of_last_step) + 1e-8);
    }
  }
}

TEMPLATE_TEST_CASE(
    "packed groups are within 0.005 in both resources, and meet others in every epoch", "",
    one_by_one, in_rounds) {
  // Questions about 1 to 5 images, and samples whose images and text do not depend on each other.
  for (bool const is_mixture : {false, true}) {
    test::random_amounts random(17);
    load_vectors<2> samples(60'000);
    for (auto& sample : samples) {
      std::int64_t const images = is_mixture ? random.between(0, 5) : random.between(1, 5);
      std::int64_t const text =
          is_mixture ? random.between(128, 2176) : 40 + random.heavy_tail(400);
      sample = {images, is_mixture ? text : 256 * images + text};
    }
    auto const packed = omnibal::best_fit_decreasing(
        samples, std::identity{}, omnibal::resources{18, is_mixture ? 8192 : 6016});
    auto const loads = omnibal::group_loads(packed.groups, samples, std::identity{});
    for (std::uint64_t epoch = 0; epoch != 3; ++epoch) {
      auto const schedule = TestType::schedule(loads, 8, {.epoch = epoch});
      CHECK(test::worst_dist_ratio(schedule, loads) <= 0.005);
    }
    CHECK(mean_overlap<TestType>(loads, 8, 0.005) < (is_mixture ? 7.0 : 11.0));
    CHECK(test::worst_dist_ratio(TestType::schedule(loads, 8, {.max_dist_ratio = 1}), loads) >
          0.02);
  }
}

TEMPLATE_TEST_CASE("the tolerance moves along a curve from even steps to random ones", "",
                   one_by_one, in_rounds) {
  auto const loads = independent_loads(16'000, 2);
  double even = -1;
  double overlap = 1e9;
  for (double const tolerance : {0.001, 0.003, 0.01, 0.03, 1.0}) {
    INFO(tolerance);
    double const waiting =
        test::worst_dist_ratio(TestType::schedule(loads, 8, {.max_dist_ratio = tolerance}), loads);
    double const met = mean_overlap<TestType>(loads, 8, tolerance);
    CHECK(waiting <= tolerance);
    CHECK(waiting > even);
    CHECK(met < overlap * 0.8);
    even = waiting;
    overlap = met;
  }
  CHECK(overlap == Approx(1.0).margin(0.1));
}

TEMPLATE_TEST_CASE("groups with equal loads are dealt at random", "", one_by_one, in_rounds) {
  load_vectors<2> const equal(4000, {18, 6000});
  CHECK(mean_overlap<TestType>(equal, 8, 0) == Approx(1.0).margin(0.2));
  CHECK(test::worst_dist_ratio(TestType::schedule(equal, 8, {.max_dist_ratio = 0}), equal) == 0);
  // Two sizes take two cells, wherever the one ends.
  load_vectors<2> two_sizes = equal;
  for (std::size_t i = 0; i != 1200; ++i) two_sizes[i] = {3, 6000};
  CHECK(test::worst_dist_ratio(TestType::schedule(two_sizes, 8, {.max_dist_ratio = 0.001}),
                               two_sizes) == 0);
  CHECK(mean_overlap<TestType>(two_sizes, 8, 0.001) == Approx(2.0).margin(0.3));
}

TEMPLATE_TEST_CASE("a giant does not make the other steps less random", "", one_by_one, in_rounds) {
  load_vectors<1> loads(2000);
  test::random_amounts random(5);
  for (auto& load : loads) load[0] = random.between(900, 1100);
  loads[77][0] = std::int64_t{1} << 40;
  auto const schedule = TestType::schedule(loads, 8, {.max_dist_ratio = 0.002});
  double const of_its_step = 7.0 / 8 / 250;
  CHECK(test::worst_dist_ratio(schedule, loads) > of_its_step);
  CHECK(test::worst_dist_ratio(schedule, loads) < of_its_step + 0.0012);
  CHECK(mean_overlap<TestType>(loads, 8, 0.002) < 80);
  CHECK(mean_overlap<TestType>(loads, 8, 0.05) < TestType::overlap_beside_a_giant);
}

TEMPLATE_TEST_CASE("another epoch and another seed give another schedule", "", one_by_one,
                   in_rounds) {
  auto const loads = independent_loads(999, 3);
  std::set<std::set<std::vector<std::uint32_t>>> seen;
  for (std::uint64_t seed = 0; seed != 5; ++seed) {
    for (std::uint64_t epoch = 0; epoch != 5; ++epoch) {
      auto const schedule = TestType::schedule(loads, 4, {.seed = seed, .epoch = epoch});
      CHECK(seen.insert(test::step_sets(schedule)).second);
    }
  }
}

TEMPLATE_TEST_CASE("no rank gets the large groups, and no time of the epoch", "", one_by_one,
                   in_rounds) {
  test::random_amounts random(8);
  load_vectors<1> loads(16'000);
  for (auto& load : loads) load[0] = 100 + random.heavy_tail(4000);
  double total = 0;
  double first_half = 0;
  for (std::uint64_t epoch = 0; epoch != 20; ++epoch) {
    auto const schedule = TestType::schedule(loads, 8, {.epoch = epoch, .max_dist_ratio = 0.001});
    std::vector<double> of_ranks(8);
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != 8; ++rank) {
        auto const load = static_cast<double>(loads[schedule(step, rank)[0]][0]);
        of_ranks[rank] += load;
        if (step < schedule.size() / 2) first_half += load;
      }
    }
    double const sum = std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0);
    for (double const load : of_ranks) CHECK(load == Approx(sum / 8).epsilon(0.001));
    total += sum;
  }
  CHECK(first_half == Approx(total / 2).epsilon(0.03));
}

TEMPLATE_TEST_CASE("the loads may come in any unit and any range", "", one_by_one, in_rounds) {
  auto const loads = independent_loads(1003, 4);
  auto const schedule = TestType::schedule(loads, 8);
  load_vectors<2> in_units = loads;
  for (auto& load : in_units) load = {load[0] << 30, load[1] << 10};
  CHECK(TestType::schedule(in_units, 8) == schedule);
  std::deque<omnibal::resources<2, double>> floating;
  for (auto const& load : loads) {
    floating.push_back({static_cast<double>(load[0]) * 0x1p-70, static_cast<double>(load[1])});
  }
  CHECK(TestType::schedule(floating, 8) == schedule);

  numbers tokens;
  load_vectors<1> one_kind;
  for (auto const& load : loads) {
    tokens.push_back(load[1]);
    one_kind.push_back({load[1]});
  }
  CHECK(TestType::schedule(tokens, 8) == TestType::schedule(one_kind, 8));
  numbers scaled = tokens;
  for (auto& amount : scaled) amount <<= 40;
  CHECK(TestType::schedule(scaled, 64) == TestType::schedule(tokens, 64));
}

TEMPLATE_TEST_CASE("the largest loads are scheduled as small ones are", "", one_by_one, in_rounds) {
  numbers const huge{largest / 2, largest / 4, largest / 8, largest / 16, 3, 0};
  for (std::size_t const ranks : {2u, 3u, 1u << 20}) {
    auto const schedule = TestType::schedule(huge, ranks, {.max_dist_ratio = 0});
    CHECK(schedule_fault<TestType>(schedule, huge.size(), ranks) == "");
  }
  CHECK(test::step_sets(TestType::schedule(huge, 2, {.max_dist_ratio = 0})) ==
        std::set<std::vector<std::uint32_t>>{{0, 1}, {2, 3}, {4, 5}});
}

TEMPLATE_TEST_CASE(
    "the short step has small loads and the repeated groups are like those they repeat", "",
    one_by_one, in_rounds) {
  auto const loads = independent_loads(2005, 6);
  auto const mean_of_last = [&](steps const& schedule) {
    double sum = 0;
    double count = 0;
    for (std::size_t rank = 0; rank != 8; ++rank) {
      for (std::uint32_t const group : schedule(schedule.size() - 1, rank)) {
        sum += static_cast<double>(loads[group][0]);
        ++count;
      }
    }
    return sum / count;
  };
  double in_short_steps = 0;
  for (std::uint64_t epoch = 0; epoch != 10; ++epoch) {
    in_short_steps += mean_of_last(TestType::schedule(loads, 8, {.epoch = epoch})) / 10;
    options_of<TestType> const repeating{.epoch = epoch, .remainder = remainder_policy::repeat};
    CHECK(test::worst_dist_ratio(TestType::schedule(loads, 8, repeating), loads) <= 0.005);
  }
  CHECK(in_short_steps < 16.3);
}

TEMPLATE_TEST_CASE("a group is repeated as likely as any other", "", one_by_one, in_rounds) {
  // One tenth of the groups is small.
  load_vectors<1> loads(203, {1000});
  for (std::size_t i = 0; i != 20; ++i) loads[i][0] = 10;
  std::size_t small_ones = 0;
  constexpr std::uint64_t epochs = 400;
  for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
    auto const schedule =
        TestType::schedule(loads, 8, {.epoch = epoch, .remainder = remainder_policy::repeat});
    small_ones += schedule(schedule.size() - 1, 7)[0] < 20 ? 1u : 0u;
  }
  CHECK(small_ones > epochs / 20);
  CHECK(small_ones < epochs / 5);
}

TEMPLATE_TEST_CASE("what an epoch leaves out runs first in the next one", "", one_by_one,
                   in_rounds) {
  auto const loads = independent_loads(205, 7);
  std::vector<std::size_t> runs(loads.size(), 0);
  std::vector<std::uint32_t> carried;
  std::size_t const ranks_of_epochs[] = {8, 8, 64, 7, 300, 300, 2, 16, 1, 8};
  std::uint64_t epoch = 0;
  for (std::size_t const ranks : ranks_of_epochs) {
    INFO("epoch " << epoch << " on " << ranks << " ranks");
    options_of<TestType> const options{
        .epoch = epoch++, .remainder = remainder_policy::carry, .carried = carried};
    auto const schedule = TestType::schedule(loads, ranks, options);
    REQUIRE(schedule_fault<TestType>(schedule, loads.size(), ranks, options) == "");
    for (std::uint32_t const group : schedule.cells().items()) ++runs[group];

    std::multiset<std::uint32_t> waiting(carried.begin(), carried.end());
    std::size_t const first_steps = std::min(carried.size(), schedule.size());
    for (std::size_t cell = 0; cell != first_steps * ranks; ++cell) {
      if (auto const found = waiting.find(schedule.cells()[cell][0]); found != waiting.end()) {
        waiting.erase(found);
      }
    }
    auto next = left_out(schedule, loads.size(), carried);
    CHECK(next.size() < ranks);
    CHECK(waiting.size() <= (schedule.empty() ? carried.size() : 0));
    carried = next;
  }
  std::size_t total = carried.size();
  for (std::uint32_t const group : carried) ++runs[group];
  for (std::size_t const count : runs) CHECK(count == epoch);
  for (std::size_t const count : runs) total += count;
  CHECK(total == epoch * loads.size() + carried.size());
}

TEMPLATE_TEST_CASE("different groups are left out in different epochs", "", one_by_one, in_rounds) {
  numbers const loads(103, 5);
  std::set<std::uint32_t> seen;
  for (std::uint64_t epoch = 0; epoch != 60; ++epoch) {
    auto const schedule =
        TestType::schedule(loads, 8, {.epoch = epoch, .remainder = remainder_policy::carry});
    for (std::uint32_t const group : left_out(schedule, loads.size())) seen.insert(group);
  }
  CHECK(seen.size() > 90);
}

TEMPLATE_TEST_CASE("carried groups run once more under every policy", "", one_by_one, in_rounds) {
  auto const loads = independent_loads(60, 9);
  std::vector<std::uint32_t> const carried{3, 3, 17, 59};
  for (remainder_policy const policy : policies) {
    options_of<TestType> const options{.remainder = policy, .carried = carried};
    CHECK(schedule_fault<TestType>(TestType::schedule(loads, 7, options), 60, 7, options) == "");
  }
}

TEMPLATE_TEST_CASE("what cannot be scheduled is refused", "", one_by_one, in_rounds) {
  numbers const loads{3, 4, 5};
  auto const text = [&](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  std::string const self = std::string("omnibal::") + TestType::name + ": ";
  CHECK(text([&] { (void)TestType::schedule(loads, 0); }) == self + "ranks is 0, must be positive");
  CHECK(text([&] { (void)TestType::schedule(loads, 2, {.max_dist_ratio = -0.5}); }) ==
        self + "options.max_dist_ratio is -0.5, must be finite and not negative");
  CHECK(text([&] { (void)TestType::schedule(loads, 2, {.max_dist_ratio = std::nan("")}); }) ==
        self + "options.max_dist_ratio is nan, must be finite and not negative");
  CHECK(text([&] {
          (void)TestType::schedule(numbers{1, -2}, 2);
        }) == self + TestType::loads_name + "[1] is -2, must be finite and not negative");
  CHECK(text([&] {
          (void)TestType::schedule(std::vector<omnibal::resources<2, double>>{{1.0, std::nan("")}},
                                   2);
        }) == self + TestType::loads_name + "[0] is nan, must be finite and not negative");
  std::vector<std::uint32_t> const carried{2, 3};
  CHECK(text([&] { (void)TestType::schedule(loads, 2, {.carried = carried}); }) ==
        self + "carried[1] is 3, but there are 3 groups");
  CHECK(test::error_text<std::length_error>([&] {
          (void)TestType::schedule(loads, std::size_t{1} << 32);
        }).find("4294967296") != std::string::npos);
}

namespace {

template <class Algorithm, class Options>
constexpr bool takes_what_it_should =
    std::invocable<Algorithm, numbers, std::size_t>&&
        std::invocable<Algorithm, std::vector<float>, std::size_t, Options>&&
            std::invocable<Algorithm, load_vectors<3>, std::size_t> &&
    !std::invocable<Algorithm, numbers> &&
    !std::invocable<Algorithm, std::list<int>, std::size_t> &&
    !std::invocable<Algorithm, std::vector<std::string>, std::size_t> &&
    !std::invocable<Algorithm, std::vector<bool>, std::size_t>;

static_assert(takes_what_it_should<omnibal::schedule_steps_fn, omnibal::schedule_steps_options>);
static_assert(takes_what_it_should<omnibal::schedule_rounds_fn, omnibal::schedule_rounds_options>);

}  // namespace
