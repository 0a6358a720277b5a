// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

namespace gpu = omnibal::gpu;
using gpu::fault;
using test::error_text;

static_assert(std::is_trivially_copyable_v<gpu::device_span<int>>);
static_assert(std::is_trivially_copyable_v<gpu::grouping_span>);
static_assert(std::convertible_to<gpu::device_span<int>, gpu::device_span<int const>>);
static_assert(!std::convertible_to<gpu::device_span<int const>, gpu::device_span<int>>);
static_assert(!std::convertible_to<gpu::device_span<int>, gpu::device_span<long const>>);

/// As `thrust::device_vector` and its pointers.
template <class T>
struct foreign_vector {
  template <class U>
  struct pointer {
    U* to;
    [[nodiscard]] U* get() const { return to; }
    U& operator*() const { return *to; }
  };
  std::vector<T> values;

  [[nodiscard]] pointer<T> data() { return {values.data()}; }
  [[nodiscard]] pointer<T const> data() const { return {values.data()}; }
  [[nodiscard]] std::size_t size() const { return values.size(); }
};
/// As `cuda::std::span`.
template <class T>
struct foreign_span {
  T* first;
  std::size_t count;

  [[nodiscard]] T* data() const { return first; }
  [[nodiscard]] std::size_t size() const { return count; }
};
/// As `cuda::stream_ref`.
struct foreign_stream {
  cudaStream_t stream;

  [[nodiscard]] cudaStream_t get() const { return stream; }
};
/// As the resources of CCCL and RMM, whose stream is a class made of that of CUDA.
struct foreign_resource {
  struct stream_ref {
    stream_ref(cudaStream_t) {}
  };
  void* allocate(stream_ref, std::size_t, std::size_t);
  void deallocate(stream_ref, void*, std::size_t, std::size_t) noexcept;
};

static_assert(gpu::device_resource<foreign_resource>);
static_assert(std::convertible_to<foreign_vector<int>&, gpu::device_span<int>>);
static_assert(std::convertible_to<foreign_vector<int> const&, gpu::device_span<int const>>);
static_assert(!std::convertible_to<foreign_vector<int> const&, gpu::device_span<int>>);
static_assert(std::convertible_to<foreign_span<int>, gpu::device_span<int const>>);
static_assert(!std::convertible_to<foreign_span<int const>, gpu::device_span<int>>);
static_assert(!std::convertible_to<foreign_span<int>, gpu::device_span<long>>);
static_assert(gpu::device_demands<foreign_vector<std::int64_t>>);
// Memory of the host is none of the device.
static_assert(!std::convertible_to<std::vector<int>&, gpu::device_span<int>>);
static_assert(!std::convertible_to<std::span<int>, gpu::device_span<int>>);
static_assert(!std::convertible_to<std::array<int, 3>&, gpu::device_span<int>>);

static_assert(gpu::device_resource<gpu::stream_pool>);
static_assert(gpu::device_resource<gpu::stream_pool const>);
static_assert(gpu::device_resource<gpu::given_scratch>);
static_assert(!gpu::device_resource<std::vector<int>>);

static_assert(std::movable<gpu::device_array<int>>);
static_assert(!std::copyable<gpu::device_array<int>>);
static_assert(!gpu::device_element<std::string>);
static_assert(gpu::host_array<std::vector<int>>);
static_assert(!gpu::host_array<std::vector<bool>>);

/// Lends memory of the host, and counts what is not given back. Can fail.
class counting_resource {
 public:
  void* allocate(cudaStream_t, std::size_t bytes, std::size_t alignment) {
    if (bytes > limit) throw std::bad_alloc();
    bytes_ += bytes;
    return ::operator new (bytes, std::align_val_t{alignment});
  }
  void deallocate(cudaStream_t, void* memory, std::size_t bytes, std::size_t alignment) noexcept {
    bytes_ -= bytes;
    ::operator delete (memory, std::align_val_t{alignment});
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  std::size_t limit = 1'000'000;

 private:
  std::size_t bytes_ = 0;
};

}  // namespace

TEST_CASE("arrays and streams of other libraries are taken as they are") {
  foreign_vector<int> owner{{1, 2, 3}};
  gpu::device_span<int> const elements = owner;
  CHECK(elements.data() == owner.values.data());
  CHECK(elements.size() == 3);
  auto* const stream = reinterpret_cast<cudaStream_t>(owner.values.data());
  CHECK(gpu::on(foreign_stream{stream}).stream() == stream);
  CHECK(gpu::on(stream).stream() == stream);
}

TEST_CASE("an error of CUDA has its code, text and place") {
  try {
    gpu::check(cudaErrorMemoryAllocation);
    FAIL("nothing was thrown");
  } catch (gpu::error const& error) {
    CHECK(error.code() == cudaErrorMemoryAllocation);
    CHECK(std::string(error.file()) == __FILE__);
    CHECK(error.line() == __LINE__ - 5);
    std::string const text = error.what();
    CHECK(text.find("cudaErrorMemoryAllocation: out of memory") != std::string::npos);
    CHECK(text.find("foundation_test.cpp:" + std::to_string(error.line())) != std::string::npos);
  }
  CHECK_NOTHROW(gpu::check(cudaSuccess));
  CHECK(error_text<gpu::error>([] { gpu::check(cudaErrorNoDevice); }).find("shows no device") !=
        std::string::npos);
}

