#pragma once

/// \file
/// A predicate of stages that says how much memory is missing.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// A stage predicate that also says by how many bytes a stage fails: `missing_bytes(stage, first,
/// last)` is positive where it does, and else what is left, negative. Where no stages satisfy such
/// a predicate, a partition says which stage lacks how much.
template <class Predicate>
concept memory_predicate = stage_predicate<Predicate> &&
    requires(Predicate const& rule, std::size_t number) {
  { rule.missing_bytes(number, number, number) } -> std::same_as<std::int64_t>;
};

namespace detail {

/// A whole number of bytes, or a functor from a stage to that.
template <class Capacity>
concept stage_capacity = integral_amount<Capacity> ||
    (std::regular_invocable<Capacity const&, std::size_t>&&
         integral_amount<std::remove_cvref_t<std::invoke_result_t<Capacity const&, std::size_t>>>);

/// A stage cost in whole numbers.
template <class Bytes>
concept stage_bytes = stage_cost<Bytes> && integral_amount<
    std::remove_cvref_t<std::invoke_result_t<Bytes const&, std::size_t, std::size_t, std::size_t>>>;

}  // namespace detail

/// The memory rule of a trainer: stages fit where `bytes(stage, first, last)` is at most
/// `capacity`, a number or a functor of the stage. To be used as the predicate of a partition:
/// `partition_layers(layers, stages, cost, memory_rule{bytes, 80'000'000'000})`.
///
/// The bytes may depend on the stage, as with the micro-batches that 1F1B has in flight, and need
/// not add up. Where layers have bytes that do, `partition_constraints` makes the search shorter.
/// Errors of a call: `std::invalid_argument` for bytes or a capacity that is negative or above
/// 2^63 - 1.
template <detail::stage_bytes Bytes, detail::stage_capacity Capacity = std::int64_t>
struct memory_rule {
  Bytes bytes;
  Capacity capacity;

  [[nodiscard]] std::int64_t missing_bytes(std::size_t stage, std::size_t first,
                                           std::size_t last) const {
    auto const taken =
        detail::checked_cost<std::int64_t>(name, "bytes", stage, bytes(stage, first, last));
    return taken - detail::checked_cost<std::int64_t>(name, "capacity", stage, of(stage));
  }

  [[nodiscard]] bool operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    return missing_bytes(stage, first, last) <= 0;
  }

 private:
  static constexpr std::string_view name = "memory_rule";

  [[nodiscard]] auto of(std::size_t stage) const {
    if constexpr (std::integral<Capacity>) {
      return capacity;
    } else {
      return capacity(stage);
    }
  }
};

template <class Bytes, class Capacity>
memory_rule(Bytes, Capacity) -> memory_rule<Bytes, Capacity>;

}  // namespace omnibal::inline v0
