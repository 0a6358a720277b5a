// Times of what cuts chains.

#include "device_program.hpp"
#include "limits.cuh"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/memory_resource.hpp>
#include <omnibal/cuda/minimax.cuh>
#include <omnibal/cuda/partition_span.hpp>
#include <omnibal/partition/minimax.hpp>
#include <omnibal/partition/partition_result.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

/// Both ways of searching, so that the choice between them can be judged.
constexpr gpu::detail::minimax_search searches[] = {gpu::detail::minimax_search::by_stages,
                                                    gpu::detail::minimax_search::by_chain};

void time_minimax(test::comparison& results, bench::stopwatch& watch, std::size_t layers,
                  std::size_t stages) {
  auto const exec = gpu::on(watch.stream());
  omnibal::rng::engine random(layers);
  std::vector<std::int32_t> host_costs(layers);
  for (auto& cost : host_costs) {
    cost = static_cast<std::int32_t>(bench::detail::uniform(random, 1, 100'000));
  }
  auto const costs = gpu::upload(exec, host_costs);
  gpu::device_array<std::uint32_t> const boundaries(exec, stages + 1);
  gpu::device_array<std::int64_t> const bottleneck(exec, 1);

  omnibal::partition_result<std::int64_t> host;
  double const on_host =
      bench::microseconds_on_host([&] { host = omnibal::minimax(host_costs, stages); });
  auto const best = bench::time_read(watch, 4 * layers, "one read of the costs");
  std::string const name =
      "minimax, " + std::to_string(layers) + " layers, " + std::to_string(stages) + " stages";
  auto const expect_host = [&] {
    results.same(gpu::download(exec, boundaries), host.boundaries, name);
    results.expect(gpu::download(exec, bottleneck)[0] == host.bottleneck, name);
  };

  gpu::device_array<std::byte> const memory(exec, gpu::minimax.scratch_bytes(layers, stages));
  gpu::given_scratch scratch(memory.span());
  auto const given = gpu::on(watch.stream(), scratch);
  auto const cut = [&] { gpu::minimax(given, costs, stages, {}, {boundaries, bottleneck}); };
  bench::print_time(name, watch.median(cut), best);
  expect_host();
  bench::print_time(name + ", graph", watch.median_of_graph(cut), best);
  bench::print_time(name + ", host", on_host, best);

  for (auto const search : searches) {
    auto plan = gpu::detail::plan_minimax(layers, stages);
    bool const is_planned = plan.search == search;
    bool const by_stages = search == gpu::detail::minimax_search::by_stages;
    if (!is_planned) plan = {search, by_stages ? std::size_t{4095} : std::size_t{1}};
    double const time = watch.median([&] {
      gpu::detail::run_on_device(exec, [&](auto& backend) {
        gpu::detail::run_minimax(backend, costs.data(), layers, stages, 1,
                                 {boundaries.data(), bottleneck.data(), nullptr}, plan);
      });
    });
    std::printf("%s %s: %.1f us%s\n", name.c_str(), by_stages ? "by stages" : "by chain", time,
                is_planned ? ", planned" : "");
    expect_host();
  }
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    auto const time = [&](std::size_t layers, std::size_t stages) {
      time_minimax(results, watch, bench::sized(layers), test::is_small() ? 16 : stages);
    };
    time(100'000, 16);
    time(1'000'000, 64);
    time(1'000'000, 512);
    time(1'000'000, 4096);
    time(10'000'000, 64);
    time(10'000'000, 4096);
  });
}
