// SPDX-License-Identifier: Apache-2.0
#include "prefix_options.hpp"

#include "option_checks.hpp"

#include <CLI/CLI.hpp>

namespace examples {

std::optional<prefix_options> parse_prefix_options(int count, char const* const* words) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  prefix_options options;
  CLI::App app(
      "Packs sequences that share prefixes: prints how much they share, groups under a capacity "
      "with each shared token once, and lower bounds.",
      "pack_prefixes");
  app.footer(example_and_status("pack_prefixes tokens.jsonl --capacity 8192",
                                "0 if the sequences were packed; otherwise 1."));
  auto* const data = app.add_option_group("Data");
  data->add_option("file", options.file,
                   "Read JSON lines: a list of token ids, or an object with the list in input_ids "
                   "or tokens, or in prompt_ids and completion_ids; - is the standard input")
      ->type_name("FILE")
      ->required();
  auto* const groups = app.add_option_group("Groups");
  groups->add_option("--capacity", options.capacity, "Set the maximum number of tokens of a group")
      ->type_name("TOKENS")
      ->check(integer_between<std::uint64_t>(1, most))
      ->capture_default_str();
  groups
      ->add_option("--multiple-of", options.multiple,
                   "Make the number of groups a multiple of this number, such as the ranks")
      ->type_name("COUNT")
      ->check(integer_between<std::uint64_t>(1, 1'000'000))
      ->capture_default_str();
  groups
      ->add_option("--group-price", options.group_price,
                   "Set the computed tokens that one group less is worth. Default: the capacity")
      ->type_name("TOKENS")
      ->check(integer_between<std::uint64_t>(0, most));
  add_seed_option(*groups, options.seed);
  auto* const output = app.add_option_group("Output");
  output->add_flag("--print-groups", options.prints_groups,
                   "Print the sequences of each group, as lists in JSON lines, after the numbers");
  if (!parse_words(app, count, words)) return std::nullopt;
  return options;
}

}  // namespace examples
