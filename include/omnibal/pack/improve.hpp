#pragma once

/// \file
/// Local search on a packing.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve/bin_elimination.hpp>
#include <omnibal/pack/improve/even_loads.hpp>
#include <omnibal/pack/improve/import_packing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/packing_bound.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace omnibal::inline v0 {

struct improve_options {
  /// The most passes that seek fewer groups.
  std::size_t passes = 64;
  /// The most passes that then even the loads.
  std::size_t even_passes = 16;
  /// Other seeds find other packings.
  std::uint64_t seed = 0;
};

/// How far `improve` has come.
struct improve_progress {
  std::size_t passes;       ///< passes run so far
  std::size_t groups;       ///< groups of the packing so far
  std::size_t lower_bound;  ///< groups that no packing can do without
};

/// A functor that is asked after each pass and says whether to go on.
template <class Function>
concept progress_predicate = std::predicate<Function&, improve_progress const&>;

struct improve_fn {
  /// A packing of the same samples with fewer groups, or with as many and evener loads: never more
  /// groups than `start`, and where as many, never a larger sum of the squares of the loads, as
  /// shares of the capacity.
  ///
  /// Each pass dissolves some of the groups into a pool, exchanges up to two samples of every other
  /// group against one or two of the pool that fill it better, and packs what is left in the pool
  /// afresh. A pass that makes more groups is undone. The passes end at the lower bound, when
  /// passes of all sizes have gained nothing, or at `options.passes`; `go_on` may end them earlier,
  /// for instance at a time limit. The result after p passes is the start of pass p + 1.
  ///
  /// The groups come in no particular order. `start` may be of any packer, with the same samples,
  /// demand and capacity; empty groups are dropped. The report counts the passes as rounds and
  /// knows no keep rule.
  ///
  /// Complexity: a pass is linear in the samples but for the looking up of groups as in
  /// `best_fit_decreasing`: 0.1 to 0.7 microseconds per sample, less where most groups are full.
  /// Memory: about 56 + 16R bytes per sample. Determinism: portable for integers. Errors: those of
  /// `best_fit_decreasing` for capacity and demands; `std::invalid_argument` where `start` names an
  /// index twice or not at all, one that is not a sample, an oversized sample in a group or one
  /// that fits as oversized, and where a group exceeds the capacity.
  template <class Samples, class Demand, class Capacity, class GoOn>
    requires detail::measured_samples<Samples, Demand, Capacity> && progress_predicate<GoOn>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, packing const& start,
                                   improve_options const& options, GoOn go_on) const {
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using layout_type = decltype(input.layout);
      grouping const given = detail::checked_numbers(name, input, start);
      packing result;
      packing_report& report = result.report;
      report = start.report;
      report.below_keep = 0;
      // Not that of the start, which may have been packed under a smaller capacity.
      report.lower_bound = detail::measured_bound(input);
      auto const count_pass = [&] {
        ++report.rounds;
        report.item_rounds += input.size();
      };

      grouping groups = given;
      detail::group_reducer<layout_type> reducer(input, options.seed);
      for (std::size_t pass = 0; pass != options.passes; ++pass) {
        if (groups.size() <= report.lower_bound || reducer.is_exhausted()) break;
        reducer.run(groups);
        count_pass();
        if (!go_on(improve_progress{pass + 1, groups.size(), report.lower_bound})) break;
      }
      // Fuller groups serve only to have fewer of them.
      if (groups.size() == given.size()) groups = given;
      detail::group_evener<layout_type> evener(input);
      for (std::size_t pass = 0; pass != options.even_passes && !evener.is_settled(); ++pass) {
        evener.run(groups);
        count_pass();
      }
      result.groups = detail::to_indices(groups, input);
      result.oversized = std::move(input.oversized);
      return result;
    });
  }

  /// The same without a functor that ends it.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, packing const& start,
                                   improve_options const& options = {}) const {
    auto const always = [](improve_progress const&) { return true; };
    return (*this)(samples, demand, capacity, start, options, always);
  }

 private:
  static constexpr std::string_view name = "improve";
};

/// Local search on a packing; see `improve_fn`.
inline constexpr improve_fn improve{};

}  // namespace omnibal::inline v0
