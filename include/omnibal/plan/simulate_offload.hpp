// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers with modules from the costs of layers, and the time of training steps that offload.

#include <omnibal/check.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/plan/offload_plan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The modules of a layer that is given as `layer_cost`, in the order of `offload_layers`.
enum class cost_module {
  input,      ///< what `recompute_choice::full` keeps: required
  selective,  ///< what `recompute_choice::selective` recomputes
  rest,       ///< what only `recompute_choice::full` recomputes
};

struct offload_layers_fn {
  /// Returns the layers of a micro-batch with their modules, as `cost_module` lists them, and with
  /// times on a device in nanoseconds. Transient bytes are the bytes of `recompute_choice::none`,
  /// because `measure_activations` adds the recomputed bytes.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: as `device_model`.
  template <layer_cost_range Costs>
  [[nodiscard]] std::vector<offload_layer> operator()(Costs const& costs,
                                                      device_model const& device) const {
    std::vector<offload_layer> result;
    result.reserve(std::ranges::size(costs));
    for (layer_cost const& cost : costs) {
      auto const& none = cost[recompute_choice::none];
      auto const& selective = cost[recompute_choice::selective];
      auto const& full = cost[recompute_choice::full];
      std::int64_t const some = device(selective.extra);
      std::int64_t const all = device(full.extra);
      offload_layer& layer = result.emplace_back();
      layer.activations = {
          {{full.kept_bytes, 0, module_need::required},
           {std::max<std::int64_t>(0, none.kept_bytes - selective.kept_bytes), some},
           {std::max<std::int64_t>(0, selective.kept_bytes - full.kept_bytes),
            std::max<std::int64_t>(0, all - some)}},
          device(cost.forward),
          device(cost.backward),
          none.transient_bytes,
          none.transient_bytes};
      layer.time = layer.activations.forward_time;
      detail::checked_add("offload_layers", "the time of a layer", layer.time,
                          layer.activations.backward_time);
      layer.state_bytes = cost.state_bytes();
    }
    return result;
  }
};

/// Returns layers with modules; see `offload_layers_fn`.
inline constexpr offload_layers_fn offload_layers{};

namespace detail {

/// Combines the layers of several micro-batches for one plan: the largest bytes, the shortest times
/// of passes for the transfers of the link, and the sums of all other times.
class combined_layers {
 public:
  explicit combined_layers(std::string_view function) : function_(function) {}

