// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables of docs/evidence/schedules.md: schedules of a pipeline at given times, and the order
/// of micro-batches. Steps are simulated; only `planning` and `chunk-planning` measure.

#include "pictures/pipeline_picture.hpp"
#include "readers/progress.hpp"
#include "readers/read_lengths.hpp"
#include "readers/synthetic.hpp"
#include "reports/study_sections.hpp"
#include "reports/table.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/order_micro_batches.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/stage_chunks.hpp>
#include <omnibal/plan/write_plan.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <numbers>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace examples;
using omnibal::chunk_layout;
using omnibal::chunk_placement;
using omnibal::stage_time;

constexpr std::uint64_t seed = 1024;
/// Times are thousandths of a forward pass of a stage with two chunks.
constexpr double whole_pass = 1000;
constexpr stage_time<> chunk_time{1000, 1200, 800};
constexpr stage_time<> equal_time{1000, 1000, 1000};
constexpr std::int64_t transfer = 50;

struct pipeline_size {
  std::size_t stages;
  std::size_t micro_batches;
};
constexpr std::array<pipeline_size, 5> sizes{{{4, 8}, {8, 16}, {8, 32}, {16, 32}, {32, 128}}};

std::string text_of(pipeline_size const& size) {
  return std::to_string(size.stages) + "/" + std::to_string(size.micro_batches);
}

stage_time<> twice(stage_time<> const& time) {
  return {2 * time.forward, 2 * time.backward, 2 * time.weight};
}

/// So many units on each stage for each stage of the pipeline. With two chunks, 2 is the memory of
/// 1F1B.
std::vector<std::int64_t> memory_of(pipeline_size const& size, std::size_t units_per_stage) {
  return std::vector(size.stages, static_cast<std::int64_t>(units_per_stage * size.stages));
}

/// The work of a stage on all micro-batches.
double work_of(pipeline_size const& size, stage_time<> const& of_chunk) {
  return 2 * static_cast<double>(size.micro_batches) *
         static_cast<double>(of_chunk.forward + of_chunk.backward + of_chunk.weight);
}

template <class Schedule>
std::int64_t makespan_of(Schedule const& schedule, stage_time<> const& time, std::int64_t over) {
  return omnibal::simulate_pipeline(schedule, time, over).makespan;
}

/// The longest time from the first operation of a stage to its last one.
template <class Schedule>
std::int64_t longest_stage_of(Schedule const& schedule, stage_time<> const& time,
                              std::int64_t over) {
  auto const timeline = omnibal::simulate_pipeline(schedule, time, over, std::int64_t{0},
                                                   {.timeline = omnibal::timeline_policy::recorded})
                            .timeline;
  std::size_t const count = timeline.size() / schedule.stages;
  std::int64_t longest = 0;
  for (std::size_t s = 0; s != schedule.stages; ++s) {
    longest = std::max(longest, timeline[(s + 1) * count - 1].end - timeline[s * count].begin);
  }
  return longest;
}

template <class Schedule>
std::size_t peak_of(Schedule const& schedule) {
  return static_cast<std::size_t>(std::ranges::max(omnibal::peak_in_flight(schedule)));
}

auto listed_v(pipeline_size const& size, omnibal::list_objective objective) {
  chunk_layout const layout{size.stages, size.micro_batches, 2, chunk_placement::v_shape};
  return omnibal::list_schedule(layout, chunk_time, transfer, std::int64_t{1}, memory_of(size, 2),
                                {.objective = objective});
}

/// Figures of the code of the authors of ZB-V (sail-sg) at the times of `chunk_time`.
struct published_v {
  /// The longest stage over the work of a stage, less one.
  double bubble;
  /// The makespan of its lists by `simulate_pipeline`; 0 if it was not measured.
  double makespan;
};
constexpr std::array<published_v, sizes.size()> published{
    {{.052, 52.35}, {.072, 106.15}, {.036, 202.15}, {.083, 214.40}, {.044, 0}}};

std::string published_makespan(std::size_t size) {
  return published[size].makespan == 0 ? "-" : fixed(published[size].makespan, 2);
}

