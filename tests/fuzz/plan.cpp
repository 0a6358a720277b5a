// SPDX-License-Identifier: Apache-2.0
// Kept activations, pipeline plans and schedules for whatever layers the bytes describe: budgets
// hold, bounds are bounds, and what a simulation says of a plan is what the plan says.

#include "byte_reader.hpp"
#include "odd_numbers.hpp"

#include <omnibal/activation_option.hpp>
#include <omnibal/config.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using omnibal::solve_status;
using omnibal::detail::int128;
using test::byte_reader;
using test::oddity;
using test::read_number;
using test::require;
using test::returns;

template <class Time>
using layer = omnibal::plan_layer<Time>;

template <class Time>
std::vector<layer<Time>> read_layers(byte_reader& bytes, oddity kind, std::size_t most) {
  std::vector<layer<Time>> result;
  while (!bytes.empty() && result.size() < most) {
    // Equal layers are treated as one.
    std::uint8_t const form = bytes.next();
    if (form % 4 == 3 && !result.empty()) {
      result.push_back(result.back());
      continue;
    }
    auto& made = result.emplace_back();
    made.state_bytes = form % 4 == 0 ? read_number<std::int64_t>(bytes, kind) : 0;
    std::size_t const choices = form / 4 % 4u + (kind == oddity::wrong ? 0 : 1);
    for (std::size_t c = 0; c != choices; ++c) {
      auto& way = made.choices.emplace_back();
      way.time = read_number<Time>(bytes, kind);
      way.bytes = read_number<std::int64_t>(bytes, kind);
      if (form % 8 < 3) way.transient_bytes = read_number<std::int64_t>(bytes, kind);
    }
  }
  return result;
}

/// What the choices of the layers [first, last) take, without the reserve.
template <class Time>
int128 bytes_of(std::vector<layer<Time>> const& layers, std::vector<std::uint32_t> const& choices,
                std::size_t first, std::size_t last, std::int64_t in_flight) {
  int128 kept = 0;
  int128 transient = 0;
  for (std::size_t l = first; l != last; ++l) {
    auto const& way = layers[l].choices.at(choices.at(l));
    kept += way.bytes;
    transient = std::max<int128>(transient, way.transient_bytes);
  }
  return kept * in_flight + transient;
}

template <class Time>
void check_recompute(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::select_recompute_options options;
  options.in_flight = bytes.next() % 9 + (kind == oddity::wrong ? 0 : 1);
  options.reserve_bytes = read_number<std::int64_t>(bytes, kind) % 1000;
  options.effort = omnibal::effort::fast;
  if (bytes.next() % 4 == 0) options.states = bytes.next() % 20u + 1;
  std::int64_t const budget = bytes.next() % 8 == 0 ? read_number<std::int64_t>(bytes, kind)
                                                    : (std::int64_t{1} << bytes.next() % 24) * 3;
  auto const layers = read_layers<Time>(bytes, kind, 60);
  returns("select_recompute", kind, [&] {
    auto const made = omnibal::select_recompute(layers, &layer<Time>::choices, budget, options);
    if (made.status != solve_status::solved) {
      require(made.choices.empty() && made.missing_bytes > 0,
              "select_recompute says what is missing");
      require(int128{made.bytes} - made.missing_bytes == budget,
              "select_recompute says how many bytes would do");
      auto const again =
          omnibal::select_recompute(layers, &layer<Time>::choices, made.bytes, options);
      require(again.status == solve_status::solved, "select_recompute fits what it asked for");
      return;
    }
    require(made.choices.size() == layers.size(), "select_recompute chooses for each layer");
    int128 const taken =
        bytes_of(layers, made.choices, 0, layers.size(), options.in_flight) + options.reserve_bytes;
    require(taken == made.bytes && taken <= budget, "select_recompute exceeds no budget");
    require(made.lower_bound <= made.time, "select_recompute has a bound that is one");
    require(!made.proven || std::floating_point<Time> || made.lower_bound == made.time,
            "select_recompute proves what it reaches");
    if constexpr (std::integral<Time>) {
      int128 time = 0;
      for (std::size_t l = 0; l != layers.size(); ++l) {
        time += layers[l].choices[made.choices[l]].time;
      }
      require(time == made.time, "select_recompute adds up");
    }
  });
}

