// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers and stages of a plan in whole numbers, and the least memory and time of stages.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/detail/search.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

using whole_choice = numbered_choice<std::int64_t>;

/// The choices of each layer that no other choice of the layer beats in time and both kinds of
/// bytes, by ascending bytes.
class integer_layers {
 public:
  /// Converts floating-point times to whole numbers so small that a step of `micro_batches` fits a
  /// whole number.
  template <class Time>
  integer_layers(std::string_view function, choice_table<Time> const& table,
                 std::span<std::int64_t const> state_bytes, std::size_t micro_batches)
      : shift_(std::floating_point<Time> ? static_cast<int>(std::bit_width(micro_batches)) + 1
                                         : 0) {
    for (std::size_t l = 0; l != table.size(); ++l) {
      for (auto const& way : table[l]) {
        auto const time = table.to_whole(way.time) >> shift_;
        push(whole_choice{way.bytes, time, way.transient_bytes, way.index});
      }
      close(function, state_bytes[l]);
    }
  }

  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<whole_choice const> operator[](std::size_t layer) const {
    return std::span(choices_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// The same choices, by their numbers.
  [[nodiscard]] std::span<whole_choice const> by_index(std::size_t layer) const {
    return std::span(by_index_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// The different transient bytes of all choices, ascending.
  [[nodiscard]] std::vector<std::int64_t> transient_bytes() const {
    std::vector<std::int64_t> result;
    for (auto const& way : choices_) result.push_back(way.transient_bytes);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  /// A difference of whole times in the unit of the layers.
  template <class Time>
  [[nodiscard]] Time original(choice_table<Time> const& table, std::int64_t time) const {
    if constexpr (std::floating_point<Time>) {
      return std::ldexp(table.from_whole(time), shift_);
    } else {
      return time;
    }
  }

  [[nodiscard]] std::int64_t state_bytes(std::size_t first, std::size_t last) const {
    return state_before_[last] - state_before_[first];
  }
  /// The sum of the largest times.
  [[nodiscard]] std::int64_t max_time() const { return max_time_; }
  /// The sum of the least times.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last) const {
    return min_before_[last] - min_before_[first];
  }

 private:
  /// Keeps a choice unless an earlier choice of the layer is no worse in time and transient bytes.
  /// Precondition: choices come by ascending bytes.
  void push(whole_choice const& way) {
    for (std::size_t other = offsets_.back(); other != choices_.size(); ++other) {
      auto const& known = choices_[other];
      if (known.time <= way.time && known.transient_bytes <= way.transient_bytes) return;
    }
    choices_.push_back(way);
  }

  void close(std::string_view function, std::int64_t state_bytes) {
    std::int64_t least = choices_.back().time;
    std::int64_t most = least;
    std::vector<sort_key> indices;
    for (std::size_t c = offsets_.back(); c != choices_.size(); ++c) {
      least = std::min(least, choices_[c].time);
      most = std::max(most, choices_[c].time);
      indices.push_back({choices_[c].index, c});
    }
    sort_keys(indices);
    for (sort_key const& key : indices) by_index_.push_back(choices_[key.place]);
    offsets_.push_back(choices_.size());
    min_before_.push_back(min_before_.back() + least);
    max_time_ += most;
    state_before_.push_back(state_before_.back());
    checked_add(function, "the sum of the state bytes", state_before_.back(), state_bytes);
  }

  int shift_;
  std::vector<std::size_t> offsets_{0};
  std::vector<whole_choice> choices_;
  std::vector<whole_choice> by_index_;
  std::vector<std::int64_t> min_before_{0};
  std::vector<std::int64_t> state_before_{0};
  std::int64_t max_time_ = 0;
};

/// One value for each stage, and the units of its chunks if there are several.
struct stage_budgets {
  std::vector<std::int64_t> memory;
  std::vector<std::int64_t> reserve;
  std::vector<std::int64_t> in_flight;
  std::vector<chunk_counts> chunks;

  /// The budgets of stages with one chunk.
  stage_budgets(std::string_view function, pipeline_machine const& machine,
                plan_pipeline_options const& options)
      : stage_budgets(function, machine) {
    if (options.in_flight.empty()) {
      for (std::size_t after = machine.stages; after != 0; --after) {
        in_flight.push_back(static_cast<std::int64_t>(std::min(options.micro_batches, after)));
      }
      return;
    }
    in_flight = spread(function, "options.in_flight", options.in_flight, machine.stages);
    for (std::size_t s = 0; s != in_flight.size(); ++s) {
      if (in_flight[s] > 0) continue;
      throw_invalid(function, "options.in_flight[" + to_text(s) + "] is 0, must be at least 1");
    }
  }

  /// The budgets of stages with `count` chunks that keep these units.
  stage_budgets(std::string_view function, pipeline_machine const& machine, std::size_t count,
                std::vector<chunk_counts> units)
      : stage_budgets(function, machine) {
    chunks = std::move(units);
    check_size(function, "chunks.in_flight", chunks.size(), machine.stages, "stages");
    for (std::size_t s = 0; s != machine.stages; ++s) {
      std::int64_t most = 0;
      check_counts(function, s, count);
      for (std::size_t i = 0; i != chunks[s].size(); ++i) {
        std::int64_t sum = 0;
        for (std::int64_t const kept : chunks[s][i]) sum += kept;
        if (static_cast<std::uint64_t>(sum) > max_index_count) {
          throw_invalid(function, "chunks.in_flight[", s, "] has ", sum,
                        " units at a moment, must be below 2^32");
        }
        most = std::max(most, sum);
      }
      in_flight.push_back(most);
    }
  }

 private:
  stage_budgets(std::string_view function, pipeline_machine const& machine)
      : memory(spread(function, "machine.memory_bytes", machine.memory_bytes, machine.stages)),
        reserve(spread(function, "machine.reserve_bytes", machine.reserve_bytes, machine.stages)) {}

  void check_counts(std::string_view function, std::size_t stage, std::size_t expected) const {
    auto const& given = chunks[stage];
    std::string const place = "chunks.in_flight[" + to_text(stage) + "]";
    if (given.chunks != expected || given.counts.empty() || given.counts.size() % expected != 0) {
      throw_invalid(function, place, " has ", given.counts.size(), " numbers for ", given.chunks,
                    " chunks, must have rows of ", expected);
    }
    for (std::size_t i = 0; i != given.counts.size(); ++i) {
      std::int64_t const units = given.counts[i];
      if (units >= 0 && static_cast<std::uint64_t>(units) <= max_index_count) continue;
      throw_invalid(function, place, ".counts[", i, "] is ", units,
                    ", must be from 0 to below 2^32");
    }
  }

  [[nodiscard]] static std::vector<std::int64_t> spread(std::string_view function,
                                                        std::string_view argument,
                                                        weight_list<std::int64_t> const& list,
                                                        std::size_t stages) {
    auto const values = list.values();
    if (values.size() != 1 && values.size() != stages) {
      throw_invalid(function, std::string(argument) + " has " + to_text(values.size()) +
                                  " values, must have 1 or " + to_text(stages));
    }
    for (std::size_t s = 0; s != values.size(); ++s) {
      check_weight(function, argument, s, values[s]);
    }
    if (values.size() == stages) return {values.begin(), values.end()};
    return std::vector<std::int64_t>(stages, values[0]);
  }
};

/// The fewest kept bytes of layers, for each limit on transient bytes.
class min_bytes {
 public:
  min_bytes(integer_layers const& layers, std::vector<std::int64_t> const& limits)
      : stride_(layers.size() + 1) {
    for (std::int64_t const limit : limits) {
      sum sums{};
      before_.push_back(sums);
      for (std::size_t l = 0; l != layers.size(); ++l) {
        add(layers[l], limit, sums);
        before_.push_back(sums);
      }
    }
  }

  /// False if one of the layers has no choice within the limit.
  [[nodiscard]] bool exist(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, first).impossible == at(limit, last).impossible;
  }
  [[nodiscard]] int128 operator()(std::size_t limit, std::size_t first, std::size_t last) const {
    return at(limit, last).bytes - at(limit, first).bytes;
  }

 private:
  struct sum {
    int128 bytes;
    /// The layers without any choice within the limit.
    std::uint32_t impossible;
  };

  [[nodiscard]] sum const& at(std::size_t limit, std::size_t layer) const {
    return before_[limit * stride_ + layer];
  }

  /// Precondition: choices come by ascending bytes.
  static void add(std::span<whole_choice const> layer, std::int64_t limit, sum& sums) {
    for (auto const& way : layer) {
      if (way.transient_bytes > limit) continue;
      sums.bytes += way.bytes;
      return;
    }
    ++sums.impossible;
  }

  std::size_t stride_;
  std::vector<sum> before_;
};

/// The missing memory of stages, over all transient bytes of a choice.
class min_memory {
 public:
  min_memory(integer_layers const& layers, stage_budgets const& rooms)
      : layers_(layers),
        rooms_(rooms),
        limits_(layers.transient_bytes()),
        fewest_(layers, limits_) {}

  /// The largest shortfall; larger shortfalls have this value.
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;

  /// The bytes that the memory of a stage lacks for the layers [first, last).
  [[nodiscard]] std::int64_t shortfall(std::size_t stage, std::size_t first,
                                       std::size_t last) const {
    int128 least = min_needed(first, last, rooms_.in_flight[stage]);
    least += layers_.state_bytes(first, last);
    least += rooms_.reserve[stage];
    least -= rooms_.memory[stage];
    return saturate_cast<std::int64_t>(std::clamp<int128>(least, 0, most));
  }

 private:
  /// With higher limits layers keep fewer bytes. Therefore no lower limit beats the lowest limit
  /// with the kept bytes of a higher limit. The search looks only at limits at which the kept bytes
  /// change.
  [[nodiscard]] int128 min_needed(std::size_t first, std::size_t last,
                                  std::int64_t in_flight) const {
    auto const is_impossible = [&](std::size_t k) { return !fewest_.exist(k, first, last); };
    // Above 2^64 the shortfall is too large whatever the memory, and products would overflow.
    constexpr int128 too_many = static_cast<int128>(1) << 64;
    auto const kept = [&](std::size_t k) { return std::min(fewest_(k, first, last), too_many); };
    int128 least = static_cast<int128>(1) << 126;
    if (limits_.empty() || is_impossible(limits_.size() - 1)) return least;
    std::size_t const lowest = first_false(0, limits_.size() - 1, is_impossible);
    for (std::size_t end = limits_.size(); end > lowest;) {
      int128 const bytes = kept(end - 1);
      if (in_flight * bytes + limits_[lowest] >= least) break;
      end = first_false(lowest, end - 1, [&](std::size_t k) { return kept(k) != bytes; });
      least = std::min(least, in_flight * bytes + limits_[end]);
    }
    return least;
  }

  integer_layers const& layers_;
  stage_budgets const& rooms_;
  std::vector<std::int64_t> limits_;
  min_bytes fewest_;
};

/// The cuts with the smallest largest shortfall of a stage, which is their `bottleneck`, for
/// `shortfall(stage, first, last)` of at most `min_memory::most`. Errors: `std::overflow_error` if
/// the shortfall is 2^63 - 2 or more.
template <class Shortfall>
[[nodiscard]] partition_result<std::int64_t> find_least_shortfall(
    std::string_view function, std::size_t layers, std::size_t stages, Shortfall const& shortfall,
    partition_constraints const& constraints) {
  auto result =
      stages_for(function, layers, stages, {shortfall, fits_always{}}, 0, {}, constraints);
  result.missing_bytes = result.bottleneck;
  if (result.status != solve_status::solved) return result;
  if (result.bottleneck == min_memory::most) throw_overflow(function, "the missing memory");
  for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
    if (shortfall(s, result.boundaries[s], result.boundaries[s + 1]) != result.bottleneck) continue;
    result.stage = static_cast<std::uint32_t>(s);
    break;
  }
  return result;
}

/// The same for layers with choices.
[[nodiscard]] inline partition_result<std::int64_t> find_missing_memory(
    std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
    partition_constraints const& constraints) {
  min_memory const memory(layers, rooms);
  auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
    return memory.shortfall(stage, first, last);
  };
  return find_least_shortfall(function, layers.size(), rooms.memory.size(), shortfall, constraints);
}

/// A time that no stage has.
inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();

/// Levels to which all transient bytes are rounded down. Similar layers have close transient bytes:
/// a new level begins after each of the widest gaps.
struct transient_levels {
  std::vector<std::int64_t> least;
  /// The most transient bytes that are rounded down to a level.
  std::vector<std::int64_t> most;

