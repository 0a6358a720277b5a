// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::balance_under_capacity;
using omnibal::micro_batches;
using omnibal::oversize_policy;
using omnibal::solve_status;
using omnibal::within_reason;

template <std::size_t R, class T = std::int64_t>
struct costed {
  omnibal::resources<R, T> demand;
  std::int64_t cost;
};

template <class Sample>
auto const demand_of = [](Sample const& sample) { return sample.demand; };
template <class Sample>
auto const cost_of = [](Sample const& sample) { return sample.cost; };

/// What is wrong with parts in which each oversized sample must be alone; empty where nothing is.
template <std::size_t R, class T>
std::string fault(omnibal::grouping_view parts, std::vector<costed<R, T>> const& samples,
                  omnibal::resources<R, T> const& capacity) {
  std::vector<std::uint8_t> seen(samples.size(), 0);
  std::size_t count = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    omnibal::resources<R, T> load{};
    for (std::uint32_t const item : parts[p]) {
      if (item >= samples.size() || seen[item]++ != 0) return "a sample is in two places";
      if (!samples[item].demand.fits(capacity) && parts[p].size() != 1) {
        return "an oversized sample has company";
      }
      load += samples[item].demand;
      ++count;
    }
    if (parts[p].size() != 1 && !load.fits(capacity)) return "a part is over the capacity";
  }
  return count == samples.size() ? "" : "samples are lost";
}

/// The best of all ways to place samples: the least largest cost of at most so many parts, or -1.
template <std::size_t R>
class all_ways {
 public:
  all_ways(std::vector<costed<R>> const& samples, omnibal::resources<R> const& capacity,
           std::size_t parts)
      : samples_(samples), capacity_(capacity), parts_(parts) {
    place(0);
  }
  [[nodiscard]] std::int64_t best() const { return best_; }

 private:
  struct part {
    omnibal::resources<R> room;
    std::int64_t cost = 0;
  };
  void place(std::size_t i) {
    if (i == samples_.size()) {
      std::int64_t largest = 0;
      for (part const& of : made_) largest = std::max(largest, of.cost);
      if (best_ < 0 || largest < best_) best_ = largest;
      return;
    }
    auto const& sample = samples_[i];
    bool const is_oversized = !sample.demand.fits(capacity_);
    for (std::size_t p = 0; !is_oversized && p != made_.size(); ++p) {
      if (closed_[p] || !sample.demand.fits(made_[p].room)) continue;
      part const before = made_[p];
      made_[p].room -= sample.demand;
      made_[p].cost += sample.cost;
      place(i + 1);
      made_[p] = before;
    }
    if (made_.size() == parts_) return;
    made_.push_back({is_oversized ? capacity_ : capacity_ - sample.demand, sample.cost});
    closed_.push_back(is_oversized);
    place(i + 1);
    made_.pop_back();
    closed_.pop_back();
  }

  std::vector<costed<R>> const& samples_;
  omnibal::resources<R> capacity_;
  std::size_t parts_;
  std::vector<part> made_;
  std::vector<bool> closed_;
  std::int64_t best_ = -1;
};

template <std::size_t R>
std::vector<costed<R>> random_samples(test::random_amounts& random,
                                      omnibal::resources<R> const& capacity) {
  std::vector<costed<R>> samples(static_cast<std::size_t>(random.between(0, 7)));
  std::int64_t const zeros = random.between(0, 3);
  for (auto& sample : samples) {
    sample.cost = random.between(0, 20);
    for (std::size_t r = 0; r != R; ++r) {
      bool const is_zero = random.between(0, 3) < zeros;
      sample.demand[r] = is_zero ? 0 : random.between(0, capacity[r] + capacity[r] / 4);
    }
  }
  return samples;
}

template <std::size_t R>
void check_small_instances(std::uint64_t seed) {
  test::random_amounts random(seed);
  std::size_t oversized = 0;
  std::size_t not_best = 0;
  for (int round = 0; round != 3000; ++round) {
    using sample_type = costed<R>;
    omnibal::resources<R> capacity;
    for (auto& limit : capacity.amounts) limit = random.between(1, 12);
    auto const samples = random_samples<R>(random, capacity);
    for (auto const& sample : samples)
      if (!sample.demand.fits(capacity)) ++oversized;
    auto const parts = static_cast<std::size_t>(random.between(1, 5));
    std::vector<double> speeds(parts, 1);
    bool const are_equal = round % 4 != 0;
    if (!are_equal) speeds.front() = 2;

    std::int64_t const best = all_ways<R>(samples, capacity, parts).best();
    auto const within = balance_under_capacity(
        samples, parts, cost_of<sample_type>, demand_of<sample_type>, capacity,
        {.oversized = oversize_policy::own_group, .speeds = speeds});
    REQUIRE((within.status == solve_status::solved) == (best >= 0));
    REQUIRE((within.status == solve_status::infeasible) == (best < 0));
    if (best >= 0) {
      REQUIRE(fault(omnibal::grouping_view(within.parts), samples, capacity) == "");
      REQUIRE(within.parts.size() == parts);
      if (are_equal) {
        REQUIRE(within.lower_bound <= best);
        REQUIRE(within.largest_load >= best);
        if (within.proven) REQUIRE(within.largest_load == best);
        if (within.largest_load > best) ++not_best;
      }
    }

    std::size_t needed = 0;
    while (all_ways<R>(samples, capacity, needed).best() < 0) ++needed;
    auto const multiple = static_cast<std::size_t>(random.between(1, 2));
    std::size_t const step = parts * multiple;
    auto const batches = micro_batches(
        samples, parts, cost_of<sample_type>, demand_of<sample_type>, capacity,
        {.multiple_of = multiple, .oversized = oversize_policy::own_group, .speeds = speeds});
    REQUIRE(fault(batches.cells(), samples, capacity) == "");
    REQUIRE(batches.size() % multiple == 0);
    if (are_equal) REQUIRE(batches.size() * parts == (needed + step - 1) / step * step);
  }
  CHECK(oversized > 500);
  CHECK(not_best < 150);
}

}  // namespace

