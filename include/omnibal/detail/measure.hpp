#pragma once

/// \file
/// The first pass of every packer: measure the samples, check them, set the oversized ones aside.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/layout.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Divides multiples of a fixed positive number, and tells multiples from other numbers, by one
/// multiplication with the inverse modulo 2^64. Source: Granlund, Montgomery, "Division by
/// invariant integers using multiplication", PLDI 1994.
class exact_divisor {
 public:
  explicit constexpr exact_divisor(std::uint64_t divisor = 1)
      : shift_(std::countr_zero(divisor)),
        largest_quotient_(std::numeric_limits<std::uint64_t>::max() / divisor) {
    std::uint64_t const odd = divisor >> shift_;
    // Correct in three bits; each step of Newton's iteration doubles them.
    inverse_ = odd;
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }

  [[nodiscard]] constexpr bool divides(std::uint64_t value) const {
    return quotient(value) <= largest_quotient_;
  }

  /// value / divisor. Precondition: `divides(value)`.
  [[nodiscard]] constexpr std::uint64_t quotient(std::uint64_t value) const {
    return std::rotr(value * inverse_, shift_);
  }

 private:
  int shift_;
  std::uint64_t largest_quotient_;
  std::uint64_t inverse_ = 0;
};

/// The indices of the samples that are not oversized, ascending.
class fitting_indices {
 public:
  /// Precondition: `oversized` ascends and outlives this object.
  explicit fitting_indices(std::vector<std::uint32_t> const& oversized)
      : next_oversized_(oversized.data()), end_(next_oversized_ + oversized.size()) {}

  [[nodiscard]] std::uint32_t next() {
    for (; next_oversized_ != end_ && *next_oversized_ == index_; ++next_oversized_) ++index_;
    return index_++;
  }

 private:
  std::uint32_t index_ = 0;
  std::uint32_t const* next_oversized_;
  std::uint32_t const* end_;
};

/// Replaces each number k of a sample that fits by the index of that sample.
inline void number_to_index(std::vector<std::uint32_t>& numbers,
                            std::vector<std::uint32_t> const& oversized) {
  if (oversized.empty()) return;
  std::vector<std::uint32_t> indices(numbers.size());
  fitting_indices source(oversized);
  for (std::uint32_t& index : indices) index = source.next();
  for (std::uint32_t& number : numbers) number = indices[number];
}

/// What a function does with the demands of its input.
enum class demands_after { kept, freed };

/// Samples ready to be packed, in `units`: where a capacity is large, integer demands are divided
/// by what they share, so that time and memory do not depend on the unit of a resource.
template <class Layout>
struct measured {
  using amounts_type = typename Layout::amounts_type;

  Layout layout;
  amounts_type capacity;
  amounts_type units;
  /// The demands of the samples that fit an empty group, in order.
  std::vector<typename Layout::demand_type> demands;
  /// The indices of the others, ascending.
  std::vector<std::uint32_t> oversized;

  [[nodiscard]] std::size_t size() const { return demands.size(); }

  /// A function from k to the amount of resource `kind` that sample k takes. It holds a copy of the
  /// layout, which compilers keep in registers, as they cannot do with one in memory.
  [[nodiscard]] auto amounts_of(std::size_t kind) const {
    return [layout = layout, first = demands.data(), kind](std::size_t k) {
      return layout.amount(first[k], kind);
    };
  }

  /// What sample k takes.
  [[nodiscard]] amounts_type amounts(std::size_t k) const { return layout.amounts(demands[k]); }

