// SPDX-License-Identifier: Apache-2.0
/// \file
/// How time grows with the number of samples on data that a packer may stumble over: ten times the
/// samples should take about ten times as long.

#include "compare.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing_bound.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using bench::sample;
using bench::shape;
using bench::token_unit;
using omnibal::resources;

/// The tokens alone.
struct best_fit_tokens {
  static constexpr char const* name = "best_fit_tokens";
  auto operator()(std::vector<sample> const& samples, resources<2> const& capacity) const {
    return omnibal::best_fit_decreasing(samples, &sample::tokens, capacity[1]);
  }
};

struct best_fit_images_and_tokens {
  static constexpr char const* name = "best_fit_images_and_tokens";
  auto operator()(std::vector<sample> const& samples, resources<2> const& capacity) const {
    return omnibal::best_fit_decreasing(samples, bench::images_and_tokens, capacity);
  }
};

struct isf {
  static constexpr char const* name = "isf";
  auto operator()(std::vector<sample> const& samples, resources<2> const& capacity) const {
    return omnibal::isf(samples, bench::images_and_tokens, capacity);
  }
};

struct next_fit {
  static constexpr char const* name = "next_fit";
  auto operator()(std::vector<sample> const& samples, resources<2> const& capacity) const {
    return omnibal::next_fit(samples, bench::images_and_tokens, capacity);
  }
};

struct packing_bound {
  static constexpr char const* name = "packing_bound";
  auto operator()(std::vector<sample> const& samples, resources<2> const& capacity) const {
    return omnibal::packing_bound(samples, bench::images_and_tokens, capacity);
  }
};

/// A packer on the smaller set, in the part of the yardstick: one item is one call.
template <class Pack>
class smaller_set {
 public:
  smaller_set(std::vector<sample> samples, resources<2> const& capacity)
      : samples_(std::move(samples)), capacity_(capacity) {}

  void prepare() {}
  void operator()() {
    auto const result = Pack{}(samples_, capacity_);
    benchmark::DoNotOptimize(&result);
  }
  [[nodiscard]] std::size_t items() const { return 1; }

 private:
  std::vector<sample> samples_;
  resources<2> capacity_;
};

template <class Pack>
void growth(benchmark::State& state, bench::workload const& work) {
  std::size_t const count = bench::size_of(state);
  auto const samples = work.make(count);
  bench::compare(state, smaller_set<Pack>(work.make(count / 10), work.capacity()),
                 [&] { return Pack{}(samples, work.capacity()); });
  bench::make_promises(state, {{std::string("time(1e6) / time(1e5), ") + Pack::name +
                                    (work.unit == token_unit::one ? "" : ", noise"),
                                "ratio", 18.0}});
}

template <class Pack>
bool register_growth() {
  constexpr bench::workload sets[] = {
      {"all_equal", shape::all_equal, 9, 4096},
      {"all_tiny", shape::all_tiny, 9, 4096},
      {"all_huge", shape::all_huge, 9, 4096},
      {"two_sizes", shape::two_sizes, 9, 4096},
      {"ascending", shape::ascending, 9, 4096},
      {"descending", shape::descending, 9, 4096},
      {"all_equal_noise", shape::all_equal, 9, 4096, token_unit::large_with_noise},
      {"two_sizes_noise", shape::two_sizes, 9, 4096, token_unit::large_with_noise},
      {"descending_noise", shape::descending, 9, 4096, token_unit::large_with_noise},
  };
  for (bench::workload const& work : sets) {
    std::string const name = "growth/" + std::string(Pack::name) + "/" + std::string(work.name);
    benchmark::RegisterBenchmark(name.c_str(), growth<Pack>, work)
        ->ArgName("n")
        ->Arg(1'000'000)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}

[[maybe_unused]] bool const registered =
    register_growth<best_fit_tokens>() && register_growth<best_fit_images_and_tokens>() &&
    register_growth<isf>() && register_growth<next_fit>() && register_growth<packing_bound>();

}  // namespace
