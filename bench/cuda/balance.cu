// SPDX-License-Identifier: Apache-2.0
// Times of what balances a step, and many steps in one launch.

#include "device_program.hpp"
#include "limits.cuh"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/refine_parts.cuh>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

constexpr std::size_t samples = 4096;
constexpr std::size_t parts = 64;

/// Squares of lengths of 16 to 131071 tokens, most of them short.
std::vector<std::int64_t> squares_with_tail(std::size_t count, std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<std::int64_t> costs(count);
  for (std::int64_t& cost : costs) {
    std::int64_t const octave =
        std::min(bench::detail::uniform(random, 0, 12), bench::detail::uniform(random, 0, 12));
    std::int64_t const length = (bench::detail::uniform(random, 16, 31) << octave) +
                                bench::detail::uniform(random, 0, (std::int64_t{1} << octave) - 1);
    cost = length * length;
  }
  return costs;
}

/// Costs of equally large steps and where their parts go.
class batch {
 public:
  batch(bench::stopwatch& watch, std::size_t steps)
      : exec_(gpu::on(watch.stream())),
        host_costs_(squares_with_tail(steps * samples, steps)),
        costs_(gpu::upload(exec_, host_costs_)),
        offsets_(gpu::upload(exec_, offsets_of(steps))),
        parts_(exec_, steps * parts, steps * samples),
        faults_(gpu::upload(exec_, std::vector<gpu::fault>(1, gpu::fault::none))),
        steps_count_(steps) {}

  [[nodiscard]] gpu::cost_steps steps() const { return {costs_, offsets_, samples}; }
  [[nodiscard]] gpu::device_span<std::int64_t const> costs() const { return costs_; }
  [[nodiscard]] gpu::part_span out() const {
    gpu::part_span result{parts_.out()};
    result.faults = faults_.span();
    return result;
  }

  /// The largest load of a step over its bound, the worst of all steps, and whether all samples are
  /// there.
  double over_bound(test::comparison& results) const {
    auto const written = parts_.download(exec_);
    results.expect(gpu::download(exec_, faults_)[0] == gpu::fault::none, "there are no faults");
    std::vector<std::uint32_t> all(written.items().begin(), written.items().end());
    std::sort(all.begin(), all.end());
    bool is_complete = all.size() == host_costs_.size();
    for (std::size_t i = 0; is_complete && i != all.size(); ++i) is_complete = all[i] == i;
    results.expect(is_complete, "every sample is in one part");
    double worst = 0;
    for (std::size_t s = 0; s != steps_count_; ++s) worst = std::max(worst, over_bound(written, s));
    return worst;
  }

 private:
  static std::vector<std::uint32_t> offsets_of(std::size_t steps) {
    std::vector<std::uint32_t> result(steps + 1);
    for (std::size_t s = 0; s != steps + 1; ++s) {
      result[s] = static_cast<std::uint32_t>(s * samples);
    }
    return result;
  }

  [[nodiscard]] double over_bound(omnibal::grouping const& written, std::size_t step) const {
    double largest = 0;
    double sum = 0;
    double largest_cost = 0;
    for (std::size_t p = 0; p != parts; ++p) {
      double load = 0;
      for (std::uint32_t const i : written[step * parts + p]) {
        auto const cost = static_cast<double>(host_costs_[i]);
        load += cost;
        largest_cost = std::max(largest_cost, cost);
      }
      largest = std::max(largest, load);
      sum += load;
    }
    return largest / std::max(largest_cost, sum / static_cast<double>(parts));
  }

  gpu::execution<> exec_;
  std::vector<std::int64_t> host_costs_;
  gpu::device_array<std::int64_t> costs_;
  gpu::device_array<std::uint32_t> offsets_;
  gpu::device_grouping<> parts_;
  gpu::device_array<gpu::fault> faults_;
  std::size_t steps_count_;
};

/// Times `balance(execution)`, which needs so much scratch.
template <class Balance>
void time_balance(test::comparison& results, bench::stopwatch& watch, batch const& of,
                  std::string const& name, std::size_t scratch_bytes, bench::limit const& best,
                  bench::promise const& asked, double max_over_bound, Balance const& balance) {
  gpu::device_array<std::byte> const memory(gpu::on(watch.stream()), scratch_bytes);
  gpu::given_scratch scratch(memory.span());
  auto const exec = gpu::on(watch.stream(), scratch);
  double const submitted = watch.median([&] { balance(exec); });
  double const replayed = watch.median_of_graph([&] { balance(exec); });
  double const over_bound = of.over_bound(results);
  bench::print_time(name, submitted, best, asked);
  bench::print_time(name + ", graph", replayed, best, asked);
  // A cost and an index of each sample.
  bench::time_hot_and_cold(watch, name, 12 * of.costs().size(), [&] { balance(exec); });
  std::printf("%s: largest load / bound %.6f\n", name.c_str(), over_bound);
  results.expect(over_bound <= max_over_bound, name + " is as even as promised");
}

void time_steps(test::comparison& results, bench::stopwatch& watch, std::size_t steps,
                bench::promise const& deal_and_refine, bench::promise const& lpt) {
  batch const of(watch, steps);
  std::string const at = steps == 1 ? ", 4096 samples on 64 ranks"
                                    : ", " + std::to_string(steps) + " steps of 4096 on 64";
  gpu::device_array<std::uint64_t> const keys(gpu::on(watch.stream()), of.costs().size());
  gpu::check(cudaMemcpyAsync(keys.data(), of.costs().data(), of.costs().size_bytes(),
                             cudaMemcpyDeviceToDevice, watch.stream()));
  auto const sort = bench::time_sort(watch, gpu::device_span<std::uint64_t const>(keys),
                                     "CUB's sort of all costs");

  std::size_t const refine_bytes =
      gpu::refine_parts.scratch_bytes(of.steps(), parts, gpu::refine_parts_options{}, of.out());
  std::size_t const lpt_bytes =
      gpu::lpt.scratch_bytes(of.steps(), parts, omnibal::lpt_options{}, of.out());
  time_balance(results, watch, of, "deal and refine_parts" + at, refine_bytes, sort,
               deal_and_refine, 1.005,
               [&](auto const& exec) { gpu::refine_parts(exec, of.steps(), parts, {}, of.out()); });
  time_balance(results, watch, of, "lpt" + at, lpt_bytes, sort, lpt, 1.01,
               [&](auto const& exec) { gpu::lpt(exec, of.steps(), parts, {}, of.out()); });
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    time_steps(results, watch, 1, {.max_microseconds = 100}, {.max_microseconds = 400});
    time_steps(results, watch, bench::sized(1024), {.max_microseconds = 5000},
               {.max_microseconds = 5000});
  });
}
