// SPDX-License-Identifier: Apache-2.0
// What fails in other trainers at this point of a step, by their public reports, and cannot here.
// docs/evidence/comparison.md names the reports.

#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

using numbers = std::vector<std::int64_t>;

inline constexpr auto as_is = [](std::int64_t length) { return length; };

std::vector<std::size_t> arrival_counts(omnibal::exchange_plan const& plan) {
  std::vector<std::size_t> result;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    result.push_back(plan.arrivals(rank).size());
  }
  return result;
}

std::vector<std::int64_t> loads(omnibal::exchange_plan const& plan, numbers const& costs) {
  std::vector<std::int64_t> result;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    result.push_back(0);
    for (std::uint32_t const sample : plan.arrivals(rank)) result.back() += costs[sample];
  }
  return result;
}

/// The lengths of a rank; ranks have very different numbers of them, and one has none.
numbers lengths_of(std::size_t rank) {
  test::random_amounts random(rank);
  numbers result(rank == 1 ? 0 : 3 + 14 * rank);
  for (auto& length : result) length = random.heavy_tail(8000);
  return result;
}

}  // namespace

TEST_CASE("ranks with other numbers of samples and tokens run as many micro-batches") {
  test::watchdog const limit;
  omnibal::thread_communicator::run(4, [](omnibal::thread_communicator& comm) {
    auto const lengths = omnibal::gather_lengths(comm, lengths_of(comm.rank()));
    // Every rank counts the micro-batches of all ranks, not its own tokens.
    auto const batches = omnibal::micro_batches(
        lengths.values(), comm.size(), [](std::int64_t length) { return length * length; },
        [](std::int64_t length) { return omnibal::resources{length}; }, omnibal::resources{8192});
    test::require(batches.size() > 1, "several micro-batches");
    test::require(omnibal::all_equal(comm, batches.size()), "as many on all ranks");
  });
}

TEST_CASE("nine samples on four ranks are three, two, two and two") {
  auto const counted = [](auto const& costs, std::size_t parts, auto const& cost) {
    return omnibal::lpt(costs, parts, cost, {.count = omnibal::count_policy::at_most_one_apart});
  };
  numbers const lengths{900, 800, 700, 600, 500, 400, 300, 200, 100};
  for (auto const& offsets :
       {std::vector<std::uint32_t>{0, 9, 9, 9, 9}, std::vector<std::uint32_t>{0, 3, 6, 9, 9}}) {
    auto counts = arrival_counts(omnibal::make_plan(offsets, lengths, lengths, {}, counted));
    std::sort(counts.begin(), counts.end());
    CHECK(counts == std::vector<std::size_t>{2, 2, 2, 3});
  }
}

TEST_CASE("a number of samples that the ranks do not divide is balanced") {
  test::random_amounts random(206);
  numbers lengths(206);
  for (auto& length : lengths) length = random.heavy_tail(2000);
  std::vector<std::uint32_t> const offsets{0, 52, 104, 155, 206};
  auto const after = loads(omnibal::make_plan(offsets, lengths, lengths), lengths);
  auto const sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  CHECK(std::accumulate(after.begin(), after.end(), std::int64_t{0}) == sum);
  CHECK(static_cast<double>(*std::max_element(after.begin(), after.end())) <=
        1.01 * static_cast<double>(sum) / 4 + 1);
}

TEST_CASE("fewer samples than ranks leave ranks without any, which take part in all calls") {
  test::watchdog const limit;
  omnibal::thread_communicator::run(5, [](omnibal::thread_communicator& comm) {
    // The whole batch is two samples of rank 3.
    numbers const local = comm.rank() == 3 ? numbers{7, 9} : numbers{};
    auto const plan = omnibal::plan_exchange(comm, local, as_is, as_is);
    auto const counts = arrival_counts(plan);
    test::require(*std::max_element(counts.begin(), counts.end()) == 1, "one for a rank");
    auto const mine = omnibal::exchange_samples(comm, plan, local);
    test::require(mine.size() == counts[comm.rank()], "what the plan says");
    test::require(omnibal::exchange_samples(comm, plan.inverse(), mine) == local, "the input");
  });
}

TEST_CASE("a cap on the tokens of a rank holds after balancing") {
  test::random_amounts random(11);
  int above = 0;
  for (int batch = 0; batch != 50; ++batch) {
    numbers lengths(40);
    for (auto& length : lengths) length = random.between(64, 1024) + random.heavy_tail(3000);
    auto const sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    // The cap leaves a twentieth of the room empty.
    std::int64_t const cap =
        std::max(sum / 8 + sum / 160, *std::max_element(lengths.begin(), lengths.end()));
    auto const within = [&](auto const& costs, std::size_t parts, auto const&) {
      auto const squared = [](std::int64_t length) { return length * length; };
      auto const demand = [](std::int64_t length) { return omnibal::resources{length}; };
      auto result =
          omnibal::balance_under_capacity(costs, parts, squared, demand, omnibal::resources{cap});
      REQUIRE(result.status == omnibal::solve_status::solved);
      return result.parts;
    };
    std::vector<std::uint32_t> offsets;
    for (std::uint32_t r = 0; r <= 8; ++r) offsets.push_back(5 * r);
    auto const capped = loads(omnibal::make_plan(offsets, lengths, lengths, {}, within), lengths);
    CHECK(*std::max_element(capped.begin(), capped.end()) <= cap);
    // Even squares alone break it.
    numbers squares;
    for (std::int64_t const length : lengths) squares.push_back(length * length);
    auto const free = loads(omnibal::make_plan(offsets, squares, lengths), lengths);
    if (*std::max_element(free.begin(), free.end()) > cap) ++above;
  }
  CHECK(above > 10);
}

