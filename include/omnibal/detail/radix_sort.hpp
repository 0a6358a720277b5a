// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sorting in linear time.

#include <omnibal/detail/function_ref.hpp>
#include <omnibal/detail/unset_array.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A digit of words and, for each value of the digit, the position in the sorted order at which the
/// words with this value begin.
class radix_digit {
 public:
  static constexpr unsigned max_bits = 11;

  radix_digit() = default;
  radix_digit(unsigned shift, unsigned bits) : value_of_{shift, (std::uint64_t{1} << bits) - 1} {
    std::fill(starts_, starts_ + value_of_.mask + 1, 0u);
  }

  /// Counts the words in three digits at once.
  static void count(std::span<std::uint64_t const> words, radix_digit (&digits)[3]) {
    // Copies, because a compiler cannot know that counts do not overlap shifts.
    field const first = digits[0].value_of_;
    field const second = digits[1].value_of_;
    field const third = digits[2].value_of_;
    for (std::uint64_t const word : words) {
      ++digits[0].starts_[first(word)];
      ++digits[1].starts_[second(word)];
      ++digits[2].starts_[third(word)];
    }
  }

  /// Returns true if the words are equal in this digit, after they are counted.
  [[nodiscard]] bool is_equal(std::span<std::uint64_t const> words) const {
    return words.empty() || starts_[value_of_(words[0])] == words.size();
  }

  /// Writes the words, converted to `Word`, to `output` in a stable order of the digit. May be
  /// called once.
  template <class Word>
  void scatter(std::span<std::uint64_t const> words, Word* output) {
    field const value_of = value_of_;
    std::uint32_t position = 0;
    for (std::size_t value = 0; value != value_of.mask + 1; ++value) {
      position += std::exchange(starts_[value], position);
    }
    for (std::uint64_t const word : words) {
      output[starts_[value_of(word)]++] = static_cast<Word>(word);
    }
  }

 private:
  struct field {
    unsigned shift = 0;
    std::uint64_t mask = 0;

    [[nodiscard]] std::size_t operator()(std::uint64_t word) const {
      return static_cast<std::size_t>((word >> shift) & mask);
    }
  };

  field value_of_;
  std::uint32_t starts_[std::size_t{1} << max_bits];
};

/// Sorts words by the bits [first_bit, first_bit + bits), stably, digit after digit, except for the
/// last digit. For the last digit, calls `last(digit, words, spare)`; the words are in one buffer,
/// and the other buffer is free. Three digits are counted in a pass; a digit that is equal in all
/// words costs only this count.
template <class Last>
void radix_passes(std::span<std::uint64_t> words, std::span<std::uint64_t> spare,
                  unsigned first_bit, unsigned bits, Last const& last) {
  unsigned const passes = (bits + radix_digit::max_bits - 1) / radix_digit::max_bits;
  unsigned const digit_bits = passes == 0 ? 0 : (bits + passes - 1) / passes;
  for (unsigned pass = 0; pass < passes; pass += 3) {
    radix_digit digits[3];
    for (unsigned k = 0; k != 3; ++k) {
      unsigned const before = std::min(bits, (pass + k) * digit_bits);
      digits[k] = radix_digit(first_bit + before, std::min(digit_bits, bits - before));
    }
    radix_digit::count(words, digits);
    for (unsigned k = 0; k != 3 && pass + k != passes; ++k) {
      if (pass + k + 1 == passes) {
        last(digits[k], words, spare);
      } else if (!digits[k].is_equal(words)) {
        digits[k].scatter(words, spare.data());
        std::swap(words, spare);
      }
    }
  }
}

/// Sorts words by the bits [first_bit, first_bit + bits), stably. `spare` is a buffer that becomes
/// as large as `words`.
inline void radix_sort(std::vector<std::uint64_t>& words, std::vector<std::uint64_t>& spare,
                       unsigned first_bit, unsigned bits) {
  spare.resize(words.size());
  bool is_in_spare = false;
  radix_passes(words, spare, first_bit, bits,
               [&](radix_digit& digit, std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
                 bool const is_sorted = digit.is_equal(from);
                 if (!is_sorted) digit.scatter(from, to.data());
                 is_in_spare = (is_sorted ? from : to).data() == spare.data();
               });
  if (is_in_spare) words.swap(spare);
}

