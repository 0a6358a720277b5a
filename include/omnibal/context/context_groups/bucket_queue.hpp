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

  /// Returns the bucket of a load, which is a share of the deadline or the capacity of a group.
  [[nodiscard]] static std::size_t bucket_of(double share) {
    double const bucket = share * static_cast<double>(count);
    if (!(bucket > 0)) return 0;
    return bucket < static_cast<double>(count) ? static_cast<std::size_t>(bucket) : count - 1;
  }

  /// Returns the least share of a bucket.
  [[nodiscard]] static double share_of(std::size_t bucket) {
    return static_cast<double>(bucket) / static_cast<double>(count);
  }

  /// Returns the lowest bucket with groups. Precondition: the queue is not empty.
  [[nodiscard]] std::size_t lowest() const {
    return filled_[0] != 0 ? static_cast<std::size_t>(std::countr_zero(filled_[0]))
                           : 64 + static_cast<std::size_t>(std::countr_zero(filled_[1]));
  }

  /// Returns the first group of a bucket; the others are linked behind it.
  [[nodiscard]] std::uint32_t first(std::size_t bucket) const { return first_[bucket]; }

  void insert(std::uint32_t group, std::size_t bucket, std::vector<std::uint32_t>& next) {
    next[group] = first_[bucket];
    first_[bucket] = group;
    filled_[bucket / 64] |= std::uint64_t{1} << bucket % 64;
  }

  /// Removes the first accepted group of the buckets from `bucket` downwards. Checks at most
  /// `max_asked` groups. Returns `none` if no group is accepted.
  template <class Accepts>
  std::uint32_t take_below(std::size_t bucket, std::size_t max_asked,
                           std::vector<std::uint32_t>& next, Accepts const& accepts) {
    std::size_t asks_left = max_asked;
    for (std::size_t b = bucket + 1; b-- != 0;) {
      if (!skip_empty_below(b)) return none;
      std::uint32_t const found = take_from(b, asks_left, next, accepts);
      if (found != none || asks_left == 0) return found;
    }
    return none;
  }

 private:
  /// Lowers `bucket` to the next bucket with groups; a bucket with groups stays. Returns false if
  /// there is none.
  [[nodiscard]] bool skip_empty_below(std::size_t& bucket) const {
    std::size_t word = bucket / 64;
    std::uint64_t bits = filled_[word] & (~std::uint64_t{0} >> (63 - bucket % 64));
    if (bits == 0 && word == 1) bits = filled_[word = 0];
    if (bits == 0) return false;
    bucket = 64 * word + static_cast<std::size_t>(std::bit_width(bits)) - 1;
    return true;
  }

  template <class Accepts>
  std::uint32_t take_from(std::size_t bucket, std::size_t& asks_left,
                          std::vector<std::uint32_t>& next, Accepts const& accepts) {
    std::uint32_t* link = &first_[bucket];
    for (; *link != none && asks_left != 0; --asks_left) {
      std::uint32_t const group = *link;
      if (accepts(group)) {
        *link = next[group];
        if (first_[bucket] == none) filled_[bucket / 64] &= ~(std::uint64_t{1} << bucket % 64);
        return group;
      }
      link = &next[group];
    }
    return none;
  }

  /// The first group of each bucket, and a bit for each bucket with groups.
  std::uint32_t first_[count];
  std::uint64_t filled_[2];
};

}  // namespace omnibal::inline v0::detail
