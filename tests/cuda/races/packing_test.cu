// SPDX-License-Identifier: Apache-2.0
// The packers, and what is asked of groups.

#include "catch.hpp"
#include "device_run.hpp"
#include "random_groups.hpp"

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/cu_seqlens.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/metrics.cuh>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;
using omnibal::resources;

void pack_by_isf(resources<2> const& capacity) {
  test::device_run const run;
  auto const samples = gpu::upload(run.exec(), test::random_pairs(9500, 1, 4300));
  gpu::device_packing<> const packed(run.exec(), samples.size());
  gpu::isf(run.exec(), samples, capacity, {.rounds = 2}, omnibal::reaches_most(capacity),
           packed.out());
  static_cast<void>(packed.download(run.exec(), "isf"));
}

TEST_CASE("isf has no races where groups are small", "[races]") { pack_by_isf({4096, 9}); }

TEST_CASE("isf has no races where groups are large", "[races]") { pack_by_isf({400'000, 100'000}); }

TEST_CASE("best fit in rounds has no races", "[races]") {
  test::device_run const run;
  auto const demands = gpu::upload(run.exec(), test::random_costs(1500, 3, 700));
  gpu::device_packing<> const packed(run.exec(), demands.size());
  gpu::best_fit_rounds(run.exec(), demands, std::int64_t{1000}, {}, packed.out());
  static_cast<void>(packed.download(run.exec(), "best_fit_rounds"));
}

/// Groups of one sample to 3000.
omnibal::grouping uneven_groups() {
  std::vector<std::size_t> sizes{3000, 0, 700, 100, 33, 32, 31};
  sizes.insert(sizes.end(), 299, 3);
  return test::random_groups(sizes, 8);
}

TEST_CASE("loads, offsets and metrics have no races", "[races]") {
  test::device_run const run;
  omnibal::grouping const groups = uneven_groups();
  auto const on_device = gpu::device_grouping<>::upload(run.exec(), groups);
  auto const lengths = gpu::upload(run.exec(), test::random_costs(groups.item_count(), 2, 4000));
  auto const pairs = gpu::upload(run.exec(), test::random_pairs(groups.item_count(), 2, 4000));
  gpu::device_array<resources<2>> const loads(run.exec(), groups.size());
  gpu::group_loads(run.exec(), on_device, pairs, loads.span(), run.faults());

  gpu::device_array<std::uint64_t> const begins(run.exec(), groups.size() + 1);
  gpu::device_array<std::int32_t> const offsets(run.exec(), groups.item_count() + groups.size());
  gpu::device_array<std::int32_t> const longest(run.exec(), groups.size());
  gpu::cu_seqlens(run.exec(), on_device, lengths, {begins, offsets, longest, run.faults()});

  gpu::device_array<double> const ratios(run.exec(), 2);
  gpu::pad_ratio(run.exec(), lengths, ratios.span(), {}, run.faults());
  gpu::pad_ratio(run.exec(), on_device, lengths, ratios.span(), run.faults());
  gpu::dist_ratio(run.exec(), loads, ratios.span(), {}, run.faults());
  gpu::dist_ratio(run.exec(), on_device, 3, pairs, ratios.span(), {}, run.faults());
  gpu::imbalance(run.exec(), loads, ratios.span(), {}, run.faults());
  gpu::utilization(run.exec(), loads, resources{4'000'000, 9000}, ratios.span(), {}, run.faults());
  CHECK_FALSE(run.has_fault());
}

TEST_CASE("a shuffle has no races", "[races]") {
  test::device_run const run;
  auto const values = gpu::upload(run.exec(), test::random_costs(3000, 2, 4000));
  gpu::device_array<std::int64_t> const out(run.exec(), values.size());
  gpu::device_array<std::uint32_t> const order(run.exec(), values.size());
  gpu::feistel(run.exec(), values, omnibal::rng::feistel{1}, 7, out.span());
  gpu::feistel(run.exec(), omnibal::rng::feistel{1}, 7, order.span());
  CHECK(gpu::download(run.exec(), order).size() == values.size());
}

}  // namespace
