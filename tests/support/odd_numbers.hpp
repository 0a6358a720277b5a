// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that fuzz bodies read, and what calls may throw for them.

#include "byte_reader.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

/// What numbers an input has, and so how a call may end.
enum class oddity {
  /// Small ones that are not negative: nothing is thrown.
  none,
  /// Also large ones: a sum may leave its type.
  large,
  /// Also negative ones, infinite ones and NaN: whatever is documented may be thrown.
  wrong,
};

inline oddity read_oddity(byte_reader& bytes) {
  std::uint8_t const kind = bytes.next();
  if (kind % 4 == 3) return oddity::wrong;
  return kind % 4 == 2 ? oddity::large : oddity::none;
}

/// A number of that kind; the small ones are at most 2^16 + 255, or, where they float, thirds.
template <class T>
T read_number(byte_reader& bytes, oddity kind) {
  std::uint8_t const form = bytes.next();
  auto const low = static_cast<std::int64_t>(bytes.next());
  using limits = std::numeric_limits<T>;
  if (kind == oddity::wrong && form >= 248) {
    if constexpr (std::floating_point<T>) {
      T const odd[] = {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T{-1}};
      return odd[form % 4];
    } else {
      return form % 2 == 0 ? limits::min() : static_cast<T>(-1 - low);
    }
  }
  if (kind != oddity::none && form >= 224) {
    if constexpr (std::floating_point<T>) {
      return form % 2 == 0 ? limits::max() : limits::denorm_min();
    } else {
      return form % 2 == 0 ? limits::max() - static_cast<T>(low)
                           : static_cast<T>((std::int64_t{1} << form % 62) + low);
    }
  }
  std::int64_t const value = form < 64 ? low : (std::int64_t{1} << form % 17) + low;
  if constexpr (std::floating_point<T>) {
    return form % 2 == 0 ? static_cast<T>(value) : static_cast<T>(value) / T{3};
  } else {
    return static_cast<T>(value);
  }
}

/// Numbers until the bytes end, or so many.
template <class T>
std::vector<T> read_numbers(byte_reader& bytes, oddity kind, std::size_t most) {
  std::vector<T> result;
  while (!bytes.empty() && result.size() < most) result.push_back(read_number<T>(bytes, kind));
  return result;
}

inline void check_text(std::string const& name, std::exception const& error) {
  std::string const text = error.what();
  require(text.rfind("omnibal::", 0) == 0 && text.find('\n') == std::string::npos,
          name + " says where it was called wrongly: " + text);
}

/// True where a call returns. Whatever else it does must be documented of such an input.
template <class Call>
bool returns(std::string const& name, oddity kind, Call const& call) {
  try {
    call();
    return true;
  } catch (std::overflow_error const& error) {
    check_text(name, error);
    require(kind != oddity::none, name + " adds up small numbers: " + error.what());
  } catch (std::invalid_argument const& error) {
    check_text(name, error);
    require(kind == oddity::wrong, name + " takes what is right: " + error.what());
  } catch (std::length_error const& error) {
    check_text(name, error);
    require(kind == oddity::wrong, name + " takes so many: " + error.what());
  }
  return false;
}

}  // namespace test
