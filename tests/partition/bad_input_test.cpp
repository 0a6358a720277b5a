// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "stage_function.hpp"

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::partition_constraints;
using test::stage_function;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

struct users_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The text of the error has all of these.
template <class Error, class Call>
void check_refused(Call const& call, std::vector<std::string> const& texts) {
  std::string const error = test::error_text<Error>(call);
  INFO(error);
  for (std::string const& text : texts) {
    INFO(text);
    bool const is_named = error.find(text) != std::string::npos;
    CHECK(is_named);
  }
}

stage_function<std::int64_t> const count_of = [](std::size_t, std::size_t first, std::size_t last) {
  return static_cast<std::int64_t>(last - first);
};

void check_contradiction(std::size_t layers, std::size_t stages,
                         partition_constraints const& constraints, std::vector<std::string> texts) {
  texts.push_back("omnibal::partition_layers: ");
  check_refused<std::invalid_argument>(
      [&] {
        return omnibal::partition_layers(layers, stages, count_of, {},
                                         {.constraints = constraints});
      },
      texts);
  texts.back() = "omnibal::partition_throughput: ";
  check_refused<std::invalid_argument>(
      [&] {
        return omnibal::partition_throughput(layers, stages, count_of, {},
                                             {.micro_batches = 2, .constraints = constraints});
      },
      texts);
}

}  // namespace

TEST_CASE("partition_minimax refuses costs that are negative, not finite or too large") {
  auto const refuse = [](auto const& costs, std::string const& text) {
    check_refused<std::invalid_argument>([&] { return omnibal::partition_minimax(costs, 2); },
                                         {"omnibal::partition_minimax: ", text});
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_minimax(costs, std::vector{1.0, 2.0});
        },
        {"omnibal::partition_minimax: ", text});
  };
  refuse(std::vector{1, 2, -4}, "cost[2] is -4");
  refuse(std::vector{1.0, 2.0, -0.5}, "cost[2] is -0.5");
  refuse(std::vector{1.0, not_a_number, 1.0}, "cost[1] is");
  refuse(std::vector{1.0, 1.0, infinity}, "cost[2] is inf");
  refuse(std::vector{std::uint64_t{1}, std::uint64_t{1} << 63}, "cost[1] is 9223372036854775808");
  refuse(std::vector{std::int64_t{5}, std::int64_t{-5}, largest}, "cost[1] is -5");
}

TEST_CASE("partition_minimax refuses a sum that leaves its type") {
  auto const refuse = [](auto const& costs) {
    check_refused<std::overflow_error>([&] { return omnibal::partition_minimax(costs, 2); },
                                       {"omnibal::partition_minimax: the sum of the costs"});
  };
  refuse(std::vector{largest, std::int64_t{1}});
  refuse(std::vector{largest, largest, largest});
  refuse(std::vector<std::int64_t>(5, largest));
  // The sum is too large before the negative cost comes.
  refuse(std::vector{largest, largest, std::int64_t{-5}, largest});
  refuse(std::vector{1e308, 1e308});
  CHECK(omnibal::partition_minimax(std::vector{largest, std::int64_t{0}}, 2).bottleneck == largest);
  check_refused<std::overflow_error>(
      [] { return omnibal::partition_minimax(std::vector{1e300}, std::vector{1e-300}); },
      {"over speeds[0]"});
}

TEST_CASE("partitions refuse no stages, and more stages than layers where all must have some") {
  std::vector<int> const three{1, 2, 3};
  check_refused<std::invalid_argument>([&] { return omnibal::partition_minimax(three, 0); },
                                       {"stages is 0"});
  check_refused<std::invalid_argument>([&] { return omnibal::partition_minimax(three, 4); },
                                       {"omnibal::partition_minimax: 3 layers", "4 stages"});
  check_refused<std::invalid_argument>(
      [] { return omnibal::partition_minimax(std::vector<int>{}, 1); }, {"0 layers"});
  check_contradiction(3, 0, {}, {"stages is 0"});
  check_contradiction(3, 4, {}, {"3 layers", "4 stages"});
  check_contradiction(0, 1, {}, {"0 layers"});
  check_refused<std::invalid_argument>(
      [&] { return omnibal::partition_minimax(three, std::vector<int>{}); }, {"stages is 0"});
}

