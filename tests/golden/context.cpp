// Prints a digest of the groups of ranks that seeded lengths get.
// expected/context.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "digest.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

/// Powers of two, so that all times are exact.
omnibal::context_cost exact_cost() {
  omnibal::context_cost cost{.micro_step = 1024};
  for (int degree = 1; degree <= 16; ++degree) {
    double share = 1;
    while (2 * share <= degree) share *= 2;
    cost.degrees.push_back({64, 1 / share + 0.0625, 0.0009765625 / share});
  }
  return cost;
}

std::vector<std::int64_t> seeded_lengths(std::size_t count) {
  omnibal::rng::engine random(count);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    std::uint64_t const octave = 16u << omnibal::rng::below(random, 10);
    length = static_cast<std::int64_t>(octave + omnibal::rng::below(random, octave));
  }
  return lengths;
}

void print_groups(std::string const& name, omnibal::context_groups_options const& options) {
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  for (std::size_t const count : {5, 12, 100, 1000}) {
    auto const plan =
        omnibal::context_groups(seeded_lengths(count), 16, exact_cost(), memory, options);
    golden::print(name + ", " + std::to_string(count) + " samples", plan.digest());
  }
}

}  // namespace

int main() {
  print_groups("context_groups", {.capacity = 4096});
  print_groups("context_groups in nodes", {.capacity = 4096, .ranks_per_node = 4, .multiple = 2});
  print_groups("context_groups of powers of two",
               {.capacity = 8192, .degrees = omnibal::powers_of_two(16)});
}
