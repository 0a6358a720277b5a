// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ranks that meet.

#include "boot_bodies.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <nccl.h>

namespace stand_in {

inline bool equal(ncclUniqueId const& left, ncclUniqueId const& right) {
  return std::memcmp(&left, &right, sizeof(left)) == 0;
}

/// The ids that ranks got, or the texts of what they threw.
struct outcomes {
  std::vector<ncclUniqueId> ids;
  std::vector<std::string> texts;
};

/// Each rank calls `call(rank)`; exceptions of type `Error` are gathered.
template <class Error, class Call>
outcomes on_threads(std::size_t ranks, Call const& call) {
  test::watchdog const limit(std::chrono::seconds(60));
  outcomes result{std::vector<ncclUniqueId>(ranks), std::vector<std::string>(ranks)};
  stand_in::run_ranks(ranks, [&](std::size_t rank) {
    result.texts[rank] = test::text_of<Error>([&] { result.ids[rank] = call(rank); });
  });
  return result;
}

}  // namespace stand_in
