// SPDX-License-Identifier: Apache-2.0
#pragma once

// The list of all packers: a packer that stands here is tried by the tests of properties, bad
// input and memory, by the fuzzer and by the golden values.

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>

namespace test {

/// Calls `body(name, packer)` for every packer, which is called as `packer(samples, demand,
/// capacity)`.
template <class Body>
constexpr void for_each_packer(Body const& body) {
  body("next_fit", omnibal::next_fit);
  body("isf", omnibal::isf);
  body("best_fit_decreasing", omnibal::best_fit_decreasing);
  body("best_packing", omnibal::best_packing);
}

}  // namespace test
