// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Measures of balance and of use on a stream: pad ratio, dist ratio, imbalance, utilization.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/metrics/metric_kernels.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

namespace detail {

template <class Amounts>
inline constexpr std::size_t kinds_on_device =
    omnibal::detail::kinds_of<device_element_of<Amounts>>;

/// Checks the arguments that all ratios have in common and writes the ratios.
template <executor Exec, class Amounts, class Ratio>
void write_ratios_of(std::string_view function, Exec const& exec, Amounts const& amounts,
                     Ratio const& ratio, device_span<double> out,
                     device_span<std::uint32_t const> count, device_span<fault> faults) {
  omnibal::detail::check_index_count(function, "the amounts", amounts.size());
  check_room(function, "out", out.size(), kinds_on_device<Amounts>);
  run_on_device(exec, [&](auto& backend) {
    ratios_of(backend, detail::data_of(amounts), element_count{amounts.size(), count.data()}, ratio,
              out.data(), faults.data());
  });
}

}  // namespace detail

struct pad_ratio_fn : detail::scratch_counted<pad_ratio_fn> {
  /// Writes the share of a padded batch that is padding to `out[0]`.
  ///
  /// If `count` is given, it is one number on the device, and only the first `*count` lengths are
  /// measured. Complexity: linear, one launch. Determinism: portable, equal to `omnibal::pad_ratio`
  /// to the last bit. Errors on the host: `std::invalid_argument` for an `out` without room,
  /// `std::length_error` above 2^32 - 1 lengths; `error`. Faults on the device: `invalid_amount`,
  /// `overflow`. Source: Yao et al., OmniBal, ICML 2025.
  template <executor Exec, device_integers Lengths>
  void operator()(Exec const& exec, Lengths const& lengths, device_span<double> out,
                  device_span<std::uint32_t const> count = {},
                  device_span<fault> faults = {}) const {
    detail::write_ratios_of("gpu::pad_ratio", exec, lengths, detail::idle_share{}, out, count,
                            faults);
  }

  /// Writes the mean of the pad ratio over the groups that have samples. Errors and faults are the
  /// same as for one batch; a further fault is `unknown_index`. Complexity: linear. One thread adds
  /// the ratios in the order of the groups, because a mean of floating-point numbers depends on the
  /// order.
  template <executor Exec, device_integers Lengths>
  void operator()(Exec const& exec, device_groups groups, Lengths const& lengths,
                  device_span<double> out, device_span<fault> faults = {}) const {
    omnibal::detail::check_index_count("gpu::pad_ratio", "lengths", lengths.size());
    detail::check_room("gpu::pad_ratio", "out", out.size(), 1);
    detail::run_on_device(exec, [&](auto& backend) {
      detail::pad_ratio_of_groups(backend, groups.view, detail::data_of(lengths), lengths.size(),
                                  out.data(), faults.data());
    });
  }
};

/// Writes the pad ratio of a batch or of groups on a stream; see `pad_ratio_fn`.
inline constexpr pad_ratio_fn pad_ratio{};

struct dist_ratio_fn : detail::scratch_counted<dist_ratio_fn> {
  /// Writes the idle share of the ranks in a step, `1 - mean / largest` of their totals, for each
  /// resource separately. `out` has an element for each resource, and `totals` has the total of
  /// each rank.
  ///
  /// `count`, complexity, determinism, errors and faults are the same as for `gpu::pad_ratio`. The
  /// result equals `omnibal::dist_ratio`.
  template <executor Exec, device_demands Totals>
  void operator()(Exec const& exec, Totals const& totals, device_span<double> out,
                  device_span<std::uint32_t const> count = {},
                  device_span<fault> faults = {}) const {
    detail::write_ratios_of("gpu::dist_ratio", exec, totals, detail::idle_share{}, out, count,
                            faults);
  }

  /// Writes the mean of the dist ratio over all steps of a schedule. The group indices of rank r in
  /// step s are in `cells` at `s * ranks + r`, as in `steps::cells`. The load of each group is in
  /// `loads`. If `step_count` is given, it is one number on the device, and only the first
  /// `*step_count` steps are measured. Errors on the host: also `std::invalid_argument` if there is
  /// no rank. Faults: also `unknown_index`.
  template <executor Exec, device_demands Loads>
  void operator()(Exec const& exec, device_groups cells, std::size_t ranks, Loads const& loads,
                  device_span<double> out, device_span<std::uint32_t const> step_count = {},
                  device_span<fault> faults = {}) const {
    omnibal::detail::check_positive("gpu::dist_ratio", "ranks", ranks);
    omnibal::detail::check_index_count("gpu::dist_ratio", "loads", loads.size());
    detail::check_room("gpu::dist_ratio", "out", out.size(), detail::kinds_on_device<Loads>);
    detail::run_on_device(exec, [&](auto& backend) {
      detail::dist_ratio_of_steps(backend, cells.view, ranks, step_count.data(),
                                  detail::data_of(loads), loads.size(), out.data(), faults.data());
    });
  }
};

/// Writes the dist ratio of a step or of a schedule on a stream; see `dist_ratio_fn`.
inline constexpr dist_ratio_fn dist_ratio{};

struct imbalance_fn : detail::scratch_counted<imbalance_fn> {
  /// Writes the largest load divided by the mean load, for each resource separately, to `out`.
  ///
  /// `count`, complexity, determinism, errors and faults are the same as for `gpu::pad_ratio`. The
  /// result equals `omnibal::imbalance`.
  template <executor Exec, device_demands Loads>
  void operator()(Exec const& exec, Loads const& loads, device_span<double> out,
                  device_span<std::uint32_t const> count = {},
                  device_span<fault> faults = {}) const {
    detail::write_ratios_of("gpu::imbalance", exec, loads, detail::largest_over_mean{}, out, count,
                            faults);
  }
};

/// Writes the largest load divided by the mean load on a stream; see `imbalance_fn`.
inline constexpr imbalance_fn imbalance{};

struct utilization_fn : detail::scratch_counted<utilization_fn> {
  /// Writes the share of the capacity that is used, for each resource separately, to `out`.
  ///
  /// `count`, complexity, determinism and faults are the same as for `gpu::pad_ratio`. The result
  /// equals `omnibal::utilization`. Errors on the host: also `std::invalid_argument` for a capacity
  /// that is not positive or not finite.
  template <executor Exec, device_demands Loads, measure Capacity>
    requires omnibal::detail::same_kinds<device_element_of<Loads>, Capacity>
  void operator()(Exec const& exec, Loads const& loads, Capacity const& capacity,
                  device_span<double> out, device_span<std::uint32_t const> count = {},
                  device_span<fault> faults = {}) const {
    auto const limits = omnibal::detail::to_capacity<detail::working_weight_of<Capacity>>(
        "gpu::utilization", capacity);
    detail::mean_over_limit<detail::kinds_on_device<Loads>> ratio{};
    omnibal::detail::check_capacity("gpu::utilization", limits);
    for (std::size_t r = 0; r != limits.size(); ++r) {
      ratio.limits[r] = static_cast<double>(limits[r]);
    }
    detail::write_ratios_of("gpu::utilization", exec, loads, ratio, out, count, faults);
  }
};

/// Writes the used share of the capacity on a stream; see `utilization_fn`.
inline constexpr utilization_fn utilization{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
