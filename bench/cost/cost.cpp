// SPDX-License-Identifier: Apache-2.0
/// \file
/// The costs of samples. The yardstick is a plain polynomial, which checks nothing, of the same
/// lengths.

#include "balancing.hpp"
#include "compare.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/quadratic_cost.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// Lengths of 16 to 131071 tokens with a heavy tail.
std::vector<std::int64_t> lengths_with_tail(std::size_t count) {
  std::vector<std::int64_t> lengths = bench::squares_with_tail(count, 1);
  for (std::int64_t& length : lengths)
    length = std::llround(std::sqrt(static_cast<double>(length)));
  return lengths;
}

/// linear * length + squared * length^2 for all lengths into an array.
class plain_polynomial {
 public:
  plain_polynomial(std::vector<std::int64_t> const& lengths, omnibal::quadratic_cost const& cost)
      : lengths_(&lengths), cost_(cost), costs_(lengths.size()) {}

  void prepare() {}
  void operator()() {
    for (std::size_t i = 0; i != costs_.size(); ++i) {
      std::int64_t const length = (*lengths_)[i];
      costs_[i] = (cost_.linear + cost_.quadratic * length) * length;
    }
    benchmark::DoNotOptimize(costs_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return lengths_->size(); }

 private:
  std::vector<std::int64_t> const* lengths_;
  omnibal::quadratic_cost cost_;
  std::vector<std::int64_t> costs_;
};

/// `cost(length)` for all lengths, in turn with the polynomial.
template <class Cost>
void compare_with_polynomial(benchmark::State& state, Cost const& cost) {
  auto const lengths = lengths_with_tail(bench::size_of(state));
  std::vector<std::int64_t> costs(lengths.size());
  bench::compare(state, plain_polynomial(lengths, omnibal::document_cost(omnibal::llama3_8b)), [&] {
    for (std::size_t i = 0; i != costs.size(); ++i) costs[i] = cost(lengths[i]);
    benchmark::DoNotOptimize(costs.data());
    benchmark::ClobberMemory();
    return costs.size();
  });
}

void document_cost(benchmark::State& state) {
  compare_with_polynomial(state, omnibal::document_cost(omnibal::llama3_8b));
  bench::make_promises(state, {{"document_cost / unchecked polynomial, " +
                                    std::to_string(state.range(0)) + " samples",
                                "ratio", 3.0}});
}

/// A table of 32 points.
void measured_table(benchmark::State& state) {
  std::vector<std::pair<std::int64_t, std::int64_t>> points;
  auto const cost = omnibal::document_cost(omnibal::llama3_8b);
  for (std::int64_t size = 4096; size <= 131072; size += 4096) {
    points.emplace_back(size, cost(size) / 1'000'000);
  }
  using point = std::pair<std::int64_t, std::int64_t>;
  compare_with_polynomial(state, omnibal::measured_table(points, &point::first, &point::second));
}

/// All costs of one layer for each length.
void transformer_layer(benchmark::State& state) {
  compare_with_polynomial(state, [](std::int64_t length) {
    return omnibal::llama3_8b
        .layer({.documents = {.count = 1, .tokens = length, .squares = length * length}})
        .flops();
  });
}

void sizes(benchmark::internal::Benchmark* made) {
  made->ArgName("n")->Arg(10'000)->Arg(1'000'000)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

BENCHMARK(document_cost)->Apply(sizes);
BENCHMARK(measured_table)->Apply(sizes);
BENCHMARK(transformer_layer)->Apply(sizes);

}  // namespace
