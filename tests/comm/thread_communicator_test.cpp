// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "watchdog.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::communication_error;
using omnibal::thread_communicator;

}  // namespace

TEST_CASE("run calls the body once for each rank, rank 0 on the calling thread") {
  test::watchdog const limit;
  std::mutex mutex;
  std::set<std::size_t> ranks;
  std::set<std::thread::id> threads;
  std::thread::id of_rank_0;
  thread_communicator::run(6, [&](thread_communicator& comm) {
    std::lock_guard const lock(mutex);
    CHECK(comm.size() == 6);
    ranks.insert(comm.rank());
    threads.insert(std::this_thread::get_id());
    if (comm.rank() == 0) of_rank_0 = std::this_thread::get_id();
  });
  CHECK(ranks == std::set<std::size_t>{0, 1, 2, 3, 4, 5});
  CHECK(threads.size() == 6);
  CHECK(of_rank_0 == std::this_thread::get_id());
  CHECK(test::error_text<std::invalid_argument>([] {
          thread_communicator::run(0, [](auto&) {});
        }) == "omnibal::thread_communicator::run: ranks is 0, must be positive");
}

TEST_CASE("a rank that throws is an error on the ranks that wait for it, not a hang") {
  test::watchdog const limit;
  for (std::size_t thrower = 0; thrower != 4; ++thrower) {
    std::atomic<int> remote = 0;
    auto const text = test::error_text<std::domain_error>([&] {
      thread_communicator::run(4, [&](thread_communicator& comm) {
        static_cast<void>(omnibal::all_gather(comm, 1));
        if (comm.rank() == thrower) throw std::domain_error("of rank " + std::to_string(thrower));
        try {
          static_cast<void>(omnibal::all_gather(comm, 2));
        } catch (communication_error const& error) {
          ++remote;
          if (std::string(error.what()) != "omnibal::thread_communicator: rank " +
                                               std::to_string(thrower) + " has thrown: of rank " +
                                               std::to_string(thrower)) {
            throw std::logic_error(error.what());
          }
          throw;
        }
      });
    });
    // The exception of the culprit, not those that it caused.
    CHECK(text == "of rank " + std::to_string(thrower));
    CHECK(remote == 3);
  }
}

TEST_CASE("of several own exceptions that of the lowest rank is rethrown") {
  test::watchdog const limit;
  CHECK(test::error_text<std::range_error>([] {
          thread_communicator::run(5, [](thread_communicator& comm) {
            if (comm.rank() >= 2) throw std::range_error(std::to_string(comm.rank()));
          });
        }) == "2");
}

TEST_CASE("a rank that leaves is an error on the ranks that wait for it") {
  test::watchdog const limit;
  CHECK(test::error_text<communication_error>([] {
          thread_communicator::run(3, [](thread_communicator& comm) {
            if (comm.rank() == 1) return;
            static_cast<void>(omnibal::all_gather(comm, 1));
          });
        }) == "omnibal::thread_communicator: rank 1 has left");
}

TEST_CASE("a rank that hangs is an error on all ranks at the timeout, which names it") {
  test::watchdog const limit;
  using options = omnibal::thread_communicator_options;
  std::string const text =
      "omnibal::thread_communicator: rank 2 has not come to all_gather within 1000 ms";
  for (std::size_t const ranks : {3u, 5u}) {
    std::atomic<std::size_t> told = 0;
    thread_communicator::run(
        ranks,
        [&](thread_communicator& comm) {
          for (int call = 0; call != 3; ++call) {
            // Not before the others have given up.
            while (call == 2 && comm.rank() == 2 && told + 1 != ranks) std::this_thread::yield();
            try {
              static_cast<void>(omnibal::all_gather(comm, call));
            } catch (communication_error const& error) {
              ++told;
              if (error.what() != text) throw std::logic_error(error.what());
            }
          }
        },
        options{.timeout = std::chrono::milliseconds(1000)});
    CHECK(told == ranks);
  }
  thread_communicator::run(
      2, [](thread_communicator& comm) { static_cast<void>(omnibal::all_gather(comm, 1)); },
      options{.timeout = std::chrono::milliseconds::max()});
  CHECK(test::error_text<std::invalid_argument>([] {
          thread_communicator::run(
              2, [](auto&) {}, options{.timeout = {}});
        }) == "omnibal::thread_communicator::run: options.timeout is 0, must be positive");
}

