// SPDX-License-Identifier: Apache-2.0
// What is done again and again gives what the host gives each time: graphs whose first call is made
// while they are captured, and calls with other seeds beside a kernel that takes the memory.
// usage: repeated [graphs | seeds]     both where nothing is said

#include "device_program.hpp"
#include "memory_hog.cuh"
#include "reference/best_fit_rounds.hpp"
#include "reference/refine_rounds.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/refine_parts.cuh>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/rng/feistel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

using lengths = std::vector<std::int64_t>;
using given_execution = gpu::execution<gpu::given_scratch>;

constexpr std::int64_t capacity = 4096;
constexpr std::size_t parts = 64;

std::size_t pack_count() { return test::is_small() ? 500 : 30'000; }
std::size_t balance_count() { return test::is_small() ? 300 : 4096; }

/// Of three kinds, turn by turn.
lengths make_lengths(std::uint64_t seed) {
  test::random_amounts random(seed);
  lengths result(pack_count());
  for (auto& length : result) {
    length = seed % 3 == 0   ? random.heavy_tail(capacity)
             : seed % 3 == 1 ? random.between(1, capacity / 3)
                             : random.between(1, capacity);
  }
  return result;
}

/// Lengths on the device and what all algorithms make of them.
class arrays {
 public:
  explicit arrays(cudaStream_t stream)
      : exec_(gpu::on(stream)),
        lengths_(exec_, pack_count()),
        step_offsets_(gpu::upload(
            exec_, std::vector<std::uint32_t>{0, static_cast<std::uint32_t>(balance_count())})),
        packed_(exec_, pack_count()),
        parts_(exec_, parts, balance_count()),
        faults_(gpu::upload(exec_, std::vector(1, gpu::fault::none))) {
    exec_.synchronize();
  }

  void put(lengths const& values) const {
    gpu::check(cudaMemcpyAsync(lengths_.data(), values.data(), lengths_.size() * sizeof(values[0]),
                               cudaMemcpyHostToDevice, exec_.stream()));
    exec_.synchronize();
  }

  [[nodiscard]] cudaStream_t stream() const { return exec_.stream(); }
  [[nodiscard]] gpu::device_span<std::int64_t const> samples() const { return lengths_; }
  [[nodiscard]] gpu::device_span<std::int64_t const> costs() const {
    return {lengths_.data(), balance_count()};
  }
  [[nodiscard]] gpu::cost_steps steps() const { return {costs(), step_offsets_, balance_count()}; }
  [[nodiscard]] gpu::packing_span packing() const { return packed_.out(); }
  [[nodiscard]] gpu::part_span balanced() const {
    gpu::part_span result{parts_.out()};
    result.faults = faults_.span();
    return result;
  }

  [[nodiscard]] bool is(omnibal::packing const& host) const {
    auto const device = packed_.download(exec_, "repeated");
    return device.groups == host.groups && device.oversized == host.oversized &&
           device.report.item_rounds == host.report.item_rounds;
  }
  [[nodiscard]] bool is(omnibal::grouping const& host) const {
    return parts_.download(exec_) == host && gpu::download(exec_, faults_)[0] == gpu::fault::none;
  }

 private:
  gpu::execution<> exec_;
  gpu::device_array<std::int64_t> lengths_;
  gpu::device_array<std::uint32_t> step_offsets_;
  gpu::device_packing<> packed_;
  gpu::device_grouping<> parts_;
  gpu::device_array<gpu::fault> faults_;
};

/// An algorithm on the device, and whether it gave what its twin on the host gives.
struct algorithm {
  std::string name;
  std::size_t scratch_bytes;
  std::function<void(given_execution const&)> call;
  std::function<bool(lengths const&)> is_right;
};

std::vector<algorithm> packers(arrays const& on) {
  static constexpr omnibal::isf_options options{.rounds = 8};
  auto const keep = omnibal::reaches_most(omnibal::resources{capacity});
  return {
      {"best_fit_rounds",
       gpu::best_fit_rounds.scratch_bytes(on.samples(), capacity, gpu::best_fit_rounds_options{},
                                          on.packing()),
       [&on](auto const& exec) {
         gpu::best_fit_rounds(exec, on.samples(), capacity, {}, on.packing());
       },
       [&on](lengths const& of) {
         return on.is(test::best_fit_rounds(of, std::identity{}, capacity));
       }},
      {"isf", gpu::isf.scratch_bytes(on.samples(), capacity, options, keep, on.packing()),
       [&on, keep](auto const& exec) {
         gpu::isf(exec, on.samples(), capacity, options, keep, on.packing());
       },
       [&on, keep](lengths const& of) {
         return on.is(
             omnibal::isf(of, std::identity{}, capacity, options, keep, omnibal::rng::feistel{}));
       }},
  };
}

std::vector<algorithm> balancers(arrays const& on) {
  auto const costs_of = [](lengths const& of) {
    return lengths(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(balance_count()));
  };
  return {
      {"refine_parts",
       gpu::refine_parts.scratch_bytes(on.steps(), parts, gpu::refine_parts_options{},
                                       on.balanced()),
       [&on](auto const& exec) { gpu::refine_parts(exec, on.steps(), parts, {}, on.balanced()); },
       [&on, costs_of](lengths const& of) {
         auto const costs = costs_of(of);
         return on.is(test::refine_rounds(costs, omnibal::deal(costs, parts)));
       }},
      {"lpt", gpu::lpt.scratch_bytes(on.steps(), parts, omnibal::lpt_options{}, on.balanced()),
       [&on](auto const& exec) { gpu::lpt(exec, on.steps(), parts, {}, on.balanced()); },
       [&on, costs_of](lengths const& of) { return on.is(omnibal::lpt(costs_of(of), parts)); }},
  };
}

std::vector<algorithm> all_algorithms(arrays const& on) {
  auto result = packers(on);
  for (auto& each : balancers(on)) result.push_back(std::move(each));
  return result;
}

/// Captured in the mode that forbids most, while the driver has not loaded its kernels yet.
cudaGraphExec_t capture(algorithm const& of, given_execution const& exec) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t result = nullptr;
  gpu::check(cudaStreamBeginCapture(exec.stream(), cudaStreamCaptureModeGlobal));
  of.call(exec);
  gpu::check(cudaStreamEndCapture(exec.stream(), &graph));
  gpu::check(cudaGraphInstantiate(&result, graph, 0));
  gpu::check(cudaGraphDestroy(graph));
  return result;
}