/// A function from an index to an integer that is not negative.
using index_key = function_ref<std::uint64_t(std::size_t)>;

/// Sorts runs of indices by descending key; the words of a run agree in their leading 32 bits.
inline void sort_runs(std::span<std::uint64_t const> words, std::vector<std::uint32_t>& order,
                      index_key key) {
  for (std::size_t first = 0; first != words.size();) {
    std::size_t last = first + 1;
    while (last != words.size() && words[last] >> 32 == words[first] >> 32) ++last;
    auto const begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    auto const end = order.begin() + static_cast<std::ptrdiff_t>(last);
    auto const precedes = [&](std::uint32_t a, std::uint32_t b) {
      std::uint64_t const left = key(a);
      std::uint64_t const right = key(b);
      return left > right || (left == right && a < b);
    };
    if (!std::is_sorted(begin, end, precedes)) {
      std::make_heap(begin, end, precedes);
      std::sort_heap(begin, end, precedes);
    }
    first = last;
  }
}

/// Returns the result of `order_descending` for the keys in the first `count` words of `memory`.
/// `key(i)` returns key i again, for comparisons.
[[nodiscard]] inline std::vector<std::uint32_t> order_words(unset_array<std::uint64_t>&& memory,
                                                            std::size_t count, index_key key) {
  if (count == 0) return {};
  std::span<std::uint64_t> const words(memory.data(), count);
  std::uint64_t smallest = words[0];
  std::uint64_t largest = words[0];
  for (std::uint64_t const word : words) {
    smallest = std::min(smallest, word);
    largest = std::max(largest, word);
  }
  std::uint64_t const range = largest - smallest;

  // The order is allocated before any buffer. Otherwise all memory that is freed at the end would
  // be at the end of the heap, which allocators return to the system.
  std::vector<std::uint32_t> order(count);
  if (range < std::max<std::uint64_t>(1024, count / 4)) {
    std::vector<std::uint32_t> starts(static_cast<std::size_t>(range) + 2, 0);
    for (std::uint64_t const word : words) ++starts[static_cast<std::size_t>(largest - word) + 1];
    for (std::size_t k = 1; k != starts.size(); ++k) starts[k] += starts[k - 1];
    for (std::size_t i = 0; i != count; ++i) {
      order[starts[static_cast<std::size_t>(largest - words[i])]++] = static_cast<std::uint32_t>(i);
    }
    return order;
  }

  auto const range_bits = static_cast<unsigned>(std::bit_width(range));
  unsigned const dropped_bits = range_bits > 32 ? range_bits - 32 : 0;
  for (std::size_t i = 0; i != count; ++i) {
    words[i] = (largest - words[i]) >> dropped_bits << 32 | i;
  }
  unset_array<std::uint64_t> const spare(count);
  radix_passes(words, {spare.data(), count}, 32, range_bits - dropped_bits,
               [&](radix_digit& digit, std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
                 if (dropped_bits == 0) {
                   digit.scatter(from, order.data());
                   return;
                 }
                 digit.scatter(from, to.data());
                 for (std::size_t i = 0; i != count; ++i) {
                   order[i] = static_cast<std::uint32_t>(to[i]);
                 }
                 sort_runs(to, order, key);
               });
  return order;
}

/// Returns the indices 0 .. count - 1 in the order of descending `key(index)`, equal keys by
/// ascending index. `key` returns integers that are not negative. The time is linear except for
/// runs of keys that agree in their leading 32 bits, which are sorted by comparison.
template <class Key>
[[nodiscard]] std::vector<std::uint32_t> order_descending(std::size_t count, Key const& key) {
  auto const word = [&key](std::size_t i) { return static_cast<std::uint64_t>(key(i)); };
  unset_array<std::uint64_t> words(count);
  for (std::size_t i = 0; i != count; ++i) words[i] = word(i);
  return order_words(std::move(words), count, word);
}

/// Returns the indices 0 .. count - 1 in the order of ascending `key(index)`, equal keys by
/// ascending index. `key` returns integers from 0 to 2^62.
template <class Key>
[[nodiscard]] std::vector<std::uint32_t> order_ascending(std::size_t count, Key const& key) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 62;
  return order_descending(
      count, [&key](std::size_t i) { return largest - static_cast<std::uint64_t>(key(i)); });
}

}  // namespace omnibal::inline v0::detail
