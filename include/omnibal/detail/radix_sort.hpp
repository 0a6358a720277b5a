#pragma once

/// \file
/// Sorting in linear time.

#include <omnibal/detail/function_ref.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Sorts words by the bits [first_bit, first_bit + bits), stably, by counting digit after digit.
/// `spare` is a buffer of the same size. Digits that are equal in all words cost one pass of
/// counting.
inline void radix_sort(std::vector<std::uint64_t>& words, std::vector<std::uint64_t>& spare,
                       unsigned first_bit, unsigned bits) {
  unsigned const passes = (bits + 10) / 11;
  unsigned const digit_bits = passes == 0 ? 0 : (bits + passes - 1) / passes;
  std::size_t const digits = std::size_t{1} << digit_bits;
  spare.resize(words.size());
  std::uint32_t starts[2048];
  for (unsigned pass = 0; pass != passes; ++pass) {
    unsigned const shift = first_bit + pass * digit_bits;
    // The last digit may have fewer bits than the others.
    unsigned const width = std::min(digit_bits, bits - pass * digit_bits);
    std::uint64_t const mask = (std::uint64_t{1} << width) - 1;
    std::fill(starts, starts + digits, 0u);
    for (std::uint64_t const word : words) ++starts[(word >> shift) & mask];
    if (!words.empty() && starts[(words[0] >> shift) & mask] == words.size()) continue;
    std::uint32_t position = 0;
    for (std::size_t digit = 0; digit != digits; ++digit) {
      std::uint32_t const count = starts[digit];
      starts[digit] = position;
      position += count;
    }
    for (std::uint64_t const word : words) {
      spare[starts[(word >> shift) & mask]++] = word;
    }
    words.swap(spare);
  }
}

/// A function from an index to an integer that is not negative.
using index_key = function_ref<std::uint64_t(std::size_t)>;

/// Sorts runs of indices by descending key that agree in the leading 32 bits of their words.
inline void sort_runs(std::vector<std::uint64_t> const& words, std::vector<std::uint32_t>& order,
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

/// `order_descending` of keys that lie in `words`; `key` gives them again.
[[nodiscard]] inline std::vector<std::uint32_t> order_words(std::vector<std::uint64_t>&& words,
                                                            index_key key) {
  if (words.empty()) return {};
  std::uint64_t smallest = words[0];
  std::uint64_t largest = words[0];
  for (std::uint64_t const word : words) {
    smallest = std::min(smallest, word);
    largest = std::max(largest, word);
  }
  std::uint64_t const range = largest - smallest;

  if (range < std::max<std::uint64_t>(1024, words.size() / 4)) {
    std::vector<std::uint32_t> starts(static_cast<std::size_t>(range) + 2, 0);
    for (std::uint64_t const word : words) ++starts[static_cast<std::size_t>(largest - word) + 1];
    for (std::size_t k = 1; k != starts.size(); ++k) starts[k] += starts[k - 1];
    std::vector<std::uint32_t> order(words.size());
    for (std::size_t i = 0; i != words.size(); ++i) {
      order[starts[static_cast<std::size_t>(largest - words[i])]++] = static_cast<std::uint32_t>(i);
    }
    return order;
  }

  auto const range_bits = static_cast<unsigned>(std::bit_width(range));
  unsigned const dropped_bits = range_bits > 32 ? range_bits - 32 : 0;
  for (std::size_t i = 0; i != words.size(); ++i) {
    words[i] = (largest - words[i]) >> dropped_bits << 32 | i;
  }
  {
    std::vector<std::uint64_t> spare;
    radix_sort(words, spare, 32, range_bits - dropped_bits);
  }
  std::vector<std::uint32_t> order(words.size());
  for (std::size_t i = 0; i != words.size(); ++i) order[i] = static_cast<std::uint32_t>(words[i]);
  if (dropped_bits != 0) sort_runs(words, order, key);
  return order;
}

/// The indices 0 .. count - 1 in the order of descending `key(index)`, equal keys by ascending
/// index. `key` gives integers that are not negative. Linear but for runs of keys that agree in
/// their leading 32 bits, which are sorted by comparison.
template <class Key>
[[nodiscard]] std::vector<std::uint32_t> order_descending(std::size_t count, Key const& key) {
  auto const word = [&key](std::size_t i) { return static_cast<std::uint64_t>(key(i)); };
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i != count; ++i) words[i] = word(i);
  return order_words(std::move(words), word);
}

}  // namespace omnibal::inline v0::detail
