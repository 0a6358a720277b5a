// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange plans from the costs of all samples.

#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/rank_placer.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/grouping.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A range of integers that are the offsets of the samples of each rank, followed by the end of the
/// last rank.
template <class Range>
concept offset_range = sample_range<Range> &&
    std::integral<std::remove_cvref_t<std::ranges::range_reference_t<Range const>>>;

/// The error of a balancer if there are no parts within a capacity, or if it finds none.
class capacity_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

/// A balancer that is called like `rebalance`, with the present rank of each sample.
template <class Balance, class Cost>
concept home_balancer = requires(Balance const& balance, grouping_view home, Cost const& costs,
                                 std::vector<std::int64_t> const& bytes) {
  { balance(home, costs, bytes, rebalance_options{}) } -> std::convertible_to<grouping>;
};

/// Checks the offsets of the samples of each rank and copies them into reused memory.
template <class Offsets>
void copy_home_offsets(std::string_view function, Offsets const& home_offsets,
                       std::vector<std::uint32_t>& result) {
  if (std::ranges::size(home_offsets) < 2) {
    throw_invalid(function, "home_offsets has " + to_text(std::ranges::size(home_offsets)) +
                                " elements, one more than there are ranks, of which there "
                                "must be one");
  }
  check_index_count(function, "home_offsets", std::ranges::size(home_offsets));
  result.clear();
  std::uint64_t before = 0;
  for (auto const offset : home_offsets) {
    if (std::cmp_less(offset, before) || (result.empty() && offset != 0)) {
      throw_invalid(function, "home_offsets[" + to_text(result.size()) + "] is " + to_text(offset) +
                                  "; offsets start with 0 and do not decrease");
    }
    before = static_cast<std::uint64_t>(offset);
    check_index_count(function, "the global batch", before);
    result.push_back(static_cast<std::uint32_t>(before));
  }
}

template <class Cost>
using amounts_of = std::vector<index_amount<Cost>>;

}  // namespace detail

/// A balancer for a plan, in one of three forms. The first form is called as the balancers in
/// balance/, with a range of costs, the number of parts and `std::identity`. The second form is
/// called as `rebalance`, with a `grouping_view` of the samples of each rank, costs, bytes and
/// `rebalance_options`. The third form is the cost of an empty set, such as `padded_batch{}`, with
/// which `balance_set_cost` computes the parts. A lambda must name the parameter types that
/// distinguish these calls. A balancer must return equal parts for equal costs, on every rank.
template <class Balance, class Cost>
concept plan_balancer = set_cost<Balance, detail::index_amount<Cost>> ||
    detail::home_balancer<Balance, detail::amounts_of<Cost>> ||
    balancer<Balance, detail::amounts_of<Cost>, std::identity>;

namespace detail {

/// Whether each part of a balancer that is called like `rebalance` may go to any rank, by a member
/// `is_relabeled` that is true. Otherwise part r is for rank r.
template <class Balance>
inline constexpr bool makes_any_parts = requires {
  requires Balance::is_relabeled;
};

/// Whether a balancer requires integers, by a member `needs_integers`. Such a balancer rejects
/// floating-point costs, because their scale differs.
template <class Balance>
inline constexpr bool needs_integers = requires {
  requires Balance::needs_integers;
};

/// A balancer for the integers to which ranks map the costs of samples.
template <class Balance, class Amount>
concept amount_balancer = plan_balancer < Balance,
        std::span < std::conditional_t < kinds_of<Amount>
== 1, std::int64_t,
    resources < kinds_of < Amount >>> const >>
        &&(std::integral<typename weight_of<Amount>::type> || !needs_integers<Balance>);

}  // namespace detail

