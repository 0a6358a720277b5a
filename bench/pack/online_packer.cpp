// SPDX-License-Identifier: Apache-2.0
/// \file
/// The streaming packer against a plain shuffle, and its groups over those of best-fit
/// decreasing of the whole stream.

#include "compare.hpp"
#include "quality.hpp"
#include "samples.hpp"
#include "streams.hpp"
#include "yardsticks.hpp"

#include <omnibal/pack/online_packer.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

void online_packer(benchmark::State& state, bench::workload const& work, std::uint64_t buffer) {
  auto const samples = work.make(bench::size_of(state));
  bench::compare(state, bench::plain_shuffle(samples.size()), [&] {
    return bench::stream_groups(samples, work.capacity(), {.buffer = buffer});
  });
  if (buffer != 256) return;
  bench::make_promises(
      state, {{"online packer, buffer 256, two resources, ns per sample, " + std::string(work.name),
               "ns_per_item", 100.0}});
}

using omnibal::rng::engine;

/// Uniform from zero to `most`.
std::int64_t uniform(engine& words, std::int64_t most) {
  return static_cast<std::int64_t>(
      omnibal::rng::below(words, static_cast<std::uint64_t>(most) + 1));
}

/// Half of the amounts are at most half as large as the other half, and so on.
std::int64_t heavy_tailed(engine& words, std::int64_t most) {
  return uniform(words, most >> uniform(words, 12));
}

/// Heavy tails in both resources.
omnibal::resources<2> two_tails(engine& words) {
  return {heavy_tailed(words, 1000), heavy_tailed(words, 4096)};
}

/// Many images where there are few tokens.
omnibal::resources<2> opposed(engine& words) {
  std::int64_t const tokens = uniform(words, 2048);
  return {32 - tokens / 64 + uniform(words, 3), tokens};
}

/// Far less than the capacity, and all amounts different.
omnibal::resources<2> small_and_fine(engine& words) {
  constexpr std::int64_t most = std::int64_t{1} << 38;
  return {uniform(words, most), uniform(words, most)};
}

omnibal::resources<3> three_kinds(engine& words) {
  return {uniform(words, 4), uniform(words, 1400), uniform(words, 350)};
}

omnibal::resources<3> three_tails(engine& words) {
  return {heavy_tailed(words, 9), heavy_tailed(words, 4096), heavy_tailed(words, 1000)};
}

/// One or two samples fill a group.
omnibal::resources<3> three_large(engine& words) {
  return {uniform(words, 9), uniform(words, 4096), uniform(words, 1000)};
}

omnibal::resources<2, double> fractions(engine& words) {
  return {static_cast<double>(1 + uniform(words, 4)),
          0.1 * static_cast<double>(uniform(words, 2000))};
}

/// Demands whose lookups take long, with the default options.
template <class Demand>
void online_packer_of(benchmark::State& state, Demand (*make)(engine&), Demand const& capacity,
                      std::string const& promise, double limit) {
  engine words(1);
  std::vector<Demand> demands(bench::size_of(state));
  for (auto& demand : demands) demand = make(words);
  bench::compare(state, bench::plain_shuffle(demands.size()), [&] {
    omnibal::online_packer packer(capacity);
    std::size_t groups = 0;
    std::uint64_t id = 0;
    for (auto const& demand : demands) {
      if (packer.push(id++, demand)) ++groups;
    }
    while (packer.flush()) ++groups;
    return groups;
  });
  bench::make_promises(
      state, {{"online packer, buffer 256, ns per sample, " + promise, "ns_per_item", limit}});
}

void online_quality(benchmark::State& state, bench::shape from,
                    omnibal::resources<2> const& capacity) {
  bench::count_stream_groups(state, bench::make_samples(from, bench::size_of(state)), capacity);
}

[[maybe_unused]] bool const registered = [] {
  auto const add_times = [](std::string const& name, bench::workload const& work) {
    for (std::uint64_t const buffer : bench::stream_buffers) {
      std::string const row = "online_packer/" + name + "/buffer_" + std::to_string(buffer);
      benchmark::RegisterBenchmark(row.c_str(), online_packer, work, buffer)
          ->ArgName("n")
          ->RangeMultiplier(10)
          ->Range(10'000, 1'000'000)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  };
  add_times("mix_9_4096", bench::mix_9_4096);
  add_times("real_18_6016", bench::real_18_6016);
  add_times("mix_9_large", bench::mix_9_large);
  add_times("mix_9_noise", bench::mix_9_noise);
  add_times("independent_9_4096", bench::independent_9_4096);
  add_times("independent_30_8192", bench::independent_30_8192);

  auto const add_hard = [](std::string const& name, auto make, auto const& capacity, double limit) {
    benchmark::RegisterBenchmark(("online_packer_of/" + name).c_str(),
                                 online_packer_of<std::remove_cvref_t<decltype(capacity)>>, make,
                                 capacity, name, limit)
        ->ArgName("n")
        ->RangeMultiplier(10)
        ->Range(10'000, 1'000'000)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  constexpr std::int64_t large = std::int64_t{1} << 40;
  add_hard("two_tails", two_tails, omnibal::resources{1000, 4096}, 100);
  add_hard("opposed", opposed, omnibal::resources{64, 4096}, 100);
  add_hard("small_and_fine", small_and_fine, omnibal::resources{large, large}, 100);
  add_hard("three_kinds", three_kinds, omnibal::resources{9, 4096, 1000}, 100);
  add_hard("three_tails", three_tails, omnibal::resources{9, 4096, 1000}, 100);
  add_hard("three_large", three_large, omnibal::resources{9, 4096, 1000}, 140);
  add_hard("fractions", fractions, omnibal::resources{9.0, 409.6}, 100);

  auto const add_quality = [](std::string const& name, bench::shape from,
                              omnibal::resources<2> const& capacity) {
    benchmark::RegisterBenchmark(
        ("online_quality/" + name + "/" + bench::text_of(capacity)).c_str(), online_quality, from,
        capacity)
        ->ArgName("n")
        ->Arg(100'000)
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  };
  for (auto const& capacity : bench::capacities) {
    add_quality("real", bench::shape::real, capacity);
    add_quality("mix", bench::shape::mix, capacity);
    add_quality("independent", bench::shape::independent, capacity);
  }
  add_quality("long_text", bench::shape::long_text, {1, 131072});
  return true;
}();

}  // namespace
