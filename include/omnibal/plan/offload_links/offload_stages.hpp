// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bounds and solutions of stages whose modules are kept, recomputed or offloaded.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/segment_bounds.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/offload_plan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/select_activations.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The solution of a stage whose modules are kept, recomputed or offloaded.
struct offload_solution {
  solve_status status = solve_status::solved;
  std::int64_t time = 0;
  std::int64_t lower_bound = 0;
  activations_result<std::int64_t> activations{};
};

/// The stages of a plan with links, as `joint_search` uses them. The lower bounds treat each module
/// as a layer with two choices; one more such layer holds the times of the passes and the required
/// bytes of a layer. The bytes that a stage keeps or offloads are limited by its share of the
/// memory and by the bytes that its link transfers in the passes of all its layers.
class offload_stages {
 public:
  using solution = offload_solution;

  offload_stages(std::string_view function, std::span<offload_layer const> layers,
                 stage_budgets const& rooms, std::span<offload_link const> links,
                 plan_pipeline_options const& options)
      : function_(function),
        rooms_(rooms),
        links_(links),
        options_(options),
        parts_(part_table(layers)),
        runs_(parts_) {}

  /// The parts of the layers for the lower bounds: each layer itself, and each of its modules.
  [[nodiscard]] integer_layers const& parts() const { return parts_; }
  [[nodiscard]] std::size_t layers_size() const { return layers_.size(); }
  [[nodiscard]] std::size_t size() const { return rooms_.memory.size(); }
  [[nodiscard]] std::int64_t state_bytes(std::size_t first, std::size_t last) const {
    return parts_.state_bytes(offsets_[first], offsets_[last]);
  }
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last) const {
    return parts_.min_time(offsets_[first], offsets_[last]);
  }
  [[nodiscard]] std::int64_t small_time(std::size_t layer) const {
    std::int64_t sum = 0;
    for (std::size_t k = offsets_[layer]; k != offsets_[layer + 1]; ++k) {
      sum += parts_[k].front().time;
    }
    return sum;
  }

  [[nodiscard]] std::int64_t lower_bound(stage_range const& range) const {
    if (range.first == range.last) return 0;
    std::int64_t const left = room(range);
    for (std::size_t l = range.first; l != range.last; ++l) {
      if (least_bytes(l) > left) return no_time;
    }
    auto const& last = layers_[range.last - 1];
    std::int64_t const transient =
        std::max(last.forward_transient_bytes, last.backward_transient_bytes);
    std::int64_t const kept = (left - transient) / rooms_.in_flight[range.stage];
    int128 const saved = static_cast<int128>(kept) + std::min(transferred(range, forward_before_),
                                                              transferred(range, backward_before_));
    constexpr std::int64_t most = std::int64_t{1} << 62;
    return runs_.min_time(offsets_[range.first], offsets_[range.last],
                          static_cast<std::int64_t>(std::min<int128>(saved, most)), 1);
  }

  [[nodiscard]] bool fits(stage_range const& range) const {
    return range.first == range.last || least_peak(range) <= room(range);
  }

  /// The smallest number of bytes by which a stage exceeds its memory; zero if it fits.
  [[nodiscard]] std::int64_t shortfall(stage_range const& range) const {
    if (range.first == range.last) return 0;
    int128 const missing = static_cast<int128>(least_peak(range)) - room(range);
    return static_cast<std::int64_t>(std::clamp<int128>(missing, 0, min_memory::most));
  }

  [[nodiscard]] solution solve(stage_range const& range) const {
    auto found = select_activations(layers_of(range), room(range), links_[range.stage],
                                    {.in_flight = rooms_.in_flight[range.stage],
                                     .effort = options_.effort,
                                     .labels = options_.states});
    std::int64_t const base = min_time(range.first, range.last);
    return {found.status, base + found.added_time, base + found.lower_bound, std::move(found)};
  }

 private:
  /// Returns the parts of the layers for the lower bounds. Also fills `layers_`, `offsets_`,
  /// `layer_bytes_` and the sums of times, which must therefore be declared before `parts_`.
  [[nodiscard]] integer_layers part_table(std::span<offload_layer const> layers) {
    std::int64_t const in_flight =
        *std::max_element(rooms_.in_flight.begin(), rooms_.in_flight.end());
    for (offload_layer const& layer : layers) layers_.push_back(layer.activations);
    activation_table<std::int64_t> modules(function_, {}, in_flight);
    modules.assign(layers_);
    choice_table<std::int64_t> table(function_);
    std::vector<std::int64_t> state_bytes;
    for (std::size_t l = 0; l != layers.size(); ++l) {
      check_weight(function_, "time", l, layers[l].time);
      check_weight(function_, "state_bytes", l, layers[l].state_bytes);
      push(table, state_bytes, {{layers[l].time, modules.required_bytes[l], 0}},
           layers[l].state_bytes);
      for (std::size_t k = modules.offsets[l]; k != modules.offsets[l + 1]; ++k) {
        if (modules.needs[k] == module_need::required) continue;
        push(table, state_bytes, {{modules.times[k], 0, 0}, {0, modules.bytes[k], 0}}, 0);
      }
      offsets_.push_back(table.size());
      layer_bytes_.push_back(modules.layer_bytes[l]);
      add(forward_before_, layers[l].activations.forward_time);
      add(backward_before_, layers[l].activations.backward_time);
    }
    return integer_layers(function_, table, state_bytes, options_.micro_batches);
  }

  static void push(choice_table<std::int64_t>& table, std::vector<std::int64_t>& state_bytes,
                   std::vector<activation_option<>> const& choices, std::int64_t bytes) {
    table.push_layer(choices);
    state_bytes.push_back(bytes);
  }

  static void add(std::vector<double>& sums, std::int64_t time) {
    sums.push_back(sums.back() + static_cast<double>(time));
  }

  /// The peak of a layer in bytes, if all its modules are recomputed and no other layer keeps
  /// bytes.
  [[nodiscard]] std::int64_t least_bytes(std::size_t layer) const {
    auto const& one = layers_[layer];
    return std::max(one.forward_transient_bytes,
                    one.backward_transient_bytes + layer_bytes_[layer]);
  }

  /// An upper bound of the bytes that the link of a stage transfers in all passes of one kind.
  [[nodiscard]] int128 transferred(stage_range const& range,
                                   std::vector<double> const& before) const {
    // The factor covers the rounding errors of the sums and products.
    constexpr double rounding = 1 + 1e-9;
    double const time = before[range.last] - before[range.first];
    double const slack = before[range.last] * 1e-9;
    double const bytes = links_[range.stage].bytes_per_time * (time + slack) * rounding + 1;
    return bytes < 0x1p62 ? static_cast<int128>(bytes) : int128{1} << 62;
  }

  [[nodiscard]] std::span<activation_layer<> const> layers_of(stage_range const& range) const {
    return std::span(layers_).subspan(range.first, range.last - range.first);
  }

  /// The least peak of a stage in bytes. `select_activations` returns it for a budget that no
  /// choices fit.
  [[nodiscard]] std::int64_t least_peak(stage_range const& range) const {
    constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min();
    return select_activations(layers_of(range), nothing, links_[range.stage],
                              {.in_flight = rooms_.in_flight[range.stage]})
        .peak_bytes;
  }

  /// The bytes of the memory of a stage that are left for activations.
  [[nodiscard]] std::int64_t room(stage_range const& range) const {
    return rooms_.memory[range.stage] - rooms_.reserve[range.stage] -
           state_bytes(range.first, range.last);
  }

  std::string_view function_;
  stage_budgets const& rooms_;
  std::span<offload_link const> links_;
  plan_pipeline_options const& options_;
  std::vector<activation_layer<>> layers_;
  std::vector<std::int64_t> layer_bytes_;
  /// The index of the first part of each layer; the last entry is the number of parts.
  std::vector<std::size_t> offsets_{0};
  /// The sums of the times of the forward passes, and of the backward passes, of the layers before
  /// each layer.
  std::vector<double> forward_before_{0};
  std::vector<double> backward_before_{0};
  integer_layers parts_;
  segment_bounds runs_;
};

}  // namespace omnibal::inline v0::detail
