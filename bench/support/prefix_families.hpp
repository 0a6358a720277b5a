// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Families of synthetic forests of prefixes, by the shape of the work that shares them.

#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// A forest under construction: parents before children.
class forest_maker {
 public:
  explicit forest_maker(std::uint64_t seed) : words_(seed) {}

  std::uint32_t node(std::uint32_t parent, std::uint64_t length) {
    parents_.push_back(parent);
    lengths_.push_back(length);
    return static_cast<std::uint32_t>(parents_.size() - 1);
  }
  void sequence(std::uint32_t node) { ends_.push_back(node); }

  /// Returns an integer in [0, n).
  std::uint64_t below(std::uint64_t n) { return omnibal::rng::below(words_, n); }

  /// Returns a log-normal length, at least 1 and at most `most`.
  std::uint64_t length(double median, double sigma, std::uint64_t most) {
    double const u = (static_cast<double>(words_() >> 11) + 0.5) / 9007199254740992.0;
    double const w = static_cast<double>(words_() >> 11) / 9007199254740992.0;
    double const normal = std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * w);
    double const value = median * std::exp(sigma * normal);
    if (!(value < static_cast<double>(most))) return most;
    return value < 1.0 ? 1 : static_cast<std::uint64_t>(value);
  }

  [[nodiscard]] omnibal::prefix_forest build() const {
    return omnibal::build_prefix_forest(omnibal::prefix_nodes{parents_, lengths_, ends_});
  }

 private:
  omnibal::rng::engine words_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint32_t> ends_;
};

inline constexpr std::uint32_t root = omnibal::prefix_forest::no_parent;

/// Prompts with several answers each, below `parent`.
inline void add_prompts(forest_maker& make, std::uint32_t parent, std::size_t prompts,
                        std::size_t answers, double prompt, double answer, std::uint64_t most) {
  for (std::size_t p = 0; p != prompts; ++p) {
    auto const node = make.node(parent, make.length(prompt, 0.5, 4096));
    for (std::size_t a = 0; a != answers; ++a) {
      make.sequence(make.node(node, make.length(answer, 0.6, most)));
    }
  }
}

/// Group-wise reinforcement learning: each prompt has several answers.
inline omnibal::prefix_forest grpo(std::uint64_t seed, std::size_t prompts, std::size_t answers) {
  forest_maker make(seed);
  add_prompts(make, root, prompts, answers, 1300.0, 3000.0, 8192);
  return make.build();
}

/// The same with one system prompt of 4,096 tokens for all.
inline omnibal::prefix_forest system_prompt(std::uint64_t seed, std::size_t prompts,
                                            std::size_t answers) {
  forest_maker make(seed);
  auto const system = make.node(root, 4096);
  add_prompts(make, system, prompts, answers, 700.0, 1800.0, 6000);
  return make.build();
}

/// Agents: each task has trajectories that fork from a turn of an earlier one. A trajectory has up
/// to 10 turns and at most 14,000 tokens.
inline omnibal::prefix_forest agents(std::uint64_t seed, std::size_t tasks,
                                     std::size_t trajectories) {
  forest_maker make(seed);
  for (std::size_t t = 0; t != tasks; ++t) {
    std::vector<std::uint32_t> turns{make.node(root, make.length(1800.0, 0.4, 4000))};
    std::vector<std::uint64_t> depth{turns.size()};
    std::vector<std::uint64_t> number{0};
    depth[0] = 4000;
    for (std::size_t k = 0; k != trajectories; ++k) {
      auto at = static_cast<std::size_t>(make.below(turns.size()));
      // A trajectory adds at least one turn of its own.
      std::uint64_t const last =
          number[at] + 1 + make.below(10 - number[at] > 0 ? 10 - number[at] : 1);
      do {
        std::uint64_t const room = depth[at] < 13900 ? 14000 - depth[at] : 100;
        std::uint64_t const length = make.length(900.0, 0.7, room);
        turns.push_back(make.node(turns[at], length));
        depth.push_back(depth[at] + length);
        number.push_back(number[at] + 1);
        at = turns.size() - 1;
      } while (number[at] < last && depth[at] < 13000);
      make.sequence(turns[at]);
    }
  }
  return make.build();
}

