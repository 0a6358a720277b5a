// SPDX-License-Identifier: Apache-2.0
#include "small_options.hpp"

#include "length_options.hpp"
#include "option_checks.hpp"
#include "progress.hpp"
#include "synthetic.hpp"

#include <stdexcept>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

constexpr std::size_t max_samples = 100'000'000;

}  // namespace

std::optional<std::size_t> parse_number(program_words const& program, sample_numbers const& samples,
                                        int count, char const* const* words) {
  std::size_t result = samples.usual;
  CLI::App app(program.description, program.name);
  app.footer(example_and_status(program.example, program.exit_status));
  app.add_option("samples", result, samples.description)
      ->type_name("COUNT")
      ->check(integer_between(samples.least, max_samples))
      ->capture_default_str();
  try {
    if (!parse_words(app, count, words)) return std::nullopt;
  } catch (std::runtime_error const& error) {
    throw std::runtime_error(error.what() + ("\nusage: " + program.name + " [samples]"));
  }
  return result;
}

std::optional<dataset> parse_samples(program_words const& program, sample_numbers const& samples,
                                     std::uint64_t seed, int count, char const* const* words) {
  std::size_t drawn = samples.usual;
  length_options lengths;
  CLI::App app(program.description, program.name);
  app.footer(example_and_status(program.example, program.exit_status));
  auto* const group = app.add_option_group("Data");
  auto* const files = add_length_options(*group, lengths, image_options::offered);
  add_synthetic_option(*group, drawn, samples.least, max_samples, files);
  if (!parse_words(app, count, words)) return std::nullopt;
  if (lengths.files.empty()) return synthetic_lengths(drawn, seed);
  progress hidden(visibility::hidden);
  return read_lengths(lengths, hidden);
}

}  // namespace examples
