// SPDX-License-Identifier: Apache-2.0
// What is wrong with a chain is said by every function that takes one: the function, the argument
// and the value; or that no stages fit, which stage lacks memory, and how much.

#include "error_text.hpp"
#include "stage_function.hpp"

#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::solve_status;
using test::stage_function;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A function that takes one weight for each layer, and what it calls them.
template <class T>
struct chain_function {
  std::string name;
  std::string weights;
  std::string sum;
  void (*call)(std::vector<T> const&, std::size_t);
  bool has_stages_without_layers = false;
};

template <class T>
std::vector<chain_function<T>> chain_functions() {
  using chain = std::vector<T>;
  std::vector<chain_function<T>> result;
  auto const add = [&](std::string const& name, std::string const& weights, std::string const& sum,
                       void (*call)(chain const&, std::size_t)) {
    result.push_back({name, weights, sum, call});
  };
  add("partition_minimax", "cost", "the sum of the costs",
      [](chain const& all, std::size_t stages) {
        static_cast<void>(omnibal::partition_minimax(all, stages));
      });
  add("partition_minimax", "cost", "the sum of the costs",
      [](chain const& all, std::size_t stages) {
        omnibal::partition_minimax_workspace<T> workspace;
        omnibal::partition_minimax(all, stages, workspace);
      });
  add("partition_minimax", "cost", "the sum of the costs",
      [](chain const& all, std::size_t stages) {
        static_cast<void>(omnibal::partition_minimax(all, std::vector<double>(stages, 1.0)));
      });
  add("partition_layers", "base", "the sum of base", [](chain const& all, std::size_t stages) {
    stage_function<T> const cost = [](auto...) { return T{1}; };
    static_cast<void>(omnibal::partition_layers(all, stages, cost, {}, {.base = all}));
  });
  add("partition_throughput", "base", "the sum of base", [](chain const& all, std::size_t stages) {
    stage_function<T> const cost = [](auto...) { return T{1}; };
    static_cast<void>(
        omnibal::partition_throughput(all, stages, cost, {}, {.micro_batches = 4, .base = all}));
  });
  return result;
}

/// The same for what must be whole numbers, or need not.
std::vector<chain_function<std::int64_t>> integer_functions() {
  using chain = std::vector<std::int64_t>;
  auto result = chain_functions<std::int64_t>();
  result.push_back({"partition_layers", "bytes", "the sum of the bytes",
                    [](chain const& all, std::size_t stages) {
                      stage_function<std::int64_t> const cost = [](auto...) { return 1; };
                      omnibal::partition_constraints const memory{.bytes = all, .capacity = {9}};
                      static_cast<void>(omnibal::partition_layers(all, stages, cost, {},
                                                                  {.constraints = memory}));
                    }});
  result.push_back({"partition_throughput", "bytes", "the sum of the bytes",
                    [](chain const& all, std::size_t stages) {
                      stage_function<std::int64_t> const cost = [](auto...) { return 1; };
                      omnibal::partition_constraints const memory{.bytes = all, .capacity = {9}};
                      static_cast<void>(omnibal::partition_throughput(
                          all, stages, cost, {}, {.micro_batches = 4, .constraints = memory}));
                    }});
  return result;
}

std::vector<chain_function<double>> floating_functions() {
  auto result = chain_functions<double>();
  result.push_back({"cut_score", "seconds", "the sum of the seconds",
                    [](std::vector<double> const& all, std::size_t stages) {
                      std::vector<double> const traffic(all.size(), 1.0);
                      static_cast<void>(omnibal::cut_score(all, traffic, stages));
                    },
                    true});
  result.push_back({"cut_score", "traffic", "the sum of the traffic",
                    [](std::vector<double> const& all, std::size_t stages) {
                      std::vector<double> const seconds(all.size(), 1.0);
                      static_cast<void>(omnibal::cut_score(seconds, all, stages));
                    },
                    true});
  return result;
}

template <class Error, class Call>
void check_refused(Call const& call, std::vector<std::string> const& texts) {
  std::string const error = test::error_text<Error>(call);
  for (std::string const& text : texts) {
    INFO(error << ": " << text);
    bool const is_named = error.find(text) != std::string::npos;
    CHECK(is_named);
  }
}

