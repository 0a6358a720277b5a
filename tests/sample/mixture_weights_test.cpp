// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/sample/mixture.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::mixture;
using omnibal::mixture_draw;
using omnibal::mixture_options;
using omnibal::source_end;

struct source {
  std::uint64_t size;
  std::int64_t weight;
};

mixture mix(std::vector<source> const& sources, mixture_options const& options = {}) {
  return mixture(sources, &source::size, &source::weight, options);
}

/// What is wrong with the first draws of a mixture, by counting them one by one: a sample that
/// comes twice in an epoch, one that is lost, a wrong number of draws; empty where nothing is.
std::string fault(mixture const& mixed, std::vector<source> const& sources, std::uint64_t length,
                  std::uint64_t window) {
  std::vector<std::uint64_t> counts(sources.size(), 0);
  std::map<std::pair<std::size_t, std::uint64_t>, std::set<std::uint64_t>> seen;
  for (std::uint64_t p = 0; p != length; ++p) {
    if (mixed.drawn(p) != counts) return "drawn is wrong";
    if (mixed.seek(counts) != p) return "seek is wrong";
    mixture_draw const draw = mixed(p);
    ++counts[draw.source];
    if (draw.sample >= sources[draw.source].size) return "there is no such sample";
    if (!seen[{draw.source, draw.epoch}].insert(draw.sample).second) return "a sample comes twice";
  }
  if (mixed.drawn(length) != counts) return "drawn is wrong at the end";
  // Only the last window, or a window that new weights cut, may have drawn ahead of a source.
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i != sources.size(); ++i) {
    for (std::uint64_t epoch = 0; epoch < counts[i] / std::max<std::uint64_t>(sources[i].size, 1);
         ++epoch) {
      lost += sources[i].size - seen[{i, epoch}].size();
    }
  }
  return lost < window ? "" : "samples are lost";
}

/// What is wrong with the end of a mixture.
std::string end_fault(mixture const& mixed, std::vector<source> const& sources, source_end end) {
  auto const counts = mixed.drawn(mixed.size());
  std::map<std::size_t, std::set<std::uint64_t>> seen;
  for (std::uint64_t p = 0; p != mixed.size(); ++p) {
    auto const draw = mixed(p);
    if (draw.epoch == 0) seen[draw.source].insert(draw.sample);
  }
  for (std::size_t i = 0; i != sources.size(); ++i) {
    bool const is_drawn = sources[i].weight != 0;
    if (end != source_end::stop_after_all && counts[i] > sources[i].size)
      return "a repeated sample";
    if (end == source_end::drop_out && is_drawn && counts[i] != sources[i].size)
      return "a lost one";
    if (end == source_end::stop_after_all && is_drawn && seen[i].size() != sources[i].size) {
      return "a source that was not seen";
    }
  }
  return "";
}

}  // namespace

TEST_CASE(
    "the case of Megatron and Energon: other weights at position 600 lose and repeat nothing") {
  std::vector<source> sources{{1000, 1}, {1000, 1}};
  mixture const before = mix(sources, {.seed = 7, .window = 8});
  for (std::uint64_t const position : {600u, 603u}) {
    sources[0].weight = 2;
    mixture const after = before.reweighted(position, sources, &source::weight);
    for (std::uint64_t p = 0; p != position; ++p) REQUIRE(after(p) == before(p));
    CHECK(fault(after, sources, 1400, 8) == "");
    auto const counts = after.drawn(position + 600);
    CHECK(counts[0] == before.drawn(position)[0] + 400);
    CHECK(after.digest() != before.digest());
    CHECK(after.period() == 3);
  }
}

TEST_CASE("changed weights and every end, compared with counting draws one by one", "[slow]") {
  test::random_amounts random(1);
  std::size_t cuts = 0;
  std::size_t ends = 0;
  for (std::uint64_t round = 0; round != 3000; ++round) {
    std::vector<source> sources(static_cast<std::size_t>(random.between(1, 5)));
    auto const set_weights = [&] {
      for (auto& of : sources) of.weight = random.between(0, 6);
      sources[static_cast<std::size_t>(
                  random.between(0, static_cast<std::int64_t>(sources.size()) - 1))]
          .weight = 3;
    };
    for (auto& of : sources) of.size = static_cast<std::uint64_t>(random.between(1, 12));
    set_weights();
    auto const end = static_cast<source_end>(random.between(0, 3));
    auto const window = static_cast<std::uint64_t>(random.between(1, 9));
    mixture mixed = mix(sources, {.seed = round, .end = end, .window = window});
    for (std::int64_t change = random.between(0, 3); change != 0; --change) {
      std::uint64_t const most = std::min<std::uint64_t>(mixed.size(), 60);
      auto const position =
          static_cast<std::uint64_t>(random.between(0, static_cast<std::int64_t>(most)));
      set_weights();
      mixture const next = mixed.reweighted(position, sources, &source::weight);
      for (std::uint64_t p = 0; p != position; ++p) REQUIRE(next(p) == mixed(p));
      mixed = next;
      ++cuts;
    }
    std::uint64_t const length = std::min<std::uint64_t>(mixed.size(), 120);
    REQUIRE(fault(mixed, sources, length, window * 4) == "");
    if (mixed.size() != length) continue;
    ++ends;
    REQUIRE(end_fault(mixed, sources, end) == "");
  }
  CHECK(cuts > 2000);
  CHECK(ends > 1000);
}

