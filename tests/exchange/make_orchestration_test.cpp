// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::make_orchestration;
using numbers = std::vector<std::int64_t>;
using span_of_numbers = std::span<std::int64_t const>;
using encoder_arrays = omnibal::encoder_phase<std::span<std::uint32_t const>, span_of_numbers,
                                              span_of_numbers, span_of_numbers>;

/// The measures of an encoder with their memory.
struct encoder {
  std::vector<std::uint32_t> counts;
  numbers costs;
  numbers bytes;
  numbers output_bytes;

  encoder_arrays measures() const { return {counts, costs, bytes, output_bytes}; }
};

encoder random_encoder(std::uint64_t seed, std::size_t samples) {
  test::random_amounts random(seed);
  encoder result;
  for (std::size_t s = 0; s != samples; ++s) {
    auto const pieces = static_cast<std::uint32_t>(random.between(0, 1) * random.between(1, 5));
    result.counts.push_back(pieces);
    for (std::uint32_t p = 0; p != pieces; ++p) {
      result.costs.push_back(random.heavy_tail(5000));
      result.bytes.push_back(random.heavy_tail(5000));
      result.output_bytes.push_back(random.heavy_tail(500));
    }
  }
  return result;
}

std::int64_t largest_load(omnibal::exchange_plan const& plan, numbers const& costs) {
  std::int64_t largest = 0;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    std::int64_t load = 0;
    for (std::uint32_t const item : plan.arrivals(rank)) load += costs[item];
    largest = std::max(largest, load);
  }
  return largest;
}

}  // namespace

TEST_CASE("every phase has its own even arrangement, and outputs travel once") {
  std::size_t const ranks = 12;
  std::vector<std::uint32_t> offsets{0};
  for (std::uint32_t r = 0; r != ranks; ++r) offsets.push_back(offsets.back() + r % 5 * 9);
  std::size_t const samples = offsets.back();
  test::random_amounts random(3);
  numbers text(samples);
  for (auto& length : text) length = random.heavy_tail(8000);
  std::vector<encoder> const encoders{random_encoder(1, samples), random_encoder(2, samples)};
  std::vector<encoder_arrays> measures;
  for (auto const& e : encoders) measures.push_back(e.measures());
  omnibal::make_plan_options const options{.ranks_per_node = 4};

  auto const plans = make_orchestration(offsets, {text, text}, measures, options);
  // The outputs of a sample's pieces move with it.
  numbers traveling = text;
  for (auto const& e : encoders) {
    std::size_t piece = 0;
    for (std::size_t s = 0; s != samples; ++s) {
      for (std::uint32_t k = 0; k != e.counts[s]; ++k) traveling[s] += e.output_bytes[piece++];
    }
  }
  CHECK(plans.samples == omnibal::make_plan(offsets, text, traveling, options));
  std::int64_t moved_text = 0;
  std::int64_t moved_across = 0;
  for (std::uint32_t s = 0; s != samples; ++s) {
    std::size_t const from = plans.samples.home_of(s);
    std::size_t const to = plans.samples.destination_of(s);
    if (from != to) moved_text += text[s];
    if (from / 4 != to / 4) moved_across += text[s];
  }
  CHECK(plans.samples.moved_bytes() == moved_text);
  CHECK(plans.samples.moved_bytes_across_nodes() == moved_across);
  REQUIRE(plans.encoders.size() == 2);
  for (std::size_t e = 0; e != 2; ++e) {
    auto const& routes = plans.encoders[e];
    auto const& measured = encoders[e];
    double const mean =
        static_cast<double>(std::accumulate(measured.costs.begin(), measured.costs.end(), 0ll)) /
        static_cast<double>(ranks);
    double const bound = std::max(
        mean, static_cast<double>(*std::max_element(measured.costs.begin(), measured.costs.end())));
    CHECK(static_cast<double>(largest_load(routes.inputs, measured.costs)) <= 1.02 * bound);

    numbers both = measured.bytes;
    for (std::size_t p = 0; p != both.size(); ++p) both[p] += measured.output_bytes[p];
    std::vector<std::uint32_t> piece_offsets{0};
    for (std::uint32_t s = 0, r = 0, pieces = 0; r != ranks; ++r) {
      for (; s != offsets[r + 1]; ++s) pieces += measured.counts[s];
      piece_offsets.push_back(pieces);
    }
    CHECK(routes.inputs == omnibal::make_plan(piece_offsets, measured.costs, both, options));
    std::int64_t moved_inputs = 0;
    for (std::uint32_t p = 0; p != both.size(); ++p) {
      if (routes.inputs.home_of(p) != routes.inputs.destination_of(p)) {
        moved_inputs += measured.bytes[p];
      }
    }
    CHECK(routes.inputs.moved_bytes() == moved_inputs);

    // What moves, piece by piece.
    std::vector<std::uint32_t> sample_of;
    for (std::uint32_t s = 0; s != samples; ++s) {
      sample_of.insert(sample_of.end(), measured.counts[s], s);
    }
    std::int64_t moved = 0;
    std::int64_t across = 0;
    for (std::uint32_t piece = 0; piece != sample_of.size(); ++piece) {
      auto const from = routes.inputs.destination_of(piece);
      auto const to = plans.samples.destination_of(sample_of[piece]);
      if (from != to) moved += measured.output_bytes[piece];
      if (from / 4 != to / 4) across += measured.output_bytes[piece];
    }
    CHECK(routes.outputs.moved_bytes() == moved);
    CHECK(routes.outputs.moved_bytes_across_nodes() == across);

    // Each rank gets the pieces of its samples, in order.
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      std::vector<std::uint32_t> wanted;
      std::vector<std::uint32_t> wanted_offsets{0};
      for (std::uint32_t const sample : plans.samples.arrivals(rank)) {
        for (std::uint32_t p = 0; p != sample_of.size(); ++p) {
          if (sample_of[p] == sample) wanted.push_back(p);
        }
        wanted_offsets.push_back(static_cast<std::uint32_t>(wanted.size()));
      }
      std::vector<std::uint32_t> got;
      for (std::uint32_t const slot : routes.outputs.arrivals(rank)) {
        got.push_back(routes.inputs.arrivals().item(slot));
      }
      CHECK(got == wanted);
      auto const found = routes.pieces_of_samples(plans.samples, rank);
      CHECK(std::vector<std::uint32_t>(found.begin(), found.end()) == wanted_offsets);
    }
  }
  omnibal::language_phase const by_lpt{text, text, omnibal::lpt};
  auto const other = make_orchestration(offsets, by_lpt, measures, options);
  CHECK(other.digest() != plans.digest());
  CHECK(make_orchestration(offsets, {text, text}, measures, options).digest() == plans.digest());
  std::vector<encoder_arrays> const swapped{measures[1], measures[0]};
  CHECK(make_orchestration(offsets, {text, text}, swapped, options).digest() != plans.digest());
}