std::string text_of(std::int64_t time) { return fixed(static_cast<double>(time) / whole_pass, 2); }

double ratio(std::int64_t time, std::int64_t bound) {
  return static_cast<double>(time) / static_cast<double>(bound);
}

void print_makespans(std::ostream& out) {
  table rows({"size", "1F1B", "2 chunks", "ZB-H1", "`zb_v`", "ZB-V", "list", "bound", "above"});
  for (std::size_t i = 0; i != sizes.size(); ++i) {
    auto const& [stages, batches] = sizes[i];
    auto const list = listed_v(sizes[i], omnibal::list_objective::makespan);
    auto const run = [](auto const& schedule, stage_time<> const& time) {
      return text_of(makespan_of(schedule, time, transfer));
    };
    rows.add({text_of(sizes[i]), run(omnibal::one_f_one_b{stages, batches}, twice(chunk_time)),
              run(omnibal::interleaved_1f1b{stages, batches, 2}, chunk_time),
              run(omnibal::zb_h1{stages, batches}, twice(chunk_time)),
              run(omnibal::zb_v(stages, batches), chunk_time), published_makespan(i),
              text_of(list.makespan), text_of(list.lower_bound),
              percent(ratio(list.makespan, list.lower_bound) - 1, 1)});
  }
  rows.print_markdown(out);
}

void print_longest_stages(std::ostream& out) {
  table rows({"size", "`zb_v`", "list", "ZB-V", "bound", "shorter", "makespans", "ZB-V"});
  for (std::size_t i = 0; i != sizes.size(); ++i) {
    auto const& [stages, batches] = sizes[i];
    double const work = work_of(sizes[i], chunk_time);
    auto const over = [&](std::int64_t time) { return static_cast<double>(time) / work - 1; };
    auto const pattern = longest_stage_of(omnibal::zb_v(stages, batches), chunk_time, transfer);
    auto const list = listed_v(sizes[i], omnibal::list_objective::longest_stage);
    double const lead = published[i].bubble - over(list.longest_stage);
    // The figures of the authors have one digit behind the point.
    bool const is_equal = std::abs(lead) < .0005;
    rows.add({text_of(sizes[i]), percent(over(pattern), 1), percent(over(list.longest_stage), 1),
              percent(published[i].bubble, 1), percent(over(list.lower_bound), 1),
              is_equal   ? "equal"
              : lead > 0 ? "list"
                         : "ZB-V",
              text_of(list.makespan), published_makespan(i)});
  }
  rows.print_markdown(out);
}

/// Times of all passes with a log-normal spread, by virtual stage and micro-batch.
class spread_times {
 public:
  spread_times(pipeline_size const& size, std::size_t chunks, double sigma, std::uint64_t stream)
      : batches_(size.micro_batches) {
    omnibal::rng::engine random(seed, stream);
    stage_time<> const middle = chunks == 1 ? twice(chunk_time) : chunk_time;
    auto const drawn = [&](std::int64_t time) {
      return std::llround(static_cast<double>(time) * std::exp(sigma * normal(random)));
    };
    for (std::size_t i = 0; i != size.stages * chunks * batches_; ++i) {
      auto const forward = drawn(middle.forward);
      auto const backward = drawn(middle.backward);
      times_.push_back({forward, backward, drawn(middle.weight)});
    }
  }

  [[nodiscard]] stage_time<> operator()(std::size_t stage, std::size_t batch) const {
    return times_[stage * batches_ + batch];
  }

