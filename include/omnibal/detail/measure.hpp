// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first pass of every packer: it measures and checks the samples, and separates the oversized
/// samples.
///
/// Demands are stored in the bit fields of one word if they fit, and otherwise as resources. Both
/// kinds of layout have the same members:
///
///   demand_type             a demand that fits an empty group
///   room_type               the remaining room of a group
///   empty_room()            the room of an empty group
///   encode(amounts)         resources to demand_type; precondition: they fit the capacity
///   amounts(demand)         the inverse
///   amount(demand, kind)    one of the amounts
///   left(room)              the room as resources
///   load(room)              capacity minus room, as resources
///   fits(room, demand)      whether the demand fits
///   take(room, demand)      subtracts the demand from the room; precondition: it fits
///   take_or_renew(room, demand)  the same if it fits, else from an empty room; returns whether it
///                                fitted

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
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

/// One field per resource with a guard bit above it. The room is stored as the load plus a bias.
/// With this bias a load above the capacity reaches the guard, so that one addition tests all
/// resources.
template <class Word, std::size_t R>
class packed_layout {
 public:
  using amounts_type = resources<R, std::int64_t>;
  using demand_type = Word;
  using room_type = Word;

  /// Returns the number of bits of the fields and guards of a capacity.
  [[nodiscard]] static constexpr std::size_t bits_for(amounts_type const& capacity) {
    std::size_t bits = 0;
    for (std::size_t r = 0; r != R; ++r) bits += width_of(capacity[r]) + 1;
    return bits;
  }

  /// Precondition: `bits_for(capacity)` is at most the number of bits of a word.
  explicit constexpr packed_layout(amounts_type const& capacity) {
    amounts_type bias{};
    unsigned position = 0;
    for (std::size_t r = 0; r != R; ++r) {
      unsigned const width = width_of(capacity[r]);
      std::uint64_t const largest = (std::uint64_t{1} << width) - 1;
      bias[r] = static_cast<std::int64_t>(largest - static_cast<std::uint64_t>(capacity[r]));
      shift_[r] = position;
      mask_[r] = static_cast<Word>(largest);
      guards_ = static_cast<Word>(guards_ | Word{1} << (position + width));
      full_ = static_cast<Word>(full_ | static_cast<Word>(mask_[r] << position));
      position += width + 1;
    }
    bias_ = encode(bias);
  }

  [[nodiscard]] constexpr room_type empty_room() const { return bias_; }
  [[nodiscard]] constexpr demand_type encode(amounts_type const& amounts) const {
    Word word = 0;
    for (std::size_t r = 0; r != R; ++r) {
      word = static_cast<Word>(word | static_cast<Word>(amounts[r]) << shift_[r]);
    }
    return word;
  }
  [[nodiscard]] constexpr std::int64_t amount(demand_type demand, std::size_t kind) const {
    return static_cast<std::int64_t>((demand >> shift_[kind]) & mask_[kind]);
  }
  [[nodiscard]] constexpr amounts_type amounts(demand_type demand) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = amount(demand, r);
    return result;
  }
  [[nodiscard]] constexpr amounts_type left(room_type room) const {
    return amounts(static_cast<Word>(full_ - room));
  }
  [[nodiscard]] constexpr amounts_type load(room_type room) const {
    return amounts(static_cast<Word>(room - bias_));
  }
  [[nodiscard]] constexpr bool fits(room_type room, demand_type demand) const {
    return (static_cast<Word>(room + demand) & guards_) == 0;
  }
  constexpr void take(room_type& room, demand_type demand) const {
    room = static_cast<Word>(room + demand);
  }
  constexpr bool take_or_renew(room_type& room, demand_type demand) const {
    auto const sum = static_cast<Word>(room + demand);
    auto const renewed = static_cast<Word>(bias_ + demand);
    bool const fitted = (sum & guards_) == 0;
    // The probability of one half gives a conditional move, not a branch that is mispredicted at
    // every end of a group.
    room = __builtin_expect_with_probability(fitted, 1, 0.5) ? sum : renewed;
    return fitted;
  }

 private:
  [[nodiscard]] static constexpr unsigned width_of(std::int64_t amount) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(amount)));
  }

  unsigned shift_[R] = {};
  Word mask_[R] = {};
  Word guards_ = 0;
  Word full_ = 0;
  Word bias_ = 0;
};

