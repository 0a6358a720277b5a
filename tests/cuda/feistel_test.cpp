// SPDX-License-Identifier: Apache-2.0
#include "support/serial_backend.hpp"

#include <omnibal/cuda/feistel/feistel_kernels.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

using test::serial_backend;
using test::visit_order;

constexpr visit_order orders[] = {visit_order::forward, visit_order::backward,
                                  visit_order::shuffled};

}  // namespace

TEST_CASE("the order is written as the host's shuffler has it") {
  for (visit_order const order : orders) {
    for (std::size_t const n :
         {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
      omnibal::rng::feistel const shuffle{9};
      serial_backend backend(order, n);
      std::vector<std::uint32_t> out(n);
      omnibal::gpu::detail::write_feistel_order(backend, shuffle, 3, out.data(), n);
      std::vector<std::uint32_t> expected(n);
      std::iota(expected.begin(), expected.end(), 0u);
      shuffle(std::span(expected), 3);
      CHECK(out == expected);
      CHECK(backend.scratch_bytes() == 0);
    }
  }
}

TEST_CASE("elements of any type are shuffled as on the host") {
  for (visit_order const order : orders) {
    omnibal::rng::feistel const shuffle{123};
    std::vector<double> values(777);
    std::iota(values.begin(), values.end(), 0.5);
    std::vector<double> out(values.size());
    serial_backend backend(order);
    omnibal::gpu::detail::feistel_shuffle(backend, shuffle, 0, values.data(), out.data(),
                                          values.size());
    shuffle(std::span(values), 0);
    CHECK(out == values);
  }
}
