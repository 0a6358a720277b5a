// minimax on a device gives what it gives on the host: for every size, captured in a graph and
// replayed, and on two streams at once.

#include "device_program.hpp"
#include "samples.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/memory_resource.hpp>
#include <omnibal/cuda/minimax.cuh>
#include <omnibal/partition/minimax.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

using gpu::fault;
using omnibal::empty_stages;
using omnibal::minimax_options;

/// What a call writes.
struct stages_on_device {
  stages_on_device(gpu::execution<> const& exec, std::size_t stages)
      : boundaries(exec, stages + 1), bottleneck(exec, 1), faults(exec, 1) {
    gpu::check(cudaMemsetAsync(faults.data(), 0, sizeof(fault), exec.stream()));
  }
  [[nodiscard]] gpu::partition_span out() const { return {boundaries, bottleneck, faults}; }

  gpu::device_array<std::uint32_t> boundaries;
  gpu::device_array<std::int64_t> bottleneck;
  gpu::device_array<fault> faults;
};

template <class T>
void compare(test::comparison& results, gpu::execution<> const& exec,
             stages_on_device const& device, std::vector<T> const& costs,
             minimax_options const& options, std::string const& what) {
  auto const host = omnibal::minimax(costs, device.boundaries.size() - 1, std::identity{}, options);
  results.same(gpu::download(exec, device.boundaries), host.boundaries, what + ": boundaries");
  results.expect(gpu::download(exec, device.bottleneck)[0] == host.bottleneck,
                 what + ": bottleneck");
  results.expect(gpu::download(exec, device.faults)[0] == fault::none, what + ": faults");
}

template <class T>
void compare_once(test::comparison& results, std::vector<T> const& costs, std::size_t stages,
                  minimax_options const& options, std::string const& what) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const on_device = gpu::upload(exec, costs);
  stages_on_device const device(exec, stages);
  gpu::minimax(exec, on_device, stages, options, device.out());
  compare(results, exec, device, costs, options,
          what + ", " + std::to_string(costs.size()) + " layers, " + std::to_string(stages) +
              " stages");
}

template <class T>
std::vector<T> random_costs(std::size_t count, std::uint64_t seed, std::int64_t most,
                            bool has_tail) {
  test::random_amounts random(seed);
  std::vector<T> costs(count);
  for (T& cost : costs) {
    cost = static_cast<T>(has_tail ? random.heavy_tail(most) : random.between(0, most));
  }
  return costs;
}

void compare_sizes(test::comparison& results) {
  std::vector<std::size_t> sizes{1, 2, 100, 4096, 4097, 20000};
  if (!test::is_small()) sizes.insert(sizes.end(), {300'000, 1'000'000, 10'000'000});
  minimax_options const may_be_empty{.empty = empty_stages::allowed};
  for (std::size_t const size : sizes) {
    for (std::size_t const stages : {1u, 3u, 64u, 3000u}) {
      minimax_options const options = stages <= size ? minimax_options{} : may_be_empty;
      compare_once(results, random_costs<std::int64_t>(size, size, 1'000'000, false), stages,
                   options, "even");
      compare_once(results, random_costs<std::int64_t>(size, size, std::int64_t{1} << 39, true),
                   stages, options, "heavy tail");
      compare_once(results, std::vector<std::int32_t>(size, 0), stages, options, "zeros");
      compare_once(results, random_costs<std::int32_t>(size, size, 1, false), stages, options,
                   "zeros and ones");
    }
  }
  compare_once(results, std::vector<std::int64_t>{}, 5, may_be_empty, "nothing");
}

void compare_faults(test::comparison& results) {
  auto const exec = gpu::on(cudaStreamPerThread);
  for (std::int64_t const bad : {std::int64_t{-1}, (std::int64_t{1} << 62) + 1}) {
    std::vector<std::int64_t> costs(5000, 0);
    costs[7] = std::int64_t{1} << 62;
    costs[4000] = bad;
    auto const on_device = gpu::upload(exec, costs);
    stages_on_device const device(exec, 10);
    gpu::minimax(exec, on_device, 10, {}, device.out());
    results.expect(gpu::download(exec, device.faults)[0] ==
                       (bad < 0 ? fault::invalid_amount : fault::overflow),
                   "a cost that is not valid is found");
  }
}

void compare_graph(test::comparison& results, std::size_t stages) {
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    std::size_t const size = test::is_small() ? 9000 : 300'000;
    auto const plain = gpu::on(stream);
    gpu::device_array<std::int64_t> const costs(plain, size);
    stages_on_device const device(plain, stages);
    std::size_t const bytes = gpu::minimax.scratch_bytes(size, stages);
    gpu::device_array<std::byte> const memory(plain, bytes);
    gpu::given_scratch scratch(memory.span());
    plain.synchronise();

    cudaGraph_t graph = nullptr;
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    gpu::minimax(gpu::on(stream, scratch), costs, stages, {}, device.out());
    gpu::check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t program = nullptr;
    gpu::check(cudaGraphInstantiate(&program, graph, 0));
    for (std::uint64_t const seed : {1u, 2u, 3u}) {
      auto const values = random_costs<std::int64_t>(size, seed, 1 << 20, seed == 2);
      gpu::check(cudaMemcpyAsync(costs.data(), values.data(), size * sizeof(std::int64_t),
                                 cudaMemcpyHostToDevice, stream));
      gpu::check(cudaGraphLaunch(program, stream));
      compare(results, plain, device, values, {}, "replay " + std::to_string(seed));
    }
    gpu::check(cudaGraphExecDestroy(program));
    gpu::check(cudaGraphDestroy(graph));

    gpu::given_scratch too_little(memory.span().subspan(0, bytes - 1));
    bool is_refused = false;
    try {
      gpu::minimax(gpu::on(stream, too_little), costs, stages, {}, device.out());
    } catch (std::length_error const&) {
      is_refused = true;
    }
    results.expect(is_refused, "scratch that is too small");
  }
  gpu::check(cudaStreamDestroy(stream));
}

void compare_streams(test::comparison& results) {
  std::size_t const size = test::is_small() ? 9000 : 500'000;
  cudaStream_t streams[2] = {};
  for (auto& stream : streams) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  {
    std::size_t const stages[2] = {20, 2000};
    std::vector<std::int64_t> const costs[2] = {random_costs<std::int64_t>(size, 5, 1 << 20, false),
                                                random_costs<std::int64_t>(size, 6, 1 << 20, true)};
    gpu::execution<> const execs[2] = {gpu::on(streams[0]), gpu::on(streams[1])};
    auto const first = gpu::upload(execs[0], costs[0]);
    auto const second = gpu::upload(execs[1], costs[1]);
    stages_on_device const devices[2] = {{execs[0], stages[0]}, {execs[1], stages[1]}};
    for (auto const& exec : execs) exec.synchronise();
    for (int repeat = 0; repeat != 5; ++repeat) {
      gpu::minimax(execs[0], first, stages[0], {}, devices[0].out());
      gpu::minimax(execs[1], second, stages[1], {}, devices[1].out());
    }
    for (int k = 0; k != 2; ++k) {
      compare(results, execs[k], devices[k], costs[k], {}, "stream " + std::to_string(k));
    }
  }
  for (auto& stream : streams) gpu::check(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    compare_sizes(results);
    compare_faults(results);
    compare_graph(results, 16);
    compare_graph(results, 1000);
    compare_streams(results);
  });
}
