// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Even parts that move few bytes.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/rebalance/migration.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct rebalance_options {
  /// The share of a lower bound by which the largest load may exceed the bound. A smaller share
  /// moves more bytes.
  double max_overload = 0.01;
  /// The number of ranks per node: ranks 0 .. ranks_per_node - 1 are one node, the next
  /// `ranks_per_node` ranks are the next node, and so on; the last node may have fewer ranks. The
  /// number is positive; with 1 every rank is its own node. Samples that leave their rank stay on
  /// their node if they fit.
  std::size_t ranks_per_node = 1;
  /// The node number of each rank; numbers may be arbitrary. Set it if nodes differ in size or
  /// ranks are not numbered by node. The array must outlive the option.
  detail::node_numbers node_of = {};
  /// The rule for the number of samples on each rank. Moves that the rule requires are made in any
  /// case.
  rank_counts counts = rank_counts::any;
  /// The maximum bytes of the samples that leave their ranks. If each sample has one byte, this is
  /// the maximum number of samples that move. If the limit of `max_overload` requires more, the
  /// largest load is higher.
  std::int64_t max_moved_bytes = std::numeric_limits<std::int64_t>::max();
  /// The speed of each rank, or one value for all; empty for equal speeds. The largest load over
  /// speed then takes the place of the largest load. The array must outlive the option.
  detail::speed_list speeds = {};
};

/// Memory of `rebalance` for a cost of `R` kinds, and its last result. Use the same workspace in
/// all steps.
template <std::size_t R = 1>
class rebalance_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] grouping const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct rebalance_fn;

  detail::migration<R> migration_;
  grouping result_;
};

