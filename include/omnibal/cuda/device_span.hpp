// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A pointer and a size that host and device code may pass around.

#include <omnibal/config.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>

namespace omnibal::inline v0::gpu {

namespace detail {

#pragma GCC visibility push(hidden)

/// Returns a pointer to the first element of an array in device memory. `thrust::device_vector`
/// returns an object of a class instead, which this function converts.
template <class Array>
  requires requires(Array&& array) { array.data(); }
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr auto data_of(Array&& array) {
  if constexpr (requires { array.data().get(); }) {
    return array.data().get();
  } else {
    return array.data();
  }
}

/// True for containers of the host and for `std::array` and `std::span`, whose elements are in host
/// memory.
template <class Array>
inline constexpr bool is_of_host = !std::is_trivially_copyable_v<Array> || requires {
  std::tuple_size<Array>::value;
};
template <class T, std::size_t Extent>
inline constexpr bool is_of_host<std::span<T, Extent>> = true;

/// An owner or a span of elements of `T` in device memory, of this library or of another one.
template <class Array, class T>
concept array_of_device = requires(Array& array) {
  { array.size() } -> std::convertible_to<std::size_t>;
  requires std::is_convertible_v<std::remove_pointer_t<decltype(data_of(array))> (*)[], T (*)[]>;
  requires !is_of_host<std::remove_cvref_t<Array>> || requires { array.data().get(); };
};

#pragma GCC visibility pop

}  // namespace detail

/// A contiguous array in device memory that the span does not own. Trivially copyable. Host code
/// may copy the span and read its size; only device code may access the elements.
template <class T>
class device_span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  /// Creates a span without elements.
  device_span() = default;

  OMNIBAL_HOST_DEVICE constexpr device_span(T* data, std::size_t size) : data_(data), size_(size) {}

  /// Creates a span of the elements of a span or an owner of another library: a `cuda::std::span`
  /// of device memory, a `thrust::device_vector`.
  template <class Array>
    requires(!std::same_as<device_span, std::remove_cvref_t<Array>> &&
             detail::array_of_device<Array, T>)
  OMNIBAL_HOST_DEVICE constexpr device_span(Array&& array)
      : data_(detail::data_of(array)), size_(array.size()) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T* data() const { return data_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t size() const { return size_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t size_bytes() const {
    return size_ * sizeof(T);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool empty() const { return size_ == 0; }

  /// Returns element i. Only device code may call this function. Precondition: `i < size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T& operator[](std::size_t i) const {
    return data_[i];
  }

  /// Returns the span of `count` elements from element `first` on. Precondition: `first + count <=
  /// size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr device_span subspan(std::size_t first,
                                                                  std::size_t count) const {
    return {data_ + first, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace omnibal::inline v0::gpu
