// SPDX-License-Identifier: Apache-2.0
// Samplers that are saved and restored after any step, also with other ranks, on states that no
// sampler wrote, and mixtures: nothing is lost and nothing runs twice.

#include "byte_reader.hpp"
#include "odd_numbers.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using omnibal::remainder_policy;
using omnibal::sampler_state;
using omnibal::shard;
using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

/// What a rank runs in a step, repetitions left out.
std::vector<std::uint64_t> new_ones(omnibal::epoch_sampler& sampler) {
  auto const batch = sampler.next();
  std::vector<std::uint64_t> result(batch.begin(), batch.end());
  result.resize(result.size() - batch.repeated());
  return result;
}
template <class Load, class Scheduler>
std::vector<std::uint64_t> new_ones(omnibal::step_sampler<Load, Scheduler>& sampler) {
  auto const groups = sampler.next();
  if (sampler.is_repeat()) return {};
  return {groups.begin(), groups.end()};
}
/// Ranks that share a pack run it together; the first of them counts.
template <class Load, class Scheduler>
std::vector<std::uint64_t> new_ones(omnibal::level_sampler<Load, Scheduler>& sampler,
                                    std::size_t rank) {
  auto const step = sampler.next();
  if (sampler.is_repeat() || rank % static_cast<std::size_t>(step.setting.sequence) != 0) return {};
  return {step.groups.begin(), step.groups.end()};
}

/// Walks some epochs; before steps that the bytes choose all ranks are restored from the state, and
/// sometimes they are other ranks then. `make(shard, state)` gives a sampler, at the begin without
/// a state; `take(sampler, rank)` what it runs next.
template <class Make, class Take>
void check_walk(std::string const& name, byte_reader& bytes, std::size_t count,
                std::vector<std::size_t> const& ranks_of, bool carries, Make const& make,
                Take const& take) {
  std::size_t ranks = ranks_of[bytes.next() % ranks_of.size()];
  using sampler_type = decltype(make(shard{}, nullptr));
  std::vector<sampler_type> fleet;
  for (std::size_t rank = 0; rank != ranks; ++rank) fleet.push_back(make({ranks, rank}, nullptr));
  std::vector<std::uint64_t> runs(count, 0);
  std::uint64_t const first_epoch = fleet[0].epoch();
  bool const is_limited = !std::is_same_v<sampler_type, omnibal::epoch_sampler>;
  std::size_t const max_changes = is_limited ? omnibal::max_rank_changes : std::size_t{60};
  std::size_t changes = 0;
  for (std::size_t step = 0; step != 60; ++step) {
    std::uint8_t const event = bytes.next();
    if (fleet[0].done()) {
      std::uint64_t const epochs = fleet[0].epoch() - first_epoch + 1;
      std::uint64_t const whole = carries ? epochs - 1 : epochs;
      for (std::uint64_t const often : runs) {
        require(often >= whole && often <= epochs, name + " runs each as often as any other");
      }
      changes = 0;
    }
    if (event % 4 == 1) {
      sampler_state const state = fleet[0].state();
      if (event % 8 == 5 && changes < max_changes && !fleet[0].done()) {
        ranks = ranks_of[event / 8 % ranks_of.size()];
        ++changes;
      }
      std::vector<sampler_type> restored;
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        restored.push_back(make({ranks, rank}, &state));
      }
      fleet = std::move(restored);
      require(fleet[0].state() == state, name + " has the state that it was restored from");
    }
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      for (std::uint64_t const one : take(fleet[rank], rank)) {
        require(one < count, name + " runs what there is");
        ++runs[one];
      }
      require(fleet[rank].state() == fleet[0].state() || rank == 0 || rank + 1 != ranks,
              name + " is in the same place on all ranks");
    }
    if (event % 4 != 3) continue;
    // One that is restored has the same future.
    sampler_state const state = fleet[0].state();
    auto resumed = make({ranks, 0}, &state);
    auto original = make({ranks, 0}, &state);
    static_cast<void>(take(resumed, 0));
    require(take(resumed, 0) == (static_cast<void>(take(original, 0)), take(original, 0)),
            name + " has the same future again");
  }
}

/// A state near to one that a sampler wrote.
sampler_state read_state(byte_reader& bytes, sampler_state state) {
  state.epoch = bytes.next() % 8 == 0 ? ~std::uint64_t{0} : bytes.next() % 4;
  state.carried = bytes.next() % 4 == 0 ? ~std::uint64_t{0} - bytes.next() : bytes.next();
  if (bytes.next() % 8 == 0) ++state.digest;
  std::size_t const used = bytes.next() % (std::size(state.segments) + 1);
  for (std::size_t i = 0; i != std::size(state.segments); ++i) {
    state.segments[i] = {};
    if (i >= used) continue;
    std::uint8_t const kind = bytes.next();
    state.segments[i].ranks = kind % 16 == 0 ? ~std::uint32_t{0} - kind : kind % 5u;
    state.segments[i].batch = kind % 32 == 1 ? ~std::uint32_t{0} : bytes.next() % 3u;
    state.segments[i].step_count = kind % 32 == 2 ? ~std::uint64_t{0} : bytes.next() % 5u;
  }
  return state;
}

/// Such a state is refused, or there is a step.
template <class Make>
void check_state(std::string const& name, byte_reader& bytes, Make const& make) {
  sampler_state const state = read_state(bytes, make({2, 0}, nullptr).state());
  returns(name, oddity::wrong, [&] {
    auto sampler = make({2, 0}, &state);
    for (int step = 0; step != 4; ++step) static_cast<void>(sampler.next());
  });
}

