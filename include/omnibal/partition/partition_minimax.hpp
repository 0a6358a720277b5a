// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balanced stages of a chain whose costs add up.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/detail/search.hpp>
#include <omnibal/partition/detail/solve_stages.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_minimax/even_cuts.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// The ends of the stages in three probes. A probe ends each stage as far to the right as a limit
/// allows. If a limit is between two other limits, its ends are between the ends of the other two.
struct probe_ends {
  std::vector<std::uint32_t> low;   ///< at the largest limit that was too small
  std::vector<std::uint32_t> high;  ///< at the smallest limit that sufficed
  std::vector<std::uint32_t> now;

  void reset(std::size_t stages, std::size_t layers) {
    low.assign(stages + 1, 0);
    high.assign(stages + 1, static_cast<std::uint32_t>(layers));
    now.resize(stages + 1);
  }
};

/// Cuts a chain into at most a given number of equally fast stages, by bisection over sums of
/// consecutive layers.
template <class T>
class equal_speed_partition_minimax {
 public:
  equal_speed_partition_minimax(std::span<T const> sums, std::size_t stages, probe_ends& ends)
      : sums_(sums), stages_(stages), ends_(ends) {
    ends_.reset(stages, layers());
  }

  /// Returns the smallest possible bottleneck. `largest` is the largest cost of a layer.
  ///
  /// A probe returns the largest load that occurred, or the smallest load that was too large.
  /// Therefore both ends of the bisection are always possible loads.
  [[nodiscard]] T bottleneck(T largest) {
    T const mean = min_largest(sums_.back(), stages_);
    T low = std::max(largest, mean);
    T high = std::min(sums_.back(), greedy_limit(mean, largest));
    while (low < high) {
      outcome const probed = probe(middle(low, high));
      (probed.fits ? high : low) = probed.value;
    }
    return high;
  }

  /// Finds the leftmost boundaries with loads up to `limit`. If `fewest` is one, every stage has a
  /// layer. Precondition: `limit` is at least the smallest possible bottleneck.
  void cut_leftmost(T limit, std::size_t fewest, std::vector<std::uint32_t>& boundaries) const {
    boundaries.resize(stages_ + 1);
    std::size_t last = layers();
    boundaries[stages_] = static_cast<std::uint32_t>(last);
    for (std::size_t s = stages_; s-- != 1;) {
      std::size_t const least = s * fewest;
      std::size_t const most = std::min<std::size_t>(last - fewest, ends_.high[s]);
      last = first_false(least, most,
                         [end = sums_[last], sums = sums_.data(), limit](std::size_t first) {
                           return end - sums[first] > limit;
                         });
      boundaries[s] = static_cast<std::uint32_t>(last);
    }
    boundaries[0] = 0;
  }

 private:
  struct outcome {
    bool fits;
    T value;
  };

  [[nodiscard]] std::size_t layers() const { return sums_.size() - 1; }
  [[nodiscard]] T load(std::size_t first, std::size_t last) const {
    return static_cast<T>(sums_[last] - sums_[first]);
  }

  /// Returns a limit that always suffices: with this limit, every stage except the last one has
  /// more than the mean.
  [[nodiscard]] T greedy_limit(T mean, T largest) const {
    if constexpr (std::floating_point<T>) {
      return (mean + largest) * (1 + 16 * std::numeric_limits<T>::epsilon());
    } else {
      return largest < sums_.back() - mean ? static_cast<T>(mean + largest) : sums_.back();
    }
  }

  /// Returns the number of layers that would have the cost `limit` if all layers cost the same.
  [[nodiscard]] std::size_t mean_reach(T limit) const {
    double const share = static_cast<double>(limit) / static_cast<double>(sums_.back());
    return static_cast<std::size_t>(share * static_cast<double>(layers()));
  }

