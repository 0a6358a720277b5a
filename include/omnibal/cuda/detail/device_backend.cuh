// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The kernels of the algorithms of cuda/ and their launches on a stream.

#include <omnibal/check.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/device_block.cuh>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu::detail {

// The symbols are hidden, and so is everything that is instantiated with a backend for a device.
// Therefore each of two shared libraries runs its own kernels, which may be compiled for other
// devices or by another version of CUDA. A pragma does this, because an attribute of a kernel would
// be refused for functors in unnamed namespaces.
#pragma GCC visibility push(hidden)

/// Returns the number of blocks of the kernel of a functor that one multiprocessor must be able to
/// run at the same time, or 0 if the functor does not define it. The compiler limits the registers
/// of a thread accordingly. For 0 the compiler chooses the number itself, and may spill registers
/// to reach it. A kernel that runs as one block, or fills the shared memory, should define 1.
template <class F>
[[nodiscard]] constexpr int min_blocks_of() {
  if constexpr (requires { F::min_blocks; }) {
    return F::min_blocks;
  } else {
    return 0;
  }
}
/// True if a functor declares that its loops must not be unrolled. This suits functors whose data
/// are in shared memory and whose unrolled code would exceed the instruction cache.
template <class F>
inline constexpr bool is_compact = requires {
  F::is_compact;
};

// The functor is a grid constant. Otherwise a functor with an array that a loop indexes would be
// copied to the local memory of each thread.

/// The number of threads of a block of `for_each_kernel`.
inline constexpr unsigned for_each_threads = 256;

template <class F>
__global__ void __launch_bounds__(for_each_threads)
    for_each_kernel(std::size_t n, __grid_constant__ F const f) {
  std::size_t const i = std::size_t{blockIdx.x} * for_each_threads + threadIdx.x;
  if (i < n) f(i);
}

template <int Threads, class F>
__global__ void __launch_bounds__(Threads, min_blocks_of<F>())
    for_each_block_kernel(__grid_constant__ F const f) {
  device_block<Threads, is_compact<F>> block(shared_memory());
  f(block, std::size_t{blockIdx.x});
}

/// True if a functor can be the argument of a kernel: trivially copyable and at most 4000 bytes.
template <class F>
inline constexpr bool is_kernel_functor = std::is_trivially_copyable_v<F> && sizeof(F) <= 4000;

template <class F>
void launch_for_each(cudaStream_t stream, std::size_t n, F f) {
  static_assert(is_kernel_functor<F>);
  if (n == 0) return;
  std::size_t const blocks = (n + for_each_threads - 1) / for_each_threads;
  if (blocks > 0x7fffffffu) omnibal::detail::throw_length("gpu", "a launch", n);
  void* arguments[] = {&n, &f};
  check(cudaLaunchKernel(&for_each_kernel<F>, dim3(static_cast<unsigned>(blocks)),
                         dim3(for_each_threads), arguments, 0, stream));
}

// Devices of compute capability 8.6, 8.9 and 12.0 have no more shared memory for a block.
static_assert(max_shared_bytes + device_block<512>::reserved_bytes <= 99 * 1024);

/// The answers of the driver to one question, requested once for each device. Answers are positive;
/// zero means that there is no answer yet. If several threads ask at the same time, the driver
/// returns the same answer to all.
class device_attribute_cache {
 public:
  /// Returns `ask(device)` for the current device.
  template <class Ask>
  [[nodiscard]] int operator()(Ask const& ask) {
    int device = 0;
    check(cudaGetDevice(&device));
    if (static_cast<std::size_t>(device) >= answers_.size()) return ask(device);
    std::atomic<int>& known = answers_[static_cast<std::size_t>(device)];
    if (int const answer = known.load(); answer != 0) return answer;
    int const answer = ask(device);
    known.store(answer);
    return answer;
  }

 private:
  std::array<std::atomic<int>, 64> answers_{};
};

[[nodiscard]] inline int attribute(int device, cudaDeviceAttr which) {
  int result = 0;
  check(cudaDeviceGetAttribute(&result, which, device));
  return result;
}

