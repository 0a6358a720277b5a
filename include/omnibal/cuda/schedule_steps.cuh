// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The schedule of an epoch, on the device.

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/schedule_steps/schedule_steps_kernels.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct schedule_steps_fn : detail::scratch_counted<schedule_steps_fn> {
  /// Schedules groups into steps, equal to `omnibal::schedule_steps` bit for bit. A step has one
  /// group for each rank. Groups are balanced inside a step in every resource, and random between
  /// steps. The load of each group is in `loads`, as integers or resources of integers.
  /// `options.carried` must be empty, because carried groups are on the device: `carried` contains
  /// each group as often as epochs omitted it. `options.groups_per_rank` must be 1, because bundles
  /// of groups are made on the host.
  ///
  /// The sequence of launches does not depend on the loads: seven for each of `options.rounds`.
  /// Their blocks end at once when no cell remains to be cut.
  ///
  /// Complexity: a sort for each resource; each round that cuts passes over the groups once for
  /// each resource and once more. Memory: about 50 + 28R bytes per group of R resources, and the
  /// memory of the sorts. Determinism: portable. Does not synchronize.
  /// Errors: `std::invalid_argument` if there are no ranks, if `max_dist_ratio` is negative or not
  /// finite, if `out` has another size than `cells` returns, or if the options have carried groups
  /// or several groups per rank; `std::length_error` if groups, carried groups and ranks, or the
  /// groups times R + 1, exceed 2^32 - 1; `gpu::error`. Faults on the device: `invalid_amount` for
  /// a load that is negative or above 2^63 - 1; `unknown_index` for a carried group that does not
  /// exist. Source: as `omnibal::schedule_steps`.
  template <executor Exec, device_demands Loads>
  void operator()(Exec const& exec, Loads const& loads, std::size_t ranks,
                  schedule_steps_options const& options, device_span<std::uint32_t const> carried,
                  schedule_span const& out) const {
    std::size_t const cells = this->cells(loads.size(), carried.size(), ranks, options);
    detail::check_room(name, "out.groups", out.groups.size(), cells, cells);
    using load_type = device_element_of<Loads>;
    device_span<load_type const> const all(detail::data_of(loads), loads.size());
    detail::run_on_device(exec,
                          [&](auto& backend) { run(backend, all, ranks, options, carried, out); });
  }

  /// Returns the number of groups in all steps of a schedule, repetitions counted. Errors: the
  /// errors of the call.
  [[nodiscard]] std::size_t cells(std::size_t groups, std::size_t carried, std::size_t ranks,
                                  schedule_steps_options const& options) const {
    if (!options.carried.empty()) {
      omnibal::detail::throw_invalid(name, "options.carried has " +
                                               omnibal::detail::to_text(options.carried.size()) +
                                               " groups, must be empty");
    }
    if (options.groups_per_rank != 1) {
      omnibal::detail::throw_invalid(name, "options.groups_per_rank is " +
                                               omnibal::detail::to_text(options.groups_per_rank) +
                                               ", must be 1 on a device");
    }
    omnibal::detail::check_schedule(name, groups, ranks, options);
    omnibal::detail::check_index_count(name, "the schedule", groups + carried);
    return omnibal::detail::shape_of_schedule(groups, carried, ranks, options.remainder).cells();
  }

  /// Converts `out.groups`, copied to the host, into a schedule of the host. Errors:
  /// `std::invalid_argument` for another number of groups than `cells` returns, and the errors of
  /// the call.
  [[nodiscard]] steps to_steps(std::span<std::uint32_t const> of_cells, std::size_t groups,
                               std::size_t carried, std::size_t ranks,
                               schedule_steps_options const& options) const {
    std::size_t const count = cells(groups, carried, ranks, options);
    detail::check_room(name, "of_cells", of_cells.size(), count, count);
    auto const shape =
        omnibal::detail::shape_of_schedule(groups, carried, ranks, options.remainder);
    steps result(ranks);
    result.reserve(count / ranks + 1, count);
    for (std::size_t cell = 0; cell != count; ++cell) {
      result.push(of_cells[cell]);
      if (cell < count - shape.repeated) {
        result.close();
      } else {
        result.close_repeat();
      }
    }
    result.finish();
    return result;
  }

 private:
  static constexpr std::string_view name = "gpu::schedule_steps";

  template <class Backend, class Load>
  static void run(Backend& backend, device_span<Load const> loads, std::size_t ranks,
                  schedule_steps_options const& options, device_span<std::uint32_t const> carried,
                  schedule_span const& out) {
    detail::schedule_steps(
        backend, loads, carried,
        omnibal::detail::shape_of_schedule(loads.size(), carried.size(), ranks, options.remainder),
        omnibal::detail::schedule_rng(options.seed, options.epoch), options.max_dist_ratio,
        options.rounds, out);
  }
};

/// Schedules the groups of an epoch into steps, on the device; see `schedule_steps_fn`.
inline constexpr schedule_steps_fn schedule_steps{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
