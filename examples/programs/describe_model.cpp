// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prints the layers of models as they were understood, or a table of models:
/// `describe_model --help`.

#include "models/model_file.hpp"
#include "options/describe_options.hpp"
#include "reports/model_report.hpp"

#include <exception>
#include <iostream>
#include <vector>

namespace {

using namespace examples;

/// Prints the parts of a model that no layer counts, with their parameters.
void print_omitted(std::ostream& out, model_description const& model) {
  auto const print = [&](std::string const& name, std::int64_t parameters) {
    out << name;
    if (parameters != 0)
      out << ", " << counted(static_cast<std::uint64_t>(parameters)) << " parameters";
    out << '\n';
  };
  for (omitted_part const& part : model.omitted) print("Not read: " + part.name, part.parameters);
  std::int64_t const of_vision = model.vision ? model.vision->idle_parameters : 0;
  std::int64_t const of_audio = model.audio ? model.audio->idle_parameters : 0;
  if (of_vision != 0) print("Never run: parts of the vision tower", of_vision);
  if (of_audio != 0) print("Never run: parts of the audio tower", of_audio);
}

/// Describes all models. Returns the number of models that could not be read.
int describe(describe_options const& options) {
  std::vector<model_description> models;
  int refused = 0;
  published_totals totals;
  if (!options.published.empty()) totals = read_published_totals(options.published);
  for (std::string const& name : options.models) {
    try {
      auto model = find_model(name, model_parts::any, options.family);
      // A file without a name of its own.
      if (model.name.empty()) model.name = name;
      auto const published = totals.find(model.name);
      if (published != totals.end()) {
        model.published = published_total{published->second, 0, options.published.string()};
      }
      models.push_back(std::move(model));
    } catch (std::exception const& error) {
      std::cerr << "describe_model: " << error.what() << '\n';
      ++refused;
    }
  }
  if (options.is_table) {
    models_table(models).print_markdown(std::cout);
    return refused;
  }
  for (model_description const& model : models) {
    std::cout << model.name << '\n';
    print_layers(std::cout, model, options.length);
    print_omitted(std::cout, model);
  }
  return refused;
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    auto const options = parse_describe_options(argument_count, arguments);
    if (!options) return 0;
    return describe(*options) == 0 ? 0 : 1;
  } catch (std::exception const& error) {
    std::cerr << "describe_model: " << error.what() << '\n';
    return 1;
  }
}
