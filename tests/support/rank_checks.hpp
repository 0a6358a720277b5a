// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks in the bodies of ranks, which are threads or processes: a failure is an exception.

#include <stdexcept>
#include <string>
#include <typeinfo>

namespace test {

inline void require(bool holds, std::string const& what) {
  if (!holds) throw std::logic_error("wrong: " + what);
}

/// What a rank has seen of an error.
enum class seen { nothing, own, remote, other };

/// Calls `call`: `own` where it throws an `Own`, `remote` where it throws a `Remote`.
template <class Own, class Remote, class Call>
seen error_of(Call const& call) {
  try {
    call();
  } catch (std::exception const& error) {
    if (typeid(error) == typeid(Own)) return seen::own;
    return typeid(error) == typeid(Remote) ? seen::remote : seen::other;
  }
  return seen::nothing;
}

}  // namespace test
