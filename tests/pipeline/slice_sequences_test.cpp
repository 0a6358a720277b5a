// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/slice_sequences.hpp>
#include <omnibal/pipeline/sliced_1f1b.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::simulate_pipeline;
using omnibal::slice_sequence;
using omnibal::slice_sequences;
using omnibal::sliced_1f1b;
using omnibal::stage_time;

/// The cost of the first tokens of a sequence whose attention costs twice its linear part.
struct long_cost {
  std::int64_t length;
  std::int64_t operator()(std::int64_t tokens) const {
    return tokens * length + 2 * tokens * tokens;
  }
};

/// Returns the least largest cost of `slices` slices of a sequence by trying all cuts.
std::int64_t best_cut(std::int64_t first, std::int64_t length, std::size_t slices,
                      std::int64_t block, long_cost const& cost) {
  if (slices == 1) return cost(length) - cost(first);
  std::int64_t best = cost(length) - cost(first);
  for (std::int64_t last = first + block; last < length; last += block) {
    best = std::min(
        best, std::max(cost(last) - cost(first), best_cut(last, length, slices - 1, block, cost)));
  }
  return best;
}

/// Returns the makespan of sequences of slices whose forward pass takes their cost and whose
/// backward pass twice as long.
std::int64_t makespan(std::size_t stages, std::vector<std::uint32_t> const& counts,
                      std::vector<std::int64_t> const& costs) {
  auto const time = [&](std::size_t, std::size_t m) {
    return stage_time<>{costs[m], 2 * costs[m]};
  };
  return simulate_pipeline(sliced_1f1b(stages, counts), time).makespan;
}

/// Returns the costs of the slices of eight sequences that are cut in the same places.
std::vector<std::int64_t> costs_of(std::vector<std::int64_t> const& ends, long_cost const& cost) {
  std::vector<std::int64_t> result;
  for (int sequence = 0; sequence != 8; ++sequence) {
    for (std::size_t i = 0; i + 1 != ends.size(); ++i) {
      result.push_back(cost(ends[i + 1]) - cost(ends[i]));
    }
  }
  return result;
}

}  // namespace

TEST_CASE("slice_sequence finds the most even slices") {
  omnibal::rng::engine random(3);
  for (int round = 0; round != 100; ++round) {
    auto const length = static_cast<std::int64_t>(1 + omnibal::rng::below(random, 900));
    std::size_t const slices = 1 + omnibal::rng::below(random, 4);
    long_cost const cost{static_cast<std::int64_t>(omnibal::rng::below(random, 2000))};
    auto const ends = slice_sequence(length, slices, cost, {.block = 64});
    std::size_t const blocks = static_cast<std::size_t>((length + 63) / 64);
    REQUIRE(ends.size() == std::min(slices, blocks) + 1);
    CHECK(ends.front() == 0);
    CHECK(ends.back() == length);
    std::int64_t largest = 0;
    for (std::size_t i = 0; i + 1 != ends.size(); ++i) {
      CHECK(ends[i] % 64 == 0);
      CHECK(ends[i] < ends[i + 1]);
      largest = std::max(largest, cost(ends[i + 1]) - cost(ends[i]));
    }
    CHECK(largest == best_cut(0, length, slices, 64, cost));
  }
}