/// Refuses a chain of ones in which one weight is `value`, wherever it is.
template <class T>
void check_weight(chain_function<T> const& function, T value, std::string const& text) {
  for (std::size_t const at : {0u, 3u, 6u}) {
    std::vector<T> all(7, T{1});
    all[at] = value;
    check_refused<std::invalid_argument>(
        [&] { function.call(all, 3); },
        {"omnibal::" + function.name + ": ",
         function.weights + "[" + std::to_string(at) + "] is " + text});
  }
}

/// Refuses a chain without stages, without layers, and with fewer layers than stages.
template <class T>
void check_stages(chain_function<T> const& function) {
  std::string const name = "omnibal::" + function.name + ": ";
  check_refused<std::invalid_argument>([&] { function.call(std::vector<T>(3, T{1}), 0); },
                                       {name, "stages is 0"});
  if (function.has_stages_without_layers) return;
  check_refused<std::invalid_argument>([&] { function.call(std::vector<T>(3, T{1}), 4); },
                                       {name, "3 layers", "4 stages"});
  check_refused<std::invalid_argument>([&] { function.call({}, 1); }, {name, "0 layers"});
}

}  // namespace

TEST_CASE("every partition refuses weights that are negative, not finite or too large together") {
  for (auto const& function : integer_functions()) {
    INFO(function.name << " with " << function.weights);
    check_weight(function, std::int64_t{-1}, "-1");
    check_weight(function, -largest - 1, "-9223372036854775808");
    check_refused<std::overflow_error>(
        [&] {
          function.call({1, largest, 1}, 2);
        },
        {"omnibal::" + function.name + ": " + function.sum});
  }
  for (auto const& function : floating_functions()) {
    INFO(function.name << " with " << function.weights);
    check_weight(function, -0.5, "-0.5");
    check_weight(function, -infinity, "-inf");
    check_weight(function, infinity, "inf");
    check_weight(function, not_a_number, "");
    check_refused<std::overflow_error>(
        [&] {
          function.call({1e308, 1.0, 1e308}, 2);
        },
        {"omnibal::" + function.name + ": " + function.sum});
    // The sum is too large before the negative weight comes.
    check_refused<std::overflow_error>(
        [&] {
          function.call({1e308, 1e308, -1.0}, 2);
        },
        {"omnibal::" + function.name + ": " + function.sum});
    CHECK_NOTHROW(function.call({-0.0, 1.0, -0.0}, 2));
  }
}

TEST_CASE("every partition refuses no stages, no layers and more stages than layers") {
  for (auto const& function : integer_functions()) {
    INFO(function.name << " with " << function.weights);
    check_stages(function);
  }
  for (auto const& function : floating_functions()) {
    INFO(function.name << " with " << function.weights);
    check_stages(function);
  }
}

TEST_CASE("a number of layers cannot be negative") {
  stage_function<std::int64_t> const cost = [](auto...) { return 1; };
  check_refused<std::invalid_argument>([&] { return omnibal::partition_layers(-3, 2, cost); },
                                       {"omnibal::partition_layers: layers", "-3"});
  check_refused<std::invalid_argument>(
      [&] { return omnibal::partition_throughput(-3, 2, cost, {}, {.micro_batches = 4}); },
      {"omnibal::partition_throughput: layers", "-3"});
}

