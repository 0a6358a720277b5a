#pragma once

/// \file
/// Plans that all ranks agree on.

#include <omnibal/balance/keep_home.hpp>
#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/padded_gather.hpp>
#include <omnibal/exchange/detail/plan_arguments.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/make_plan_options.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// A balancer for the integers to which ranks map the costs of their samples.
template <class Balance, class Samples, class Cost, class Bytes>
concept sample_planner = demand_function<Cost, sample_reference<Samples>> &&
    bytes_function<Bytes, sample_reference<Samples>> &&
    plan_balancer<Balance, std::vector<lengths_of_sample<cost_kinds<Samples, Cost>>>>;

}  // namespace detail

/// Memory of `plan_exchange` for a cost of `R` kinds, and its last result. To be kept from step to
/// step.
template <std::size_t R = 1>
class plan_exchange_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] exchange_plan const& result() const& { return planner_.result(); }
  void result() const&& = delete;

 private:
  friend struct plan_exchange_fn;

  /// What a rank says of its samples before it sends their costs.
  struct local_facts {
    std::uint64_t samples = 0;
    /// The largest cost of each kind, where costs are floating-point numbers.
    std::array<double, R> largest{};
  };
  struct sample_facts {
    std::array<std::int64_t, R> costs;
    std::int64_t bytes;
  };

  std::vector<resources<R, double>> floating_;
  std::vector<sample_facts> own_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint64_t> offsets_;
  std::vector<lengths_of_sample<R>> costs_;
  ragged<sample_facts> all_;
  detail::agreement<local_facts> on_arguments_;
  detail::agreement<std::uint64_t> on_plan_;
  detail::padded_gather gather_;
  make_plan_workspace<R> planner_;
};

struct plan_exchange_fn {
  /// The plan by which the samples of all ranks, of which `local` are those of this one, are
  /// exchanged so that loads are even; equal on all ranks. `cost` and `bytes` measure a sample;
  /// bytes are integers, costs integers, floating-point numbers or resources. They are called once
  /// for each local sample, in order, and never for a sample of another rank. Then every rank makes
  /// the same plan as by `make_plan`; nobody sends it.
  ///
  /// The owner of a sample maps a floating-point cost c to floor(c * 2^31 / m), m the largest of
  /// all ranks, so that the ranks decide on equal integers.
  ///
  /// A collective call of three collectives: whether all ranks can go on and with the same options,
  /// the costs and bytes in blocks padded to the rank with the most samples, and whether all have
  /// the same plan. Complexity and memory: those of `make_plan`, and 16(R + 1) bytes per sample.
  /// Determinism: portable. Errors on all ranks where there is one on any: `communication_error`
  /// where another rank has failed, `std::invalid_argument` where options or plans differ. What a
  /// rank has failed with: `std::invalid_argument` for a cost or bytes that are negative, not
  /// finite or above 2^63 - 1, what `make_plan` throws and what a functor throws.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes,
            detail::sample_planner<Samples, Cost, Bytes> Balance = keep_home_fn>
  [[nodiscard]] exchange_plan operator()(Comm&& comm, Samples const& local, Cost const& cost,
                                         Bytes const& bytes, make_plan_options const& options = {},
                                         Balance const& balance = keep_home) const {
    plan_exchange_workspace<detail::cost_kinds<Samples, Cost>> workspace;
    return (*this)(comm, local, cost, bytes, options, balance, workspace);
  }

  /// The same in memory that is kept, for a training loop: with `keep_home` a call allocates only
  /// where it needs more than all calls before it. The result lies in the workspace.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes,
            detail::sample_planner<Samples, Cost, Bytes> Balance>
  exchange_plan const& operator()(
      Comm&& comm, Samples const& local, Cost const& cost, Bytes const& bytes,
      make_plan_options const& options, Balance const& balance,
      plan_exchange_workspace<detail::cost_kinds<Samples, Cost>>& workspace) const {
    auto const reports = workspace.on_arguments_.run({name, "options"}, comm, [&](auto& report) {
      detail::check_exchange_options(name, options);
      measure(local, cost, bytes, report.facts, workspace);
      report.digest = detail::digest_of_options(
          options, shape_of<demand_result<Cost, sample_reference<Samples>>>);
    });
    if constexpr (!is_integral<demand_result<Cost, sample_reference<Samples>>>) {
      quantise(reports, workspace);
    }
    gather(comm, reports, workspace);
    workspace.on_plan_.run({name, "plans"}, comm, [&](auto& report) {
      auto const bytes_of = [&](std::uint32_t sample) {
        return workspace.all_.values()[sample].bytes;
      };
      report.digest = make_plan(workspace.offsets_, workspace.costs_, bytes_of, options, balance,
                                workspace.planner_)
                          .digest();
    });
    return workspace.result();
  }

