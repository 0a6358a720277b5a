// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The limits on transient bytes, each with the bytes that remain for kept activations.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/recompute_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A limit on transient bytes: choices with more transient bytes are not admitted. The largest
/// transient bytes count once for all layers. In addition, each micro-batch may keep `kept_bytes`
/// bytes.
struct transient_limit {
  std::int64_t transient_bytes;
  std::int64_t kept_bytes;
};

/// The limits under which the admitted choices with the fewest bytes fit the budget, ascending. A
/// larger limit admits more choices, but leaves fewer bytes to keep.
struct transient_limits {
  std::vector<transient_limit> limits{};
  /// The smallest number of bytes that any limit requires.
  int128 min_bytes = 0;
};

/// Returns all choices, sorted by their transient bytes. The place of a choice has its layer in the
/// upper half of the word, and its index within the layer in the lower half.
template <class Time>
[[nodiscard]] std::vector<sort_key> choices_by_transient(choice_table<Time> const& table) {
  std::vector<sort_key> result;
  for (std::uint64_t layer = 0; layer != table.size(); ++layer) {
    auto const choices = table[layer];
    for (std::size_t k = 0; k != choices.size(); ++k) {
      result.push_back({choices[k].transient_bytes, layer << 32 | k});
    }
  }
  sort_keys(result);
  return result;
}

/// Finds the limits by a sweep over the choices in the order of their transient bytes. Errors:
/// `std::overflow_error` if the fewest bytes of all layers add up to more than 2^63 - 1.
template <class Time>
[[nodiscard]] transient_limits find_limits(std::string_view function,
                                           choice_table<Time> const& table, std::int64_t budget,
                                           select_recompute_options const& options) {
  auto const ways = choices_by_transient(table);
  int128 const room = static_cast<int128>(budget) - options.reserve_bytes;
  // A layer without admitted choices has this number of bytes, which is more than all layers
  // together may have.
  constexpr std::uint64_t none = std::uint64_t{1} << 63;
  std::vector<std::uint64_t> fewest(table.size(), none);
  int128 sum = static_cast<int128>(none) * static_cast<std::int64_t>(table.size());
  transient_limits result{{}, static_cast<int128>(1) << 126};
  std::size_t next = 0;
  do {
    std::int64_t const limit = ways.empty() ? 0 : ways[next].number;
    for (; next != ways.size() && ways[next].number == limit; ++next) {
      std::size_t const layer = ways[next].place >> 32;
      auto const bytes =
          static_cast<std::uint64_t>(table[layer][ways[next].place & max_index_count].bytes);
      if (bytes >= fewest[layer]) continue;
      sum -= fewest[layer] - bytes;
      fewest[layer] = bytes;
    }
    if (sum >= none) continue;
    int128 const needed = options.in_flight * sum + limit;
    result.min_bytes = std::min(result.min_bytes, needed + options.reserve_bytes);
    if (needed > room) continue;
    result.limits.push_back({limit, static_cast<std::int64_t>((room - limit) / options.in_flight)});
  } while (next != ways.size());
  if (sum >= none) throw_overflow(function, "the sum of the fewest bytes");
  return result;
}

}  // namespace omnibal::inline v0::detail
