// SPDX-License-Identifier: Apache-2.0
// Times of the schedule of a whole epoch.

#include "device_program.hpp"
#include "limits.cuh"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/schedule_steps.cuh>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

using omnibal::resources;

void time_schedule(test::comparison& results, bench::stopwatch& watch, std::size_t groups,
                   std::size_t ranks) {
  auto const exec = gpu::on(watch.stream());
  omnibal::rng::engine random(groups);
  std::vector<resources<2>> loads(groups);
  std::vector<std::uint64_t> keys(groups);
  for (std::size_t g = 0; g != groups; ++g) {
    loads[g] = {bench::detail::uniform(random, 5, 9), bench::detail::uniform(random, 1500, 4096)};
    keys[g] = static_cast<std::uint64_t>(loads[g][1]);
  }
  omnibal::schedule_steps_options const options{.seed = 1};
  auto const on_device = gpu::upload(exec, loads);
  auto const sort_keys = gpu::upload(exec, keys);
  std::size_t const cells = gpu::schedule_steps.cells(groups, 0, ranks, options);
  gpu::device_array<std::uint32_t> const out(exec, cells);
  gpu::device_array<std::byte> const memory(
      exec, gpu::schedule_steps.scratch_bytes(on_device, ranks, options,
                                              gpu::device_span<std::uint32_t const>(),
                                              gpu::schedule_span{out}));
  gpu::given_scratch scratch(memory.span());
  auto const given = gpu::on(watch.stream(), scratch);
  auto const make = [&] {
    gpu::schedule_steps(given, on_device, ranks, options, {}, {out.span()});
  };
  double const submitted = watch.median(make);
  double const replayed = watch.median_of_graph(make);

  omnibal::steps host(ranks);
  double const on_host =
      bench::microseconds_on_host([&] { host = omnibal::schedule_steps(loads, ranks, options); });
  results.expect(
      gpu::schedule_steps.to_steps(gpu::download(exec, out), groups, 0, ranks, options) == host,
      "schedule_steps gives what it gives on the host");
  auto const sort = bench::time_sort(watch, gpu::device_span<std::uint64_t const>(sort_keys),
                                     "CUB's sort of one load");
  std::string const name = "schedule_steps, " + std::to_string(groups) + " groups on " +
                           std::to_string(ranks) + " ranks";
  bench::print_time(name, submitted, sort);
  bench::print_time(name + ", graph", replayed, sort);
  bench::print_time(name + ", host", on_host, sort);
  // Two loads of each group, an index in each cell.
  bench::time_hot_and_cold(watch, name, 16 * groups + 4 * cells, make);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    time_schedule(results, watch, bench::sized(500'000), 64);
    time_schedule(results, watch, bench::sized(500'000), 1024);
  });
}
