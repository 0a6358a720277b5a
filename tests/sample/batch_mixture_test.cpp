// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/sample/batch_mixture.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::batch_mixture;
using omnibal::source_end;

struct source {
  std::uint64_t size;
  std::int64_t weight;
};

batch_mixture mix(std::vector<source> const& sources, std::uint64_t batch,
                  omnibal::mixture_options const& options = {}) {
  return batch_mixture(sources, &source::size, &source::weight, batch, options);
}

}  // namespace

TEST_CASE("batches have one source, and no sample comes twice in an epoch") {
  test::random_amounts random(1);
  for (std::uint64_t round = 0; round != 200; ++round) {
    std::vector<source> sources(static_cast<std::size_t>(random.between(1, 5)));
    for (auto& of : sources) {
      of = {static_cast<std::uint64_t>(random.between(0, 40)), random.between(0, 3)};
    }
    auto const batch = static_cast<std::uint64_t>(random.between(1, 8));
    sources[0] = {batch * 2 + 1, 2};
    batch_mixture const mixed = mix(sources, batch, {.seed = round, .window = 4});
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<std::uint64_t>> seen;
    std::map<std::uint32_t, std::uint64_t> counts;
    for (std::uint64_t p = 0; p != 60; ++p) {
      auto const drawn = mixed(p);
      REQUIRE(drawn.samples.size() == batch);
      REQUIRE(sources[drawn.source].weight != 0);
      ++counts[drawn.source];
      for (std::uint64_t const sample : drawn.samples) {
        REQUIRE(sample < sources[drawn.source].size);
        REQUIRE(seen[{drawn.source, drawn.epoch}].insert(sample).second);
      }
    }
    auto const expected = mixed.batches().drawn(60);
    std::vector<std::uint32_t> skipped;
    for (std::uint32_t i = 0; i != sources.size(); ++i) {
      REQUIRE(counts[i] == expected[i]);
      if (sources[i].weight != 0 && sources[i].size < batch) skipped.push_back(i);
    }
    REQUIRE(mixed.skipped() == skipped);
  }
}

TEST_CASE("a small source is skipped, and other samples are left out in each epoch") {
  batch_mixture const mixed = mix({{10, 1}, {3, 5}, {0, 1}}, 4);
  CHECK(mixed.skipped() == std::vector<std::uint32_t>{1, 2});
  std::set<std::set<std::uint64_t>> epochs;
  for (std::uint64_t epoch = 0; epoch != 8; ++epoch) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t k = 0; k != 2; ++k) {
      auto const batch = mixed(2 * epoch + k);
      CHECK(batch.source == 0);
      CHECK(batch.epoch == epoch);
      seen.insert(batch.samples.begin(), batch.samples.end());
    }
    CHECK(seen.size() == 8);
    epochs.insert(seen);
  }
  CHECK(epochs.size() > 5);
  CHECK(mix({{10, 1}, {9, 1}}, 4, {.end = source_end::drop_out}).size() == 4);
  CHECK(mixed.digest() != mix({{11, 1}, {3, 5}, {0, 1}}, 4).digest());
}

TEST_CASE("wrong arguments of batch_mixture are errors that name them") {
  auto const text = [](std::vector<source> const& sources, std::uint64_t batch) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(mix(sources, batch)); });
  };
  CHECK(text({{3, 1}, {2, 1}, {9, 0}}, 4) ==
        "omnibal::batch_mixture: no source with a weight has 4 samples, which is a batch");
  CHECK(text({{3, 1}}, 0).starts_with("omnibal::batch_mixture: batch is 0"));
}
