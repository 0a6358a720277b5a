// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Stages that share devices: local search over the boundaries.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/device_time.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The quality of stages on shared devices.
template <class C>
struct device_quality {
  C load{};                         ///< the largest load of a device
  C sum{};                          ///< of all stages
  C bottleneck{};                   ///< the largest stage
  C rounds{};                       ///< the sum of the largest stages of all rounds
  wide_weight<C> squared_loads{};   ///< of the devices
  wide_weight<C> squared_stages{};  ///< of the costs of the stages
  double step = 0;                  ///< by the interleaved schedule, in thirds of a cost, if known
};

/// The values that a local search minimizes, in the given order. For all aims, the last value is
/// the sum of the squares of the stages.
enum class device_aim {
  loads,           ///< the largest load, then the squares of all loads, the largest stage
  rounds,          ///< the largest stage, then the rounds and the load
  load_then_step,  ///< the largest load, then the interleaved step, the largest stage
  step,            ///< the interleaved step, then the largest stage
};

/// Local search for stages on shared devices. Keeps the best result for all offered starts.
///
/// A move transfers a layer from one stage to another stage. All boundaries between the two stages
/// move by one position at which the chain may be cut. The search applies each move that improves,
/// until no move improves or the budget of stage costs is spent. The order of the moves is fixed.
template <class C, class Cost, class Fits>
class device_local_search {
 public:
  /// Creates a search. If `micro_batches` is zero, the search minimizes the largest load of a
  /// device first, and then the step with `usual_groups` micro-batches for each device. Otherwise
  /// it minimizes the step first.
  device_local_search(stage_costs<C, Cost, Fits> const& stages, std::uint64_t micro_batches)
      : stages_(stages),
        loads_(stages.memory().devices()),
        is_load_first_(micro_batches == 0),
        step_(loads_.size(), stages.stages(),
              is_load_first_ ? usual_groups * loads_.size() : micro_batches) {
    find_cuts();
  }

