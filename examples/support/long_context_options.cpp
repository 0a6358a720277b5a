#include "long_context_options.hpp"
#include "option_checks.hpp"

#include <limits>
#include <stdexcept>

#include <CLI/CLI.hpp>

namespace examples {

std::optional<long_context_options> parse_long_context(int count, char const* const* words) {
  long_context_options options;
  std::vector<std::string> inputs;
  std::string mix = "two-sources";
  std::string svg;
  CLI::App app(
      "Packs long and short samples in levels of length, as hierarchical balance packing does,\n"
      "and compares the simulated training of Llama 3 8B on devices of 80 GB with plain packing.",
      "pack_long_context");
  auto* const files = app.add_option("files", inputs,
                                     "Length files: JSON lists of records, manifests of such\n"
                                     "files, JSON lines or CSV. Without files a synthetic data\n"
                                     "set is packed")
                          ->type_name("FILE");
  app.add_option("--token-field", options.token_field, "Field with the number of tokens")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--mix", mix,
                 "Lengths of the synthetic data set: conversations and documents,\n"
                 "or one broad distribution")
      ->type_name("two-sources|broad")
      ->check(CLI::IsMember({"two-sources", "broad"}))
      ->capture_default_str()
      ->excludes(files);
  app.add_option("--synthetic", options.synthetic_samples, "Samples of the synthetic data set")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 100'000'000))
      ->capture_default_str()
      ->excludes(files);
  app.add_option("--seed", options.seed, "Seed of everything random")
      ->type_name("NUMBER")
      ->check(integer_between<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "Devices that train, a multiple of 8")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(8, std::int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--svg", svg, "Draw levels and waiting into this file")->type_name("FILE");
  if (!parse_words(app, count, words)) return std::nullopt;
  if (options.ranks % 8 != 0) {
    throw std::runtime_error("--ranks: is " + std::to_string(options.ranks) +
                             ", must be a multiple of 8");
  }
  if (mix == "broad") options.mix = length_mix::broad;
  options.inputs.assign(inputs.begin(), inputs.end());
  options.svg = svg;
  return options;
}

}  // namespace examples
