// SPDX-License-Identifier: Apache-2.0
// What a trainer writes: a loop with checkpoints that may end at any time.

#include "samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/bundles.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

struct document {
  std::int64_t video;
  std::int64_t tokens;
};

struct data_set {
  std::string name;
  std::uint64_t size;
  double weight;
};

std::vector<document> make_documents() {
  test::random_amounts random(1);
  std::vector<document> documents(200);
  for (document& made : documents) made = {random.between(0, 60), random.between(50, 700)};
  return documents;
}

using log_type = std::vector<std::uint32_t>;

/// One rank of a run that takes packed documents, the clips of a video together.
void train(omnibal::shard const& place, std::size_t steps_to_run, log_type& log,
           std::optional<omnibal::sampler_state>& checkpoint) {
  std::vector<document> const documents = make_documents();
  auto const videos = omnibal::bundle_by(documents, &document::video);
  auto const demands = omnibal::bundle_loads(videos, documents, &document::tokens);
  auto const packed = omnibal::best_fit_decreasing(demands, std::identity{}, 8192);
  auto const batches = omnibal::unbundle(packed, videos);
  auto const loads = omnibal::group_loads(batches.groups, documents, &document::tokens);

  omnibal::schedule_steps_options const options{.seed = 42};
  auto sampler = checkpoint ? omnibal::step_sampler(loads, place, options, *checkpoint)
                            : omnibal::step_sampler(loads, place, options);
  for (std::size_t step = 0; step != steps_to_run; ++step) {
    for (std::uint32_t const group : sampler.next()) {
      for (std::uint32_t const index : batches.groups[group]) log.push_back(index);
    }
  }
  checkpoint = sampler.state();
}

}  // namespace

TEST_CASE("a run over packed groups goes on from its checkpoint") {
  log_type whole;
  std::optional<omnibal::sampler_state> checkpoint;
  train({.ranks = 2, .rank = 0}, 25, whole, checkpoint);
  CHECK(whole.size() > 200);
  log_type log;
  std::optional<omnibal::sampler_state> resumed;
  for (int part = 0; part != 5; ++part) train({.ranks = 2, .rank = 0}, 5, log, resumed);
  CHECK(log == whole);
  CHECK(resumed == checkpoint);
}

TEST_CASE("a run over samples goes on from its checkpoint") {
  omnibal::shard const place{.ranks = 4, .rank = 2};
  omnibal::epoch_sampler_options const options{.seed = 42, .batch = 3};
  std::vector<std::uint64_t> whole;
  omnibal::epoch_sampler sampler(100, place, options);
  omnibal::sampler_state checkpoint = sampler.state();
  for (int step = 0; step != 30; ++step) {
    for (std::uint64_t const sample : sampler.next()) whole.push_back(sample);
  }
  std::vector<std::uint64_t> log;
  for (int step = 0; step != 30; ++step) {
    omnibal::epoch_sampler resumed(100, place, options, checkpoint);
    for (std::uint64_t const sample : resumed.next()) log.push_back(sample);
    checkpoint = resumed.state();
  }
  CHECK(log == whole);
}

TEST_CASE("a run over a mixture needs the position alone") {
  std::vector<data_set> const sets{{"captions", 1000, 0.7}, {"documents", 50, 0.3}};
  omnibal::mixture const mixed(sets, &data_set::size, &data_set::weight, {.seed = 42});
  std::size_t captions = 0;
  std::size_t later_epochs = 0;
  for (std::uint64_t position = 0; position != 400; ++position) {
    auto const draw = mixed(position);
    if (sets[draw.source].name == "captions") ++captions;
    if (draw.epoch != 0) ++later_epochs;
  }
  CHECK(captions == 280);
  CHECK(later_epochs == 70);
}
