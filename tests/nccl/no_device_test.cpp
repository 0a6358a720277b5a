// SPDX-License-Identifier: Apache-2.0
// Real NCCL on a machine without a device: what can be done there works, and the rest is a clear
// error within seconds. Where there is a device the tests of errors say nothing.

#include "boot_bodies.hpp"
#include "catch.hpp"

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/cuda/nccl/connect.hpp>
#include <omnibal/cuda/nccl/library.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace {

namespace nccl = omnibal::nccl;
using std::chrono::milliseconds;
using test::contains;
using test::text_of;

bool has_device() {
  int count = 0;
  bool const found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return found;
}

TEST_CASE("the linked library is found by the names of its functions", "[nccl]") {
  nccl::library const& found = nccl::loaded_library();
  CHECK(found.functions == nccl::linked_functions());
  CHECK(found.version == nccl::detail::hello_of({}, "").nccl_version);
  CHECK(contains(nccl::library_file(), "nccl"));
  CHECK(nccl::is_available());
  CHECK_NOTHROW(nccl::use_library(nccl::linked_functions()));
}

TEST_CASE("real ids are shared without a device", "[nccl]") {
  test::folder const folder;
  nccl::file_meeting const meeting{folder.file("id"), "run", milliseconds(20'000)};
  ncclUniqueId first{};
  ncclUniqueId second{};
  std::jthread other([&] { second = nccl::share_id_by_file({.rank = 1, .size = 2}, meeting); });
  first = nccl::share_id_by_file({.rank = 0, .size = 2}, meeting);
  other.join();
  CHECK(std::memcmp(&first, &second, sizeof(first)) == 0);
  ncclUniqueId const another = nccl::share_id_by_comm(omnibal::self_communicator());
  CHECK(std::memcmp(&first, &another, sizeof(first)) != 0);
}

TEST_CASE("a communicator without a driver is a clear error", "[nccl]") {
  if (has_device()) return;
  auto const start = std::chrono::steady_clock::now();
  ncclUniqueId const id = nccl::share_id_by_comm(omnibal::self_communicator());
  auto const text = text_of<nccl::error>([&] { nccl::communicator({.rank = 0, .size = 1}, id); });
  CAPTURE(text);
  CHECK(text.rfind("NCCL: unhandled cuda error", 0) == 0);
  CHECK(contains(text, "driver"));
  CHECK(contains(text, "(code 1) ["));
  CHECK(contains(text, "communicator.hpp:"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("a launcher's variables without a device are a clear error", "[nccl]") {
  if (has_device()) return;
  test::variables const alone({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}});
  auto const text =
      text_of<omnibal::gpu::error>([&] { static_cast<void>(nccl::connect_by_environment()); });
  CAPTURE(text);
  CHECK(contains(text, "driver"));
}

TEST_CASE("wrong arguments are refused before nccl is asked", "[nccl]") {
  ncclUniqueId const id{};
  CHECK_THROWS_AS(nccl::communicator({.rank = 2, .size = 2}, id), std::invalid_argument);
  CHECK_THROWS_AS(nccl::communicator({.rank = 0, .size = 0}, id), std::invalid_argument);
  nccl::communicator_options options;
  options.timeout = milliseconds(-1);
  CHECK_THROWS_AS(nccl::communicator({.rank = 0, .size = 1}, id, options), std::invalid_argument);
  CHECK_THROWS_AS(nccl::communicator_ref(nullptr), std::invalid_argument);
}

}  // namespace
