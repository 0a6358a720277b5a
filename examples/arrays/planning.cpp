// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"
#include "rows.hpp"

#include <omnibal/activation_option.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <limits>
#include <utility>

namespace arrays {

namespace {

template <class C>
stage_partition to_arrays(omnibal::partition_result<C>&& found) {
  return {.status = found.status,
          .boundaries = std::move(found.boundaries),
          .bottleneck = found.bottleneck,
          .objective = found.objective,
          .lower_bound = found.lower_bound,
          .proven = found.proven,
          .stage = found.stage,
          .missing_bytes = found.missing_bytes};
}

omnibal::partition_constraints constraints_of(partition_arguments const& arguments) {
  omnibal::partition_constraints result;
  result.empty = arguments.empty;
  if (!arguments.bytes.empty()) result.bytes = arguments.bytes;
  if (!arguments.capacity.empty()) result.capacity = arguments.capacity;
  if (!arguments.min_layers.empty()) result.min_layers = arguments.min_layers;
  if (!arguments.max_layers.empty()) result.max_layers = arguments.max_layers;
  result.forbidden_cuts = arguments.forbidden_cuts;
  return result;
}

/// The sum, which is checked where the numbers are integers.
template <class T>
T add(std::string_view function, T left, T right) {
  if constexpr (std::same_as<T, std::int64_t>) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(left, right, &sum)) {
      throw std::overflow_error("omnibal::" + std::string(function) +
                                ": the sum of the costs exceeds the largest value of its type");
    }
    return sum;
  } else {
    return left + right;
  }
}

template <class T>
void check_costs(std::string_view function, std::string const& name, std::span<T const> costs) {
  for (std::size_t l = 0; l != costs.size(); ++l) {
    if (costs[l] >= T{0} && costs[l] <= std::numeric_limits<T>::max()) continue;
    reject(function, name + "[" + std::to_string(l) + "] is " + std::to_string(costs[l]) +
                         ", must be finite and not negative");
  }
}

/// The costs of layers that add up, and of the cuts at both ends of a stage.
template <class T>
class summed_stages {
 public:
  summed_stages(std::string_view function, std::span<T const> costs, std::vector<T> cuts)
      : cuts_(std::move(cuts)), layers_(costs.size()) {
    check_costs(function, "costs", costs);
    check_costs(function, "cut_costs", std::span<T const>(cuts_));
    sums_.push_back(T{});
    for (T const cost : costs) sums_.push_back(add(function, sums_.back(), cost));
    T all = sums_.back();
    for (T const cut : cuts_) all = add(function, add(function, all, cut), cut);
  }

  T operator()(std::size_t, std::size_t first, std::size_t last) const {
    T cost = static_cast<T>(sums_[last] - sums_[first]);
    if (cuts_.empty()) return cost;
    if (first != 0) cost = static_cast<T>(cost + cuts_[first]);
    if (last != layers_) cost = static_cast<T>(cost + cuts_[last]);
    return cost;
  }

  /// No more than any stage with these layers costs, also where differences of sums round.
  [[nodiscard]] std::vector<T> base() const {
    std::vector<T> result;
    if constexpr (std::same_as<T, std::int64_t>) {
      for (std::size_t l = 0; l != layers_; ++l) result.push_back(sums_[l + 1] - sums_[l]);
    }
    return result;
  }

 private:
  std::vector<T> sums_;
  std::vector<T> cuts_;
  std::size_t layers_;
};

template <class T>
std::vector<T> cuts_as(cost_list const& cuts) {
  return std::visit(
      [](auto const& list) {
        std::vector<T> result;
        for (auto const cut : list) result.push_back(static_cast<T>(cut));
        return result;
      },
      cuts);
}

