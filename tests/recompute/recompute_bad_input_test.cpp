// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "every_plan.hpp"

#include <omnibal/recompute/select_recompute.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_option;
using omnibal::select_recompute;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

struct unsigned_choice {
  std::uint64_t time;
  std::uint64_t bytes;
};

template <class Error, class Layers>
void check_refused(Layers const& layers, std::string const& text,
                   omnibal::select_recompute_options const& options = {}) {
  std::string const error =
      test::error_text<Error>([&] { return select_recompute(layers, 100, options); });
  INFO(error);
  bool const names_itself = error.find("omnibal::select_recompute: ") == 0;
  CHECK(names_itself);
  bool const names_argument = error.find(text) != std::string::npos;
  CHECK(names_argument);
}

}  // namespace

TEST_CASE("select_recompute refuses numbers that are negative or not finite") {
  using floating = std::vector<std::vector<activation_option<double>>>;
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  check_refused<std::invalid_argument>(test::layers_type{{{1, 1}}, {{0, 0}, {-3, 1}}},
                                       "time of choice 1 of layer 1 is -3");
  check_refused<std::invalid_argument>(test::layers_type{{{1, -2}}},
                                       "bytes of choice 0 of layer 0 is -2");
  check_refused<std::invalid_argument>(test::layers_type{{{1, 2, -4}}},
                                       "transient_bytes of choice 0 of layer 0 is -4");
  check_refused<std::invalid_argument>(floating{{{not_a_number, 1}}}, "time of choice 0");
  check_refused<std::invalid_argument>(floating{{{infinity, 1}}}, "is inf");
  check_refused<std::invalid_argument>(floating{{{-0.5, 1}}}, "is -0.5");
}

TEST_CASE("select_recompute refuses unsigned numbers above the signed range") {
  using unsigned_layers = std::vector<std::vector<unsigned_choice>>;
  constexpr std::uint64_t above = std::uint64_t{1} << 63;
  check_refused<std::invalid_argument>(unsigned_layers{{{above, 1}}}, "9223372036854775808");
  check_refused<std::invalid_argument>(unsigned_layers{{{1, above}}}, "bytes of choice 0");
  CHECK(select_recompute(unsigned_layers{{{above - 1, 1}}}, 100).time == largest);
}

TEST_CASE("select_recompute refuses a layer without choices") {
  check_refused<std::invalid_argument>(test::layers_type{{{1, 1}}, {}}, "layer 1 has no choices");
}

TEST_CASE("select_recompute refuses options without meaning") {
  test::layers_type const layers{{{1, 1}}};
  check_refused<std::invalid_argument>(layers, "options.in_flight is 0", {.in_flight = 0});
  check_refused<std::invalid_argument>(layers, "options.in_flight is -1", {.in_flight = -1});
  check_refused<std::invalid_argument>(layers, "options.reserve_bytes is -1",
                                       {.reserve_bytes = -1});
  check_refused<std::invalid_argument>(layers, "options.states is 0", {.states = 0});
  check_refused<std::invalid_argument>(layers, "max_gap is -1", {.max_gap = -1});
  check_refused<std::invalid_argument>(layers, "max_gap is 1", {.max_gap = 1});
  check_refused<std::invalid_argument>(layers, "max_gap is nan",
                                       {.max_gap = std::numeric_limits<double>::quiet_NaN()});
}

TEST_CASE("select_recompute refuses sums that leave their type") {
  check_refused<std::overflow_error>(test::layers_type{{{largest, 1}}, {{1, 1}}},
                                     "the sum of the largest times");
  check_refused<std::overflow_error>(test::layers_type{{{1, largest}}, {{1, 1}}},
                                     "the sum of the fewest bytes");
  check_refused<std::overflow_error>(test::layers_type{{{1, largest}}},
                                     "the sum of the fewest bytes", {.in_flight = 2});
  using floating = std::vector<std::vector<activation_option<double>>>;
  check_refused<std::overflow_error>(floating{{{1e308, 1}}, {{1e308, 1}}},
                                     "the sum of the largest times");
}
