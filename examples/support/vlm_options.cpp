#include "vlm_options.hpp"

#include "option_checks.hpp"

#include <string>

#include <CLI/CLI.hpp>

namespace examples {

std::optional<vlm_options> parse_vlm(int count, char const* const* words) {
  vlm_options result;
  std::vector<std::string> inputs;
  std::string output;
  std::string replayed;
  CLI::App app("Plans the training of two vision-language models on 64 A100: data, model, memory.",
               "plan_vlm");
  app.add_option("files", inputs,
                 "Length files as pack_dataset reads them; without files a\n"
                 "synthetic data set is planned for")
      ->type_name("FILE");
  app.add_option("--synthetic", result.synthetic_samples, "Samples of the synthetic data set")
      ->type_name("COUNT")
      ->check(CLI::Range(std::size_t{4096}, std::size_t{1} << 22))
      ->capture_default_str();
  app.add_option("--seed", result.seed, "Seed of everything random")
      ->type_name("NUMBER")
      ->capture_default_str();
  app.add_option("--output", output, "Write plans, traces and pictures into this directory")
      ->type_name("DIRECTORY");
  app.add_flag("--sensitivity", result.wants_sensitivity, "Show what other assumptions would give");
  app.add_option("--replay", replayed,
                 "Only simulate this NAME.plan.json again, with the files beside it")
      ->type_name("FILE");
  if (!parse_words(app, count, words)) return std::nullopt;
  result.replayed = replayed;
  result.inputs.assign(inputs.begin(), inputs.end());
  result.output = output;
  return result;
}

}  // namespace examples