  [[nodiscard]] outcome probe(T limit) {
    T realized{};
    T overflow = std::numeric_limits<T>::max();
    std::size_t first = 0;
    std::size_t const reach = mean_reach(limit);
    for (std::size_t s = 1; s != stages_; ++s) {
      T const start = sums_[first];
      std::size_t const least = std::max<std::size_t>(first, ends_.low[s]);
      std::size_t const last = first_false_near(
          first + reach, least, ends_.high[s],
          [=, next = sums_.data() + 1](std::size_t l) { return next[l] - start <= limit; });
      ends_.now[s] = static_cast<std::uint32_t>(last);
      realized = std::max(realized, static_cast<T>(sums_[last] - start));
      if (last == layers()) {
        std::fill(ends_.now.begin() + static_cast<std::ptrdiff_t>(s), ends_.now.end(),
                  ends_.now[s]);
        ends_.high.swap(ends_.now);
        return {true, realized};
      }
      overflow = std::min(overflow, static_cast<T>(sums_[last + 1] - start));
      first = last;
    }
    T const rest = static_cast<T>(sums_.back() - sums_[first]);
    if (rest <= limit) {
      ends_.high.swap(ends_.now);
      return {true, std::max(realized, rest)};
    }
    ends_.low.swap(ends_.now);
    return {false, std::min(overflow, rest)};
  }

  std::span<T const> sums_;
  std::size_t stages_;
  probe_ends& ends_;
};

}  // namespace detail

struct partition_minimax_options {
  empty_stages empty = empty_stages::forbidden;
};

struct partition_minimax_fn;

/// The memory that calls of `partition_minimax` reuse, and the result of the last call. `T` is the
/// type of a cost.
template <scalar_measure T = std::int64_t>
class partition_minimax_workspace {
 public:
  using cost_type = detail::working_weight<T>;

  [[nodiscard]] partition_result<cost_type> const& result() const& noexcept { return result_; }
  void result() const&& = delete;

 private:
  friend partition_minimax_fn;

  std::vector<cost_type> sums_;
  detail::probe_ends ends_;
  detail::even_cuts_memory<cost_type> even_;
  partition_result<cost_type> result_;
};

