// SPDX-License-Identifier: Apache-2.0
// The metrics of the device are those of the host to the last bit.

#include "device_program.hpp"
#include "random_groups.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/metrics.cuh>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

using omnibal::resources;

/// What `metric(exec, out)` writes to so many numbers on the device, with as much scratch as
/// counted.
template <class Metric>
std::vector<double> numbers(std::size_t count, Metric const& metric) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<double> const out(exec, count);
  std::size_t bytes = 0;
  metric(gpu::detail::scratch_count{&bytes}, out.span());
  gpu::device_array<std::byte> const memory(exec, bytes);
  gpu::given_scratch scratch(memory.span());
  metric(gpu::on(cudaStreamPerThread, scratch), out.span());
  return gpu::download(exec, out);
}

void compare_amounts(test::comparison& results, std::size_t n, std::uint64_t limit) {
  auto const exec = gpu::on(cudaStreamPerThread);
  std::string const what = std::to_string(n) + " amounts below " + std::to_string(limit);
  auto const weights = test::random_weights<std::int64_t>(n, n + 1, limit);
  std::vector<resources<2>> pairs(n);
  for (std::size_t i = 0; i != n; ++i) pairs[i] = {weights[i], static_cast<std::int64_t>(i)};
  auto const one = gpu::upload(exec, weights);
  auto const two = gpu::upload(exec, pairs);
  auto const both = [](resources<2, double> const& ratios) {
    return std::vector<double>{ratios[0], ratios[1]};
  };

  results.same(numbers(1, [&](auto on, auto out) { gpu::pad_ratio(on, one.span(), out); }),
               std::vector<double>{omnibal::pad_ratio(weights)}, "pad ratio of " + what);
  results.same(numbers(2, [&](auto on, auto out) { gpu::dist_ratio(on, two.span(), out); }),
               both(omnibal::dist_ratio(pairs)), "dist ratio of " + what);
  results.same(numbers(2, [&](auto on, auto out) { gpu::imbalance(on, two.span(), out); }),
               both(omnibal::imbalance(pairs)), "imbalance of " + what);
  results.same(numbers(2,
                       [&](auto on, auto out) {
                         gpu::utilization(on, two.span(), resources{9, 4096}, out);
                       }),
               both(omnibal::utilization(pairs, resources{9, 4096})), "utilization of " + what);
}

void compare_groups(test::comparison& results, std::vector<std::size_t> const& sizes,
                    std::string const& what) {
  auto const exec = gpu::on(cudaStreamPerThread);
  omnibal::grouping const groups = test::random_groups(sizes, 8);
  auto const lengths = test::random_weights<std::int64_t>(groups.item_count() + 1, 2, 9999);
  auto const on_device = gpu::device_grouping<>::upload(exec, groups);
  auto const values = gpu::upload(exec, lengths);
  results.same(
      numbers(1,
              [&](auto on, auto out) { gpu::pad_ratio(on, on_device.view(), values.span(), out); }),
      std::vector<double>{omnibal::pad_ratio(groups, lengths)}, "pad ratio: " + what);
}

void compare_schedule(test::comparison& results, std::size_t ranks, std::size_t steps) {
  auto const exec = gpu::on(cudaStreamPerThread);
  omnibal::rng::engine words(ranks + steps);
  auto const loads = test::random_weights<std::int64_t>(1000, 4, 5000);
  omnibal::steps schedule(ranks);
  for (std::size_t cell = 0; cell != steps * ranks; ++cell) {
    for (std::uint64_t k = words() % 3; k != 0; --k) {
      schedule.push(static_cast<std::uint32_t>(words() % loads.size()));
    }
    schedule.close();
  }
  auto const cells = gpu::device_grouping<>::upload(exec, schedule.cells());
  auto const values = gpu::upload(exec, loads);
  results.same(
      numbers(1, [&](auto on,
                     auto out) { gpu::dist_ratio(on, cells.view(), ranks, values.span(), out); }),
      std::vector<double>{omnibal::dist_ratio(schedule, loads)},
      "dist ratio of a schedule for " + std::to_string(ranks) + " ranks");
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    std::vector<std::size_t> counts{0, 1, 2, 1000, 70'001};
    if (!test::is_small()) counts.push_back(10'000'019);
    for (std::size_t const n : counts) {
      compare_amounts(results, n, 50);
      compare_amounts(results, n, std::uint64_t{1} << 40);
    }
    for (auto const& sizes : test::group_sizes()) compare_groups(results, sizes.sizes, sizes.name);
    compare_groups(results, std::vector<std::size_t>(test::is_small() ? 4000 : 400'000, 3),
                   "many groups");
    compare_schedule(results, 1, 0);
    compare_schedule(results, 3, 1000);
    compare_schedule(results, 512, test::is_small() ? 3 : 300);
  });
}