 private:
  /// A number of the standard normal distribution, by Box and Muller.
  static double normal(omnibal::rng::engine& random) {
    auto const uniform = [&] { return (static_cast<double>(random() >> 11) + .5) * 0x1p-53; };
    double const radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  std::size_t batches_;
  std::vector<stage_time<>> times_;
};

struct placed_chunks {
  std::string_view name;
  std::size_t chunks;
  chunk_placement placement;
  /// Memory in units for each stage of the pipeline.
  std::size_t units;
};
constexpr placed_chunks placements[]{{"1 chunk, 1x", 1, chunk_placement::looped, 1},
                                     {"1 chunk, 2x", 1, chunk_placement::looped, 2},
                                     {"2 in a V, 1x", 2, chunk_placement::v_shape, 2},
                                     {"2 looped, 2x", 2, chunk_placement::looped, 4}};
constexpr std::array<double, 5> spreads{0, .05, .1, .2, .5};
constexpr std::array<pipeline_size, 4> spread_sizes{{{4, 16}, {8, 16}, {8, 32}, {16, 64}}};
/// Draws that each figure is a mean of.
constexpr std::uint64_t draws = 5;

/// Prints a row of means over draws of `share(times)`.
template <class Share>
void add_spreads(table& rows, std::string const& name, pipeline_size const& size,
                 std::size_t chunks, Share const& share) {
  std::vector<std::string> row{text_of(size), name};
  for (double const sigma : spreads) {
    double sum = 0;
    for (std::uint64_t draw = 0; draw != draws; ++draw) {
      sum += share(spread_times(size, chunks, sigma, draw));
    }
    row.push_back(percent(sum / static_cast<double>(draws), 1));
  }
  rows.add(std::move(row));
}

auto listed(pipeline_size const& size, placed_chunks const& placed, spread_times const& times,
            omnibal::list_order order) {
  chunk_layout const layout{size.stages, size.micro_batches, placed.chunks, placed.placement};
  return omnibal::list_schedule(layout, times, transfer, std::int64_t{1},
                                memory_of(size, placed.units), {.micro_batches = order});
}

/// Prints lists for both orders of the micro-batches, and for all spreads.
void print_spread(std::ostream& out) {
  using omnibal::list_order;
  table rows({"size", "schedule", "0", "0.05", "0.1", "0.2", "0.5"});
  for (pipeline_size const& size : spread_sizes) {
    add_spreads(rows, "1F1B, 1x", size, 1, [&](spread_times const& times) {
      omnibal::one_f_one_b const schedule{size.stages, size.micro_batches};
      auto const time = omnibal::simulate_pipeline(schedule, times, transfer).makespan;
      auto const bound = listed(size, placements[0], times, list_order::given).lower_bound;
      return ratio(time, bound) - 1;
    });
    for (placed_chunks const& placed : placements) {
      for (list_order const order : {list_order::given, list_order::searched}) {
        std::string const name =
            std::string(placed.name) + (order == list_order::given ? ", given order" : "");
        add_spreads(rows, name, size, placed.chunks, [&](spread_times const& times) {
          auto const list = listed(size, placed, times, order);
          return ratio(list.makespan, list.lower_bound) - 1;
        });
      }
    }
  }
  rows.print_markdown(out);
}

/// A search of all lists with one unit for each pass, operation by operation in the order of their
/// begins. A stage that cannot end earlier than the best list ends a branch.
class exact_search {
 public:
  exact_search(chunk_layout const& layout, spread_times const& times, std::int64_t memory)
      : layout_(layout),
        virtual_stages_(layout.stages * layout.chunks),
        times_(times),
        units_(virtual_stages_ * layout.micro_batches),
        stages_(layout.stages, {.memory = memory}) {
    for (std::size_t i = 0; i != units_.size(); ++i) {
      auto const time = times(i / layout.micro_batches, i % layout.micro_batches);
      units_[i].arrival = i < layout.micro_batches ? 0 : missing;
      stages_[stage_of(i)].work += time.forward + time.backward + time.weight;
    }
  }

  /// Returns the shortest makespan. `known` is the makespan of some list.
  [[nodiscard]] std::int64_t shortest(std::int64_t known) {
    best_ = known;
    left_ = 3 * units_.size();
    extend(0);
    return best_;
  }

 private:
  static constexpr std::int64_t missing = -1;

  struct unit_state {
    int done = 0;
    /// When the input of the next operation arrives.
    std::int64_t arrival = missing;
  };
  struct stage_state {
    std::int64_t memory = 0;
    std::int64_t now = 0;
    /// The time of the operations that are left.
    std::int64_t work = 0;
  };

  [[nodiscard]] std::size_t stage_of(std::size_t unit) const {
    return layout_.stage_of(unit / layout_.micro_batches,
                            static_cast<std::uint32_t>(unit % layout_.micro_batches));
  }

