#pragma once

/// \file
/// Plans from the costs of all samples.

#include <omnibal/balance/balance_set.hpp>
#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/keep_home.hpp>
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

/// Where the samples of each rank begin, and where those of the last one end: integers.
template <class Range>
concept offset_range = sample_range<Range> &&
    std::integral<std::remove_cvref_t<std::ranges::range_reference_t<Range const>>>;

/// Samples of which no parts under a cap exist, or were found.
class capacity_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

/// A balancer that starts from where samples are, called like `keep_home`.
template <class Balance, class Cost>
concept home_balancer = requires(Balance const& balance, grouping_view home, Cost const& costs,
                                 std::vector<std::int64_t> const& bytes) {
  { balance(home, costs, bytes, keep_home_options{}) } -> std::convertible_to<grouping>;
};

/// Where the samples of each rank begin, checked, into memory that is kept.
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

/// What makes parts for a plan: called like the balancers of balance/, with a range of costs, the
/// number of parts and `std::identity`, or like `keep_home`, with a `grouping_view` of the samples
/// of each rank, costs, bytes and `keep_home_options`; or the cost of an empty set, such as
/// `padded_batch{}`, by which `balance_set` makes the parts. A lambda names the types of parameters
/// that tell these calls apart. It must give equal parts for equal costs, on every rank.
template <class Balance, class Cost>
concept plan_balancer = set_cost<Balance, detail::index_amount<Cost>> ||
    detail::home_balancer<Balance, detail::amounts_of<Cost>> ||
    balancer<Balance, detail::amounts_of<Cost>, std::identity>;

namespace detail {

/// A balancer that is given the homes makes part r for rank r, but for one that says, by a member
/// `is_relabelled`, that each part may go to whichever rank.
template <class Balance>
inline constexpr bool makes_any_parts = requires {
  requires Balance::is_relabelled;
};

/// A balancer that says so, by a member `needs_integers`, must not get floating-point costs, which
/// come to it in another scale.
template <class Balance>
inline constexpr bool needs_integers = requires {
  requires Balance::needs_integers;
};

/// A balancer for the integers that ranks make of costs of samples.
template <class Balance, class Amount>
concept amount_balancer = plan_balancer < Balance,
        std::span < std::conditional_t < kinds_of<Amount>
== 1, std::int64_t,
    resources < kinds_of < Amount >>> const >>
        &&(std::integral<typename weight_of<Amount>::type> || !needs_integers<Balance>);

}  // namespace detail

/// Memory of `make_plan` for a cost of `R` kinds, and its last result. To be kept from step to
/// step.
template <std::size_t R = 1>
class make_plan_workspace {
 public:
  /// The result of the last call.
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
  keep_home_workspace<R> keeper_;
  detail::rank_placer placer_;
  exchange_plan result_;
};

struct make_plan_fn {
 private:
  template <class Cost>
  static constexpr std::size_t kinds = detail::kinds_of<detail::index_amount<Cost>>;

 public:
  /// Which sample goes where so that the ranks have even loads. Rank r has the samples
  /// [home_offsets[r], home_offsets[r + 1]); ranks without samples are legal. `costs` and `bytes`
  /// are functors of the index of a sample, or ranges with an element for each; costs may be
  /// resources, one for each phase. No communicator is needed, and any number of ranks can be
  /// simulated.
  ///
  /// `balance` makes the parts: `keep_home` with `options.max_overload`, which moves few bytes, any
  /// balancer such as `lpt`, or the cost of an empty set. Of a set the cost of a sample is what its
  /// `add` takes: the length where batches are padded, with `padded_batch{}` or `padded_attention`,
  /// which counts convolution too where it is given weights. Then each part is given to a rank as
  /// by `placement`. But part r of a balancer of your own that is called like `keep_home`, with the
  /// homes, goes to rank r, unless the balancer has a member `is_relabelled` that is true. A rank
  /// gets its samples in the order of its part.
  ///
  /// Complexity: that of the balancer and of `placement`, and linear. Memory: that of both, and 28
  /// bytes per sample. Determinism: portable for integer costs. Errors: `std::invalid_argument` for
  /// no ranks, offsets that do not start with zero or decrease, ranges with another number of
  /// elements, bad options, bytes that are negative or above 2^63 - 1, parts that are not as many
  /// as the ranks or do not have each sample once, and what the balancer throws for costs;
  /// `std::overflow_error` where the sum of the bytes leaves its type; `std::length_error` above
  /// 2^32 - 1 samples. Source: OrchMLLM (arXiv 2503.23830, 2025).
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes,
            plan_balancer<Cost> Balance = keep_home_fn>
  [[nodiscard]] exchange_plan operator()(Offsets const& home_offsets, Cost const& costs,
                                         Bytes const& bytes, make_plan_options const& options = {},
                                         Balance const& balance = keep_home) const {
    make_plan_workspace<kinds<Cost>> workspace;
    (*this)(home_offsets, costs, bytes, options, balance, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept, for a training loop: with `keep_home` a call allocates only
  /// where it needs more than all calls before it. The result lies in the workspace.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes,
            plan_balancer<Cost> Balance>
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_options const& options,
                                  Balance const& balance,
                                  make_plan_workspace<kinds<Cost>>& workspace) const {
    return plan(name, home_offsets, costs, bytes, options, balance, workspace);
  }

  /// The same with `keep_home`.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes, std::size_t R>
    requires(R == kinds<Cost>)
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_options const& options,
                                  make_plan_workspace<R>& workspace) const {
    return (*this)(home_offsets, costs, bytes, options, keep_home, workspace);
  }

