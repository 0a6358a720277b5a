#pragma once

/// \file
/// How demands are held while they are packed: in the bit fields of one word where they fit, as
/// resources otherwise. Both kinds of layout offer the same members:
///
///   demand_type             a demand that fits an empty group
///   room_type               what a group still takes
///   empty_room()            the room of an empty group
///   encode(amounts)         resources to demand_type; precondition: they fit the capacity
///   amounts(demand)         the inverse
///   amount(demand, kind)    one of them
///   left(room)              the room as resources
///   load(room)              capacity minus room, as resources
///   fits(room, demand)
///   take(room, demand)      takes the demand out of the room; precondition: it fits
/// take_or_renew(room, demand)  the same where it fits, else out of an empty room; whether it
/// fitted

#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// One field per resource with a guard bit above it. The room is held as the load plus a bias with
/// which a load above the capacity reaches the guard, so that one addition tests all resources.
template <class Word, std::size_t R>
class packed_layout {
 public:
  using amounts_type = resources<R, std::int64_t>;
  using demand_type = Word;
  using room_type = Word;

  /// The number of bits that the fields and guards of a capacity take.
  [[nodiscard]] static constexpr std::size_t bits_for(amounts_type const& capacity) {
    std::size_t bits = 0;
    for (std::size_t r = 0; r != R; ++r) bits += width_of(capacity[r]) + 1;
    return bits;
  }

  /// Precondition: `bits_for(capacity)` is at most the number of bits of a word.
  explicit constexpr packed_layout(amounts_type const& capacity) {
    amounts_type bias{};
    unsigned position = 0;
    for (std::size_t r = 0; r != R; ++r) {
      unsigned const width = width_of(capacity[r]);
      std::uint64_t const largest = (std::uint64_t{1} << width) - 1;
      bias[r] = static_cast<std::int64_t>(largest - static_cast<std::uint64_t>(capacity[r]));
      shift_[r] = position;
      mask_[r] = static_cast<Word>(largest);
      guards_ = static_cast<Word>(guards_ | Word{1} << (position + width));
      full_ = static_cast<Word>(full_ | static_cast<Word>(mask_[r] << position));
      position += width + 1;
    }
    bias_ = encode(bias);
  }

  [[nodiscard]] constexpr room_type empty_room() const { return bias_; }
  [[nodiscard]] constexpr demand_type encode(amounts_type const& amounts) const {
    Word word = 0;
    for (std::size_t r = 0; r != R; ++r) {
      word = static_cast<Word>(word | static_cast<Word>(amounts[r]) << shift_[r]);
    }
    return word;
  }
  [[nodiscard]] constexpr std::int64_t amount(demand_type demand, std::size_t kind) const {
    return static_cast<std::int64_t>((demand >> shift_[kind]) & mask_[kind]);
  }
  [[nodiscard]] constexpr amounts_type amounts(demand_type demand) const {
    amounts_type result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = amount(demand, r);
    return result;
  }
  [[nodiscard]] constexpr amounts_type left(room_type room) const {
    return amounts(static_cast<Word>(full_ - room));
  }
  [[nodiscard]] constexpr amounts_type load(room_type room) const {
    return amounts(static_cast<Word>(room - bias_));
  }
  [[nodiscard]] constexpr bool fits(room_type room, demand_type demand) const {
    return (static_cast<Word>(room + demand) & guards_) == 0;
  }
  constexpr void take(room_type& room, demand_type demand) const {
    room = static_cast<Word>(room + demand);
  }
  constexpr bool take_or_renew(room_type& room, demand_type demand) const {
    auto const sum = static_cast<Word>(room + demand);
    auto const renewed = static_cast<Word>(bias_ + demand);
    bool const fitted = (sum & guards_) == 0;
    // Even odds: a conditional move, not a branch that is mispredicted at every end of a group.
    room = __builtin_expect_with_probability(fitted, 1, 0.5) ? sum : renewed;
    return fitted;
  }

 private:
  [[nodiscard]] static constexpr unsigned width_of(std::int64_t amount) {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(amount)));
  }

  unsigned shift_[R] = {};
  Word mask_[R] = {};
  Word guards_ = 0;
  Word full_ = 0;
  Word bias_ = 0;
};

/// Amounts as they are: floating-point ones, and integers that no single word can hold. The room is
/// kept as the load, so that a load is the sum of its demands in the order of packing and not what
/// rounding left of the capacity.
template <std::size_t R, class T>
class plain_layout {
 public:
  using amounts_type = resources<R, T>;
  using demand_type = amounts_type;
  using room_type = amounts_type;

  explicit constexpr plain_layout(amounts_type const& capacity) : capacity_(capacity) {}

  [[nodiscard]] constexpr room_type empty_room() const { return {}; }
  [[nodiscard]] constexpr demand_type encode(amounts_type const& amounts) const { return amounts; }
  [[nodiscard]] constexpr amounts_type amounts(demand_type const& demand) const { return demand; }
  [[nodiscard]] constexpr T amount(demand_type const& demand, std::size_t kind) const {
    return demand[kind];
  }
  [[nodiscard]] constexpr amounts_type left(room_type const& room) const {
    return capacity_ - room;
  }
  [[nodiscard]] constexpr amounts_type load(room_type const& room) const { return room; }
  [[nodiscard]] constexpr bool fits(room_type const& room, demand_type const& demand) const {
    // The sum of integers may exceed the largest.
    if constexpr (std::integral<T>) return demand.fits(left(room));
    return (room + demand).fits(capacity_);
  }
  constexpr void take(room_type& room, demand_type const& demand) const { room += demand; }
  constexpr bool take_or_renew(room_type& room, demand_type const& demand) const {
    bool const fitted = fits(room, demand);
    for (std::size_t r = 0; r != R; ++r) room[r] = (fitted ? room[r] : T{}) + demand[r];
    return fitted;
  }

 private:
  amounts_type capacity_;
};

/// Calls `body` with the smallest layout for this capacity.
template <std::size_t R, class T, class Body>
decltype(auto) with_layout(resources<R, T> const& capacity, Body const& body) {
  if constexpr (std::floating_point<T>) {
    return body(plain_layout<R, T>(capacity));
  } else {
    std::size_t const bits = packed_layout<std::uint64_t, R>::bits_for(capacity);
    if (bits <= 32) return body(packed_layout<std::uint32_t, R>(capacity));
    if (R == 1 || bits <= 64) return body(packed_layout<std::uint64_t, R>(capacity));
    return body(plain_layout<R, T>(capacity));
  }
}

}  // namespace omnibal::inline v0::detail