TEST_CASE("a memory rule refuses bytes and capacities that make no sense") {
  stage_function<std::int64_t> const cost = [](auto...) { return 1; };
  auto const bytes_at_2 = [](auto value) -> stage_function<decltype(value)> {
    return [value](std::size_t stage, std::size_t, std::size_t) {
      return stage == 2 ? value : decltype(value){1};
    };
  };
  auto const refuse = [&](auto const& rule, std::string const& text) {
    check_refused<std::invalid_argument>(
        [&] { return omnibal::partition_layers(8, 4, cost, rule); },
        {"omnibal::memory_rule: ", text});
    check_refused<std::invalid_argument>(
        [&] { return omnibal::partition_throughput(8, 4, cost, rule, {.micro_batches = 4}); },
        {"omnibal::memory_rule: ", text});
  };
  refuse(omnibal::memory_rule{bytes_at_2(std::int64_t{-7}), std::int64_t{10}}, "bytes[2] is -7");
  refuse(omnibal::memory_rule{bytes_at_2(std::uint64_t{1} << 63), 10},
         "bytes[2] is 9223372036854775808");
  refuse(omnibal::memory_rule{bytes_at_2(std::int64_t{1}), std::int64_t{-10}}, "capacity[");
  refuse(omnibal::memory_rule{bytes_at_2(std::int64_t{1}), std::uint64_t{1} << 63},
         "is 9223372036854775808");
  refuse(omnibal::memory_rule{bytes_at_2(std::int64_t{1}),
                              [](std::size_t stage) { return stage == 3 ? -4 : 9; }},
         "capacity[3] is -4");
}

TEST_CASE("a layer that alone exceeds the memory is infeasible, with the stage and the bytes") {
  // The heavy layer fits no stage; the third has most room and is the only one that it can be on.
  std::vector<std::int64_t> const bytes{10, 10, 10, 10, 10, 100, 10, 10};
  std::vector<std::int64_t> const capacity{60, 60, 80, 60};
  stage_function<std::int64_t> const cost = [](std::size_t, std::size_t first, std::size_t last) {
    return last - first;
  };
  omnibal::partition_constraints const constraints{.bytes = bytes, .capacity = capacity};
  omnibal::memory_rule const rule{[&](std::size_t, std::size_t first, std::size_t last) {
                                    std::int64_t sum = 0;
                                    for (std::size_t l = first; l != last; ++l) sum += bytes[l];
                                    return sum;
                                  },
                                  [&](std::size_t stage) { return capacity[stage]; }};
  auto const check = [](auto const& result) {
    CHECK(result.status == solve_status::infeasible);
    CHECK(result.boundaries.empty());
    CHECK(result.stage == 2);
    CHECK(result.missing_bytes == 20);
    CHECK(result.proven);
  };
  check(omnibal::partition_layers(8, 4, cost, {}, {.constraints = constraints}));
  check(omnibal::partition_layers(8, 4, cost, rule));
  check(omnibal::partition_throughput(8, 4, cost, {},
                                      {.micro_batches = 4, .constraints = constraints}));
  check(omnibal::partition_throughput(8, 4, cost, rule, {.micro_batches = 4}));
}

TEST_CASE("lists of a wrong length are named by every function that takes them") {
  stage_function<std::int64_t> const cost = [](auto...) { return 1; };
  auto const refuse = [&](omnibal::partition_layers_options<std::int64_t> const& options,
                          std::string const& text) {
    check_refused<std::invalid_argument>(
        [&] { return omnibal::partition_layers(6, 3, cost, {}, options); },
        {"omnibal::partition_layers: ", text});
    check_refused<std::invalid_argument>(
        [&] {
          return omnibal::partition_throughput(6, 3, cost, {},
                                               {.micro_batches = 2,
                                                .base = options.base,
                                                .speeds = options.speeds,
                                                .constraints = options.constraints});
        },
        {"omnibal::partition_throughput: ", text});
  };
  refuse({.base = {1, 1}}, "base has 2 values for 6 layers");
  refuse({.speeds = {1, 1}}, "speeds has 2 values for 3 stages");
  refuse({.constraints = {.bytes = {1, 1}, .capacity = {9}}}, "bytes has 2 values for 6 layers");
  refuse({.constraints = {.bytes = {1, 1, 1, 1, 1, 1}, .capacity = {9, 9}}},
         "capacity has 2 values for 3 stages");
  refuse({.constraints = {.min_layers = {1, 1}}}, "min_layers has 2 values for 3 stages");
  refuse({.constraints = {.max_layers = {1, 1, 1, 1}}}, "max_layers has 4 values for 3 stages");
  check_refused<std::invalid_argument>(
      [] {
        return omnibal::cut_score({1, 1, 1}, {1, 1}, 2);
      },
      {"omnibal::cut_score: ", "traffic has 2 values for 3 layers"});
}
