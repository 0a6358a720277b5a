// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every sampler gives for seeded integers.
// expected/sample.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using golden::print;

/// What all ranks of a sampler take in two epochs and a half, with a change of the ranks after each
/// half, and its states.
template <class Make>
std::uint64_t digest_of_run(Make const& make) {
  test::fnv1a hash;
  omnibal::sampler_state state = make({.ranks = 4}, nullptr).state();
  for (std::size_t const ranks : {4u, 3u, 8u, 4u, 1u}) {
    omnibal::sampler_state next{};
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      auto sampler = make({.ranks = ranks, .rank = rank}, &state);
      for (std::uint64_t step = sampler.step_count() / 2 + 1; step != 0; --step) {
        for (std::uint64_t const item : sampler.next()) hash.add(item);
      }
      next = sampler.state();
    }
    state = next;
    hash.add(state.epoch);
    hash.add(state.digest);
    hash.add(state.carried);
    for (auto const& segment : state.segments) hash.add(segment.step_count);
  }
  return hash.value();
}

/// Samplers and mixtures.
void print_samplers(std::uint64_t seed) {
  std::string const suffix = " of seed " + std::to_string(seed);
  test::random_amounts random(seed);
  std::vector<std::int64_t> loads(1000);
  for (std::int64_t& load : loads) load = random.heavy_tail(4096);
  for (auto const remainder :
       {omnibal::remainder_policy::short_step, omnibal::remainder_policy::repeat,
        omnibal::remainder_policy::carry}) {
    std::string const policy = ", policy " + std::to_string(static_cast<int>(remainder)) + suffix;
    print("epoch_sampler" + policy,
          digest_of_run([&](omnibal::shard const& place, omnibal::sampler_state const* state) {
            omnibal::epoch_sampler_options const options{
                .seed = seed, .batch = 3, .remainder = remainder};
            return state == nullptr ? omnibal::epoch_sampler(1001, place, options)
                                    : omnibal::epoch_sampler(1001, place, options, *state);
          }));
    for (std::uint32_t const of_rank : {1u, 4u}) {
      std::string const several =
          of_rank == 1 ? "" : ", " + std::to_string(of_rank) + " groups per rank";
      print("step_sampler" + several + policy,
            digest_of_run([&](omnibal::shard const& place, omnibal::sampler_state const* state) {
              omnibal::schedule_steps_options const options{
                  .seed = seed, .remainder = remainder, .groups_per_rank = of_rank};
              return state == nullptr ? omnibal::step_sampler(loads, place, options)
                                      : omnibal::step_sampler(loads, place, options, *state);
            }));
    }
  }
  for (std::uint64_t const window : {1u, 24u}) {
    auto const size = [](double) { return 77; };
    std::vector<double> const weights{0.5, 0.2, 0.1, 0.1, 0.07, 0.03};
    omnibal::mixture const mixed(weights, size, std::identity{}, {.seed = seed, .window = window});
    test::fnv1a hash;
    hash.add(mixed.digest());
    for (std::uint64_t position = 0; position != 2000; ++position) {
      auto const draw = mixed(position << position % 40);
      hash.add(draw.source);
      hash.add(draw.epoch);
      hash.add(draw.sample);
    }
    print("mixture, window " + std::to_string(window) + suffix, hash.value());
  }
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{0}, ~std::uint64_t{0}}) print_samplers(seed);
}
