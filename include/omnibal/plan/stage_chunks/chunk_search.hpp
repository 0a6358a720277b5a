// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cuts and choices of devices with several chunks.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/stage_chunks/chunk_bounds.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The quality of cuts; smaller values are better, in this order.
struct chunk_quality {
  /// The most bytes that a device lacks, and the sum over the devices.
  int128 missing = 0;
  int128 missing_sum = 0;
  /// The step in the unit of `chunk_step`.
  int128 step = 0;
  /// The sums of the squares of the loads of devices and of the times of virtual stages.
  int128 squared_loads = 0;
  int128 squared_times = 0;

  [[nodiscard]] friend auto operator<=>(chunk_quality const&, chunk_quality const&) = default;
};

/// Local search over the boundaries from several starts, then a search over all cuts if they are
/// few.
///
/// A move takes a layer from one virtual stage and gives it to another one, and moves all
/// boundaries between them by one position at which the chain may be cut. Other moves do this for
/// all stages of two rounds together. `chunk_choices` solves the devices of a move.
/// `select_recompute` then improves the choices of the best cuts. `chunk_dual` and, if it ends, the
/// search over all cuts give the lower bound.
class chunk_search {
 public:
  chunk_search(std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
               chunk_layout const& layout, plan_pipeline_options const& options)
      : function_(function),
        layers_(layers),
        rooms_(rooms),
        options_(options),
        step_(function, layout),
        layout_(layout),
        places_(layout),
        rules_(rules_for(function, layers.size(), places_.device.size(), options.constraints)),
        choices_(layers, rooms),
        dual_(layers, rooms, places_, rules_, choices_) {
    for (std::uint32_t i = 0; i != rules_.may_cut.size(); ++i) {
      cut_at_.push_back(static_cast<std::ptrdiff_t>(cuts_.size()));
      if (rules_.may_cut[i] != 0) cuts_.push_back(i);
    }
  }

  /// Returns the units that each stage keeps in a schedule of looped chunks, from a schedule with
  /// fewer micro-batches that keeps the same units. All groups but the first ones have as many
  /// micro-batches as there are stages, and a stage keeps units of fewer than three groups.
  [[nodiscard]] static std::vector<chunk_counts> units_of(chunk_layout const& layout) {
    std::size_t const larger = layout.micro_batches % layout.stages;
    std::size_t const enough = larger + layout.stages * (larger + 4);
    return chunks_in_flight(
        interleaved_1f1b{layout.stages, std::min(layout.micro_batches, enough), layout.chunks});
  }

  void run() {
    search();
    if (has_plan() && layout_.placement == chunk_placement::looped) shorten_simulation();
  }

