#pragma once

/// \file
/// Memory that is given back before its owner ends.

#include <vector>

namespace omnibal::inline v0::detail {

/// Frees the memory of a vector, which assigning `{}` does not.
template <class T>
void release(std::vector<T>& values) noexcept {
  std::vector<T>().swap(values);
}

}  // namespace omnibal::inline v0::detail