TEST_CASE("equal tokens of unequal work are balanced by work") {
  // Rank 0 has few long samples, rank 1 as many tokens in short ones.
  numbers lengths(4, 2048);
  lengths.insert(lengths.end(), 32, 256);
  std::vector<std::uint32_t> const offsets{0, 4, 36};
  CHECK(omnibal::make_plan(offsets, lengths, lengths).moved_bytes() == 0);
  numbers squares;
  for (std::int64_t const length : lengths) squares.push_back(length * length);
  auto const after = loads(omnibal::make_plan(offsets, squares, lengths), squares);
  auto const sum = std::accumulate(squares.begin(), squares.end(), std::int64_t{0});
  CHECK(static_cast<double>(*std::max_element(after.begin(), after.end())) <=
        1.01 * static_cast<double>(sum) / 2);
}

TEST_CASE("a cost that every rank computes differently gives all ranks one plan") {
  test::watchdog const limit;
  omnibal::thread_communicator::run(4, [](omnibal::thread_communicator& comm) {
    auto const local = lengths_of(comm.rank());
    // As where processors or libraries round differently.
    auto const cost = [&](std::int64_t length) {
      return static_cast<double>(length) * (1 + 1e-3 * static_cast<double>(comm.rank()));
    };
    auto const plan = omnibal::plan_exchange(comm, local, cost, as_is, {}, omnibal::lpt);
    test::require(omnibal::all_equal(comm, plan.digest()), "one plan");
    auto const mine = omnibal::exchange_samples(comm, plan, local);
    test::require(omnibal::exchange_samples(comm, plan.inverse(), mine) == local, "the input");
  });
}

TEST_CASE("costs that a float cannot tell apart are told apart") {
  // Rounded to 24 bits all are equal, and the two odd ones would share a rank.
  std::int64_t const large = std::int64_t{1} << 40;
  numbers const costs{large + 3, large, large + 3, large};
  std::vector<std::uint32_t> const offsets{0, 2, 4};
  auto const after = loads(omnibal::make_plan(offsets, costs, costs, {}, omnibal::lpt), costs);
  CHECK(after == numbers{2 * large + 3, 2 * large + 3});
  auto const halves = omnibal::make_plan(std::vector<std::uint32_t>{0, 2, 2},
                                         numbers{large, large + 1}, numbers{1, 1});
  CHECK(arrival_counts(halves) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("ranks without images encode those of others") {
  test::watchdog const limit;
  struct sample {
    std::int64_t text;
    numbers images;
  };
  omnibal::thread_communicator::run(4, [](omnibal::thread_communicator& comm) {
    std::vector<sample> local(4, sample{100, {}});
    if (comm.rank() == 2) {
      for (auto& one : local) one.images.assign(4, 5);
    }
    omnibal::encoder_phase const vision{&sample::images, as_is, as_is, as_is};
    auto const plans = omnibal::orchestrate(
        comm, local, omnibal::language_phase{&sample::text, &sample::text}, std::tuple{vision});
    auto const& inputs = plans.encoders[0].inputs;
    test::require(arrival_counts(inputs) == std::vector<std::size_t>(4, 4), "four images each");
    numbers images;
    for (auto const& one : local) images.insert(images.end(), one.images.begin(), one.images.end());
    auto const encoded = omnibal::exchange_samples(comm, inputs, images);
    test::require(encoded == numbers(4, 5), "the images");
    auto const outputs = omnibal::exchange_samples(comm, plans.encoders[0].outputs, encoded);
    test::require(outputs.size() == images.size(), "the outputs are where the samples are");
  });
}

TEST_CASE("outputs of encoders travel with fewer bytes than by way of their samples' homes") {
  test::random_amounts random(5);
  std::size_t const ranks = 16;
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t r = 0; r <= ranks; ++r) offsets.push_back(16 * r);
  numbers text(offsets.back());
  std::vector<std::uint32_t> counts(text.size());
  numbers tiles;
  for (std::size_t s = 0; s != text.size(); ++s) {
    text[s] = random.heavy_tail(8000);
    counts[s] = static_cast<std::uint32_t>(random.between(0, 3));
    for (std::uint32_t k = 0; k != counts[s]; ++k) tiles.push_back(random.heavy_tail(60));
  }
  std::tuple const vision{omnibal::encoder_phase{counts, tiles, tiles, tiles}};
  auto const plans = omnibal::make_orchestration(offsets, {text, text}, vision);
  auto const& routes = plans.encoders[0];
  // Back to the sample that is still at home, and on with it.
  std::int64_t by_home = routes.inputs.moved_bytes();
  std::size_t piece = 0;
  for (std::uint32_t s = 0; s != text.size(); ++s) {
    for (std::uint32_t k = 0; k != counts[s]; ++k, ++piece) {
      if (plans.samples.home_of(s) != plans.samples.destination_of(s)) by_home += tiles[piece];
    }
  }
  CHECK(routes.outputs.moved_bytes() > 0);
  CHECK(routes.outputs.moved_bytes() < by_home);
}
