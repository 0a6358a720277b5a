// SPDX-License-Identifier: Apache-2.0
// Real NCCL on real devices: the bodies of the tests over processes, one for each rank, which may
// share a device.
//
// usage: ranks [number of ranks ...]     starts that many processes, by default 1, then 2, then 4
// With RANK, WORLD_SIZE, LOCAL_RANK and NCCL_COMM_ID set it is one of the ranks itself,
// and OMNIBAL_DYING_RANK names one that ends without a word. OMNIBAL_SMALL asks for few rounds.
// Returns 77 where there is no device.

// Bodies of the host measure unsigned lengths too.
#pragma nv_diag_suppress 186

#include "comm_bodies.hpp"
#include "device_bodies.hpp"
#include "exchange_bodies.hpp"
#include "rank_checks.hpp"
#include "rank_processes.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/cuda/nccl/connect.hpp>
#include <omnibal/cuda/nccl/find_nodes.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <unistd.h>

namespace {

namespace nccl = omnibal::nccl;

bool is_small() { return std::getenv("OMNIBAL_SMALL") != nullptr; }

/// All bodies, on one communicator.
void run_bodies(nccl::communicator& comm) {
  auto const start = std::chrono::steady_clock::now();
  auto const run = [&](std::string const& name, auto const& body) {
    body(comm);
    std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
    if (comm.rank() == 0) std::printf("%6.1f s  %s\n", seconds.count(), name.c_str());
    std::fflush(stdout);
  };
  std::uint64_t const rounds = is_small() ? 20 : 1000;
  test::for_each_comm_body(run);
  run("exchange_many_rounds", [](auto& c) { test::exchange_many_rounds(c, 8); });
  run("agree_on_errors", [](auto& c) { test::agree_on_errors(c); });
  run("gather_on_stream", [&](auto& c) { test::gather_on_stream(c, rounds); });
  run("agree_on_faults", [](auto& c) { test::agree_on_faults(c); });
  run("exchange_on_stream", [&](auto& c) { test::exchange_on_stream(c, rounds); });
  run("report_overflow", [](auto& c) { test::report_overflow(c); });
  run("post_balance_on_stream", [&](auto& c) { test::post_balance_on_stream(c, rounds / 4); });
  run("capture_post_balance", [](auto& c) { test::capture_post_balance(c); });
  run("split", [&](auto& c) {
    nccl::communicator part = c.split(static_cast<int>(c.rank() % 2));
    test::gather_values(part);
  });
  run("find_nodes", [](auto& c) {
    test::require(nccl::find_nodes(c).node_count() == c.size(), "every rank names a host");
  });
}

/// One rank ends without a word; the others must see an error soon.
void outlive(nccl::communicator& comm, std::size_t dying) {
  test::require(omnibal::all_equal(comm, 1), "all are there");
  if (comm.rank() == dying) _exit(0);
  auto const start = std::chrono::steady_clock::now();
  std::string text;
  try {
    static_cast<void>(omnibal::all_equal(comm, 2));
  } catch (nccl::error const& error) {
    text = error.what();
  } catch (nccl::timeout const& error) {
    text = error.what();
  }
  std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - start;
  test::require(!text.empty(), "an error because of a dead rank");
  test::require(seconds.count() < 30, "in time");
  test::require(comm.is_aborted(), "aborted");
  std::printf("rank 0 noticed after %.1f s: %s\n", seconds.count(), text.c_str());
}

int run_as_rank() {
  test::watchdog const limit(std::chrono::seconds(240));
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return test::skipped_rank;
  char const* const dying = std::getenv("OMNIBAL_DYING_RANK");
  try {
    nccl::communicator_options options;
    options.timeout = std::chrono::seconds(dying == nullptr ? 60 : 10);
    nccl::communicator comm = nccl::connect_by_environment(options);
    if (dying == nullptr) {
      run_bodies(comm);
    } else {
      outlive(comm, static_cast<std::size_t>(std::atoi(dying)));
    }
  } catch (std::exception const& error) {
    std::fprintf(stderr, "rank %s: %s\n", std::getenv("RANK"), error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (test::is_rank()) return run_as_rank();
  std::vector<int> numbers;
  for (int i = 1; i < count; ++i) numbers.push_back(std::atoi(words[i]));
  if (numbers.empty()) numbers = {1, 2, 4};
  if (*std::min_element(numbers.begin(), numbers.end()) < 1) {
    std::fprintf(stderr, "usage: %s [number of ranks ...]\n", words[0]);
    return 2;
  }
  std::uint16_t port = test::some_port();
  for (int const ranks : numbers) {
    for (int const dying : {-1, ranks - 1}) {
      if (dying == 0) continue;
      port = static_cast<std::uint16_t>(port + 3);
      std::printf("%d ranks%s\n", ranks, dying < 0 ? "" : ", of which the last one dies");
      std::fflush(stdout);
      test::environment more;
      if (dying >= 0) more.emplace_back("OMNIBAL_DYING_RANK", std::to_string(dying));
      int const code = test::start_ranks(ranks, port, more);
      if (code == test::skipped_rank) {
        std::puts("skipped: there is no CUDA device");
        return test::skipped_rank;
      }
      if (code != 0) {
        std::printf("FAILED on %d ranks\n", ranks);
        return 1;
      }
    }
  }
  std::puts("passed");
  return 0;
}
