#pragma once

/// \file
/// Moves and swaps that even parts, many pairs of parts at a time.

#include <omnibal/balance/detail/refine_parts.hpp>
#include <omnibal/balance/detail/round_refiner.hpp>
#include <omnibal/balance/refine.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace omnibal::inline v0 {

struct refine_rounds_options {
  /// The search ends where the largest load exceeds a lower bound by at most this share of it.
  double tolerance = 0.005;
  /// With `kept` samples are only swapped, else moved too.
  part_counts counts = part_counts::free;
  /// The most rounds.
  std::size_t rounds = 1'000'000;
};

struct refine_rounds_fn {
  /// Evens the loads of given parts in rounds: the most loaded part exchanges with the least loaded
  /// one, the second most loaded with the second least loaded, and so on as far as loads are above
  /// the limit; each pair makes the one move or swap after which the larger load of the two is
  /// least. Where that does not help the most loaded part, it alone exchanges with the part that
  /// helps it most. The largest load never rises. The search ends within `options.tolerance` of a
  /// lower bound (the mean load, the largest cost, two of the `parts + 1` largest), after
  /// `options.rounds`, or where no exchange with any part lowers the largest load.
  ///
  /// All pairs of a round are independent of each other: it is what a GPU does, and this is the
  /// same on the host. A few rounds bring dealt parts within a percent; `refine` is as good and has
  /// less to do on one thread.
  ///
  /// The parts keep their order and have their samples by ascending index. Floating-point costs are
  /// compared as whole numbers of 2^-62 of their sum. `cost` is called once for each sample, in
  /// order.
  ///
  /// Complexity: linear for the sort; then, for each round, linear for the pairs and a sort of the
  /// parts. Memory: 60 bytes per sample and 50 per part at most, result included. Determinism:
  /// portable for integers. Errors: `std::invalid_argument` for a cost that is negative, not finite
  /// or above 2^63 - 1, a tolerance that is negative or not finite, and parts that name an index
  /// twice, not at all or above the samples; `std::overflow_error` where the sum of all costs
  /// leaves its type; `std::length_error` above 2^32 - 1 samples.
  template <sample_range Samples, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, grouping_view parts,
                                    Cost const& cost = {},
                                    refine_rounds_options const& options = {}) const {
    return detail::refine_parts(
        name, samples, parts, cost, options.tolerance,
        [&](auto const& costs, auto const& order, auto const& part_of, std::int64_t limit,
            auto const& put) {
          detail::round_refiner refiner(costs, order, part_of, parts.size());
          refiner.run(limit, options.rounds, options.counts == part_counts::free);
          refiner.lists().for_each_sample(put);
        });
  }

 private:
  static constexpr std::string_view name = "refine_rounds";
};

/// Moves and swaps that even parts, many pairs at a time; see `refine_rounds_fn`.
inline constexpr refine_rounds_fn refine_rounds{};

}  // namespace omnibal::inline v0
