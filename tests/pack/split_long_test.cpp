// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/split_long.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::long_samples;
using omnibal::piece_sizes;
using omnibal::split_long;
using omnibal::split_long_options;
using omnibal::split_packing;
using omnibal::text_piece;

using lengths = std::vector<std::int64_t>;

template <class Length>
concept measures = std::invocable<omnibal::split_long_fn, lengths, Length, std::int64_t>;
static_assert(measures<std::identity>);
static_assert(!measures<double (*)(std::int64_t)>);
static_assert(!measures<omnibal::resources<2> (*)(std::int64_t)>);

/// What is wrong with the pieces and groups; empty where nothing is.
std::string fault(split_packing const& result, lengths const& samples, std::int64_t capacity,
                  split_long_options const& options) {
  std::vector<std::uint8_t> grouped(result.pieces.size(), 0);
  for (std::size_t g = 0; g != result.groups.size(); ++g) {
    std::int64_t load = 0;
    for (std::uint32_t const piece : result.groups[g]) {
      if (grouped[piece]++ != 0) return "a piece is in two groups";
      load += result.pieces[piece].length;
    }
    if ((load > capacity) != (g >= result.first_long_group)) return "a group is marked wrongly";
    if (g >= result.first_long_group && result.groups[g].size() != 1) return "not a group alone";
  }
  if (std::count(grouped.begin(), grouped.end(), 1) != std::ssize(grouped)) return "lost a piece";

  lengths next_token(samples.size(), 0);
  std::vector<std::uint32_t> parts(samples.size(), 0);
  for (text_piece const& piece : result.pieces) {
    if (piece.first != next_token[piece.sample]) return "a piece does not continue its sample";
    if (piece.part != parts[piece.sample]++) return "a piece has the wrong number";
    if (piece.first % options.multiple != 0) return "a piece starts at no multiple";
    if (piece.part != 0 && options.sizes == piece_sizes::even &&
        std::abs(piece.length - (&piece)[-1].length) > options.multiple) {
      return "pieces are not even";
    }
    if (piece.length <= 0 && samples[piece.sample] != 0) return "an empty piece";
    next_token[piece.sample] += piece.length;
  }
  std::vector<std::uint32_t> oversized;
  for (std::uint32_t i = 0; i != samples.size(); ++i) {
    bool const rejected = samples[i] > capacity && options.policy == long_samples::reject;
    if (rejected) oversized.push_back(i);
    if (next_token[i] != (rejected ? 0 : samples[i])) return "tokens are lost";
    if ((parts[i] == 0) != rejected) return "a sample is lost";
    if (parts[i] > 1 && samples[i] <= capacity) return "a sample that fits is cut";
  }
  if (result.oversized != oversized) return "oversized samples are listed wrongly";
  if (result.report.lower_bound > result.groups.size()) return "the bound is above the groups";
  return {};
}

lengths sizes_of(std::int64_t sample, std::int64_t capacity, split_long_options const& options) {
  lengths result;
  for (text_piece const& piece :
       split_long(lengths{sample}, std::identity{}, capacity, options).pieces) {
    result.push_back(piece.length);
  }
  return result;
}

}  // namespace

TEST_CASE("split_long loses no token") {
  test::random_amounts random(1);
  for (int repeat = 0; repeat != 300; ++repeat) {
    std::int64_t const capacity = random.between(1, 40) << random.between(0, 20);
    lengths samples(static_cast<std::size_t>(random.between(0, 60)));
    for (std::int64_t& sample : samples) {
      sample = random.heavy_tail(capacity * random.between(1, 30));
    }
    for (auto const policy : {long_samples::reject, long_samples::own_group, long_samples::split}) {
      for (auto const sizes : {piece_sizes::even, piece_sizes::full}) {
        split_long_options const options{policy, sizes, random.between(1, capacity)};
        INFO("capacity " << capacity << ", multiple " << options.multiple);
        auto const check = [&](auto const&... pack) {
          auto const result = split_long(samples, std::identity{}, capacity, pack..., options);
          CHECK(fault(result, samples, capacity, options) == "");
        };
        check();
        check(omnibal::next_fit);
        check(omnibal::isf);
      }
    }
  }
}

