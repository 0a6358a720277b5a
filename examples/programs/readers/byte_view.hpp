// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Integers in the bytes of a file, which may be cut off.

#include "file_text.hpp"
#include "input_error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace examples {

/// The bytes of a file, none of which is read behind its end.
class byte_view {
 public:
  /// `kind` is the file in messages, such as `an index of Megatron`.
  byte_view(file_text const& text, std::string_view kind)
      : name_(text.name()), kind_(kind), bytes_(text.view()) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  /// Errors: `input_error` where the file has fewer bytes than `count` from `begin` on.
  void need(std::size_t begin, std::size_t count) const {
    if (begin > bytes_.size() || count > bytes_.size() - begin) {
      refuse("that is truncated: it has " + std::to_string(bytes_.size()) + " bytes, fewer than " +
             std::to_string(begin) + " + " + std::to_string(count));
    }
  }

  /// The bytes from `begin` on. Errors: as `need`.
  [[nodiscard]] std::string_view part(std::size_t begin, std::size_t count) const {
    need(begin, count);
    return bytes_.substr(begin, count);
  }

  /// The integer whose lowest byte is at `begin`. Errors: as `need`.
  template <class Integer>
  [[nodiscard]] Integer integer(std::size_t begin) const {
    std::string_view const bytes = part(begin, sizeof(Integer));
    std::make_unsigned_t<Integer> value = 0;
    for (std::size_t i = sizeof(Integer); i-- != 0;) {
      if constexpr (sizeof(Integer) > 1) value = static_cast<decltype(value)>(value << 8);
      value = static_cast<decltype(value)>(value | static_cast<unsigned char>(bytes[i]));
    }
    return static_cast<Integer>(value);
  }

  /// Fails because of what the file is: `is an index of Megatron that ...`.
  [[noreturn]] void refuse(std::string const& problem) const {
    fail({name_}, "is " + kind_ + " " + problem);
  }

 private:
  std::string const& name_;
  std::string kind_;
  std::string_view bytes_;
};

}  // namespace examples
