// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Communicators of threads for use outside of `thread_communicator::run`.

#include <omnibal/comm/thread_communicator.hpp>

#include <cstddef>
#include <future>
#include <latch>
#include <vector>

namespace test {

using omnibal::thread_communicator;

/// Ranks over threads that last as long as this object, for callers on other threads. Each handle
/// is taken once.
class kept_ranks {
 public:
  explicit kept_ranks(std::size_t ranks)
      : comms_(ranks), done_(1), running_(std::async(std::launch::async, [this, ranks] {
          thread_communicator::run(ranks, [this](thread_communicator& comm) {
            comms_[comm.rank()].set_value(comm);
            done_.wait();
          });
        })) {}
  ~kept_ranks() { done_.count_down(); }

  thread_communicator of(std::size_t rank) { return comms_[rank].get_future().get(); }

 private:
  std::vector<std::promise<thread_communicator>> comms_;
  std::latch done_;
  std::future<void> running_;
};

}  // namespace test
