#pragma once

/// \file
/// Moves and swaps that even parts.

#include <omnibal/balance/detail/collect_parts.hpp>
#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/least_load.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/detail/place_longest_first.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// Whether the number of samples in a part may change.
enum class part_counts { free, kept };

struct refine_options {
  /// The search ends where the largest load exceeds a lower bound by at most this share of it.
  double tolerance = 0.0;
  /// With `kept` samples are only swapped, else moved too.
  part_counts counts = part_counts::free;
  /// The most moves and swaps.
  std::size_t exchanges = 1'000'000;
};

struct refine_fn {
  /// Evens the loads of given parts: samples move or are swapped between the part with the largest
  /// load and another one, the least loaded that helps, each time those after which the larger load
  /// of the two is least. The largest load never rises. The search ends within `options.tolerance`
  /// of a lower bound (the mean load, the largest cost, two of the `parts + 1` largest), after
  /// `options.exchanges`, or where no exchange with any part lowers the largest load.
  ///
  /// The parts keep their order and have their samples by ascending index. Costs may be resources
  /// as in `lpt`; the largest share of a part is its load then, and at most 64 samples of a part,
  /// evenly spaced, are looked at. Floating-point costs and shares are compared as whole numbers of
  /// 2^-62 and 2^-52 of their sum. `cost` is called once for each sample, in order.
  ///
  /// Complexity: linear for the sort; then, for each part that is tried, the samples of two parts,
  /// or 64^2 pairs for several resources. Memory: 40 + 16R bytes per sample and 160 + 8R per part
  /// at most, result included. Determinism: portable for integers. Errors: `std::invalid_argument` for a
  /// cost that is negative, not finite or above 2^63 - 1, a tolerance that is negative or not
  /// finite, and parts that name an index twice, not at all or above the samples;
  /// `std::overflow_error` where the sum of all costs leaves its type; `std::length_error` above
  /// 2^32 - 1 samples.
  template <sample_range Samples, class Cost = std::identity>
    requires demand_function<Cost, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, grouping_view parts,
                                    Cost const& cost = {},
                                    refine_options const& options = {}) const {
    if (!detail::is_valid_weight(options.tolerance)) {
      detail::throw_invalid(name, "tolerance is " + detail::to_text(options.tolerance) +
                                      ", must be finite and not negative");
    }
    auto const costs = detail::measure_costs(name, samples, cost);
    std::vector<std::uint32_t> part_of = parts_of_samples(parts, costs.size());
    if (parts.empty()) return {};
    auto const order = detail::largest_first(costs);
    std::int64_t const bound = detail::least_load(costs, std::span(order), parts.size());
    detail::part_refiner refiner(costs, order, part_of, parts.size());
    refiner.run(with_tolerance(bound, options.tolerance), options.exchanges,
                options.counts == part_counts::free);
    refiner.for_each_sample(
        [&](std::uint32_t place, std::uint32_t part) { part_of[order[place]] = part; });
    return detail::collect_parts(part_of, parts.size());
  }

 private:
  static constexpr std::string_view name = "refine";

  /// The part of each sample; throws unless every sample is in one part.
  [[nodiscard]] static std::vector<std::uint32_t> parts_of_samples(grouping_view parts,
                                                                   std::size_t samples) {
    constexpr std::uint32_t no_part = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> part_of(samples, no_part);
    for (std::size_t part = 0; part != parts.size(); ++part) {
      for (std::uint32_t const item : parts[part]) {
        if (item >= samples) {
          detail::throw_invalid(name, "part " + detail::to_text(part) + " has item " +
                                          detail::to_text(item) + ", but there are " +
                                          detail::to_text(samples) + " samples");
        }
        if (part_of[item] != no_part) {
          detail::throw_invalid(name, "sample " + detail::to_text(item) + " is in two places");
        }
        part_of[item] = static_cast<std::uint32_t>(part);
      }
    }
    if (parts.item_count() != samples) {
      detail::throw_invalid(name, "the parts have " + detail::to_text(parts.item_count()) +
                                      " samples, not " + detail::to_text(samples));
    }
    return part_of;
  }

  [[nodiscard]] static std::int64_t with_tolerance(std::int64_t bound, double tolerance) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    double const slack = static_cast<double>(bound) * tolerance;
    if (slack >= static_cast<double>(most - bound)) return most;
    return bound + static_cast<std::int64_t>(slack);
  }
};

/// Moves and swaps that even parts; see `refine_fn`.
inline constexpr refine_fn refine{};

}  // namespace omnibal::inline v0
