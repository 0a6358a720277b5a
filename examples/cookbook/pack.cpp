// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/pack/split_long.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace cookbook {

struct sample {
  int images, tokens;
};

std::vector<sample> const samples{{5, 1340}, {1, 358},  {3, 811}, {9, 2400},
                                  {1, 290},  {5, 1310}, {3, 790}, {2, 700}};
auto const demand = omnibal::demand_of(&sample::images, &sample::tokens);
omnibal::resources<2> const capacity{9, 4096};

void few_groups_at_once() {
  auto const packed = omnibal::best_packing(samples, demand, capacity);
  print(packed.groups);
  std::cout << packed.groups.size() << " groups, none has fewer than " << packed.report.lower_bound
            << '\n';
  for (auto const index : packed.oversized) std::cout << index << " fits no group\n";

  // A mini-batch is a group of indices; what it adds up to is one call more.
  auto const loads = omnibal::group_loads(packed.groups, samples, demand);
  for (std::size_t group = 0; group != packed.groups.size(); ++group) {
    std::cout << "mini-batch " << group << ": samples " << packed.groups[group].size()
              << ", images " << loads[group][0] << ", tokens " << loads[group][1] << '\n';
  }
}

void a_score_of_your_own() {
  std::vector<sample> const few{{7, 2096}, {3, 3796}, {1, 200}};
  auto const show = [&](omnibal::packing const& packed) {
    print(packed.groups);
    for (auto const& load : omnibal::group_loads(packed.groups, few, demand)) {
      std::cout << "  " << capacity[0] - load[0] << " images and " << capacity[1] - load[1]
                << " tokens are left\n";
    }
  };
  // The default leaves the least share of both. This one fills tokens first: the least score wins.
  auto const tokens_left = [](auto const& left, auto const& /*demand*/) { return left[1]; };
  show(omnibal::best_fit_decreasing(few, demand, capacity));
  show(omnibal::best_fit_decreasing(few, demand, capacity, {}, tokens_left));
}

void fewer_and_evener_groups() {
  std::vector<int> const lengths{41, 37, 33, 29, 26, 24, 22, 19, 17, 14, 12, 9, 9, 8};
  auto const tokens = [](int length) { return length; };
  auto const show = [&](char const* name, omnibal::packing const& packed) {
    std::cout << name << ": " << packed.groups.size() << " groups of";
    for (auto const& load : omnibal::group_loads(packed.groups, lengths, tokens)) {
      std::cout << ' ' << load[0];
    }
    std::cout << " tokens, the bound is " << packed.report.lower_bound << '\n';
  };
  auto const start = omnibal::next_fit(lengths, tokens, 100);
  show("as they come", start);
  show("fewer", omnibal::improve_packing(lengths, tokens, 100, start));
  show("only evener", omnibal::improve_packing(lengths, tokens, 100, start, {.passes = 0}));

  // Where a few samples must fill each group exactly, or a time limit decides: many passes, and a
  // functor that is asked after each whether to go on.
  auto const go_on = [](auto const& now) { return now.groups != now.lower_bound; };
  auto const best = omnibal::improve_packing(lengths, tokens, 100, start, {.passes = 2000}, go_on);
  std::cout << best.report.rounds << " passes\n";

  // Room in every group lets the loads become as even as whole samples allow.
  show("even", omnibal::improve_packing(lengths, tokens, 100, best,
                                        {.even_passes = 96, .spare_groups = 0.34}));
}

void random_groups_as_omnibal_trains() {
  print(omnibal::isf(samples, demand, capacity).groups);
  // Another seed, in every epoch, gives other groups of the same samples.
  auto const keep = omnibal::reaches_most(capacity);
  omnibal::rng::fisher_yates const shuffle{7};
  print(omnibal::isf(samples, demand, capacity, {.rounds = 5}, keep, shuffle).groups);

  // The groups of the reference implementation: NumPy's shuffle, and its rule of what is full.
  auto const is_full = [](auto const& load) { return load[0] == 9 || load[1] >= 4000; };
  auto const same = omnibal::isf(samples, demand, capacity, {.rounds = 10}, is_full,
                                 omnibal::rng::numpy_shuffle{42});
  print(same.groups);
  std::cout << same.report.below_keep << " of " << same.groups.size() << " groups are not full\n";
}

void groups_in_the_order_of_the_samples() {
  auto const packed = omnibal::next_fit(samples, &sample::tokens, 2500);
  print(packed.groups);
  // Each group is a range of the data that a loader reads in one piece, but for what fits nowhere.
  for (std::size_t group = 0; group != packed.groups.size(); ++group) {
    auto const indices = packed.groups[group];
    std::cout << "read samples " << indices.front() << " to " << indices.back() << '\n';
  }
  for (auto const index : packed.oversized) std::cout << "but not sample " << index << '\n';
  auto const freely = omnibal::best_packing(samples, &sample::tokens, 2500);
  std::cout << packed.groups.size() << " groups, in any order " << freely.groups.size() << '\n';
}

void a_stream() {
  omnibal::online_packer packer(capacity, {.buffer = 4});
  auto const train = [](auto const& group) {
    for (auto const id : group.ids) std::cout << ' ' << id;
    std::cout << ": " << group.load[0] << " images\n";
  };
  for (std::size_t id = 0; id != samples.size(); ++id) {
    if (auto const group = packer.push(id, demand(samples[id]))) train(group);
  }
  // A checkpoint holds what waits; a packer made of it has the same future.
  omnibal::online_packer resumed(packer.state());
  while (auto const group = resumed.flush()) train(group);
}