/// Unchanged amounts: floating-point numbers, and integers that no single word can hold. The room
/// is stored as the load. Therefore a load is the sum of its demands in the order of packing,
/// without the rounding of the remaining capacity.
template <std::size_t R, class T>
class plain_layout {
 public:
  using amounts_type = resources<R, T>;
  using demand_type = amounts_type;
  using room_type = amounts_type;

  explicit constexpr plain_layout(amounts_type const& capacity) : capacity_(capacity) {}

  [[nodiscard]] constexpr room_type empty_room() const { return {}; }
  [[nodiscard]] constexpr demand_type encode(amounts_type const& amounts) const { return amounts; }
  [[nodiscard]] constexpr amounts_type amounts(demand_type const& demand) const { return demand; }
  [[nodiscard]] constexpr T amount(demand_type const& demand, std::size_t kind) const {
    return demand[kind];
  }
  [[nodiscard]] constexpr amounts_type left(room_type const& room) const {
    return capacity_ - room;
  }
  [[nodiscard]] constexpr amounts_type load(room_type const& room) const { return room; }
  [[nodiscard]] constexpr bool fits(room_type const& room, demand_type const& demand) const {
    // The sum of integers may exceed the largest integer.
    if constexpr (std::integral<T>) return demand.fits(left(room));
    return (room + demand).fits(capacity_);
  }
  constexpr void take(room_type& room, demand_type const& demand) const { room += demand; }
  constexpr bool take_or_renew(room_type& room, demand_type const& demand) const {
    bool const fitted = fits(room, demand);
    for (std::size_t r = 0; r != R; ++r) room[r] = (fitted ? room[r] : T{}) + demand[r];
    return fitted;
  }

 private:
  amounts_type capacity_;
};

/// Calls `body` with the smallest layout for this capacity.
template <std::size_t R, class T, class Body>
decltype(auto) with_layout(resources<R, T> const& capacity, Body const& body) {
  if constexpr (std::floating_point<T>) {
    return body(plain_layout<R, T>(capacity));
  } else {
    std::size_t const bits = packed_layout<std::uint64_t, R>::bits_for(capacity);
    if (bits <= 32) return body(packed_layout<std::uint32_t, R>(capacity));
    if (R == 1 || bits <= 64) return body(packed_layout<std::uint64_t, R>(capacity));
    return body(plain_layout<R, T>(capacity));
  }
}

/// Divides multiples of a fixed positive number, and distinguishes multiples from other numbers, by
/// one multiplication with the inverse modulo 2^64. Source: Granlund, Montgomery, "Division by
/// invariant integers using multiplication", PLDI 1994.
class exact_divisor {
 public:
  explicit constexpr exact_divisor(std::uint64_t divisor = 1)
      : shift_(std::countr_zero(divisor)),
        largest_quotient_(std::numeric_limits<std::uint64_t>::max() / divisor) {
    std::uint64_t const odd = divisor >> shift_;
    // Three bits are correct; each step of Newton's iteration doubles their number.
    inverse_ = odd;
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }

  [[nodiscard]] constexpr bool divides(std::uint64_t value) const {
    return quotient(value) <= largest_quotient_;
  }

  /// Returns value / divisor. Precondition: `divides(value)`.
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

/// Samples ready to be packed, in `units`. If a capacity is large, integer demands are divided by
/// their common divisor. Then time and memory do not depend on the unit of a resource.
template <class Layout>
struct measured {
  using amounts_type = typename Layout::amounts_type;

