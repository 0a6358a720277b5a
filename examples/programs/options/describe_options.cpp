// SPDX-License-Identifier: Apache-2.0
#include "describe_options.hpp"

#include "machine_options.hpp"
#include "option_checks.hpp"

#include <CLI/CLI.hpp>

namespace examples {

std::optional<describe_options> parse_describe_options(int count, char const* const* words) {
  constexpr std::int64_t max_length = std::int64_t{1} << 30;
  describe_options options;
  CLI::App app(
      "Prints the layers of models as they were understood: their parts, parameters, FLOPs and "
      "kept bytes. A model that cannot be read exactly is refused, and the message names the "
      "field.",
      "describe_model");
  app.footer(example_and_status("describe_model --table llama3-8b deepseek-v2",
                                "0 if all models were read; otherwise 1."));
  app.add_option("models", options.models, "Describe these models." + model_words())
      ->type_name("NAME|FILE")
      ->required();
  auto* const table = app.add_flag(
      "--table", options.is_table,
      "Print one row for each model: parameters, GFLOPs of training and kept bytes of a "
      "token of the language model");
  app.add_option("--published", options.published,
                 "Read published totals from this CSV file with the columns model and parameters. "
                 "Default: totals that stand with the models")
      ->type_name("FILE")
      ->needs(table);
  app.add_option("--length", options.length,
                 "Compute FLOPs and kept bytes of layers for a document of this length")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(1, max_length))
      ->capture_default_str();
  add_family_option(app, options.family);
  if (!parse_words(app, count, words)) return std::nullopt;
  return options;
}

}  // namespace examples
