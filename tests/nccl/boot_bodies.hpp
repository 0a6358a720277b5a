// SPDX-License-Identifier: Apache-2.0
#pragma once

// Helpers of the tests that start ranks.

#include "rank_checks.hpp"

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace test {

/// Calls `call` and gives the text of the exception that it throws, of exactly this type; empty
/// where it throws none, or the text of another with its type in front.
template <class Error, class Call>
std::string text_of(Call const& call) {
  try {
    call();
  } catch (std::exception const& error) {
    if (typeid(error) == typeid(Error)) return error.what();
    return std::string("another type: ") + error.what();
  }
  return "";
}

inline bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// A folder that goes with the object.
class folder {
 public:
  folder() {
    char name[] = "/tmp/omnibal_boot_XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error("no folder can be made");
    path_ = name;
  }
  folder(folder const&) = delete;
  folder& operator=(folder const&) = delete;
  ~folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string file(std::string const& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Variables that are set, or not, while the object lives.
class variables {
 public:
  using setting = std::pair<char const*, char const*>;

  explicit variables(std::initializer_list<setting> settings) {
    for (auto const& [name, value] : settings) {
      char const* const before = std::getenv(name);
      before_.emplace_back(name,
                           before == nullptr ? std::nullopt : std::optional<std::string>(before));
      if (value == nullptr) {
        ::unsetenv(name);
      } else {
        ::setenv(name, value, 1);
      }
    }
  }
  variables(variables const&) = delete;
  variables& operator=(variables const&) = delete;
  ~variables() {
    for (auto const& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace test