TEST_CASE("given scratch is handed out from front to back and taken again") {
  alignas(256) std::byte memory[1024];
  gpu::given_scratch scratch({memory, sizeof(memory)});
  auto const exec = gpu::on(nullptr, scratch);
  CHECK(&exec.resource() == &scratch);

  void* const first = scratch.allocate(nullptr, 100, 256);
  void* const second = scratch.allocate(nullptr, 256, 256);
  CHECK(first == memory);
  CHECK(second == memory + 256);
  CHECK(scratch.used() == 512);
  CHECK(error_text<std::length_error>([&] {
          static_cast<void>(scratch.allocate(nullptr, 513, 256));
        }) == "omnibal::gpu::given_scratch: 1025 bytes are needed, 1024 are given");
  CHECK(scratch.used() == 512);
  scratch.deallocate(nullptr, second, 256, 256);
  CHECK(scratch.used() == 256);
  CHECK(scratch.allocate(nullptr, 768, 256) == second);
  CHECK(scratch.used() == 1024);

  gpu::given_scratch empty({});
  CHECK_THROWS_AS(empty.allocate(nullptr, 1, 256), std::length_error);
  gpu::given_scratch shifted({memory + 1, 255});
  CHECK_THROWS_AS(shifted.allocate(nullptr, 1, 256), std::length_error);
  gpu::given_scratch enough({memory + 1, 256});
  CHECK(enough.allocate(nullptr, 1, 256) == memory + 256);
}

TEST_CASE("an array gives its memory back, once, whoever owns it last") {
  counting_resource resource;
  auto const exec = gpu::on(nullptr, resource);
  {
    gpu::device_array<std::uint32_t, counting_resource> first(exec, 100);
    CHECK(resource.bytes() == 400);
    CHECK(first.span().size() == 100);
    CHECK(first.span().size_bytes() == 400);
    gpu::device_array<std::uint32_t, counting_resource> second(exec, 7);
    std::uint32_t* const data = first.data();
    second = std::move(first);
    CHECK(second.data() == data);
    gpu::device_array<std::uint32_t, counting_resource> const third(std::move(second));
    CHECK(third.data() == data);
    CHECK(third.span().subspan(10, 5).data() == data + 10);
    CHECK(resource.bytes() == 428);
    gpu::device_array<std::uint32_t, counting_resource> const none(exec, 0);
    CHECK(none.empty());
  }
  CHECK(resource.bytes() == 0);
  using words = gpu::device_array<std::uint64_t, counting_resource>;
  CHECK_THROWS_AS(words(exec, ~std::size_t{0} / 4), std::length_error);
}

TEST_CASE("groups on a device have room for one offset more, and give all back where they fail") {
  counting_resource resource;
  auto const exec = gpu::on(nullptr, resource);
  {
    gpu::device_grouping<counting_resource> const groups(exec, 10, 30);
    CHECK(resource.bytes() == 4 * (11 + 30 + 1));
    CHECK(groups.out().room() == 10);
    CHECK(groups.out().items.size() == 30);
    CHECK(groups.view().size() == 10);
  }
  CHECK(resource.bytes() == 0);
  resource.limit = 100;
  CHECK_THROWS_AS(gpu::device_grouping<counting_resource>(exec, 10, 30), std::bad_alloc);
  CHECK(resource.bytes() == 0);
  CHECK_THROWS_AS(gpu::device_grouping<counting_resource>(exec, std::size_t{1} << 32, 0),
                  std::length_error);
  CHECK(gpu::grouping_span{}.room() == 0);
}

TEST_CASE("faults are thrown as the host's errors") {
  CHECK_NOTHROW(gpu::check(fault::none, "isf"));
  CHECK(error_text<std::invalid_argument>([] { gpu::check(fault::invalid_amount, "isf"); }) ==
        "omnibal::gpu::isf: an amount is negative or not finite");
  CHECK(error_text<std::invalid_argument>([] {
          gpu::check(fault::unknown_index | fault::overflow, "group_loads");
        }) == "omnibal::gpu::group_loads: an index names no element");
  CHECK(error_text<std::overflow_error>([] { gpu::check(fault::overflow, "lpt"); }) ==
        "omnibal::gpu::lpt: a sum exceeds the largest value of its type");
  CHECK_THROWS_AS(gpu::check(fault::no_room, "lpt"), std::length_error);
  CHECK_THROWS_AS(gpu::check(fault::uneven_counts, "lpt"), std::invalid_argument);
  CHECK(gpu::has(fault::overflow | fault::no_room, fault::no_room));
  CHECK(!gpu::has(fault::overflow | fault::no_room, fault::unknown_index));
}
