// Prints a digest of what works in rounds, as a GPU does, gives for seeded integers.
// expected/rounds.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/parts.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/balance/schedule_rounds.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

/// Schedules of every policy.
template <std::size_t R>
void print_schedules(std::size_t count) {
  using omnibal::remainder_policy;
  std::vector<std::uint32_t> const carried{3, 0, 7};
  for (double const tolerance : {0.0, 0.005, 0.1}) {
    test::fnv1a hash;
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : {1u, 3u, 16u}) {
        for (auto const remainder :
             {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
          omnibal::schedule_rounds_options options{
              .seed = count, .epoch = ranks, .max_dist_ratio = tolerance, .remainder = remainder};
          if (set.samples.size() > 7) options.carried = carried;
          auto const schedule = omnibal::schedule_rounds(set.samples, ranks, options);
          hash.add(digest_of(schedule.cells().offsets()));
          hash.add(digest_of(schedule.cells().items()));
        }
      }
    }
    print("schedule_rounds, tolerance " + std::to_string(tolerance) + ", " + std::to_string(R) +
              " kinds of load, " + std::to_string(count) + " groups",
          hash.value());
  }
}

}  // namespace

int main() {
  print_schedules<1>(300);
  print_schedules<2>(300);
  print_schedules<2>(20);
}