  [[nodiscard]] bool has_found() const { return !best_.empty(); }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_; }
  [[nodiscard]] device_quality<C> const& quality() const { return best_quality_; }

  /// Improves these boundaries, and keeps the result if it is the best so far. Ignores boundaries
  /// that rules, predicate or memory forbid.
  void offer(std::vector<std::uint32_t> boundaries) {
    if (boundaries.size() != stages_.stages() + 1 || !are_legal(boundaries)) return;
    auto offered = boundaries;
    now_ = std::move(boundaries);
    if (!has_room(now_) || !set_costs()) return;
    device_aim const last = is_load_first_ ? device_aim::load_then_step : device_aim::step;
    improve(is_load_first_ ? device_aim::loads : device_aim::rounds);
    keep(last);
    if (!is_load_first_) {
      // Balanced stages need not have the shortest step. Therefore the second search starts from
      // the offered boundaries again.
      now_ = std::move(offered);
      set_costs();
    }
    improve(last);
    keep(last);
  }

 private:
  /// The largest number of stages and of operations of a schedule that a search evaluates.
  static constexpr std::size_t cost_budget = std::size_t{1} << 21;
  /// The number of micro-batches of a step for each device, if the caller does not specify it.
  static constexpr std::size_t usual_groups = 4;

  [[nodiscard]] static bool has_step(device_aim aim) {
    return aim == device_aim::load_then_step || aim == device_aim::step;
  }

  /// Sets `costs_` to the costs of the stages. Returns false if a stage is impossible.
  bool set_costs() {
    costs_.assign(stages_.stages(), C{});
    for (std::size_t s = 0; s != costs_.size(); ++s) {
      if (!is_legal_stage(now_, s)) return false;
      costs_[s] = cost_of(now_, s);
      if (costs_[s] == infinite_cost<C>) return false;
    }
    return true;
  }

  void keep(device_aim aim) {
    device_quality<C> const quality = quality_of(costs_, aim);
    if (has_found() && !is_less(quality, best_quality_, aim)) return;
    best_ = now_;
    best_quality_ = quality;
  }

  void find_cuts() {
    auto const& rules = stages_.rules();
    for (std::size_t i = 0; i != rules.may_cut.size(); ++i) {
      if (rules.may_cut[i] != 0) cuts_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  [[nodiscard]] bool are_legal(std::span<std::uint32_t const> boundaries) const {
    auto const& rules = stages_.rules();
    for (std::size_t s = 0; s != boundaries.size(); ++s) {
      if (boundaries[s] < rules.first_cut[s] || boundaries[s] > rules.last_cut[s]) return false;
      if (rules.may_cut[boundaries[s]] == 0) return false;
      if (s != 0 && boundaries[s] < boundaries[s - 1]) return false;
    }
    return true;
  }

  /// Returns true if the rules and the predicate allow a stage.
  [[nodiscard]] bool is_legal_stage(std::span<std::uint32_t const> boundaries,
                                    std::size_t s) const {
    auto const& rules = stages_.rules();
    std::size_t const first = boundaries[s];
    std::size_t const last = boundaries[s + 1];
    if (first == last) return rules.may_be_empty;
    if (last - first < rules.shortest[s]) return false;
    return !stages_.is_over(s, first, last, infinite_cost<C>) && stages_.fits(s, first, last);
  }

  [[nodiscard]] C cost_of(std::span<std::uint32_t const> boundaries, std::size_t s) const {
    if (boundaries[s] == boundaries[s + 1]) return C{};
    return stages_(s, boundaries[s], boundaries[s + 1]);
  }

  [[nodiscard]] bool has_room(std::span<std::uint32_t const> boundaries) const {
    stage_memory const& memory = stages_.memory();
    if (!memory.is_limited()) return true;
    std::size_t const devices = memory.devices();
    for (std::size_t d = 0; d != devices; ++d) {
      std::int64_t room = memory.capacity(d);
      for (std::size_t s = d; s + 1 < boundaries.size(); s += devices) {
        std::int64_t const bytes = memory.bytes(boundaries[s], boundaries[s + 1]);
        if (bytes > room) return false;
        room -= bytes;
      }
    }
    return true;
  }

  [[nodiscard]] device_quality<C> quality_of(std::span<C const> costs, device_aim aim) {
    constexpr std::string_view name = "the sum over the stages";
    std::fill(loads_.begin(), loads_.end(), C{});
    device_quality<C> result;
    C largest{};
    for (std::size_t s = costs.size(); s-- != 0;) {
      checked_add(stages_.function(), name, loads_[s % loads_.size()], costs[s]);
      checked_add(stages_.function(), name, result.sum, costs[s]);
      largest = std::max(largest, costs[s]);
      result.bottleneck = std::max(result.bottleneck, costs[s]);
      if (s % loads_.size() == 0) {
        result.rounds = static_cast<C>(result.rounds + largest);
        largest = C{};
      }
      result.squared_stages += square(costs[s]);
    }
    for (C const load : loads_) result.squared_loads += square(load);
    result.load = *std::max_element(loads_.begin(), loads_.end());
    if (has_step(aim)) {
      step_costs_.assign(costs.begin(), costs.end());
      result.step = step_(step_costs_);
    }
    return result;
  }

  /// Squares of integers whose sum is below 2^63 add up to less than 2^126.
  [[nodiscard]] static wide_weight<C> square(C value) {
    return static_cast<wide_weight<C>>(value) * static_cast<wide_weight<C>>(value);
  }

  [[nodiscard]] static bool is_less(device_quality<C> const& left, device_quality<C> const& right,
                                    device_aim aim) {
    bool const has_load = aim == device_aim::loads || aim == device_aim::load_then_step;
    if (has_load && left.load != right.load) return left.load < right.load;
    if (has_step(aim) && left.step != right.step) return left.step < right.step;
    if (aim == device_aim::loads && left.squared_loads != right.squared_loads) {
      return left.squared_loads < right.squared_loads;
    }
    if (left.bottleneck != right.bottleneck) return left.bottleneck < right.bottleneck;
    auto const work = [](device_quality<C> const& quality) {
      return static_cast<wide_weight<C>>(quality.rounds) +
             static_cast<wide_weight<C>>(quality.load);
    };
    if (aim == device_aim::rounds && work(left) != work(right)) return work(left) < work(right);
    return left.squared_stages < right.squared_stages;
  }

  void improve(device_aim aim) {
    std::size_t budget = cost_budget;
    now_quality_ = quality_of(costs_, aim);
    bool is_improved = true;
    while (is_improved) {
      is_improved = false;
      for (std::size_t a = 0; a + 1 < costs_.size(); ++a) {
        for (std::size_t b = a + 1; b != costs_.size(); ++b) {
          for (bool const is_right : {false, true}) {
            while (try_move(a, b, is_right, aim, budget)) is_improved = true;
          }
        }
      }
    }
  }

  /// Moves the boundaries from the end of stage `a` to the beginning of stage `b` by one cut.
  /// Returns false if the move is impossible or does not improve.
  [[nodiscard]] bool try_move(std::size_t a, std::size_t b, bool is_right, device_aim aim,
                              std::size_t& budget) {
    std::size_t const work = costs_.size() + (has_step(aim) ? step_.operations() : 0);
    if (budget < work) return false;
    auto const& rules = stages_.rules();
    next_.assign(now_.begin(), now_.end());
    for (std::size_t s = a + 1; s <= b; ++s) {
      auto const place = std::lower_bound(cuts_.begin(), cuts_.end(), now_[s]);
      if (is_right ? place + 1 == cuts_.end() : place == cuts_.begin()) return false;
      next_[s] = is_right ? *(place + 1) : *(place - 1);
      if (next_[s] < rules.first_cut[s] || next_[s] > rules.last_cut[s]) return false;
    }
    if (next_[a] > next_[a + 1] || next_[b] > next_[b + 1] || !has_room(next_)) return false;
    next_costs_.assign(costs_.begin(), costs_.end());
    budget -= work;
    for (std::size_t s = a; s <= b; ++s) {
      if (!is_legal_stage(next_, s)) return false;
      next_costs_[s] = cost_of(next_, s);
      if (next_costs_[s] == infinite_cost<C>) return false;
    }
    device_quality<C> const quality = quality_of(next_costs_, aim);
    if (!is_less(quality, now_quality_, aim)) return false;
    now_.swap(next_);
    costs_.swap(next_costs_);
    now_quality_ = quality;
    return true;
  }

  stage_costs<C, Cost, Fits> const& stages_;
  std::vector<std::uint32_t> cuts_;  ///< the positions at which the chain may be cut
  std::vector<std::uint32_t> now_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> best_;
  std::vector<C> costs_;
  std::vector<C> next_costs_;
  std::vector<C> loads_;
  std::vector<double> step_costs_;
  bool is_load_first_;
  interleaved_step step_;
  device_quality<C> now_quality_;
  device_quality<C> best_quality_;
};

/// The stages that have one layer more if the number of stages does not divide the number of
/// layers. They are spread over all stages, beginning with a shorter or with a longer stage, or
/// they are the first or the last stages.
enum class longer_stages { spread, spread_from_first, first, last };

/// Returns the boundaries of stages whose numbers of layers differ by at most one. `longer` selects
/// the stages that have one layer more.
[[nodiscard]] inline std::vector<std::uint32_t> equal_boundaries(std::size_t layers,
                                                                 std::size_t stages,
                                                                 longer_stages longer) {
  std::vector<std::uint32_t> result(stages + 1);
  std::size_t const least = layers / stages;
  std::size_t const rest = layers % stages;
  for (std::size_t s = 0; s <= stages; ++s) {
    std::size_t more = s * rest / stages;
    if (longer == longer_stages::spread_from_first) more = (s * rest + stages - 1) / stages;
    if (longer == longer_stages::first) more = std::min(s, rest);
    if (longer == longer_stages::last) more = s + rest > stages ? s + rest - stages : 0;
    result[s] = static_cast<std::uint32_t>(s * least + more);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
