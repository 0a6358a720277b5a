// SPDX-License-Identifier: Apache-2.0
// The bodies that every communicator must satisfy, over Gloo: torch_test RANKS [leave | hang],
// which starts as many processes.

#include "comm_bodies.hpp"
#include "context_bodies.hpp"
#include "exchange_bodies.hpp"
#include "rank_checks.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/c10d.hpp>
#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <unistd.h>

namespace {

using group_pointer = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using communicator = omnibal::c10d::communicator_ref<c10d::ProcessGroupGloo>;

static_assert(omnibal::exchanging_communicator<communicator>);
static_assert(omnibal::exchanging_communicator<communicator const>);
static_assert(
    omnibal::exchanging_communicator<omnibal::c10d::communicator_ref<c10d::ProcessGroup>>);
static_assert(omnibal::exchanging_communicator<omnibal::c10d::communicator_ref<c10d::Backend>>);

group_pointer connect(std::string const& meeting, int rank, int ranks,
                      std::chrono::seconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  auto store = c10::make_intrusive<c10d::FileStore>(meeting, ranks);
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options);
}

void report_errors(communicator& comm) {
  std::vector<std::byte> const in(2);
  std::vector<std::byte> out(2 * comm.size() + 1);
  std::vector<std::uint64_t> const counts(comm.size(), 1);
  auto const check = [](auto const& call) {
    test::require(
        test::error_of<std::invalid_argument, std::runtime_error>(call) == test::seen::own,
        "sizes that do not match");
  };
  check([&] { comm.all_gather(in, out); });
  check([&] { comm.all_to_all_v(out, counts, out, counts); });
  check([] { communicator const none{group_pointer()}; });
}

/// The base class of Gloo's groups, which is another one from PyTorch 2 on.
using group_base = std::conditional_t<std::is_base_of_v<c10d::ProcessGroup, c10d::ProcessGroupGloo>,
                                      c10d::ProcessGroup, c10d::Backend>;

/// The trainer holds a group by its base class.
void borrow_from_base(communicator& comm) {
  c10::intrusive_ptr<group_base> const group = comm.get();
  omnibal::c10d::communicator_ref same(group);
  test::gather_values(same);
  test::exchange_values(same);
}

/// Only what a group needs at the least.
struct min_group : c10::intrusive_ptr_target {
  group_pointer group;

  explicit min_group(group_pointer of) : group(std::move(of)) {}
  int getRank() const { return group->getRank(); }
  int getSize() const { return group->getSize(); }
  auto _allgather_base(at::Tensor& out, at::Tensor& in) {
    std::vector<std::vector<at::Tensor>> all = {at::chunk(out, getSize())};
    std::vector<at::Tensor> own = {in};
    return group->allgather(all, own);
  }
  auto alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& received,
                     std::vector<std::int64_t>& sent) {
    return group->alltoall_base(out, in, received, sent);
  }
};

/// What newer versions of PyTorch call an exchange, and no longer by the name before.
struct newer_group : min_group {
  using min_group::min_group;
  auto all_to_all_single(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& received,
                         std::vector<std::int64_t>& sent) {
    return min_group::alltoall_base(out, in, received, sent);
  }
  void alltoall_base() = delete;
};

template <class Group>
void borrow(communicator& comm) {
  omnibal::c10d::communicator_ref borrowed(c10::make_intrusive<Group>(comm.get()));
  test::gather_values(borrowed);
  test::exchange_values(borrowed);
}

void run_all(communicator& comm) {
  auto const run = [&](std::string const& name, auto const& body) {
    if (comm.rank() == 0) std::printf("%s\n", name.c_str());
    body(comm);
  };
  test::for_each_comm_body(run);
  test::for_each_exchange_body(run);
  test::for_each_context_body(run);
  run("exchange_payloads_of 16 MiB",
      [](communicator& all) { test::exchange_payloads_of(all, std::size_t{16} << 20); });
  run("report_errors", report_errors);
  run("borrow_from_base", borrow_from_base);
  run("borrow_least", borrow<min_group>);
  run("borrow_newer", borrow<newer_group>);
}

constexpr std::chrono::seconds short_timeout(5);

/// After one call of all ranks the last one leaves, or lives on without a call; the others get an
/// error instead of waiting for ever.
void miss_one_rank(communicator& comm, bool is_hanging) {
  if (comm.rank() + 1 == comm.size()) {
    static_cast<void>(omnibal::all_gather(comm, 1));
    if (is_hanging) std::this_thread::sleep_for(3 * short_timeout);
    return;
  }
  auto const begin = std::chrono::steady_clock::now();
  try {
    // The first of them fails too where the last rank has left before the others have all from it.
    static_cast<void>(omnibal::all_gather(comm, 1));
    static_cast<void>(omnibal::all_gather(comm, 1));
  } catch (std::exception const&) {
    auto const waited = std::chrono::steady_clock::now() - begin;
    test::require(waited < 3 * short_timeout, "an error by the timeout of the group");
    test::require(!is_hanging || waited > short_timeout / 2, "no error before the timeout");
    return;
  }
  throw std::logic_error("a rank that is missing was not noticed");
}

int run_rank(std::string const& meeting, int rank, int ranks, std::string const& missing) {
  test::watchdog const limit(std::chrono::seconds(240));
  try {
    auto const timeout = missing.empty() ? std::chrono::seconds(120) : short_timeout;
    communicator comm(connect(meeting, rank, ranks, timeout));
    missing.empty() ? run_all(comm) : miss_one_rank(comm, missing == "hang");
  } catch (std::exception const& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // As Python does: a write to a rank that has left is an error of Gloo, and not the end.
  std::signal(SIGPIPE, SIG_IGN);
  int const ranks = argc > 1 ? std::atoi(argv[1]) : 1;
  std::filesystem::path const folder = std::filesystem::temp_directory_path();
  std::string const meeting = folder / ("omnibal_torch_" + std::to_string(::getpid()));
  std::vector<pid_t> children;
  for (int rank = 0; rank != ranks; ++rank) {
    pid_t const child = ::fork();
    if (child == 0) std::exit(run_rank(meeting, rank, ranks, argc > 2 ? argv[2] : ""));
    children.push_back(child);
  }
  int failed = 0;
  for (pid_t const child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  std::filesystem::remove(meeting);
  std::printf("%d of %d ranks failed\n", failed, ranks);
  return failed == 0 ? 0 : 1;
}