  explicit transient_levels(std::vector<std::int64_t> const& all) {
    constexpr std::size_t max_levels = 6;
    if (all.empty()) return;
    std::vector<sort_key> gaps;
    for (std::size_t i = 1; i != all.size(); ++i) gaps.push_back({all[i - 1] - all[i], i});
    sort_keys(gaps);
    std::vector<sort_key> widest;
    for (sort_key const& gap : gaps) {
      if (widest.size() + 1 == max_levels) break;
      widest.push_back({static_cast<std::int64_t>(gap.place), gap.place});
    }
    sort_keys(widest);
    least.push_back(all.front());
    for (sort_key const& gap : widest) {
      most.push_back(all[gap.place - 1]);
      least.push_back(all[gap.place]);
    }
    most.push_back(all.back());
  }

  [[nodiscard]] std::size_t size() const { return least.size(); }
};

/// Lower bounds of runs of layers. At a price of a byte each layer costs its least sum of time and
/// priced bytes. The time of a run is at least the cost of its layers minus the price of the bytes
/// that it may keep. The bound uses sums over the layers for a few prices and for each level of
/// transient bytes. Therefore the bound of a long run costs no more time than the bound of a short
/// run.
class segment_bounds {
 public:
  explicit segment_bounds(integer_layers const& layers)
      : size_(layers.size()), levels_(layers.transient_bytes()), fewest_(layers, levels_.most) {
    choose_prices(layers);
    for (std::size_t k = 0; k != levels_.size(); ++k) add_level(layers, k);
  }