TEST_CASE("oversized samples are alone, and the other promises hold, compared with all ways",
          "[slow]") {
  check_small_instances<1>(1);
  check_small_instances<2>(2);
  check_small_instances<3>(3);
}

TEST_CASE("one long answer does not end a step: the case of SkyRL and molt") {
  std::vector<std::int64_t> const lengths{4100, 900, 800, 700, 600, 500};
  auto const length = [](std::int64_t n) { return n; };
  auto const steps =
      micro_batches(lengths, 2, length, length, 4096, {.oversized = oversize_policy::own_group});
  REQUIRE(steps.size() == 1);
  bool const is_first = steps(0, 0).size() == 1;
  CHECK(steps(0, is_first ? 0 : 1).front() == 0);
  CHECK(steps(0, is_first ? 1 : 0).size() == 5);

  // The longest one fills a micro-batch of each step, and the ranks keep the same number.
  std::vector<std::int64_t> many(60, 1000);
  for (std::size_t i = 0; i != many.size(); i += 10) many[i] = 5000 + static_cast<std::int64_t>(i);
  auto const made = micro_batches(many, 4, length, length, 4096,
                                  {.multiple_of = 2, .oversized = oversize_policy::own_group});
  // 54 samples of 1000 make 14 micro-batches, with 6 of their own 20, rounded up to 24.
  CHECK(made.size() == 6);
}

TEST_CASE("tiny floating-point demands do not join an oversized sample") {
  using sample_type = costed<1, double>;
  for (double const tiny : {0.0, 1e-300, 1e-18, 0.25}) {
    for (double const limit : {1.0, 1e-3, 3e300, std::numeric_limits<double>::denorm_min()}) {
      if (limit < tiny) continue;
      std::vector<sample_type> samples(12, {{tiny}, 3});
      samples[4] = {{limit * 4}, 50};
      samples[9] = {{limit * 2}, 1};
      omnibal::resources<1, double> const capacity{limit};
      auto const batches = micro_batches(samples, 2, cost_of<sample_type>, demand_of<sample_type>,
                                         capacity, {.oversized = oversize_policy::own_group});
      CHECK(fault(batches.cells(), samples, capacity) == "");
      auto const within =
          balance_under_capacity(samples, 14, cost_of<sample_type>, demand_of<sample_type>,
                                 capacity, {.oversized = oversize_policy::own_group});
      REQUIRE(within.status == solve_status::solved);
      CHECK(fault(omnibal::grouping_view(within.parts), samples, capacity) == "");
    }
  }
}

TEST_CASE("without oversized samples the policy changes nothing") {
  test::random_amounts random(5);
  auto const length = [](std::int64_t n) { return n; };
  for (int round = 0; round != 50; ++round) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(0, 80)));
    for (auto& n : lengths) n = random.between(0, 100);
    auto const given = micro_batches(lengths, 3, length, length, 100);
    CHECK(given == micro_batches(lengths, 3, length, length, 100,
                                 {.oversized = oversize_policy::own_group}));
    auto const within = balance_under_capacity(lengths, 40, length, length, 100);
    CHECK(within == balance_under_capacity(lengths, 40, length, length, 100,
                                           {.oversized = oversize_policy::own_group}));
  }
}

TEST_CASE("other policies, and too few parts, are errors or statuses that say so") {
  std::vector<std::int64_t> const lengths{4100, 9000, 5};
  auto const length = [](std::int64_t n) { return n; };
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(micro_batches(lengths, 2, length, length, 4096,
                                          {.oversized = oversize_policy::list}));
        }) == "omnibal::micro_batches: options.oversized is list, must be own_group or reject");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(balance_under_capacity(lengths, 2, length, length, 4096,
                                                   {.oversized = oversize_policy::list}));
        }) ==
        "omnibal::balance_under_capacity: options.oversized is list, must be own_group or reject");
  auto const within = balance_under_capacity(lengths, 2, length, length, 4096,
                                             {.oversized = oversize_policy::own_group});
  CHECK(within.status == solve_status::infeasible);
  CHECK(within.reason == within_reason::too_few_parts);
  CHECK(within.parts_needed == 3);
  CHECK(balance_under_capacity(lengths, 2, length, length, 4096).reason ==
        within_reason::sample_above_capacity);
}
