// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/encoder_problem.hpp>
#include <omnibal/pipeline/detail/encoder_run.hpp>
#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/place_encoder.hpp>
#include <omnibal/pipeline/simulate_encoder.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::encoder_work;
using omnibal::model_part;
using omnibal::one_f_one_b;
using omnibal::operation_kind;
using omnibal::place_encoder;
using omnibal::placed_lists;
using omnibal::placed_operation;
using omnibal::simulate_encoder;
using omnibal::stage_time;
using omnibal::transfer_time;

template <class Value>
using table = std::vector<std::vector<Value>>;

std::int64_t below(omnibal::rng::engine& random, std::uint64_t count) {
  return static_cast<std::int64_t>(omnibal::rng::below(random, count));
}
std::size_t one_to(omnibal::rng::engine& random, std::uint64_t most) {
  return 1 + omnibal::rng::below(random, most);
}

/// Random costs of a language model and an encoder.
struct random_costs {
  table<stage_time<>> times;
  std::vector<transfer_time<>> transfers;
  table<std::int64_t> bytes;
  encoder_work<> encoder;

  template <class Schedule>
  random_costs(omnibal::rng::engine& random, Schedule const& schedule)
      : times(schedule.stages * schedule.chunk_count()), bytes(times.size()) {
    std::uint64_t const range = below(random, 2) == 0 ? 4 : 1000;
    for (std::size_t v = 0; v != times.size(); ++v) {
      for (std::size_t m = 0; m != schedule.micro_batches; ++m) {
        times[v].push_back({below(random, range), below(random, range), below(random, range)});
        bytes[v].push_back(below(random, 5));
      }
      if (v != 0) transfers.push_back({below(random, 3), below(random, 3)});
    }
    bool const is_frozen = below(random, 4) == 0;
    for (std::size_t m = 0; m != schedule.micro_batches; ++m) {
      std::int64_t const backward = is_frozen ? 0 : below(random, 2 * range);
      encoder.times.push_back({below(random, range), backward, is_frozen ? 0 : 1});
      encoder.transfers.push_back({below(random, 4), below(random, 4)});
      encoder.activation_bytes.push_back(below(random, 6));
      encoder.output_bytes.push_back(below(random, 4));
    }
    encoder.pieces = one_to(random, 3);
    if (below(random, 2) == 0) {
      // Some stages in descending order, and one or two devices of the encoder alone.
      for (std::size_t s = schedule.stages; s-- != 0;) {
        if (below(random, 2) == 0) encoder.devices.push_back(static_cast<std::uint32_t>(s));
      }
      auto const own = static_cast<std::uint32_t>(one_to(random, 2));
      for (std::uint32_t i = 0; i != own; ++i) {
        encoder.devices.push_back(static_cast<std::uint32_t>(schedule.stages) + i);
      }
    }
    encoder.readers.clear();
    for (std::uint32_t v = 0; v != times.size(); ++v) {
      if (below(random, 3) == 0) encoder.readers.push_back(v);
    }
    if (encoder.readers.empty()) encoder.readers.push_back(0);
  }
};

/// Calls `check(schedule)` for a random schedule of each kind.
template <class Check>
void for_each_schedule(omnibal::rng::engine& random, Check const& check) {
  std::size_t const stages = one_to(random, 4);
  std::size_t const batches = one_to(random, 6);
  check(one_f_one_b{stages, batches});
  check(omnibal::zb_h1{stages, batches});
  check(omnibal::interleaved_1f1b{stages, batches, 2});
  omnibal::chunk_layout layout{stages, batches};
  layout.placement = static_cast<omnibal::chunk_placement>(below(random, 3));
  check(omnibal::list_schedule(layout, stage_time<>{2, 3, 1}).schedule);
}

/// The third number is the virtual stage or the piece, the last one the micro-batch.
using operation_key = std::tuple<model_part, operation_kind, std::size_t, std::uint32_t>;

template <class Schedule>
operation_key key_of(Schedule const& schedule, std::size_t device, placed_operation const& one) {
  std::size_t place = one.chunk;
  if (one.part == model_part::language) {
    place = omnibal::virtual_stage_of(schedule, device, {one.chunk, one.micro_batch});
  }
  return {one.part, one.kind, place, one.micro_batch};
}

struct span_of_time {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t device = 0;
};

