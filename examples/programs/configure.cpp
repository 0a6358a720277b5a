// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches the configuration of a training step for a model, lengths and a machine:
/// `configure --help`.

#include "options/configure_options.hpp"
#include "plans/configuration_search.hpp"
#include "reports/configuration_report.hpp"
#include "reports/trainer_flags.hpp"

#include <exception>
#include <iostream>

int main(int argument_count, char** arguments) {
  using namespace examples;
  try {
    auto const options = parse_configure_options(argument_count, arguments);
    if (!options) return 0;
    auto const results = search_configurations(*options);
    if (options->flags_for == trainer::none) {
      print_configurations(std::cout, *options, results);
    } else {
      write_trainer_flags(std::cout, options->flags_for, options->model, results.best.best);
    }
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "configure: " << error.what() << '\n';
    return 1;
  }
}
