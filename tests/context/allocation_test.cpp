#include "allocations.hpp"

#include <omnibal/context/context_groups.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

TEST_CASE("context_groups allocates nothing once its workspace is large enough", "[context]") {
  omnibal::context_cost cost{.micro_step = 1};
  for (int degree = 1; degree <= 32; ++degree) {
    cost.degrees.push_back({1, 1.0 / degree + 0.01, 0.001 / degree});
  }
  std::vector<std::int64_t> lengths(500);
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 50 == 0 ? 20'000 + 3 * i : 100 + i);
  }
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  omnibal::context_groups_options const options{.capacity = 4096, .ranks_per_node = 8};
  omnibal::context_groups_workspace workspace;
  auto const first = omnibal::context_groups(lengths, 32, cost, memory, options, workspace);
  CHECK(test::allocations_of([&] {
          static_cast<void>(omnibal::context_groups(lengths, 32, cost, memory, options, workspace));
        }) == 0);
  CHECK(omnibal::context_groups(lengths, 32, cost, memory, options, workspace) == first);

  std::vector<std::int64_t> const few{900, 20, 30, 4};
  static_cast<void>(omnibal::context_groups(few, 4, cost, memory, workspace));
  CHECK(test::allocations_of([&] {
          static_cast<void>(omnibal::context_groups(few, 4, cost, memory, workspace));
        }) == 0);
}

}  // namespace
