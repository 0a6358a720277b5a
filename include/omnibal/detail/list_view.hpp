// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Views of arrays in options.

#include <concepts>
#include <ranges>
#include <span>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// A view of an array of the caller in an option; empty by default. The array must outlive the
/// view, which cannot be created from a temporary array.
template <class T>
class list_view : public std::span<T const> {
 public:
  list_view() = default;

  template <std::ranges::contiguous_range Range>
    requires std::ranges::sized_range<Range> &&
        (std::is_lvalue_reference_v<Range> ||
         std::ranges::borrowed_range<Range>)&&std::same_as<std::ranges::range_value_t<Range>, T> &&
        (!std::same_as<std::remove_cvref_t<Range>, list_view>)constexpr list_view(Range&& range)
        : std::span<T const>(range) {}
};

}  // namespace omnibal::inline v0::detail
