#pragma once

/// \file
/// Writing text to an output iterator.

#include <iterator>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Moves the iterator behind the text. It need not be copyable, as for `std::copy`.
template <std::output_iterator<char> Out>
void put_text(Out& out, std::string_view text) {
  for (char const letter : text) *out++ = letter;
}

}  // namespace omnibal::inline v0::detail
