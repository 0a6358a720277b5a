// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output of text to an output iterator.

#include <iterator>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Writes the text and moves the iterator behind it. The iterator need not be copyable, unlike for
/// `std::copy`.
template <std::output_iterator<char> Out>
void put_text(Out& out, std::string_view text) {
  for (char const letter : text) *out++ = letter;
}

}  // namespace omnibal::inline v0::detail