/// The first pieces have one unit more than the last ones.
std::int64_t part_of(encoder_work<> const& encoder, std::int64_t value, std::size_t piece) {
  auto const pieces = static_cast<std::int64_t>(encoder.pieces);
  return (value + pieces - 1 - static_cast<std::int64_t>(piece)) / pieces;
}

/// The times of lists as the least solution of all constraints: begins are raised until every
/// constraint holds. Returns no times if this does not end, which is so in a cycle of operations.
template <class Schedule>
std::map<operation_key, span_of_time> least_times(Schedule const& schedule,
                                                  random_costs const& costs,
                                                  placed_lists const& lists) {
  std::map<operation_key, span_of_time> at;
  for (std::size_t d = 0; d != lists.size(); ++d) {
    for (placed_operation const& one : lists[d]) {
      at[key_of(schedule, d, one)].device = d;
    }
  }
  encoder_work<> const& encoder = costs.encoder;
  auto const language = [&](operation_kind kind, std::size_t v, std::uint32_t m) {
    return at[{model_part::language, kind, v, m}];
  };
  std::size_t const count = schedule.stages * schedule.chunk_count();
  auto const begin_of = [&](placed_operation const& one, std::size_t d) {
    std::int64_t begin = 0;
    std::uint32_t const m = one.micro_batch;
    auto const raise = [&](span_of_time const& before, std::int64_t transfer) {
      begin = std::max(begin, before.end + (before.device == d ? 0 : transfer));
    };
    if (one.part == model_part::encoder) {
      if (one.kind == operation_kind::forward) return begin;
      for (std::uint32_t const reader : encoder.readers) {
        raise(language(operation_kind::backward, reader, m),
              part_of(encoder, encoder.transfers[m].backward, one.chunk));
      }
      return begin;
    }
    std::size_t const v = omnibal::virtual_stage_of(schedule, d, {one.chunk, m});
    if (one.kind == operation_kind::forward) {
      if (v != 0) raise(language(one.kind, v - 1, m), costs.transfers[v - 1].forward);
      if (std::ranges::find(encoder.readers, v) == encoder.readers.end()) return begin;
      for (std::uint32_t j = 0; j != encoder.pieces; ++j) {
        raise(at[{model_part::encoder, operation_kind::forward, j, m}],
              part_of(encoder, encoder.transfers[m].forward, j));
      }
    } else if (one.kind == operation_kind::backward) {
      if (v + 1 == count) {
        raise(language(operation_kind::forward, v, m), 0);
      } else {
        raise(language(one.kind, v + 1, m), costs.transfers[v].backward);
      }
    }
    return begin;
  };
  // In cycles of operations without time nothing changes, so that operations of time 1 come first.
  bool has_unit_times = true;
  auto const time_of = [&](placed_operation const& one, std::size_t d) {
    if (has_unit_times) return std::int64_t{1};
    std::uint32_t const m = one.micro_batch;
    if (one.part == model_part::encoder) {
      auto const& time = encoder.times[m];
      return part_of(
          encoder, one.kind == operation_kind::forward ? time.forward : time.backward + time.weight,
          one.chunk);
    }
    auto const& time = costs.times[omnibal::virtual_stage_of(schedule, d, {one.chunk, m})][m];
    if (one.kind == operation_kind::forward) return time.forward;
    if (one.kind == operation_kind::weight) return time.weight;
    return Schedule::splits_backward ? time.backward : time.backward + time.weight;
  };
  auto const sweep = [&] {
    bool has_changed = false;
    for (std::size_t d = 0; d != lists.size(); ++d) {
      std::int64_t now = 0;
      for (placed_operation const& one : lists[d]) {
        auto& span = at[key_of(schedule, d, one)];
        std::int64_t const begin = std::max(now, begin_of(one, d));
        now = begin + time_of(one, d);
        has_changed = has_changed || span.begin != begin || span.end != now;
        span.begin = begin;
        span.end = now;
      }
    }
    return has_changed;
  };
  // A chain has at most all operations, each sweep ends at least one more.
  std::size_t left = at.size() + 1;
  while (sweep()) {
    if (left-- == 0) return {};
  }
  has_unit_times = false;
  for (auto& [key, span] : at) span.begin = span.end = 0;
  while (sweep()) {
  }
  return at;
}