/// Memory of `make_plan` for a cost of `R` kinds, and its last result. Use the same workspace in
/// all steps.
template <std::size_t R = 1>
class make_plan_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] exchange_plan const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct make_plan_fn;

  [[nodiscard]] auto bytes_of() const {
    return [this](std::uint32_t sample) { return bytes_[sample][0]; };
  }

  detail::integer_costs<1> bytes_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::uint32_t> home_of_;
  std::vector<std::uint32_t> part_of_;
  rebalance_workspace<R> rebalance_;
  detail::rank_placer placer_;
  exchange_plan result_;
};

struct make_plan_fn {
 private:
  template <class Cost>
  static constexpr std::size_t kinds = detail::kinds_of<detail::index_amount<Cost>>;

 public:
  /// Plans an exchange of samples that gives all ranks even loads. Rank r has the samples
  /// [home_offsets[r], home_offsets[r + 1]); ranks without samples are legal. `costs` and `bytes`
  /// are functors of the index of a sample, or ranges with an element for each sample. Costs may be
  /// resources, one for each phase. The function requires no communicator, and can simulate any
  /// number of ranks.
  ///
  /// `balance` computes the parts. It is `rebalance` with `options.max_overload`, which moves few
  /// bytes, any balancer such as `lpt`, or the cost of an empty set. For the cost of a set, the
  /// cost of a sample is the argument of the set's `add`. For padded batches this argument is the
  /// length, with `padded_batch{}` or `padded_attention`, which with weights also counts
  /// convolutions. Each part is then assigned to a rank as by `placement`. The exception is a
  /// balancer of the caller that is called like `rebalance`. Part r of such a balancer goes to rank
  /// r, unless the balancer has a member `is_relabeled` that is true. With different
  /// `options.speeds`, part r of `rebalance` goes to rank r too. A rank receives its samples in the
  /// order of its part.
  ///
  /// Complexity: the costs of the balancer and of `placement`, and linear time. Memory: the memory
  /// of both, and 28 bytes per sample. Determinism: portable for integer costs. Errors:
  /// `std::invalid_argument` if there are no ranks, if offsets do not start with zero or decrease,
  /// or if the number of elements of a range is not the number of samples. It is also thrown if
  /// options are invalid, if bytes are negative or above 2^63 - 1, or if speeds differ and the
  /// balancer does not return the part of each rank. It is thrown as well if the number of parts
  /// differs from the ranks or the parts do not contain each sample once. Further errors:
  /// `std::overflow_error` if the sum of the bytes exceeds its type; `std::length_error` above
  /// 2^32 - 1 samples; the errors of the balancer for costs. Source: OrchMLLM (arXiv 2503.23830,
  /// 2025).
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes,
            plan_balancer<Cost> Balance = rebalance_fn>
  [[nodiscard]] exchange_plan operator()(Offsets const& home_offsets, Cost const& costs,
                                         Bytes const& bytes, make_plan_options const& options = {},
                                         Balance const& balance = rebalance) const {
    make_plan_workspace<kinds<Cost>> workspace;
    (*this)(home_offsets, costs, bytes, options, balance, workspace);
    return std::move(workspace.result_);
  }

