// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ranges>
#include <type_traits>
#include <vector>

namespace test {

/// The elements of a range, to be compared and printed.
template <std::ranges::input_range Range>
auto to_vector(Range const& range) {
  using value_type = std::remove_cv_t<std::ranges::range_value_t<Range>>;
  return std::vector<value_type>(std::ranges::begin(range), std::ranges::end(range));
}

}  // namespace test