  void extend(std::int64_t last_begin) {
    std::int64_t end = 0;
    for (stage_state const& stage : stages_) end = std::max(end, stage.now + stage.work);
    if (end >= best_) return;
    if (left_ == 0) best_ = end;
    for (std::size_t i = 0; i != units_.size(); ++i) {
      if (units_[i].arrival != missing) run(i, last_begin);
    }
  }

  /// Runs the next operation of a unit, and everything after it in all orders.
  void run(std::size_t unit, std::int64_t last_begin) {
    unit_state& one = units_[unit];
    stage_state& stage = stages_[stage_of(unit)];
    std::int64_t const begin = std::max(stage.now, one.arrival);
    if (begin < last_begin || (one.done == 0 && stage.memory == 0)) return;
    unit_state const one_before = one;
    stage_state const stage_before = stage;
    std::size_t const batches = layout_.micro_batches;
    stage_time<> const time = times_(unit / batches, unit % batches);
    std::int64_t const taken = one.done == 0   ? time.forward
                               : one.done == 1 ? time.backward
                                               : time.weight;
    stage.now = begin + taken;
    stage.work -= taken;
    // The gradients of the weights need no input of another unit.
    one.arrival = one.done == 1 ? stage.now : missing;
    std::size_t receiver = units_.size();
    if (one.done == 0) {
      --stage.memory;
      receiver = unit / batches + 1 == virtual_stages_ ? unit : unit + batches;
    } else if (one.done == 2) {
      ++stage.memory;
    } else if (unit >= batches) {
      receiver = unit - batches;
    }
    ++one.done;
    --left_;
    if (receiver != units_.size()) {
      bool const is_sent = stage_of(receiver) != stage_of(unit);
      units_[receiver].arrival = stage.now + (is_sent ? transfer : 0);
    }
    extend(begin);
    if (receiver != units_.size()) units_[receiver].arrival = missing;
    ++left_;
    one = one_before;
    stage = stage_before;
  }

