// SPDX-License-Identifier: Apache-2.0
// The schedule that the device makes is that of the host, also from a graph that is captured once
// and replayed with other loads.

#include "device_program.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/schedule_steps.cuh>
#include <omnibal/resources.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

using omnibal::remainder_policy;
using omnibal::schedule_steps_options;

template <std::size_t R>
using load_vectors = std::vector<omnibal::resources<R>>;

template <std::size_t R>
void check(test::comparison& results, gpu::execution<> const& exec, load_vectors<R> const& loads,
           std::vector<std::uint32_t> const& carried, std::size_t ranks,
           schedule_steps_options options, std::string const& what) {
  auto const on_device = gpu::upload(exec, loads);
  auto const carried_on_device = gpu::upload(exec, carried);
  std::size_t const cells = gpu::schedule_steps.cells(loads.size(), carried.size(), ranks, options);
  gpu::device_array<std::uint32_t> const groups(exec, cells);
  auto const faults = gpu::upload(exec, std::vector<gpu::fault>(1, gpu::fault::none));
  gpu::schedule_steps(exec, on_device, ranks, options, carried_on_device, {groups, faults});
  auto const schedule = gpu::schedule_steps.to_steps(gpu::download(exec, groups), loads.size(),
                                                     carried.size(), ranks, options);
  options.carried = carried;
  results.expect(schedule == omnibal::schedule_steps(loads, ranks, options), what);
  results.expect(gpu::download(exec, faults)[0] == gpu::fault::none, what + ": a fault");
}

template <std::size_t R>
void check_shapes(test::comparison& results, gpu::execution<> const& exec) {
  std::vector<std::size_t> counts{1, 60};
  std::vector<std::size_t> rank_counts{3, 64};
  if (!test::is_small()) {
    counts.push_back(5000);
    rank_counts.insert(rank_counts.end(), {1, 300});
  }
  // A tool makes each of many launches slow.
  std::uint32_t const rounds = test::is_small() ? 4 : schedule_steps_options{}.rounds;
  for (std::size_t const count : counts) {
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : rank_counts) {
        for (auto const remainder :
             {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
          for (double const tolerance : {0.0, 0.005}) {
            if (!results.takes_next()) continue;
            check<R>(results, exec, set.samples, {}, ranks,
                     {.seed = count,
                      .epoch = ranks,
                      .max_dist_ratio = tolerance,
                      .remainder = remainder,
                      .rounds = rounds},
                     set.name + ", " + std::to_string(count) + " groups, " + std::to_string(ranks) +
                         " ranks");
          }
        }
      }
    }
  }
}

load_vectors<2> packed_loads(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  load_vectors<2> loads(count);
  for (auto& load : loads) load = {random.between(14, 18), random.between(4000, 6016)};
  return loads;
}

void check_epochs(test::comparison& results, gpu::execution<> const& exec) {
  for (std::size_t const ranks : {8u, 1024u}) {
    auto const loads = packed_loads(test::is_small() ? 5'003 : 1'000'003, ranks);
    std::vector<std::uint32_t> carried;
    std::uint64_t const epochs = test::is_small() ? 2 : 3;
    for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
      schedule_steps_options options{.epoch = epoch, .remainder = remainder_policy::carry};
      check<2>(results, exec, loads, carried, ranks, options,
               "many groups, epoch " + std::to_string(epoch));
      auto const before = carried;
      options.carried = before;
      carried = omnibal::unscheduled_groups(omnibal::schedule_steps(loads, ranks, options),
                                            loads.size(), before);
    }
  }
}

void check_sampler(test::comparison& results, gpu::execution<> const& exec) {
  using load_type = omnibal::resources<2>;
  auto const on_device = [&exec](std::span<load_type const> loads, std::size_t ranks,
                                 schedule_steps_options const& options) {
    auto const given = gpu::upload(exec, std::vector<load_type>(loads.begin(), loads.end()));
    gpu::device_array<std::uint32_t> const groups(
        exec, gpu::schedule_steps.cells(loads.size(), 0, ranks, options));
    gpu::schedule_steps(exec, given, ranks, options, {}, {groups});
    return gpu::schedule_steps.to_steps(gpu::download(exec, groups), loads.size(), 0, ranks,
                                        options);
  };
  auto const loads = packed_loads(205, 3);
  schedule_steps_options const options{.remainder = remainder_policy::carry, .rounds = 6};
  omnibal::step_sampler expected(loads, {.ranks = 8, .rank = 3}, options);
  omnibal::step_sampler sampler(loads, {.ranks = 8, .rank = 3}, options, on_device);
  for (int step = 0; step != 60; ++step) {
    auto const mine = sampler.next();
    auto const host = expected.next();
    results.expect(std::equal(mine.begin(), mine.end(), host.begin(), host.end()),
                   "a sampler with schedules of the device, step " + std::to_string(step));
  }
}

void check_many(test::comparison& results, gpu::execution<> const& exec) {
  if (test::is_small()) return;
  check<2>(results, exec, packed_loads(10'000'000, 7), {}, 1024, {}, "ten million groups");
}

void check_graph(test::comparison& results) {
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    auto const exec = gpu::on(stream);
    constexpr std::size_t ranks = 16;
    schedule_steps_options const options{.epoch = 4};
    auto loads = packed_loads(20'001, 9);
    auto const on_device = gpu::upload(exec, loads);
    std::size_t const cells = gpu::schedule_steps.cells(loads.size(), 0, ranks, options);
    gpu::device_array<std::uint32_t> const groups(exec, cells);
    gpu::device_array<std::byte> const memory(
        exec, gpu::schedule_steps.scratch_bytes(on_device, ranks, options,
                                                gpu::device_span<std::uint32_t const>(),
                                                gpu::schedule_span{groups}));
    gpu::given_scratch scratch(memory.span());
    auto const given = gpu::on(stream, scratch);
    exec.synchronize();

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    gpu::schedule_steps(given, on_device, ranks, options, {}, {groups});
    gpu::check(cudaStreamEndCapture(stream, &graph));
    gpu::check(cudaGraphInstantiate(&replay, graph, 0));
    for (std::int64_t round = 0; round != 3; ++round) {
      for (auto& load : loads) load[0] = 1 + load[0] * (round + 3) % 17;
      gpu::check(cudaMemcpyAsync(on_device.data(), loads.data(),
                                 loads.size() * sizeof(omnibal::resources<2>),
                                 cudaMemcpyHostToDevice, stream));
      gpu::check(cudaGraphLaunch(replay, stream));
      auto const schedule = gpu::schedule_steps.to_steps(gpu::download(exec, groups), loads.size(),
                                                         0, ranks, options);
      results.expect(schedule == omnibal::schedule_steps(loads, ranks, options),
                     "a schedule in a graph, round " + std::to_string(round));
    }
    gpu::check(cudaGraphExecDestroy(replay));
    gpu::check(cudaGraphDestroy(graph));
  }
  gpu::check(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    auto const exec = gpu::on(cudaStreamPerThread);
    results.begin("shapes of one resource");
    check_shapes<1>(results, exec);
    results.begin("shapes of two");
    check_shapes<2>(results, exec);
    results.begin("epochs");
    check_epochs(results, exec);
    results.begin("a sampler");
    check_sampler(results, exec);
    results.begin("many groups");
    check_many(results, exec);
    results.begin("a graph");
    check_graph(results);
  });
}
