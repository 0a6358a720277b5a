#pragma once

/// \file
/// What the algorithms of cuda/ accept as data and functors.

#include <omnibal/concepts.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0::gpu {

/// The type of the elements of an array in device memory.
template <class Array>
using device_element_of = std::remove_cvref_t<decltype(*std::declval<Array const&>().data())>;

/// An array in device memory: `device_span`, `device_array` and what else has a pointer and a size.
template <class Array>
concept device_range = requires(Array const& array) {
  { array.data() } -> std::convertible_to<void const*>;
  { array.size() } -> std::convertible_to<std::size_t>;
};

/// Integers in device memory.
template <class Array>
concept device_integers = device_range<Array> && weight<device_element_of<Array>> &&
    std::integral<device_element_of<Array>>;

/// Demands in device memory: resources of integers, or integers, which stand for one resource.
template <class Array>
concept device_demands = device_range<Array> && integral_amount<device_element_of<Array>>;

/// Amounts in device memory: resources or weights, also floating-point ones.
template <class Array>
concept device_amounts = device_range<Array> && amount<device_element_of<Array>>;

/// A predicate on the load of a group, passed to kernels as it is: callable in device code, too.
template <class Rule, class Load>
concept device_keep_rule = keep_rule<Rule, Load> && std::is_trivially_copyable_v<Rule>;

}  // namespace omnibal::inline v0::gpu
