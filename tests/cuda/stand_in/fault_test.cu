// SPDX-License-Identifier: Apache-2.0
// A fault that nobody gave a word for is not lost: the device's work ends, and who waits is told.

#include "catch.hpp"
#include "launch.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/cu_seqlens.cuh>
#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/metrics.cuh>
#include <omnibal/cuda/refine_parts.cuh>
#include <omnibal/pack/keep.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;
using gpu::device_span;
using gpu::fault;

constexpr std::size_t parts = 2;
std::vector<std::int64_t> const good{5, 3, 4, 1, 7, 2};
std::vector<std::int64_t> const bad{5, 3, 4, -1, 7, 2};

/// What a call on values that are wrong does with a word for faults, and with none.
template <class Call>
void check_faults(std::string const& name, Call const& call) {
  INFO(name);
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<fault> const word(exec, 1);
  auto const faults_of = [&](std::vector<std::int64_t> const& values) {
    gpu::check(cudaMemsetAsync(word.data(), 0, sizeof(fault), exec.stream()));
    call(exec, gpu::upload(exec, values), word.span());
    return gpu::download(exec, word).front();
  };
  CHECK(faults_of(good) == fault::none);
  CHECK(faults_of(bad) == fault::invalid_amount);

  auto const without_word = [&](std::vector<std::int64_t> const& values) {
    call(exec, gpu::upload(exec, values), device_span<fault>{});
    exec.synchronize();
  };
  CHECK_NOTHROW(without_word(good));
  auto code = cudaSuccess;
  try {
    without_word(bad);
  } catch (gpu::error const& error) {
    code = error.code();
    CHECK(std::string(error.what()).find("without a word for faults") != std::string::npos);
  }
  CHECK(code == cudaErrorLaunchFailure);
  CHECK_THROWS_AS(exec.synchronize(), gpu::error);
  stand_in::forget_trap();
  CHECK_NOTHROW(without_word(good));
}

/// Two groups of three samples.
gpu::device_grouping<> groups_on(gpu::execution<> const& exec) {
  omnibal::grouping const groups({0, 3, 6}, {0, 4, 2, 3, 1, 5});
  return gpu::device_grouping<>::upload(exec, groups);
}

TEST_CASE("balancers without a word for faults lose none", "[fault]") {
  // In a block's shared memory, and sorted at first.
  std::size_t const bound = GENERATE(std::size_t{6}, std::size_t{9000});
  auto const balance = [bound](auto const& algorithm) {
    return [algorithm, count = bound](auto const& exec, auto const& costs,
                                      device_span<fault> word) {
      gpu::device_array<std::int64_t> const all(exec, count);
      gpu::check(cudaMemsetAsync(all.data(), 0, count * sizeof(std::int64_t), exec.stream()));
      gpu::check(cudaMemcpyAsync(all.data(), costs.data(), 6 * sizeof(std::int64_t),
                                 cudaMemcpyDeviceToDevice, exec.stream()));
      auto const groups = gpu::device_grouping<>(exec, parts, count);
      auto const offsets = gpu::upload(exec, std::vector<std::uint32_t>{0, 6});
      algorithm(exec, gpu::cost_steps(all, offsets, count), gpu::part_span{groups.out(), {}, word});
    };
  };
  check_faults("deal", balance([](auto const& exec, auto const& steps, auto const& out) {
                 gpu::deal(exec, steps, parts, out);
               }));
  check_faults("lpt", balance([](auto const& exec, auto const& steps, auto const& out) {
                 gpu::lpt(exec, steps, parts, {}, out);
               }));
  check_faults("refine_parts", balance([](auto const& exec, auto const& steps, auto const& out) {
                 gpu::refine_parts(exec, steps, parts, {}, out);
               }));
}

TEST_CASE("packers without a word for faults lose none", "[fault]") {
  auto const pack = [](auto const& algorithm) {
    return [algorithm](auto const& exec, auto const& samples, device_span<fault> word) {
      gpu::device_packing<> const packed(exec, samples.size());
      gpu::packing_span out = packed.out();
      out.faults = word;
      algorithm(exec, samples, out);
    };
  };
  check_faults("isf", pack([](auto const& exec, auto const& samples, auto const& out) {
                 gpu::isf(exec, samples, std::int64_t{9}, {.rounds = 2},
                          omnibal::reaches_most(omnibal::resources{std::int64_t{9}}), out);
               }));
  check_faults("best_fit_rounds", pack([](auto const& exec, auto const& samples, auto const& out) {
                 gpu::best_fit_rounds(exec, samples, std::int64_t{9}, {}, out);
               }));
}

TEST_CASE("loads, offsets and metrics without a word for faults lose none", "[fault]") {
  check_faults("group_loads", [](auto const& exec, auto const& values, device_span<fault> word) {
    gpu::device_array<omnibal::resources<1>> const loads(exec, 2);
    gpu::group_loads(exec, groups_on(exec), values, loads.span(), word);
  });
  check_faults("cu_seqlens", [](auto const& exec, auto const& values, device_span<fault> word) {
    gpu::device_array<std::uint64_t> const begins(exec, 3);
    gpu::device_array<std::int32_t> const offsets(exec, 8);
    gpu::device_array<std::int32_t> const longest(exec, 2);
    gpu::cu_seqlens(exec, groups_on(exec), values, {begins, offsets, longest, word});
  });
  auto const measure = [](auto const& metric) {
    return [metric](auto const& exec, auto const& values, device_span<fault> word) {
      gpu::device_array<double> const ratios(exec, 1);
      metric(exec, values, ratios.span(), word);
    };
  };
  check_faults("pad_ratio",
               measure([](auto const& exec, auto const& values, auto const& out, auto const& word) {
                 gpu::pad_ratio(exec, values, out, {}, word);
               }));
  check_faults("pad_ratio of groups",
               measure([](auto const& exec, auto const& values, auto const& out, auto const& word) {
                 gpu::pad_ratio(exec, groups_on(exec), values, out, word);
               }));
  check_faults("dist_ratio of groups",
               measure([](auto const& exec, auto const& values, auto const& out, auto const& word) {
                 gpu::dist_ratio(exec, groups_on(exec), 2, values, out, {}, word);
               }));
  check_faults("imbalance",
               measure([](auto const& exec, auto const& values, auto const& out, auto const& word) {
                 gpu::imbalance(exec, values, out, {}, word);
               }));
}

}  // namespace
