// SPDX-License-Identifier: Apache-2.0
#pragma once

// One number for a whole packing, to pin it.

#include "fnv1a.hpp"

#include <omnibal/pack/packing.hpp>

#include <cstdint>

namespace test {

inline std::uint64_t digest(omnibal::packing const& packing) {
  fnv1a hash;
  auto const add_all = [&hash](auto const& values) {
    hash.add(values.size());
    for (std::uint32_t const value : values) hash.add(value);
  };
  add_all(packing.groups.offsets());
  add_all(packing.groups.items());
  add_all(packing.oversized);
  hash.add(packing.report.lower_bound);
  hash.add(packing.report.rounds);
  hash.add(packing.report.item_rounds);
  hash.add(packing.report.below_keep);
  return hash.value();
}

}  // namespace test
