// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options and results of partitions.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// A functor that measures the elements of a range as values of `T` without losing fractions.
template <class Measure, class T, class Values>
concept measures_as = cost_function<Measure, sample_reference<Values>> &&
    (std::floating_point<T> || std::integral<demand_result<Measure, sample_reference<Values>>>);

}  // namespace detail

/// A list of weights in an option, which owns its weights. The list is created from weights in
/// braces, from any range of weights, from any range and a measure, or from one weight. A range and
/// a measure are `{layers, &layer::bytes}`.
///
/// Errors: `std::invalid_argument` for an unsigned value above 2^63 - 1, and for one weight with a
/// fraction in a list of integers.
template <scalar_measure T>
class weight_list {
 public:
  weight_list() = default;
  weight_list(std::initializer_list<T> weights) : weights_(weights) {}

  /// Creates a list of one value, such as `.capacity = 80e9`. If the option says so, the value
  /// applies to all elements.
  template <scalar_measure Value>
  weight_list(Value value) {
    if constexpr (std::integral<T> && std::floating_point<Value>) {
      if (!(value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value)) {
        detail::throw_invalid("weight_list", "the value is " + detail::to_text(value) +
                                                 ", must be a whole number below 2^63");
      }
      weights_.push_back(static_cast<T>(value));
    } else {
      using working = detail::working_weight<Value>;
      weights_.push_back(
          static_cast<T>(detail::to_working<working>({"weight_list", "weight", 0}, value)));
    }
  }

  template <sample_range Values, detail::measures_as<T, Values> Measure = std::identity>
  weight_list(Values const& values, Measure const& measure = {}) {
    weights_.reserve(std::ranges::size(values));
    for (auto&& value : values) {
      using working = detail::working_weight<demand_result<Measure, sample_reference<Values>>>;
      auto const weight = detail::to_working<working>({"weight_list", "weight", weights_.size()},
                                                      std::invoke(measure, value));
      weights_.push_back(static_cast<T>(weight));
    }
  }

  [[nodiscard]] bool empty() const noexcept { return weights_.empty(); }
  [[nodiscard]] std::span<T const> values() const& noexcept { return weights_; }
  void values() const&& = delete;

 private:
  std::vector<T> weights_;
};

/// Whether stages may be empty. With `forbidden` every stage has at least one layer. With `allowed`
/// the number of stages is a maximum.
enum class empty_stages { forbidden, allowed };

/// A layer that must run on a given stage.
struct pinned_layer {
  std::uint32_t layer;
  std::uint32_t stage;
};

/// The layers from `first` to `last`, both included, which must be on the same stage.
struct tied_layers {
  std::uint32_t first;
  std::uint32_t last;
};

/// Constraints on the stages of a partition; none by default. A list with one value applies to
/// every stage.
struct partition_constraints {
  empty_stages empty = empty_stages::forbidden;
  /// The memory of each layer in bytes; used with `capacity`.
  weight_list<std::int64_t> bytes{};
  /// The memory of each stage, or of each device, in bytes.
  weight_list<std::int64_t> capacity{};
  /// The smallest number of layers of each stage that is not empty.
  weight_list<std::int64_t> min_layers{};
  /// The largest number of layers of each stage.
  weight_list<std::int64_t> max_layers{};
  std::vector<pinned_layer> pinned{};
  /// Layers that may not be the first layer of a stage.
  std::vector<std::uint32_t> forbidden_cuts{};
  std::vector<tied_layers> tied{};
  /// The number of devices, if devices run several stages: stage s runs on device s modulo
  /// `devices`. The load of a device is the sum of the costs of its stages, and its memory holds
  /// all of its stages. Zero means one device for each stage.
  std::size_t devices = 0;
};

/// Options of `partition_layers`; `C` is the type of a cost in the result.
template <scalar_measure C>
struct partition_layers_options {
  /// A weight for each layer: the sum over consecutive layers must never exceed their cost as a
  /// stage. A base makes the search faster.
  weight_list<C> base{};
  /// A speed for each stage, if stages differ in speed. The sum of `base` over consecutive layers,
  /// divided by the speed of a stage, must never exceed their cost as that stage. The function does
  /// not divide the cost itself, because the functor of the cost receives the stage.
  weight_list<double> speeds{};
  partition_constraints constraints{};
  /// The largest number of partial solutions that a search with `devices` keeps at the same time.
  /// If this number does not suffice, the search is not exact.
  std::size_t labels = 100'000;
};

/// Options of `partition_throughput`: the options of `partition_layers`, and the number of
/// micro-batches.
template <scalar_measure C>
struct partition_throughput_options {
  /// The number of micro-batches of a step; must be positive.
  std::size_t micro_batches = 0;
  weight_list<C> base{};
  weight_list<double> speeds{};
  partition_constraints constraints{};
  std::size_t labels = 100'000;
};

/// A predicate that accepts every stage.
struct fits_always {
  [[nodiscard]] constexpr bool operator()(std::size_t, std::size_t, std::size_t) const {
    return true;
  }
};

/// A number of layers, or a range of layers of which only the size is used.
template <class Layers>
concept layer_chain = std::integral<Layers> || sample_range<Layers>;