/// The most bytes of each device, counted at the begin of every operation and every wait.
template <class Schedule>
std::vector<std::int64_t> naive_peaks(random_costs const& costs,
                                      std::map<operation_key, span_of_time> const& at,
                                      std::size_t devices) {
  struct kept {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t bytes;
    std::size_t device;
  };
  encoder_work<> const& encoder = costs.encoder;
  std::vector<kept> all;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<span_of_time, span_of_time>> passes;
  for (auto const& [key, span] : at) {
    auto const& [part, kind, v, m] = key;
    if (part == model_part::encoder || kind != operation_kind::forward) continue;
    passes[{v, m}] = {span, at.at({part, operation_kind::backward, v, m})};
    auto const last = Schedule::splits_backward ? operation_kind::weight : operation_kind::backward;
    all.push_back({span.begin, at.at({part, last, v, m}).end, costs.bytes[v][m], span.device});
  }
  for (auto const& [key, span] : at) {
    auto const& [part, kind, piece, m] = key;
    if (part == model_part::language || kind != operation_kind::forward) continue;
    std::int64_t const kept_bytes = part_of(encoder, encoder.activation_bytes[m], piece);
    std::int64_t const output = part_of(encoder, encoder.output_bytes[m], piece);
    std::int64_t const end = at.at({part, operation_kind::backward, piece, m}).end;
    all.push_back({span.begin, end, kept_bytes, span.device});
    std::int64_t first_gradient = std::numeric_limits<std::int64_t>::max();
    for (std::uint32_t const reader : encoder.readers) {
      auto const& [forward, backward] = passes.at({reader, m});
      all.push_back({span.end, forward.begin, output, forward.device});
      first_gradient = std::min(first_gradient, backward.end);
    }
    all.push_back({first_gradient, end, output, span.device});
  }
  std::vector<std::int64_t> peaks(devices, 0);
  for (kept const& moment : all) {
    std::vector<std::int64_t> now(devices, 0);
    for (kept const& one : all) {
      if (one.begin <= moment.begin && moment.begin < one.end) now[one.device] += one.bytes;
    }
    for (std::size_t d = 0; d != devices; ++d) peaks[d] = std::max(peaks[d], now[d]);
  }
  return peaks;
}

/// Random lists: the pieces at any places of any devices. They may wait forever.
template <class Schedule>
placed_lists random_lists(omnibal::rng::engine& random, Schedule const& schedule,
                          random_costs const& costs) {
  encoder_work<> const& encoder = costs.encoder;
  std::size_t devices = schedule.stages;
  for (std::uint32_t const d : encoder.devices) devices = std::max<std::size_t>(devices, d + 1);
  placed_lists lists(devices);
  for (std::size_t s = 0; s != schedule.stages; ++s) {
    omnibal::detail::for_each_operation(schedule, s, [&](operation_kind kind, auto const& unit) {
      lists[s].push_back({model_part::language, kind, unit.chunk, unit.micro_batch});
    });
  }
  for (std::uint32_t m = 0; m != schedule.micro_batches; ++m) {
    for (std::uint32_t j = 0; j != encoder.pieces; ++j) {
      std::size_t d = omnibal::rng::below(random, schedule.stages);
      if (!encoder.devices.empty()) {
        d = encoder.devices[omnibal::rng::below(random, encoder.devices.size())];
      }
      auto& list = lists[d];
      // Mostly early, so that most lists do not wait forever.
      std::size_t const first =
          omnibal::rng::below(random, std::min<std::size_t>(list.size(), m) + 1);
      std::size_t const span = list.size() - first;
      std::size_t const last =
          first + span - omnibal::rng::below(random, std::min<std::size_t>(span, 3) + 1);
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(last),
                  {model_part::encoder, operation_kind::backward, j, m});
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(first),
                  {model_part::encoder, operation_kind::forward, j, m});
    }
  }
  return lists;
}

/// Calls `visit(lists)` for all placements of pieces on devices and in lists.
template <class Visit>
void for_each_placement(placed_lists& lists, encoder_work<> const& encoder,
                        std::vector<std::uint32_t> const& devices, std::size_t piece,
                        Visit const& visit) {
  if (piece == encoder.times.size() * encoder.pieces) {
    visit(lists);
    return;
  }
  auto const m = static_cast<std::uint32_t>(piece / encoder.pieces);
  auto const j = static_cast<std::uint32_t>(piece % encoder.pieces);
  for (std::uint32_t const d : devices) {
    auto& list = lists[d];
    for (std::size_t first = 0; first <= list.size(); ++first) {
      for (std::size_t last = first; last <= list.size(); ++last) {
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(last),
                    {model_part::encoder, operation_kind::backward, j, m});
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(first),
                    {model_part::encoder, operation_kind::forward, j, m});
        for_each_placement(lists, encoder, devices, piece + 1, visit);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(last) + 1);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(first));
      }
    }
  }
}

}  // namespace

