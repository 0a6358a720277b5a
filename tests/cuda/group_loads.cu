// SPDX-License-Identifier: Apache-2.0
// The loads and the cumulative lengths of groups on the device are those of the host.

#include "device_program.hpp"
#include "random_groups.hpp"

#include <omnibal/cuda/cu_seqlens.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

using gpu::fault;
using omnibal::grouping;
using omnibal::resources;

template <class Demand>
struct outcome {
  std::vector<gpu::detail::load_of<Demand>> loads;
  fault faults = fault::none;
};

/// Whether the loads of such groups can be asked for.
template <class Groups>
constexpr bool takes_groups =
    std::is_invocable_v<gpu::group_loads_fn, gpu::execution<> const&, Groups,
                        gpu::device_span<std::int32_t const>, gpu::device_span<resources<1>>>;
static_assert(takes_groups<gpu::device_grouping<> const&> && takes_groups<gpu::grouping_span> &&
              takes_groups<omnibal::grouping_view>);
// A kernel could not follow its pointers.
static_assert(!takes_groups<grouping> && !takes_groups<grouping&> &&
              !takes_groups<grouping const&>);

template <class Demand>
outcome<Demand> loads_on_device(grouping const& groups, std::vector<Demand> const& demands) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const on_device = gpu::device_grouping<>::upload(exec, groups);
  auto const values = gpu::upload(exec, demands);
  auto const faults = gpu::upload(exec, std::vector<fault>(1, fault::none));
  gpu::device_array<gpu::detail::load_of<Demand>> const loads(exec, groups.size());
  gpu::group_loads(exec, on_device, values, loads, faults);
  return {gpu::download(exec, loads), gpu::download(exec, faults)[0]};
}

template <class Demand>
void compare_loads(test::comparison& results, grouping const& groups,
                   std::vector<Demand> const& demands, std::string const& what) {
  outcome<Demand> const device = loads_on_device(groups, demands);
  results.same(device.loads, omnibal::group_loads(groups, demands, std::identity{}), what);
  results.expect(device.faults == fault::none, what + ": no faults");
}

void compare_lengths(test::comparison& results, grouping const& groups,
                     std::vector<std::int32_t> const& lengths, std::string const& what) {
  auto const exec = gpu::on(cudaStreamPerThread);
  auto const on_device = gpu::device_grouping<>::upload(exec, groups);
  auto const values = gpu::upload(exec, lengths);
  gpu::device_array<std::uint64_t> const begins(exec, groups.size() + 1);
  gpu::device_array<std::int32_t> const offsets(exec, groups.size() + groups.item_count());
  gpu::device_array<std::int32_t> const longest(exec, groups.size());
  gpu::cu_seqlens(exec, on_device.view(), values.span(), {begins, offsets, longest});

  auto const expected = omnibal::cu_seqlens(groups, lengths);
  std::vector<std::int32_t> longest_on_host;
  for (std::size_t g = 0; g != groups.size(); ++g) longest_on_host.push_back(expected.longest(g));
  results.same(gpu::download(exec, offsets),
               std::vector<std::int32_t>(expected.offsets().begin(), expected.offsets().end()),
               what + ": offsets");
  results.same(gpu::download(exec, begins),
               std::vector<std::uint64_t>(expected.begins().begin(), expected.begins().end()),
               what + ": begins");
  results.same(gpu::download(exec, longest), longest_on_host, what + ": longest");
}

void compare_all(test::comparison& results, std::vector<std::size_t> const& sizes,
                 std::string const& what) {
  grouping const groups = test::random_groups(sizes, 3);
  std::size_t const n = groups.item_count() + 1;
  compare_loads(results, groups, test::random_weights<std::int64_t>(n, 1, 5000), what);
  compare_loads(results, groups, test::random_weights<double>(n, 4, 5000), what + " of doubles");
  auto const words = test::random_weights<std::int64_t>(2 * n, 5, 1000);
  std::vector<resources<2>> pairs(n);
  for (std::size_t i = 0; i != n; ++i) pairs[i] = {words[2 * i], words[2 * i + 1]};
  compare_loads(results, groups, pairs, what + " of pairs");
  // A million of them are less than 2^31.
  compare_lengths(results, groups, test::random_weights<std::int32_t>(n, 2, 2000), what);
}

void compare_faults(test::comparison& results) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t const size : {2u, 50u, 5000u}) {
    grouping const groups = test::random_groups({size}, 1);
    std::vector<std::int64_t> demands(size, 0);
    auto const expect = [&](fault expected, std::string const& what) {
      results.expect(loads_on_device(groups, demands).faults == expected, what);
    };
    demands[size - 1] = largest;
    expect(fault::none, "a sum that fits");
    demands[0] = 1;
    expect(fault::overflow, "a sum that does not fit");
    demands[0] = -1;
    expect(fault::invalid_amount, "a negative demand");
    demands[0] = 0;
    demands.pop_back();
    expect(fault::unknown_index, "an item without a demand");
  }
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    for (auto const& sizes : test::group_sizes()) compare_all(results, sizes.sizes, sizes.name);
    std::size_t const most = test::is_small() ? 10'000 : 1'000'000;
    std::vector<std::size_t> many(3 * most, 3);
    many[most] = most;
    compare_all(results, many, "many items");
    compare_all(results, std::vector<std::size_t>(8, most), "eight giants");
    compare_faults(results);
  });
}