  /// Plans an exchange in `workspace`, for a training loop. With `rebalance` a call allocates only
  /// if it requires more memory than all earlier calls. The workspace contains the result.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes,
            plan_balancer<Cost> Balance>
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_options const& options,
                                  Balance const& balance,
                                  make_plan_workspace<kinds<Cost>>& workspace) const {
    return plan(name, home_offsets, costs, bytes, options, balance, workspace);
  }

  /// Plans an exchange in `workspace` with `rebalance`.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes, std::size_t R>
    requires(R == kinds<Cost>)
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_options const& options,
                                  make_plan_workspace<R>& workspace) const {
    return (*this)(home_offsets, costs, bytes, options, rebalance, workspace);
  }

  /// Plans an exchange in `workspace` with `rebalance` and default options.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes, std::size_t R>
    requires(R == kinds<Cost>)
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_workspace<R>& workspace) const {
    return (*this)(home_offsets, costs, bytes, {}, rebalance, workspace);
  }

  /// Plans the exchange for given parts: part r goes to rank r, in its order. There may be more
  /// parts than ranks, such as the `micro_batch_steps::cells` of several steps. Part p then goes to
  /// rank p modulo the ranks, after the earlier parts of that rank. The function does not relabel
  /// parts. If each part may go to any rank, pass a balancer that returns the parts; `placement`
  /// then assigns them.
  ///
  /// Complexity and errors: the same as for a balancer, and `std::invalid_argument` if the number
  /// of parts is not a multiple of the number of ranks.
  template <offset_range Offsets, detail::index_bytes Bytes>
  [[nodiscard]] exchange_plan operator()(Offsets const& home_offsets, groups_argument parts,
                                         Bytes const& bytes,
                                         placement_options const& options = {}) const {
    make_plan_workspace<1> workspace;
    (*this)(home_offsets, parts, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Plans the exchange for given parts in `workspace`. The workspace contains the result.
  template <offset_range Offsets, detail::index_bytes Bytes>
  exchange_plan const& operator()(Offsets const& home_offsets, groups_argument parts,
                                  Bytes const& bytes, placement_options const& options,
                                  make_plan_workspace<1>& workspace) const {
    detail::copy_home_offsets(name, home_offsets, workspace.offsets_);
    std::size_t const count = workspace.offsets_.back();
    std::size_t const ranks = workspace.offsets_.size() - 1;
    detail::check_nodes(name, options, ranks);
    if (parts.size() % ranks != 0) {
      detail::throw_invalid(name, "there are " + detail::to_text(parts.size()) + " parts for " +
                                      detail::to_text(ranks) + " ranks");
    }
    detail::part_of_samples(name, "part", parts, count, workspace.part_of_);
    detail::measure_bytes_into(name, bytes, count, workspace.bytes_);
    write(parts, options, workspace, [](std::size_t rank) { return rank; });
    return workspace.result_;
  }

  /// Plans the exchange for given parts in `workspace` with default options.
  template <offset_range Offsets, detail::index_bytes Bytes>
  exchange_plan const& operator()(Offsets const& home_offsets, groups_argument parts,
                                  Bytes const& bytes, make_plan_workspace<1>& workspace) const {
    return (*this)(home_offsets, parts, bytes, {}, workspace);
  }

 private:
  friend struct plan_exchange_fn;
  friend struct make_orchestration_fn;

  static constexpr std::string_view name = "make_plan";

  /// Plans an exchange. `function` is the name of the called function in error texts.
  template <class Offsets, class Cost, class Bytes, class Balance>
  static exchange_plan const& plan(std::string_view function, Offsets const& home_offsets,
                                   Cost const& costs, Bytes const& bytes,
                                   make_plan_options const& options, Balance const& balance,
                                   make_plan_workspace<kinds<Cost>>& workspace) {
    detail::copy_home_offsets(function, home_offsets, workspace.offsets_);
    detail::check_exchange_options(function, options, workspace.offsets_.size() - 1);
    std::size_t const count = workspace.offsets_.back();
    detail::measure_bytes_into(function, bytes, count, workspace.bytes_);
    grouping_view const home = fill_home(workspace.offsets_, workspace.indices_);
    bool const is_equal =
        detail::part_speeds(function, options.speeds, home.size(), "ranks").are_equal();
    if constexpr (std::same_as<Balance, rebalance_fn>) {
      place(function,
            rebalance_fn::balance({function, "costs"}, home, costs, workspace.bytes_of(),
                                  rebalance_options_of(options), workspace.rebalance_),
            home, options, workspace, !is_equal);
    } else {
      if (!names_ranks<Cost, Balance> && !is_equal) {
        detail::throw_invalid(function,
                              "options.speeds has different speeds, which only rebalance and "
                              "balancers that get the homes and name the ranks accept");
      }
      place(function, make_parts(function, home, costs, options, balance, workspace.bytes_), home,
            options, workspace, names_ranks<Cost, Balance>);
    }
    return workspace.result_;
  }

  [[nodiscard]] static rebalance_options rebalance_options_of(make_plan_options const& options) {
    return {.max_overload = options.max_overload,
            .ranks_per_node = options.ranks_per_node,
            .node_of = options.node_of,
            .speeds = options.speeds};
  }

  [[nodiscard]] static grouping_view fill_home(std::vector<std::uint32_t> const& offsets,
                                               std::vector<std::uint32_t>& indices) {
    indices.resize(offsets.back());
    std::iota(indices.begin(), indices.end(), 0u);
    return {offsets.data(), indices.data(), offsets.size() - 1};
  }

  template <class Cost, class Balance>
  static constexpr bool names_ranks =
      !set_cost<Balance, detail::index_amount<Cost>> &&
      detail::home_balancer<Balance, detail::amounts_of<Cost>> && !detail::makes_any_parts<Balance>;

  template <class Cost, class Balance>
  [[nodiscard]] static grouping make_parts(std::string_view function, grouping_view home,
                                           Cost const& costs, make_plan_options const& options,
                                           Balance const& balance,
                                           detail::integer_costs<1> const& bytes) {
    std::size_t const count = home.item_count();
    auto const cost_at = detail::amounts_by_index(function, "costs", costs, count);
    detail::amounts_of<Cost> amounts;
    amounts.reserve(count);
    for (std::size_t i = 0; i != count; ++i) amounts.push_back(cost_at(i));
    if constexpr (set_cost<Balance, detail::index_amount<Cost>>) {
      return balance_set_cost(amounts, home.size(), balance);
    } else if constexpr (detail::home_balancer<Balance, detail::amounts_of<Cost>>) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(count);
      for (auto const& number : bytes) numbers.push_back(number[0]);
      return balance(home, amounts, numbers, rebalance_options_of(options));
    } else {
      return balance(amounts, home.size(), std::identity{});
    }
  }

  /// Assigns parts to ranks; with `is_named`, part r was computed for rank r and goes to rank r.
  template <class Workspace>
  static void place(std::string_view function, groups_argument parts, grouping_view home,
                    make_plan_options const& options, Workspace& workspace, bool is_named) {
    if (parts.size() != home.size()) {
      detail::throw_invalid(function, "the balancer made " + detail::to_text(parts.size()) +
                                          " parts for " + detail::to_text(home.size()) + " ranks");
    }
    detail::part_of_samples(function, "part", parts, home.item_count(), workspace.part_of_);
    if (is_named) {
      write(parts, options, workspace, [](std::size_t rank) { return rank; });
      return;
    }
    workspace.home_of_.clear();
    for (std::uint32_t rank = 0; rank != home.size(); ++rank) {
      workspace.home_of_.resize(workspace.offsets_[rank + 1], rank);
    }
    workspace.placer_.run(workspace.home_of_, parts, workspace.bytes_of(),
                          detail::given_nodes::of(options));
    auto const part_at = [&](std::size_t rank) { return workspace.placer_.part_at(rank); };
    write(parts, options, workspace, part_at);
  }

  /// Writes a plan in which a rank gets the part p = `first_of(rank)` and each existing part
  /// p + k * ranks for k = 1, 2 and so on.
  template <class Options, class Workspace, class FirstOf>
  static void write(grouping_view parts, Options const& options, Workspace& workspace,
                    FirstOf const& first_of) {
    std::size_t const ranks = workspace.offsets_.size() - 1;
    detail::plan_writer const writer{workspace.result_};
    writer.start(workspace.offsets_);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      for (std::size_t part = first_of(rank); part < parts.size(); part += ranks) {
        for (std::uint32_t const sample : parts[part]) writer.push(sample);
      }
      writer.close();
    }
    writer.finish(detail::given_nodes::of(options), workspace.bytes_of());
  }
};

/// Plans an exchange of samples that gives all ranks even loads; see `make_plan_fn`.
inline constexpr make_plan_fn make_plan{};

}  // namespace omnibal::inline v0