TEST_CASE("slices of equal time fill a pipeline as Seq1F1B's analysis promises") {
  // Eight sequences of 131,072 tokens on eight stages, 16 slices each.
  long_cost const cost{131'072};
  std::int64_t const work = 8 * 3 * cost(cost.length);
  std::vector<std::uint32_t> const counts(8, 16);
  auto const even = slice_sequence(cost.length, 16, cost);
  double const step = static_cast<double>(makespan(8, counts, costs_of(even, cost)));
  double const ideal = 1.0 + 7.0 / (8 * 16);
  CHECK(step < 1.01 * ideal * static_cast<double>(work));
  CHECK(step >= ideal * static_cast<double>(work));

  std::vector<std::int64_t> equal_lengths;
  for (std::int64_t i = 0; i <= 16; ++i) equal_lengths.push_back(i * cost.length / 16);
  double const longer = static_cast<double>(makespan(8, counts, costs_of(equal_lengths, cost)));
  CHECK(longer > 1.4 * static_cast<double>(work));
}

TEST_CASE("sliced_1f1b runs slices forward in order and backward in reverse") {
  omnibal::rng::engine random(5);
  for (int round = 0; round != 200; ++round) {
    std::size_t const stages = 1 + omnibal::rng::below(random, 6);
    std::vector<std::uint32_t> counts;
    std::uint32_t most = 0;
    for (std::uint64_t i = 1 + omnibal::rng::below(random, 6); i != 0; --i) {
      counts.push_back(static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 5)));
      most = std::max(most, counts.back());
    }
    sliced_1f1b const schedule(stages, counts);
    auto const result =
        simulate_pipeline(schedule, stage_time<>{1, 2}, std::int64_t{0}, std::int64_t{1},
                          {.timeline = omnibal::timeline_policy::recorded});
    std::size_t const count = result.timeline.size() / stages;
    for (std::size_t s = 0; s != stages; ++s) {
      std::vector<std::uint32_t> forward;
      std::vector<std::uint32_t> backward;
      for (std::size_t i = s * count; i != (s + 1) * count; ++i) {
        auto const& one = result.timeline[i];
        (one.kind == omnibal::operation_kind::forward ? forward : backward)
            .push_back(one.micro_batch);
      }
      CHECK(std::ranges::is_sorted(forward));
      auto place = backward.begin();
      std::uint32_t first = 0;
      for (std::uint32_t const slices : counts) {
        for (std::uint32_t k = 0; k != slices; ++k) CHECK(*place++ == first + slices - 1 - k);
        first += slices;
      }
      CHECK(result.peak_bytes[s] <= static_cast<std::int64_t>(most + stages - 1 - s));
    }
  }
  // One slice for each sequence is 1F1B.
  std::vector<std::uint32_t> const single(9, 1);
  CHECK(simulate_pipeline(sliced_1f1b(4, single), stage_time<>{1, 2}).makespan == 36);
}

TEST_CASE("slice_sequences cuts long sequences and packs short ones") {
  auto const cost = [](std::int64_t tokens) { return tokens * 10 + tokens * tokens; };
  omnibal::rng::engine random(7);
  for (int round = 0; round != 100; ++round) {
    std::vector<std::int64_t> lengths;
    for (int i = 0; i != 20; ++i) {
      auto const range = i % 5 == 0 ? 3000U : 200U;
      lengths.push_back(static_cast<std::int64_t>(1 + omnibal::rng::below(random, range)));
    }
    std::int64_t const limit = cost(1200);
    auto const result = slice_sequences(lengths, limit, cost);
    std::vector<std::int64_t> covered(lengths.size(), 0);
    std::int64_t largest = 0;
    for (auto const& slice : result.slices) {
      std::int64_t sum = 0;
      for (auto const& part : slice) {
        CHECK(part.first == covered[part.sequence]);
        covered[part.sequence] = part.last;
        sum += cost(part.last) - cost(part.first);
      }
      CHECK(sum <= limit);
      largest = std::max(largest, sum);
    }
    CHECK(covered == lengths);
    CHECK(result.largest == largest);
    std::uint32_t slices = 0;
    for (std::uint32_t const count : result.slice_counts) slices += count;
    CHECK(slices == result.slices.size());
  }
}

TEST_CASE("slices of what cannot be cut are refused") {
  using test::error_text;
  auto const cost = [](std::int64_t tokens) { return tokens; };
  auto const sliced = [&](std::vector<int> const& lengths, std::int64_t limit, std::int64_t block) {
    return error_text<std::invalid_argument>(
        [&] { static_cast<void>(slice_sequences(lengths, limit, cost, {.block = block})); });
  };
  CHECK(sliced({5, 0}, 9, 128) == "omnibal::slice_sequences: lengths[1] is 0, must be positive");
  CHECK(sliced({5}, 0, 128) == "omnibal::slice_sequences: limit is 0, must be positive");
  CHECK(sliced({5}, 9, 0) == "omnibal::slice_sequences: block is 0, must be positive");
  CHECK(sliced({500}, 9, 128) ==
        "omnibal::slice_sequences: sequence 0 of 500 tokens has a block that costs more than "
        "limit, which is 9");
  auto const falling = [](std::int64_t tokens) { return 1000 - tokens; };
  CHECK(error_text<std::invalid_argument>([&] {
          static_cast<void>(slice_sequence(500, 2, falling));
        }) == "omnibal::slice_sequence: cost(256) is 744, less than cost(128), which is 872");
  std::vector<std::uint32_t> const none{2, 0};
  CHECK(error_text<std::invalid_argument>([&] { sliced_1f1b(2, none); }) ==
        "omnibal::sliced_1f1b: slices[1] is 0, must be positive");
}
