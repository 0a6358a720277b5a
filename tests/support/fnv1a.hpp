// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace test {

/// FNV-1a over the bytes of 64-bit words.
class fnv1a {
 public:
  void add(std::uint64_t word) {
    for (unsigned shift = 0; shift != 64; shift += 8) {
      hash_ = (hash_ ^ (word >> shift & 0xff)) * 0x100000001b3u;
    }
  }

  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace test
