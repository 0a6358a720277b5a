// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Amounts of samples that are known only by their index.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// A range of amounts: element i is the amount of sample i.
template <class Range>
concept amount_list = sample_range<Range> &&
    measure<std::remove_cvref_t<std::ranges::range_reference_t<Range const>>>;

/// A measure that returns an amount, a weight or resources, for the index of a sample. It is a
/// functor of a `std::uint32_t`, or a range with an element for each sample. It must return equal
/// amounts for equal indices, at any time and on any rank.
template <class Measure>
concept index_measure = demand_function<Measure, std::uint32_t> || amount_list<Measure>;

namespace detail {

/// Returns a functor from an index to an amount. If `measure` is a range, it must have `count`
/// elements.
template <index_measure Measure>
[[nodiscard]] auto amounts_by_index(std::string_view function, std::string_view argument,
                                    Measure const& measure, std::size_t count) {
  if constexpr (demand_function<Measure, std::uint32_t>) {
    return [&measure](std::size_t index) -> demand_result<Measure, std::uint32_t> {
      return std::invoke(measure, static_cast<std::uint32_t>(index));
    };
  } else {
    if (std::size_t const size = std::ranges::size(measure); size != count) {
      throw_invalid(function, argument, " has ", size, " elements, but there are ", count,
                    " samples");
    }
    using difference = std::ranges::range_difference_t<Measure const>;
    return [first = std::ranges::begin(measure)](std::size_t index)
               -> std::remove_cvref_t<std::ranges::range_reference_t<Measure const>> {
      return first[static_cast<difference>(index)];
    };
  }
}

/// The type of the amounts of a measure.
template <index_measure Measure>
using index_amount = std::remove_cvref_t<
    std::invoke_result_t<decltype(amounts_by_index(std::string_view{}, std::string_view{},
                                                   std::declval<Measure const&>(), std::size_t{})),
                         std::size_t>>;

/// A measure of one kind.
template <class Measure>
concept index_weight = index_measure<Measure> && scalar_measure<index_amount<Measure>>;

/// A measure of the bytes of samples, which are integers, by index.
template <class Measure>
concept index_bytes = index_weight<Measure> && std::integral<index_amount<Measure>>;

/// A functor that returns the bytes of a sample as an integer.
template <class Function, class Sample>
concept bytes_function =
    cost_function<Function, Sample> && std::integral<demand_result<Function, Sample>>;

/// Measures the bytes of `count` samples into reused memory. Errors: `std::invalid_argument` if the
/// number of elements of a range is not `count` or bytes are negative, not finite or above 2^63 -
/// 1; `std::overflow_error` if the sum of the bytes exceeds its type.
template <index_weight Bytes>
void measure_bytes_into(std::string_view function, Bytes const& bytes, std::size_t count,
                        integer_costs<1>& result) {
  measure_costs_into(function, {"bytes", "the sum of the bytes"}, count,
                     amounts_by_index(function, "bytes", bytes, count), result);
}

}  // namespace detail

}  // namespace omnibal::inline v0
