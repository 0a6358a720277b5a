// SPDX-License-Identifier: Apache-2.0
/// \file
/// Groups of sequences that share prefixes: computed tokens over the tokens of the trie, groups,
/// the bounds of both, and time, beside first fit in three orders.

#include "prefix_families.hpp"
#include "prefix_first_fit.hpp"

#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

namespace {

void report(benchmark::State& state, omnibal::prefix_forest const& forest, std::uint64_t capacity,
            std::uint64_t tokens, std::size_t groups) {
  auto const bound = omnibal::prefix_bound(forest, capacity, {omnibal::effort::normal, {}});
  auto const trie = static_cast<double>(forest.trie_tokens());
  state.counters["all_over_trie"] = static_cast<double>(forest.all_tokens()) / trie;
  state.counters["tokens_over_trie"] = static_cast<double>(tokens) / trie;
  state.counters["bound_over_trie"] = static_cast<double>(bound.tokens) / trie;
  state.counters["groups"] = static_cast<double>(groups);
  state.counters["bound_groups"] = static_cast<double>(bound.groups);
}

void ours(benchmark::State& state, omnibal::prefix_forest const& forest, std::uint64_t capacity,
          omnibal::effort effort) {
  omnibal::pack_prefixes_options options;
  options.effort = effort;
  omnibal::prefix_packing packed;
  for (auto _ : state) packed = omnibal::pack_prefixes(forest, capacity, options);
  report(state, forest, capacity, packed.computed_tokens, packed.groups.size());
}

void theirs(benchmark::State& state, omnibal::prefix_forest const& forest, std::uint64_t capacity,
            bench::sequence_order kind) {
  auto const order = bench::order_of(forest, kind);
  bench::first_fit_result found;
  for (auto _ : state) found = bench::first_fit(forest, capacity, order);
  report(state, forest, capacity, found.tokens, found.groups);
}

[[maybe_unused]] bool const registered = [] {
  for (auto const& family : bench::prefix_families) {
    for (std::uint64_t const capacity : {16384U, 32768U, 65536U, 131072U}) {
      auto const add = [&](std::string const& method, auto const& run) {
        auto const name = std::string("pack_prefixes/") + family.name +
                          "/capacity:" + std::to_string(capacity) + "/" + method;
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { run(state, family.make(1), capacity); });
      };
      add("fast", [](auto& state, auto const& forest, std::uint64_t most) {
        ours(state, forest, most, omnibal::effort::fast);
      });
      add("normal", [](auto& state, auto const& forest, std::uint64_t most) {
        ours(state, forest, most, omnibal::effort::normal);
      });
      add("first_fit", [](auto& state, auto const& forest, std::uint64_t most) {
        theirs(state, forest, most, bench::sequence_order::given);
      });
      add("first_fit_shuffled", [](auto& state, auto const& forest, std::uint64_t most) {
        theirs(state, forest, most, bench::sequence_order::shuffled);
      });
      add("first_fit_decreasing", [](auto& state, auto const& forest, std::uint64_t most) {
        theirs(state, forest, most, bench::sequence_order::longest_first);
      });
    }
  }
  return true;
}();

/// The construction for about 100,000 sequences of a given trie.
void many_sequences(benchmark::State& state, omnibal::prefix_forest const& forest,
                    std::uint64_t capacity) {
  omnibal::pack_prefixes_options options;
  options.effort = omnibal::effort::fast;
  for (auto _ : state) {
    benchmark::DoNotOptimize(omnibal::pack_prefixes(forest, capacity, options));
  }
  state.counters["sequences"] = static_cast<double>(forest.sequence_count());
}

[[maybe_unused]] bool const registered_many = [] {
  struct {
    char const* name;
    omnibal::prefix_forest (*make)();
  } constexpr forests[] = {
      {"prompts", [] { return bench::grpo(1, 6250, 16); }},
      {"agents", [] { return bench::agents(1, 6250, 16); }},
      {"system_prompt", [] { return bench::system_prompt(1, 6250, 16); }},
      {"branching", [] { return bench::branching(1, 1560); }},
      {"documents", [] { return bench::documents(1, 4167, 24); }},
      {"turns", [] { return bench::turns(1, 16'000); }},
      {"separate", [] { return bench::separate(1, 100'000); }},
      {"uneven", [] { return bench::uneven(1, 8230); }},
  };
  for (auto const& forest : forests) {
    for (std::uint64_t const capacity : {16384U, 32768U, 131072U}) {
      auto const name = std::string("pack_prefixes/") + forest.name + "_of_100000/capacity:" +
                        std::to_string(capacity) + "/fast";
      benchmark::RegisterBenchmark(
          name.c_str(),
          [=](benchmark::State& state) { many_sequences(state, forest.make(), capacity); })
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
