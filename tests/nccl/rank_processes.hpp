// SPDX-License-Identifier: Apache-2.0
#pragma once

// Starts this program again as several processes, each a rank of NCCL. They may share a device,
// which NCCL refuses where host and device agree: so each names a host of its own, and they talk
// over sockets. Not a way to run NCCL that its makers support.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace test {

inline constexpr int skipped_rank = 77;

/// True in the processes that `start_ranks` has started.
[[nodiscard]] inline bool is_rank() { return std::getenv("RANK") != nullptr; }

using environment = std::vector<std::pair<std::string, std::string>>;

/// A port that other programs hardly have.
[[nodiscard]] inline std::uint16_t some_port() {
  return static_cast<std::uint16_t>(20'000 + ::getpid() % 20'000);
}

/// Starts processes of this program, with RANK, WORLD_SIZE, LOCAL_RANK, NCCL_COMM_ID and `more` in
/// their environment, and waits for all: 0, 77 where they were skipped, else 1.
inline int start_ranks(int ranks, std::uint16_t port, environment const& more = {}) {
  std::vector<pid_t> children;
  for (int rank = 0; rank != ranks; ++rank) {
    environment all{{"RANK", std::to_string(rank)},
                    {"LOCAL_RANK", std::to_string(rank)},
                    {"WORLD_SIZE", std::to_string(ranks)},
                    {"NCCL_COMM_ID", "127.0.0.1:" + std::to_string(port)},
                    {"NCCL_HOSTID", "omnibal-rank-" + std::to_string(rank)},
                    {"NCCL_P2P_DISABLE", "1"},
                    {"NCCL_SHM_DISABLE", "1"},
                    {"NCCL_IB_DISABLE", "1"},
                    {"NCCL_NET", "Socket"},
                    {"NCCL_SOCKET_IFNAME", "lo"}};
    all.insert(all.end(), more.begin(), more.end());
    pid_t const child = ::fork();
    if (child == 0) {
      for (auto const& [name, value] : all) ::setenv(name.c_str(), value.c_str(), 1);
      ::execl("/proc/self/exe", "ranks", nullptr);
      _exit(1);
    }
    children.push_back(child);
  }
  int result = 0;
  for (pid_t const child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    int const code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code != 0 && result != 1) result = code == skipped_rank ? skipped_rank : 1;
  }
  return result;
}

}  // namespace test