// The engine follows inputs as they are sent; the constraints need no engine.
TEST_CASE("simulate_encoder runs lists at the least times that all constraints allow") {
  omnibal::rng::engine random(1);
  int ended = 0;
  int waiting = 0;
  for (int round = 0; round != 300; ++round) {
    for_each_schedule(random, [&](auto const& schedule) {
      using Schedule = std::remove_cvref_t<decltype(schedule)>;
      random_costs const costs(random, schedule);
      auto const lists = random_lists(random, schedule, costs);
      auto const expected = least_times(schedule, costs, lists);
      auto const run = [&] {
        return simulate_encoder(schedule, costs.times, costs.transfers, costs.bytes, costs.encoder,
                                lists);
      };
      if (expected.empty()) {
        ++waiting;
        auto const text =
            test::error_text<std::invalid_argument>([&] { static_cast<void>(run()); });
        CAPTURE(text);
        CHECK(text.find("waits forever for its input") != std::string::npos);
        return;
      }
      ++ended;
      auto const step = run();
      std::int64_t latest = 0;
      std::vector<std::int64_t> busy(lists.size(), 0);
      std::size_t same = 0;
      auto const compare = [&](model_part part, auto const& timeline) {
        for (auto const& one : timeline) {
          auto const& span = expected.at(
              key_of(schedule, one.stage, {part, one.kind, one.chunk, one.micro_batch}));
          same += one.begin == span.begin && one.end == span.end && one.stage == span.device;
          latest = std::max(latest, one.end);
          busy[one.stage] += one.end - one.begin;
        }
      };
      compare(model_part::language, step.language);
      compare(model_part::encoder, step.encoder);
      CHECK(same == expected.size());
      CHECK(step.language.size() + step.encoder.size() == expected.size());
      CHECK(step.makespan == latest);
      CHECK(step.busy == busy);
      CHECK(step.peak_bytes == naive_peaks<Schedule>(costs, expected, lists.size()));
    });
  }
  CHECK(ended > 300);
  CHECK(waiting > 30);
}

// These are the promises of the result for every schedule, device, reader and memory.
TEST_CASE("place_encoder keeps the order of the schedule, the memory and its bound") {
  omnibal::rng::engine random(2);
  int limited = 0;
  int refused = 0;
  for (int round = 0; round != 60; ++round) {
    for_each_schedule(random, [&](auto const& schedule) {
      random_costs const costs(random, schedule);
      auto const place = [&](std::vector<std::int64_t> const& memory) {
        return place_encoder(schedule, costs.times, costs.transfers, costs.bytes, costs.encoder,
                             memory, {.simulations = 100});
      };
      auto const check = [&](auto const& placed) {
        // Errors of `simulate_encoder` would name operations that are missing or out of order.
        auto const step = simulate_encoder(schedule, costs.times, costs.transfers, costs.bytes,
                                           costs.encoder, placed.lists);
        bool const is_same = step == placed.step;
        CHECK(is_same);
        CHECK(placed.lower_bound <= placed.step.makespan);
        CHECK(placed.language_makespan ==
              omnibal::simulate_pipeline(schedule, costs.times, costs.transfers).makespan);
        CHECK(placed.language_makespan <= placed.lower_bound);
      };
      auto const free = place({});
      check(free);
      CHECK(free.step.makespan <= free.before_makespan);
      auto memory = free.step.peak_bytes;
      memory[omnibal::rng::below(random, memory.size())] -= 1 + below(random, 3);
      try {
        auto const placed = place(memory);
        check(placed);
        ++limited;
        bool fits = true;
        for (std::size_t d = 0; d != memory.size(); ++d) {
          fits = fits && placed.step.peak_bytes[d] <= memory[d];
        }
        CHECK(fits);
      } catch (std::invalid_argument const&) {
        ++refused;
      }
    });
  }
  CHECK(limited > 40);
  CHECK(refused > 40);
}

