// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Arrays that are not initialized to zero.

#include <cstddef>
#include <utility>

namespace omnibal::inline v0::detail {

/// Memory for values that are not set yet, as `std::make_unique_for_overwrite` without its header,
/// which is slow to compile.
template <class T>
class unset_array {
 public:
  explicit unset_array(std::size_t count) : values_(new T[count]) {}
  unset_array(unset_array&& other) noexcept : values_(std::exchange(other.values_, nullptr)) {}
  unset_array& operator=(unset_array&&) = delete;
  ~unset_array() { delete[] values_; }

  [[nodiscard]] T* data() const { return values_; }
  [[nodiscard]] T& operator[](std::size_t k) const { return values_[k]; }
  void release() { delete[] std::exchange(values_, nullptr); }

 private:
  T* values_;
};

}  // namespace omnibal::inline v0::detail