remainder_policy read_policy(byte_reader& bytes) { return remainder_policy{bytes.next() % 3}; }

void check_epochs(byte_reader& bytes) {
  std::size_t const count = bytes.next() + 1u;
  omnibal::epoch_sampler_options options;
  options.seed = bytes.next();
  options.epoch = bytes.next() % 3u;
  options.batch = bytes.next() % 7u + 1;
  options.order = omnibal::sample_order{bytes.next() % 2};
  options.remainder = read_policy(bytes);
  auto const make = [&](shard const& place, sampler_state const* state) {
    return state == nullptr ? omnibal::epoch_sampler(count, place, options)
                            : omnibal::epoch_sampler(count, place, options, *state);
  };
  if (bytes.next() % 4 == 0) {
    check_state("epoch_sampler", bytes, make);
    return;
  }
  check_walk("epoch_sampler", bytes, count, {1, 2, 3, 4, 8},
             options.remainder == remainder_policy::carry, make,
             [](omnibal::epoch_sampler& sampler, std::size_t) { return new_ones(sampler); });
}

omnibal::schedule_steps_options read_schedule(byte_reader& bytes) {
  omnibal::schedule_steps_options options;
  options.seed = bytes.next();
  options.epoch = bytes.next() % 3u;
  options.remainder = read_policy(bytes);
  options.groups_per_rank = bytes.next() % 3u + 1;
  options.even_positions = bytes.next() % 4 == 0;
  options.rounds = bytes.next() % 20u;
  return options;
}

void check_steps(byte_reader& bytes) {
  auto const options = read_schedule(bytes);
  std::vector<std::int64_t> loads(bytes.next() % 100u + 1);
  for (std::int64_t& load : loads) load = bytes.next() * 3;
  using sampler = omnibal::step_sampler<std::int64_t>;
  auto const make = [&](shard const& place, sampler_state const* state) {
    return state == nullptr ? sampler(loads, place, options)
                            : sampler(loads, place, options, *state);
  };
  if (bytes.next() % 4 == 0) {
    check_state("step_sampler", bytes, make);
    return;
  }
  check_walk("step_sampler", bytes, loads.size(), {1, 2, 3, 4, 8},
             options.remainder == remainder_policy::carry, make,
             [](sampler& one, std::size_t) { return new_ones(one); });
}

void check_levels(byte_reader& bytes) {
  omnibal::level_sampler_options options;
  options.schedule = read_schedule(bytes);
  options.short_first_steps = bytes.next() % 8u;
  std::vector<omnibal::packing_level> const levels{
      {100, 1, 0}, {bytes.next() + 101, 2, 0}, {1000, bytes.next() % 2 == 0 ? 2 : 4, 3}};
  std::vector<std::int64_t> lengths(bytes.next() % 100u + 1);
  for (std::int64_t& length : lengths)
    length = read_number<std::int64_t>(bytes, oddity::none) % 1001;
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  std::vector<std::int64_t> loads;
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    loads.push_back(static_cast<std::int64_t>(packed.groups[g].size()) * 100);
  }
  if (loads.empty()) return;
  using sampler = omnibal::level_sampler<std::int64_t>;
  auto const make = [&](shard const& place, sampler_state const* state) {
    return state == nullptr ? sampler(packed, loads, place, options)
                            : sampler(packed, loads, place, options, *state);
  };
  if (bytes.next() % 4 == 0) {
    returns("level_sampler", oddity::wrong, [&] {
      sampler_state const state = read_state(bytes, make({4, 0}, nullptr).state());
      auto one = make({4, 0}, &state);
      for (int step = 0; step != 4; ++step) static_cast<void>(one.next());
    });
    return;
  }
  check_walk("level_sampler", bytes, loads.size(), {4, 8, 12},
             options.schedule.remainder == remainder_policy::carry, make,
             [](sampler& one, std::size_t rank) { return new_ones(one, rank); });
}

struct source {
  std::int64_t size;
  double weight;
};

void check_mixture(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::mixture_options options;
  options.seed = bytes.next();
  options.end = omnibal::source_end{bytes.next() % 2};
  options.window = bytes.next() % 9u + (kind == oddity::wrong ? 0 : 1);
  std::uint64_t const step = bytes.next();
  std::vector<source> sources;
  while (!bytes.empty() && sources.size() < 40) {
    sources.push_back({read_number<std::int64_t>(bytes, kind), read_number<double>(bytes, kind)});
  }
  bool const is_right =
      std::all_of(sources.begin(), sources.end(),
                  [](source const& one) { return one.size > 0 || !(one.weight > 0); }) &&
      std::any_of(sources.begin(), sources.end(), [](source const& one) { return one.weight > 0; });
  returns("mixture", is_right ? kind : oddity::wrong, [&] {
    omnibal::mixture const mixed(sources, &source::size, &source::weight, options);
    std::uint64_t position = 0;
    for (int draw = 0; draw != 64 && position < mixed.size(); ++draw) {
      auto const drawn = mixed(position);
      require(drawn.source < sources.size(), "mixture draws of a source");
      source const& from = sources[drawn.source];
      require(from.weight > 0, "mixture draws of a source with a weight");
      require(drawn.sample < static_cast<std::uint64_t>(from.size), "mixture draws what there is");
      require(options.end == omnibal::source_end::restart || drawn.epoch == 0,
              "mixture stops before a source starts again");
      position += step * step * step + 1;
    }
    if (mixed.size() != 0) static_cast<void>(mixed(mixed.size() - 1));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 4) {
    case 0: check_epochs(bytes); break;
    case 1: check_steps(bytes); break;
    case 2: check_levels(bytes); break;
    default: check_mixture(bytes); break;
  }
  return 0;
}