template <class T>
stage_partition partition(std::span<T const> costs, partition_arguments const& arguments) {
  std::string_view const name =
      arguments.micro_batches == 0 ? "partition_layers" : "partition_throughput";
  auto cuts = cuts_as<T>(arguments.cut_costs);
  if (!cuts.empty()) {
    check_count(name, "there are " + std::to_string(cuts.size()) + " costs of cuts", cuts.size(),
                costs.size());
  }
  summed_stages<T> const stages(name, costs, std::move(cuts));
  auto const constraints = constraints_of(arguments);
  if (arguments.micro_batches == 0) {
    omnibal::partition_layers_options<T> options{.base = {}, .constraints = constraints};
    if (auto const base = stages.base(); !base.empty()) options.base = base;
    return to_arrays(omnibal::partition_layers(costs.size(), arguments.stages, stages,
                                               omnibal::fits_always{}, options));
  }
  omnibal::partition_throughput_options<T> options{
      .micro_batches = arguments.micro_batches, .base = {}, .constraints = constraints};
  if (auto const base = stages.base(); !base.empty()) options.base = base;
  return to_arrays(omnibal::partition_throughput(costs.size(), arguments.stages, stages,
                                                 omnibal::fits_always{}, options));
}

}  // namespace

stage_partition partition_minimax(cost_list const& costs, std::size_t stages,
                                  omnibal::empty_stages empty) {
  return std::visit(
      [&](auto list) {
        return to_arrays(
            omnibal::partition_minimax(list, stages, std::identity{}, {.empty = empty}));
      },
      costs);
}

stage_partition partition_layers(cost_list const& costs, partition_arguments const& arguments) {
  if (auto const* const list = std::get_if<integers>(&costs);
      list != nullptr && std::holds_alternative<integers>(arguments.cut_costs)) {
    return partition(*list, arguments);
  }
  std::vector<double> const list = cuts_as<double>(costs);
  return partition(std::span(list), arguments);
}

recompute_choice_list select_recompute(cost_list const& times, integers bytes,
                                       integers transient_bytes,
                                       std::span<std::uint32_t const> offsets, std::int64_t budget,
                                       omnibal::select_recompute_options const& options) {
  std::string_view const name = "select_recompute";
  omnibal::grouping const layers({offsets.begin(), offsets.end()},
                                 std::vector<std::uint32_t>(offsets.empty() ? 0 : offsets.back()));
  std::size_t const count = layers.item_count();
  check_count(name, "there are " + std::to_string(size_of(times)) + " times", size_of(times),
              count);
  check_count(name, "there are " + std::to_string(bytes.size()) + " bytes", bytes.size(), count);
  if (!transient_bytes.empty()) {
    check_count(name, "there are " + std::to_string(transient_bytes.size()) + " transient bytes",
                transient_bytes.size(), count);
  }
  return std::visit(
      [&]<class T>(std::span<T const> list) {
        std::vector<omnibal::activation_option<T>> ways(count);
        for (std::size_t i = 0; i != count; ++i) {
          ways[i] = {list[i], bytes[i], transient_bytes.empty() ? 0 : transient_bytes[i]};
        }
        std::vector<std::span<omnibal::activation_option<T> const>> of_layers;
        for (std::size_t l = 0; l != layers.size(); ++l) {
          of_layers.push_back(std::span(std::as_const(ways)).subspan(offsets[l], layers[l].size()));
        }
        auto found = omnibal::select_recompute(of_layers, budget, options);
        return recompute_choice_list{.status = found.status,
                                     .choices = std::move(found.choices),
                                     .time = found.time,
                                     .lower_bound = found.lower_bound,
                                     .proven = found.proven,
                                     .bytes = found.bytes,
                                     .missing_bytes = found.missing_bytes};
      },
      times);
}

omnibal::context_plan context_groups(integers lengths, std::size_t ranks,
                                     omnibal::context_cost const& cost,
                                     std::int64_t bytes_per_token,
                                     omnibal::context_groups_options const& options) {
  if (bytes_per_token < 0) {
    reject("context_groups",
           "bytes_per_token is " + std::to_string(bytes_per_token) + ", must not be negative");
  }
  auto const memory = [&](std::int64_t length, std::uint32_t degree) {
    std::int64_t const share = length / degree + (length % degree != 0 ? 1 : 0);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(share, bytes_per_token, &bytes)) {
      throw std::overflow_error("omnibal::context_groups: the bytes of " + std::to_string(length) +
                                " tokens exceed the largest value of their type");
    }
    return bytes;
  };
  return omnibal::context_groups(lengths, ranks, cost, memory, options);
}

}  // namespace arrays
