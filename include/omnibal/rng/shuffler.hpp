#pragma once

/// \file
/// What a shuffler may offer beyond permuting indices.

#include <concepts>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::rng {

/// A shuffler that says so by `static constexpr bool any_element = true`: it permutes elements of
/// every type in the same order, so that an algorithm may shuffle its records instead of indices to
/// them.
template <class Shuffle>
concept any_element_shuffler = Shuffle::any_element;

/// A shuffler whose order is a function: `order(n, round)(i)` is the position before the shuffle of
/// the element that comes to position i.
template <class Shuffle>
concept random_access_shuffler = requires(Shuffle const& shuffle, std::uint64_t n) {
  { shuffle.order(n, n)(n) } -> std::convertible_to<std::uint64_t>;
};

}  // namespace omnibal::inline v0::rng