void replay(test::comparison& results, arrays const& on, algorithm const& of) {
  std::size_t const replays = test::is_small() ? 3 : 10'000;
  gpu::device_array<std::byte> const memory(gpu::on(on.stream()), of.scratch_bytes);
  gpu::given_scratch scratch(memory.span());
  gpu::check(cudaStreamSynchronize(on.stream()));
  cudaGraphExec_t const program = capture(of, gpu::on(on.stream(), scratch));
  for (std::uint64_t const seed : {1u, 2u, 3u}) {
    auto const values = make_lengths(seed);
    on.put(values);
    for (std::size_t k = 0; k != (replays + 2) / 3; ++k) {
      gpu::check(cudaGraphLaunch(program, on.stream()));
    }
    results.expect(of.is_right(values),
                   of.name + " after many replays of lengths " + std::to_string(seed));
  }
  gpu::check(cudaGraphExecDestroy(program));
}

void call_with_seed(test::comparison& results, arrays const& on, algorithm const& of,
                    std::uint64_t seed) {
  gpu::device_array<std::byte> const memory(gpu::on(on.stream()), of.scratch_bytes);
  gpu::given_scratch scratch(memory.span());
  auto const values = make_lengths(seed);
  on.put(values);
  of.call(gpu::on(on.stream(), scratch));
  results.expect(of.is_right(values), of.name + " with seed " + std::to_string(seed) +
                                          " beside a kernel that takes the memory");
}

void check_graphs(test::comparison& results, arrays const& on) {
  for (auto const& each : all_algorithms(on)) replay(results, on, each);
}

void check_seeds(test::comparison& results, arrays const& on) {
  // About half of the threads of a large device, so that the other half is there.
  test::memory_hog hog(std::size_t{1} << 17, 4);
  std::uint64_t const last = test::is_small() ? 2 : 1000;
  for (auto const& each : all_algorithms(on)) {
    for (std::uint64_t seed = 0; seed != last; ++seed) call_with_seed(results, on, each, seed);
  }
  auto const error = hog.end();
  results.expect(error.empty(), "the kernel that takes the memory: " + error);
}

}  // namespace

int main(int count, char** words) {
  std::string_view const which = count > 1 ? words[1] : "";
  return test::device_program([&](test::comparison& results) {
    cudaStream_t stream = nullptr;
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    {
      arrays const on(stream);
      if (which != "seeds") check_graphs(results, on);
      if (which != "graphs") check_seeds(results, on);
    }
    gpu::check(cudaStreamDestroy(stream));
  });
}
