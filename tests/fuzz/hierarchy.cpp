// SPDX-License-Identifier: Apache-2.0
// Packs of several lengths, their steps and the choice of levels, for whatever lengths and readings
// the bytes describe.

#include "../hierarchy/level_faults.hpp"
#include "byte_reader.hpp"
#include "odd_numbers.hpp"
#include "schedules.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/hierarchy/select_levels.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace {

using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

/// Ascending where the input is right.
std::vector<std::int64_t> read_ascending(byte_reader& bytes, oddity kind, std::size_t most,
                                         std::int64_t largest_step) {
  std::vector<std::int64_t> result;
  std::size_t const count = bytes.next() % most + (kind == oddity::wrong ? 0 : 1);
  std::int64_t before = 0;
  for (std::size_t i = 0; i != count; ++i) {
    before += bytes.next() % largest_step + (kind == oddity::wrong ? 0 : 1);
    result.push_back(before);
  }
  return result;
}

void check_packs(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::vector<omnibal::packing_level> levels;
  for (std::int64_t const length : read_ascending(bytes, kind, 6, 250)) {
    levels.push_back(
        {.length = length << bytes.next() % 4, .sequence = std::int64_t{1} << bytes.next() % 3});
    auto const& last = levels.back();
    if (levels.size() > 1 && last.length <= levels[levels.size() - 2].length) levels.pop_back();
  }
  omnibal::pack_levels_options options;
  std::uint8_t const form = bytes.next();
  options.fill = omnibal::level_fill{form & 1};
  options.order = omnibal::pack_order{form >> 1 & 1};
  omnibal::schedule_steps_options schedule;
  schedule.seed = bytes.next();
  schedule.remainder =
      form % 8 < 4 ? omnibal::remainder_policy::short_step : omnibal::remainder_policy::repeat;
  auto const lengths = test::read_numbers<std::int64_t>(bytes, kind, 300);

  // Samples that are too long to be alone, and of which one is too long, are errors.
  for (auto const policy :
       {omnibal::oversize_policy::own_group, omnibal::oversize_policy::reject}) {
    returns("pack_levels", oddity::wrong, [&] {
      omnibal::pack_levels_options other = options;
      other.oversized = policy;
      auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels, other);
      require(packed.oversized.empty() && packed.groups.item_count() == lengths.size(),
              "pack_levels has all samples in packs");
    });
  }
  returns("pack_levels", kind, [&] {
    auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels, options);
    std::string fault = test::level_fault(packed, lengths);
    require(fault.empty(), "pack_levels: " + fault);
    fault = test::level_fault(
        omnibal::pack_levels(lengths, std::identity{}, levels, omnibal::next_fit, options),
        lengths);
    require(fault.empty(), "pack_levels by next_fit: " + fault);
    omnibal::pack_levels_options none = options;
    none.fill = omnibal::level_fill::none;
    auto const apart = omnibal::pack_levels(lengths, std::identity{}, levels, none);
    std::vector<std::int64_t> loads;
    for (std::size_t g = 0; g != packed.groups.size(); ++g) {
      loads.push_back(static_cast<std::int64_t>(packed.groups[g].size()));
    }
    auto const steps = omnibal::level_steps(packed, loads, 4, schedule);
    for (std::size_t level = 0; level != packed.levels.size(); ++level) {
      auto const& own = packed.levels[level];
      require(own.group_count <= apart.levels[level].group_count,
              "pack_levels makes no more packs by filling");
      // The same steps of the groups of this level alone.
      omnibal::steps moved(steps[level].ranks());
      for (std::size_t step = 0; step != steps[level].size(); ++step) {
        for (std::size_t rank = 0; rank != moved.ranks(); ++rank) {
          for (std::uint32_t const group : steps[level](step, rank)) {
            require(group >= own.first_group, "level_steps runs groups of its level");
            moved.push(group - own.first_group);
          }
          if (steps[level].is_repeat(step, rank)) {
            moved.close_repeat();
          } else {
            moved.close();
          }
        }
      }
      moved.finish();
      std::string const wrong =
          test::schedule_fault(moved, own.group_count, moved.ranks(), schedule);
      require(wrong.empty(), "level_steps: " + wrong);
    }
  });
}

/// A device whose memory goes with the tokens of a rank and the layers that are kept.
struct profile {
  std::int64_t memory;
  std::int64_t token_bytes;
  std::int64_t bend;
  std::int64_t nanoseconds;
  bool is_silent;

  [[nodiscard]] omnibal::level_reading operator()(omnibal::packing_level const& level) const {
    std::int64_t const tokens = level.length / level.sequence;
    std::int64_t const kept = 64 - level.checkpointed_layers;
    std::int64_t const free = memory - tokens * token_bytes * kept - bend * kept / 7;
    std::int64_t const time = nanoseconds * (level.checkpointed_layers + 64) + tokens;
    return {free < 0 && is_silent ? omnibal::unknown_shortage : free, time};
  }
};

void check_selection(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::level_search search;
  search.layers = bytes.next() % 64 + (kind == oddity::wrong ? 0 : 1);
  search.lengths = read_ascending(bytes, kind, 8, 250);
  search.degrees = read_ascending(bytes, kind, 4, 3);
  search.min_checkpointed = bytes.next() % (search.layers + 1);
  search.reserve_bytes = bytes.next();
  search.ranks = bytes.next() % 2 == 0 ? 0 : bytes.next() % 16;
  profile const device{.memory = std::int64_t{bytes.next()} << bytes.next() % 12,
                       .token_bytes = bytes.next() % 8,
                       .bend = bytes.next(),
                       .nanoseconds = bytes.next() + (kind == oddity::wrong ? 0 : 1),
                       .is_silent = bytes.next() % 2 == 0};
  auto const samples = test::read_numbers<std::int64_t>(bytes, kind, 200);
  bool const has_ranks =
      search.ranks == 0 || search.degrees.empty() || search.ranks >= search.degrees.back();
  oddity const allowed = has_ranks ? kind : oddity::wrong;
  auto const check = [&](omnibal::level_selection const& made) {
    if (made.status != omnibal::solve_status::solved) {
      require(made.levels.empty(), "select_levels has no levels then");
      return;
    }
    require(!made.levels.empty(), "select_levels has levels");
    std::int64_t before = 0;
    for (auto const& level : made.levels) {
      require(level.length > before, "select_levels has ascending levels");
      before = level.length;
      require(level.checkpointed_layers >= search.min_checkpointed &&
                  level.checkpointed_layers <= search.layers,
              "select_levels checkpoints layers that there are");
      require(device(level).free_bytes >= search.reserve_bytes,
              "select_levels takes settings that fit");
    }
  };
  returns("select_levels", allowed, [&] { check(omnibal::select_levels(device, search)); });
  returns("select_levels", allowed, [&] {
    auto const made = omnibal::select_levels(device, search, samples);
    check(made);
    std::int64_t const longest = search.lengths.back();
    auto const is_longer = [&](std::int64_t length) { return length > longest; };
    require(made.oversized == static_cast<std::uint64_t>(
                                  std::count_if(samples.begin(), samples.end(), is_longer)),
            "select_levels counts what is too long");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  if (bytes.next() % 2 == 0) {
    check_packs(bytes);
  } else {
    check_selection(bytes);
  }
  return 0;
}
