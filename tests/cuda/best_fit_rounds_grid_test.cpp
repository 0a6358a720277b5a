// The rounds of best_fit_rounds on the device's own grid, whose threads are threads of the host. With
// the thread sanitizer this finds two threads that touch the same element without a barrier between
// them.

#include "samples.hpp"
#include "support/block_on_threads.hpp"

#include <omnibal/cuda/detail/fit_grid.hpp>
#include <omnibal/cuda/detail/fit_state.hpp>
#include <omnibal/pack/best_fit_rounds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::gpu::detail;

/// The memory of the rounds.
struct vectors_backend {
  std::vector<std::vector<std::uint64_t>> arrays;

  template <class T>
  T* scratch(std::size_t count) {
    arrays.emplace_back((count * sizeof(T)) / 8 + 1, 0xcdcdcdcdcdcdcdcdu);
    return reinterpret_cast<T*>(arrays.back().data());
  }
};

/// The group of each sample in the order of descending size.
std::vector<std::uint32_t> groups_on_threads(std::vector<std::int64_t> sizes, std::int64_t capacity,
                                             unsigned blocks) {
  std::sort(sizes.rbegin(), sizes.rend());
  vectors_backend memory;
  detail::fit_arrays const arrays = detail::make_fit_arrays(memory, sizes.size());
  auto const count = static_cast<std::uint32_t>(sizes.size());
  *arrays.state = {};
  arrays.state->fitting = count;
  for (std::uint32_t k = 0; k != count; ++k) {
    arrays.sizes[k] = static_cast<std::uint64_t>(sizes[k]);
    arrays.waiting[k] = k;
    if (sizes[k] != 0) arrays.state->positive = k + 1;
  }
  detail::fit_grid const rounds{arrays, static_cast<std::uint64_t>(capacity)};
  stand_in::run_grid<32>(blocks, detail::fit_grid::shared_bytes, rounds);
  return {arrays.group_of, arrays.group_of + count};
}

std::vector<std::uint32_t> groups_on_host(std::vector<std::int64_t> sizes, std::int64_t capacity) {
  std::sort(sizes.rbegin(), sizes.rend());
  auto const packed = omnibal::best_fit_rounds(sizes, std::identity{}, capacity);
  std::vector<std::uint32_t> result(sizes.size());
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    for (std::uint32_t const k : packed.groups[g]) result[k] = static_cast<std::uint32_t>(g);
  }
  return result;
}

}  // namespace

TEST_CASE("the rounds on a grid of blocks are those of the host") {
  test::random_amounts random(8);
  for (std::size_t const count : {std::size_t{1}, std::size_t{40}, std::size_t{300}}) {
    for (std::int64_t const share : {1, 3}) {
      std::vector<std::int64_t> sizes(count);
      for (auto& size : sizes) size = random.between(0, 1000 / share);
      for (unsigned const blocks : {1u, 3u}) {
        CAPTURE(count, share, blocks);
        CHECK(groups_on_threads(sizes, 1000, blocks) == groups_on_host(sizes, 1000));
      }
    }
  }
}