  chunk_layout layout_;
  std::size_t virtual_stages_;
  spread_times const& times_;
  std::vector<unit_state> units_;
  std::vector<stage_state> stages_;
  std::size_t left_ = 0;
  std::int64_t best_ = 0;
};

/// Prints the shortest lists of small pipelines over the bound, and lists over the shortest ones.
void print_exact(std::ostream& out) {
  using omnibal::list_order;
  struct small_pipeline {
    pipeline_size size;
    placed_chunks placed;
  };
  constexpr small_pipeline small[]{
      {{2, 4}, placements[0]}, {{3, 4}, placements[0]}, {{2, 3}, placements[2]}};
  table rows({"size", "schedule", "spread", "shortest", "list", "given order"});
  for (auto const& [size, placed] : small) {
    for (double const sigma : {.1, .2, .5}) {
      double shortest = 0;
      double list = 0;
      double given = 0;
      for (std::uint64_t draw = 0; draw != draws; ++draw) {
        spread_times const times(size, placed.chunks, sigma, draw);
        auto const found = listed(size, placed, times, list_order::searched);
        auto const in_order = listed(size, placed, times, list_order::given);
        chunk_layout const layout{size.stages, size.micro_batches, placed.chunks, placed.placement};
        auto const memory = static_cast<std::int64_t>(placed.units * size.stages);
        std::int64_t const best = exact_search(layout, times, memory).shortest(found.makespan);
        shortest += ratio(best, found.lower_bound) - 1;
        list += ratio(found.makespan, best) - 1;
        given += ratio(in_order.makespan, best) - 1;
      }
      auto const mean = [](double sum) { return percent(sum / static_cast<double>(draws), 1); };
      rows.add({text_of(size), std::string(placed.name), fixed(sigma, 1), mean(shortest),
                mean(list), mean(given)});
    }
  }
  rows.print_markdown(out);
}

/// Makespans at equal times over the work of a stage, less one, and the most units of a stage.
void print_less_memory(std::ostream& out) {
  table rows({"size", "1F1B", "units", "`zb_v`", "units", "`v_half`", "units", "`v_min`", "units"});
  for (pipeline_size const& size : sizes) {
    auto const& [stages, batches] = size;
    double const work = work_of(size, equal_time);
    std::vector<std::string> row{text_of(size)};
    auto const add = [&](auto const& schedule, stage_time<> const& time, std::size_t unit) {
      row.push_back(
          percent(static_cast<double>(makespan_of(schedule, time, std::int64_t{0})) / work - 1, 1));
      row.push_back(std::to_string(unit * peak_of(schedule)));
    };
    // A micro-batch in one chunk has two units.
    add(omnibal::one_f_one_b{stages, batches}, twice(equal_time), 2);
    add(omnibal::zb_v(stages, batches), equal_time, 1);
    add(omnibal::v_half(stages, batches), equal_time, 1);
    add(omnibal::v_min(stages, batches), equal_time, 1);
    rows.add(std::move(row));
  }
  rows.print_markdown(out);
}

/// Measured: the least processor time of some runs.
void print_planning(std::ostream& out) {
  table rows({"size", "operations", "spread 0", "spread 0.1", "spread 0.5"});
  for (pipeline_size const& size : sizes) {
    std::size_t const operations = size.stages * size.micro_batches * 2 * 3;
    std::vector<std::string> row{text_of(size), counted(operations)};
    for (double const sigma : {0.0, .1, .5}) {
      spread_times const times(size, 2, sigma, 0);
      chunk_layout const layout{size.stages, size.micro_batches, 2, chunk_placement::v_shape};
      auto const memory = memory_of(size, 2);
      double least = std::numeric_limits<double>::max();
      for (int run = 0; run != 5; ++run) {
        std::clock_t const begin = std::clock();
        auto const list = omnibal::list_schedule(layout, times, transfer, std::int64_t{1}, memory);
        double const seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
        if (list.makespan != 0) least = std::min(least, seconds);
      }
      row.push_back(fixed(1e6 * least / static_cast<double>(operations), 1) + " µs");
    }
    rows.add(std::move(row));
  }
  rows.print_markdown(out);
}

/// The forward time of a micro-batch on each stage: linear in the tokens, and quadratic in each
/// sample as the attention of a model with the hidden size 4096.
std::int64_t forward_of(std::vector<sample> const& samples,
                        std::span<std::uint32_t const> micro_batch) {
  std::int64_t sum = 0;
  for (std::uint32_t const i : micro_batch) {
    std::int64_t const tokens = samples[i].tokens;
    sum += tokens + tokens * tokens / (12 * 4096);
  }
  return sum;
}

/// The forward times of the micro-batches of an epoch.
struct micro_batches {
  std::string name;
  std::vector<std::int64_t> times;
};

std::vector<micro_batches> pack_in_three_ways(std::vector<sample> const& samples) {
  constexpr auto demand = omnibal::demand_of(&sample::images, &sample::tokens);
  std::vector<micro_batches> result;
  auto const add = [&](std::string name, omnibal::grouping const& groups) {
    micro_batches batches{.name = std::move(name), .times = {}};
    for (auto const group : groups) batches.times.push_back(forward_of(samples, group));
    result.push_back(std::move(batches));
  };
  omnibal::rng::permutation const shuffled(samples.size(), seed);
  omnibal::grouping fours;
  for (std::size_t i = 0; i != samples.size() - samples.size() % 4; ++i) {
    fours.push(static_cast<std::uint32_t>(shuffled(i)));
    if (i % 4 == 3) fours.close();
  }
  add("random fours", fours);
  auto const add_packed = [&](omnibal::resources<2> const& capacity) {
    add("packed " + std::to_string(capacity[0]) + "/" + std::to_string(capacity[1]),
        omnibal::best_packing(samples, demand, capacity).groups);
  };
  add_packed({9, 4096});
  add_packed(omnibal::tune_capacity(samples, demand, 4.0, omnibal::best_fit_decreasing,
                                    {.granularity = {1, 16}})
                 .best.capacity);
  return result;
}

/// Steps that each figure is a mean of.
constexpr std::size_t steps = 24;

/// Makespans of orders over the bound on every order.
struct order_figures {
  double random = 0;
  double packed = 0;
  double falling = 0;
  double middle = 0;
  double searched = 0;
};

order_figures compare_orders(pipeline_size const& size, std::vector<std::int64_t> const& all) {
  omnibal::one_f_one_b const schedule{size.stages, size.micro_batches};
  omnibal::rng::permutation const shuffled(all.size(), seed);
  order_figures sums;
  for (std::size_t step = 0; step != steps; ++step) {
    std::vector<std::size_t> drawn;
    for (std::size_t k = 0; k != size.micro_batches; ++k) {
      drawn.push_back(static_cast<std::size_t>(shuffled(step * size.micro_batches + k)));
    }
    auto const times_in = [&](std::vector<std::size_t> const& order) {
      std::vector<std::int64_t> times;
      for (std::size_t const g : order) times.push_back(all[g]);
      return times;
    };
    auto const order_of = [&](std::vector<std::int64_t> const& forward, std::size_t simulations) {
      auto const time = [&](std::size_t, std::size_t m) {
        return stage_time<>{forward[m], 2 * forward[m]};
      };
      return omnibal::order_micro_batches(schedule, time, std::int64_t{0},
                                          {.simulations = simulations});
    };
    auto const given = times_in(drawn);
    auto const found = order_of(given, 1000);
    double const bound = static_cast<double>(found.lower_bound) * static_cast<double>(steps);
    sums.random += static_cast<double>(found.given_makespan) / bound;
    sums.searched += static_cast<double>(found.makespan) / bound;
    std::ranges::sort(drawn);
    sums.packed += static_cast<double>(order_of(times_in(drawn), 0).given_makespan) / bound;
    std::vector<std::int64_t> ordered = given;
    std::ranges::sort(ordered, std::greater{});
    sums.falling += static_cast<double>(order_of(ordered, 0).given_makespan) / bound;
    auto const middle = omnibal::largest_in_middle(given);
    for (std::size_t k = 0; k != middle.size(); ++k) ordered[k] = given[middle[k]];
    sums.middle += static_cast<double>(order_of(ordered, 0).given_makespan) / bound;
  }
  return sums;
}

/// The standard deviation over the mean.
double variation(std::vector<std::int64_t> const& times) {
  double sum = 0;
  double squares = 0;
  for (std::int64_t const time : times) {
    sum += static_cast<double>(time);
    squares += static_cast<double>(time) * static_cast<double>(time);
  }
  auto const count = static_cast<double>(times.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count))) / (sum / count);
}