void a_capacity_for_a_wanted_batch() {
  omnibal::rng::engine random(7);
  std::vector<sample> many(5000);
  for (sample& made : many) {
    made.images = static_cast<int>(1 + 2 * omnibal::rng::below(random, 3));
    made.tokens = made.images * 256 + static_cast<int>(omnibal::rng::below(random, 900));
  }
  auto const found = omnibal::tune_capacity(many, demand, 4, omnibal::best_fit_decreasing,
                                            {.granularity = {1, 64}});
  std::cout << "capacity " << found.best.capacity[0] << " images, " << found.best.capacity[1]
            << " tokens: " << found.best.mean_group_size << " samples in a group\n";

  // Why not 5 images? Two of the commonest samples do not fit.
  for (auto const& warning :
       omnibal::capacity_warnings(many, demand, omnibal::resources{5, 4096})) {
    std::cout << "capacity " << warning.capacity << ": most samples have " << warning.commonest
              << ", two of them need " << warning.enough << '\n';
  }
}

void samples_above_the_capacity() {
  omnibal::resources const small{9, 2000};  // sample 3 has 2400 tokens
  auto packed = omnibal::best_packing(samples, demand, small);
  std::cout << packed.oversized.size() << " sample is in no group\n";
  packed = omnibal::place_oversized(packed, omnibal::oversize_policy::own_group);
  print(packed.groups);
  try {
    packed = omnibal::best_packing(samples, demand, small);
    packed = omnibal::place_oversized(packed, omnibal::oversize_policy::reject);
  } catch (std::invalid_argument const& error) {
    std::cout << error.what() << '\n';
  }
}

void long_texts() {
  std::vector<std::int64_t> const lengths{300, 2500, 700};
  auto const tokens = [](std::int64_t length) { return length; };
  auto const packed = omnibal::split_long(lengths, tokens, 1000);
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    std::cout << "group " << g << ":";
    for (auto const index : packed.groups[g]) {
      auto const& piece = packed.pieces[index];
      std::cout << "  text " << piece.sample << " [" << piece.first << ", "
                << (piece.first + piece.length) << ")";
    }
    std::cout << '\n';
  }
}

void how_good_any_packing_can_be() {
  std::vector<int> const lengths(10, 340);  // no three of them fit
  auto const tokens = [](int length) { return length; };
  auto const packed = omnibal::best_fit_decreasing(lengths, tokens, 1000);
  auto const bound = omnibal::packing_bound(lengths, tokens, 1000);
  auto const thorough =
      omnibal::packing_bound(lengths, tokens, 1000, {.effort = omnibal::effort::thorough});
  std::cout << packed.groups.size() << " groups, at least " << bound << " by volume, at least "
            << thorough << " for certain\n";
  if (packed.groups.size() == thorough) {
    // No packer can do better under this capacity. What would another one give?
    std::cout << "1020 tokens: at least " << omnibal::packing_bound(lengths, tokens, 1020) << '\n';
  }
}

void offsets_for_variable_length_attention() {
  auto const packed = omnibal::best_packing(samples, demand, capacity);
  auto const offsets = omnibal::cu_seqlens(packed.groups, samples, &sample::tokens);
  for (std::size_t g = 0; g != offsets.size(); ++g) {
    for (auto const offset : offsets[g]) std::cout << ' ' << offset;
    std::cout << ", the longest has " << offsets.longest(g) << '\n';
  }
  // One copy takes those of all groups to a device.
  std::cout << offsets.offsets().size() << " numbers, those of group 1 from " << offsets.begins()[1]
            << '\n';
  std::vector<std::int32_t> positions;
  offsets.position_ids(1, std::back_inserter(positions));
  std::cout << positions.size() << " position ids, restarting at " << offsets[1][1] << '\n';
}

void how_full_the_groups_are() {
  auto const packed = omnibal::best_packing(samples, demand, capacity);
  auto const loads = omnibal::group_loads(packed.groups, samples, demand);
  auto const used = omnibal::utilization(loads, capacity);
  std::cout << std::round(100 * used[0]) << " % of the images, " << std::round(100 * used[1])
            << " % of the tokens\n";
  auto const padding = omnibal::pad_ratio(packed.groups, samples, &sample::tokens);
  std::cout << "padding to the longest would waste " << std::round(100 * padding) << " %\n";
  auto const emptiest = std::min_element(loads.begin(), loads.end(),
                                         [](auto left, auto right) { return left[1] < right[1]; });
  std::cout << "group " << emptiest - loads.begin() << " has " << (*emptiest)[1] << " tokens\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"few_groups_at_once", few_groups_at_once},
       {"a_score_of_your_own", a_score_of_your_own},
       {"fewer_and_evener_groups", fewer_and_evener_groups},
       {"random_groups_as_omnibal_trains", random_groups_as_omnibal_trains},
       {"groups_in_the_order_of_the_samples", groups_in_the_order_of_the_samples},
       {"a_stream", a_stream},
       {"a_capacity_for_a_wanted_batch", a_capacity_for_a_wanted_batch},
       {"samples_above_the_capacity", samples_above_the_capacity},
       {"long_texts", long_texts},
       {"how_good_any_packing_can_be", how_good_any_packing_can_be},
       {"offsets_for_variable_length_attention", offsets_for_variable_length_attention},
       {"how_full_the_groups_are", how_full_the_groups_are}});
}
