// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <catch.hpp>

/// Checks that a message has each of the parts.
inline void check_contains(std::string const& message,
                           std::initializer_list<std::string_view> parts) {
  for (std::string_view const part : parts) {
    INFO("'" << message << "' lacks '" << part << "'");
    CHECK(message.find(part) != std::string::npos);
  }
}
