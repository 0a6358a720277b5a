// What walks chains, on the device's own block, whose threads are threads of the host. With the
// thread sanitizer this finds what the serial block cannot: two threads in one phase, or in two that
// no barrier parts, that touch the same element.

#include "samples.hpp"
#include "support/block_on_threads.hpp"
#include "support/threaded_backend.hpp"

#include <omnibal/cuda/detail/run_isf.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;
using stand_in::threaded_backend;

}  // namespace

TEST_CASE("isf has no races in a block") {
  omnibal::resources<2> const capacity{4096, 9};
  test::random_amounts random(1);
  for (std::int64_t const largest : {2000, 5}) {
    auto const samples = test::make_samples<2>(4200, [&](std::size_t, std::size_t r) {
      return r == 0 ? random.between(0, largest) : random.between(0, largest == 5 ? 0 : 4);
    });
    auto const keep = omnibal::reaches_most(capacity);
    omnibal::rng::feistel const shuffle{3};
    auto const expected =
        omnibal::isf(samples, std::identity{}, capacity, {.rounds = 2}, keep, shuffle);

    std::vector<std::uint32_t> offsets(samples.size() + 1);
    std::vector<std::uint32_t> items(samples.size());
    std::uint32_t groups = 0;
    detail::isf_output out{};
    out.offsets = offsets.data();
    out.offset_room = offsets.size();
    out.items = items.data();
    out.group_count = &groups;
    threaded_backend backend;
    detail::run_isf(
        backend,
        detail::isf_input<omnibal::resources<2>, 2>{samples.data(), samples.size(), capacity},
        {.rounds = 2}, keep, shuffle, out);
    offsets.resize(groups + 1);
    CHECK(omnibal::grouping(offsets, items) == expected.groups);
  }
}
