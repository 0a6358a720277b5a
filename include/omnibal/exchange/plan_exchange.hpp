// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange plans that all ranks agree on.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/detail/phase_gather.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

/// A balancer for the integers to which ranks map the costs of their samples.
template <class Balance, class Samples, class Cost, class Bytes>
concept sample_planner = demand_function<Cost, sample_reference<Samples>> &&
    bytes_function<Bytes, sample_reference<Samples>> &&
    amount_balancer<Balance, demand_result<Cost, sample_reference<Samples>>>;

/// A cost and bytes for `rebalance` with a cost of `R` kinds.
template <std::size_t R, class Samples, class Cost, class Bytes>
concept planned_kinds = sample_planner<rebalance_fn, Samples, Cost, Bytes> &&
    (cost_kinds<Samples, Cost> == R);

}  // namespace detail

/// Memory of `plan_exchange` for a cost of `R` kinds, and its last result. Use the same workspace
/// in all steps.
template <std::size_t R = 1>
class plan_exchange_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] exchange_plan const& result() const& { return planner_.result(); }
  void result() const&& = delete;

 private:
  friend struct plan_exchange_fn;

  detail::phase_gather<1> phases_;
  detail::agreement<detail::phase_facts> on_arguments_;
  detail::agreement<std::uint64_t> on_plan_;
  make_plan_workspace<R> planner_;
};

struct plan_exchange_fn {
  /// Plans an exchange of the samples of all ranks that makes loads even; the plan is equal on all
  /// ranks. `local` contains the samples of this rank. `cost` and `bytes` measure a sample. Bytes
  /// are integers; costs are integers, floating-point numbers or resources. Both functors are
  /// called once for each local sample, in order, and never for a sample of another rank. Every
  /// rank then computes the same plan as `make_plan`; no rank sends the plan.
  ///
  /// The owner of a sample maps a floating-point cost c to floor(c * 2^31 / m). Here m is the
  /// largest cost of all ranks. The ranks therefore decide on equal integers.
  ///
  /// A collective call of three collectives. The first checks that all ranks can continue with the
  /// same options. The second gathers the costs and bytes in blocks padded to the rank with the
  /// most samples. The third checks that all ranks have the same plan. Complexity and memory: the
  /// same as `make_plan`, plus 16(R + 1) bytes per sample for R kinds of cost. Determinism:
  /// portable. Errors on all ranks if there is an error on any rank: `communication_error` if
  /// another rank has failed, `std::invalid_argument` if options or plans differ. Errors of a
  /// failed rank: `std::invalid_argument` if a cost or bytes are negative, not finite or above
  /// 2^63 - 1, the errors of `make_plan`, and any exception of a functor.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes,
            detail::sample_planner<Samples, Cost, Bytes> Balance = rebalance_fn>
  [[nodiscard]] exchange_plan operator()(Comm&& comm, Samples const& local, Cost const& cost,
                                         Bytes const& bytes, make_plan_options const& options = {},
                                         Balance const& balance = rebalance) const {
    plan_exchange_workspace<detail::cost_kinds<Samples, Cost>> workspace;
    return (*this)(comm, local, cost, bytes, options, balance, workspace);
  }

  /// Plans an exchange in `workspace`, for a training loop. With `rebalance` a call allocates only
  /// if it requires more memory than all earlier calls. The workspace contains the result.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes,
            detail::sample_planner<Samples, Cost, Bytes> Balance>
  exchange_plan const& operator()(
      Comm&& comm, Samples const& local, Cost const& cost, Bytes const& bytes,
      make_plan_options const& options, Balance const& balance,
      plan_exchange_workspace<detail::cost_kinds<Samples, Cost>>& workspace) const {
    auto const reports = workspace.on_arguments_.run({name, "options"}, comm, [&](auto& report) {
      detail::check_exchange_options(name, options, detail::rank_count(comm));
      std::size_t const count = std::ranges::size(local);
      detail::check_index_count(name, "local", count);
      workspace.phases_.clear();
      workspace.phases_.own[0].measure(name, local, cost, bytes);
      report.facts = workspace.phases_.facts(count);
      report.digest = detail::digest_of_options(
          options, detail::shape_of_cost<demand_result<Cost, sample_reference<Samples>>>);
    });
    workspace.phases_.run(comm, reports);
    auto const& all = workspace.phases_.all[0];
    detail::cost_column<detail::cost_kinds<Samples, Cost>> const costs{all.costs};
    workspace.on_plan_.run({name, "plans"}, comm, [&](auto& report) {
      report.digest = make_plan_fn::plan(name, workspace.phases_.offsets, costs, all.bytes, options,
                                         balance, workspace.planner_)
                          .digest();
    });
    return workspace.result();
  }

  /// Plans an exchange in `workspace` with `rebalance`.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes, std::size_t R>
    requires(detail::planned_kinds<R, Samples, Cost, Bytes>)
  exchange_plan const& operator()(Comm&& comm, Samples const& local, Cost const& cost,
                                  Bytes const& bytes, make_plan_options const& options,
                                  plan_exchange_workspace<R>& workspace) const {
    return (*this)(comm, local, cost, bytes, options, rebalance, workspace);
  }

  /// Plans an exchange in `workspace` with `rebalance` and default options.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes, std::size_t R>
    requires(detail::planned_kinds<R, Samples, Cost, Bytes>)
  exchange_plan const& operator()(Comm&& comm, Samples const& local, Cost const& cost,
                                  Bytes const& bytes, plan_exchange_workspace<R>& workspace) const {
    return (*this)(comm, local, cost, bytes, {}, rebalance, workspace);
  }

 private:
  static constexpr std::string_view name = "plan_exchange";
};

/// Plans an exchange of the samples of all ranks that makes loads even; see `plan_exchange_fn`.
inline constexpr plan_exchange_fn plan_exchange{};

}  // namespace omnibal::inline v0
