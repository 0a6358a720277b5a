// SPDX-License-Identifier: Apache-2.0
// Times of what packs: isf, the loads of groups, a written permutation.

#include "device_program.hpp"
#include "limits.cuh"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;

namespace {

using omnibal::resources;

/// The rule of the reference implementation.
struct images_equal_or_tokens_reach {
  resources<2> threshold;

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool operator()(resources<2> const& load) const {
    return load[0] == threshold[0] || load[1] >= threshold[1];
  }
};

std::vector<resources<2>> demands_of(bench::workload const& work, std::size_t count) {
  std::vector<resources<2>> result;
  for (bench::sample const& sample : work.make(count)) {
    result.push_back(bench::images_and_tokens(sample));
  }
  return result;
}

void time_isf(test::comparison& results, bench::stopwatch& watch, bench::workload const& work,
              std::size_t count, bench::promise const& asked) {
  auto const exec = gpu::on(watch.stream());
  auto const samples = demands_of(work, count);
  auto const capacity = work.capacity();
  images_equal_or_tokens_reach const keep{{capacity[0], capacity[1] - capacity[1] / 32}};
  omnibal::isf_options const options{.rounds = 50};
  omnibal::rng::feistel const shuffle{1};

  auto const demands = gpu::upload(exec, samples);
  gpu::device_packing<> const packed(exec, count);
  gpu::device_array<std::byte> const memory(
      exec, gpu::isf.scratch_bytes(demands, capacity, options, keep, shuffle, packed.out()));
  gpu::given_scratch scratch(memory.span());
  auto const given = gpu::on(watch.stream(), scratch);
  auto const pack = [&] {
    gpu::isf(given, demands, capacity, options, keep, shuffle, packed.out());
  };

  double const submitted = watch.median(pack);
  double const replayed = watch.median_of_graph(pack);
  omnibal::packing host;
  double const on_host = bench::microseconds_on_host(
      [&] { host = omnibal::isf(samples, std::identity{}, capacity, options, keep, shuffle); });
  auto const device = packed.download(exec, "isf");
  results.expect(device.groups == host.groups && device.oversized == host.oversized &&
                     device.report.item_rounds == host.report.item_rounds,
                 "isf gives what it gives on the host");

  // As many rounds as would shuffle all samples as often as the pool was shuffled.
  gpu::device_array<std::uint32_t> const keys(exec, count);
  gpu::feistel(exec, shuffle, 0, keys.span());
  double const rounds = static_cast<double>(host.report.item_rounds) / static_cast<double>(count);
  auto sort = bench::time_sort(watch, gpu::device_span<std::uint32_t const>(keys),
                               "CUB sorts of as many pairs");
  sort.microseconds *= rounds;
  std::string const name =
      "isf " + std::string(work.name) + ", " + std::to_string(count) + " samples, 50 rounds";
  bench::print_time(name, submitted, sort, asked);
  bench::print_time(name + ", graph", replayed, sort, asked);
  bench::print_time(name + ", host", on_host, sort);
  // The demands and an index of each sample, an offset of each group.
  bench::time_hot_and_cold(watch, name, 20 * count + 4 * device.groups.size(), pack);
  std::printf("%s: %.1fM item-rounds, %.2f ns each submitted, %.2f ns in a graph\n", name.c_str(),
              1e-6 * static_cast<double>(host.report.item_rounds),
              1e3 * submitted / static_cast<double>(host.report.item_rounds),
              1e3 * replayed / static_cast<double>(host.report.item_rounds));
}

/// Groups of four samples, which lie one after the other or anywhere.
void time_group_loads(test::comparison& results, bench::stopwatch& watch, bool is_shuffled) {
  constexpr std::size_t group_size = 4;
  std::size_t const groups = bench::sized(std::size_t{1} << 24);
  std::size_t const count = groups * group_size;
  auto const exec = gpu::on(watch.stream());

  std::vector<std::uint32_t> offsets(groups + 1);
  std::vector<std::uint32_t> items(count);
  std::vector<std::int64_t> demands(count);
  auto const order = omnibal::rng::feistel{3}.order(count, 0);
  for (std::size_t g = 0; g != groups + 1; ++g) {
    offsets[g] = static_cast<std::uint32_t>(g * group_size);
  }
  for (std::size_t i = 0; i != count; ++i) {
    items[i] = static_cast<std::uint32_t>(is_shuffled ? order(i) : i);
    demands[i] = static_cast<std::int64_t>(i % 4099);
  }
  auto const on_device = gpu::device_grouping<>::upload(
      exec, omnibal::grouping_view(offsets.data(), items.data(), groups));
  auto const amounts = gpu::upload(exec, demands);
  gpu::device_array<resources<1>> const loads(exec, groups);
  auto const add = [&] { gpu::group_loads(exec, on_device.view(), amounts.span(), loads.span()); };
  double const time = watch.median(add);

  auto const found = gpu::download(exec, loads);
  bool is_right = true;
  for (std::size_t g = 0; g != groups; ++g) {
    std::int64_t load = 0;
    for (std::size_t k = 0; k != group_size; ++k) load += demands[items[g * group_size + k]];
    is_right = is_right && found[g][0] == load;
  }
  results.expect(is_right, "the loads are those of the host");
  std::size_t const bytes = 4 * (groups + 1) + (4 + 8) * count;
  std::string const name = std::string("group_loads, 67M items in groups of 4, ") +
                           (is_shuffled ? "shuffled" : "in order");
  bench::print_time(name, time, bench::time_read(watch, bytes, "one read of the input"),
                    {.max_ratio = is_shuffled ? 0.0 : 1.5});
  bench::time_hot_and_cold(watch, name, bytes + 8 * groups, add);
}

void time_permutation(bench::stopwatch& watch) {
  std::size_t const count = bench::sized(100'000'000);
  auto const exec = gpu::on(watch.stream());
  gpu::device_array<std::uint32_t> const order(exec, count);
  auto const write = [&] { gpu::feistel(exec, omnibal::rng::feistel{1}, 0, order.span()); };
  bench::print_time("permutation of 1e8 written", watch.median(write),
                    bench::time_copy(watch, 4 * count, "a copy of it"), {.max_ratio = 4});
  bench::time_hot_and_cold(watch, "permutation of 1e8 written", 4 * count, write);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    time_isf(results, watch, bench::mix_9_4096, bench::sized(100'000), {});
    time_isf(results, watch, bench::mix_9_4096, bench::sized(1'200'000),
             {.max_microseconds = 10'000});
    time_isf(results, watch, bench::real_18_6016, bench::sized(1'200'000), {});
    time_isf(results, watch, bench::mix_9_4096, bench::sized(10'000'000), {});
    time_permutation(watch);
    time_group_loads(results, watch, false);
    time_group_loads(results, watch, true);
  });
}
