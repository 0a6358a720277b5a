#pragma once

/// \file
/// A functor of an index as a random-access iterator, the input of scans and reductions.

#include <omnibal/config.hpp>

#include <cstddef>
#include <iterator>

namespace omnibal::inline v0::gpu::detail {

/// The iterator at `index` over `f(0), f(1), ...`, each converted to T.
template <class F, class T>
struct generated {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = T const*;
  using reference = T;

  F f;
  std::ptrdiff_t index = 0;

  OMNIBAL_HOST_DEVICE T operator*() const {
    return static_cast<T>(f(static_cast<std::size_t>(index)));
  }
  OMNIBAL_HOST_DEVICE T operator[](std::ptrdiff_t distance) const { return *(*this + distance); }

  OMNIBAL_HOST_DEVICE generated& operator+=(std::ptrdiff_t distance) {
    index += distance;
    return *this;
  }
  OMNIBAL_HOST_DEVICE generated& operator-=(std::ptrdiff_t distance) {
    index -= distance;
    return *this;
  }
  OMNIBAL_HOST_DEVICE generated& operator++() { return *this += 1; }
  OMNIBAL_HOST_DEVICE generated& operator--() { return *this -= 1; }
  OMNIBAL_HOST_DEVICE generated operator++(int) {
    generated const before = *this;
    ++index;
    return before;
  }

  OMNIBAL_HOST_DEVICE friend generated operator+(generated iterator, std::ptrdiff_t distance) {
    return iterator += distance;
  }
  OMNIBAL_HOST_DEVICE friend generated operator+(std::ptrdiff_t distance, generated iterator) {
    return iterator += distance;
  }
  OMNIBAL_HOST_DEVICE friend generated operator-(generated iterator, std::ptrdiff_t distance) {
    return iterator -= distance;
  }
  OMNIBAL_HOST_DEVICE friend std::ptrdiff_t operator-(generated const& left,
                                                      generated const& right) {
    return left.index - right.index;
  }
  OMNIBAL_HOST_DEVICE friend bool operator==(generated const& left, generated const& right) {
    return left.index == right.index;
  }
  OMNIBAL_HOST_DEVICE friend bool operator<(generated const& left, generated const& right) {
    return left.index < right.index;
  }
};

/// The elements of an array as a functor.
template <class T>
struct element_of {
  T const* in;
  OMNIBAL_HOST_DEVICE T operator()(std::size_t i) const { return in[i]; }
};

/// The input iterator of a step over `f(0), f(1), ...`: for the elements of an array its pointer,
/// from which CUB loads several elements at once.
template <class T, class F>
[[nodiscard]] auto input_of(F const& f) {
  return generated<F, T>{f};
}
template <class T>
[[nodiscard]] auto input_of(element_of<T> const& array) {
  return array.in;
}

}  // namespace omnibal::inline v0::gpu::detail