  Layout layout;
  amounts_type capacity;
  amounts_type units;
  /// The demands of the samples that fit an empty group, in order.
  std::vector<typename Layout::demand_type> demands;
  /// The indices of the other samples, ascending.
  std::vector<std::uint32_t> oversized;

  [[nodiscard]] std::size_t size() const { return demands.size(); }

  /// Returns a function from k to the demand of sample k for resource `kind`. The function has a
  /// copy of the layout, which compilers keep in registers, unlike a layout in memory.
  [[nodiscard]] auto amounts_of(std::size_t kind) const {
    return [layout = layout, first = demands.data(), kind](std::size_t k) {
      return layout.amount(first[k], kind);
    };
  }

  /// Returns the demand of sample k.
  [[nodiscard]] amounts_type amounts(std::size_t k) const { return layout.amounts(demands[k]); }

  /// Returns the sum of the demands of some samples, added in order.
  [[nodiscard]] amounts_type load(std::span<std::uint32_t const> samples) const {
    amounts_type sum{};
    for (std::uint32_t const k : samples) sum += amounts(k);
    return sum;
  }

  /// Returns amounts in the units of the user's functors.
  [[nodiscard]] static constexpr amounts_type in_user_units(amounts_type amounts,
                                                            amounts_type const& units) {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      for (std::size_t r = 0; r != amounts.size(); ++r) amounts[r] *= units[r];
    }
    return amounts;
  }
};

/// Returns the capacity in the type in which these samples are packed; throws unless it is
/// positive.
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

/// Calls `body(index, amounts)` for each sample of [first, last) in order.
template <class Amounts, class Samples, class Demand, class Body>
void for_each_demand(std::string_view function, Samples const& samples, Demand const& demand,
                     std::size_t first, std::size_t last, Body body) {
  for (std::size_t i = first; i != last; ++i) {
    auto&& sample = element_at(samples, i);
    auto const index = static_cast<std::uint32_t>(i);
    weight_name const name{function, "demand", index, " of sample ", ""};
    body(index, to_resources<typename Amounts::value_type>(name, detail::call(demand, sample)));
  }
}

/// Throws for a demand that is negative or not finite; `of` is the word for a sample in the
/// message.
template <class Amounts>
void check_demand(std::string_view function, std::uint64_t index, Amounts const& amounts,
                  std::string_view of = "sample") {
  for (std::size_t r = 0; r != amounts.size(); ++r) {
    if (is_valid_weight(amounts[r])) continue;
    throw_invalid(function, "demand of ", of, " ", index, " is ", amounts[r], " in resource ", r,
                  ", must be finite and not negative");
  }
}

/// Returns true for a demand that is valid and fits the capacity. Integers require one comparison
/// for each resource, because a negative amount counts as a large one.
template <std::size_t R, class T>
[[nodiscard]] constexpr bool is_valid_and_fits(resources<R, T> const& amounts,
                                               resources<R, T> const& capacity) {
  bool result = true;
  for (std::size_t r = 0; r != R; ++r) {
    if constexpr (std::integral<T>) {
      result &= static_cast<std::uint64_t>(amounts[r]) <= static_cast<std::uint64_t>(capacity[r]);
    } else {
      result &= is_valid_weight(amounts[r]) && amounts[r] <= capacity[r];
    }
  }
  return result;
}

/// Returns the greatest common divisor of all demands for each resource if any capacity is large,
/// otherwise 1.
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
      // If no sample needs a resource, any unit of it is correct.
      for (std::size_t r = 0; r != capacity.size(); ++r) {
        if (units[r] == 0) units[r] = capacity[r];
      }
    }
  }
  for (auto& unit : units.amounts) unit = unit > 0 ? unit : 1;
  return units;
}

/// The conversion of amounts to multiples of units, which must divide them.
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

  /// Returns false if all units are one.
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
/// Errors: the errors that every packer documents for capacity, demand and samples.
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
    // Rounded down, because all loads are multiples of the unit. A capacity below the unit holds no
    // sample that needs the resource; the value 1 keeps the capacity valid.
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