/// Trees that branch in two or three at each of six levels, as beam search and tree search do.
inline omnibal::prefix_forest branching(std::uint64_t seed, std::size_t trees) {
  forest_maker make(seed);
  for (std::size_t t = 0; t != trees; ++t) {
    std::vector<std::uint32_t> level{make.node(root, make.length(1000.0, 0.5, 3000))};
    for (int depth = 0; depth != 6; ++depth) {
      std::vector<std::uint32_t> next;
      for (std::uint32_t const node : level) {
        std::uint64_t const children = 1 + make.below(3);
        for (std::uint64_t c = 0; c != children; ++c) {
          next.push_back(make.node(node, make.length(500.0, 0.8, 2000)));
        }
      }
      level = next;
    }
    for (std::uint32_t const node : level) make.sequence(node);
  }
  return make.build();
}

/// Long documents with many short questions each.
inline omnibal::prefix_forest documents(std::uint64_t seed, std::size_t count,
                                        std::size_t questions) {
  forest_maker make(seed);
  for (std::size_t d = 0; d != count; ++d) {
    auto const node = make.node(root, make.length(6000.0, 0.4, 11000));
    for (std::size_t q = 0; q != questions; ++q) {
      make.sequence(make.node(node, make.length(300.0, 0.6, 2000)));
    }
  }
  return make.build();
}

/// Conversations of which each turn is a sequence, so that sequences are prefixes of others.
inline omnibal::prefix_forest turns(std::uint64_t seed, std::size_t conversations) {
  forest_maker make(seed);
  for (std::size_t c = 0; c != conversations; ++c) {
    std::uint32_t node = root;
    std::uint64_t const count = 1 + make.below(12);
    for (std::uint64_t t = 0; t != count; ++t) {
      node = make.node(node, make.length(700.0, 0.8, 1200));
      make.sequence(node);
    }
  }
  return make.build();
}

/// Sequences that share nothing, with a heavy tail.
inline omnibal::prefix_forest separate(std::uint64_t seed, std::size_t count) {
  forest_maker make(seed);
  for (std::size_t i = 0; i != count; ++i) {
    make.sequence(make.node(root, make.length(1500.0, 1.2, 16000)));
  }
  return make.build();
}

/// Few prompts with very different numbers of answers, as samplers with a filter give.
inline omnibal::prefix_forest uneven(std::uint64_t seed, std::size_t prompts) {
  forest_maker make(seed);
  for (std::size_t p = 0; p != prompts; ++p) {
    auto const answers = make.length(8.0, 1.0, 128);
    add_prompts(make, root, 1, static_cast<std::size_t>(answers), 2000.0, 1500.0, 10000);
  }
  return make.build();
}

struct prefix_family {
  char const* name;
  omnibal::prefix_forest (*make)(std::uint64_t seed);
};

inline constexpr prefix_family prefix_families[] = {
    {"grpo_64x16", [](std::uint64_t seed) { return grpo(seed, 64, 16); }},
    {"agents_32x16", [](std::uint64_t seed) { return agents(seed, 32, 16); }},
    {"agents_64x8", [](std::uint64_t seed) { return agents(seed, 64, 8); }},
    {"system_prompt_64x16", [](std::uint64_t seed) { return system_prompt(seed, 64, 16); }},
    {"branching_24", [](std::uint64_t seed) { return branching(seed, 24); }},
    {"documents_48x24", [](std::uint64_t seed) { return documents(seed, 48, 24); }},
    {"turns_300", [](std::uint64_t seed) { return turns(seed, 300); }},
    {"separate_1000", [](std::uint64_t seed) { return separate(seed, 1000); }},
    {"uneven_96", [](std::uint64_t seed) { return uneven(seed, 96); }},
};

}  // namespace bench
