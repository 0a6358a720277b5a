// The schedule of an epoch on the device's own block, whose threads are threads of the host; see
// chain_block_test.cpp.

#include "samples.hpp"
#include "support/block_on_threads.hpp"
#include "support/threaded_backend.hpp"

#include <omnibal/balance/detail/schedule_pool.hpp>
#include <omnibal/balance/schedule_rounds.hpp>
#include <omnibal/cuda/detail/schedule_rounds.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

TEST_CASE("schedule_rounds has no races in a block") {
  test::random_amounts random(6);
  std::vector<omnibal::resources<2>> loads(331);
  for (auto& load : loads) load = {random.between(3, 9), random.between(100, 4096)};
  std::vector<std::uint32_t> const carried{7, 300, 7};
  for (std::size_t const ranks : {4u, 70u}) {
    omnibal::schedule_rounds_options const options{.epoch = ranks,
                                                   .tolerance = 0.0,
                                                   .remainder = omnibal::remainder_policy::repeat,
                                                   .rounds = 6,
                                                   .carried = carried};
    auto const shape =
        omnibal::detail::shape_of_schedule(loads.size(), carried.size(), ranks, options.remainder);
    std::vector<std::uint32_t> groups(shape.cells());
    auto faults = omnibal::gpu::fault::none;
    stand_in::threaded_backend backend;
    omnibal::gpu::detail::schedule_rounds(
        backend, omnibal::gpu::device_span<omnibal::resources<2> const>(loads.data(), loads.size()),
        {carried.data(), carried.size()}, shape,
        omnibal::detail::schedule_draws(options.seed, options.epoch), options.tolerance,
        options.rounds, {{groups.data(), groups.size()}, {&faults, 1}});

    auto const expected = omnibal::schedule_rounds(loads, ranks, options);
    auto const items = expected.cells().items();
    CHECK(std::equal(items.begin(), items.end(), groups.begin(), groups.end()));
    CHECK(faults == omnibal::gpu::fault::none);
  }
}
