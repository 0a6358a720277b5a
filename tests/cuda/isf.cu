// SPDX-License-Identifier: Apache-2.0
// isf on a device gives what it gives on the host: for every size, captured in a graph and
// replayed, and on two streams at once.

#include "device_program.hpp"
#include "samples.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

using omnibal::isf_options;
using omnibal::packing;
using omnibal::resources;
using omnibal::rng::feistel;

/// Keeps groups by a property that has nothing to do with their size.
struct keeps_even {
  template <std::size_t R>
  OMNIBAL_HOST_DEVICE bool operator()(resources<R> const& load) const {
    return load[0] % 2 == 0;
  }
};

template <std::size_t R, class Keep>
void compare(test::comparison& results, packing const& device,
             std::vector<resources<R>> const& samples, resources<R> const& capacity,
             isf_options const& options, Keep const& keep, feistel const& shuffle,
             std::string const& what) {
  auto const host = omnibal::isf(samples, std::identity{}, capacity, options, keep, shuffle);
  auto const vector_of = [](auto const& values) {
    return std::vector<std::uint32_t>(values.begin(), values.end());
  };
  results.same(vector_of(device.groups.offsets()), vector_of(host.groups.offsets()),
               what + ": offsets");
  results.same(vector_of(device.groups.items()), vector_of(host.groups.items()), what + ": items");
  results.same(device.oversized, host.oversized, what + ": oversized");
  auto report = host.report;
  report.lower_bound = device.report.lower_bound;
  results.expect(device.report == report, what + ": report");
  results.expect(device.report.lower_bound <= host.report.lower_bound, what + ": lower bound");
}

template <std::size_t R, class Keep>
void compare_once(test::comparison& results, std::vector<resources<R>> const& samples,
                  resources<R> const& capacity, isf_options const& options, Keep const& keep,
                  std::string const& what) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const demands = gpu::upload(exec, samples);
  gpu::device_packing<> const packed(exec, samples.size());
  feistel const shuffle{samples.size()};
  gpu::isf(exec, demands, capacity, options, keep, shuffle, packed.out());
  compare(results, packed.download(exec, "isf"), samples, capacity, options, keep, shuffle, what);
}

template <std::size_t R>
void compare_sets(test::comparison& results) {
  for (std::size_t const count : {1u, 100u, 5000u}) {
    for (auto const& set : test::small_sets<R>(count, count)) {
      if (!results.takes_next()) continue;
      std::string const what =
          set.name + ", " + std::to_string(R) + " resources, " + std::to_string(count);
      compare_once(results, set.samples, set.capacity, {.rounds = 6},
                   omnibal::reaches_most(set.capacity), what);
      compare_once(results, set.samples, set.capacity, {.rounds = 9, .min_gain = 0.3}, keeps_even{},
                   what + ", even");
    }
  }
}

std::vector<resources<2>> random_samples(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  return test::make_samples<2>(count, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.heavy_tail(4400) : random.between(0, 5);
  });
}

constexpr resources<2> usual{4096, 9};

void compare_sizes(test::comparison& results) {
  std::vector<std::size_t> sizes{1023, 1024, 1025, 4095, 4096, 4097, 20000};
  if (!test::is_small()) sizes.insert(sizes.end(), {1'000'000, 10'000'000});
  auto const keep = omnibal::reaches_most(usual);
  for (std::size_t const size : sizes) {
    if (!results.takes_next()) continue;
    auto const samples = random_samples(size, size);
    std::string const what = std::to_string(size) + " samples";
    compare_once(results, samples, usual, {.rounds = 5}, keep, what);
    // Groups of thousands, and one that holds nearly everything.
    resources<2> const wide{4'000'000, 1'000'000};
    compare_once(results, samples, wide, {.rounds = 3}, omnibal::reaches_most(wide),
                 what + ", wide");
    resources<2> const huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
    compare_once(results, samples, huge, {.rounds = 3}, omnibal::reaches_most(huge),
                 what + ", huge");
  }
}

void compare_scratch(test::comparison& results) {
  auto const plain = gpu::on(cudaStreamPerThread);
  auto const samples = random_samples(10000, 1);
  auto const demands = gpu::upload(plain, samples);
  gpu::device_packing<> const packed(plain, samples.size());
  auto const keep = omnibal::reaches_most(usual);
  std::size_t const bytes =
      gpu::isf.scratch_bytes(demands, usual, isf_options{.rounds = 4}, keep, packed.out());
  gpu::device_array<std::byte> const memory(plain, bytes);

  gpu::given_scratch enough(memory.span());
  gpu::isf(gpu::on(cudaStreamPerThread, enough), demands, usual, {.rounds = 4}, keep, packed.out());
  results.expect(enough.used() == 0, "scratch is given back");
  compare(results, packed.download(plain), samples, usual, {.rounds = 4}, keep, feistel{},
          "scratch that is given");

  gpu::given_scratch too_little(memory.span().subspan(0, bytes - 1));
  bool is_refused = false;
  try {
    gpu::isf(gpu::on(cudaStreamPerThread, too_little), demands, usual, {}, keep, packed.out());
  } catch (std::length_error const&) {
    is_refused = true;
  }
  results.expect(is_refused, "scratch that is too small");
}