TEST_CASE("split_long makes even or full pieces that start at multiples") {
  using sizes = piece_sizes;
  CHECK(sizes_of(10, 4, {.sizes = sizes::even}) == lengths{3, 3, 4});
  CHECK(sizes_of(10, 4, {.sizes = sizes::full}) == lengths{4, 4, 2});
  CHECK(sizes_of(8, 4, {.sizes = sizes::even}) == lengths{4, 4});
  CHECK(sizes_of(5, 4, {.sizes = sizes::full}) == lengths{4, 1});
  CHECK(sizes_of(4, 4, {}) == lengths{4});
  CHECK(sizes_of(0, 4, {}) == lengths{0});
  CHECK(sizes_of(1000, 400, {.sizes = sizes::even, .multiple = 128}) == lengths{256, 384, 360});
  CHECK(sizes_of(1300, 400, {.sizes = sizes::even, .multiple = 128}) ==
        lengths{256, 384, 384, 276});
  CHECK(sizes_of(1000, 400, {.sizes = sizes::full, .multiple = 128}) == lengths{384, 384, 232});
  CHECK(sizes_of(1025, 512, {.sizes = sizes::full, .multiple = 128}) == lengths{512, 512, 1});
  CHECK(sizes_of(1025, 512, {.sizes = sizes::even, .multiple = 128}) == lengths{384, 384, 257});
}

TEST_CASE("split_long puts long samples into groups of their own behind the others") {
  auto const result = split_long(lengths{9, 2, 30, 3, 0}, std::identity{}, 5, omnibal::next_fit,
                                 {.policy = long_samples::own_group});
  std::vector<text_piece> const pieces{
      {1, 0, 0, 2}, {3, 0, 0, 3}, {4, 0, 0, 0}, {0, 0, 0, 9}, {2, 0, 0, 30}};
  CHECK(result.pieces == pieces);
  CHECK(result.groups == omnibal::grouping({0, 3, 4, 5}, {0, 1, 2, 3, 4}));
  CHECK(result.first_long_group == 1);
  CHECK(result.report.lower_bound == 3);
  CHECK(result.oversized.empty());
}

TEST_CASE("split_long lists rejected samples") {
  auto const result = split_long(lengths{9, 2, 30, 3}, std::identity{}, 5, omnibal::next_fit,
                                 {.policy = long_samples::reject});
  CHECK(result.oversized == std::vector<std::uint32_t>{0, 2});
  CHECK(result.pieces.size() == 2);
  CHECK(result.first_long_group == result.groups.size());
}

TEST_CASE("split_long refuses bad arguments") {
  auto const names = [](auto const& body, std::string const& part) {
    std::string const error = test::error_text<std::invalid_argument>(body);
    INFO(error);
    CHECK(error.find("omnibal::split_long: ") == 0);
    CHECK(error.find(part) != std::string::npos);
  };
  lengths const samples{1, 2, 9};
  auto const call = [&](std::int64_t capacity, split_long_options const& options) {
    return [&samples, capacity, options] {
      return split_long(samples, std::identity{}, capacity, options);
    };
  };
  names(call(0, {}), "capacity[0] is 0");
  names(call(5, {.multiple = 0}), "options.multiple is 0");
  names(call(5, {.multiple = 6}), "options.multiple is 6");
  names([] { return split_long(lengths{1, -2}, std::identity{}, 5); }, "sample 1 is -2");
  auto const forgetful = [](auto const&, auto const&, auto const&) { return omnibal::packing{}; };
  names([&] { return split_long(samples, std::identity{}, 5, forgetful); },
        "the packer has 0 of 4 pieces");
  lengths const endless{std::numeric_limits<std::int64_t>::max()};
  CHECK(test::error_text<std::length_error>([&] {
          return split_long(endless, std::identity{}, 7);
        }).find("omnibal::split_long: pieces has 1317624576693539401 elements") == 0);
}
