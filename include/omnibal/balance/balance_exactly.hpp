#pragma once

/// \file
/// The most even parts, by branch and bound.

#include <omnibal/balance/balance_exactly/exact_search.hpp>
#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/differencing.hpp>
#include <omnibal/balance/detail/part_room.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace omnibal::inline v0 {

struct balance_exactly_options {
  count_policy count = count_policy::any;
  /// How many samples may be placed, those placed again counted again, before the search ends
  /// without a proof.
  std::uint64_t nodes = 10'000'000;
};

/// Parts and whether they are known to be the best.
struct exact_balance {
  grouping parts;
  /// True where no other parts have a smaller largest load.
  bool proven = false;
  /// How many samples were placed.
  std::uint64_t nodes = 0;

  [[nodiscard]] friend bool operator==(exact_balance const&, exact_balance const&) = default;
};

struct balance_exactly_fn {
  /// The parts with the smallest largest load, for small numbers of samples: about 20 of arbitrary
  /// costs, many more where a solution reaches the mean load. Other algorithms can be judged by
  /// it.
  ///
  /// Starts from the results of `lpt` and, for one resource, of `karmarkar_karp`, and places the
  /// samples from the largest to the smallest, depth first, passing over parts that are like
  /// another part and samples that the rest of the room cannot hold. Where `proven` is false the
  /// nodes were used up, and the parts are the best that were found. Costs may be resources as in
  /// `lpt`; the largest share is what is minimised. Floating-point costs and shares are compared
  /// as whole numbers of 2^-62 and 2^-52 of their sum.
  ///
  /// The parts have their samples by ascending index. Complexity: `options.nodes` times parts
  /// squared; exponential in the samples without that limit. Memory: linear. Determinism: portable
  /// for integers. Errors: those of `lpt`.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] exact_balance operator()(Samples const& samples, std::size_t parts,
                                         Cost const& cost = {},
                                         balance_exactly_options const& options = {}) const {
    detail::check_parts(name, parts);
    auto const costs = detail::measure_costs(name, samples, cost);
    constexpr std::size_t kinds = detail::cost_kinds<Samples, Cost>;
    detail::exact_search<kinds> search(costs,
                                       detail::part_room(name, options.count, costs.size(), parts));
    if constexpr (kinds == 1) {
      if (options.count == count_policy::any) {
        search.offer(detail::difference_largest(costs, parts));
      }
    }
    bool const proven = search.run(options.nodes);
    return {detail::collect_parts(search.best(), parts), proven, search.nodes()};
  }

 private:
  static constexpr std::string_view name = "balance_exactly";
};

/// The most even parts; see `balance_exactly_fn`.
inline constexpr balance_exactly_fn balance_exactly{};

}  // namespace omnibal::inline v0
