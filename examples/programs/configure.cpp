// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches the configuration of a training step for a model, lengths and a machine:
/// `configure --help`.

#include "options/configure_options.hpp"
#include "pictures/configuration_picture.hpp"
#include "plans/configuration_search.hpp"
#include "reports/configuration_report.hpp"
#include "reports/staged_files.hpp"
#include "reports/trainer_flags.hpp"

#include <exception>
#include <iostream>

int main(int argument_count, char** arguments) {
  using namespace examples;
  try {
    auto const options = parse_configure_options(argument_count, arguments);
    if (!options) return 0;
    auto const results = search_configurations(*options);
    staged_files files;
    if (!options->svg.empty()) {
      files.write(options->svg, [&](std::ostream& out) {
        write_configuration_picture(choices_text(results.best.best), results.best.best, out);
      });
    }
    if (options->flags_for == trainer::none) {
      print_configurations(std::cout, *options, results);
    } else {
      write_trainer_flags(std::cout, options->flags_for, options->model, results.best.best);
    }
    files.commit();
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "configure: " << error.what() << '\n';
    return 1;
  }
}
