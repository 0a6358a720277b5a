// SPDX-License-Identifier: Apache-2.0
/// \file
/// Best-fit decreasing: of the tokens alone, and of images and tokens. The yardstick is a radix
/// sort of the tokens with their indices, which packs nothing yet.

#include "compare.hpp"
#include "samples.hpp"
#include "yardsticks.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// Sorts keys of 32 bits where that is enough.
template <template <class> class Sort, class Candidate>
void compare_with_sort(benchmark::State& state, bench::workload const& work,
                       std::vector<bench::sample> const& samples, Candidate const& candidate) {
  if (work.unit == bench::token_unit::one) {
    bench::compare(state, Sort<std::uint32_t>(samples), candidate);
  } else {
    bench::compare(state, Sort<std::uint64_t>(samples), candidate);
  }
}

template <template <class> class Sort>
void best_fit_of_tokens(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  compare_with_sort<Sort>(state, work, samples, [&] {
    return omnibal::best_fit_decreasing(samples, &bench::sample::tokens, work.capacity()[1]);
  });
}

/// For one resource the promise is about the size for which other programs' times are known.
void promise_ratio(benchmark::State& state, std::string const& name, bench::workload const& work) {
  if (bench::size_of(state) != bench::size_with_peers) return;
  // With noise the rooms are sorted too, and the samples brought to groups all over the memory.
  double const most = work.unit == bench::token_unit::large_with_noise ? 3.0 : 1.2;
  bench::make_promises(state, {{name + ", " + std::string(work.name), "ratio", most}});
}

void best_fit_tokens(benchmark::State& state, bench::workload const& work) {
  best_fit_of_tokens<bench::radix_sort>(state, work);
  promise_ratio(state, "best fit, one resource / radix sort", work);
}

void best_fit_tokens_against_allocating_sort(benchmark::State& state, bench::workload const& work) {
  best_fit_of_tokens<bench::allocating_radix_sort>(state, work);
  promise_ratio(state, "best fit, one resource / radix sort into new memory", work);
}

void best_fit_images_and_tokens(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  compare_with_sort<bench::radix_sort>(state, work, samples, [&] {
    return omnibal::best_fit_decreasing(samples, bench::images_and_tokens, work.capacity());
  });
  bench::make_promises(state, {{"best fit, two resources, ns per sample, " + std::string(work.name),
                                "ns_per_item", 60.0}});
}

void best_packing_images_and_tokens(benchmark::State& state, bench::workload const& work) {
  auto const samples = work.make(bench::size_of(state));
  compare_with_sort<bench::radix_sort>(state, work, samples, [&] {
    return omnibal::best_packing(samples, bench::images_and_tokens, work.capacity());
  });
}

BENCHMARK_CAPTURE(best_fit_tokens, mix_9_4096, bench::mix_9_4096)->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_tokens, long_131072, bench::long_131072)->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_tokens, mix_9_large, bench::mix_9_large)->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_tokens, mix_9_noise, bench::mix_9_noise)->Apply(bench::sizes_with_peers);

BENCHMARK_CAPTURE(best_fit_tokens_against_allocating_sort, mix_9_4096, bench::mix_9_4096)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_tokens_against_allocating_sort, long_131072, bench::long_131072)
    ->Apply(bench::sizes_with_peers);

BENCHMARK_CAPTURE(best_fit_images_and_tokens, mix_9_4096, bench::mix_9_4096)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_images_and_tokens, real_18_6016, bench::real_18_6016)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_images_and_tokens, mix_9_large, bench::mix_9_large)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_fit_images_and_tokens, mix_9_noise, bench::mix_9_noise)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_packing_images_and_tokens, mix_9_4096, bench::mix_9_4096)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_packing_images_and_tokens, real_18_6016, bench::real_18_6016)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_packing_images_and_tokens, mix_9_large, bench::mix_9_large)
    ->Apply(bench::sizes_with_peers);
BENCHMARK_CAPTURE(best_packing_images_and_tokens, mix_9_noise, bench::mix_9_noise)
    ->Apply(bench::sizes_with_peers);

}  // namespace
