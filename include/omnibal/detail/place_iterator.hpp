// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Iterators of sequences whose elements are computed on access.

#include <compare>
#include <cstddef>
#include <iterator>

namespace omnibal::inline v0::detail {

/// A reference to a sequence, as a value that is cheap to copy.
template <class Sequence>
class sequence_ref {
 public:
  sequence_ref() = default;
  constexpr explicit sequence_ref(Sequence const& sequence) : sequence_(&sequence) {}

  [[nodiscard]] constexpr auto operator[](std::size_t place) const { return (*sequence_)[place]; }

 private:
  Sequence const* sequence_ = nullptr;
};

/// A random-access iterator at a place of `elements`, a type whose `elements[place]` returns a
/// value. For algorithms older than C++20 it is an input iterator, because it refers to no object.
template <class Elements>
class place_iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = decltype(Elements{}[0]);
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = void;

  place_iterator() = default;
  constexpr place_iterator(Elements elements, std::size_t place)
      : elements_(elements), place_(static_cast<difference_type>(place)) {}

  [[nodiscard]] constexpr value_type operator*() const { return (*this)[0]; }
  [[nodiscard]] constexpr value_type operator[](difference_type steps) const {
    return elements_[static_cast<std::size_t>(place_ + steps)];
  }

  constexpr place_iterator& operator+=(difference_type steps) {
    place_ += steps;
    return *this;
  }
  constexpr place_iterator& operator-=(difference_type steps) { return *this += -steps; }
  constexpr place_iterator& operator++() { return *this += 1; }
  constexpr place_iterator& operator--() { return *this -= 1; }
  constexpr place_iterator operator++(int) {
    place_iterator const before = *this;
    ++*this;
    return before;
  }
  constexpr place_iterator operator--(int) {
    place_iterator const before = *this;
    --*this;
    return before;
  }

  [[nodiscard]] friend constexpr place_iterator operator+(place_iterator at,
                                                          difference_type steps) {
    return at += steps;
  }
  [[nodiscard]] friend constexpr place_iterator operator+(difference_type steps,
                                                          place_iterator at) {
    return at += steps;
  }
  [[nodiscard]] friend constexpr place_iterator operator-(place_iterator at,
                                                          difference_type steps) {
    return at -= steps;
  }
  [[nodiscard]] friend constexpr difference_type operator-(place_iterator const& left,
                                                           place_iterator const& right) {
    return left.place_ - right.place_;
  }
  [[nodiscard]] friend constexpr bool operator==(place_iterator const& left,
                                                 place_iterator const& right) {
    return left.place_ == right.place_;
  }
  [[nodiscard]] friend constexpr std::strong_ordering operator<=>(place_iterator const& left,
                                                                  place_iterator const& right) {
    return left.place_ <=> right.place_;
  }

 private:
  Elements elements_{};
  difference_type place_ = 0;
};

}  // namespace omnibal::inline v0::detail