  /// True only if some choices of the layers require no more than `room`, kept and transient bytes
  /// together.
  [[nodiscard]] bool fits(std::size_t first, std::size_t last, std::int64_t room,
                          std::int64_t in_flight) const {
    for (std::size_t k = 0; k != levels_.size() && levels_.most[k] <= room; ++k) {
      if (!fewest_.exist(k, first, last)) continue;
      if (fewest_(k, first, last) <= (room - levels_.most[k]) / in_flight) return true;
    }
    return false;
  }

  /// A lower bound of the time of the layers in `room` for kept and transient bytes.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last, std::int64_t room,
                                      std::int64_t in_flight) const {
    std::int64_t result = no_time;
    for (std::size_t k = 0; k != levels_.size() && levels_.least[k] <= room; ++k) {
      if (!fewest_.exist(k, first, last)) continue;
      std::int64_t const kept = (room - levels_.least[k]) / in_flight;
      if (fewest_(k, first, last) > kept) continue;
      int128 time = 0;
      for (std::size_t m = 0; m != prices_.size(); ++m) {
        std::size_t const row = k * prices_.size() + m;
        time = std::max(time, costs_[at(row, last)] - costs_[at(row, first)] - prices_[m] * kept);
      }
      result = std::min(result, static_cast<std::int64_t>(-(-time >> shift_)));
    }
    return result;
  }

