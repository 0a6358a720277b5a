// Prints a digest of what every packer, shuffler and generator gives for seeded integers.
// expected.txt has these lines; where they change on purpose, replace it by the output of this
// program.

#include "../support/fnv1a.hpp"
#include "../support/packing_digest.hpp"
#include "../support/parts.hpp"
#include "../support/samples.hpp"
#include "../support/stream.hpp"

#include <omnibal/balance/balance_exactly.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/improve.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/below.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>
#include <omnibal/rng/permutation.hpp>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace {

void print(std::string const& name, std::uint64_t digest) {
  std::printf("%016" PRIx64 "  %s\n", digest, name.c_str());
}

template <class Values>
std::uint64_t digest_of(Values const& values) {
  test::fnv1a hash;
  for (auto const value : values) hash.add(static_cast<std::uint64_t>(value));
  return hash.value();
}

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

/// Every packer on every kind of samples, a line for each packer.
template <std::size_t R>
void print_packers(std::size_t count) {
  auto const least_left = [](auto const& left, auto const&) {
    return *std::min_element(left.amounts, left.amounts + R);
  };
  std::map<std::string, test::fnv1a> hashes;
  for (auto const& set : test::all_sets<R>(count, count)) {
    auto const add = [&](std::string const& name, auto const& pack, auto const&... more) {
      hashes[name].add(test::digest(pack(set.samples, std::identity{}, set.capacity, more...)));
    };
    omnibal::isf_options const rounds{.rounds = 5};
    auto const most = omnibal::reaches_most(set.capacity);
    add("next_fit", omnibal::next_fit);
    add("isf, fisher_yates", omnibal::isf, rounds, most, omnibal::rng::fisher_yates{1});
    add("isf, feistel", omnibal::isf, rounds, most, omnibal::rng::feistel{2});
    add("isf, numpy_shuffle", omnibal::isf, rounds, most, omnibal::rng::numpy_shuffle{3});
    add("best_fit_decreasing", omnibal::best_fit_decreasing);
    add("best_fit_decreasing, largest share", omnibal::best_fit_decreasing,
        omnibal::best_fit_options{.measure = omnibal::size_measure::largest_share});
    add("best_fit_decreasing, a score", omnibal::best_fit_decreasing, omnibal::best_fit_options{},
        least_left);
    add("improve", omnibal::improve,
        omnibal::next_fit(set.samples, std::identity{}, set.capacity));
  }
  for (auto const& [name, hash] : hashes) {
    print(name + ", " + std::to_string(R) + " resources, " + std::to_string(count) + " samples",
          hash.value());
  }
}

template <std::size_t R>
void print_online(std::size_t count) {
  test::fnv1a hash;
  for (auto const& set : test::all_sets<R>(count, count)) {
    omnibal::online_packer const packer(set.capacity, {.buffer = 32});
    for (auto const& group : test::run_stream(packer, set.samples).groups) {
      hash.add(group.pushes);
      hash.add(digest_of(group.ids));
    }
  }
  print("online_packer, " + std::to_string(R) + " resources, " + std::to_string(count) + " samples",
        hash.value());
}

template <std::size_t R>
void print_large_packing() {
  auto const set = test::small_sets<R>(R, 100'000).back();
  auto const suffix = ", " + std::to_string(R) + " resources, 100000 samples";
  auto const demand = std::identity{};
  print("isf" + suffix, test::digest(omnibal::isf(set.samples, demand, set.capacity)));
  print("best_fit_decreasing" + suffix,
        test::digest(omnibal::best_fit_decreasing(set.samples, demand, set.capacity)));
}

/// The capacities that are chosen, and how good they are to the last bit.
template <std::size_t R>
void print_tuned(std::size_t count) {
  auto const pack = [](auto const& samples, auto const& demand, auto const& capacity) {
    return omnibal::isf(samples, demand, capacity, {.rounds = 5});
  };
  omnibal::tune_options<R> options;
  options.candidates = 30;
  options.first_samples = 100;
  test::fnv1a hash;
  for (auto const& set : test::all_sets<R>(count, count)) {
    auto const result =
        omnibal::tune_capacity(set.samples, std::identity{}, 3.5, pack, {}, options);
    hash.add(result.packings);
    for (auto const& judged : result.finalists) {
      hash.add(digest_of(judged.capacity.amounts));
      hash.add(judged.groups);
      hash.add(std::bit_cast<std::uint64_t>(judged.objective));
    }
  }
  print("tune_capacity, " + std::to_string(R) + " resources, " + std::to_string(count) + " samples",
        hash.value());
}

/// Every balancer on every kind of costs, a line for each.
template <std::size_t R>
void print_balancers(std::size_t count) {
  std::map<std::string, test::fnv1a> hashes;
  for (auto const& set : test::cost_sets<R>(count, count)) {
    auto const add = [&](std::string const& name, omnibal::grouping const& parts) {
      hashes[name].add(digest_of(parts.offsets()));
      hashes[name].add(digest_of(parts.items()));
    };
    auto const cost = std::identity{};
    for (std::size_t const parts : {1u, 3u, 16u}) {
      auto const start = omnibal::lpt(set.samples, parts, cost,
                                      {.count = omnibal::count_policy::at_most_one_apart});
      add("lpt", omnibal::lpt(set.samples, parts));
      add("lpt, counts at most one apart", start);
      add("refine", omnibal::refine(set.samples, start));
      add("balance_exactly",
          omnibal::balance_exactly(set.samples, parts, cost, {.nodes = 1000}).parts);
      if constexpr (R == 1) {
        add("karmarkar_karp", omnibal::karmarkar_karp(set.samples, parts, test::first_amount));
        add("deal", omnibal::deal(set.samples, parts, test::first_amount));
      }
    }
  }
  for (auto const& [name, hash] : hashes) {
    print(name + ", " + std::to_string(R) + " kinds of cost, " + std::to_string(count) + " samples",
          hash.value());
  }
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
  for (std::size_t const count : {20u, 300u}) {
    print_packers<1>(count);
    print_packers<2>(count);
    print_packers<3>(count);
  }
  print_large_packing<1>();
  print_large_packing<2>();
  for (std::size_t const count : {20u, 300u}) {
    print_tuned<1>(count);
    print_tuned<2>(count);
    print_tuned<3>(count);
  }
  print_online<1>(300);
  print_online<2>(300);
  print_online<3>(300);
  print_balancers<1>(20);
  print_balancers<1>(300);
  print_balancers<2>(300);
}