// All placements of a small step show that the bound is one, and how often the search is optimal.
TEST_CASE("no placement is shorter than the bound of place_encoder") {
  omnibal::rng::engine random(3);
  int best = 0;
  int bound = 0;
  int rounds = 0;
  auto const check = [&](auto const& schedule, std::size_t pieces) {
    random_costs costs(random, schedule);
    costs.encoder.pieces = pieces;
    auto const problem = omnibal::detail::make_encoder_problem<std::int64_t>(
        "test", schedule, costs.times, costs.transfers, costs.bytes, costs.encoder);
    placed_lists lists(problem.devices);
    for (std::size_t s = 0; s != schedule.stages; ++s) {
      omnibal::detail::for_each_operation(schedule, s, [&](operation_kind kind, auto const& unit) {
        lists[s].push_back({model_part::language, kind, unit.chunk, unit.micro_batch});
      });
    }
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for_each_placement(lists, costs.encoder, problem.encoder_devices, 0,
                       [&](placed_lists const& all) {
                         omnibal::detail::encoder_run<std::int64_t> run("test", problem, all);
                         if (run.try_run()) least = std::min(least, run.makespan());
                       });
    auto const placed =
        place_encoder(schedule, costs.times, costs.transfers, costs.bytes, costs.encoder);
    CHECK(placed.lower_bound <= least);
    CHECK(least <= placed.step.makespan);
    best += placed.step.makespan == least ? 1 : 0;
    bound += placed.lower_bound == least ? 1 : 0;
    ++rounds;
  };
  for (int round = 0; round != 60; ++round) {
    check(one_f_one_b{2, 2}, 1);
    check(omnibal::zb_h1{1, 2}, 1);
    check(one_f_one_b{3, 1}, 2);
    if (round % 12 == 0) check(omnibal::zb_h1{2, 2}, 1);
  }
  INFO("optimal " << best << ", bound reached " << bound << " of " << rounds);
  CHECK(best * 10 > rounds * 9);
  CHECK(bound * 2 > rounds);
}

// The step is known without the library: one stage runs nothing but its work.
TEST_CASE("place_encoder hides an encoder in idle times") {
  encoder_work<> encoder{.times = {{2, 4}, {2, 4}}};
  auto const alone = place_encoder(one_f_one_b{1, 2}, stage_time<>{3, 6}, std::int64_t{0},
                                   std::int64_t{0}, encoder);
  CHECK(alone.step.makespan == 2 * (2 + 4 + 3 + 6));
  CHECK(alone.lower_bound == alone.step.makespan);
  CHECK(alone.language_makespan == 18);

  // Four stages wait three forward and three backward passes. A small encoder adds only its first
  // forward and its last backward pass.
  encoder.times.assign(8, {1, 2});
  auto const hidden = place_encoder(one_f_one_b{4, 8}, stage_time<>{10, 20}, std::int64_t{0},
                                    std::int64_t{0}, encoder);
  CHECK(hidden.language_makespan == 11 * 30);
  CHECK(hidden.step.makespan == 11 * 30 + 3);
  CHECK(hidden.lower_bound == hidden.step.makespan);
  CHECK(hidden.before_makespan > hidden.step.makespan);

  // A device of its own runs ahead.
  encoder.devices = {4};
  auto const own = place_encoder(one_f_one_b{4, 8}, stage_time<>{10, 20}, std::int64_t{0},
                                 std::int64_t{0}, encoder);
  CHECK(own.step.makespan == 11 * 30 + 3);
  CHECK(own.lists.size() == 5);
  CHECK(own.lists[4].size() == 16);
  CHECK(own.step.busy[4] == 24);

  // The last stage reads the features: they may arrive when its first micro-batch does.
  encoder.readers = {3};
  encoder.devices = {0};
  encoder.times.assign(8, {1, 0});
  auto const late = place_encoder(one_f_one_b{4, 8}, stage_time<>{10, 20}, std::int64_t{0},
                                  std::int64_t{0}, encoder);
  CHECK(late.step.makespan == 11 * 30);
}