 private:
  static constexpr std::size_t max_prices = 16;

  /// Chooses prices that may be the price of a linear relaxation: the gain of the steps of the
  /// layers for a byte.
  void choose_prices(integer_layers const& layers) {
    prices_.assign(1, 0);
    pareto_fronts fronts;
    for (std::size_t l = 0; l != layers.size(); ++l) push_front(layers, l, fronts);
    std::vector<hull_step> steps;
    find_hull_steps(fronts, steps);
    std::vector<hull_step> chosen;
    std::size_t const count = std::min(max_prices, steps.size());
    for (std::size_t i = 0; i != count; ++i) chosen.push_back(steps[i * steps.size() / count]);
    for (hull_step const& step : chosen) {
      shift_ = std::max(shift_, resolution + bits(step.bytes) - bits(step.gain));
    }
    std::int64_t const max_time = layers.max_time();
    if (bits(max_time) + shift_ > max_bits) {
      shift_ = 0;
      return;
    }
    for (hull_step const& step : chosen) {
      int128 const price = (static_cast<int128>(step.gain) << shift_) / step.bytes;
      if (bits(price) + 64 + bits(static_cast<std::int64_t>(size_)) <= max_bits) {
        prices_.push_back(price);
      }
    }
  }

  static void push_front(integer_layers const& layers, std::size_t layer, pareto_fronts& fronts) {
    auto const& first = layers[layer].front();
    std::int64_t least = first.time + 1;
    for (auto const& way : layers[layer]) {
      if (way.time >= least) continue;
      least = way.time;
      fronts.push({way.bytes - first.bytes, first.time - way.time, way.index});
    }
    fronts.close();
  }

  void add_level(integer_layers const& layers, std::size_t level) {
    for (int128 const price : prices_) {
      costs_.push_back(0);
      for (std::size_t l = 0; l != size_; ++l) {
        int128 least = -1;
        for (auto const& way : layers[l]) {
          if (way.transient_bytes > levels_.most[level]) continue;
          int128 const cost = (static_cast<int128>(way.time) << shift_) + price * way.bytes;
          if (least < 0 || cost < least) least = cost;
        }
        costs_.push_back(costs_.back() + std::max<int128>(least, 0));
      }
    }
  }

  [[nodiscard]] std::size_t at(std::size_t row, std::size_t layer) const {
    return row * (size_ + 1) + layer;
  }
  [[nodiscard]] static int bits(int128 value) {
    auto const high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 64 + static_cast<int>(std::bit_width(high))
                     : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value)));
  }

  static constexpr int resolution = 24;
  static constexpr int max_bits = 124;

  std::size_t size_;
  transient_levels levels_;
  min_bytes fewest_;
  int shift_ = 0;
  std::vector<int128> prices_;
  std::vector<int128> costs_;
};

/// Layers as a stage.
struct stage_range {
  std::size_t stage;
  std::size_t first;
  std::size_t last;
};

}  // namespace omnibal::inline v0::detail
