// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What command lines accept, and options that all have. For the sources that parse one.

#include "help_layout.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
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

/// Accepts finite decimal numbers for which `is_good(value)`; `rule` says which these are.
template <class Rule>
CLI::Validator number_that_is(std::string const& rule, Rule const& is_good) {
  auto const check = [rule, is_good](std::string const& text) -> std::string {
    double value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool const whole = error == std::errc{} && end == text.data() + text.size();
    if (whole && is_good(value) && value <= std::numeric_limits<double>::max()) return {};
    return "is " + text + ", must be a number " + rule;
  };
  return CLI::Validator(check, "");
}

inline CLI::Option* add_seed_option(CLI::App& group, std::uint64_t& seed) {
  return group.add_option("--seed", seed, "Set the seed of all random choices")
      ->type_name("NUMBER")
      ->check(integer_between<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
}

/// A number of synthetic samples that takes the place of `files`.
inline CLI::Option* add_synthetic_option(CLI::App& group, std::size_t& samples, std::size_t least,
                                         std::size_t most, CLI::Option* files) {
  return group
      .add_option("--synthetic", samples, "Generate a synthetic data set of this number of samples")
      ->type_name("COUNT")
      ->check(integer_between(least, most))
      ->capture_default_str()
      ->excludes(files);
}

/// Parses a command line. False where it asks for the help or the version, which is printed then.
/// Throws `Error` with the text of what is wrong.
template <class Error = std::runtime_error>
bool parse_words(CLI::App& app, int count, char const* const* words) {
  app.formatter(std::make_shared<help_layout>());
  app.set_help_flag("-h,--help", "Print this help and exit");
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