struct partition_minimax_fn {
  /// Partitions a chain into stages with the smallest possible largest cost. The cost of a stage is
  /// the sum of the costs of its layers. Among all such partitions the result has the largest
  /// possible cost of the smallest stage. Boundaries then move by single layers, in at most four
  /// sweeps, as long as the smaller adjacent stage grows. If a long chain has very unequal layers,
  /// a simpler rule balances the stages: each stage ends near the mean of the remaining layers. The
  /// smallest stage can then cost less. If layers have equal positive costs, stages differ by at
  /// most one layer, the longer stages first. `cost` is called once for each layer, in order.
  ///
  /// Every stage has a layer. With `empty_stages::allowed` a stage may have no layer.
  ///
  /// The method is a bisection over possible costs of a stage. It is exact and has no tolerance.
  /// The cost of a stage is the difference of two prefix sums, also for floating-point costs.
  ///
  /// Complexity: time linear in the layers for the sums, and about ten to twenty passes over the
  /// stages. Each pass searches for the end of a stage near the mean length, within the range that
  /// earlier passes left. Memory: 20 bytes for each layer, 56 bytes for each stage, and 6 KiB.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for no stages, for a cost
  /// that is negative, not finite or above 2^63 - 1, and for fewer layers than stages if empty
  /// stages are forbidden. Further errors: `std::overflow_error` if the sum of the costs exceeds
  /// its type; `std::length_error` above 2^32 - 1 layers or stages. Source: Pinar, Aykanat, "Fast
  /// optimal load balancing algorithms for 1D partitioning", JPDC 2004.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, std::size_t stages, Cost const& cost = {},
                                partition_minimax_options const& options = {}) const {
    partition_minimax_workspace<detail::measured_weight<Layers, Cost>> workspace;
    (*this)(layers, stages, cost, options, workspace);
    return std::move(workspace.result_);
  }

  /// Partitions a chain by the same rules and reuses the memory of a workspace. A call allocates
  /// nothing if an earlier call had at least the same numbers of layers and stages. The workspace
  /// owns the result, which is valid until the next call with this workspace.
  template <sample_range Layers, scalar_measure T, class Cost>
    requires cost_function<Cost, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::measured_weight<Layers, Cost>>
  auto operator()(Layers const& layers, std::size_t stages, Cost const& cost,
                  partition_minimax_options const& options,
                  partition_minimax_workspace<T>& workspace) const
      -> partition_result<detail::measured_weight<Layers, Cost>> const& {
    detail::check_stages(name, std::ranges::size(layers), stages, options.empty);
    auto const largest = detail::sum_costs(name, layers, cost, workspace.sums_);
    detail::equal_speed_partition_minimax chain(std::span(std::as_const(workspace.sums_)), stages,
                                                workspace.ends_);
    auto& result = workspace.result_;
    result.bottleneck = chain.bottleneck(largest);
    std::size_t const fewest = options.empty == empty_stages::forbidden ? 1 : 0;
    chain.cut_leftmost(result.bottleneck, fewest, workspace.even_.leftmost);
    detail::even_cuts(std::span(std::as_const(workspace.sums_)), result.bottleneck, fewest,
                      std::span(std::as_const(workspace.ends_.high)), workspace.even_)
        .run(result.boundaries);
    result.objective = result.bottleneck;
    result.lower_bound = result.bottleneck;
    result.proven = true;
    return result;
  }

  /// Partitions a chain by the same rules with default options and a workspace.
  template <sample_range Layers, scalar_measure T, class Cost>
    requires cost_function<Cost, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::measured_weight<Layers, Cost>>
  auto operator()(Layers const& layers, std::size_t stages, Cost const& cost,
                  partition_minimax_workspace<T>& workspace) const
      -> partition_result<detail::measured_weight<Layers, Cost>> const& {
    return (*this)(layers, stages, cost, {}, workspace);
  }

  /// Partitions a chain of layers that are their own costs, with default options and a workspace.
  template <sample_range Layers, scalar_measure T>
    requires cost_function<std::identity, sample_reference<Layers>> &&
        std::same_as<detail::working_weight<T>, detail::measured_weight<Layers, std::identity>>
  auto operator()(Layers const& layers, std::size_t stages,
                  partition_minimax_workspace<T>& workspace) const
      -> partition_result<detail::measured_weight<Layers, std::identity>> const& {
    return (*this)(layers, stages, std::identity{}, {}, workspace);
  }

  /// Partitions a chain for stages of different speed; `speeds` has one speed for each stage in
  /// order. The cost of a stage is the `double` nearest to the sum of its layers divided by its
  /// speed. Among several best partitions the result has the boundaries that are first in
  /// lexicographic order.
  ///
  /// Complexity and memory: as `partition_layers` with a base. Errors: as above, and
  /// `std::invalid_argument` for a speed that is not positive and finite.
  template <sample_range Layers, sample_range Speeds, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>> &&
        cost_function<std::identity, sample_reference<Speeds>>
  [[nodiscard]] partition_result<double> operator()(
      Layers const& layers, Speeds const& speeds, Cost const& cost = {},
      partition_minimax_options const& options = {}) const {
    using sum_type = detail::measured_weight<Layers, Cost>;
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
    return detail::solve_stages(name, std::ranges::size(layers), factors.size(), seconds,
                                fits_always{}, general, detail::step_time<double>{});
  }

 private:
  static constexpr std::string_view name = "partition_minimax";

  static void check_quotients(double sum, std::span<double const> speeds) {
    for (std::size_t s = 0; s != speeds.size(); ++s) {
      detail::check_positive(name, "speeds", s, speeds[s]);
      if (detail::is_valid_weight(sum / speeds[s])) continue;
      detail::throw_overflow(name, "the sum of the costs over speeds[" + detail::to_text(s) + "]");
    }
  }
};

/// Partitions a chain into the most balanced stages; see `partition_minimax_fn`.
inline constexpr partition_minimax_fn partition_minimax{};

}  // namespace omnibal::inline v0
