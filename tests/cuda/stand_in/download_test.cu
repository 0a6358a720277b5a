// SPDX-License-Identifier: Apache-2.0
// How often groups and packings on their way to the host and back ask the runtime.

#include "catch.hpp"
#include "runtime.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

namespace gpu = omnibal::gpu;
using omnibal::grouping;
using omnibal::packing;
using stand_in::call_counts;

/// The calls since some counts.
[[nodiscard]] call_counts since(call_counts const& before) {
  call_counts const now = stand_in::calls();
  return {now.copies - before.copies, now.synchronizations - before.synchronizations,
          now.queries - before.queries};
}

template <class T>
void write(gpu::device_span<T> to, std::vector<T> const& values) {
  gpu::check(cudaMemcpyAsync(to.data(), values.data(), values.size() * sizeof(T),
                             cudaMemcpyHostToDevice, cudaStreamPerThread));
}

TEST_CASE("groups come to the host in two waits", "[download]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  grouping const groups({0, 2, 2, 5}, {4, 1, 0, 2, 3});
  auto const on_device = gpu::device_grouping<>::upload(exec, groups);
  call_counts const before = stand_in::calls();
  CHECK(on_device.download(exec) == groups);
  CHECK(since(before).copies == 4);
  CHECK(since(before).synchronizations == 2);
}

TEST_CASE("no groups come back as no groups, and more than a byte counts as many", "[download]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const none = gpu::device_grouping<>::upload(exec, omnibal::grouping_view{});
  CHECK(none.download(exec).size() == 0);
  std::vector<std::uint32_t> offsets(70'001, 0);
  grouping const empty(offsets, {});
  CHECK(gpu::device_grouping<>::upload(exec, empty).download(exec).size() == 70'000);
}

TEST_CASE("a packing comes to the host in one copy of numbers and one of each array",
          "[download]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_packing<> const packed(exec, 6);
  auto const out = packed.out();
  write(out.groups.offsets, {0, 2, 5, 5, 5, 5, 5});
  write(out.groups.items, {4, 1, 0, 2, 3});
  write(out.groups.group_count, {2});
  write(out.oversized, {5});
  write(out.oversized_count, {1});
  omnibal::packing_report report;
  report.lower_bound = 2;
  report.item_rounds = std::uint64_t{1} << 40;
  write(out.report, {report});
  call_counts const before = stand_in::calls();
  packing const result = packed.download(exec);
  CHECK(result == packing{grouping({0, 2, 5}, {4, 1, 0, 2, 3}), {5}, report});
  CHECK(since(before).copies == 4);
  CHECK(since(before).synchronizations == 2);
  CHECK(packed.groups().download(exec) == result.groups);

  write(out.oversized_count, {7});
  CHECK_THROWS_AS(packed.download(exec), std::length_error);
  write(out.oversized_count, {0});
  CHECK_THROWS_AS(packed.download(exec), std::invalid_argument);
  write(out.groups.group_count, {7});
  CHECK_THROWS_AS(packed.download(exec), std::length_error);
  write(out.faults, {gpu::fault::invalid_amount});
  CHECK_THROWS_AS(packed.download(exec), std::invalid_argument);
}

TEST_CASE("an upload of groups in a graph takes them anew and no variable of the call",
          "[download]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  std::uint32_t* host = nullptr;
  gpu::check(cudaMallocHost(reinterpret_cast<void**>(&host), 6 * sizeof(std::uint32_t)));
  std::copy_n(std::vector<std::uint32_t>{0, 1, 3, 7, 8, 9}.begin(), 6, host);
  gpu::device_array<std::byte> const memory(exec, 4096);
  gpu::given_scratch scratch(memory.span());
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    auto const on_stream = gpu::on(stream, scratch);
    gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    auto const on_device = gpu::device_grouping<gpu::given_scratch>::upload(
        on_stream, omnibal::grouping_view(host, host + 3, 2));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    gpu::check(cudaStreamEndCapture(stream, &graph));
    gpu::check(cudaGraphInstantiate(&ready, graph, 0));
    host[3] = 6;
    gpu::check(cudaGraphLaunch(ready, stream));
    CHECK(on_device.download(on_stream) == grouping({0, 1, 3}, {6, 8, 9}));
    gpu::check(cudaGraphExecDestroy(ready));
    gpu::check(cudaGraphDestroy(graph));
  }
  gpu::check(cudaStreamDestroy(stream));
  gpu::check(cudaFreeHost(host));
}

}  // namespace
