// SPDX-License-Identifier: Apache-2.0
#include "measure_command.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <sys/wait.h>

namespace examples {

namespace {

[[noreturn]] void fail_line(std::string const& line, std::string const& what) {
  throw std::runtime_error("--measure: " + line + ": " + what);
}

/// What a command prints. Errors: as `measure_by_command`.
std::string output_of(std::string const& line) {
  std::fflush(nullptr);
  std::FILE* const pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) fail_line(line, "cannot be run");
  std::string output;
  std::array<char, 256> buffer{};
  for (std::size_t count = 1; count != 0;) {
    count = std::fread(buffer.data(), 1, buffer.size(), pipe);
    output.append(buffer.data(), count);
  }
  int const status = pclose(pipe);
  if (WIFSIGNALED(status)) fail_line(line, "ended by signal " + std::to_string(WTERMSIG(status)));
  if (status != 0) fail_line(line, "ended with status " + std::to_string(WEXITSTATUS(status)));
  return output;
}

}  // namespace

double measure_by_command(std::string const& command, std::span<std::uint32_t const> boundaries) {
  std::string line = command;
  for (std::uint32_t const layer : boundaries.subspan(1, boundaries.size() - 2)) {
    line += ' ' + std::to_string(layer);
  }
  std::string const output = output_of(line);
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t const first = output.find_first_not_of(blanks);
  if (first == std::string::npos) fail_line(line, "prints nothing, must print seconds");
  std::size_t const last = output.find_last_not_of(blanks) + 1;
  double seconds = 0;
  auto const [end, error] = std::from_chars(output.data() + first, output.data() + last, seconds);
  if (error != std::errc{} || end != output.data() + last || !(seconds > 0)) {
    fail_line(line, "prints \"" + output.substr(first, std::min<std::size_t>(last - first, 60)) +
                   "\", must print seconds or inf");
  }
  return seconds;
}

}  // namespace examples
