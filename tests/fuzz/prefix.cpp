// SPDX-License-Identifier: Apache-2.0
// Forests, packings, micro-batches, exchanges and layouts, for whatever nodes or tokens the bytes
// describe.

#include "../prefix/prefix_faults.hpp"
#include "byte_reader.hpp"
#include "odd_numbers.hpp"

#include <omnibal/prefix/balance_prefixes.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/prefix/prefix_exchange.hpp>
#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/prefix/prefix_masks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using test::byte_reader;
using test::oddity;
using test::require;
using test::returns;

void check_forest(byte_reader& bytes, omnibal::prefix_forest const& forest,
                  std::uint64_t capacity) {
  auto const bound = omnibal::prefix_bound(forest, capacity);
  auto const fast = omnibal::prefix_bound(forest, capacity, {omnibal::effort::fast, {}});
  require(bound.tokens >= fast.tokens && bound.groups >= fast.groups, "more effort, worse bound");
  omnibal::pack_prefixes_options options;
  options.steps = 256;
  options.seed = bytes.next();
  options.group_price = bytes.next() * 8U;
  options.multiple_of = 1 + bytes.next() % 4;
  auto const packed = omnibal::pack_prefixes(forest, capacity, options);
  std::string const found = test::fault(packed, forest, capacity);
  require(found.empty(), found);
  require(packed.groups.size() % options.multiple_of == 0, "no multiple");
  require(packed.computed_tokens >= bound.tokens, "below the bound of the tokens");
  require(packed.groups.size() >= bound.groups, "below the bound of the groups");
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    auto const layout = omnibal::layout_prefixes(forest, packed.groups[g]);
    require(layout.tokens() == packed.tokens[g], "a layout has other tokens");
    auto const slices = omnibal::slice_prefixes(layout);
    std::uint64_t pairs = 0;
    for (std::size_t n = 0; n != slices.q_ranges.size(); ++n) {
      std::uint64_t const queries = slices.q_ranges[n][1] - slices.q_ranges[n][0];
      std::uint64_t const keys = slices.k_ranges[n][1] - slices.k_ranges[n][0];
      pairs += slices.attn_type_map[n] == 0 ? queries * keys : queries * (queries + 1) / 2;
    }
    std::uint64_t attended = 0;
    for (std::uint32_t const position : layout.positions) attended += position + std::uint64_t{1};
    require(pairs == attended, "slices have other pairs than positions");
  }
  omnibal::balance_prefixes_options balance;
  balance.packing = options;
  std::size_t const ranks = 1 + bytes.next() % 4;
  auto const steps =
      omnibal::balance_prefixes(forest, ranks, capacity, omnibal::prefix_work{}, balance);
  require(steps.batches.size() % options.multiple_of == 0, "no multiple of micro-batches");
  auto const count = static_cast<std::uint32_t>(forest.sequence_count());
  std::vector<std::uint32_t> offsets{0};
  for (std::size_t r = 1; r != ranks; ++r) {
    offsets.push_back(std::min(count, offsets.back() + bytes.next() % 16U));
  }
  offsets.push_back(count);
  auto const moved = omnibal::prefix_exchange(forest, offsets, steps.batches.cells(), 2);
  for (std::size_t r = 0; r != ranks; ++r) {
    std::vector<std::uint32_t> needed;
    for (std::size_t m = 0; m != steps.batches.size(); ++m) {
      for (std::uint32_t const i : steps.batches(m, r)) needed.push_back(i);
    }
    std::uint64_t tokens = 0;
    for (std::uint32_t const k : moved.plan.arrivals(r)) {
      tokens += forest.lengths()[moved.nodes[k]];
    }
    require(tokens == test::union_tokens(forest, needed), "a rank receives other nodes");
  }
}

void check_nodes(byte_reader& bytes) {
  auto const kind = test::read_oddity(bytes);
  std::size_t const count = 1 + bytes.next() % 24;
  std::vector<std::uint32_t> parents;
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint32_t> ends;
  for (std::uint32_t v = 0; v != count; ++v) {
    std::uint32_t const byte = bytes.next();
    bool const is_wrong = kind == oddity::wrong;
    bool const is_root = byte >= 200 || (!is_wrong && v == 0);
    parents.push_back(is_root ? omnibal::prefix_forest::no_parent
                              : byte % (is_wrong ? static_cast<std::uint32_t>(count) + 1 : v));
    std::uint64_t const length = bytes.next();
    lengths.push_back(kind == oddity::none || length < 250 ? length : ~std::uint64_t{0} - length);
  }
  for (std::size_t i = bytes.next() % 24; i != 0; --i) {
    ends.push_back(bytes.next() % (static_cast<std::uint32_t>(count) + (kind == oddity::wrong)));
  }
  std::uint64_t const capacity = 1 + bytes.next() * 4U;
  returns("build_prefix_forest", kind, [&] {
    auto const forest = omnibal::build_prefix_forest(omnibal::prefix_nodes{parents, lengths, ends});
    for (std::size_t i = 0; i != ends.size(); ++i) {
      std::uint64_t tokens = 0;
      for (std::uint32_t v = ends[i]; v != omnibal::prefix_forest::no_parent; v = parents[v]) {
        tokens += lengths[v];
      }
      require(forest.sequence_tokens(i) == tokens, "a sequence has other tokens");
    }
    if (kind == oddity::none) check_forest(bytes, forest, capacity);
  });
}

void check_tokens(byte_reader& bytes) {
  std::vector<std::vector<std::uint8_t>> sequences(bytes.next() % 24);
  for (auto& sequence : sequences) {
    for (std::size_t k = bytes.next() % 24; k != 0; --k) sequence.push_back(bytes.next() % 3);
  }
  auto const forest = omnibal::build_prefix_forest(sequences);
  for (std::uint32_t i = 0; i != sequences.size(); ++i) {
    require(forest.sequence_tokens(i) == sequences[i].size(), "a sequence has other tokens");
    for (std::uint32_t v = forest.ends()[i]; v != omnibal::prefix_forest::no_parent;
         v = forest.parents()[v]) {
      auto const& model = sequences[forest.first_sequences()[v]];
      auto const depth = static_cast<std::ptrdiff_t>(forest.depths()[v]);
      require(std::equal(model.begin(), model.begin() + depth, sequences[i].begin()),
              "a node has tokens of another sequence");
    }
  }
  check_forest(bytes, forest, 1 + bytes.next());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  byte_reader bytes(std::span(data, size));
  if (bytes.next() % 2 == 0) {
    check_nodes(bytes);
  } else {
    check_tokens(bytes);
  }
  return 0;
}
