#pragma once

/// \file
/// A pointer and a size that host and device code may pass around.

#include <omnibal/config.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace omnibal::inline v0::gpu {

/// A contiguous array in device memory that lives elsewhere. Trivially copyable. Host code passes
/// it on and asks for its size; only device code may look at the elements.
template <class T>
class device_span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  /// No elements.
  device_span() = default;

  OMNIBAL_HOST_DEVICE constexpr device_span(T* data, std::size_t size) : data_(data), size_(size) {}

  /// A span of the same elements that may not be changed through it.
  template <class U>
    requires(!std::same_as<T, U> && std::same_as<T, U const>)
  OMNIBAL_HOST_DEVICE constexpr device_span(device_span<U> other)
      : data_(other.data()), size_(other.size()) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T* data() const { return data_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t size() const { return size_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t size_bytes() const {
    return size_ * sizeof(T);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool empty() const { return size_ == 0; }

  /// For device code. Precondition: `i < size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T& operator[](std::size_t i) const {
    return data_[i];
  }

  /// Precondition: `first + count <= size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr device_span subspan(std::size_t first,
                                                                  std::size_t count) const {
    return {data_ + first, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace omnibal::inline v0::gpu
