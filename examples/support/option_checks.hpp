#pragma once

/// \file
/// What command lines accept. For the sources that parse one.

#include <charconv>
#include <stdexcept>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

namespace examples {

/// Accepts decimal integers in a range, and no other spelling that a conversion would bend into
/// one.
template <class Integer>
CLI::Validator integer_between(Integer least, Integer most) {
  auto const check = [least, most](std::string const& text) -> std::string {
    Integer value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool const whole = error == std::errc{} && end == text.data() + text.size();
    bool const octal = text.size() > 1 && text.front() == '0';
    if (whole && !octal && value >= least && value <= most) return {};
    return "is " + text + ", must be an integer from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
  return CLI::Validator(check, "");
}

/// Parses a command line. False where it asks for the help or the version, which is printed then.
/// Throws `Error` with the text of what is wrong.
template <class Error = std::runtime_error>
bool parse_words(CLI::App& app, int count, char const* const* words) {
  try {
    app.parse(count, words);
    return true;
  } catch (CLI::Success const& asked) {
    app.exit(asked);
    return false;
  } catch (CLI::ParseError const& error) {
    throw Error(error.what());
  }
}

}  // namespace examples
