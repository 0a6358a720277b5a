// SPDX-License-Identifier: Apache-2.0
/// \file
/// Packs sequences of token ids that share prefixes and prints how much they share:
/// `pack_prefixes --help`.

#include "options/prefix_options.hpp"
#include "readers/progress.hpp"
#include "readers/token_lines.hpp"
#include "reports/table.hpp"

#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>

namespace {

using namespace examples;

double ratio(std::uint64_t value, std::uint64_t to) {
  return to == 0 ? 1.0 : static_cast<double>(value) / static_cast<double>(to);
}

void print_groups(omnibal::prefix_packing const& packed) {
  for (auto const group : packed.groups) {
    std::cout << '[';
    for (std::size_t k = 0; k != group.size(); ++k) std::cout << (k == 0 ? "" : ", ") << group[k];
    std::cout << "]\n";
  }
}

void pack(prefix_options const& options) {
  progress hidden(visibility::hidden);
  auto const sequences = read_token_lines(options.file, hidden);
  auto const forest = omnibal::build_prefix_forest(sequences);
  omnibal::pack_prefixes_options settings;
  settings.group_price = options.group_price;
  settings.multiple_of = options.multiple;
  settings.seed = options.seed;
  auto const packed = omnibal::pack_prefixes(forest, options.capacity, settings);
  auto const bound = omnibal::prefix_bound(forest, options.capacity);
  std::cout << "Sequences: " << counted(sequences.size()) << " with "
            << counted(forest.all_tokens()) << " tokens\n"
            << "Trie: " << counted(forest.size()) << " nodes with " << counted(forest.trie_tokens())
            << " tokens; all tokens are "
            << fixed(ratio(forest.all_tokens(), forest.trie_tokens()), 3) << " times as many\n"
            << "Computed: " << counted(packed.computed_tokens) << " tokens, "
            << fixed(ratio(packed.computed_tokens, forest.trie_tokens()), 3)
            << " times the trie; at least " << counted(bound.tokens) << '\n'
            << "Groups: " << counted(packed.groups.size()) << "; at least " << counted(bound.groups)
            << '\n';
  if (!packed.oversized.empty()) {
    std::cout << "Oversized: " << counted(packed.oversized.size()) << '\n';
  }
  if (options.prints_groups) print_groups(packed);
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    auto const options = parse_prefix_options(argument_count, arguments);
    if (!options) return 0;
    pack(*options);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "pack_prefixes: " << error.what() << '\n';
    return 1;
  }
}
