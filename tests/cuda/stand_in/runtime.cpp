// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that the library and its tests call.

#include "runtime.hpp"

#include "launch.hpp"
#include "streams.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace stand_in {
namespace {

struct allocation {
  std::size_t bytes;
  memory_kind kind;
};

struct memory_map {
  std::mutex mutex;
  std::map<std::uintptr_t, allocation> blocks;
};

memory_map& memory() {
  // Never destroyed, so that what is left on purpose is no leak to a sanitizer.
  static auto& all = *new memory_map;
  return all;
}

void* take(std::size_t bytes, memory_kind kind) {
  void* result = nullptr;
  if (posix_memalign(&result, 256, bytes) != 0) return nullptr;
  std::memset(result, 0xcd, bytes);
  std::lock_guard const lock(memory().mutex);
  memory().blocks[reinterpret_cast<std::uintptr_t>(result)] = {bytes, kind};
  return result;
}

bool give_back(void* address) {
  std::size_t bytes = 0;
  {
    std::lock_guard const lock(memory().mutex);
    auto const found = memory().blocks.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == memory().blocks.end()) return false;
    bytes = found->second.bytes;
    memory().blocks.erase(found);
  }
  std::memset(address, 0xdd, bytes);
  std::free(address);
  return true;
}

/// An event.
struct time_point {
  std::chrono::steady_clock::time_point time;
  cudaStream_t stream = nullptr;
};

std::atomic<unsigned> copies{0};
std::atomic<unsigned> synchronizations{0};
std::atomic<unsigned> queries{0};
std::atomic<std::size_t> late{0};
std::atomic<bool> reads_late{false};

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t give(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

/// Submits work that is the same each time.
void push(cudaStream_t handle, std::function<void()> action) {
  stream_of(handle).push({[action = std::move(action)] { return action; }});
}

}  // namespace

memory_kind kind_of(void const* address, std::size_t bytes) {
  auto const first = reinterpret_cast<std::uintptr_t>(address);
  std::lock_guard const lock(memory().mutex);
  auto after = memory().blocks.upper_bound(first);
  if (after == memory().blocks.begin()) return memory_kind::pageable;
  auto const& [begin, block] = *--after;
  return first + bytes <= begin + block.bytes ? block.kind : memory_kind::pageable;
}

stream& stream_of(void* handle) {
  static thread_local stream own(current_device);
  // The default stream is that of the thread.
  bool const is_default =
      handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
  return is_default ? own : *static_cast<stream*>(handle);
}

void enqueue(cudaStream_t handle, std::function<void()> action) { push(handle, std::move(action)); }

std::size_t live_allocations() {
  std::lock_guard const lock(memory().mutex);
  return memory().blocks.size();
}

std::size_t late_copies() { return late; }
void set_reading_late(bool reads) { reads_late = reads; }

call_counts calls() { return {copies, synchronizations, queries}; }

}  // namespace stand_in

