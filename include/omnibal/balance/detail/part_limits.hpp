// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The capacities of parts, and the room that samples leave in parts.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// One limit for all parts, so that any two parts are interchangeable.
template <class Amounts>
class common_limit {
 public:
  common_limit() = default;
  common_limit(Amounts const& limit) : limit_(limit) {}

  [[nodiscard]] Amounts const& operator[](std::size_t) const { return limit_; }
  [[nodiscard]] static bool are_alike(std::size_t, std::size_t) { return true; }
  [[nodiscard]] static bool are_equal() { return true; }

  /// Calls `body(limit)` for each limit, which `body` may change.
  template <class Body>
  void for_each(Body const& body) {
    body(limit_);
  }

  /// Returns the sum of one amount over `parts` parts.
  [[nodiscard]] double sum_of(std::size_t kind, std::size_t parts) const {
    return static_cast<double>(limit_[kind]) * static_cast<double>(parts);
  }

 private:
  Amounts limit_{};
};

/// A limit for each part; parts with equal limits are interchangeable.
template <class Amounts>
class part_limits {
 public:
  /// Creates the same limit for all parts.
  part_limits(std::size_t parts, Amounts const& limit) : parts_(parts), limits_{limit} {}
  /// Creates the limits of parts. Precondition: there is a part.
  explicit part_limits(std::vector<Amounts> limits)
      : parts_(limits.size()), limits_(std::move(limits)) {
    bool const are_equal = std::all_of(limits_.begin(), limits_.end(), [this](Amounts const& one) {
      return one == limits_.front();
    });
    // Equal limits are stored once.
    if (are_equal) limits_.resize(1);
  }

  [[nodiscard]] std::size_t size() const { return parts_; }
  [[nodiscard]] bool are_equal() const { return limits_.size() == 1; }
  [[nodiscard]] Amounts const& operator[](std::size_t part) const {
    return limits_[are_equal() ? 0 : part];
  }
  [[nodiscard]] bool are_alike(std::size_t part, std::size_t other) const {
    return are_equal() || limits_[part] == limits_[other];
  }
  /// Returns whether a part has this limit.
  [[nodiscard]] bool contain(Amounts const& limit) const {
    return std::find(limits_.begin(), limits_.end(), limit) != limits_.end();
  }
  /// Returns the first part with the same limit as a part.
  [[nodiscard]] std::uint32_t first_alike(std::uint32_t part) const {
    std::uint32_t first = 0;
    while (!are_alike(first, part)) ++first;
    return first;
  }

  /// Returns the limits of `count` parts; part k has the limit of part `part_at(k)`.
  template <class PartAt>
  [[nodiscard]] part_limits selected(std::size_t count, PartAt const& part_at) const {
    if (are_equal()) return {count, limits_.front()};
    std::vector<Amounts> result;
    result.reserve(count);
    for (std::size_t k = 0; k != count; ++k) result.push_back(limits_[part_at(k)]);
    return part_limits(std::move(result));
  }

  /// Calls `body(limit)` for each limit, which `body` may change.
  template <class Body>
  void for_each(Body const& body) {
    for (Amounts& limit : limits_) body(limit);
  }

  /// Returns the sum of one amount over all parts.
  [[nodiscard]] double sum_of(std::size_t kind, std::size_t) const {
    if (are_equal()) return common_limit<Amounts>(limits_.front()).sum_of(kind, parts_);
    double sum = 0;
    for (Amounts const& limit : limits_) sum += static_cast<double>(limit[kind]);
    return sum;
  }

 private:
  std::size_t parts_;
  /// One limit for all parts, or the limit of each part.
  std::vector<Amounts> limits_;
};

/// The rooms of parts with one capacity, in the words of `Layout`.
template <class Layout>
class common_rooms {
 public:
  /// Creates empty parts. `layout` must outlive this object.
  common_rooms(Layout const& layout, std::size_t parts)
      : layout_(&layout), rooms_(parts, layout.empty_room()) {}