// A device holds the bytes of the language model, of pieces, of features and of their gradients.
TEST_CASE("simulate_encoder counts features that wait") {
  encoder_work<> const encoder{.times = {{1, 1}, {1, 1}, {1, 1}},
                               .activation_bytes = {100, 100, 100},
                               .output_bytes = {10, 10, 10},
                               .devices = {1}};
  auto const op = [](model_part part, operation_kind kind, std::uint32_t m) {
    return placed_operation{part, kind, 0, m};
  };
  placed_lists lists(2);
  for (auto const kind : {operation_kind::forward, operation_kind::backward}) {
    for (std::uint32_t m = 0; m != 3; ++m) lists[1].push_back(op(model_part::encoder, kind, m));
  }
  for (std::uint32_t m = 0; m != 3; ++m) {
    lists[0].push_back(op(model_part::language, operation_kind::forward, m));
    lists[0].push_back(op(model_part::language, operation_kind::backward, m));
  }
  auto const step = simulate_encoder(one_f_one_b{1, 3}, stage_time<>{5, 5}, std::int64_t{0},
                                     std::int64_t{1000}, encoder, lists);
  // The features of two micro-batches wait during the first one.
  CHECK(step.peak_bytes == std::vector<std::int64_t>{1020, 310});
  CHECK(step.makespan == 32);
  CHECK(step.busy == std::vector<std::int64_t>{30, 6});
}

// Floating-point times take other paths through divisions and rounding.
TEST_CASE("place_encoder accepts floating-point times") {
  encoder_work<double> encoder{.times = {}, .pieces = 3};
  for (int m = 0; m != 6; ++m) encoder.times.push_back({.1 + .01 * m, .2, 0});
  auto const placed = place_encoder(one_f_one_b{3, 6}, stage_time<double>{1, 2}, .1, 1, encoder);
  CHECK(placed.lower_bound <= placed.step.makespan);
  CHECK(placed.step.makespan <= placed.before_makespan);
  bool const is_same = simulate_encoder(one_f_one_b{3, 6}, stage_time<double>{1, 2}, .1, 1, encoder,
                                        placed.lists) == placed.step;
  CHECK(is_same);
}