  [[nodiscard]] bool has_plan() const { return is_started_ && value_.missing == 0; }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_; }
  /// The step and its lower bound in the unit of `chunk_step`.
  [[nodiscard]] int128 value() const { return value_.step; }
  [[nodiscard]] int128 bound() const { return std::min(bound_, value_.step); }
  [[nodiscard]] chunk_step<int128> const& step() const { return step_; }
  [[nodiscard]] chunk_places const& places() const { return places_; }
  /// The choices of the best plan, for each device chunk by chunk.
  [[nodiscard]] std::vector<device_solution> const& solutions() const { return best_solutions_; }
  [[nodiscard]] int128 bytes_of(std::size_t device) const {
    return choices_.bytes_of(device, ranges_of(best_, device), best_solutions_[device].choices);
  }

  /// Without a plan: the fewest missing bytes that were found, and a lower bound of them.
  [[nodiscard]] int128 missing() const { return least_missing_; }
  [[nodiscard]] int128 min_missing() const { return bound_missing_; }
  /// The first device that lacks these bytes.
  [[nodiscard]] std::uint32_t missing_device() const {
    std::uint32_t device = 0;
    while (best_solutions_[device].missing != value_.missing) ++device;
    return device;
  }

 private:
  struct ranges_hash {
    [[nodiscard]] std::size_t operator()(std::vector<std::uint32_t> const& key) const {
      std::uint64_t hash = 14695981039346656037u;
      for (std::uint32_t const word : key) hash = (hash ^ word) * 1099511628211u;
      return static_cast<std::size_t>(hash);
    }
  };

  void search() {
    start();
    if (has_plan()) {
      find_bound();
      if (is_decided()) return;
      offer(dual_.boundaries());
      refine(best_, best_solutions_);
      if (is_decided()) return;
    }
    bool const is_whole = search_all();
    if (has_plan()) {
      if (is_whole) bound_ = std::max(bound_, tree_bound_);
      find_bound();
      return;
    }
    bound_missing_ = dual_.min_missing(rounds());
    if (is_whole && choices_.knows_all_limits()) bound_missing_ = least_missing_;
  }

  [[nodiscard]] std::size_t level() const { return static_cast<std::size_t>(options_.effort); }
  [[nodiscard]] std::size_t rounds() const {
    constexpr std::size_t levels[]{8, 24, 96};
    return options_.rounds.value_or(levels[level()]);
  }
  /// The number of moves of a local search, and of nodes of the search over all cuts.
  [[nodiscard]] std::size_t max_moves() const {
    constexpr std::size_t levels[]{std::size_t{1} << 9, std::size_t{1} << 11, std::size_t{1} << 16};
    return levels[level()];
  }
  /// The number of operations of schedules that are simulated.
  [[nodiscard]] std::size_t max_operations() const {
    constexpr std::size_t levels[]{0, std::size_t{1} << 19, std::size_t{1} << 24};
    return levels[level()];
  }
  [[nodiscard]] std::size_t max_nodes() const {
    constexpr std::size_t levels[]{std::size_t{1} << 10, std::size_t{1} << 14,
                                   std::size_t{1} << 20};
    return levels[level()];
  }

  [[nodiscard]] std::size_t devices() const { return rooms_.memory.size(); }
  [[nodiscard]] std::size_t stages() const { return places_.device.size(); }

  [[nodiscard]] bool is_decided() const {
    auto const gap = static_cast<double>(value() - bound());
    return gap <= options_.max_gap * static_cast<double>(value());
  }

  [[nodiscard]] chunk_ranges ranges_of(std::span<std::uint32_t const> boundaries,
                                       std::size_t device) const {
    chunk_ranges result;
    set_ranges(boundaries, device, result);
    return result;
  }

  void set_ranges(std::span<std::uint32_t const> boundaries, std::size_t device,
                  chunk_ranges& result) const {
    result.clear();
    for (std::size_t c = 0; c != places_.chunks; ++c) {
      std::size_t const stage = places_.stage[device * places_.chunks + c];
      result.push_back(boundaries[stage]);
      result.push_back(boundaries[stage + 1]);
    }
  }

  /// Returns the choices of a device; valid until the next call.
  [[nodiscard]] device_solution const& solve(std::span<std::uint32_t const> boundaries,
                                             std::size_t device) {
    set_ranges(boundaries, device, key_);
    key_.push_back(static_cast<std::uint32_t>(device));
    auto const known = solved_.find(key_);
    if (known != solved_.end()) return known->second;
    device_solution& result = solved_[key_];
    choices_.solve(device, ranges_of(boundaries, device), result);
    return result;
  }

  [[nodiscard]] bool is_legal_stage(std::span<std::uint32_t const> boundaries,
                                    std::size_t s) const {
    if (boundaries[s] > boundaries[s + 1]) return false;
    std::uint32_t const count = boundaries[s + 1] - boundaries[s];
    if (count == 0) return rules_.may_be_empty;
    return rules_.shortest[s] <= count && count <= rules_.longest[s];
  }

  [[nodiscard]] bool is_legal(std::span<std::uint32_t const> boundaries) const {
    if (boundaries.size() != stages() + 1) return false;
    for (std::size_t s = 0; s != boundaries.size(); ++s) {
      if (boundaries[s] < rules_.first_cut[s] || boundaries[s] > rules_.last_cut[s]) return false;
      if (rules_.may_cut[boundaries[s]] == 0) return false;
    }
    for (std::size_t s = 0; s != stages(); ++s) {
      if (!is_legal_stage(boundaries, s)) return false;
    }
    return true;
  }

  /// Tries starts with even times and even numbers of layers. If rules forbid both, starts from
  /// the cuts with the smallest largest virtual stage.
  void start() {
    std::vector<std::uint32_t> by_time(stages() + 1, 0);
    std::vector<std::uint32_t> by_count(stages() + 1, 0);
    std::size_t const count = layers_.size();
    int128 const all = layers_.min_time(0, count);
    std::size_t last = 0;
    for (std::size_t s = 1; s <= stages(); ++s) {
      int128 const part = all * static_cast<int128>(s) / static_cast<int128>(stages());
      auto const away = [&](std::size_t end) {
        int128 const distance = layers_.min_time(0, end) - part;
        return distance < 0 ? -distance : distance;
      };
      while (last != count && away(last + 1) <= away(last)) ++last;
      std::size_t const least = rules_.may_be_empty ? 0 : s;
      std::size_t const most = count - (rules_.may_be_empty ? 0 : stages() - s);
      by_time[s] =
          static_cast<std::uint32_t>(s == stages() ? count : std::clamp(last, least, most));
      by_count[s] = static_cast<std::uint32_t>(s * count / stages());
    }
    offer(std::move(by_time));
    offer(std::move(by_count));
    if (is_started_) return;
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != count; ++l) least.push_back(layers_.min_time(l, l + 1));
    auto const cost = [&](std::size_t, std::size_t first, std::size_t end) {
      return layers_.min_time(first, end);
    };
    auto const cuts = stages_for(function_, count, stages(), {cost, fits_always{}}, 0, least,
                                 options_.constraints);
    offer(cuts.boundaries);
  }

  /// Improves these boundaries by local search and keeps them if they are the best so far.
  void offer(std::vector<std::uint32_t> boundaries) {
    if (!is_legal(boundaries)) return;
    now_ = std::move(boundaries);
    times_.assign(stages(), 0);
    missing_.assign(devices(), 0);
    for (std::size_t d = 0; d != devices(); ++d) set_device(now_, d, times_, missing_);
    now_quality_ = quality_of(times_, missing_);
    improve();
    keep();
  }

  void set_device(std::span<std::uint32_t const> boundaries, std::size_t device,
                  std::vector<std::int64_t>& times, std::vector<int128>& missing) {
    device_solution const& solution = solve(boundaries, device);
    missing[device] = solution.missing;
    for (std::size_t c = 0; c != places_.chunks; ++c) {
      std::size_t const stage = places_.stage[device * places_.chunks + c];
      times[stage] = solution.missing == 0
                         ? solution.times[c]
                         : layers_.min_time(boundaries[stage], boundaries[stage + 1]);
    }
  }

  [[nodiscard]] chunk_quality quality_of(std::span<std::int64_t const> times,
                                         std::span<int128 const> missing) {
    chunk_quality result;
    for (int128 const bytes : missing) {
      result.missing = std::max(result.missing, bytes);
      result.missing_sum += bytes;
    }
    loads_.assign(devices(), 0);
    chunk_times<int128> all;
    std::int64_t longest = 0;
    int128 round = 0;
    for (std::size_t s = 0; s != times.size(); ++s) {
      loads_[places_.device[s]] += times[s];
      round += times[s];
      longest = std::max(longest, times[s]);
      result.squared_times += static_cast<int128>(times[s]) * times[s];
      if ((s + 1) % devices() != 0) continue;
      all.sum += round;
      all.rounds += longest;
      all.largest_round = std::max(all.largest_round, round);
      longest = 0;
      round = 0;
    }
    for (std::int64_t const one : loads_) {
      all.load = std::max<int128>(all.load, one);
      result.squared_loads += static_cast<int128>(one) * one;
    }
    result.step = step_(all);
    return result;
  }

  void keep() {
    least_missing_ =
        is_started_ ? std::min(least_missing_, now_quality_.missing) : now_quality_.missing;
    if (!is_started_ || now_quality_ < value_) adopt_now();
  }

  void adopt_now() {
    std::vector<device_solution> solutions;
    for (std::size_t d = 0; d != devices(); ++d) solutions.push_back(solve(now_, d));
    adopt(now_, now_quality_, std::move(solutions));
  }

  void adopt(std::vector<std::uint32_t> const& boundaries, chunk_quality const& quality,
             std::vector<device_solution> solutions) {
    is_started_ = true;
    value_ = quality;
    best_ = boundaries;
    best_solutions_ = std::move(solutions);
  }

  /// Makes moves until none improves or the moves are used up.
  void improve() {
    std::size_t left = max_moves();
    bool is_improved = true;
    while (is_improved) {
      is_improved = false;
      for (std::size_t a = 0; a + 1 < stages(); ++a) {
        for (std::size_t b = a + 1; b != stages(); ++b) {
          set_single_move(a, b);
          if (!repeat_move(left, is_improved)) return;
        }
      }
      for (std::size_t a = 0; a + 1 < places_.chunks; ++a) {
        for (std::size_t b = a + 1; b != places_.chunks; ++b) {
          set_round_move(a, b);
          if (!repeat_move(left, is_improved)) return;
        }
      }
    }
  }

  /// Moves the boundaries behind the stages from `a` to before `b` by one cut.
  void set_single_move(std::size_t a, std::size_t b) {
    shifts_.assign(stages() + 1, 0);
    std::fill(shifts_.begin() + static_cast<std::ptrdiff_t>(a + 1),
              shifts_.begin() + static_cast<std::ptrdiff_t>(b + 1), 1);
  }

  /// Moves a layer from each virtual stage of a round to each one of a later round.
  void set_round_move(std::size_t a, std::size_t b) {
    shifts_.assign(stages() + 1, 0);
    std::ptrdiff_t shift = 0;
    for (std::size_t s = 0; s != stages(); ++s) {
      if (s / devices() == a) ++shift;
      if (s / devices() == b) --shift;
      shifts_[s + 1] = shift;
    }
  }

  /// Makes the move of `shifts_` as long as it improves, in either direction. Returns false if the
  /// moves are used up.
  [[nodiscard]] bool repeat_move(std::size_t& left, bool& is_improved) {
    for (bool const is_right : {false, true}) {
      while (left != 0 && try_move(is_right)) {
        is_improved = true;
        --left;
      }
      if (left == 0) return false;
      --left;
    }
    return true;
  }

  /// Moves the boundaries by the numbers of cuts in `shifts_`, or against them; returns false if
  /// the move is impossible or does not improve.
  [[nodiscard]] bool try_move(bool is_right) {
    if (!set_next(is_right) || !may_improve()) return false;
    solve_changed();
    chunk_quality const quality = quality_of(next_times_, next_missing_);
    if (!(quality < now_quality_)) return false;
    take_next(quality);
    return true;
  }

  /// Sets `next_` and `changed_` to a move; returns false if the move is impossible.
  [[nodiscard]] bool set_next(bool is_right) {
    next_ = now_;
    changed_.assign(devices(), 0);
    for (std::size_t s = 0; s != stages(); ++s) {
      if (shifts_[s] != 0 && !shift_boundary(s, is_right ? shifts_[s] : -shifts_[s])) return false;
      if (shifts_[s] != 0 || shifts_[s + 1] != 0) changed_[places_.device[s]] = 1;
    }
    for (std::size_t s = 0; s != stages(); ++s) {
      if (!is_legal_stage(next_, s)) return false;
    }
    next_times_ = times_;
    next_missing_ = missing_;
    return true;
  }

  void solve_changed() {
    for (std::size_t d = 0; d != devices(); ++d) {
      if (changed_[d] != 0) set_device(next_, d, next_times_, next_missing_);
    }
  }

  void take_next(chunk_quality const& quality) {
    now_.swap(next_);
    times_.swap(next_times_);
    missing_.swap(next_missing_);
    now_quality_ = quality;
  }

  [[nodiscard]] bool shift_boundary(std::size_t s, std::ptrdiff_t shift) {
    std::ptrdiff_t const cut = cut_at_[now_[s]] + shift;
    if (cut < 0 || cut >= static_cast<std::ptrdiff_t>(cuts_.size())) return false;
    next_[s] = cuts_[static_cast<std::size_t>(cut)];
    return rules_.first_cut[s] <= next_[s] && next_[s] <= rules_.last_cut[s];
  }

  /// False if a move makes the step no shorter even with enough memory.
  [[nodiscard]] bool may_improve() {
    if (now_quality_.missing != 0) return true;
    return quality_of_fastest() < now_quality_;
  }

  /// The quality of a move if the layers of the devices that it changes run as fast as possible.
  [[nodiscard]] chunk_quality quality_of_fastest() {
    for (std::size_t s = 0; s != stages(); ++s) {
      if (changed_[places_.device[s]] == 0) continue;
      next_times_[s] = layers_.min_time(next_[s], next_[s + 1]);
    }
    return quality_of(next_times_, next_missing_);
  }

  /// Raises the bound by the loads of layers that run as fast as possible, and by the dual if the
  /// memory does not allow this.
  void find_bound() {
    if (bound_ >= value_.step) return;
    std::vector<std::int64_t> least;
    std::int64_t sum = 0;
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      least.push_back(layers_.min_time(l, l + 1));
      sum += least.back();
    }
    int128 const load = min_largest_load(std::move(least), devices());
    bound_ = std::max(bound_, step_({.load = load, .rounds = load, .sum = sum}));
    int128 time = 0;
    for (auto const& solution : best_solutions_) time += solution.load();
    if (time == sum) return;
    // Rounds are never below a load, so that the step is at least of_sum * (weight * load + sum).
    int128 const of_sum = 4 * step_.stages;
    int128 const weight = step_.batches * step_.fill - 1;
    int128 const known = rounded_up(value_.step, of_sum);
    bound_ = std::max(bound_, of_sum * dual_.min_step(weight, known, rounds()));
  }

  [[nodiscard]] static int128 rounded_up(int128 value, int128 divisor) {
    return value / divisor + (value % divisor != 0 ? 1 : 0);
  }

  /// Replaces the choices of devices by better ones of `select_recompute`, which knows one number
  /// of units for each chunk: the most units of all moments, or the units of one moment. Keeps the
  /// cuts if they then are the best.
  void refine(std::vector<std::uint32_t> const& boundaries,
              std::vector<device_solution> const& given) {
    auto solutions = given;
    chunk_quality quality = quality_of(solutions);
    for (std::size_t d = 0; d != devices(); ++d) {
      chunk_ranges const ranges = ranges_of(boundaries, d);
      if (solutions[d].load() == min_load(ranges)) continue;
      for (units_of_moment const& units : surrogates(d)) {
        device_solution found;
        if (!select(d, ranges, units, found)) continue;
        std::swap(solutions[d], found);
        chunk_quality const other = quality_of(solutions);
        if (other < quality) {
          quality = other;
        } else {
          std::swap(solutions[d], found);
        }
      }
    }
    if (!is_started_ || quality < value_) adopt(boundaries, quality, std::move(solutions));
  }

  [[nodiscard]] chunk_quality quality_of(std::vector<device_solution> const& solutions) {
    next_times_.resize(stages());
    for (std::size_t s = 0; s != stages(); ++s) {
      next_times_[s] = solutions[places_.device[s]].times[places_.chunk[s]];
    }
    next_missing_.assign(devices(), 0);
    return quality_of(next_times_, next_missing_);
  }

  [[nodiscard]] std::int64_t min_load(chunk_ranges const& ranges) const {
    std::int64_t sum = 0;
    for (std::size_t c = 0; c != ranges.size(); c += 2) {
      sum += layers_.min_time(ranges[c], ranges[c + 1]);
    }
    return sum;
  }

  using units_of_moment = std::vector<std::int64_t>;

  /// The largest units of each chunk, and the units of the moment with the most of them.
  [[nodiscard]] std::vector<units_of_moment> surrogates(std::size_t device) const {
    chunk_counts const& units = rooms_.chunks[device];
    units_of_moment largest(units.chunks, 0);
    std::size_t heaviest = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i != units.size(); ++i) {
      std::int64_t sum = 0;
      for (std::size_t c = 0; c != units.chunks; ++c) {
        largest[c] = std::max(largest[c], units[i][c]);
        sum += units[i][c];
      }
      if (sum <= most) continue;
      most = sum;
      heaviest = i;
    }
    std::vector<units_of_moment> result{largest};
    auto const row = units[heaviest];
    if (units.size() > 1) result.emplace_back(row.begin(), row.end());
    return result;
  }

  /// Solves the choices of a device for units that do not change. Returns false if the choices
  /// exceed the memory at any moment, or if bytes leave their type.
  [[nodiscard]] bool select(std::size_t device, chunk_ranges const& ranges,
                            units_of_moment const& units, device_solution& result) {
    auto const solved = solve_exactly(device, ranges, units);
    if (solved.status != solve_status::solved) return false;
    result.times.assign(units.size(), 0);
    result.choices.clear();
    std::size_t next = 0;
    for (std::size_t c = 0; c != units.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l, ++next) {
        auto const& way = layers_.by_index(l)[solved.choices[next]];
        result.times[c] += way.time;
        result.choices.push_back(way.index);
      }
    }
    return choices_.bytes_of(device, ranges, result.choices) <= rooms_.memory[device];
  }

  /// The choices of a device by `select_recompute` with the bytes of these units.
  [[nodiscard]] recompute_result<std::int64_t> solve_exactly(std::size_t device,
                                                             chunk_ranges const& ranges,
                                                             units_of_moment const& units) const {
    std::vector<std::vector<whole_choice>> layers;
    for (std::size_t c = 0; c != units.size(); ++c) {
      for (std::size_t l = ranges[2 * c]; l != ranges[2 * c + 1]; ++l) {
        auto& choices = layers.emplace_back();
        for (whole_choice way : layers_.by_index(l)) {
          // Larger bytes exceed every memory, but must not overflow together.
          constexpr int128 most = static_cast<int128>(1) << 62;
          auto const count = static_cast<int128>(layers_.size());
          way.bytes = static_cast<std::int64_t>(
              std::min(static_cast<int128>(way.bytes) * units[c], most / count));
          choices.push_back(way);
        }
      }
    }
    auto const room = saturate_cast<std::int64_t>(choices_.room(device, ranges));
    return select_recompute(
        layers, room,
        {.effort = options_.effort, .states = options_.states, .max_gap = options_.max_gap});
  }

  /// Makes moves that shorten the schedule if backward passes take twice as long as forward
  /// passes. The estimate stays within `max_gap` of the best one, because it is as good for all of
  /// these cuts.
  void shorten_simulation() {
    std::size_t const batches = std::min(layout_.micro_batches, 4 * devices());
    std::size_t const work = 2 * batches * stages();
    std::size_t left = max_operations() / work;
    interleaved_1f1b const schedule{devices(), batches, places_.chunks};
    auto const makespan_of = [&](std::vector<std::int64_t> const& times) {
      passes_.clear();
      for (std::int64_t const time : times) {
        auto const forward = static_cast<double>(time);
        passes_.push_back({forward, 2 * forward, 0});
      }
      return simulate_pipeline(schedule, passes_, std::int64_t{0}, std::int64_t{0}, simulation_)
          .makespan;
    };
    int128 const limit =
        value_.step + static_cast<int128>(options_.max_gap * static_cast<double>(value_.step));
    now_ = best_;
    times_.assign(stages(), 0);
    missing_.assign(devices(), 0);
    for (std::size_t d = 0; d != devices(); ++d) set_device(now_, d, times_, missing_);
    now_quality_ = quality_of(times_, missing_);
    // The greedy choices of these cuts may be worse than the best ones.
    if (now_quality_.step > limit || left == 0) return;
    double best = makespan_of(times_);
    auto const shorten = [&](bool is_right) {
      if (!set_next(is_right) || quality_of_fastest().step > limit) return false;
      solve_changed();
      chunk_quality const quality = quality_of(next_times_, next_missing_);
      if (quality.missing != 0 || quality.step > limit) return false;
      --left;
      double const makespan = makespan_of(next_times_);
      if (!(makespan < best)) return false;
      best = makespan;
      take_next(quality);
      return true;
    };
    bool is_improved = true;
    bool is_changed = false;
    while (is_improved && left != 0) {
      is_improved = false;
      for (std::size_t a = 0; a + 1 < stages(); ++a) {
        for (std::size_t b = a + 1; b != stages(); ++b) {
          set_single_move(a, b);
          for (bool const is_right : {false, true}) {
            while (left != 0 && shorten(is_right)) is_improved = true;
          }
        }
      }
      is_changed = is_changed || is_improved;
    }
    if (is_changed) adopt_now();
  }

  /// Tries all cuts in order unless they are too many. Returns true if no other cuts have a
  /// shorter step than `tree_bound_` or, without a plan, lack fewer bytes than `least_missing_`.
  [[nodiscard]] bool search_all() {
    if (!are_cuts_few()) return false;
    nodes_left_ = max_nodes();
    tree_.assign(stages() + 1, 0);
    tree_bound_ = has_plan() ? value_.step : no_step;
    loads_of_tree_.assign(devices(), 0);
    largest_of_tree_.assign(stages() + 1, 0);
    rounds_of_tree_.assign(stages() + 1, 0);
    return descend(0);
  }

  [[nodiscard]] bool are_cuts_few() const {
    double const most = 1024 * static_cast<double>(max_nodes());
    double ways = 1;
    for (std::size_t s = 1; s < stages() && ways <= most; ++s) {
      ways *= static_cast<double>(layers_.size() + s) / static_cast<double>(s);
    }
    return ways <= most;
  }

  /// Tries all ends of a virtual stage; returns false if the nodes are used up.
  [[nodiscard]] bool descend(std::size_t s) {
    if (s == stages()) {
      try_leaf();
      return true;
    }
    std::size_t const device = places_.device[s];
    std::size_t const high = rules_.last_cut[s + 1];
    bool const is_new_round = s % devices() == 0;
    std::int64_t const load = loads_of_tree_[device];
    for (std::size_t last = std::max(tree_[s], rules_.first_cut[s + 1]); last <= high; ++last) {
      tree_[s + 1] = static_cast<std::uint32_t>(last);
      if (rules_.may_cut[last] == 0 || !is_legal_stage(tree_, s)) continue;
      if (nodes_left_ == 0) return false;
      --nodes_left_;
      std::int64_t const time = layers_.min_time(tree_[s], last);
      loads_of_tree_[device] = load + time;
      largest_of_tree_[s + 1] = is_new_round ? time : std::max(largest_of_tree_[s], time);
      rounds_of_tree_[s + 1] =
          rounds_of_tree_[s] + largest_of_tree_[s + 1] - (is_new_round ? 0 : largest_of_tree_[s]);
      if (has_plan() && min_step_of_tree(s + 1) >= value_.step) continue;
      if (is_too_large(s)) continue;
      if (!descend(s + 1)) return false;
    }
    loads_of_tree_[device] = load;
    return true;
  }

  /// Lower bounds of the times of cuts that begin with the first `count` virtual stages.
  [[nodiscard]] chunk_times<int128> min_times_of_tree(std::size_t count) const {
    std::size_t const end = layers_.size();
    auto const width = static_cast<int128>(devices());
    chunk_times<int128> times{.rounds = rounds_of_tree_[count], .sum = layers_.min_time(0, end)};
    times.load = rounded_up(times.sum, width);
    for (std::int64_t const one : loads_of_tree_) times.load = std::max<int128>(times.load, one);
    for (std::size_t s = 0; s < count; s += devices()) {
      std::size_t const next = std::min(s + devices(), count);
      times.largest_round =
          std::max<int128>(times.largest_round, layers_.min_time(tree_[s], tree_[next]));
    }
    // The other stages of this round may be as long as its longest one; later rounds have the rest.
    auto const open = static_cast<int128>((devices() - count % devices()) % devices());
    int128 const later = layers_.min_time(tree_[count], end) - open * largest_of_tree_[count];
    if (later > 0) times.rounds += rounded_up(later, width);
    times.rounds = std::max(times.rounds, times.load);
    return times;
  }
  [[nodiscard]] int128 min_step_of_tree(std::size_t count) const {
    return step_(min_times_of_tree(count));
  }

  /// True if the device of a virtual stage lacks memory with the layers of the tree up to this
  /// stage, or lacks no fewer bytes than the best cuts.
  [[nodiscard]] bool is_too_large(std::size_t s) {
    std::size_t const device = places_.device[s];
    chunk_ranges ranges;
    for (std::size_t c = 0; c != places_.chunks; ++c) {
      std::size_t const stage = places_.stage[device * places_.chunks + c];
      ranges.push_back(stage <= s ? tree_[stage] : 0);
      ranges.push_back(stage <= s ? tree_[stage + 1] : 0);
    }
    int128 const missing = choices_.missing_bytes(device, ranges);
    if (missing <= 0 || !choices_.knows_all_limits()) return false;
    return has_plan() || missing >= least_missing_;
  }

  void try_leaf() {
    std::vector<device_solution> solutions;
    int128 missing = 0;
    for (std::size_t d = 0; d != devices(); ++d) {
      solutions.push_back(solve(tree_, d));
      missing = std::max(missing, solutions.back().missing);
    }
    if (missing != 0) {
      if (!choices_.knows_all_limits()) {
        tree_bound_ = std::min(tree_bound_, min_step_of_tree(stages()));
      }
      if (has_plan() || missing >= least_missing_) return;
      least_missing_ = missing;
      value_.missing = missing;
      best_ = tree_;
      best_solutions_ = std::move(solutions);
      return;
    }
    refine(tree_, solutions);
    tree_bound_ = std::min(tree_bound_, min_step_of_leaf(solutions));
  }

  /// A lower bound of the step with the cuts of the tree and any choices.
  [[nodiscard]] int128 min_step_of_leaf(std::vector<device_solution> const& solutions) {
    chunk_times<int128> times = min_times_of_tree(stages());
    times.sum = 0;
    for (std::size_t d = 0; d != devices(); ++d) {
      chunk_ranges const ranges = ranges_of(tree_, d);
      std::int64_t least = min_load(ranges);
      if (solutions[d].load() != least) {
        chunk_counts const& units = rooms_.chunks[d];
        for (std::size_t i = 0; i != std::min<std::size_t>(units.size(), 4); ++i) {
          auto const solved =
              solve_exactly(d, ranges, units_of_moment(units[i].begin(), units[i].end()));
          least = std::max(least, solved.lower_bound);
        }
      }
      times.load = std::max<int128>(times.load, least);
      times.sum += least;
    }
    times.rounds = std::max(times.rounds, times.load);
    return step_(times);
  }

  static constexpr int128 no_step = static_cast<int128>(1) << 126;

  std::string_view function_;
  integer_layers const& layers_;
  stage_budgets const& rooms_;
  plan_pipeline_options const& options_;
  chunk_step<int128> step_;
  chunk_layout layout_;
  chunk_places places_;
  chain_rules rules_;
  chunk_choices choices_;
  chunk_dual dual_;
  /// The positions at which the chain may be cut, and the number of cuts before each position.
  std::vector<std::uint32_t> cuts_;
  std::vector<std::ptrdiff_t> cut_at_;
  std::unordered_map<std::vector<std::uint32_t>, device_solution, ranges_hash> solved_;
  std::vector<std::uint32_t> key_;

  bool is_started_ = false;
  std::vector<std::uint32_t> best_;
  chunk_quality value_;
  std::vector<device_solution> best_solutions_;
  int128 bound_ = 0;
  int128 least_missing_ = 0;
  int128 bound_missing_ = 0;

  /// The boundaries of the local search, the times of its virtual stages and the bytes that its
  /// devices lack; then the same after a move.
  std::vector<std::uint32_t> now_;
  std::vector<std::int64_t> times_;
  std::vector<int128> missing_;
  chunk_quality now_quality_;
  std::vector<std::uint32_t> next_;
  std::vector<std::int64_t> next_times_;
  std::vector<int128> next_missing_;
  /// The number of cuts by which a move shifts each boundary, and the devices that it changes.
  std::vector<std::ptrdiff_t> shifts_;
  std::vector<std::uint8_t> changed_;
  std::vector<std::int64_t> loads_;
  std::vector<stage_time<double>> passes_;
  simulate_pipeline_workspace<double> simulation_;

  /// The boundaries of the search over all cuts, the least loads of devices, the sum of the longest
  /// stages of the rounds, and the longest stage of the last round, by the number of stages.
  std::vector<std::uint32_t> tree_;
  std::vector<std::int64_t> loads_of_tree_;
  std::vector<std::int64_t> rounds_of_tree_;
  std::vector<std::int64_t> largest_of_tree_;
  std::size_t nodes_left_ = 0;
  /// The least step that the search over all cuts leaves possible.
  int128 tree_bound_ = no_step;
};

}  // namespace omnibal::inline v0::detail