TEST_CASE("ends of sizes 3 4 3: the first, all, and sources that drop out") {
  std::vector<source> const sources{{3, 1}, {4, 1}, {3, 1}};
  CHECK(mix(sources, {.end = source_end::stop}).size() == 9);
  mixture const all = mix(sources, {.end = source_end::stop_after_all});
  CHECK(all.size() >= 10);
  CHECK(all.size() <= 12);
  CHECK(all(all.size() - 1).source == 1);
  mixture const rest = mix(sources, {.end = source_end::drop_out});
  CHECK(rest.size() == 10);
  CHECK(rest.drawn(10) == std::vector<std::uint64_t>{3, 4, 3});
  // While all sources have samples, the draws are the draws of the other ends.
  for (std::uint64_t p = 0; p != 9; ++p) CHECK(rest(p) == all(p));
}

TEST_CASE("a mixture continues from what each source gave") {
  std::vector<source> const sources{{50, 2}, {40, 1}};
  mixture const whole = mix(sources, {.seed = 3});
  mixture const rest = mix(sources, {.seed = 3, .drawn = whole.drawn(30)});
  for (std::uint64_t p = 0; p != 90; ++p) REQUIRE(rest(p) == whole(p + 30));
  CHECK(rest.seek(whole.drawn(45)) == 15);
  CHECK(rest.digest() != whole.digest());
  // Another loader may have given any numbers of draws.
  mixture const other = mix(sources, {.seed = 3, .drawn = {7, 33}});
  std::set<std::uint64_t> seen;
  for (std::uint64_t p = 0; other(p).epoch == 0 && p != 30; ++p) {
    if (other(p).source == 1) seen.insert(other(p).sample);
  }
  for (std::uint64_t p = 0; p != 99; ++p) {
    if (whole(p).source == 1) seen.insert(whole(p).sample);
  }
  CHECK(seen.size() == 40);
  CHECK(mix(sources, {.end = source_end::drop_out, .drawn = {50, 0}}).size() == 40);
}

TEST_CASE("wrong positions, weights and draws are errors that name them") {
  std::vector<source> const sources{{50, 2}, {0, 0}};
  mixture const mixed = mix(sources, {.end = source_end::stop});
  auto const text = [&](auto const& call) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
  };
  CHECK(text([&] { return mixed.reweighted(51, sources, &source::weight); }) ==
        "omnibal::mixture: position is 51, must be at most 50");
  CHECK(text([&] {
          return mixed.reweighted(5, std::vector<int>{1, 1}, [](int weight) { return weight; });
        }) == "omnibal::mixture: source 1 has a weight but no samples");
  CHECK(text([&] {
          return mixed.reweighted(5, std::vector<int>{1}, [](int weight) { return weight; });
        }) == "omnibal::mixture: sources has 1 elements, must have 2, one for each source");
  CHECK(text([&] { return mix(sources, {.drawn = {1}}); }) ==
        "omnibal::mixture: options.drawn has 1 elements, must have 2, one for each source");
  CHECK(text([&] {
          return mix(sources, {.end = source_end::drop_out, .drawn = {50, 0}});
        }) == "omnibal::mixture: no source with a weight has samples left");
  CHECK(text([&] { return mixed.drawn(51); }) ==
        "omnibal::mixture: position is 51, must be at most 50");
  CHECK(text([&] {
          return mixed.seek(std::vector<std::uint64_t>{3, 1});
        }) ==
        "omnibal::mixture: no position has these draws: at position 4, source 0 has 4, not 3");
  CHECK(text([&] {
          return mixed.seek(std::vector<std::uint64_t>{60, 0});
        }) == "omnibal::mixture: source 0 has never 60 draws");
}
