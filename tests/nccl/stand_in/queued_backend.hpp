#pragma once

// The serial backend in the order of a stream of the stand-in, in place of kernels.

#include "stand_in.hpp"

#include <omnibal/cuda/detail/scratch_meter.hpp>
#include <omnibal/cuda/detail/serial_backend.hpp>
#include <omnibal/cuda/detail/visit_order.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/memory_resource.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace stand_in {

using omnibal::gpu::detail::scratch_meter;
using omnibal::gpu::detail::serial_backend;
using omnibal::gpu::detail::visit_order;

/// Every step runs later, when the stream comes to it.
class queued_backend {
 public:
  queued_backend(cudaStream_t stream, std::byte* memory, visit_order order)
      : stream_(stream), memory_(memory), order_(order) {}

  template <class T>
  [[nodiscard]] T* scratch(std::size_t count) {
    T* const result = reinterpret_cast<T*>(memory_);
    memory_ += (count * sizeof(T) + scratch_meter::alignment - 1) / scratch_meter::alignment *
               scratch_meter::alignment;
    return result;
  }

  template <class F>
  void for_each(std::size_t n, F const& f) {
    later([=](serial_backend& b) { b.for_each(n, f); });
  }
  template <int Threads, class F>
  void for_each_block(std::size_t blocks, std::size_t shared_bytes, F const& f) {
    later([=](serial_backend& b) { b.template for_each_block<Threads>(blocks, shared_bytes, f); });
  }
  template <class T>
  void exclusive_sum(T const* in, T* out, std::size_t n) {
    later([=](serial_backend& b) { b.exclusive_sum(in, out, n); });
  }
  template <class F, class T>
  void exclusive_sum_of(std::size_t n, F const& f, T* out) {
    later([=](serial_backend& b) { b.exclusive_sum_of(n, f, out); });
  }
  template <class Key, class Value>
  void sort_pairs(Key* keys, Value* values, std::size_t n, int begin_bit = 0,
                  int end_bit = static_cast<int>(8 * sizeof(Key))) {
    later([=](serial_backend& b) { b.sort_pairs(keys, values, n, begin_bit, end_bit); });
  }
  template <class Key>
  void sort_keys(Key* keys, std::size_t n, int begin_bit = 0,
                 int end_bit = static_cast<int>(8 * sizeof(Key))) {
    later([=](serial_backend& b) { b.sort_keys(keys, n, begin_bit, end_bit); });
  }
  template <class T>
  void copy(T* to, T const* from, std::size_t n) {
    later([=](serial_backend& b) { b.copy(to, from, n); });
  }
  template <class T>
  void fill_zero(T* to, std::size_t n) {
    later([=](serial_backend& b) { b.fill_zero(to, n); });
  }

 private:
  template <class Step>
  void later(Step const& step) {
    enqueue(stream_, [step, order = order_] {
      serial_backend backend(order, 17);
      step(backend);
    });
  }

  cudaStream_t stream_;
  std::byte* memory_;
  visit_order order_;
};

/// As `run_on_device`: measures, takes one piece of memory, runs and gives it back.
struct queued_runner {
  visit_order order = visit_order::forward;

  template <class Resource, class Algorithm>
  void operator()(omnibal::gpu::execution<Resource> const& exec, Algorithm const& algorithm) const {
    scratch_meter meter;
    algorithm(meter);
    std::size_t const bytes = meter.scratch_bytes();
    void* const memory = bytes == 0 ? nullptr
                                    : exec.resource().allocate(
                                          bytes, omnibal::gpu::scratch_alignment, exec.stream());
    queued_backend backend(exec.stream(), static_cast<std::byte*>(memory), order);
    struct release {
      omnibal::gpu::execution<Resource> const& exec;
      void* memory;
      std::size_t bytes;
      ~release() {
        if (bytes != 0) {
          exec.resource().deallocate(memory, bytes, omnibal::gpu::scratch_alignment, exec.stream());
        }
      }
    } const end{exec, memory, bytes};
    algorithm(backend);
  }
};

}  // namespace stand_in
