// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "watchdog.hpp"

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>

#include <cstddef>
#include <string>

#include <catch.hpp>

namespace test {

/// Runs every body of `for_each_body(run)`, which calls run(name, body), on one rank and on the
/// threads of 1 to 8. A body takes a communicator and throws where a promise is broken.
template <class ForEachBody>
void run_on_self_and_threads(ForEachBody const& for_each_body) {
  watchdog const limit;
  for_each_body([](std::string const& name, auto const& body) {
    INFO(name);
    omnibal::self_communicator self;
    CHECK_NOTHROW(body(self));
    for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
      INFO(ranks << " ranks");
      CHECK_NOTHROW(omnibal::thread_communicator::run(ranks, body));
    }
  });
}

}  // namespace test
