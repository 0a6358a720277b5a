// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches for the calls on a stream, their plans, and the way to the device and back.

#include "rank_checks.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include <cuda_runtime_api.h>

namespace test {

namespace gpu = omnibal::gpu;

/// A stream of our own.
class own_stream {
 public:
  own_stream() { gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  own_stream(own_stream const&) = delete;
  own_stream& operator=(own_stream const&) = delete;
  ~own_stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

template <class T>
gpu::device_span<T const> constant(gpu::device_array<T> const& array) {
  return array;
}

/// Calls `call(execution)` with so many bytes of scratch: it throws where it asks for more.
template <class Call>
void with_scratch(gpu::execution<> const& exec, std::size_t bytes, Call const& call) {
  gpu::device_array<std::byte> const memory(exec, bytes);
  gpu::given_scratch scratch(memory);
  call(gpu::on(exec.stream(), scratch));
}

/// To the host, waiting as a trainer should.
template <class Comm, class T>
std::vector<std::remove_const_t<T>> to_host(gpu::execution<> const& exec, Comm& comm,
                                            gpu::device_span<T> values) {
  comm.wait(exec.stream());
  return gpu::download(exec, values);
}
template <class Comm, class T>
std::vector<T> to_host(gpu::execution<> const& exec, Comm& comm,
                       gpu::device_array<T> const& values) {
  return to_host(exec, comm, values.span());
}

/// The global batch of a round, which every rank can make.
struct batch {
  std::vector<std::uint32_t> offsets;
  std::vector<std::int64_t> costs;
  /// The elements of each sample.
  std::vector<std::int64_t> sizes;

  [[nodiscard]] std::size_t samples() const { return costs.size(); }
  [[nodiscard]] std::size_t count(std::size_t rank) const {
    return offsets[rank + 1] - offsets[rank];
  }
  [[nodiscard]] std::size_t most() const {
    std::size_t result = 0;
    for (std::size_t rank = 0; rank + 1 < offsets.size(); ++rank) {
      result = std::max(result, count(rank));
    }
    return result;
  }
  [[nodiscard]] std::span<std::int64_t const> of(std::size_t rank,
                                                 std::vector<std::int64_t> const& all) const {
    return std::span(all).subspan(offsets[rank], count(rank));
  }
};

inline batch batch_of(std::uint64_t round, std::size_t ranks) {
  random_amounts random(round * 977 + ranks);
  batch result;
  result.offsets.push_back(0);
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    std::int64_t count = random.between(0, 12);
    if (round % 7 == 1) count = 0;
    if (round % 7 == 2) count = rank + 1 == ranks ? 30 : 0;
    if (round % 7 == 3) count = rank % 2 == 0 ? 0 : count;
    if (round % 11 == 4) count = 1;
    result.offsets.push_back(result.offsets.back() + static_cast<std::uint32_t>(count));
  }
  for (std::size_t i = 0; i != result.offsets.back(); ++i) {
    result.costs.push_back(round % 13 == 5 ? 1 : random.heavy_tail(1'000'000));
    std::int64_t size = random.heavy_tail(round % 50 == 49 ? 20'000 : 100);
    if (round % 9 == 8) size = 0;
    result.sizes.push_back(size);
  }
  return result;
}

/// The i-th element of a sample.
template <class T>
T element_of(std::size_t sample, std::size_t i) {
  return static_cast<T>(sample * 7919 + i * 31 + 1);
}

template <class T>
std::vector<T> rows_of(std::span<std::uint32_t const> samples, std::size_t length) {
  std::vector<T> result;
  for (std::uint32_t const sample : samples) {
    for (std::size_t i = 0; i != length; ++i) result.push_back(element_of<T>(sample, i));
  }
  return result;
}

template <class T>
std::vector<T> payloads_of(std::span<std::uint32_t const> samples,
                           std::vector<std::int64_t> const& sizes) {
  std::vector<T> result;
  for (std::uint32_t const sample : samples) {
    for (std::size_t i = 0; i != static_cast<std::size_t>(sizes[sample]); ++i) {
      result.push_back(element_of<T>(sample, i));
    }
  }
  return result;
}

inline std::vector<std::uint64_t> offsets_of(std::span<std::uint32_t const> samples,
                                             std::vector<std::int64_t> const& sizes) {
  std::vector<std::uint64_t> result{0};
  for (std::uint32_t const sample : samples) {
    result.push_back(result.back() + static_cast<std::uint64_t>(sizes[sample]));
  }
  return result;
}

/// The indices of the samples of a rank before an exchange.
inline std::vector<std::uint32_t> homes(omnibal::exchange_plan const& plan, std::size_t rank) {
  std::vector<std::uint32_t> result(plan.home_count(rank));
  std::iota(result.begin(), result.end(), plan.home_offsets()[rank]);
  return result;
}

/// A plan as rounds go: few bytes, even loads with all order changed, or nonsense that permutes.
inline omnibal::exchange_plan plan_of(std::uint64_t round, batch const& all) {
  auto const reversed = [](auto const& costs, std::size_t parts, auto const& cost) {
    auto const even = omnibal::lpt(costs, parts, cost);
    omnibal::grouping result;
    for (std::size_t p = parts; p-- != 0;) {
      for (std::size_t k = even[p].size(); k-- != 0;) result.push(even[p][k]);
      result.close();
    }
    return result;
  };
  auto const to_last = [](auto const& costs, std::size_t parts, auto const&) {
    omnibal::grouping result;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::size_t i = costs.size(); p + 1 == parts && i-- != 0;) {
        result.push(static_cast<std::uint32_t>(i));
      }
      result.close();
    }
    return result;
  };
  // Neighbors before that are none afterwards, in their old order.
  auto const interleaved = [](auto const& costs, std::size_t parts, auto const&) {
    omnibal::grouping result;
    std::size_t const half = (costs.size() + 1) / 2;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::size_t i = 0; p + 1 == parts && i != half; ++i) {
        result.push(static_cast<std::uint32_t>(i));
        if (half + i < costs.size()) result.push(static_cast<std::uint32_t>(half + i));
      }
      result.close();
    }
    return result;
  };
  if (round % 6 == 5) {
    return omnibal::make_plan(all.offsets, all.costs, all.sizes, {}, interleaved);
  }
  if (round % 3 == 0) return omnibal::make_plan(all.offsets, all.costs, all.sizes);
  if (round % 3 == 1) return omnibal::make_plan(all.offsets, all.costs, all.sizes, {}, reversed);
  return omnibal::make_plan(all.offsets, all.costs, all.sizes, {}, to_last);
}

}  // namespace test
