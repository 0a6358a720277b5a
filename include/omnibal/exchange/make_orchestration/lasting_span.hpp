#pragma once

/// \file
/// Views as members of arguments.

#include <concepts>
#include <ranges>
#include <span>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// A range whose elements outlive the expression that names it.
template <class Range, class T>
concept lasting_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>)&&std::same_as<
        std::remove_cv_t<std::remove_reference_t<std::ranges::range_reference_t<Range>>>, T>;

/// A span that cannot be made of a temporary: a member of an argument that is kept for a while.
template <class T>
class lasting_span : public std::span<T const> {
 public:
  lasting_span() = default;

  template <lasting_range<T> Range>
    requires(!std::same_as<std::remove_cvref_t<Range>, lasting_span>)
  constexpr lasting_span(Range&& range) : std::span<T const>(range) {}
};

}  // namespace omnibal::inline v0::detail
