// SPDX-License-Identifier: Apache-2.0 What docs/reference/contract.md says of all functions:
// ranges, functors and how often they are called, threads, and what an exception leaves behind.

#include <omnibal/omnibal.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch.hpp>

namespace {

struct sample {
  std::int64_t images;
  std::int64_t tokens;

  [[nodiscard]] std::int64_t squared() const { return tokens * tokens; }
};

using omnibal::cost_function;
using omnibal::sample_range;

static_assert(sample_range<std::vector<sample>>);
static_assert(sample_range<std::array<sample, 3>>);
static_assert(sample_range<sample[3]>);
static_assert(sample_range<std::deque<sample>>);
static_assert(sample_range<std::span<sample const>>);
static_assert(sample_range<omnibal::grouping>);
static_assert(!sample_range<std::list<sample>>);
static_assert(!sample_range<std::set<int>>);

// Random access and a size, but no begin() of a constant object.
struct read_once : std::vector<sample> {
  iterator begin();
  iterator end();
  void begin() const = delete;
};
static_assert(!sample_range<read_once>);

struct counts_calls {
  std::int64_t operator()(sample const&) { return ++calls; }
  std::int64_t calls = 0;
};
struct says_whether {
  bool operator()(sample const&) const { return true; }
};
static_assert(cost_function<std::int64_t sample::*, sample const&>);
static_assert(cost_function<decltype(&sample::squared), sample const&>);
static_assert(!cost_function<counts_calls, sample const&>);
static_assert(!cost_function<says_whether, sample const&>);

std::vector<sample> const& samples() {
  static auto const made = [] {
    std::vector<sample> result;
    for (std::int64_t i = 0; i != 1000; ++i) result.push_back({1 + i % 5, 100 + i * 7919 % 900});
    return result;
  }();
  return made;
}

/// Counts the calls of each sample's measure.
class call_counter {
 public:
  [[nodiscard]] auto tokens() {
    return [this](sample const& one) {
      note(one);
      return one.tokens;
    };
  }
  [[nodiscard]] auto images_and_tokens() {
    return [this](sample const& one) {
      note(one);
      return omnibal::resources{one.images, one.tokens};
    };
  }
  [[nodiscard]] auto tokens_by_index() {
    return [this](std::uint32_t index) {
      note(samples()[index]);
      return samples()[index].tokens;
    };
  }

  /// How often each sample was measured since the last call; REQUIREs that all were as often, and
  /// in their order.
  [[nodiscard]] std::size_t times() {
    REQUIRE(seen_.size() % samples().size() == 0);
    for (std::size_t i = 0; i != seen_.size(); ++i) {
      if (seen_[i] != &samples()[i % samples().size()]) FAIL("sample " << i << " is out of turn");
    }
    std::size_t const result = seen_.size() / samples().size();
    seen_.clear();
    return result;
  }

 private:
  void note(sample const& one) { seen_.push_back(&one); }

  std::vector<sample const*> seen_;
};

}  // namespace

TEST_CASE("packers measure every sample once, and twice under a large capacity") {
  call_counter counter;
  auto const demand = counter.images_and_tokens();
  for (auto const& [tokens, times] : {std::pair{(std::int64_t{1} << 20) - 1, std::size_t{1}},
                                      std::pair{std::int64_t{1} << 20, std::size_t{2}}}) {
    omnibal::resources const capacity{std::int64_t{20}, tokens};
    auto const packed = omnibal::best_fit_decreasing(samples(), demand, capacity);
    CHECK(counter.times() == times);
    static_cast<void>(omnibal::isf(samples(), demand, capacity));
    CHECK(counter.times() == times);
    static_cast<void>(omnibal::next_fit(samples(), demand, capacity));
    CHECK(counter.times() == times);
    static_cast<void>(omnibal::packing_bound(samples(), demand, capacity));
    CHECK(counter.times() == times);
    static_cast<void>(omnibal::improve_packing(samples(), demand, capacity, packed));
    CHECK(counter.times() == times);
    static_cast<void>(omnibal::capacity_warnings(samples(), demand, capacity));
    CHECK(counter.times() == 1);
    static_cast<void>(omnibal::split_long(samples(), counter.tokens(), tokens));
    CHECK(counter.times() == 1);

    call_counter costs;
    omnibal::resources const room{std::int64_t{2000}, tokens};
    static_cast<void>(omnibal::balance_under_capacity(samples(), 32, costs.tokens(), demand, room));
    CHECK(counter.times() == times);
    CHECK(costs.times() == 1);
    static_cast<void>(omnibal::micro_batches(samples(), 4, costs.tokens(), demand, capacity));
    CHECK(counter.times() == times);
    CHECK(costs.times() == 1);
  }
  static_cast<void>(omnibal::tune_capacity(samples(), demand, 4.0, omnibal::next_fit));
  CHECK(counter.times() == 1);
}