  [[nodiscard]] bool fits(std::size_t part, typename Layout::demand_type const& demand) const {
    return layout_->fits(rooms_[part], demand);
  }
  void take(std::size_t part, typename Layout::demand_type const& demand) {
    layout_->take(rooms_[part], demand);
  }

 private:
  Layout const* layout_;
  std::vector<typename Layout::room_type> rooms_;
};

/// The rooms of parts with a limit each.
template <class Layout>
class part_rooms {
 public:
  using amounts_type = typename Layout::amounts_type;

  /// Creates empty parts. The arguments must outlive this object.
  part_rooms(Layout const& layout, part_limits<amounts_type> const& limits)
      : layout_(&layout), limits_(&limits), loads_(limits.size(), amounts_type{}) {}

  [[nodiscard]] std::size_t size() const { return loads_.size(); }
  [[nodiscard]] bool fits(std::size_t part, typename Layout::demand_type const& demand) const {
    amounts_type const amounts = layout_->amounts(demand);
    // The sum of integers may exceed the largest integer.
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return amounts.fits(left(part));
    } else {
      return (loads_[part] + amounts).fits((*limits_)[part]);
    }
  }
  void take(std::size_t part, typename Layout::demand_type const& demand) {
    loads_[part] += layout_->amounts(demand);
  }
  /// Returns the room of a part.
  [[nodiscard]] amounts_type left(std::size_t part) const {
    return (*limits_)[part] - loads_[part];
  }

 private:
  Layout const* layout_;
  part_limits<amounts_type> const* limits_;
  std::vector<amounts_type> loads_;
};

/// The capacities of parts in the working type `Weight`: one for all, or one for each part.
template <std::size_t R, class Weight>
class part_capacities {
 public:
  using amounts_type = resources<R, Weight>;

  /// Reads a capacity for all parts, or a range of capacities; `things` names the parts in error
  /// texts. Errors: `std::invalid_argument` if a range does not have one capacity for each part, or
  /// if an amount is not positive or not finite.
  template <class Capacity>
  part_capacities(std::string_view function, Capacity const& given, std::size_t parts,
                  std::string_view things = "parts")
      : parts_(parts) {
    if constexpr (measure<Capacity>) {
      largest_ = to_capacity<Weight>(function, given);
      check_capacity(function, largest_);
    } else {
      check_size(function, "capacity", std::ranges::size(given), parts, things);
      each_.reserve(parts);
      for (std::size_t part = 0; part != parts; ++part) {
        each_.push_back(checked(function, part, element_at(given, part)));
        for (std::size_t r = 0; r != R; ++r) {
          largest_[r] = std::max(largest_[r], each_.back()[r]);
        }
      }
    }
  }

  /// Returns the largest amount of each kind.
  [[nodiscard]] amounts_type const& largest() const { return largest_; }

  /// Returns the limits of parts in the units of `input`, which was measured with the capacity
  /// `largest()`.
  template <class Input>
  [[nodiscard]] part_limits<amounts_type> limits(Input const& input) const {
    if (each_.empty()) return {parts_, input.capacity};
    std::vector<amounts_type> result(parts_, input.capacity);
    for (std::size_t part = 0; part != each_.size(); ++part) {
      for (std::size_t r = 0; r != R; ++r) {
        if (each_[part][r] != largest_[r]) result[part][r] = each_[part][r] / input.units[r];
      }
    }
    return part_limits<amounts_type>(std::move(result));
  }

 private:
  template <class Value>
  [[nodiscard]] static amounts_type checked(std::string_view function, std::size_t part,
                                            Value const& value) {
    auto const amounts = to_resources<Weight>({function, "capacity", part}, value);
    for (std::size_t r = 0; r != R; ++r) {
      if (is_positive(amounts[r])) continue;
      throw_invalid(function, "capacity[", part, "] is ", amounts[r], " in resource ", r,
                    ", must be positive and finite");
    }
    return amounts;
  }

