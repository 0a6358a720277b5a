// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Spans that cannot view a temporary array.

#include <concepts>
#include <ranges>
#include <span>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// A range that `lvalue_span` may view: contiguous values in a named array or in the array of
/// another view.
template <class Range, class Value>
concept viewable_array = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::same_as<std::ranges::range_value_t<Range>, Value> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>);

/// A span of constant values as a member of options. It cannot be created from a temporary array,
/// which would be destroyed before the call. The array must outlive the span.
template <class Value>
class lvalue_span : public std::span<Value const> {
 public:
  lvalue_span() = default;

  template <viewable_array<Value> Range>
    requires(!std::same_as<std::remove_cvref_t<Range>, lvalue_span>)
  constexpr lvalue_span(Range&& range) : std::span<Value const>(range) {}
};

}  // namespace omnibal::inline v0::detail
