// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An array in device memory and its copies to and from the host.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <limits>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// A type whose values may be copied between host and device byte by byte.
template <class T>
concept device_element = std::is_trivially_copyable_v<T> && !std::is_const_v<T>;

/// Owner of an array in device memory from the resource of an execution, in the order of its
/// stream. Work on another stream that uses the array must be ordered by an event. The stream and
/// the resource must outlive the array, and arrays in a `given_scratch` must be destroyed in the
/// reverse order. Assignment swaps the two arrays. The elements are not initialized. Movable, not
/// copyable. Errors: `error`, and `std::length_error` if the number of bytes exceeds `std::size_t`.
template <device_element T, device_resource Resource = stream_pool>
class device_array {
 public:
  device_array(execution<Resource> const& exec, std::size_t size) : exec_(exec), size_(size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      omnibal::detail::throw_length("gpu::device_array", "size", size);
    }
    if (size == 0) return;
    data_ = static_cast<T*>(
        exec.resource().allocate(exec.stream(), size * sizeof(T), scratch_alignment));
  }
  device_array(device_array&& other) noexcept
      : exec_(other.exec_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  device_array& operator=(device_array&& other) noexcept {
    std::swap(exec_, other.exec_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~device_array() {
    if (size_ == 0) return;
    exec_.resource().deallocate(exec_.stream(), data_, size_ * sizeof(T), scratch_alignment);
  }

  // These members are callable in device code, like the members of `device_span`, because code for
  // host and device calls both.
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* data() const noexcept { return data_; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] device_span<T> span() const& noexcept { return {data_, size_}; }
  void span() const&& = delete;

  operator device_span<T>() const noexcept { return span(); }
  operator device_span<T const>() const noexcept { return span(); }

 private:
  execution<Resource> exec_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A contiguous range of elements that can be copied to a device.
template <class Range>
concept host_array =
    std::ranges::contiguous_range<Range const> && std::ranges::sized_range<Range const> &&
    device_element<std::remove_cv_t<std::ranges::range_value_t<Range const>>>;

/// Copies an array to the device, in the order of the stream. If `values` are in pageable memory,
/// the call *synchronizes* the stream, because CUDA may read the values until then. Values in
/// pinned memory must stay valid until the stream has executed the copy. If a graph captured the
/// call, they must stay valid as long as the graph, which copies them in each launch. Errors:
/// `error`.
template <device_resource Resource, host_array Range>
[[nodiscard]] auto upload(execution<Resource> const& exec, Range const& values,
                          location caller = location::here()) {
  using value_type = std::remove_cv_t<std::ranges::range_value_t<Range const>>;
  std::size_t const size = std::ranges::size(values);
  device_array<value_type, Resource> result(exec, size);
  if (size != 0) {
    check(cudaMemcpyAsync(result.data(), std::ranges::data(values), size * sizeof(value_type),
                          cudaMemcpyHostToDevice, exec.stream()),
          caller);
    cudaPointerAttributes found{};
    check(cudaPointerGetAttributes(&found, std::ranges::data(values)), caller);
    if (found.type == cudaMemoryTypeUnregistered) exec.synchronize(caller);
  }
  return result;
}

namespace detail {

#pragma GCC visibility push(hidden)

/// Starts the copy of an array to the host. The elements of the result are valid after the stream
/// has been synchronized.
template <device_resource Resource, class T>
[[nodiscard]] std::vector<std::remove_const_t<T>> start_download(
    execution<Resource> const& exec, device_span<T> values, location caller = location::here()) {
  std::vector<std::remove_const_t<T>> result(values.size());
  if (!values.empty()) {
    check(cudaMemcpyAsync(result.data(), values.data(), values.size_bytes(), cudaMemcpyDeviceToHost,
                          exec.stream()),
          caller);
  }
  return result;
}

#pragma GCC visibility pop

}  // namespace detail

/// Copies an array of the device to the host and *synchronizes* the stream. Errors: `error`.
template <device_resource Resource, class T>
[[nodiscard]] std::vector<std::remove_const_t<T>> download(execution<Resource> const& exec,
                                                           device_span<T> values,
                                                           location caller = location::here()) {
  auto result = detail::start_download(exec, values, caller);
  exec.synchronize(caller);
  return result;
}

/// Copies the array of an owner to the host and *synchronizes* the stream. Errors: `error`.
template <device_resource Resource, class T>
[[nodiscard]] std::vector<T> download(execution<Resource> const& exec,
                                      device_array<T, Resource> const& values,
                                      location caller = location::here()) {
  return download(exec, values.span(), caller);
}

/// Waits for the stream and reads the faults. If there is a fault, throws the exception of `check`,
/// whose text names `function`.
template <device_resource Resource>
void synchronize_and_check(execution<Resource> const& exec, device_span<fault const> faults,
                           std::string_view function) {
  for (fault const word : download(exec, faults)) check(word, function);
}

}  // namespace omnibal::inline v0::gpu
