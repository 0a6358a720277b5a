// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every generator and shuffler gives for seeded integers.
// expected/rng.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "digest.hpp"

#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>
#include <omnibal/rng/permutation.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

void print_generators(std::uint64_t seed) {
  std::string const suffix = " of seed " + std::to_string(seed);
  std::vector<std::uint64_t> words(1000);
  omnibal::rng::engine engine(seed, 3);
  for (std::uint64_t& word : words) word = engine();
  print("engine" + suffix, digest_of(words));
  for (std::size_t i = 0; i != words.size(); ++i) {
    words[i] = omnibal::rng::below(engine, (std::uint64_t{3} << (i % 62)) - 1);
  }
  print("below" + suffix, digest_of(words));
}

template <class Shuffle>
void print_shuffler(std::string const& name, Shuffle const& shuffle) {
  for (std::size_t const count : {0u, 1u, 2u, 65u, 1000u, 100'000u}) {
    test::fnv1a hash;
    for (std::uint64_t const round : {0u, 1u, 2u, 7u}) {
      std::vector<std::uint32_t> items(count);
      std::iota(items.begin(), items.end(), 0u);
      shuffle(std::span<std::uint32_t>(items), round);
      hash.add(digest_of(items));
    }
    print(name + " of " + std::to_string(count), hash.value());
  }
}

void print_permutations() {
  for (std::uint64_t const n : {1u, 63u, 64u, 65u, 1000u, 65'537u}) {
    omnibal::rng::permutation const permutation(n, 5);
    test::fnv1a hash;
    for (std::uint64_t i = 0; i != n; ++i) {
      hash.add(permutation(i));
      hash.add(permutation.inverse(i));
    }
    print("permutation of " + std::to_string(n), hash.value());
  }
  omnibal::rng::permutation const large(~std::uint64_t{0}, 6);
  test::fnv1a hash;
  for (std::uint64_t i = 0; i != 1000; ++i) hash.add(large(i << 54 | i));
  print("permutation of 2^64 - 1", hash.value());
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    print_generators(seed);
  }
  print_shuffler("fisher_yates", omnibal::rng::fisher_yates{9});
  print_shuffler("feistel", omnibal::rng::feistel{9});
  print_shuffler("numpy_shuffle", omnibal::rng::numpy_shuffle{9});
  print_permutations();
}
