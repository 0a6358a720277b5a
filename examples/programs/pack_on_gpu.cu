// SPDX-License-Identifier: Apache-2.0
// Packs the samples of a data set on the device and on the host: by isf under a capacity for images
// and tokens, where both give the same groups, bit for bit, and by best fit under one for tokens,
// in rounds on the device and one sample after the other on the host, where the device may have a
// few groups more. The program checks that and prints how long each takes.
//
//   ./pack_on_gpu --synthetic 1200000
//   ./pack_on_gpu train.jsonl more.csv
//
// Files are what pack_dataset reads, by the same options: --help has them and what it returns.

#include "options/small_options.hpp"
#include "readers/dataset.hpp"
#include "reports/table.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

namespace gpu = omnibal::gpu;
using omnibal::packing;
using omnibal::resources;

constexpr resources<2> capacity{9, 4096};
constexpr omnibal::isf_options options{.rounds = 50};
constexpr omnibal::rng::feistel shuffle{1024};

/// The least time of three runs, in milliseconds.
template <class Work>
double measured_ms(Work const& work) {
  double least = std::numeric_limits<double>::max();
  for (int run = 0; run != 3; ++run) {
    auto const start = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double, std::milli> const passed =
        std::chrono::steady_clock::now() - start;
    least = std::min(least, passed.count());
  }
  return least;
}

/// Packs by `on_host(demands)` and by `on_device(exec, demands, out)`, which takes
/// `scratch_bytes(demands, out)`, and adds a row to the table. Errors: `std::runtime_error` unless
/// `agrees(device, host)`.
template <class Demand, class OnHost, class OnDevice, class Scratch, class Agrees>
void compare(std::string const& name, std::vector<Demand> const& demands, OnHost const& on_host,
             OnDevice const& on_device, Scratch const& scratch_bytes, Agrees const& agrees,
             examples::table& shown) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_packing<> const packed(exec, demands.size());
  gpu::device_span<Demand const> const sizes(nullptr, demands.size());
  gpu::device_array<std::byte> const memory(exec, scratch_bytes(sizes, packed.out()));
  gpu::given_scratch scratch(memory.span());
  auto const with_scratch = gpu::on(cudaStreamPerThread, scratch);

  // Demands and result in host memory, then both in device memory.
  packing device;
  auto const pack_and_copy = [&] {
    auto const copied = gpu::upload(exec, demands);
    on_device(with_scratch, copied, packed.out());
    device = packed.download(exec, name);
  };
  // The first call also loads the kernels.
  pack_and_copy();
  double const with_copies = measured_ms(pack_and_copy);
  auto const values = gpu::upload(exec, demands);
  exec.synchronize();
  double const on_the_device = measured_ms([&] {
    on_device(with_scratch, values, packed.out());
    exec.synchronize();
  });

  packing host;
  double const on_the_host = measured_ms([&] { host = on_host(demands); });
  if (!agrees(device, host)) {
    throw std::runtime_error(name + ": the groups of the device are not what they must be");
  }
  shown.add({name, examples::counted(device.groups.size()), examples::counted(host.groups.size()),
             examples::fixed(on_the_host, 2), examples::fixed(with_copies, 2),
             examples::fixed(on_the_device, 2)});
}

void run(examples::dataset const& data) {
  cudaDeviceProp properties{};
  gpu::check(cudaGetDeviceProperties(&properties, 0));
  std::vector<resources<2>> both;
  std::vector<std::int64_t> tokens;
  for (auto const& one : data.samples) {
    both.push_back({one.images, one.tokens});
    tokens.push_back(one.tokens);
  }

  examples::table shown(
      {"", "device groups", "host groups", "host ms", "device ms with copies", "device ms"});
  auto const keep = omnibal::reaches_most(capacity);
  compare(
      "isf", both,
      [&](auto const& demands) {
        return omnibal::isf(demands, std::identity{}, capacity, options, keep, shuffle);
      },
      [&](auto const& exec, auto const& demands, auto const& out) {
        gpu::isf(exec, demands, capacity, options, keep, shuffle, out);
      },
      [&](auto const& demands, auto const& out) {
        return gpu::isf.scratch_bytes(demands, capacity, options, keep, shuffle, out);
      },
      [](packing const& device, packing const& host) {
        return device.groups == host.groups && device.oversized == host.oversized;
      },
      shown);
  compare(
      "best fit", tokens,
      [&](auto const& demands) {
        return omnibal::best_fit_decreasing(demands, std::identity{}, capacity[1]);
      },
      [&](auto const& exec, auto const& demands, auto const& out) {
        gpu::best_fit_rounds(exec, demands, capacity[1], {}, out);
      },
      [&](auto const& demands, auto const& out) {
        return gpu::best_fit_rounds.scratch_bytes(demands, capacity[1],
                                                  gpu::best_fit_rounds_options{}, out);
      },
      [](packing const& device, packing const& host) {
        return device.oversized == host.oversized &&
               100 * device.groups.size() <= 101 * host.groups.size() + 100;
      },
      shown);

  std::cout << examples::counted(tokens.size()) << " samples, " << properties.name << "\n\n";
  shown.print(std::cout);
  std::cout << "\nThe groups of isf are equal on host and device, bit for bit.\n";
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const data = examples::parse_samples(
        {.name = "pack_on_gpu",
         .description = "Packs the samples of a data set on the device and on the host, by isf and "
                        "by best fit, compares the groups and prints the time of each.",
         .example = "pack_on_gpu lengths.jsonl --text --token-field length",
         .exit_status = "0 if the groups are correct; 77 without a device; otherwise 1."},
        {.usual = 100'000}, 1024, count, words);
    if (data) run(*data);
    return 0;
  } catch (gpu::error const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    bool const is_missing =
        error.code() == cudaErrorInsufficientDriver || error.code() == cudaErrorNoDevice;
    return is_missing ? 77 : 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