struct rebalance_fn {
  /// Balances loads over ranks and moves few bytes. The function returns one part for each rank.
  /// `home` contains the samples of each rank, and samples stay if they fit. The arguments `cost`
  /// and `bytes` are functors of the index of a sample, or ranges with an element for each sample.
  /// The parts of `home` name the indices 0, 1, ... once each, in any order; ranks without samples
  /// are legal.
  ///
  /// The largest load is at most (1 + `options.max_overload`) times a lower bound if this is true
  /// of the largest load of `lpt`. The largest load never exceeds both that limit and the largest
  /// load of `lpt`. The lower bound is the largest of three loads: the mean load, the largest cost
  /// and, with one kind of cost, the sum of the two smallest among the `ranks + 1` largest costs.
  /// If `home` is within the limit, nothing moves. Otherwise samples leave the ranks above the
  /// limit for the least loaded ranks; samples with the largest cost per byte go first. Ranks that
  /// are still above the limit then exchange single samples, or one sample for several. The
  /// exchanges that lower the load most per byte go first. Finally, samples that fit at home
  /// return. If the limit is still not reached and `lpt` is more even, the function uses the parts
  /// of `lpt`. It assigns these parts to ranks such that few bytes leave a node and, among such
  /// assignments, few leave a rank. Samples move only if the largest load falls, except for moves
  /// that a rule for counts requires.
  ///
  /// With rules for the counts, samples first move from ranks with too many samples to ranks with
  /// too few. The lower bound then also includes the smallest samples that must share a rank with
  /// the largest samples. Ranks above the limit then exchange single samples with up to 64 of the
  /// least loaded ranks or, with one kind of cost, rotate single samples among three ranks. If the
  /// limit is still not reached, the function exchanges samples as in `refine_parts` and does not
  /// use the parts of `lpt`. These last exchanges allocate memory.
  ///
  /// If more than `options.max_moved_bytes` would move, the function tries up to 20 higher limits.
  /// The result has the smallest largest load among the results that move at most
  /// `options.max_moved_bytes`.
  ///
  /// With nodes of several ranks, samples first leave nodes with an excess. Ranks of one node then
  /// balance their loads. Only after that do ranks of different nodes exchange samples, so that few
  /// bytes cross nodes.
  ///
  /// The samples of a part have ascending indices. Costs may be resources, which count as in `lpt`.
  /// `cost` and `bytes` are called once for each sample, in order.
  ///
  /// Complexity: linear if no rank is above the limit. Otherwise a radix sort orders the samples of
  /// ranks above the limit, and at most 16 exchanges follow for each rank. Each exchange looks at
  /// all ranks and at the samples of a few ranks. Moves that a rule for counts requires cost a sort
  /// of the samples of the sending ranks and, with one kind of cost, O(log n) for each move. If
  /// `options.max_moved_bytes` is exceeded, up to 21 searches run. Memory: about 70 + 16R bytes per
  /// sample and 100 + 8R per rank, including the result. With the parts of `lpt`, 20 bytes per
  /// sample are added, and with moves that counts require, 36 + 16R are added. Determinism:
  /// portable for integers. Errors: `std::invalid_argument` if a cost or bytes are negative, not
  /// finite or above 2^63 - 1, if `max_overload` is negative or not finite, or if `max_moved_bytes`
  /// is negative. It is also thrown if the number of elements of a range is not the number of
  /// samples, or if `home` names an index twice or leaves one out. It is thrown as well if counts
  /// must be equal and the number of ranks does not divide the number of samples. Further errors:
  /// `std::overflow_error` if the sum of all costs or bytes exceeds its type.
  template <index_measure Cost, detail::index_weight Bytes>
  [[nodiscard]] grouping operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                                    rebalance_options const& options = {}) const {
    rebalance_workspace<detail::kinds_of<detail::index_amount<Cost>>> workspace;
    (*this)(home, cost, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Balances loads in `workspace`, for a training loop. A call allocates only if it requires more
  /// memory than all earlier calls. This happens if there are more samples or ranks, or more
  /// samples on one rank. It also happens if samples leave, are exchanged or are placed by `lpt`
  /// for the first time. The workspace contains the result.
  template <index_measure Cost, detail::index_weight Bytes>
  grouping const& operator()(
      groups_argument home, Cost const& cost, Bytes const& bytes, rebalance_options const& options,
      rebalance_workspace<detail::kinds_of<detail::index_amount<Cost>>>& workspace) const {
    return balance({"rebalance", "cost"}, home, cost, bytes, options, workspace);
  }

  /// Balances loads in `workspace` with default options.
  template <index_measure Cost, detail::index_weight Bytes, std::size_t R>
    requires(R == detail::kinds_of<detail::index_amount<Cost>>)
  grouping const& operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                             rebalance_workspace<R>& workspace) const {
    return (*this)(home, cost, bytes, {}, workspace);
  }

 private:
  friend struct make_plan_fn;

  /// The names of the function and its costs in error texts.
  struct names {
    std::string_view function;
    std::string_view cost;
  };

  template <class Cost, class Bytes, class Workspace>
  static grouping const& balance(names const& called, grouping_view home, Cost const& cost,
                                 Bytes const& bytes, rebalance_options const& options,
                                 Workspace& workspace) {
    std::string_view const name = called.function;
    detail::check_max_overload(name, options.max_overload);
    detail::check_nodes(name, options, home.size());
    detail::check_weight(name, "options.max_moved_bytes", options.max_moved_bytes);
    auto& migration = workspace.migration_;
    std::size_t const count = home.item_count();
    detail::measure_costs_into(name, {called.cost, "the sum of the costs"}, count,
                               detail::amounts_by_index(name, called.cost, cost, count),
                               migration.state.costs);
    detail::measure_bytes_into(name, bytes, count, migration.state.bytes);
    migration.run(name, home,
                  {options.max_overload, detail::given_nodes::of(options), options.counts,
                   options.max_moved_bytes, options.speeds});
    migration.write(workspace.result_);
    return workspace.result_;
  }
};

/// Balances loads over ranks and moves few bytes; see `rebalance_fn`.
inline constexpr rebalance_fn rebalance{};

}  // namespace omnibal::inline v0
