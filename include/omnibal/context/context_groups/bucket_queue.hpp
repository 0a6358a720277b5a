// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups of a micro-step by their load.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// A bucket queue (Dial, 1969) of the groups of one degree: lists of groups of similar load, linked
/// through an array that all degrees share.
class bucket_queue {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::size_t count = 128;

  bucket_queue() { clear(); }

  void clear() {
    std::fill(first_, first_ + count, none);
    filled_[0] = filled_[1] = 0;
  }

  [[nodiscard]] bool empty() const { return filled_[0] == 0 && filled_[1] == 0; }

  /// The level of a load, as a share of the capacity of a group.
  [[nodiscard]] static std::size_t level_of(double share) {
    double const level = share * static_cast<double>(count);
    if (!(level > 0)) return 0;
    return level < static_cast<double>(count) ? static_cast<std::size_t>(level) : count - 1;
  }

  /// The least share of a level.
  [[nodiscard]] static double share_of(std::size_t level) {
    return static_cast<double>(level) / static_cast<double>(count);
  }

  /// The lowest level with groups. Precondition: there are some.
  [[nodiscard]] std::size_t lowest() const {
    return filled_[0] != 0 ? static_cast<std::size_t>(std::countr_zero(filled_[0]))
                           : 64 + static_cast<std::size_t>(std::countr_zero(filled_[1]));
  }

  /// The first group of a level; the others are linked behind it.
  [[nodiscard]] std::uint32_t first(std::size_t level) const { return first_[level]; }

  void insert(std::uint32_t group, std::size_t level, std::vector<std::uint32_t>& next) {
    next[group] = first_[level];
    first_[level] = group;
    filled_[level / 64] |= std::uint64_t{1} << level % 64;
  }

  /// Removes an accepted group from the levels from `level` downwards, after at most `most` groups.
  /// Returns `none` if no group is accepted.
  template <class Accepts>
  std::uint32_t take_below(std::size_t level, std::size_t most, std::vector<std::uint32_t>& next,
                           Accepts const& accepts) {
    for (std::size_t l = level + 1; l-- != 0;) {
      if (!skip_empty_below(l)) return none;
      std::uint32_t const found = take_from(l, most, next, accepts);
      if (found != none || most == 0) return found;
    }
    return none;
  }

 private:
  /// Moves down to a level with groups, which may be this one. False if there is none.
  [[nodiscard]] bool skip_empty_below(std::size_t& level) const {
    std::size_t word = level / 64;
    std::uint64_t bits = filled_[word] & (~std::uint64_t{0} >> (63 - level % 64));
    if (bits == 0 && word == 1) bits = filled_[word = 0];
    if (bits == 0) return false;
    level = 64 * word + static_cast<std::size_t>(std::bit_width(bits)) - 1;
    return true;
  }

  template <class Accepts>
  std::uint32_t take_from(std::size_t level, std::size_t& most, std::vector<std::uint32_t>& next,
                          Accepts const& accepts) {
    std::uint32_t* link = &first_[level];
    for (; *link != none && most != 0; --most) {
      std::uint32_t const group = *link;
      if (accepts(group)) {
        *link = next[group];
        if (first_[level] == none) filled_[level / 64] &= ~(std::uint64_t{1} << level % 64);
        return group;
      }
      link = &next[group];
    }
    return none;
  }

  std::uint32_t first_[count];
  std::uint64_t filled_[2];
};

}  // namespace omnibal::inline v0::detail