void compare_faults(test::comparison& results) {
  auto const exec = gpu::on(cudaStreamPerThread);
  std::vector<std::int64_t> lengths(9000, 3);
  lengths[8000] = -1;
  auto const demands = gpu::upload(exec, lengths);
  gpu::device_packing<> const packed(exec, lengths.size());
  gpu::isf(exec, demands, 10, {.rounds = 2}, omnibal::reaches_any{resources{9}}, packed.out());
  bool is_found = false;
  try {
    static_cast<void>(packed.download(exec, "isf"));
  } catch (std::invalid_argument const&) {
    is_found = true;
  }
  results.expect(is_found, "a negative demand is found");
  results.expect(gpu::download(exec, packed.out().groups.group_count)[0] == 0, "no groups then");
}

/// One graph packs whatever lies in the array of the demands.
void compare_graph(test::comparison& results) {
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    std::size_t const size = test::is_small() ? 9000 : 300'000;
    auto const plain = gpu::on(stream);
    gpu::device_array<resources<2>> const demands(plain, size);
    gpu::device_packing<> const packed(plain, size);
    isf_options const options{.rounds = 8};
    auto const keep = omnibal::reaches_most(usual);
    gpu::device_array<std::byte> const memory(
        plain, gpu::isf.scratch_bytes(demands, usual, options, keep, packed.out()));
    gpu::given_scratch scratch(memory.span());
    plain.synchronize();

    cudaGraph_t graph = nullptr;
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    gpu::isf(gpu::on(stream, scratch), demands, usual, options, keep, feistel{5}, packed.out());
    gpu::check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t program = nullptr;
    gpu::check(cudaGraphInstantiate(&program, graph, 0));
    for (std::uint64_t const seed : {1u, 2u, 3u}) {
      auto const samples = random_samples(size, seed);
      gpu::check(cudaMemcpyAsync(demands.data(), samples.data(), size * sizeof(resources<2>),
                                 cudaMemcpyHostToDevice, stream));
      gpu::check(cudaGraphLaunch(program, stream));
      compare(results, packed.download(plain), samples, usual, options, keep, feistel{5},
              "replay " + std::to_string(seed) + " of a graph");
    }
    gpu::check(cudaGraphExecDestroy(program));
    gpu::check(cudaGraphDestroy(graph));
  }
  gpu::check(cudaStreamDestroy(stream));
}

/// Two streams pack different samples at the same time.
void compare_streams(test::comparison& results) {
  std::size_t const size = test::is_small() ? 9000 : 200'000;
  cudaStream_t streams[2] = {};
  for (auto& stream : streams) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  {
    auto const keep = omnibal::reaches_most(usual);
    std::vector<resources<2>> const samples[2] = {random_samples(size, 8), random_samples(size, 9)};
    gpu::execution<> const execs[2] = {gpu::on(streams[0]), gpu::on(streams[1])};
    auto const first = gpu::upload(execs[0], samples[0]);
    auto const second = gpu::upload(execs[1], samples[1]);
    gpu::device_packing<> const packed[2] = {{execs[0], size}, {execs[1], size}};
    for (auto const& exec : execs) exec.synchronize();
    for (int repeat = 0; repeat != 5; ++repeat) {
      gpu::isf(execs[0], first, usual, {.rounds = 10}, keep, packed[0].out());
      gpu::isf(execs[1], second, usual, {.rounds = 10}, keep, packed[1].out());
    }
    for (int k = 0; k != 2; ++k) {
      compare(results, packed[k].download(execs[k]), samples[k], usual, {.rounds = 10}, keep,
              feistel{}, "stream " + std::to_string(k));
    }
  }
  for (auto& stream : streams) gpu::check(cudaStreamDestroy(stream));
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    compare_once<2>(results, {}, usual, {}, keeps_even{}, "nothing");
    compare_sets<1>(results);
    compare_sets<2>(results);
    compare_sets<3>(results);
    compare_sizes(results);
    compare_scratch(results);
    compare_faults(results);
    compare_graph(results);
    compare_streams(results);
  });
}