  /// The sum of what some samples take, in order.
  [[nodiscard]] amounts_type load(std::span<std::uint32_t const> samples) const {
    amounts_type sum{};
    for (std::uint32_t const k : samples) sum += amounts(k);
    return sum;
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
  auto const limits = to_capacity<working_weight_of<Samples, Demand, Capacity>>(function, capacity);
  check_capacity(function, limits);
  return limits;
}

/// Calls `body(index, amounts)` for each sample in order.
template <class Amounts, class Samples, class Demand, class Body>
void for_each_demand(std::string_view function, Samples const& samples, Demand const& demand,
                     Body body) {
  std::uint32_t index = 0;
  for (auto&& sample : samples) {
    weight_name const name{function, "demand", index, " of sample ", ""};
    body(index++, to_resources<typename Amounts::value_type>(name, detail::call(demand, sample)));
  }
}

/// Throws for a demand that is negative or not finite.
template <class Amounts>
void check_demand(std::string_view function, std::uint32_t index, Amounts const& amounts) {
  for (std::size_t r = 0; r != amounts.size(); ++r) {
    if (is_valid_weight(amounts[r])) continue;
    throw_invalid(function, "demand of sample " + to_text(index) + " is " + to_text(amounts[r]) +
                                " in resource " + to_text(r) + ", must be finite and not negative");
  }
}

/// True for a demand that is valid and fits the capacity: one comparison a resource for integers,
/// where a negative amount counts as a large one.
template <std::size_t R, class T>
[[nodiscard]] constexpr bool is_valid_and_fits(resources<R, T> const& amounts,
                                               resources<R, T> const& capacity) {
  bool result = true;
  for (std::size_t r = 0; r != R; ++r) {
    if constexpr (std::integral<T>) {
      result &= static_cast<std::uint64_t>(amounts[r]) <= static_cast<std::uint64_t>(capacity[r]);
    } else {
      result &= amounts[r] >= 0 && amounts[r] <= capacity[r];
    }
  }
  return result;
}

/// The common divisor of all demands for each resource, where a capacity is large; else ones.
template <class Amounts, class Samples, class Demand>
[[nodiscard]] Amounts common_units(std::string_view function, Samples const& samples,
                                   Demand const& demand, Amounts const& capacity) {
  Amounts units{};
  if constexpr (std::integral<typename Amounts::value_type>) {
    constexpr std::int64_t large = std::int64_t{1} << 20;
    if (std::any_of(std::begin(capacity.amounts), std::end(capacity.amounts),
                    [](std::int64_t limit) { return limit >= large; })) {
      exact_divisor divisors[Amounts::size()];
      for_each_demand<Amounts>(
          function, samples, demand, [&](std::uint32_t index, Amounts const& amounts) {
            check_demand(function, index, amounts);
            for (std::size_t r = 0; r != amounts.size(); ++r) {
              if (units[r] != 0 && divisors[r].divides(static_cast<std::uint64_t>(amounts[r])))
                continue;
              if (amounts[r] == 0) continue;
              units[r] = std::gcd(units[r], amounts[r]);
              divisors[r] = exact_divisor(static_cast<std::uint64_t>(units[r]));
            }
          });
      // Where no sample takes any of a resource, every amount of it is as good as one.
      for (std::size_t r = 0; r != capacity.size(); ++r) {
        if (units[r] == 0) units[r] = capacity[r];
      }
    }
  }
  for (auto& unit : units.amounts) unit = unit > 0 ? unit : 1;
  return units;
}

/// Amounts as multiples of units of which they are multiples.
template <class Amounts>
class unit_conversion {
 public:
  explicit unit_conversion(Amounts const& units) {
    if constexpr (std::integral<typename Amounts::value_type>) {
      for (std::size_t r = 0; r != units.size(); ++r) {
        divisors_[r] = exact_divisor(static_cast<std::uint64_t>(units[r]));
        is_needed_ = is_needed_ || units[r] != 1;
      }
    }
  }

  /// False where all units are one.
  [[nodiscard]] bool is_needed() const { return is_needed_; }

  [[nodiscard]] Amounts operator()(Amounts amounts) const {
    if constexpr (std::integral<typename Amounts::value_type>) {
      for (std::size_t r = 0; r != amounts.size(); ++r) {
        auto const quotient = divisors_[r].quotient(static_cast<std::uint64_t>(amounts[r]));
        amounts[r] = static_cast<std::int64_t>(quotient);
      }
    }
    return amounts;
  }

 private:
  bool is_needed_ = false;
  exact_divisor divisors_[Amounts::size()];
};

/// Measures the samples and calls `body` with a `measured` of the smallest layout for the capacity.
/// Errors: those that every packer documents for capacity, demand and samples.
template <class Samples, class Demand, class Capacity, class Body>
decltype(auto) with_measured(std::string_view function, Samples const& samples,
                             Demand const& demand, Capacity const& capacity, Body const& body) {
  check_index_count(function, "samples", std::ranges::size(samples));
  auto const limits = checked_capacity<Samples, Demand, Capacity>(function, capacity);
  using amounts_type = std::remove_const_t<decltype(limits)>;
  auto const units = common_units(function, samples, demand, limits);
  unit_conversion const in_units(units);
  amounts_type capacity_in_units = limits;
  for (std::size_t r = 0; in_units.is_needed() && r != limits.size(); ++r) {
    // Rounded down, as all loads are multiples of the unit. A capacity below the unit holds no
    // sample that needs the resource; one keeps it a valid capacity.
    capacity_in_units[r] = std::max<typename amounts_type::value_type>(1, limits[r] / units[r]);
  }

  return with_layout(capacity_in_units, [&](auto const& layout) {
    measured<std::remove_cvref_t<decltype(layout)>> result{
        layout, capacity_in_units, units, {}, {}};
    result.demands.resize(std::ranges::size(samples));
    auto* next_demand = result.demands.data();
    for_each_demand<amounts_type>(
        function, samples, demand, [&, layout](std::uint32_t index, amounts_type const& amounts) {
          if (is_valid_and_fits(amounts, limits)) [[likely]] {
            *next_demand++ = layout.encode(in_units.is_needed() ? in_units(amounts) : amounts);
          } else {
            check_demand(function, index, amounts);
            result.oversized.push_back(index);
          }
        });
    result.demands.resize(static_cast<std::size_t>(next_demand - result.demands.data()));
    return body(std::move(result));
  });
}

}  // namespace omnibal::inline v0::detail
