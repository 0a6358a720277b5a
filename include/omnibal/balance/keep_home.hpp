#pragma once

/// \file
/// Even parts with few bytes moved.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/keep_home/migration.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct keep_home_options {
  /// By which share of a lower bound the largest load may exceed it. The smaller it is, the more
  /// bytes move.
  double max_overload = 0.01;
  /// Ranks 0 .. ranks_per_node - 1 are one node, the next ones another, the last may have fewer.
  /// What leaves its rank stays on its node where it fits.
  std::size_t ranks_per_node = 1;
};

/// Memory of `keep_home` for a cost of `R` kinds, and its last result. To be kept from step to
/// step.
template <std::size_t R = 1>
class keep_home_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] grouping const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct keep_home_fn;

  detail::migration<R> keeper_;
  grouping result_;
};

struct keep_home_fn {
  /// Parts with even loads, one for each rank, that move few bytes: `home` has the samples that lie
  /// on each rank, and samples stay where they fit. `cost` and `bytes` are functors of the index of
  /// a sample, or ranges with an element for each. `home` names the indices 0, 1, ... once each, in
  /// any order; ranks without samples are legal.
  ///
  /// The largest load is at most 1 + `options.max_overload` times a lower bound (the mean load, the
  /// largest cost, two of the `ranks + 1` largest) wherever that of `lpt` is, and never above both
  /// that limit and the load of `lpt`. Nothing moves where `home` is within the limit. Otherwise
  /// samples leave the ranks above it for the least loaded ones, those first that have the most
  /// cost for their bytes; then ranks that are still above it exchange single samples, or one
  /// against several, of which those go first that lower the load most for their bytes; then what
  /// fits at home returns. Only where the limit is not reached so and `lpt` is evener its parts are
  /// taken, and given to ranks so that few bytes leave a node, and of those few a rank.
  ///
  /// With nodes of several ranks, first what a node has too much leaves it, then ranks of one node
  /// even their loads, and only then ranks of different nodes do. With 8 of 2560 ranks on a node a
  /// third as many bytes cross nodes as without, on mixtures where samples have to cross at all.
  ///
  /// The parts have their samples by ascending index. Costs may be resources, which count as in
  /// `lpt`. `cost` and `bytes` are called once for each sample, in order. On 64 ranks with 64
  /// samples each, lengths with a heavy tail as bytes and their squares as costs, 2 to 18 % of the
  /// bytes move at the balance of `lpt`, which moves 74 to 85 % after the best relabelling.
  ///
  /// Complexity: linear but for ranks above the limit, whose samples are sorted by a radix sort,
  /// and for at most 16 exchanges for each rank, each of which looks at all ranks and at the
  /// samples of a few. Memory: about 70 + 16R bytes per sample and 100 + 8R per rank, result
  /// included; where `lpt` is asked 20 bytes per sample more. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` for a cost or bytes that are negative, not finite or above
  /// 2^63 - 1, a `max_overload` that is negative or not finite, a range with another number of
  /// elements and a `home` that names an index twice or leaves one out; `std::overflow_error` where
  /// the sum of all costs or bytes leaves its type.
  template <index_measure Cost, detail::index_weight Bytes>
  [[nodiscard]] grouping operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                                    keep_home_options const& options = {}) const {
    keep_home_workspace<detail::kinds_of<detail::index_amount<Cost>>> workspace;
    (*this)(home, cost, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept, for a training loop. A call allocates only where it needs
  /// more than all calls before it: where there are more samples or ranks, or more samples on one
  /// rank, and where samples leave, are exchanged or placed by `lpt` for the first time. The result
  /// lies in the workspace.
  template <index_measure Cost, detail::index_weight Bytes>
  grouping const& operator()(
      groups_argument home, Cost const& cost, Bytes const& bytes, keep_home_options const& options,
      keep_home_workspace<detail::kinds_of<detail::index_amount<Cost>>>& workspace) const {
    return keep({"keep_home", "cost"}, home, cost, bytes, options, workspace);
  }

 private:
  friend struct make_plan_fn;

  /// What error texts call the function and its costs.
  struct names {
    std::string_view function;
    std::string_view cost;
  };

  template <class Cost, class Bytes, class Workspace>
  static grouping const& keep(names const& called, grouping_view home, Cost const& cost,
                              Bytes const& bytes, keep_home_options const& options,
                              Workspace& workspace) {
    std::string_view const name = called.function;
    detail::check_max_overload(name, options.max_overload);
    detail::check_ranks_per_node(name, options.ranks_per_node);
    auto& keeper = workspace.keeper_;
    std::size_t const count = home.item_count();
    detail::measure_costs_into(name, {called.cost, "the sum of the costs"}, count,
                               detail::amounts_by_index(name, called.cost, cost, count),
                               keeper.state.costs);
    detail::measure_bytes_into(name, bytes, count, keeper.state.bytes);
    keeper.run(name, home, options.max_overload, options.ranks_per_node);
    keeper.write(workspace.result_);
    return workspace.result_;
  }
};

/// Even parts with few bytes moved; see `keep_home_fn`.
inline constexpr keep_home_fn keep_home{};

}  // namespace omnibal::inline v0