TEST_CASE("more layers or stages than indices can name are a length error") {
  std::size_t const many = std::size_t{1} << 32;
  check_refused<std::length_error>(
      [&] {
        return omnibal::partition_minimax(std::vector{1, 2}, many, std::identity{},
                                          {.empty = omnibal::empty_stages::allowed});
      },
      {"omnibal::partition_minimax: stages is 4294967296, must be at most 4294967295"});
  check_refused<std::length_error>([&] { return omnibal::partition_layers(many, 2, count_of); },
                                   {"omnibal::partition_layers", "layers", "4294967296"});
}

TEST_CASE("speeds must be positive and finite") {
  for (double const speed : {0.0, -1.0, infinity, not_a_number}) {
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_minimax(std::vector{1, 2}, std::vector{1.0, speed});
        },
        {"omnibal::partition_minimax: speeds[1]"});
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_layers(2, 2, count_of, {},
                                           {.base = {0, 0}, .speeds = {1.0, speed}});
        },
        {"omnibal::partition_layers: speeds[1]"});
  }
}

TEST_CASE("a stage cost must be finite, not negative and not below its base") {
  auto const returning = [](auto value) -> stage_function<decltype(value)> {
    return [value](std::size_t, std::size_t first, std::size_t last) {
      return first == 2 && last == 3 ? value : decltype(value){1};
    };
  };
  auto const refuse = [&](auto value, std::string const& text) {
    check_refused<std::invalid_argument>(
        [&] { return omnibal::partition_layers(4, 4, returning(value)); },
        {"omnibal::partition_layers: the cost of stage 2 with the layers [2, 3)", text});
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_throughput(4, 4, returning(value), {}, {.micro_batches = 3});
        },
        {"omnibal::partition_throughput: the cost of stage 2", text});
  };
  refuse(std::int64_t{-3}, "is -3");
  refuse(-0.25, "is -0.25");
  refuse(not_a_number, "nan");
  refuse(infinity, "is inf");
  refuse(std::uint64_t{1} << 63, "is 9223372036854775808");
  check_refused<std::invalid_argument>(
      [] {
        return omnibal::partition_layers(3, 3, count_of, {}, {.base = {1, 5, 1}});
      },
      {"the cost of stage 1 with the layers [1, 2) is 1, below its base 5"});
  check_refused<std::invalid_argument>(
      [] {
        return omnibal::partition_layers(3, 3, count_of, {}, {.base = {1, -5, 1}});
      },
      {"base[1] is -5"});
  check_refused<std::overflow_error>(
      [] {
        return omnibal::partition_layers(3, 3, count_of, {}, {.base = {1, largest, 1}});
      },
      {"the sum of base"});
}

TEST_CASE("the time of a step must not leave its type") {
  stage_function<std::int64_t> const huge = [](auto...) { return largest / 2; };
  check_refused<std::overflow_error>(
      [&] { return omnibal::partition_throughput(4, 2, huge, {}, {.micro_batches = 3}); },
      {"omnibal::partition_throughput: the time of a step"});
  check_refused<std::overflow_error>(
      [&] { return omnibal::partition_throughput(4, 3, huge, {}, {.micro_batches = 1}); },
      {"omnibal::partition_throughput: the sum over the stages"});
  stage_function<std::int64_t> const exactly = [](std::size_t stage, auto...) {
    return stage == 0 ? largest / 2 + 1 : largest / 2;
  };
  check_refused<std::overflow_error>(
      [&] { return omnibal::partition_throughput(2, 2, exactly, {}, {.micro_batches = 1}); },
      {"omnibal::partition_throughput: the sum over the stages"});
  check_refused<std::overflow_error>(
      [&] {
        stage_function<double> const cost = [](auto...) { return 1e308; };
        return omnibal::partition_throughput(4, 1, cost, {}, {.micro_batches = 3});
      },
      {"the time of a step"});
  for (std::size_t const micro_batches : {std::size_t{0}, std::size_t{1} << 32}) {
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_throughput(4, 2, count_of, {},
                                               {.micro_batches = micro_batches});
        },
        {"options.micro_batches is " + std::to_string(micro_batches)});
  }
}

