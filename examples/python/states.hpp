// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// States for checkpoints as bytes of Python.

#include "convert.hpp"

#include <omnibal/sample/epoch.hpp>

#include <cstddef>
#include <cstring>
#include <string>

namespace states {

/// The bytes of something trivially copyable, and back.
template <class T>
void append(std::string& bytes, T const& value) {
  bytes.append(reinterpret_cast<char const*>(&value), sizeof(T));
}

template <class T>
T take(std::string const& function, std::string const& bytes, std::size_t& place) {
  T value;
  if (bytes.size() - place < sizeof(T)) convert::reject(function, "the state is cut short");
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  place += sizeof(T);
  return value;
}

[[nodiscard]] inline omnibal::sampler_state sampler_state_of(std::string const& function,
                                                             std::string const& bytes) {
  if (bytes.size() != sizeof(omnibal::sampler_state)) {
    convert::reject(function, "the state has " + std::to_string(bytes.size()) +
                                  " bytes, must have " +
                                  std::to_string(sizeof(omnibal::sampler_state)));
  }
  std::size_t start = 0;
  return take<omnibal::sampler_state>(function, bytes, start);
}

/// The bytes of a state as a dict of a text, which JSON can hold, and back.
[[nodiscard]] inline convert::py::dict to_dict(convert::py::bytes const& state) {
  convert::py::dict result;
  result["state"] = state.attr("hex")();
  return result;
}

[[nodiscard]] inline std::string bytes_of(convert::py::object const& given) {
  auto const type = convert::py::type::of(convert::py::bytes());
  return type.attr("fromhex")(given["state"]).cast<std::string>();
}

}  // namespace states