TEST_CASE("different collectives and sizes that do not match are an error on all ranks") {
  test::watchdog const limit;
  auto const all_fail = [](std::size_t ranks, auto const& call) {
    std::atomic<std::size_t> failed = 0;
    thread_communicator::run(ranks, [&](thread_communicator& comm) {
      try {
        call(comm);
      } catch (std::invalid_argument const&) {
        ++failed;
      }
      try {
        static_cast<void>(omnibal::all_gather(comm, 1));
      } catch (std::invalid_argument const&) {
        ++failed;
      }
    });
    return failed == 2 * ranks;
  };
  for (std::size_t const ranks : {2u, 5u}) {
    // Blocks of different sizes.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      static_cast<void>(omnibal::all_gather(comm, std::vector<char>(comm.rank())));
    }));
    // One rank wants another number of bytes.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::byte> const in(8);
      std::vector<std::byte> out(8 * comm.size() + (comm.rank() == 1 ? 1 : 0));
      comm.all_gather(in, out);
    }));
    // A count that is not that of the other side, in place of the same sum.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::uint64_t> const sent(comm.size(), 1);
      std::vector<std::uint64_t> received(comm.size(), 1);
      if (comm.rank() == 0) {
        received[0] = 0;
        received[1] = 2;
      }
      std::vector<std::byte> const in(comm.size());
      std::vector<std::byte> out(comm.size());
      comm.all_to_all_v(in, sent, out, received);
    }));
    // Counts that do not add up on one rank.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::uint64_t> const counts(comm.size(), 1);
      std::vector<std::byte> const in(comm.size() + (comm.rank() == 1 ? 1 : 0));
      std::vector<std::byte> out(comm.size());
      comm.all_to_all_v(in, counts, out, counts);
    }));
    // Pieces with other bytes than are wanted, and more counts of pieces than there are.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::byte> const in(2);
      std::vector<omnibal::sent_piece> sent(comm.size(), std::span(in).first(1));
      if (comm.rank() == 0) sent.back() = in;
      std::vector<std::byte> out(comm.size());
      std::vector<omnibal::received_piece> received;
      for (std::byte& place : out) received.emplace_back(&place, 1);
      std::vector<std::uint64_t> const counts(comm.size(), 1);
      comm.all_to_all_pieces(sent, counts, received, counts);
    }));
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::uint64_t> counts(comm.size(), 0);
      if (comm.rank() == 1) counts[0] = 1;
      comm.all_to_all_pieces({}, counts, {}, counts);
    }));
    // Different collectives.
    CHECK(all_fail(ranks, [](thread_communicator& comm) {
      std::vector<std::byte> in(comm.size());
      std::vector<std::byte> out(comm.size());
      std::vector<std::uint64_t> const counts(comm.size(), 1);
      if (comm.rank() == 0) {
        comm.all_to_all_v(in, counts, out, counts);
      } else {
        comm.all_gather(std::span<std::byte const>(in).first(1), out);
      }
    }));
  }
}

TEST_CASE("ranks that are caught go on together, and leave one after the other") {
  test::watchdog const limit;
  for (int round = 0; round != 200; ++round) {
    std::atomic<int> sum = 0;
    thread_communicator::run(7, [&](thread_communicator& comm) {
      for (int call = 0; call != 5; ++call) {
        if (omnibal::all_equal(comm, call)) ++sum;
      }
    });
    CHECK(sum == 35);
  }
}
