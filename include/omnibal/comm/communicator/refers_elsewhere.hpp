#pragma once

/// \file
/// Types whose bytes mean nothing to another rank.

#include <cstddef>
#include <functional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0::detail {

template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;

template <class T>
[[nodiscard]] consteval bool find_reference();

/// A pointer, a view, or an array or an aggregate that has one among its first members. Members of
/// classes that are no aggregates stay hidden.
template <class T>
concept refers_elsewhere = find_reference<std::remove_cv_t<T>>();

/// Initialises any member of an aggregate.
struct any_member {
  template <class Member>
  operator Member() const;
};

/// Initialises those alone that refer elsewhere.
struct referring_member {
  template <refers_elsewhere Member>
  operator Member() const;
};

/// True where the member number `sizeof...(Before)` refers elsewhere; arrays count by element.
template <class T, std::size_t... Before>
[[nodiscard]] consteval bool refers_at(std::index_sequence<Before...>) {
  return requires { T{(static_cast<void>(Before), any_member{})..., referring_member{}}; };
}

template <class T, std::size_t... Places>
[[nodiscard]] consteval bool refers_at_any(std::index_sequence<Places...>) {
  return (refers_at<T>(std::make_index_sequence<Places>{}) || ...);
}

template <class T>
consteval bool find_reference() {
  constexpr std::size_t most_members = 16;
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T> || is_reference_wrapper<T>) {
    return true;
  } else if constexpr (std::is_array_v<T>) {
    return find_reference<std::remove_cv_t<std::remove_all_extents_t<T>>>();
  } else if constexpr (std::ranges::enable_borrowed_range<T>) {
    return true;
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return refers_at_any<T>(std::make_index_sequence<most_members>{});
  } else {
    return false;
  }
}

}  // namespace omnibal::inline v0::detail
