// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/sample/loss_normalizer.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::loss_normalizer;

/// The loss of a token of a sample, and whether it has one (a prompt has none).
struct token {
  double loss;
  bool counts;
};
using sample_tokens = std::vector<token>;

std::vector<sample_tokens> random_samples(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  std::vector<sample_tokens> result(count);
  for (sample_tokens& sample : result) {
    auto const length = static_cast<std::size_t>(random.between(1, 400));
    auto const prompt = static_cast<std::size_t>(random.between(0, 400));
    for (std::size_t i = 0; i != length; ++i) {
      sample.push_back({static_cast<double>(random.between(0, 1'000'000)) * 1e-5, i >= prompt});
    }
  }
  return result;
}

struct part {
  double loss_sum = 0;
  std::int64_t tokens = 0;
};

void add(part& sum, sample_tokens const& sample) {
  for (token const& one : sample) {
    if (!one.counts) continue;
    sum.loss_sum += one.loss;
    ++sum.tokens;
  }
}

/// The mean over the ranks of what each of them computes with the scale.
double mean_over_ranks(std::vector<part> const& ranks) {
  std::vector<std::int64_t> counts;
  for (part const& rank : ranks) counts.push_back(rank.tokens);
  double const scale = loss_normalizer(counts);
  double sum = 0;
  for (part const& rank : ranks) sum += rank.loss_sum * scale;
  return sum / static_cast<double>(ranks.size());
}

static_assert(std::invocable<omnibal::loss_normalizer_fn, std::array<std::int32_t, 2>>);
static_assert(!std::invocable<omnibal::loss_normalizer_fn, std::vector<double>>);

}  // namespace

TEST_CASE("the loss over ranks is that of a single rank with the same global batch") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    auto const samples = random_samples(40, seed);
    part single;
    for (sample_tokens const& sample : samples) add(single, sample);
    double const expected = single.loss_sum / static_cast<double>(single.tokens);
    auto const packs = omnibal::best_fit_decreasing(samples, &sample_tokens::size, 400);
    for (std::size_t const ranks : {1u, 2u, 3u, 8u, 64u}) {
      std::vector<part> of_rank(ranks);
      for (std::size_t g = 0; g != packs.groups.size(); ++g) {
        for (std::uint32_t const item : packs.groups[g]) add(of_rank[g % ranks], samples[item]);
      }
      INFO(ranks << " ranks");
      CHECK(mean_over_ranks(of_rank) == Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("ranks that share a pack give what each has of it") {
  auto const samples = random_samples(6, 3);
  part single;
  std::vector<part> ranks(4);
  for (sample_tokens const& sample : samples) {
    add(single, sample);
    for (std::size_t rank = 0; rank != 4; ++rank) {
      std::size_t const first = rank * sample.size() / 4;
      std::size_t const last = (rank + 1) * sample.size() / 4;
      add(ranks[rank], {sample.begin() + static_cast<std::ptrdiff_t>(first),
                        sample.begin() + static_cast<std::ptrdiff_t>(last)});
    }
  }
  CHECK(mean_over_ranks(ranks) ==
        Approx(single.loss_sum / static_cast<double>(single.tokens)).epsilon(1e-12));
}

TEST_CASE(
    "with the scale of an epoch the mean over its steps is the loss of a token of the epoch") {
  auto const samples = random_samples(60, 5);
  part epoch;
  std::vector<part> cells(15);
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i != samples.size(); ++i) {
    add(epoch, samples[i]);
    // Steps of three ranks, of which some have more samples than others.
    add(cells[i % 7 * (i % 3) % 15], samples[i]);
  }
  for (part const& cell : cells) counts.push_back(cell.tokens);
  double const scale = loss_normalizer(counts);
  double sum = 0;
  for (std::size_t step = 0; step != 5; ++step) {
    double mean = 0;
    for (std::size_t rank = 0; rank != 3; ++rank) {
      mean += cells[3 * step + rank].loss_sum * scale / 3;
    }
    sum += mean / 5;
  }
  CHECK(sum == Approx(epoch.loss_sum / static_cast<double>(epoch.tokens)).epsilon(1e-12));
}

TEST_CASE("the scale is one over the mean number of tokens, and zero without any") {
  CHECK(loss_normalizer(std::vector<int>{100}) == 0.01);
  CHECK(loss_normalizer(std::array<std::uint32_t, 4>{8, 0, 0, 0}) == 0.5);
  CHECK(loss_normalizer(std::vector<std::int64_t>{0, 0}) == 0.0);
}

TEST_CASE("bad counts of loss tokens are errors") {
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(loss_normalizer(std::vector<int>{}));
        }) == "omnibal::loss_normalizer: loss_tokens is empty");
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(loss_normalizer(std::vector<int>{4, -1}));
        }) == "omnibal::loss_normalizer: loss_tokens[1] is -1, must be finite and not negative");
  CHECK(
      test::error_text<std::overflow_error>([] {
        std::int64_t const most = std::numeric_limits<std::int64_t>::max();
        static_cast<void>(loss_normalizer(std::vector<std::int64_t>{most, 1}));
      }) ==
      "omnibal::loss_normalizer: the sum of the loss tokens exceeds the largest value of its type");
}
