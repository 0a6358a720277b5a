// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what every packer gives for seeded integers.
// expected/pack.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/packers.hpp"
#include "../support/packing_digest.hpp"
#include "../support/pattern_plans.hpp"
#include "../support/samples.hpp"
#include "../support/stream.hpp"
#include "digest.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/best_patterns.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/pack/pack_padded.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/place_samples.hpp>
#include <omnibal/pack/share_of_shard.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace {

using golden::digest_of;
using golden::print;

/// Every packer on every kind of samples, a line for each packer.
template <std::size_t R>
void print_packers(std::size_t count) {
  auto const min_left = [](auto const& left, auto const&) {
    return *std::min_element(left.amounts, left.amounts + R);
  };
  std::map<std::string, test::fnv1a> hashes;
  for (auto const& set : test::all_sets<R>(count, count)) {
    auto const add = [&](std::string const& name, auto const& pack, auto const&... more) {
      hashes[name].add(test::digest(pack(set.samples, std::identity{}, set.capacity, more...)));
    };
    omnibal::isf_options const rounds{.rounds = 5};
    auto const most = omnibal::reaches_most(set.capacity);
    test::for_each_packer(add);
    add("isf, fisher_yates", omnibal::isf, rounds, most, omnibal::rng::fisher_yates{1});
    add("isf, feistel", omnibal::isf, rounds, most, omnibal::rng::feistel{2});
    add("isf, numpy_shuffle", omnibal::isf, rounds, most, omnibal::rng::numpy_shuffle{3});
    add("best_fit_decreasing, largest share", omnibal::best_fit_decreasing,
        omnibal::best_fit_decreasing_options{.measure = omnibal::size_measure::largest_share});
    add("best_fit_decreasing, a score", omnibal::best_fit_decreasing,
        omnibal::best_fit_decreasing_options{}, min_left);
    add("pack_padded", omnibal::pack_padded);
    add("best_packing, largest share", omnibal::best_packing,
        omnibal::best_packing_options{.measure = omnibal::size_measure::largest_share});
    add("improve_packing", omnibal::improve_packing,
        omnibal::next_fit(set.samples, std::identity{}, set.capacity));
    hashes["packing_bound, thorough"].add(omnibal::packing_bound(
        set.samples, std::identity{}, set.capacity, {.effort = omnibal::effort::thorough}));
  }
  for (auto const& [name, hash] : hashes) {
    print(name + ", " + std::to_string(R) + " resources, " + std::to_string(count) + " samples",
          hash.value());
  }
}

template <std::size_t R>
void print_large_packing() {
  auto const set = test::small_sets<R>(R, 100'000).back();
  auto const suffix = ", " + std::to_string(R) + " resources, 100000 samples";
  test::for_each_packer([&](std::string const& name, auto const& pack) {
    print(name + suffix, test::digest(pack(set.samples, std::identity{}, set.capacity)));
  });
}

/// The capacities that are chosen, and how good they are to the last bit.
template <std::size_t R>
void print_tuned(std::size_t count) {
  auto const pack = [](auto const& samples, auto const& demand, auto const& capacity) {
    return omnibal::isf(samples, demand, capacity, {.rounds = 5});
  };
  omnibal::tune_capacity_options<R> options;
  options.candidates = 30;
  options.first_samples = 100;
  test::fnv1a hash;
  for (auto const& set : test::all_sets<R>(count, count)) {
    auto const result = omnibal::tune_capacity(set.samples, std::identity{}, 3.5, pack, options);
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

template <std::size_t R>
void add_plan(test::fnv1a& hash, omnibal::pattern_plan<R> const& plan) {
  for (auto const& part : plan.parts) {
    hash.add(part.entry);
    hash.add(part.count);
  }
  hash.add(plan.lower_bound);
  hash.add(digest_of(plan.offsets));
  hash.add(digest_of(plan.multiplicities));
  hash.add(digest_of(plan.oversized));
}

/// The patterns of histograms with large counts, and the groups and shares of a shard.
template <std::size_t R>
void print_histograms(std::size_t count) {
  test::fnv1a hash;
  for (auto const& set : test::all_sets<R>(count, count)) {
    auto const counted = omnibal::count_samples(set.samples, std::identity{});
    auto many = counted;
    for (int doubled = 0; doubled != 24; ++doubled) many.merge(omnibal::sample_histogram<R>(many));
    for (auto const& histogram : {counted, many}) {
      auto const plan = omnibal::pack_histogram(histogram, set.capacity);
      add_plan(hash, plan);
      hash.add(digest_of(omnibal::share_of_shard(plan, 1, 3)));
      hash.add(digest_of(omnibal::place_samples(plan, {}, set.samples, std::identity{})));
    }
  }
  print("pack_histogram, " + std::to_string(R) + " resources, " + std::to_string(count) +
            " samples, times 1 and 2^24",
        hash.value());
}

/// The patterns of few different demands, by the default steps and by few.
template <std::size_t R>
void print_best_patterns(int histograms) {
  test::fnv1a hash;
  auto const capacity = test::usual_capacity<R>();
  omnibal::resources<R> most;
  for (std::size_t r = 0; r != R; ++r) most[r] = 1 + capacity[r] / 2;
  omnibal::rng::engine random(R);
  for (int k = 0; k != histograms; ++k) {
    auto const histogram =
        test::random_histogram<R>(random, 12, k % 2 == 0 ? 40 : std::uint64_t{1} << 40, most);
    add_plan(hash, omnibal::best_patterns(histogram, capacity));
    add_plan(hash, omnibal::best_patterns(histogram, capacity, {.pattern_steps = 1000}));
  }
  print("best_patterns, " + std::to_string(R) + " resources, " + std::to_string(histograms) +
            " histograms",
        hash.value());
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

}  // namespace

int main() {
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
  print_histograms<1>(300);
  print_histograms<2>(300);
  print_histograms<3>(300);
  print_best_patterns<1>(30);
  print_best_patterns<2>(30);
  print_best_patterns<3>(30);
}