TEST_CASE("balancers, cuts and exchanges measure every sample once") {
  call_counter counter;
  auto const dealt = omnibal::deal(samples(), 8, counter.tokens());
  CHECK(counter.times() == 1);
  static_cast<void>(omnibal::lpt(samples(), 8, counter.tokens()));
  CHECK(counter.times() == 1);
  static_cast<void>(omnibal::karmarkar_karp(samples(), 8, counter.tokens()));
  CHECK(counter.times() == 1);
  static_cast<void>(omnibal::refine_parts(samples(), dealt, counter.tokens()));
  CHECK(counter.times() == 1);
  omnibal::balance_optimally_options const few{.nodes = 1000};
  static_cast<void>(omnibal::balance_optimally(samples(), 8, counter.tokens(), few));
  CHECK(counter.times() == 1);
  static_cast<void>(omnibal::partition_minimax(samples(), 8, counter.tokens()));
  CHECK(counter.times() == 1);

  // One rank has all.
  omnibal::grouping home;
  for (std::uint32_t i = 0; i != samples().size(); ++i) home.push(i);
  home.close();
  call_counter bytes;
  static_cast<void>(omnibal::rebalance(home, counter.tokens_by_index(), bytes.tokens_by_index()));
  CHECK(counter.times() == 1);
  CHECK(bytes.times() == 1);
  omnibal::self_communicator comm;
  static_cast<void>(omnibal::plan_exchange(comm, samples(), counter.tokens(), bytes.tokens()));
  CHECK(counter.times() == 1);
  CHECK(bytes.times() == 1);
  static_cast<void>(omnibal::gather_lengths(comm, samples(), counter.tokens()));
  CHECK(counter.times() == 1);
}

TEST_CASE("a workspace can be used after an exception") {
  auto const fails_at = [](std::int64_t tokens) {
    return [=](sample const& one) {
      if (one.tokens == tokens) throw std::domain_error("the functor's own");
      return one.tokens;
    };
  };
  std::int64_t const last = samples().back().tokens;

  omnibal::partition_minimax_workspace<std::int64_t> cuts;
  CHECK_THROWS_AS(omnibal::partition_minimax(samples(), 8, fails_at(last), {}, cuts),
                  std::domain_error);
  CHECK(omnibal::partition_minimax(samples(), 8, &sample::tokens, {}, cuts) ==
        omnibal::partition_minimax(samples(), 8, &sample::tokens));

  auto const home = omnibal::deal(samples(), 8, &sample::images);
  auto const tokens = [](std::uint32_t index) { return samples()[index].tokens; };
  auto const fails = [](std::uint32_t index) -> std::int64_t {
    if (index == 500) throw std::domain_error("the functor's own");
    return index;
  };
  omnibal::rebalance_workspace<1> parts;
  CHECK_THROWS_AS(omnibal::rebalance(home, fails, tokens, {}, parts), std::domain_error);
  CHECK_THROWS_AS(omnibal::rebalance(home, tokens, fails, {}, parts), std::domain_error);
  CHECK(omnibal::rebalance(home, tokens, tokens, {}, parts) ==
        omnibal::rebalance(home, tokens, tokens));

  omnibal::one_f_one_b const schedule{.stages = 4, .micro_batches = 8};
  omnibal::simulate_pipeline_workspace<> step;
  auto const times = [](std::size_t stage, std::size_t batch) -> omnibal::stage_time<std::int64_t> {
    if (stage == 3 && batch == 5) throw std::domain_error("the functor's own");
    return {1, 2};
  };
  auto const usual = omnibal::stage_time<std::int64_t>{1, 2};
  CHECK_THROWS_AS(omnibal::simulate_pipeline(schedule, times, 0, 0, {}, step), std::domain_error);
  CHECK(omnibal::simulate_pipeline(schedule, usual, 0, 0, {}, step) ==
        omnibal::simulate_pipeline(schedule, usual));
}

TEST_CASE("the same samples can be packed, balanced and cut on several threads at once") {
  auto const demand = omnibal::demand_of(&sample::images, &sample::tokens);
  omnibal::resources const capacity{9, 4096};
  auto const packed = omnibal::isf(samples(), demand, capacity);
  auto const parts = omnibal::lpt(samples(), 8, &sample::tokens);
  auto const cuts = omnibal::partition_minimax(samples(), 8, &sample::tokens);
  std::array<bool, 4> agrees{};
  std::vector<std::thread> threads;
  for (bool& one : agrees) {
    threads.emplace_back([&] {
      one = omnibal::isf(samples(), demand, capacity) == packed &&
            omnibal::lpt(samples(), 8, &sample::tokens) == parts &&
            omnibal::partition_minimax(samples(), 8, &sample::tokens) == cuts;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(agrees == std::array{true, true, true, true});
}
