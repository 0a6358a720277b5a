// SPDX-License-Identifier: Apache-2.0
#include "context_bodies.hpp"

#include "run_bodies.hpp"

#include <catch.hpp>

TEST_CASE("attention over pieces is that over whole samples, on one rank and on threads") {
  test::run_on_self_and_threads([](auto const& run) { test::for_each_context_body(run); });
}