TEST_CASE("contradictory constraints are named") {
  check_contradiction(10, 4, {.min_layers = {3}}, {"10 layers on 4 stages", "min_layers[0] = 3"});
  check_contradiction(10, 4, {.max_layers = {2}}, {"max_layers[0] = 2"});
  check_contradiction(10, 2, {.min_layers = {6, 1}, .max_layers = {5, 9}},
                      {"min_layers[0] = 6 and max_layers[0] = 5"});
  check_contradiction(10, 4, {.pinned = {{5, 0}, {3, 1}}},
                      {"pinned[0] (layer 5 on stage 0) and pinned[1] (layer 3 on stage 1)"});
  check_contradiction(10, 4, {.pinned = {{5, 0}, {5, 1}}}, {"pinned[0]", " and pinned[1]"});
  check_contradiction(10, 4, {.pinned = {{2, 3}}}, {"pinned[0] (layer 2 on stage 3)"});
  check_contradiction(10, 4, {.max_layers = {3, 9, 9, 9}, .pinned = {{9, 3}, {6, 0}}},
                      {"max_layers[0] = 3 and pinned[1] (layer 6 on stage 0)"});
  check_contradiction(10, 4, {.pinned = {{1, 0}, {6, 1}, {7, 2}}, .tied = {{4, 5}, {6, 7}}},
                      {"pinned[1]", "pinned[2]", "tied[1] (layers 6 to 7)"});
  check_contradiction(4, 3, {.forbidden_cuts = {1, 2}},
                      {"forbidden_cuts[0] (layer 1) and forbidden_cuts[1] (layer 2)"});
  check_contradiction(6, 2, {.max_layers = {3}, .tied = {{1, 4}}},
                      {"max_layers[0] = 3 and tied[0] (layers 1 to 4)"});
  // The third constraint has no part in it.
  std::string const text = test::error_text<std::invalid_argument>([] {
    return omnibal::partition_layers(
        10, 4, count_of, {},
        {.constraints = {.pinned = {{5, 0}, {3, 1}, {9, 3}}, .forbidden_cuts = {7}}});
  });
  CHECK(text.find("pinned[2]") == std::string::npos);
  CHECK(text.find("forbidden") == std::string::npos);
}

TEST_CASE("constraints that make no sense by themselves are refused") {
  check_contradiction(8, 4, {.min_layers = {1, 2}}, {"min_layers has 2 values for 4 stages"});
  check_contradiction(8, 4, {.max_layers = {1, 2, -1, 4}}, {"max_layers[2] is -1"});
  check_contradiction(8, 4, {.pinned = {{8, 0}}}, {"pinned[0] names layer 8"});
  check_contradiction(8, 4, {.pinned = {{0, 4}}}, {"pinned[0] names stage 4"});
  check_contradiction(8, 4, {.forbidden_cuts = {3, 8}}, {"forbidden_cuts[1] names layer 8"});
  check_contradiction(8, 4, {.forbidden_cuts = {0}}, {"forbidden_cuts[0] is 0"});
  check_contradiction(8, 4, {.tied = {{5, 8}}}, {"tied[0] names layer 8"});
  check_contradiction(8, 4, {.tied = {{5, 4}}}, {"tied[0] ends before it begins"});
  check_contradiction(8, 4, {.bytes = std::vector<int>(7, 1), .capacity = {9}},
                      {"bytes has 7 values for 8 layers"});
  check_contradiction(8, 4, {.bytes = std::vector<int>(8, 1)}, {"capacity has 0 values"});
  check_contradiction(8, 4, {.capacity = {9}}, {"bytes has 0 values"});
  check_contradiction(8, 4, {.bytes = std::vector<int>(8, 1), .capacity = {9, 9}},
                      {"capacity has 2 values for 4 stages"});
  check_contradiction(8, 4, {.bytes = std::vector<int>(8, 1), .capacity = {-9}},
                      {"capacity[0] is -9"});
  check_contradiction(2, 2, {.bytes = {1, -1}, .capacity = {9}}, {"bytes[1] is -1"});
  check_contradiction(8, 4, {.devices = 3}, {"4 stages are no multiple of devices, 3"});
  check_refused<std::overflow_error>(
      [] {
        return omnibal::partition_layers(2, 2, count_of, {},
                                         {.constraints = {.bytes = {largest, 1}, .capacity = {9}}});
      },
      {"the sum of the bytes"});
  check_refused<std::invalid_argument>(
      [] {
        return omnibal::partition_layers(3, 2, count_of, {}, {.base = {1, 1}});
      },
      {"base has 2 values for 3 layers"});
  check_refused<std::invalid_argument>(
      [] { return omnibal::partition_layers(3, 2, count_of, {}, {.speeds = {1}}); },
      {"speeds has 1 values for 2 stages"});
}

