// SPDX-License-Identifier: Apache-2.0
#include "synthetic.hpp"

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <catch.hpp>

namespace {

std::uint64_t digest(examples::dataset const& data) {
  std::uint64_t result = 0;
  for (auto const& one : data.samples) {
    result = omnibal::rng::mix(result ^ static_cast<std::uint64_t>(one.images));
    result = omnibal::rng::mix(result ^ static_cast<std::uint64_t>(one.tokens));
  }
  return result;
}

}  // namespace

TEST_CASE("the synthetic data set is the same everywhere") {
  auto const data = examples::synthetic_lengths(100000, 1024);
  CHECK(digest(data) == 16928006377356956481u);
  CHECK(examples::synthetic_lengths(100000, 1025).samples != data.samples);

  auto const few = examples::synthetic_lengths(10, 1024);
  CHECK(std::equal(few.samples.begin(), few.samples.end(), data.samples.begin()));
}

TEST_CASE("the synthetic data set has the shares that its documentation states") {
  auto const data = examples::synthetic_lengths(100000, 1024);
  auto const count = [&](auto const& rule) { return std::ranges::count_if(data.samples, rule); };
  auto const text_only = count([](auto const& one) { return one.images == 0; });
  CHECK(text_only > 29500);
  CHECK(text_only < 30500);
  auto const many_images = count([](auto const& one) { return one.images > 9; });
  CHECK(many_images > 200);
  CHECK(many_images < 340);
  auto const long_text = count([](auto const& one) { return one.tokens > 4096; });
  CHECK(long_text > 600);
  CHECK(long_text < 800);
  CHECK(count([](auto const& one) { return one.tokens < 256 * one.images + 16; }) == 0);
}