namespace detail {

/// Throws unless `layers` layers can be cut into `stages` stages.
inline void check_stages(std::string_view function, std::size_t layers, std::size_t stages,
                         empty_stages empty) {
  check_positive(function, "stages", stages);
  check_number(function, "stages", stages);
  if (empty == empty_stages::allowed || layers >= stages) return;
  throw_invalid(function, to_text(layers) + " layers do not give " + to_text(stages) +
                              " stages a layer each, and empty stages are forbidden");
}

/// The type of a stage cost. Types that are not a `stage_cost` have a default, so that the
/// compiler's error message names the concept.
template <class StageCost>
struct stage_weight {
  using type = std::int64_t;
};

template <stage_cost StageCost>
struct stage_weight<StageCost> {
  using type = working_weight<std::remove_cvref_t<
      std::invoke_result_t<StageCost const&, std::size_t, std::size_t, std::size_t>>>;
};

/// The type of the cost of a stage in the result: 64-bit integers, or `double` for floating-point
/// costs.
template <class StageCost>
using stage_weight_of = typename stage_weight<StageCost>::type;

/// Throws if the number of layers is negative or exceeds 32-bit indices; returns the number.
template <layer_chain Layers>
[[nodiscard]] std::size_t count_layers(std::string_view function, Layers const& layers) {
  std::size_t count = 0;
  if constexpr (sample_range<Layers>) {
    count = std::ranges::size(layers);
  } else {
    if constexpr (std::signed_integral<Layers>) check_weight(function, "layers", 0, layers);
    count = static_cast<std::size_t>(layers);
  }
  check_index_count(function, "layers", count);
  return count;
}

}  // namespace detail

/// The stages of a chain, as a partition returns them. Stage s runs the layers [boundaries[s],
/// boundaries[s + 1]).
template <scalar_measure C>
struct partition_result {
  /// The outcome. The status is `infeasible` if no stages satisfy the memory and the predicate. The
  /// status is `not_found` if a search with `devices` used up its labels before it found any
  /// stages. In both cases there are no boundaries.
  solve_status status = solve_status::solved;
  /// The boundaries, from zero to the number of layers; one more boundary than stages.
  std::vector<std::uint32_t> boundaries{};
  /// The largest cost of a stage.
  C bottleneck{};
  /// The minimized value: the bottleneck, or the largest load of a device if devices run several
  /// stages. For `partition_throughput` the value is the time of a step.
  C objective{};
  /// A lower bound of the objective: no stages have a smaller objective.
  C lower_bound{};
  /// True if it is proved that no stages have a smaller objective; if the status is `infeasible`,
  /// that fewer missing bytes do not suffice.
  bool proven = false;
  /// If the status is `infeasible`, the first stage with the largest shortfall of memory. If the
  /// memory would suffice, the first stage that the layers do not reach.
  std::uint32_t stage = 0;
  /// If the status is `infeasible`, the smallest number of bytes that must be added to every
  /// capacity so that some stages satisfy all constraints. The capacities are the capacities in
  /// `partition_constraints` and in a `memory_rule`. The number is zero if no memory helps, because
  /// the constraints or a predicate that is not a `memory_rule` allow no stages.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(partition_result const&, partition_result const&) = default;
};

/// A stage predicate that also returns the number of bytes by which a stage exceeds its memory. The
/// value `missing_bytes(stage, first, last)` is positive if the stage does not fit; otherwise it is
/// the remaining memory as a negative number. If no stages satisfy such a predicate, the result of
/// a partition has a stage and its missing bytes.
template <class Predicate>
concept memory_predicate = stage_predicate<Predicate> &&
    requires(Predicate const& rule, std::size_t number) {
  { rule.missing_bytes(number, number, number) } -> std::same_as<std::int64_t>;
};

namespace detail {

/// A whole number of bytes, or a functor from a stage to a whole number of bytes.
template <class Capacity>
concept stage_capacity = integral_measure<Capacity> ||
    (std::regular_invocable<Capacity const&, std::size_t>&&
         integral_measure<std::remove_cvref_t<std::invoke_result_t<Capacity const&, std::size_t>>>);

/// A stage cost in whole numbers of bytes.
template <class Bytes>
concept stage_bytes = stage_cost<Bytes> && integral_measure<
    std::remove_cvref_t<std::invoke_result_t<Bytes const&, std::size_t, std::size_t, std::size_t>>>;

}  // namespace detail

/// A stage predicate with the memory rule of a trainer. Stages fit if `bytes(stage, first, last)`
/// is at most `capacity`. The capacity is a number or a functor of the stage. The rule is passed to
/// a partition as its predicate:
/// `partition_layers(layers, stages, cost, memory_rule{bytes, 80'000'000'000})`.
///
/// The bytes may depend on the stage, for example on its micro-batches in flight in 1F1B, and need
/// not be a sum over the layers. If they are a sum, a search with `partition_constraints` is
/// faster. Errors of a call: `std::invalid_argument` for bytes or a capacity that is negative or
/// above
/// 2^63 - 1.
template <detail::stage_bytes Bytes, detail::stage_capacity Capacity = std::int64_t>
struct memory_rule {
  Bytes bytes;
  Capacity capacity;

  [[nodiscard]] std::int64_t missing_bytes(std::size_t stage, std::size_t first,
                                           std::size_t last) const {
    auto const taken =
        detail::checked_cost<std::int64_t>(name, "bytes", stage, bytes(stage, first, last));
    return taken - detail::checked_cost<std::int64_t>(name, "capacity", stage, of(stage));
  }

  [[nodiscard]] bool operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    return missing_bytes(stage, first, last) <= 0;
  }

 private:
  static constexpr std::string_view name = "memory_rule";

  [[nodiscard]] auto of(std::size_t stage) const {
    if constexpr (std::integral<Capacity>) {
      return capacity;
    } else {
      return capacity(stage);
    }
  }
};

template <class Bytes, class Capacity>
memory_rule(Bytes, Capacity) -> memory_rule<Bytes, Capacity>;

}  // namespace omnibal::inline v0
