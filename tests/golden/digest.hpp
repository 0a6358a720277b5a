// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How the golden programs print what they compute.

#include "../support/fnv1a.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace golden {

inline void print(std::string const& name, std::uint64_t digest) {
  std::printf("%016" PRIx64 "  %s\n", digest, name.c_str());
}

template <class Values>
[[nodiscard]] std::uint64_t digest_of(Values const& values) {
  test::fnv1a hash;
  for (auto const value : values) hash.add(static_cast<std::uint64_t>(value));
  return hash.value();
}

}  // namespace golden
