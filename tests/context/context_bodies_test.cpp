#include "context_bodies.hpp"

#include "watchdog.hpp"

#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>

#include <cstddef>
#include <string>

#include <catch.hpp>

TEST_CASE("attention over pieces is that over whole samples, on one rank and on threads") {
  test::watchdog const limit;
  test::for_each_context_body([](std::string const& name, auto const& body) {
    INFO(name);
    omnibal::self_communicator self;
    CHECK_NOTHROW(body(self));
    for (std::size_t ranks = 1; ranks <= 8; ++ranks) {
      INFO(ranks << " ranks");
      CHECK_NOTHROW(omnibal::thread_communicator::run(ranks, body));
    }
  });
}
