#pragma once

/// \file
/// Values for every stage and micro-batch: one for all, one for each stage, one for each of both,
/// or a functor.

#include <omnibal/check.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0::detail {

template <class Source>
concept indexed_range =
    std::ranges::random_access_range<Source const> && std::ranges::sized_range<Source const>;

template <class Source>
concept operation_functor = std::regular_invocable<Source const&, std::size_t, std::size_t>;

template <indexed_range Range>
[[nodiscard]] constexpr decltype(auto) element_at(Range const& range, std::size_t index) {
  return std::ranges::begin(
      range)[static_cast<std::ranges::range_difference_t<Range const>>(index)];
}

/// The value for a stage and a micro-batch.
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
  requires weight<std::remove_cvref_t<decltype(value.forward)>>;
  requires weight<std::remove_cvref_t<decltype(value.backward)>>;
};

template <class Value>
concept has_weight_time = requires(Value const& value) {
  requires weight<std::remove_cvref_t<decltype(value.weight)>>;
};

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

/// Throws unless a range has a value for each of `count` stages and, where it has ranges of them,
/// for each of `micro_batches`.
template <class Source>
void check_value_count(std::string_view function, std::string_view argument, Source const& source,
                       std::size_t count, std::size_t micro_batches) {
  if constexpr (!operation_functor<Source> && indexed_range<Source>) {
    auto const check = [&](std::string const& name, std::size_t size, std::size_t expected) {
      if (size == expected) return;
      throw_invalid(function,
                    name + " has " + to_text(size) + " values, must have " + to_text(expected));
    };
    check(std::string(argument), std::ranges::size(source), count);
    if constexpr (indexed_range<std::ranges::range_value_t<Source const>>) {
      for (std::size_t i = 0; i != count; ++i) {
        check(std::string(argument) + "[" + to_text(i) + "]",
              std::ranges::size(element_at(source, i)), micro_batches);
      }
    }
  }
}

}  // namespace omnibal::inline v0::detail
