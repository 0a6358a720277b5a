// What goes through groups, on the device's own block, whose threads are threads of the host; see
// chain_block_test.cpp.

#include "random_groups.hpp"
#include "support/block_on_threads.hpp"
#include "support/threaded_backend.hpp"

#include <omnibal/cuda/detail/cu_seqlens.hpp>
#include <omnibal/cuda/detail/group_loads.hpp>
#include <omnibal/cuda/detail/metrics.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;
using omnibal::gpu::fault;

/// Sizes for a thread, a warp and a block.
omnibal::grouping some_groups() {
  std::vector<std::size_t> sizes(90, 3);
  sizes[5] = 0;
  sizes[17] = 33;
  sizes[40] = 500;
  sizes[41] = 4200;
  sizes[89] = 64;
  return test::random_groups(sizes, 12);
}

}  // namespace

TEST_CASE("the loads of groups have no races in a block") {
  omnibal::grouping const groups = some_groups();
  auto const words = test::random_weights<std::int64_t>(2 * groups.item_count(), 1, 5000);
  std::vector<omnibal::resources<2>> demands(groups.item_count());
  for (std::size_t i = 0; i != demands.size(); ++i) demands[i] = {words[2 * i], words[2 * i + 1]};
  std::vector<omnibal::resources<2>> loads(groups.size());
  fault faults = fault::none;
  stand_in::threaded_backend backend;
  detail::group_loads(backend, groups.view(), demands.data(), demands.size(), loads.data(),
                      &faults);
  CHECK(loads == omnibal::group_loads(groups, demands, std::identity{}));
  CHECK(faults == fault::none);
}

TEST_CASE("the pad ratio of groups has no races in a block") {
  omnibal::grouping const groups = some_groups();
  auto const lengths = test::random_weights<std::int32_t>(groups.item_count(), 2, 9999);
  double ratio = -1.0;
  fault faults = fault::none;
  stand_in::threaded_backend backend;
  detail::pad_ratio_of_groups(backend, groups.view(), lengths.data(), lengths.size(), &ratio,
                              &faults);
  CHECK(ratio == omnibal::pad_ratio(groups, lengths));
  CHECK(faults == fault::none);
}

TEST_CASE("cumulative lengths have no races in a block") {
  omnibal::grouping const groups = some_groups();
  auto const lengths = test::random_weights<std::int32_t>(groups.item_count(), 3, 9999);
  std::vector<std::uint64_t> begins(groups.size() + 1);
  std::vector<std::int32_t> offsets(groups.size() + groups.item_count());
  std::vector<std::int32_t> longest(groups.size());
  fault faults = fault::none;
  stand_in::threaded_backend backend;
  detail::cu_seqlens(backend, groups.view(), lengths.data(), lengths.size(), begins.data(),
                     offsets.data(), offsets.size(), longest.data(), &faults);
  auto const expected = omnibal::cu_seqlens(groups, lengths);
  CHECK(std::equal(offsets.begin(), offsets.end(), expected.offsets().begin(),
                   expected.offsets().end()));
  bool is_same = faults == fault::none;
  for (std::size_t g = 0; g != groups.size(); ++g) {
    is_same = is_same && longest[g] == expected.longest(g) && begins[g] == expected.begins()[g];
  }
  CHECK(is_same);
}