void print_orders(std::ostream& out, dataset const& data) {
  table rows({"micro-batches", "spread", "size", "random", "packed", "falling", "middle",
              "searched", "gain"});
  for (micro_batches const& one : pack_in_three_ways(data.samples)) {
    for (pipeline_size const& size : {pipeline_size{4, 16}, pipeline_size{8, 32}}) {
      order_figures const mean = compare_orders(size, one.times);
      rows.add({one.name, fixed(variation(one.times), 2), text_of(size), fixed(mean.random, 3),
                fixed(mean.packed, 3), fixed(mean.falling, 3), fixed(mean.middle, 3),
                fixed(mean.searched, 3), percent(1 - mean.searched / mean.random, 1)});
    }
  }
  rows.print_markdown(out);
}

void print_synthetic_orders(std::ostream& out) {
  print_orders(out, synthetic_lengths(60'000, seed));
}

/// Llama 3 70B of 82 layers with embedding and head, a rank of 4 tensor ranks, 8,192 tokens, on
/// devices of 600 TFLOP/s.
constexpr std::size_t chunk_stages = 8;
constexpr omnibal::device_model chunk_device{.flops_per_second = 600'000'000'000'000,
                                             .bytes_per_second = 3'350'000'000'000};

std::vector<omnibal::layer_cost> chunked_model() {
  return omnibal::layer_costs(omnibal::llama3_70b,
                              {.documents = omnibal::equal_sequences({.count = 1, .length = 8192})},
                              {.tensor = 4, .data = 2, .norms = omnibal::norm_regions::split});
}

/// The boundaries of stages with so many layers.
std::vector<std::uint32_t> boundaries_of(std::vector<std::uint32_t> const& counts) {
  std::vector<std::uint32_t> result{0};
  for (std::uint32_t const count : counts) result.push_back(result.back() + count);
  return result;
}

/// A layout with equal stages in a row as one, for a cell of a table.
std::string shortened(std::string const& layout) {
  std::string result;
  for (std::size_t first = 0; first <= layout.size();) {
    std::size_t const end = std::min(layout.find('|', first), layout.size());
    std::string const stage = layout.substr(first, end - first) + "|";
    std::string const shown = layout.substr(first, end - first) + "\\|";
    std::size_t next = end + 1;
    std::size_t count = 1;
    if (end == layout.size()) return result + layout.substr(first);
    for (; layout.compare(next, stage.size(), stage) == 0; next += stage.size()) ++count;
    result += count == 1 ? shown : "(" + shown + ")*" + std::to_string(count);
    first = next;
  }
  return result;
}

/// Cuts into 40 chunks of Llama 3 70B, simulated with nothing recomputed.
void print_chunk_cuts(std::ostream& out) {
  constexpr std::size_t chunks = 5;
  auto const costs = chunked_model();
  std::vector<std::uint32_t> equal(chunk_stages * chunks, 2);
  equal.front() = equal.back() = 3;
  std::vector<std::uint32_t> by_hand(chunk_stages * chunks, 2);
  by_hand.front() = by_hand[35] = 3;
  table rows({"cuts", "micro-batches", "estimate, ms", "simulated, ms", "layout"});
  for (std::size_t const batches : {std::size_t{16}, std::size_t{64}}) {
    auto const plan = omnibal::plan_pipeline(
        costs,
        {.stages = chunk_stages, .memory_bytes = {std::int64_t{1} << 50}, .device = chunk_device},
        {.count = chunks}, {.micro_batches = batches});
    auto const add = [&](std::string const& name, std::vector<std::uint32_t> const& cuts) {
      std::vector<stage_time<>> times(cuts.size() - 1);
      std::vector<std::int64_t> sums;
      for (std::size_t s = 0; s != times.size(); ++s) {
        for (std::uint32_t l = cuts[s]; l != cuts[s + 1]; ++l) {
          times[s].forward += chunk_device(costs[l].forward);
          times[s].backward += chunk_device(costs[l].backward);
        }
        sums.push_back(times[s].forward + times[s].backward);
      }
      omnibal::interleaved_1f1b const schedule{chunk_stages, batches, chunks};
      auto const estimated = omnibal::estimate_makespan(sums, plan.layout_of(batches));
      auto const simulated = omnibal::simulate_pipeline(schedule, times).makespan;
      auto const in_ms = [](std::int64_t time) {
        return fixed(static_cast<double>(time) / 1e6, 0);
      };
      std::string layout;
      omnibal::write_megatron_layout(
          cuts, omnibal::language_model_letters{static_cast<std::uint32_t>(costs.size())},
          std::back_inserter(layout));
      rows.add({name, std::to_string(batches), in_ms(estimated), in_ms(simulated),
                "`" + shortened(layout) + "`"});
    };
    add("equal counts", boundaries_of(equal));
    add("published", boundaries_of(by_hand));
    add("`plan_pipeline`", plan.boundaries);
  }
  rows.print_markdown(out);
}

/// A model of 97 layers, half of them of a vision tower, whose times and bytes vary by 2 %. The
/// share is the part of the bytes between the fewest and all that the memory has room for.
void print_chunk_planning(std::ostream& out) {
  constexpr std::size_t layers = 97;
  constexpr std::size_t chunks = 4;
  table rows({"share of the bytes", "time, ms", "above the bound"});
  for (std::int64_t const percent_of_bytes : {10, 25, 50, 90, 200}) {
    omnibal::rng::engine random(chunk_stages);
    auto const noisy = [&](std::int64_t value) {
      auto const width = static_cast<std::uint64_t>(value / 25) + 1;
      return value - value / 50 + static_cast<std::int64_t>(omnibal::rng::below(random, width));
    };
    std::vector<omnibal::plan_layer<>> given;
    auto const units = static_cast<std::int64_t>(2 * chunk_stages);
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (std::size_t l = 0; l != layers; ++l) {
      bool const is_vision = 2 * l < layers;
      std::int64_t const time = noisy(is_vision ? 3'980'000 : 3'247'000);
      std::int64_t const all = is_vision ? 1968 : 721;
      std::int64_t const some = is_vision ? 1181 : 487;
      std::int64_t const none = is_vision ? 98 : 50;
      given.push_back({{{3 * time, noisy(all), all / 4},
                        {3 * time + time / 10, noisy(some), all / 2},
                        {4 * time, noisy(none), all}},
                       noisy(is_vision ? 900 : 2900)});
      least += units * none + given.back().state_bytes;
      most += units * all + given.back().state_bytes;
    }
    std::int64_t const bytes = least + (most - least) / 100 * percent_of_bytes;
    omnibal::pipeline_machine const machine{
        .stages = chunk_stages,
        .memory_bytes = {3000 + bytes / static_cast<std::int64_t>(chunk_stages)}};
    double fastest = std::numeric_limits<double>::max();
    omnibal::pipeline_plan<std::int64_t> plan;
    for (int run = 0; run != 5; ++run) {
      std::clock_t const begin = std::clock();
      plan = omnibal::plan_pipeline(given, machine, {.count = chunks},
                                    {.micro_batches = 4 * chunk_stages});
      fastest = std::min(fastest, static_cast<double>(std::clock() - begin));
    }
    rows.add({std::to_string(percent_of_bytes) + " %",
              fixed(fastest * 1000 / static_cast<double>(CLOCKS_PER_SEC), 1),
              percent(ratio(plan.step_time, plan.lower_bound) - 1, 1)});
  }
  rows.print_markdown(out);
}

/// The schedules of the first row of `print_makespans`, one below the other.
void print_picture(std::ostream& out) {
  auto const [stages, batches] = sizes.front();
  std::vector<named_timeline> drawn;
  auto const add = [&](std::string name, auto const& schedule, stage_time<> const& time) {
    auto const step = omnibal::simulate_pipeline(schedule, time, transfer, std::int64_t{0},
                                                 {.timeline = omnibal::timeline_policy::recorded});
    drawn.push_back({std::move(name), scaled(step.timeline, 1 / whole_pass)});
  };
  add("1F1B", omnibal::one_f_one_b{stages, batches}, twice(chunk_time));
  add("interleaved 1F1B, 2 chunks", omnibal::interleaved_1f1b{stages, batches, 2}, chunk_time);
  add("ZB-H1", omnibal::zb_h1{stages, batches}, twice(chunk_time));
  add("ZB-V", omnibal::zb_v(stages, batches), chunk_time);
  add("list", listed_v(sizes.front(), omnibal::list_objective::makespan).schedule, chunk_time);
  write_schedule_pictures(drawn,
                          {std::to_string(stages) + " stages, " + std::to_string(batches) +
                               " micro-batches, the same model in five schedules",
                           "forward passes of a chunk"},
                          out);
}

constexpr study_section sections[]{{"makespans", print_makespans},
                                   {"longest-stages", print_longest_stages},
                                   {"spread", print_spread},
                                   {"exact", print_exact},
                                   {"less-memory", print_less_memory},
                                   {"planning", print_planning},
                                   {"orders", print_synthetic_orders},
                                   {"chunk-cuts", print_chunk_cuts},
                                   {"chunk-planning", print_chunk_planning},
                                   {"picture", print_picture}};

/// Prints the orders of micro-batches of length files, which follow the name of the section.
int print_file_orders(int count, char const* const* words) {
  try {
    dataset data;
    progress hidden(visibility::hidden);
    for (int i = 2; i != count; ++i) {
      read_lengths(words[i], input_format::detect, {}, hidden, data);
    }
    print_orders(std::cout, data);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "compare_schedules: error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count > 2 && std::string_view(words[1]) == "orders") return print_file_orders(count, words);
  return print_section("compare_schedules", sections, count, words,
                       {.name = "docs/evidence/schedules.md",
                        .notes = "The section orders also takes length files, as pack_dataset\n"
                                 "reads them, instead of the synthetic data set."});
}
