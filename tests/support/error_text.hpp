// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <typeinfo>

namespace test {

/// The text of the `Error` that `call` throws. Another exception passes through and fails the test.
template <class Error, class Call>
std::string error_text(Call const& call) {
  try {
    call();
  } catch (Error const& error) {
    if (typeid(error) != typeid(Error)) throw;
    return error.what();
  }
  return "no error";
}

}  // namespace test
