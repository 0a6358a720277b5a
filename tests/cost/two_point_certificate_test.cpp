// SPDX-License-Identifier: Apache-2.0
// What a line through two readings says of the layers to checkpoint, compared with all numbers of
// them.

#include "certificate.hpp"

#include <omnibal/config.hpp>
#include <omnibal/cost/two_point_probe.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include <catch.hpp>

namespace {

using omnibal::solve_status;
using omnibal::detail::int128;
using test::number_between;

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();

struct instance {
  omnibal::memory_reading few;
  omnibal::memory_reading many;
  std::int64_t layers;
  std::int64_t target;
};

std::int64_t any_bytes(omnibal::rng::engine& random) {
  test::weight_source<std::int64_t> const draw(random, max_int64);
  std::int64_t const bytes = draw();
  return number_between(random, 0, 1) == 0 ? bytes : -bytes;
}

/// Free memory on the exact line is at least `bytes`.
bool leaves(instance const& given, std::int64_t layers, int128 bytes) {
  int128 const gained = int128{given.many.free_bytes} - given.few.free_bytes;
  std::int64_t const run = given.many.checkpointed_layers - given.few.checkpointed_layers;
  return gained * (layers - given.few.checkpointed_layers) >= (bytes - given.few.free_bytes) * run;
}

std::string fault_of(instance const& given) {
  std::optional<std::int64_t> fewest;
  for (std::int64_t l = 0; l <= given.layers && !fewest; ++l) {
    if (leaves(given, l, given.target)) fewest = l;
  }
  try {
    auto const line = omnibal::two_point_probe(given.few, given.many);
    auto const found = line.checkpointed_for(given.layers, given.target);
    if ((found.status == solve_status::solved) != fewest.has_value()) return "feasible or not";
    if (fewest) {
      if (found.layers != *fewest) return "another number of layers";
      return found.missing_bytes == 0 ? "" : "missing bytes";
    }
    if (found.layers != given.layers) return "not all layers where none are enough";
    int128 const left = int128{given.target} - found.missing_bytes;
    bool const is_least =
        leaves(given, given.layers, left) && !leaves(given, given.layers, left + 1);
    return is_least ? "" : "other missing bytes";
  } catch (std::overflow_error const& error) {
    int128 const gained = int128{given.many.free_bytes} - given.few.free_bytes;
    bool const is_wide = gained > max_int64 || leaves(given, given.layers, int128{max_int64} + 1) ||
                         !leaves(given, given.layers, -int128{max_int64} - 1) ||
                         !leaves(given, given.layers, int128{given.target} - max_int64);
    return is_wide ? "" : error.what();
  }
}

}  // namespace

TEST_CASE("The fewest checkpointed layers of two readings are the fewest of all", "[certificate]") {
  test::certify<std::int64_t>("two_point_probe", [](omnibal::rng::engine& random) -> std::string {
    instance given{};
    given.few = {number_between(random, 0, 20), any_bytes(random)};
    given.many = {given.few.checkpointed_layers + number_between(random, 1, 20), any_bytes(random)};
    if (given.many.free_bytes == given.few.free_bytes) return "";
    if (given.many.free_bytes < given.few.free_bytes) {
      std::swap(given.many.free_bytes, given.few.free_bytes);
    }
    given.layers = number_between(random, 0, 60);
    given.target = any_bytes(random);
    if (number_between(random, 0, 1) == 0) {
      // Within the readings.
      given.target = number_between(random, given.few.free_bytes, given.many.free_bytes);
    }
    return fault_of(given);
  });
}
