// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <atomic>
#include <functional>
#include <iostream>
#include <iterator>
#include <thread>
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
  std::cout << packed.groups.size() << " groups, at least " << packed.report.lower_bound << ", "
            << packed.oversized.size() << " oversized samples\n";
  auto const loads = omnibal::group_loads(packed.groups, samples, demand);
  auto const used = omnibal::utilization(loads, capacity);
  std::cout << 100 * used[0] << " % of the images, " << 100 * used[1] << " % of the tokens\n"
            << omnibal::pad_ratio(packed.groups, samples, &sample::tokens) << " would be padding\n";
  std::vector<int> const lengths(10, 340);  // no three of them fit; a better bound takes more time
  std::cout << omnibal::packing_bound(lengths, std::identity{}, 1000) << " by volume, "
            << omnibal::packing_bound(lengths, std::identity{}, 1000,
                                      {.effort = omnibal::effort::thorough})
            << " at thorough effort\n";
}

void a_score_of_your_own() {
  std::vector<sample> const few{{7, 2096}, {3, 3796}, {1, 200}};
  // The default leaves the smallest share of both. This score fills tokens first.
  auto const tokens_left = [](auto const& left, auto const& /*demand*/) { return left[1]; };
  print(omnibal::best_fit_decreasing(few, demand, capacity).groups);
  print(omnibal::best_fit_decreasing(few, demand, capacity, {}, tokens_left).groups);
}

void fewer_groups_or_similar_loads() {
  std::vector<int> const lengths{41, 37, 33, 29, 26, 24, 22, 19, 17, 14, 12, 9, 9, 8};
  auto const show = [&](char const* name, omnibal::packing const& packed) {
    std::cout << name;
    auto const loads = omnibal::group_loads(packed.groups, lengths, std::identity{});
    for (auto const& load : loads) std::cout << ' ' << load[0];
    std::cout << " tokens\n";
  };
  auto const start = omnibal::next_fit(lengths, std::identity{}, 100);
  show("next_fit:", start);
  // A functor that is called after each pass; false ends the search.
  auto const go_on = [](auto const& now) { return now.groups != now.lower_bound; };
  auto const best =
      omnibal::improve_packing(lengths, std::identity{}, 100, start, {.passes = 2000}, go_on);
  show("fewer:", best);
  // Room in every group lets the loads become similar.
  show("similar:", omnibal::improve_packing(lengths, std::identity{}, 100, best,
                                            {.even_passes = 96, .spare_groups = 0.34}));
}

void random_groups_as_omnibal_trains() {
  // Another seed in every epoch returns other groups of the same samples.
  auto const keep = omnibal::reaches_most(capacity);
  omnibal::rng::fisher_yates const shuffle{7};
  print(omnibal::isf(samples, demand, capacity, {.rounds = 5}, keep, shuffle).groups);
  // The groups of the reference implementation: NumPy's shuffle, and its rule for full groups.
  auto const is_full = [](auto const& load) { return load[0] == 9 || load[1] >= 4000; };
  auto const same = omnibal::isf(samples, demand, capacity, {.rounds = 10}, is_full,
                                 omnibal::rng::numpy_shuffle{42});
  print(same.groups);
  std::cout << same.report.below_keep << " of " << same.groups.size() << " groups are not full\n";
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
  // A checkpoint contains the samples that wait. A packer made from it behaves like the original.
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
  for (auto const& warning :
       omnibal::capacity_warnings(many, demand, omnibal::resources{5, 4096})) {
    std::cout << "capacity " << warning.capacity << ": most samples have " << warning.commonest
              << ", two of them need " << warning.enough << '\n';
  }
}

void padded_batches() {
  std::vector<int> const frames{100, 10, 10, 10, 100};
  print(omnibal::pack_padded(frames, std::identity{}, 150).groups);
}

void more_samples_than_one_machine_holds() {
  std::vector<std::vector<int>> const shards{{6, 4, 6}, {4, 12, 6, 3}};
  omnibal::sample_histogram<1> all;
  for (auto const& lengths : shards) all.merge(omnibal::count_samples(lengths, std::identity{}));
  auto const plan = omnibal::pack_histogram(all, 10);
  std::cout << plan.group_count << " groups, at least " << plan.lower_bound << ":";
  omnibal::sample_histogram<1> before;  // the samples of the shards before this one
  for (auto const& lengths : shards) {
    for (auto const group : omnibal::place_samples(plan, before, lengths, std::identity{})) {
      std::cout << ' ' << static_cast<std::int64_t>(group);  // `no_group` is -1
    }
    before.merge(omnibal::count_samples(lengths, std::identity{}));
  }
  std::cout << '\n';
}

void threads_of_your_own() {
  auto const two_threads = [](std::size_t count, auto const& body) {
    std::atomic<std::size_t> next = 0;
    auto const work = [&] {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    };
    std::thread other(work);
    work();
    other.join();
  };
  std::vector<int> const lengths(200'000, 512);
  std::cout << omnibal::count_samples(lengths, std::identity{}, two_threads).sample_count() << '\n';
}

void samples_above_the_capacity() {
  omnibal::resources const small{9, 2000};  // sample 3 has 2,400 tokens
  auto const packed = omnibal::best_packing(samples, demand, small);
  print(omnibal::place_oversized(packed, omnibal::oversize_policy::own_group).groups);
  // Texts can be cut instead.
  std::vector<std::int64_t> const lengths{300, 2500, 700};
  auto const texts = omnibal::split_long(lengths, std::identity{}, 1000);
  for (auto const group : texts.groups) {
    for (auto const index : group) {
      auto const& piece = texts.pieces[index];
      std::cout << "  text " << piece.sample << " [" << piece.first << ", "
                << (piece.first + piece.length) << ")";
    }
    std::cout << '\n';
  }
}

void offsets_for_variable_length_attention() {
  auto const packed = omnibal::best_packing(samples, demand, capacity);
  auto const offsets = omnibal::cu_seqlens(packed.groups, samples, &sample::tokens);
  for (auto const offset : offsets[1]) std::cout << offset << ' ';
  std::cout << "are the offsets of group 1; its longest sample has " << offsets.longest(1) << '\n';
  std::vector<std::int32_t> positions;
  offsets.position_ids(1, std::back_inserter(positions));
  std::cout << offsets.offsets().size() << " offsets; group 1 begins at " << offsets.begins()[1]
            << " and has " << positions.size() << " position ids\n";
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"few_groups_at_once", few_groups_at_once},
       {"a_score_of_your_own", a_score_of_your_own},
       {"fewer_groups_or_similar_loads", fewer_groups_or_similar_loads},
       {"random_groups_as_omnibal_trains", random_groups_as_omnibal_trains},
       {"a_stream", a_stream},
       {"a_capacity_for_a_wanted_batch", a_capacity_for_a_wanted_batch},
       {"padded_batches", padded_batches},
       {"more_samples_than_one_machine_holds", more_samples_than_one_machine_holds},
       {"threads_of_your_own", threads_of_your_own},
       {"samples_above_the_capacity", samples_above_the_capacity},
       {"offsets_for_variable_length_attention", offsets_for_variable_length_attention}});
}