  std::size_t parts_;
  amounts_type largest_{};
  std::vector<amounts_type> each_;
};

/// The type of the capacities of parts for these samples.
template <class Samples, class Demand, class Capacity>
using part_capacities_of =
    part_capacities<kinds_of<typename capacity_of<Capacity>::type>,
                    working_weight_of<Samples, Demand, typename capacity_of<Capacity>::type>>;

/// True if `Demand` measures the samples with the same number of kinds of resources as `Capacity`,
/// or each capacity of a range, has.
template <class Samples, class Demand, class Capacity>
concept limited_samples = (measure<Capacity> || capacity_range<Capacity>) &&
    measured_samples<Samples, Demand, typename capacity_of<Capacity>::type>;

/// Makes samples oversized that exceed the limit of each part in some kind.
template <class Input, class Amounts>
void separate_unplaceable(Input& input, part_limits<Amounts> const& limits) {
  if (Amounts::size() == 1 || limits.are_equal()) return;
  std::vector<Amounts> distinct;
  for (std::size_t part = 0; part != limits.size(); ++part) {
    if (std::find(distinct.begin(), distinct.end(), limits[part]) == distinct.end()) {
      distinct.push_back(limits[part]);
    }
  }
  std::vector<std::uint32_t> oversized;
  auto next = input.oversized.cbegin();
  std::size_t kept = 0;
  std::uint32_t index = 0;
  for (std::size_t k = 0; k != input.size(); ++k, ++index) {
    for (; next != input.oversized.cend() && *next == index; ++next) oversized.push_back(index++);
    Amounts const amounts = input.amounts(k);
    bool const is_placeable = std::any_of(distinct.begin(), distinct.end(), [&](Amounts const& limit) {
      return amounts.fits(limit);
    });
    if (is_placeable) {
      input.demands[kept++] = input.demands[k];
    } else {
      oversized.push_back(index);
    }
  }
  oversized.insert(oversized.end(), next, input.oversized.cend());
  input.demands.resize(kept);
  input.oversized = std::move(oversized);
}

/// The sum of amounts of one kind. Floating-point amounts are shares of a capacity, so that their
/// sum stays finite.
template <class Weight>
using demand_total = std::conditional_t<std::integral<Weight>, int128, double>;

/// Returns an amount in the unit of `demand_total`.
template <class Weight>
[[nodiscard]] constexpr demand_total<Weight> as_total(Weight amount, [[maybe_unused]] Weight capacity) {
  if constexpr (std::integral<Weight>) {
    return amount;
  } else {
    return amount / capacity;
  }
}

/// Returns the sum of the demands of one kind. A sum of floating-point demands is smaller than the
/// true sum by more than all rounding.
template <class Input>
[[nodiscard]] auto least_total(Input const& input, std::size_t kind) {
  using weight = typename Input::amounts_type::value_type;
  demand_total<weight> sum = 0;
  for (std::size_t k = 0; k != input.size(); ++k) {
    sum += as_total(input.amounts(k)[kind], input.capacity[kind]);
  }
  if constexpr (!std::integral<weight>) sum *= 1 - 1e-9;
  return sum;
}

/// Returns a lower bound on the number of parts: the fewest limits that together hold all demands
/// of each kind. Returns one more than the number of parts if all limits together do not.
template <class Input, class Amounts>
[[nodiscard]] std::size_t fewest_parts(Input const& input, part_limits<Amounts> const& limits) {
  std::size_t result = 0;
  for (std::size_t r = 0; r != Amounts::size(); ++r) {
    auto missing = least_total(input, r);
    std::vector<decltype(missing)> rooms;
    for (std::size_t part = 0; part != limits.size(); ++part) {
      rooms.push_back(as_total(limits[part][r], input.capacity[r]));
    }
    std::sort(rooms.begin(), rooms.end(), std::greater<>());
    std::size_t parts = 0;
    while (parts != rooms.size() && missing > 0) missing -= rooms[parts++];
    result = std::max(result, missing > 0 ? parts + 1 : parts);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