  /// The same with `keep_home`.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes>
  requires detail::sample_planner<keep_home_fn, Samples, Cost, Bytes> exchange_plan const&
  operator()(Comm&& comm, Samples const& local, Cost const& cost, Bytes const& bytes,
             make_plan_options const& options,
             plan_exchange_workspace<detail::cost_kinds<Samples, Cost>>& workspace) const {
    return (*this)(comm, local, cost, bytes, options, keep_home, workspace);
  }

  /// The same with the options as they are.
  template <communicator Comm, sample_range Samples, class Cost, class Bytes>
  requires detail::sample_planner<keep_home_fn, Samples, Cost, Bytes> exchange_plan const&
  operator()(Comm&& comm, Samples const& local, Cost const& cost, Bytes const& bytes,
             plan_exchange_workspace<detail::cost_kinds<Samples, Cost>>& workspace) const {
    return (*this)(comm, local, cost, bytes, {}, keep_home, workspace);
  }

 private:
  static constexpr std::string_view name = "plan_exchange";

  template <class Amount>
  static constexpr bool is_integral = std::integral<typename detail::weight_of<Amount>::type>;

  template <class Amount>
  static constexpr std::uint64_t shape_of = 2 * detail::kinds_of<Amount> +
                                            (is_integral<Amount> ? 0 : 1);

  /// Integer costs are ready to be sent then, others wait in `floating_` for the largest of all.
  template <class Samples, class Cost, class Bytes, class Facts, class Workspace>
  static void measure(Samples const& local, Cost const& cost, Bytes const& bytes, Facts& facts,
                      Workspace& workspace) {
    using amount_type = demand_result<Cost, sample_reference<Samples>>;
    using working = detail::working_weight<typename detail::weight_of<amount_type>::type>;
    std::size_t const count = std::ranges::size(local);
    detail::check_index_count(name, "local", count);
    workspace.own_.clear();
    workspace.own_.reserve(count);
    workspace.floating_.clear();
    if constexpr (!is_integral<amount_type>) workspace.floating_.reserve(count);
    for (auto&& sample : local) {
      std::size_t const index = workspace.own_.size();
      auto const amounts = as_amounts(std::invoke(cost, sample));
      auto& own = workspace.own_.emplace_back();
      own.bytes =
          detail::checked_cost<std::int64_t>(name, "bytes", index, std::invoke(bytes, sample));
      if constexpr (!is_integral<amount_type>) workspace.floating_.emplace_back();
      for (std::size_t r = 0; r != facts.largest.size(); ++r) {
        auto const amount = detail::checked_cost<working>(name, "cost", index, amounts[r]);
        if constexpr (is_integral<amount_type>) {
          own.costs[r] = amount;
        } else {
          workspace.floating_.back()[r] = amount;
          facts.largest[r] = std::max(facts.largest[r], amount);
        }
      }
    }
    facts.samples = count;
  }

  template <class Amount>
  [[nodiscard]] static auto as_amounts(Amount const& amount) {
    if constexpr (weight<Amount>) {
      return std::array<Amount, 1>{amount};
    } else {
      return amount;
    }
  }

  template <class Reports, class Workspace>
  static void quantise(Reports const& reports, Workspace& workspace) {
    for (std::size_t r = 0; r != reports[0].facts.largest.size(); ++r) {
      double largest = 0.0;
      for (auto const& report : reports) largest = std::max(largest, report.facts.largest[r]);
      auto const to_share = detail::cost_shares(largest);
      for (std::size_t i = 0; i != workspace.own_.size(); ++i) {
        workspace.own_[i].costs[r] = to_share(workspace.floating_[i][r]);
      }
    }
  }

  template <class Comm, class Reports, class Workspace>
  static void gather(Comm& comm, Reports const& reports, Workspace& workspace) {
    using facts_type = typename decltype(workspace.own_)::value_type;
    using cost_type = typename decltype(workspace.costs_)::value_type;
    workspace.counts_.clear();
    for (auto const& report : reports) workspace.counts_.push_back(report.facts.samples);
    workspace.gather_.run(comm, std::span<facts_type const>(workspace.own_), workspace.counts_,
                          workspace.all_);
    workspace.offsets_.assign(workspace.all_.offsets().begin(), workspace.all_.offsets().end());
    workspace.costs_.clear();
    workspace.costs_.reserve(workspace.all_.values().size());
    for (facts_type const& sample : workspace.all_.values()) {
      if constexpr (weight<cost_type>) {
        workspace.costs_.push_back(sample.costs[0]);
      } else {
        cost_type& costs = workspace.costs_.emplace_back();
        for (std::size_t r = 0; r != sample.costs.size(); ++r) costs[r] = sample.costs[r];
      }
    }
  }
};

/// The plan by which ranks exchange their samples; see `plan_exchange_fn`.
inline constexpr plan_exchange_fn plan_exchange{};

}  // namespace omnibal::inline v0