  /// The same with `keep_home` and default options.
  template <offset_range Offsets, index_measure Cost, detail::index_bytes Bytes, std::size_t R>
    requires(R == kinds<Cost>)
  exchange_plan const& operator()(Offsets const& home_offsets, Cost const& costs,
                                  Bytes const& bytes, make_plan_workspace<R>& workspace) const {
    return (*this)(home_offsets, costs, bytes, {}, keep_home, workspace);
  }

  /// The plan of an arrangement that is decided: part r goes to rank r, in its order. Of more parts
  /// than ranks, such as the `micro_batch_steps::cells` of several steps, part p goes to rank p
  /// modulo the ranks, after those before it. Nothing is relabelled; where each part may go to
  /// whichever rank, a balancer that gives the parts lets them be placed as above.
  ///
  /// Complexity and errors: as above; `std::invalid_argument` where the number of parts is no
  /// multiple of that of the ranks.
  template <offset_range Offsets, detail::index_bytes Bytes>
  [[nodiscard]] exchange_plan operator()(Offsets const& home_offsets, groups_argument parts,
                                         Bytes const& bytes,
                                         placement_options const& options = {}) const {
    make_plan_workspace<1> workspace;
    (*this)(home_offsets, parts, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept. The result lies in the workspace.
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

  /// The same with default options.
  template <offset_range Offsets, detail::index_bytes Bytes>
  exchange_plan const& operator()(Offsets const& home_offsets, groups_argument parts,
                                  Bytes const& bytes, make_plan_workspace<1>& workspace) const {
    return (*this)(home_offsets, parts, bytes, {}, workspace);
  }

 private:
  friend struct plan_exchange_fn;
  friend struct make_orchestration_fn;

  static constexpr std::string_view name = "make_plan";

  /// For the function that error texts name.
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
    if constexpr (std::same_as<Balance, keep_home_fn>) {
      place(function,
            keep_home_fn::keep({function, "costs"}, home, costs, workspace.bytes_of(),
                               keep_home_options_of(options), workspace.keeper_),
            home, options, workspace);
    } else {
      place(function, make_parts(function, home, costs, options, balance, workspace.bytes_), home,
            options, workspace, names_ranks<Cost, Balance>);
    }
    return workspace.result_;
  }

  [[nodiscard]] static keep_home_options keep_home_options_of(make_plan_options const& options) {
    return {.max_overload = options.max_overload,
            .ranks_per_node = options.ranks_per_node,
            .node_of = options.node_of};
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
      return balance_set(amounts, home.size(), balance);
    } else if constexpr (detail::home_balancer<Balance, detail::amounts_of<Cost>>) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(count);
      for (auto const& number : bytes) numbers.push_back(number[0]);
      return balance(home, amounts, numbers, keep_home_options_of(options));
    } else {
      return balance(amounts, home.size(), std::identity{});
    }
  }

  /// `is_named`: part r is made for rank r, and stays there.
  template <class Workspace>
  static void place(std::string_view function, groups_argument parts, grouping_view home,
                    make_plan_options const& options, Workspace& workspace, bool is_named = false) {
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

  /// A rank gets the part `first_of(rank)`, and of further parts one after each round of the ranks.
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

/// Which sample goes where so that the ranks have even loads; see `make_plan_fn`.
inline constexpr make_plan_fn make_plan{};

}  // namespace omnibal::inline v0