TEST_CASE("neighbors, scores and searches refuse what they cannot use") {
  using boundaries = std::vector<std::uint32_t>;
  auto const near = [](boundaries const& anchor) { return omnibal::neighbors(anchor, 1); };
  check_refused<std::invalid_argument>([&] { return near({}); }, {"omnibal::neighbors"});
  check_refused<std::invalid_argument>([&] { return near({1, 4}); }, {"begin with 0"});
  check_refused<std::invalid_argument>([&] { return near({0, 4, 4, 9}); }, {"boundaries[2] is 4"});
  check_refused<std::invalid_argument>([&] { return near({0, 4, 3}); }, {"boundaries[2] is 3"});

  auto const one = [](std::span<std::uint32_t const>) { return 1.0; };
  auto const range = near({0, 4, 8});
  check_refused<std::invalid_argument>(
      [&] { return omnibal::search_cuts(range, count_of, 0, one); },
      {"omnibal::search_cuts: top_k is 0"});
  stage_function<double> const bad_score = [](auto...) { return not_a_number; };
  check_refused<std::invalid_argument>(
      [&] { return omnibal::search_cuts(range, bad_score, 1, one); },
      {"omnibal::search_cuts: a score is"});
  auto const bad_whole = [](std::span<std::uint32_t const>) { return -infinity; };
  check_refused<std::invalid_argument>(
      [&] { return omnibal::search_cuts(range, bad_whole, 1, one); },
      {"omnibal::search_cuts: a score is -inf"});
  stage_function<double> const wide_score = [](auto...) { return 1e308; };
  check_refused<std::invalid_argument>(
      [&] { return omnibal::search_cuts(range, wide_score, 1, one); },
      {"omnibal::search_cuts: a score is inf"});
  stage_function<std::int64_t> const huge = [](auto...) { return largest; };
  check_refused<std::overflow_error>([&] { return omnibal::search_cuts(range, huge, 1, one); },
                                     {"omnibal::search_cuts: the sum of the scores"});
  auto const bad_time = [](std::span<std::uint32_t const>) { return not_a_number; };
  check_refused<std::invalid_argument>(
      [&] { return omnibal::search_cuts(range, count_of, 1, bad_time); },
      {"the cuts {0, ", " measured ", "must be a number or infinity"});

  auto const score = [](omnibal::weight_list<double> const& seconds,
                        omnibal::weight_list<double> const& traffic,
                        omnibal::cut_weights const& weights) {
    return omnibal::cut_score(seconds, traffic, 2, weights);
  };
  check_refused<std::invalid_argument>(
      [&] {
        return score({1, -1}, {1, 1}, {});
      },
      {"omnibal::cut_score: seconds[1] is -1"});
  check_refused<std::invalid_argument>(
      [&] {
        return score({1, 1}, {1, infinity}, {});
      },
      {"traffic[1] is inf"});
  check_refused<std::invalid_argument>(
      [&] {
        return score({1, 1}, {1}, {});
      },
      {"traffic has 1 values for 2 layers"});
  check_refused<std::invalid_argument>(
      [&] {
        return score({1, 1}, {1, 1}, {.traffic = -1});
      },
      {"weights.traffic is -1"});
}

TEST_CASE("partitions pass on what a user's functor throws") {
  stage_function<double> const cost = [](std::size_t, std::size_t first, std::size_t) -> double {
    if (first == 2) throw users_error("cost");
    return 1;
  };
  auto const fits = [](std::size_t, std::size_t, std::size_t) -> bool {
    throw users_error("fits");
  };
  check_refused<users_error>([&] { return omnibal::partition_layers(4, 2, cost); }, {"cost"});
  check_refused<users_error>([&] { return omnibal::partition_layers(4, 2, count_of, fits); },
                             {"fits"});
  auto const layer_cost = [](int) -> int { throw users_error("layer"); };
  check_refused<users_error>(
      [&] {
        return omnibal::partition_minimax(std::vector{1, 2}, 2, layer_cost);
      },
      {"layer"});
}

TEST_CASE("one memory for all stages is a plain number of bytes, and a whole one") {
  stage_function<std::int64_t> const one = [](auto...) { return 1; };
  omnibal::partition_constraints const whole{.bytes = {40, 40, 40}, .capacity = 80};
  omnibal::partition_constraints const real{.bytes = {40, 40, 40}, .capacity = 8e1};
  CHECK(omnibal::partition_layers(3, 2, one, {}, {.constraints = whole}) ==
        omnibal::partition_layers(3, 2, one, {}, {.constraints = real}));
  check_refused<std::invalid_argument>(
      [] { return omnibal::partition_constraints{.capacity = 80.5}; },
      {"weight_list: the value is 80.5", "must be a whole number"});
  check_refused<std::invalid_argument>(
      [] { return omnibal::partition_constraints{.capacity = 1e30}; }, {"must be a whole number"});
}