// Every argument that no step can have is named with its value.
TEST_CASE("place_encoder and simulate_encoder refuse what no step can have") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  encoder_work<> const good{.times = {{1, 2}, {1, 2}}};
  auto const error = [](encoder_work<> const& encoder,
                        std::vector<std::int64_t> const& memory = {}) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(place_encoder(one_f_one_b{2, 2}, stage_time<>{1, 2}, std::int64_t{0},
                                      std::int64_t{5}, encoder, memory));
    });
  };
  auto const changed = [&](auto const& change) {
    encoder_work<> encoder = good;
    change(encoder);
    return error(encoder);
  };
  CHECK(changed([](auto& e) { e.times.pop_back(); }) ==
        "omnibal::place_encoder: encoder.times has 1 values for 2 micro-batches");
  CHECK(changed([](auto& e) { e.times[1].forward = -1; }) ==
        "omnibal::place_encoder: encoder.times[1].forward is -1, must be finite and not negative");
  CHECK(changed([](auto& e) { e.times[0].weight = -3; }) ==
        "omnibal::place_encoder: encoder.times[0].weight is -3, must be finite and not negative");
  CHECK(changed([](auto& e) {
          e.transfers = {{0, 0}, {0, -2}};
        }) ==
        "omnibal::place_encoder: encoder.transfers[1].backward is -2, must be finite and not "
        "negative");
  CHECK(changed([](auto& e) {
          e.transfers = {{0, 0}};
        }) == "omnibal::place_encoder: encoder.transfers has 1 values for 2 micro-batches");
  CHECK(changed([](auto& e) {
          e.activation_bytes = {1, -1};
        }) ==
        "omnibal::place_encoder: encoder.activation_bytes[1] is -1, must be finite and not "
        "negative");
  CHECK(changed([](auto& e) {
          e.output_bytes = {-7, 1};
        }) ==
        "omnibal::place_encoder: encoder.output_bytes[0] is -7, must be finite and not negative");
  CHECK(changed([](auto& e) { e.pieces = 0; }) ==
        "omnibal::place_encoder: encoder.pieces is 0, must be positive");
  CHECK(changed([](auto& e) {
          e.devices = {0, 0};
        }) == "omnibal::place_encoder: encoder.devices[1] is 0, which is named twice");
  CHECK(changed([](auto& e) {
          e.devices = {0, 4};
        }) ==
        "omnibal::place_encoder: encoder.devices[1] is 4, devices behind the 2 stages must have "
        "the next numbers");
  CHECK(changed([](auto& e) { e.devices = {3}; }).find("encoder.devices[0] is 3") !=
        std::string::npos);
  CHECK(changed([](auto& e) { e.readers.clear(); }) ==
        "omnibal::place_encoder: encoder.readers is empty, no virtual stage reads the features");
  CHECK(changed([](auto& e) {
          e.readers = {1, 2};
        }) == "omnibal::place_encoder: encoder.readers[1] is 2, there are 2 virtual stages");
  CHECK(changed([](auto& e) {
          e.readers = {1, 1};
        }) == "omnibal::place_encoder: encoder.readers has virtual stage 1 twice");
  CHECK(error(good, {10}) == "omnibal::place_encoder: memory has 1 values for 2 devices");
  CHECK(error(good, {10, 4}) ==
        "omnibal::place_encoder: memory[1] is 4, must be at least 5, which the schedule of the "
        "language model keeps");
  encoder_work<> heavy = good;
  heavy.activation_bytes = {50, 50};
  CHECK(error(heavy, {20, 20})
            .starts_with("omnibal::place_encoder: no placement of the encoder was found within the "
                         "memory, {20, 20}; "
                         "the best one without a limit keeps {"));

  auto const overflow = [](encoder_work<> const& encoder) {
    return test::error_text<std::overflow_error>([&] {
      static_cast<void>(place_encoder(one_f_one_b{2, 2}, stage_time<>{1, 2}, std::int64_t{0},
                                      std::int64_t{5}, encoder));
    });
  };
  CHECK(overflow({.times = {{most / 2, 0}, {most / 2, 2}}}) ==
        "omnibal::place_encoder: the sum of all times exceeds the largest value of its type");
  CHECK(overflow({.times = {{0, most, 1}, {0, 0}}}) ==
        "omnibal::place_encoder: a backward time of the encoder exceeds the largest value of its "
        "type");
  CHECK(overflow({.times = {{1, 1}, {1, 1}}, .output_bytes = {most / 2, 2}}) ==
        "omnibal::place_encoder: the sum of bytes exceeds the largest value of its type");
  CHECK(overflow({.times = {{1, 1}, {1, 1}}, .activation_bytes = {most / 2, 2}}).empty() == false);

  auto lists = place_encoder(one_f_one_b{2, 2}, stage_time<>{1, 2}, std::int64_t{0},
                             std::int64_t{0}, good, {}, {.simulations = 0})
                   .lists;
  auto const list_error = [&](auto const& change) {
    placed_lists wrong = lists;
    change(wrong);
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(simulate_encoder(one_f_one_b{2, 2}, stage_time<>{1, 2}, std::int64_t{0},
                                         std::int64_t{0}, good, wrong));
    });
  };
  CHECK(list_error([](auto& l) { l.pop_back(); }) ==
        "omnibal::simulate_encoder: lists has 1 values for 2 devices");
  auto const is_language = [](placed_operation const& one) {
    return one.part == model_part::language;
  };
  CHECK(list_error([&](auto& l) {
          l[0].erase(std::ranges::find_if(l[0], is_language));
        }).find("is not the next one of the schedule") != std::string::npos);
  CHECK(list_error([&](auto& l) {
          l[0].push_back({model_part::language, operation_kind::forward, 0, 0});
        }).find("is not in the schedule") != std::string::npos);
  CHECK(list_error([&](auto& l) {
          l[0].erase(std::ranges::find_if(l[0].rbegin(), l[0].rend(), is_language).base() - 1);
        }) ==
        "omnibal::simulate_encoder: lists[0] has 3 values for 4 operations of the language model");
  CHECK(list_error([&](auto& l) {
          l[0].insert(l[0].begin(), {model_part::encoder, operation_kind::forward, 0, 2});
        }) ==
        "omnibal::simulate_encoder: lists[0][0], forward of the encoder for micro-batch 2, piece "
        "0, does not exist");
  CHECK(list_error([&](auto& l) {
          l[0].insert(l[0].begin(), {model_part::encoder, operation_kind::backward, 0, 0});
        }).find("has no forward pass before it on its device") != std::string::npos);
  CHECK(list_error([&](auto& l) {
          l[1].push_back({model_part::encoder, operation_kind::forward, 0, 1});
        }).find("is listed twice") != std::string::npos);
  auto const is_return = [](placed_operation const& one) {
    return one.part == model_part::encoder && one.kind == operation_kind::backward;
  };
  CHECK(list_error([&](auto& l) {
          for (auto& list : l) std::erase_if(list, is_return);
        }) ==
        "omnibal::simulate_encoder: the lists have no backward pass of the encoder for micro-batch "
        "0, piece 0");
}