/// Raises the limit of the shared memory of a kernel to the limit of the device, if `bytes` exceeds
/// the default. Two threads that launch the kernel with different amounts therefore cannot reduce
/// each other's limit. `done` records the devices for this kernel; each kernel has its own.
inline void allow_shared_bytes(void const* kernel, std::size_t bytes,
                               device_attribute_cache& done) {
  constexpr std::size_t usual_bytes = 48 * 1024;
  if (bytes <= usual_bytes) return;
  static_cast<void>(done([&](int device) {
    int const most = attribute(device, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    return most;
  }));
}

template <int Threads, class F>
void launch_for_each_block(cudaStream_t stream, std::size_t blocks, std::size_t shared_bytes, F f) {
  static_assert(is_kernel_functor<F>);
  static_assert(Threads % 32 == 0 && Threads >= 32 && Threads <= 1024);
  if (blocks == 0) return;
  if (blocks > 0x7fffffffu) omnibal::detail::throw_length("gpu", "a launch of blocks", blocks);
  auto* const kernel = &for_each_block_kernel<Threads, F>;
  std::size_t const bytes = shared_bytes + device_block<Threads>::reserved_bytes;
  static device_attribute_cache allowed;
  allow_shared_bytes(reinterpret_cast<void const*>(kernel), bytes, allowed);
  void* arguments[] = {&f};
  check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(Threads), arguments,
                         bytes, stream));
}

// Both are defined in headers of these names. An algorithm includes only the headers whose steps it
// uses, because each takes seconds to compile.
template <class Key, class Value>
struct device_sort;
template <int Threads, class F>
struct grid_launch;

/// Returns a count in the type that CUB accepts.
[[nodiscard]] inline std::uint32_t step_size(std::size_t n) {
  omnibal::detail::check_index_count("gpu", "a step", n);
  return static_cast<std::uint32_t>(n);
}

/// Counts the scratch of an algorithm on the device, including the temporary memory of CUB. All
/// steps share the temporary memory, because they run one after the other.
class device_meter : public scratch_meter {
 public:
  /// Clears an error that an earlier call of the program left, which CUB would report as its own.
  device_meter() { static_cast<void>(cudaGetLastError()); }

  template <class Key, class Value>
  void sort_pairs(Key* keys, Value* values, std::size_t n, int begin_bit = 0,
                  int end_bit = static_cast<int>(8 * sizeof(Key))) {
    if (n == 0) return;
    need(
        [&](std::size_t& bytes) {
          bool in_place = true;
          return device_sort<Key, Value>::pairs(nullptr, bytes, step_size(n), keys, keys, values,
                                                values, begin_bit, end_bit, nullptr, in_place);
        },
        padded(n * sizeof(Key)) + padded(n * sizeof(Value)));
  }
  /// Returns the largest temporary memory of a step, in bytes.
  [[nodiscard]] std::size_t temporary_bytes() const { return temporary_bytes_; }
  /// Returns the temporary memory and the scratch in bytes.
  [[nodiscard]] std::size_t total_bytes() const { return temporary_bytes_ + scratch_bytes(); }

  [[nodiscard]] static constexpr std::size_t padded(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }

 private:
  template <class Query>
  void need(Query const& query, std::size_t buffers = 0) {
    std::size_t bytes = 0;
    cudaError_t const status = query(bytes);
    if (status != cudaSuccess) {
      // CUB reports a missing driver as an invalid device. This call reports it as a missing
      // driver.
      int devices = 0;
      check(cudaGetDeviceCount(&devices));
      check(status);
    }
    temporary_bytes_ = std::max(temporary_bytes_, buffers + padded(bytes));
  }

  std::size_t temporary_bytes_ = 0;
};

/// A `grid_backend` that submits its phases to a stream. The host knows every count; therefore an
/// algorithm is a fixed sequence of launches and can be captured in a graph. The given memory holds
/// the temporary memory of a sort first and the scratch behind it, as `device_meter` counts them.
/// Does not synchronize.
class device_backend {
 public:
  device_backend(cudaStream_t stream, std::byte* memory, std::size_t temporary_bytes)
      : stream_(stream),
        temporary_(memory),
        temporary_bytes_(temporary_bytes),
        scratch_(memory + temporary_bytes) {}