using stand_in::give;
using stand_in::memory_kind;
using stand_in::stream_of;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  *device = stand_in::current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= 8) return give(cudaErrorInvalidDevice);
  stand_in::current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 8;
  return cudaSuccess;
}
char const* cudaGetErrorName(cudaError_t) { return "an error of the stand-in"; }
char const* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorStreamCaptureUnsupported ? "not while a stream is captured" : "a mistake";
}
cudaError_t cudaGetLastError() { return std::exchange(stand_in::last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return stand_in::last_error; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->major = 8;
  properties->multiProcessorCount = static_cast<int>(stand_in::multiprocessors());
  properties->sharedMemPerBlockOptin = stand_in::max_shared_bytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  ++stand_in::queries;
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(stand_in::max_shared_bytes);
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = static_cast<int>(stand_in::multiprocessors());
      return cudaSuccess;
    case cudaDevAttrL2CacheSize: *value = 1 << 16; return cudaSuccess;
    default: return give(cudaErrorInvalidValue);
  }
}
cudaError_t cudaFuncSetAttribute(void const* kernel, cudaFuncAttribute attribute, int value) {
  ++stand_in::queries;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0) {
    return give(cudaErrorInvalidValue);
  }
  return give(stand_in::allow_shared_bytes(kernel, static_cast<std::size_t>(value)));
}

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  *address = stand_in::take(bytes, memory_kind::device);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  return give(stand_in::give_back(address) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
  *address = stand_in::take(bytes, memory_kind::pinned);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* address) {
  return give(stand_in::give_back(address) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t stream) {
  if (stream_of(stream).is_capturing()) return give(cudaErrorStreamCaptureUnsupported);
  *address = stand_in::take(bytes, memory_kind::device);
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** address, std::size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return cudaMallocAsync(address, bytes, stream);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  if (stand_in::kind_of(address, 1) != memory_kind::device) return give(cudaErrorInvalidValue);
  if (stream_of(stream).is_capturing()) return give(cudaErrorStreamCaptureUnsupported);
  stand_in::push(stream, [address] { stand_in::give_back(address); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (stand_in::has_trapped()) return give(cudaErrorLaunchFailure);
  if (bytes == 0) return cudaSuccess;
  if (kind != cudaMemcpyDeviceToDevice) ++stand_in::copies;
  auto const target = stand_in::kind_of(to, bytes);
  auto const source = stand_in::kind_of(from, bytes);
  bool const to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool const from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device != (target == memory_kind::device) ||
      from_device != (source == memory_kind::device)) {
    return give(cudaErrorInvalidValue);
  }
  bool const is_pageable = target == memory_kind::pageable || source == memory_kind::pageable;
  if (is_pageable && stream_of(stream).is_capturing()) {
    return give(cudaErrorStreamCaptureUnsupported);
  }
  if (source == memory_kind::pageable && !stand_in::reads_late) {
    auto const* const first = static_cast<std::byte const*>(from);
    stand_in::push(stream, [to, bytes, copy = std::vector<std::byte>(first, first + bytes)] {
      std::memcpy(to, copy.data(), bytes);
    });
  } else {
    stand_in::push(stream, [to, from, bytes, target] {
      if (stand_in::kind_of(to, bytes) != target) {
        ++stand_in::late;
        return;
      }
      std::memmove(to, from, bytes);
    });
  }
  if (target == memory_kind::pageable) stream_of(stream).wait();
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaError_t const status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  stream_of(nullptr).wait();
  return status;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* address) {
  auto const kind = stand_in::kind_of(address, 1);
  *attributes = {};
  attributes->type = kind == memory_kind::device   ? cudaMemoryTypeDevice
                     : kind == memory_kind::pinned ? cudaMemoryTypeHost
                                                   : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (stand_in::kind_of(to, bytes) != memory_kind::device) return give(cudaErrorInvalidValue);
  stand_in::push(stream, [to, value, bytes] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new stand_in::stream(stand_in::current_device));
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  stream_of(stream).wait();
  delete &stream_of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream_of(stream).is_capturing()) return give(cudaErrorStreamCaptureUnsupported);
  return give(stream_of(stream).is_done() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++stand_in::synchronizations;
  if (stream_of(stream).is_capturing()) return give(cudaErrorStreamCaptureUnsupported);
  stream_of(stream).wait();
  return give(stand_in::has_trapped() ? cudaErrorLaunchFailure : cudaSuccess);
}

cudaError_t cudaDeviceSynchronize() { return cudaStreamSynchronize(nullptr); }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new stand_in::time_point);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<stand_in::time_point*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto* const when = reinterpret_cast<stand_in::time_point*>(event);
  when->stream = stream;
  stand_in::push(stream, [when] { when->time = std::chrono::steady_clock::now(); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaStreamSynchronize(reinterpret_cast<stand_in::time_point*>(event)->stream);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(reinterpret_cast<stand_in::time_point*>(end)->time -
                                               reinterpret_cast<stand_in::time_point*>(begin)->time)
          .count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream_of(stream).begin_capture();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(stream_of(stream).end_capture().release());
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = reinterpret_cast<cudaGraphExec_t>(
      new stand_in::graph(*reinterpret_cast<stand_in::graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  for (auto const& node : reinterpret_cast<stand_in::graph*>(exec)->nodes) {
    stream_of(stream).push(node);
  }
  stream_of(stream).start();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<stand_in::graph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete reinterpret_cast<stand_in::graph*>(exec);
  return cudaSuccess;
}

}  // extern "C"
