#pragma once

/// \file
/// The first pass of every packer: measure the samples, check them, set the oversized ones aside.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/pack/detail/layout.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples ready to be packed. Amounts are in `units`: integer demands that share a divisor are divided
/// by it where the capacity is large, so that time and memory do not depend on the unit of a resource.
template <class Layout>
struct measured {
  using amounts_type = typename Layout::amounts_type;

  Layout layout;
  amounts_type capacity;
  amounts_type units;
  /// The demands of the samples that fit an empty group, in order.
  std::vector<typename Layout::demand_type> demands;
  /// The indices of these samples; empty where all samples fit, so that sample k is number k.
  std::vector<std::uint32_t> indices;
  std::vector<std::uint32_t> oversized;

  [[nodiscard]] std::size_t size() const { return demands.size(); }

  /// A function from k to the amount of resource `kind` that sample k takes. It holds a copy of the
  /// layout, which compilers keep in registers, as they cannot do with one in memory.
  [[nodiscard]] auto amounts_of(std::size_t kind) const {
    return [layout = layout, first = demands.data(), kind](std::size_t k) {
      return layout.amount(first[k], kind);
    };
  }
  [[nodiscard]] std::uint32_t index(std::size_t k) const {
    return indices.empty() ? static_cast<std::uint32_t>(k) : indices[k];
  }

  /// Amounts as the user's functors know them.
  [[nodiscard]] static constexpr amounts_type in_user_units(amounts_type amounts,
                                                            amounts_type const& units) {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      for (std::size_t r = 0; r != amounts.size(); ++r) amounts[r] *= units[r];
    }
    return amounts;
  }
};

/// The capacity in the type in which these samples are packed; throws unless it is positive.
template <class Samples, class Demand, class Capacity>
[[nodiscard]] auto checked_capacity(std::string_view function, Capacity const& capacity) {
  auto const limits = to_resources<working_weight_of<Samples, Demand, Capacity>>(capacity);
  for (std::size_t r = 0; r != limits.size(); ++r) {
    if (!(limits[r] > 0) || !is_valid_weight(limits[r])) {
      throw_invalid(function, "capacity[" + to_text(r) + "] is " + to_text(limits[r]) +
                                  ", must be positive and finite");
    }
  }
  return limits;
}

/// Calls `body(index, amounts)` for each sample in order; throws for a demand that is negative or not
/// finite.
template <class Amounts, class Samples, class Demand, class Body>
void for_each_demand(std::string_view function, Samples const& samples, Demand const& demand,
                     Body body) {
  std::uint32_t index = 0;
  for (auto&& sample : samples) {
    Amounts const amounts =
        to_resources<typename Amounts::value_type>(std::invoke(demand, sample));
    for (std::size_t r = 0; r != Amounts::size(); ++r) {
      if (!is_valid_weight(amounts[r])) [[unlikely]] {
        throw_invalid(function, "demand of sample " + to_text(index) + " is " +
                                    to_text(amounts[r]) + " in resource " + to_text(r) +
                                    ", must be finite and not negative");
      }
    }
    body(index++, amounts);
  }
}

/// The greatest common divisor of all demands for each resource, where a capacity is so large that it
/// matters, else ones.
template <class Amounts, class Samples, class Demand>
[[nodiscard]] Amounts common_units(std::string_view function, Samples const& samples,
                                   Demand const& demand, Amounts const& capacity) {
  Amounts units{};
  if constexpr (std::integral<typename Amounts::value_type>) {
    constexpr std::int64_t large = std::int64_t{1} << 20;
    if (std::any_of(std::begin(capacity.amounts), std::end(capacity.amounts),
                    [](std::int64_t limit) { return limit >= large; })) {
      for_each_demand<Amounts>(function, samples, demand,
                               [&units](std::uint32_t, Amounts const& amounts) {
                                 for (std::size_t r = 0; r != amounts.size(); ++r) {
                                   if (units[r] == 1) continue;
                                   bool const divides = units[r] != 0 && amounts[r] % units[r] == 0;
                                   if (!divides) units[r] = std::gcd(units[r], amounts[r]);
                                 }
                               });
    }
  }
  for (auto& unit : units.amounts) unit = unit > 0 ? unit : 1;
  return units;
}

/// Measures the samples and calls `body` with a `measured` of the smallest layout for the capacity.
/// Errors: those that every packer documents for capacity, demand and samples.
template <class Samples, class Demand, class Capacity, class Body>
decltype(auto) with_measured(std::string_view function, Samples const& samples,
                             Demand const& demand, Capacity const& capacity, Body const& body) {
  check_index_count(function, "samples", std::ranges::size(samples));
  auto const limits = checked_capacity<Samples, Demand, Capacity>(function, capacity);
  using amounts_type = std::remove_const_t<decltype(limits)>;
  auto const units = common_units(function, samples, demand, limits);
  auto const in_units = [&units](amounts_type amounts) {
    for (std::size_t r = 0; r != amounts.size(); ++r) amounts[r] /= units[r];
    return amounts;
  };
  bool const divides = std::any_of(std::begin(units.amounts), std::end(units.amounts),
                                   [](auto unit) { return unit != 1; });
  // A capacity below the unit holds no sample that needs the resource; one keeps it a valid capacity.
  amounts_type capacity_in_units = in_units(limits);
  for (auto& limit : capacity_in_units.amounts) {
    if (limit < 1 && divides) limit = 1;
  }

  return with_layout(capacity_in_units, [&](auto const& layout) {
    measured<std::remove_cvref_t<decltype(layout)>> result{
        layout, capacity_in_units, units, {}, {}, {}};
    result.demands.resize(std::ranges::size(samples));
    auto* next_demand = result.demands.data();
    for_each_demand<amounts_type>(
        function, samples, demand,
        [&, layout](std::uint32_t index, amounts_type const& amounts) {
          if (amounts.fits(limits)) {
            *next_demand++ = divides ? layout.encode(in_units(amounts)) : layout.encode(amounts);
          } else {
            result.oversized.push_back(index);
          }
        });
    result.demands.resize(static_cast<std::size_t>(next_demand - result.demands.data()));
    if (!result.oversized.empty()) {
      result.indices.reserve(result.demands.size());
      auto next_oversized = result.oversized.begin();
      for (std::uint32_t index = 0; index != std::ranges::size(samples); ++index) {
        if (next_oversized != result.oversized.end() && *next_oversized == index) {
          ++next_oversized;
        } else {
          result.indices.push_back(index);
        }
      }
    }
    return body(std::move(result));
  });
}

}  // namespace omnibal::inline v0::detail
