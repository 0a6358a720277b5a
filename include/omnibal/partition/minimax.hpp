#pragma once

/// \file
/// The most even stages of a chain whose costs add up.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/partition/detail/best_stages.hpp>
#include <omnibal/partition/detail/chain_sums.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/partition/minimax/equal_speed_minimax.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_result.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct minimax_options {
  empty_stages empty = empty_stages::forbidden;
};

struct minimax_fn;

/// Memory that calls of `minimax` reuse, and the result of the last call. `T` is the type of a
/// cost.
template <weight T = std::int64_t>
class minimax_workspace {
 public:
  using cost_type = detail::working_weight<T>;

  [[nodiscard]] partition_result<cost_type> const& result() const& noexcept { return result_; }
  void result() const&& = delete;

 private:
  friend minimax_fn;

  std::vector<cost_type> sums_;
  detail::probed_stages<cost_type> probed_;
  partition_result<cost_type> result_;
};

struct minimax_fn {
  /// Stages with the smallest possible largest cost, where the cost of a stage is the sum of the
  /// costs of its layers. Of all such stages those with the leftmost cuts: no boundary can be
  /// smaller. `cost` is called once for each layer, in order.
  ///
  /// Every stage has a layer, or with `empty_stages::allowed` the first ones may have none, as the
  /// leftmost cuts then leave the layers to the last stages that they need.
  ///
  /// Bisection on sums that occur: exact, without a tolerance. The sum of a stage is the difference
  /// of two sums of first layers, for floating-point costs too.
  ///
  /// Complexity: linear for the sums, and about ten to twenty passes over the stages, each with a
  /// search in what earlier passes left open, or none where the stage of one stays as it is. Memory:
  /// 8 bytes per layer and about 90 per stage.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for no stages, for fewer
  /// layers than stages where empty ones are forbidden and for a cost that is negative, not finite
  /// or above 2^63 - 1; `std::overflow_error` where the sum of the costs leaves its type;
  /// `std::length_error` above 2^32 - 1 layers or stages. Source: Pinar, Aykanat, "Fast optimal
  /// load balancing algorithms for 1D partitioning", JPDC 2004.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, std::size_t stages, Cost const& cost = {},
                                minimax_options const& options = {}) const {
    minimax_workspace<detail::chain_weight_of<Layers, Cost>> workspace;
    (*this)(layers, stages, cost, options, workspace);
    return std::move(workspace.result_);
  }

  /// The same with memory that is reused: a call for no more layers and stages than one before
  /// allocates nothing. The result is that of the workspace and lives until its next call.
  template <sample_range Layers, weight T, class Cost>
    requires cost_function<Cost, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::chain_weight_of<Layers, Cost>>
  auto operator()(Layers const& layers, std::size_t stages, Cost const& cost,
                  minimax_options const& options, minimax_workspace<T>& workspace) const
      -> partition_result<detail::chain_weight_of<Layers, Cost>> const& {
    detail::check_stages(name, std::ranges::size(layers), stages, options.empty);
    auto const largest = detail::sum_costs(name, layers, cost, workspace.sums_);
    detail::even_chain chain(std::span(std::as_const(workspace.sums_)), stages, workspace.probed_);
    auto& result = workspace.result_;
    result.bottleneck = chain.bottleneck(largest);
    chain.cut_leftmost(result.bottleneck, fewest(options.empty), result.boundaries);
    result.objective = result.bottleneck;
    result.lower_bound = result.bottleneck;
    result.proven = true;
    return result;
  }

  /// The same with the options as they are.
  template <sample_range Layers, weight T, class Cost>
    requires cost_function<Cost, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::chain_weight_of<Layers, Cost>>
  auto operator()(Layers const& layers, std::size_t stages, Cost const& cost,
                  minimax_workspace<T>& workspace) const
      -> partition_result<detail::chain_weight_of<Layers, Cost>> const& {
    return (*this)(layers, stages, cost, {}, workspace);
  }

  /// The same for layers that are their costs.
  template <sample_range Layers, weight T>
    requires cost_function<std::identity, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::chain_weight_of<Layers, std::identity>>
  auto operator()(Layers const& layers, std::size_t stages, minimax_workspace<T>& workspace) const
      -> partition_result<detail::chain_weight_of<Layers, std::identity>> const& {
    return (*this)(layers, stages, std::identity{}, {}, workspace);
  }

  /// The same for stages with speeds, one for each stage in order: the cost of a stage is the
  /// `double` nearest to the sum of its layers over its speed. Of several best stages those whose
  /// boundaries are first in lexicographic order.
  ///
  /// Complexity and memory: those of `partition_layers` with a base. Errors: as above, and
  /// `std::invalid_argument` for a speed that is not positive and finite.
  template <sample_range Layers, sample_range Speeds, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>> &&
        cost_function<std::identity, sample_reference<Speeds>>
  [[nodiscard]] partition_result<double> operator()(Layers const& layers, Speeds const& speeds,
                                                    Cost const& cost = {},
                                                    minimax_options const& options = {}) const {
    using sum_type = detail::chain_weight_of<Layers, Cost>;
    std::vector<sum_type> sums;
    detail::sum_costs(name, layers, cost, sums);
    partition_layers_options<double> general{.speeds = speeds,
                                             .constraints = {.empty = options.empty}};
    auto const factors = general.speeds.values();
    auto const seconds = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return static_cast<double>(sums[last] - sums[first]) / factors[stage];
    };
    std::vector<double> base(sums.size() - 1);
    for (std::size_t l = 0; l != base.size(); ++l) {
      base[l] = static_cast<double>(sums[l + 1] - sums[l]);
    }
    general.base = base;
    check_quotients(static_cast<double>(sums.back()), factors);
    return detail::best_stages(name, std::ranges::size(layers), factors.size(), seconds,
                               fits_always{}, general, detail::step_time<double>{});
  }

 private:
  static constexpr std::string_view name = "minimax";

  static void check_quotients(double sum, std::span<double const> speeds) {
    for (std::size_t s = 0; s != speeds.size(); ++s) {
      detail::check_positive(name, "speeds", s, speeds[s]);
      if (detail::is_valid_weight(sum / speeds[s])) continue;
      detail::throw_overflow(name, "the sum of the costs over speeds[" + detail::to_text(s) + "]");
    }
  }

  [[nodiscard]] static std::size_t fewest(empty_stages empty) {
    return empty == empty_stages::forbidden ? 1 : 0;
  }
};

/// The most even stages of a chain; see `minimax_fn`.
inline constexpr minimax_fn minimax{};

}  // namespace omnibal::inline v0