template <class Time>
void check_plan(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::pipeline_machine machine;
  machine.stages = bytes.next() % 6u + (kind == oddity::wrong ? 0 : 1);
  std::vector<std::int64_t> memory(bytes.next() % 2 == 0 ? 1 : machine.stages);
  for (std::int64_t& size : memory) size = (std::int64_t{1} << bytes.next() % 24) * 3;
  if (bytes.next() % 8 == 0 && !memory.empty()) memory[0] = read_number<std::int64_t>(bytes, kind);
  machine.memory_bytes = memory;
  std::int64_t const reserve = bytes.next();
  machine.reserve_bytes = reserve;
  omnibal::plan_pipeline_options options;
  options.micro_batches = bytes.next() % 17u + (kind == oddity::wrong ? 0 : 1);
  options.effort = omnibal::effort::fast;
  options.states = bytes.next() % 20u + 1;
  options.constraints.empty = omnibal::empty_stages{bytes.next() % 2};
  if (bytes.next() % 4 == 0) options.in_flight = std::int64_t{bytes.next() % 5 + 1};
  auto const layers = read_layers<Time>(bytes, kind, 24);
  bool const is_short = layers.size() < machine.stages &&
                        options.constraints.empty == omnibal::empty_stages::forbidden;
  returns("plan_pipeline", is_short ? oddity::wrong : kind, [&] {
    auto const plan = omnibal::plan_pipeline(layers, machine, options);
    if (plan.status != solve_status::solved) {
      require(plan.boundaries.empty() && plan.choices.empty(), "plan_pipeline has no plan then");
      require(plan.missing_bytes >= 0, "plan_pipeline says what is missing");
      return;
    }
    require(plan.boundaries.size() == machine.stages + 1 && plan.boundaries.front() == 0 &&
                plan.boundaries.back() == layers.size(),
            "plan_pipeline has all layers");
    require(plan.choices.size() == layers.size(), "plan_pipeline chooses for each layer");
    require(plan.lower_bound <= plan.step_time, "plan_pipeline has a bound that is one");
    for (std::size_t s = 0; s != machine.stages; ++s) {
      std::size_t const first = plan.boundaries[s];
      std::size_t const last = plan.boundaries[s + 1];
      require(first <= last, "plan_pipeline has its stages in order");
      if (first == last) continue;
      int128 taken =
          bytes_of(layers, plan.choices, first, last, plan.stages[s].in_flight) + reserve;
      for (std::size_t l = first; l != last; ++l) taken += layers[l].state_bytes;
      require(taken == plan.stages[s].bytes && taken <= memory[memory.size() == 1 ? 0 : s],
              "plan_pipeline exceeds no memory");
    }
    require(omnibal::plan_pipeline(layers, machine, options) == plan,
            "plan_pipeline gives the same plan again");
  });
}

/// The placement of some chunks, with units in flight unless the planner knows them.
omnibal::stage_chunks read_chunks(byte_reader& bytes, oddity kind, std::size_t stages) {
  omnibal::stage_chunks result{.count = bytes.next() % 3u + (kind == oddity::wrong ? 0 : 1)};
  std::uint8_t const form = bytes.next();
  if (form % 3 == 0) result.placement = omnibal::chunk_placement::v_shape;
  if (result.count < 2 || (form % 3 == 1 && kind != oddity::wrong)) return result;
  result.in_flight.assign(stages, {.chunks = result.count});
  for (auto& units : result.in_flight) {
    units.counts.resize(result.count * (bytes.next() % 3u + 1));
    for (auto& count : units.counts) count = bytes.next() % 5;
  }
  return result;
}

/// The most bytes of a stage with this plan, without the reserve. The numbers of units are those of
/// `chunks`.
template <class Time>
int128 bytes_of_device(std::vector<layer<Time>> const& layers,
                       omnibal::pipeline_plan<Time> const& plan, std::size_t device,
                       omnibal::chunk_counts const& units) {
  auto const layout = plan.layout_of(1);
  std::vector<int128> kept(plan.chunks, 0);
  int128 fixed = 0;
  int128 transient = 0;
  for (std::size_t v = 0; v + 1 != plan.boundaries.size(); ++v) {
    if (layout.stage_of(v, 0) != device) continue;
    for (std::size_t l = plan.boundaries[v]; l != plan.boundaries[v + 1]; ++l) {
      auto const& way = layers[l].choices.at(plan.choices[l]);
      kept[v / layout.stages] += way.bytes;
      transient = std::max<int128>(transient, way.transient_bytes);
      fixed += layers[l].state_bytes;
    }
  }
  int128 most = 0;
  for (std::size_t i = 0; i != units.size(); ++i) {
    int128 sum = 0;
    for (std::size_t c = 0; c != kept.size(); ++c) sum += units[i][c] * kept[c];
    most = std::max(most, sum);
  }
  return fixed + transient + most;
}