  void add(std::vector<offload_layer> const& layers) {
    ++count_;
    if (count_ == 1) {
      sums_ = layers;
      return;
    }
    check_size(function_, "a micro-batch", layers.size(), sums_.size(), "layers of the first one");
    for (std::size_t l = 0; l != layers.size(); ++l) add(layers[l], sums_[l]);
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Returns the layers with average times, rounded up.
  [[nodiscard]] std::vector<offload_layer> averages() const {
    auto result = sums_;
    for (offload_layer& layer : result) {
      layer.time = average(layer.time);
      for (auto& part : layer.activations.modules)
        part.recompute_time = average(part.recompute_time);
    }
    return result;
  }

 private:
  void add(offload_layer const& from, offload_layer& to) const {
    auto const& given = from.activations;
    auto& sum = to.activations;
    checked_add(function_, "the sum of the times", to.time, from.time);
    to.state_bytes = std::max(to.state_bytes, from.state_bytes);
    sum.forward_time = std::min(sum.forward_time, given.forward_time);
    sum.backward_time = std::min(sum.backward_time, given.backward_time);
    sum.forward_transient_bytes =
        std::max(sum.forward_transient_bytes, given.forward_transient_bytes);
    sum.backward_transient_bytes =
        std::max(sum.backward_transient_bytes, given.backward_transient_bytes);
    for (std::size_t j = 0; j != sum.modules.size(); ++j) {
      sum.modules[j].bytes = std::max(sum.modules[j].bytes, given.modules[j].bytes);
      checked_add(function_, "the sum of the times", sum.modules[j].recompute_time,
                  given.modules[j].recompute_time);
    }
  }

  [[nodiscard]] std::int64_t average(std::int64_t sum) const {
    return sum / count_ + (sum % count_ != 0 ? 1 : 0);
  }

  std::string_view function_;
  std::int64_t count_ = 0;
  std::vector<offload_layer> sums_;
};

}  // namespace detail

struct offload_shape_costs_fn {
  /// Computes layers for a plan of many micro-batches, as `shape_costs` does for plans without
  /// links: average times, and the largest bytes of the micro-batches. The link transfers during
  /// the shortest passes, so that no order of the micro-batches exceeds the memory.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: `std::invalid_argument`
  /// if the number of layers differs between micro-batches; `std::overflow_error` if a sum of times
  /// exceeds 2^63 - 1; as `device_model`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost>
  [[nodiscard]] std::vector<offload_layer> operator()(std::vector<MicroBatch> const& batches,
                                                      device_model const& device,
                                                      Cost const& cost) const {
    detail::combined_layers combined("offload_shape_costs");
    for (auto const& batch : batches) {
      combined.add(offload_layers(std::invoke(cost, batch), device));
    }
    return combined.averages();
  }
};

/// Computes layers with modules for a plan of many micro-batches; see `offload_shape_costs_fn`.
inline constexpr offload_shape_costs_fn offload_shape_costs{};

struct simulate_offload_fn {
  /// Simulates every step and rank with the real times of each micro-batch on each stage of the
  /// plan, as `simulate_training` does in 1F1B. The modules are the modules of `offload_layers`.
  /// The bytes of a stage in a step are the peak of `measure_activations` for the largest bytes and
  /// the shortest passes of its micro-batches. `links` holds the link of each stage, as
  /// `offload_links::of_stages` returns them.
  ///
  /// Complexity: two calls of `cost` for each micro-batch, a call of `simulate_training`, and time
  /// linear in the modules for each rank and step. Memory: as `simulate_training`. Determinism: as
  /// `measure_activations` and `simulate_training`. Errors: `std::invalid_argument` if the plan is
  /// infeasible, if links or choices do not match the stages or the costs; the errors of
  /// `simulate_training`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost>
  [[nodiscard]] training_estimate operator()(offload_plan const& plan,
                                             training_data<MicroBatch> const& data,
                                             pipeline_machine const& machine,
                                             std::vector<offload_link> const& links,
                                             Cost const& cost) const {
    detail::check_size(name, "links", links.size(), machine.stages, "stages");
    if (plan.status != solve_status::solved) {
      detail::throw_invalid(name, "the plan is infeasible, must be solved");
    }
    pipeline_plan<std::int64_t> const timed{
        .boundaries = plan.boundaries,
        .choices = std::vector<std::uint32_t>(plan.choices.size(), 0)};
    auto const recomputed = [&](MicroBatch const& batch) {
      auto const& given = std::invoke(cost, batch);
      std::vector<layer_cost> costs(std::ranges::begin(given), std::ranges::end(given));
      check_choices(plan, costs.size());
      for (std::size_t l = 0; l != costs.size(); ++l) set_extra(plan.choices[l], costs[l]);
      return costs;
    };
    training_estimate result = simulate_training(timed, data, machine, recomputed);
    std::fill(result.peak_bytes.begin(), result.peak_bytes.end(), 0);
    for (std::size_t step = 0; step != data.schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != data.schedule.ranks(); ++rank) {
        detail::combined_layers combined(name);
        for (std::uint32_t const batch : data.schedule(step, rank)) {
          combined.add(offload_layers(std::invoke(cost, data.batches[batch]), machine.device));
        }
        if (combined.count() == 0) continue;
        raise_peaks(plan, combined, machine, links, result.peak_bytes);
      }
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "simulate_offload";

  static void check_choices(offload_plan const& plan, std::size_t layers) {
    detail::check_size(name, "plan.choices", plan.choices.size(), layers, "layers");
    constexpr std::size_t modules = 3;
    for (auto const& row : plan.choices) {
      detail::check_size(name, "the choices of a layer", row.size(), modules, "modules");
    }
  }

  /// Sets the first choice of `cost` to the work of the recomputed modules.
  static void set_extra(std::vector<activation_choice> const& choices, layer_cost& cost) {
    auto const is_recomputed = [&](cost_module part) {
      return choices[static_cast<std::size_t>(part)] == activation_choice::recompute;
    };
    layer_work const some = cost[recompute_choice::selective].extra;
    layer_work const all = cost[recompute_choice::full].extra;
    layer_work extra{};
    if (is_recomputed(cost_module::selective)) extra = some;
    if (is_recomputed(cost_module::rest)) {
      extra.flops += std::max<std::int64_t>(0, all.flops - some.flops);
      extra.moved_bytes += std::max<std::int64_t>(0, all.moved_bytes - some.moved_bytes);
    }
    cost.choices[0].extra = extra;
  }

  static void raise_peaks(offload_plan const& plan, detail::combined_layers const& combined,
                          pipeline_machine const& machine, std::vector<offload_link> const& links,
                          std::vector<std::int64_t>& peaks) {
    auto const layers = combined.averages();
    auto const reserve = machine.reserve_bytes.values();
    for (std::size_t s = 0; s != peaks.size(); ++s) {
      std::vector<activation_layer<>> stage;
      std::int64_t bytes = reserve.empty() ? 0 : reserve[reserve.size() == 1 ? 0 : s];
      for (std::size_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
        stage.push_back(layers[l].activations);
        detail::checked_add(name, "the bytes of a stage", bytes, layers[l].state_bytes);
      }
      std::vector<std::vector<activation_choice>> const choices(
          plan.choices.begin() + plan.boundaries[s], plan.choices.begin() + plan.boundaries[s + 1]);
      auto const depth = static_cast<std::int64_t>(machine.stages - s);
      auto const usage = measure_activations(stage, choices, links[s],
                                             {.in_flight = std::min(depth, combined.count())});
      detail::checked_add(name, "the bytes of a stage", bytes, usage.peak_bytes);
      peaks[s] = std::max(peaks[s], bytes);
    }
  }
};

/// Simulates the time of training steps that offload; see `simulate_offload_fn`.
inline constexpr simulate_offload_fn simulate_offload{};

}  // namespace omnibal::inline v0
