// SPDX-License-Identifier: Apache-2.0
// Times of best-fit packing of one resource.

#include "device_program.hpp"
#include "limits.cuh"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

void time_best_fit(test::comparison& results, bench::stopwatch& watch, bench::workload const& work,
                   std::size_t count) {
  auto const exec = gpu::on(watch.stream());
  std::vector<std::uint32_t> lengths;
  for (bench::sample const& sample : work.make(count)) {
    lengths.push_back(static_cast<std::uint32_t>(sample.tokens));
  }
  auto const capacity = work.tokens;
  auto const demands = gpu::upload(exec, lengths);
  gpu::device_packing<> const packed(exec, count);
  gpu::best_fit_rounds_options const options;
  gpu::device_array<std::byte> const memory(
      exec, gpu::best_fit_rounds.scratch_bytes(demands, capacity, options, packed.out()));
  gpu::given_scratch scratch(memory.span());
  auto const given = gpu::on(watch.stream(), scratch);
  auto const pack = [&] { gpu::best_fit_rounds(given, demands, capacity, options, packed.out()); };
  double const time = watch.median(pack);

  omnibal::packing decreasing;
  double const on_host = bench::microseconds_on_host(
      [&] { decreasing = omnibal::best_fit_decreasing(lengths, std::identity{}, capacity); });
  auto const device = packed.download(exec, "best_fit_rounds");
  results.expect(device.oversized == decreasing.oversized &&
                     1000 * device.groups.size() <= 1003 * decreasing.groups.size() + 1000,
                 "best_fit_rounds takes few more groups than best_fit_decreasing");

  auto const sort = bench::time_sort(watch, gpu::device_span<std::uint32_t const>(demands),
                                     "CUB's sort of the lengths");
  std::string const name =
      "best_fit_rounds " + std::string(work.name) + ", " + std::to_string(count) + " samples";
  bench::print_time(name, time, sort);
  bench::print_time(name + ", host's best_fit_decreasing", on_host, sort);
  // A length and an index of each sample, an offset of each group.
  bench::time_hot_and_cold(watch, name, 8 * count + 4 * device.groups.size(), pack);
  std::printf("%s: %zu groups, best_fit_decreasing %zu, lower bound %zu\n", name.c_str(),
              device.groups.size(), decreasing.groups.size(), decreasing.report.lower_bound);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    time_best_fit(results, watch, bench::mix_9_4096, bench::sized(1'200'000));
    time_best_fit(results, watch, bench::long_131072, bench::sized(1'000'000));
    time_best_fit(results, watch, bench::long_131072, bench::sized(10'000'000));
  });
}
