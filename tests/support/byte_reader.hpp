// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a fuzz body reads its bytes, and how it says what is wrong.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace test {

inline void require(bool holds, std::string const& what) {
  if (holds) return;
  std::fprintf(stderr, "violated: %s\n", what.c_str());
  std::abort();
}

/// Bytes one after the other, zeros after the last.
class byte_reader {
 public:
  explicit byte_reader(std::span<std::uint8_t const> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  std::uint8_t next() {
    if (empty()) return 0;
    std::uint8_t const byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

 private:
  std::span<std::uint8_t const> bytes_;
};

}  // namespace test