  /// Returns `count` elements that are valid until the algorithm ends, not initialized.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T* scratch(std::size_t count) {
    T* const result = reinterpret_cast<T*>(scratch_);
    scratch_ += device_meter::padded(count * sizeof(T));
    return result;
  }

  /// Calls `f(i)` for all `i < n`, in any order, concurrently.
  template <class F>
  void for_each(std::size_t n, F const& f) {
    launch_for_each(stream_, n, f);
  }
  /// Calls `f(block, index)` for `blocks` blocks of `Threads` threads with `shared_bytes` of shared
  /// memory each, in any order, concurrently. An array in the shared memory occupies a multiple of
  /// 16 bytes.
  template <int Threads, class F>
  void for_each_block(std::size_t blocks, std::size_t shared_bytes, F const& f) {
    launch_for_each_block<Threads>(stream_, blocks, shared_bytes, f);
  }
  /// Calls `f(grid)` once, with a grid of blocks of `Threads` threads that all run at once and have
  /// `threads` threads in all. Each block has `shared_bytes` of shared memory.
  template <int Threads, class F>
  void for_grid(std::size_t threads, std::size_t shared_bytes, F const& f) {
    grid_launch<Threads, F>::run(stream_, threads, shared_bytes, f,
                                 scratch<unsigned char>(grid_exchange_bytes));
  }

  /// Sorts by the bits [begin_bit, end_bit) of unsigned keys, ascending and stably, in place.
  template <class Key, class Value>
  void sort_pairs(Key* keys, Value* values, std::size_t n, int begin_bit = 0,
                  int end_bit = static_cast<int>(8 * sizeof(Key))) {
    if (n == 0) return;
    std::size_t const key_bytes = device_meter::padded(n * sizeof(Key));
    std::size_t const buffers = key_bytes + device_meter::padded(n * sizeof(Value));
    auto* const spare_keys = reinterpret_cast<Key*>(temporary_);
    auto* const spare_values = reinterpret_cast<Value*>(temporary_ + key_bytes);
    std::size_t bytes = temporary_bytes_ - buffers;
    bool in_place = true;
    check(device_sort<Key, Value>::pairs(temporary_ + buffers, bytes, step_size(n), keys,
                                         spare_keys, values, spare_values, begin_bit, end_bit,
                                         stream_, in_place));
    if (in_place) return;
    copy(keys, spare_keys, n);
    copy(values, spare_values, n);
  }
  /// Sets all bytes of `n` elements to zero.
  template <class T>
  void fill_zero(T* to, std::size_t n) {
    if (n == 0) return;
    check(cudaMemsetAsync(to, 0, n * sizeof(T), stream_));
  }

 private:
  template <class T>
  void copy(T* to, T const* from, std::size_t n) {
    check(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, stream_));
  }

  cudaStream_t stream_;
  std::byte* temporary_;
  std::size_t temporary_bytes_;
  std::byte* scratch_;
};

static_assert(grid_backend<device_backend> && grid_backend<device_meter>);

/// Returns the number of bytes that `run_on_device` allocates from the resource. The function calls
/// `algorithm(backend)` with a backend that runs nothing.
template <class Algorithm>
[[nodiscard]] std::size_t device_scratch_bytes(Algorithm const& algorithm) {
  device_meter meter;
  algorithm(meter);
  return meter.total_bytes();
}

/// Calls `algorithm(backend)` with a backend that submits to the stream of `exec`. All scratch is
/// one piece of memory of the resource, returned in the order of the stream, also if a step throws.
/// `algorithm` is called twice: first with a backend that only measures.
template <executor Exec, class Algorithm>
void run_on_device(Exec const& given, Algorithm const& algorithm) {
  auto const exec = on(given);
  device_meter meter;
  algorithm(meter);

  struct arena {
    decltype(on(given)) exec;
    std::size_t bytes;
    void* memory;
    ~arena() {
      if (bytes != 0) {
        exec.resource().deallocate(exec.stream(), memory, bytes, scratch_alignment);
      }
    }
  };
  std::size_t const bytes = meter.total_bytes();
  arena const scratch{
      exec, bytes,
      bytes == 0 ? nullptr : exec.resource().allocate(exec.stream(), bytes, scratch_alignment)};

  device_backend backend(exec.stream(), static_cast<std::byte*>(scratch.memory),
                         meter.temporary_bytes());
  algorithm(backend);
}

template <class Algorithm>
void run_on_device(scratch_count const& count, Algorithm const& algorithm) {
  *count.bytes = device_scratch_bytes(algorithm);
}

/// The base class of every algorithm on the device, with the member that measures its scratch.
template <class Algorithm>
struct scratch_counted {
  /// Returns the scratch bytes that a call with these arguments allocates from its memory resource;
  /// submits nothing. Only the sizes of arrays matter, so the arrays may be null: `device_span<int
  /// const>(nullptr, n)`. The device of the call must be current. Errors: the errors of the call,
  /// including `error` if the call queries a device.
  template <class... Arguments>
  [[nodiscard]] std::size_t scratch_bytes(Arguments&&... arguments) const {
    std::size_t bytes = 0;
    static_cast<Algorithm const&> (*this)(scratch_count{&bytes}, arguments...);
    return bytes;
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