TEST_CASE("samples of text alone and no encoders") {
  std::vector<std::uint32_t> const offsets{0, 2, 2, 4};
  numbers const text{3, 4, 5, 6};
  encoder const nothing{{0, 0, 0, 0}, {}, {}, {}};
  std::vector<encoder_arrays> const measures{nothing.measures()};
  auto const plans = make_orchestration(offsets, {text, text}, measures);
  CHECK(plans.encoders[0].inputs.sample_count() == 0);
  CHECK(plans.encoders[0].outputs.ranks() == 3);
  for (std::size_t rank = 0; rank != 3; ++rank) {
    for (std::uint32_t const offset : plans.encoders[0].pieces_of_samples(plans.samples, rank)) {
      CHECK(offset == 0);
    }
  }
  CHECK(make_orchestration(offsets, {text, text}, {}).encoders.empty());
}

TEST_CASE("wrong measures of an encoder are named") {
  std::vector<std::uint32_t> const offsets{0, 1, 2};
  numbers const text{3, 4};
  numbers const two{1, 1};
  numbers const one{1};
  auto const text_of = [&](std::vector<std::uint32_t> const& counts, numbers const& costs,
                           numbers const& bytes, numbers const& outputs) {
    std::vector<encoder_arrays> const measures{{counts, costs, bytes, outputs}};
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(make_orchestration(offsets, {text, text}, measures));
    });
  };
  std::string const name = "omnibal::make_orchestration: the number of ";
  CHECK(text_of({0, 2}, two, two, two) == "no error");
  CHECK(text_of({2}, two, two, two) == name + "piece counts is 1, must be 2");
  CHECK(text_of({0, 2}, one, two, two) == name + "costs is 1, must be 2");
  CHECK(text_of({0, 2}, two, one, two) == name + "bytes is 1, must be 2");
  CHECK(text_of({0, 2}, two, two, one) == name + "output bytes is 1, must be 2");
  CHECK(text_of({0, 2}, two, {1, -1}, two) ==
        "omnibal::make_orchestration: bytes of an encoder[1] is -1, must be finite and not "
        "negative");
  CHECK(text_of({0, 2}, two, two, {-2, 1}).find("output_bytes[0] is -2") != std::string::npos);
  numbers const negative{3, -4};
  auto const of_language = [&](numbers const& bytes) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(make_orchestration(offsets, {text, bytes}, {}));
    });
  };
  CHECK(of_language(negative).find("bytes of the language model[1] is -4") != std::string::npos);
  CHECK(of_language({1, 1, 1}) == name + "bytes of the language model is 3, must be 2");
  CHECK(of_language({1, 1}) == "no error");
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  numbers const huge{most, 0};
  std::vector<std::uint32_t> const two_counts{1, 1};
  std::vector<encoder_arrays> const one_encoder{{two_counts, two, two, two}};
  CHECK_THROWS_AS(make_orchestration(offsets, {text, huge}, one_encoder), std::overflow_error);
  std::uint32_t const many = 1u << 31;
  std::vector<std::uint32_t> const counts{many, many};
  std::vector<encoder_arrays> const measures{{counts, two, two, two}};
  CHECK_THROWS_AS(make_orchestration(offsets, {text, text}, measures), std::length_error);
}
