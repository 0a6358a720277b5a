// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The forms of the times, transfers and bytes of a pipeline: one value, a range, a range of ranges
/// or a functor. Returns and checks the value for a virtual stage and a micro-batch.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0::detail {

template <class Source>
concept indexed_range =
    std::ranges::random_access_range<Source const> && std::ranges::sized_range<Source const>;

template <class Source>
concept operation_functor = std::regular_invocable<Source const&, std::size_t, std::size_t>;

/// Returns the value of `source` for a stage and a micro-batch.
template <class Source>
[[nodiscard]] constexpr auto value_at(Source const& source, std::size_t stage,
                                      std::size_t micro_batch) {
  if constexpr (operation_functor<Source>) {
    return std::invoke(source, stage, micro_batch);
  } else if constexpr (indexed_range<Source>) {
    auto const& of_stage = element_at(source, stage);
    if constexpr (indexed_range<std::remove_cvref_t<decltype(of_stage)>>) {
      return element_at(of_stage, micro_batch);
    } else {
      return of_stage;
    }
  } else {
    return source;
  }
}

template <class Source>
using value_of = std::remove_cvref_t<decltype(value_at(std::declval<Source const&>(), 0, 0))>;

template <class Value>
concept has_both_ways = requires(Value const& value) {
  requires scalar_measure<std::remove_cvref_t<decltype(value.forward)>>;
  requires scalar_measure<std::remove_cvref_t<decltype(value.backward)>>;
};

template <class Value>
concept has_weight_time = requires(Value const& value) {
  requires scalar_measure<std::remove_cvref_t<decltype(value.weight)>>;
};

template <class Value>
concept has_split_bytes = requires(Value const& value) {
  requires std::integral<std::remove_cvref_t<decltype(value.all)>>;
  requires std::integral<std::remove_cvref_t<decltype(value.weight)>>;
};

/// Returns the bytes that a unit keeps until the end of the gradients of the inputs.
template <class Value>
[[nodiscard]] constexpr auto all_bytes(Value const& value) {
  if constexpr (has_split_bytes<Value>) {
    return value.all;
  } else {
    return value;
  }
}
/// Returns the bytes that a unit keeps until the end of the gradients of the weights.
template <class Value>
[[nodiscard]] constexpr auto weight_bytes(Value const& value) {
  if constexpr (has_split_bytes<Value>) {
    return value.weight;
  } else {
    return value;
  }
}

/// The type of the times of a stage or of a transfer.
template <class Value>
struct time_type_of {
  using type = Value;
};
template <has_both_ways Value>
struct time_type_of<Value> {
  using type = working_weight<decltype(Value::forward), decltype(Value::backward)>;
};
template <has_both_ways Value>
  requires has_weight_time<Value>
struct time_type_of<Value> {
  using type =
      working_weight<decltype(Value::forward), decltype(Value::backward), decltype(Value::weight)>;
};

/// Throws unless a range has `count` values and each range inside it has `micro_batches` values.
/// Functors and single values are not checked.
template <class Source>
void check_value_count(std::string_view function, std::string_view argument, Source const& source,
                       std::size_t count, std::string_view places, std::size_t micro_batches) {
  if constexpr (!operation_functor<Source> && indexed_range<Source>) {
    check_size(function, argument, std::ranges::size(source), count, places);
    if constexpr (indexed_range<std::ranges::range_value_t<Source const>>) {
      for (std::size_t i = 0; i != count; ++i) {
        std::size_t const size = std::ranges::size(element_at(source, i));
        if (size == micro_batches) continue;
        check_size(function, joined_text(argument, "[", i, "]"), size, micro_batches,
                   "micro-batches");
      }
    }
  }
}

/// Throws for an invalid value. Not inlined, because otherwise the compiler does not compile the
/// loop over the operations into one function.
template <scalar_measure T>
[[noreturn, gnu::noinline]] void throw_value(std::string_view function, std::string_view name,
                                             std::size_t stage, std::size_t micro_batch, T value) {
  throw_invalid(function, name, " of stage ", stage, ", micro-batch ", micro_batch, " is ", value,
                ", must be finite, not negative and below 2^63");
}

/// Returns `value` converted to `Working`. Throws if the value is negative, not finite or too
/// large.
template <class Working, scalar_measure T>
[[nodiscard]] constexpr Working checked_value(std::string_view function, std::string_view name,
                                              std::size_t stage, std::size_t micro_batch, T value) {
  auto const result = static_cast<Working>(value);
  if (!is_valid_weight(value) || !is_valid_weight(result)) [[unlikely]] {
    throw_value(function, name, stage, micro_batch, value);
  }
  return result;
}

/// Returns the bytes of a unit as integers. Throws if a number is negative or too large, or if the
/// gradients of the weights keep more bytes than the unit has.
template <class Value>
[[nodiscard]] constexpr split_bytes checked_bytes(std::string_view function, std::size_t stage,
                                                  std::size_t micro_batch, Value const& value) {
  auto const checked = [&](std::string_view name, auto bytes) {
    return checked_value<std::int64_t>(function, name, stage, micro_batch, bytes);
  };
  split_bytes result{.all = checked("activation bytes", all_bytes(value))};
  result.weight = result.all;
  if constexpr (has_split_bytes<Value>) {
    result.weight = checked("activation bytes for the weights", value.weight);
    if (result.weight > result.all) {
      throw_invalid(function, "activation bytes for the weights of stage ", stage, ", micro-batch ",
                    micro_batch, " is ", result.weight, ", must be at most all activation bytes, ",
                    result.all);
    }
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