template <class Time>
void check_chunk_plan(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  omnibal::pipeline_machine machine;
  machine.stages = bytes.next() % 4u + 1;
  std::int64_t const memory = (std::int64_t{1} << bytes.next() % 24) * 3;
  std::int64_t const reserve = bytes.next();
  machine.memory_bytes = memory;
  machine.reserve_bytes = reserve;
  omnibal::plan_pipeline_options options;
  options.micro_batches = bytes.next() % 17u + 1;
  options.effort = omnibal::effort::fast;
  options.constraints.empty = omnibal::empty_stages{bytes.next() % 2};
  auto chunks = read_chunks(bytes, kind, machine.stages);
  auto const layers = read_layers<Time>(bytes, kind, 12);
  bool const is_short = layers.size() < machine.stages * chunks.count &&
                        options.constraints.empty == omnibal::empty_stages::forbidden;
  returns("plan_pipeline with chunks", is_short ? oddity::wrong : kind, [&] {
    auto const plan = omnibal::plan_pipeline(layers, machine, chunks, options);
    require(omnibal::plan_pipeline(layers, machine, chunks, options) == plan,
            "plan_pipeline gives the same plan with chunks again");
    if (plan.status != solve_status::solved) {
      require(plan.boundaries.empty() && plan.missing_bytes >= 0,
              "plan_pipeline says what is missing with chunks");
      return;
    }
    std::size_t const stages = machine.stages * chunks.count;
    require(plan.boundaries.size() == stages + 1 && plan.boundaries.front() == 0 &&
                plan.boundaries.back() == layers.size() &&
                std::is_sorted(plan.boundaries.begin(), plan.boundaries.end()),
            "plan_pipeline has all layers in chunks");
    require(plan.lower_bound <= plan.step_time, "plan_pipeline has a bound with chunks");
    if (chunks.count == 1) return;
    if (chunks.in_flight.empty()) {
      chunks.in_flight = omnibal::chunks_in_flight(
          omnibal::interleaved_1f1b{machine.stages, options.micro_batches, chunks.count});
    }
    for (std::size_t d = 0; d != machine.stages; ++d) {
      int128 const taken = bytes_of_device(layers, plan, d, chunks.in_flight[d]) + reserve;
      bool const is_empty = taken == reserve;
      require(taken == plan.stages[d].bytes && (is_empty || taken <= memory),
              "plan_pipeline exceeds no memory with chunks");
    }
  });
}

template <class Time, class Schedule>
void check_simulation(byte_reader& bytes, oddity kind, Schedule const& schedule) {
  std::size_t const places = schedule.stages * schedule.chunk_count();
  std::vector<omnibal::stage_time<Time>> times(places);
  std::vector<std::int64_t> kept(places);
  for (std::size_t v = 0; v != places; ++v) {
    times[v] = {read_number<Time>(bytes, kind), read_number<Time>(bytes, kind),
                read_number<Time>(bytes, kind)};
    kept[v] = read_number<std::int64_t>(bytes, kind);
  }
  Time const transfer = read_number<Time>(bytes, kind);
  returns("simulate_pipeline", kind, [&] {
    auto const step = omnibal::simulate_pipeline(schedule, times, transfer, kept,
                                                 {.timeline = omnibal::timeline_policy::recorded});
    auto const in_flight = omnibal::peak_in_flight(schedule);
    require(step.busy.size() == schedule.stages, "simulate_pipeline has all stages");
    std::size_t const kinds = Schedule::splits_backward ? 3 : 2;
    require(step.timeline.size() == kinds * places * schedule.micro_batches,
            "simulate_pipeline runs all operations");
    for (std::size_t s = 0; s != schedule.stages; ++s) {
      if constexpr (std::integral<Time>) {
        require(step.busy[s] <= step.makespan,
                "simulate_pipeline has no stage that works for longer");
      }
      std::int64_t const most = *std::max_element(kept.begin(), kept.end());
      require(int128{step.peak_bytes[s]} <= int128{most} * in_flight[s],
              "simulate_pipeline keeps no more than what is in flight");
    }
    std::vector<Time> free(schedule.stages, Time{});
    for (auto const& operation : step.timeline) {
      require(free[operation.stage] <= operation.begin && operation.begin <= operation.end &&
                  operation.end <= step.makespan,
              "simulate_pipeline runs one operation of a stage at a time");
      free[operation.stage] = operation.end;
    }
  });
}

template <class Time>
void check_simulations(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const stages = bytes.next() % 6u + 1;
  std::size_t const micro_batches = bytes.next() % 12u + 1;
  switch (bytes.next() % 4) {
    case 0: check_simulation<Time>(bytes, kind, omnibal::gpipe{stages, micro_batches}); break;
    case 1: check_simulation<Time>(bytes, kind, omnibal::one_f_one_b{stages, micro_batches}); break;
    case 2: check_simulation<Time>(bytes, kind, omnibal::zb_h1{stages, micro_batches}); break;
    default:
      check_simulation<Time>(
          bytes, kind,
          omnibal::interleaved_1f1b{stages, micro_batches * stages, bytes.next() % 3u + 1});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes({data, size});
  switch (bytes.next() % 8) {
    case 0: check_recompute<std::int64_t>(bytes); break;
    case 1: check_recompute<double>(bytes); break;
    case 2: check_plan<std::int64_t>(bytes); break;
    case 3: check_plan<double>(bytes); break;
    case 4: check_simulations<std::int64_t>(bytes); break;
    case 5: check_simulations<double>(bytes); break;
    case 6: check_chunk_plan<std::int64_t>(bytes); break;
    default: check_chunk_plan<double>(bytes); break;
  }
  return 0;
}
