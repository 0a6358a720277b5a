// SPDX-License-Identifier: Apache-2.0
#include "recipes.hpp"

#include <omnibal/omnibal.hpp>

#include <functional>
#include <iostream>
#include <vector>

namespace cookbook {

// 2,000 conversations and 40 documents.
std::vector<std::int64_t> make_lengths() {
  omnibal::rng::engine random(3);
  std::vector<std::int64_t> made;
  for (std::size_t i = 0; i != 2040; ++i) {
    bool const is_document = i % 51 == 50;
    auto const most = is_document ? 100'000u : 3'000u;
    made.push_back(static_cast<std::int64_t>(200 + omnibal::rng::below(random, most)));
  }
  return made;
}

std::int64_t attention(std::int64_t length) { return length * length; }

std::vector<std::int64_t> const lengths = make_lengths();
std::vector<omnibal::packing_level> const levels{{.length = 16'384},
                                                 {.length = 131'072, .sequence = 8}};

void which_levels() {
  // Measure full packs instead, and give a functor of `packing_level`.
  omnibal::language_profile const profile{.model = omnibal::llama3_8b,
                                          .device = {.flops_per_second = 156'000'000'000'000},
                                          .memory_bytes = 80'000'000'000,
                                          .ranks = 32,
                                          .document = 4096,
                                          .logit_tokens = 4096,
                                          .link_bytes_per_second = 100'000'000'000,
                                          .pack_overhead_nanoseconds = 300'000'000};
  auto const found = omnibal::select_levels(profile, {.layers = 32});
  for (auto const& level : found.levels) {
    std::cout << level.length << " tokens, degree " << level.sequence << ", "
              << level.checkpointed_layers << " layers checkpointed\n";
  }
}

void packs_of_two_lengths() {
  auto const report = [](std::vector<omnibal::packing_level> const& chosen) {
    auto const packed = omnibal::pack_levels(lengths, std::identity{}, chosen);
    for (auto const& level : packed.levels) {
      std::cout << level.group_count << " packs of " << level.setting.length
                << " tokens, filled with " << level.filled_in << " shorter samples\n";
    }
    auto const loads = omnibal::group_loads(packed.groups, lengths, attention);
    auto const steps = omnibal::level_steps(packed, loads, 32);
    auto const figures = omnibal::level_metrics(packed, steps, lengths);
    std::cout << "  ranks wait " << figures.attention_balance << " of the attention, "
              << figures.communication_ratio << " of the tokens are shared by ranks\n";
  };
  report(levels);
  report({{.length = 131'072, .sequence = 8}});  // only the long level
}

void train_on_levels_and_stop() {
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  auto const loads = omnibal::group_loads(packed.groups, lengths, attention);
  omnibal::level_sampler_options const options{.short_first_steps = 2};
  omnibal::level_sampler sampler(packed, loads, {.ranks = 32, .rank = 9}, options);
  for (int step = 0; step != 4; ++step) {
    auto const now = sampler.next();
    std::cout << "step " << step << ": " << now.groups.size() << " pack of " << now.setting.length
              << " tokens, degree " << now.setting.sequence << '\n';
  }
  omnibal::level_sampler resumed(packed, loads, {.ranks = 16, .rank = 9}, options, sampler.state());
  std::cout << "continues with step " << resumed.step() << " on 16 ranks\n";
}

void groups_of_ranks_in_a_step() {
  // Seconds of a sample of so many tokens on so many ranks; measured ones serve as well.
  auto const time = [](std::int64_t length, std::uint32_t degree) {
    auto const n = static_cast<double>(length);
    return 0.002 * degree + (1.2e-4 * n + 2e-9 * n * n) / degree;
  };
  auto const cost = omnibal::tabulate_context_cost(time, 8);
  // Padding counts: with the options that `context_pieces` gets later.
  omnibal::context_pieces_options const pad{.padding = omnibal::context_padding::to_equal_pieces};
  auto const tokens = [&](std::int64_t length, std::uint32_t degree) {
    return omnibal::padded_piece_tokens(length, degree, pad);
  };
  std::vector<std::int64_t> const step{40'000, 9'000, 8'000, 3'000, 2'500, 2'000, 900, 700};
  auto const plan = omnibal::context_groups(step, 8, cost, tokens, {.capacity = 16'384});
  for (std::size_t g = 0; g != plan.groups.size(); ++g) {
    std::cout << "ranks " << plan.groups[g].first_rank << " to "
              << plan.groups[g].first_rank + plan.groups[g].degree - 1 << ":";
    for (auto const sample : plan.samples[g]) std::cout << ' ' << step[sample];
    std::cout << '\n';
  }
  std::cout << plan.makespan << " s, no plan takes less than " << plan.lower_bound << " s\n";
}

void tokens_of_each_rank() {
  omnibal::thread_communicator::run(4, [](omnibal::thread_communicator& comm) {
    // Rank 0 has drawn a long document, the others a short one each.
    std::vector<std::vector<int>> const drawn{std::vector<int>(comm.rank() == 0 ? 48 : 6, 1)};
    auto const all = omnibal::gather_lengths(comm, drawn, &std::vector<int>::size);
    auto const time = [](std::int64_t length, std::uint32_t degree) {
      return 20 * degree + static_cast<double>(length * length) / degree;
    };
    auto const tokens = [](std::int64_t length, std::uint32_t degree) {
      return omnibal::padded_piece_tokens(length, degree);
    };
    auto const cost = omnibal::tabulate_context_cost(time, 4, {.lengths = {6, 24, 48}});
    auto const plan = omnibal::context_groups(all.values(), 4, cost, tokens, {.capacity = 12});
    auto const layout = omnibal::context_pieces(plan, all.values(), 4);
    auto const exchange = omnibal::context_exchange(layout, all.offsets(), sizeof(int));
    auto const cut = omnibal::cut_pieces(layout, all.offsets(), comm.rank(), drawn);
    auto const mine = omnibal::exchange_samples(comm, exchange, cut);
    // Attention of each group runs here; `layout` has its position ids and `cu_seqlens`.
    auto const back = omnibal::exchange_samples(comm, exchange.inverse(), mine);
    auto const joined = omnibal::join_pieces(layout, all.offsets(), comm.rank(), back);
    if (comm.rank() != 0) return;
    for (std::size_t rank = 0; rank != 4; ++rank) {
      std::cout << "first micro-step, rank " << rank << ':';
      for (auto const number : layout.pieces_of(0, rank)) {
        auto const& piece = layout.pieces()[number];
        auto const last = piece.first + piece.tokens;
        std::cout << " sample " << piece.sample << " [" << piece.first << ", " << last << ')';
      }
      std::cout << '\n';
    }
    std::cout << "all " << joined[0].size() << " tokens come back\n";
  });
}

void long_samples_wait_for_each_other() {
  omnibal::deferral_queue queue({.group_size = 2, .max_delay = 4, .threshold = 5'000});
  std::vector<std::vector<std::int64_t>> const drawn{
      {900, 800, 50'000}, {700, 1000, 900}, {800, 48'000, 600}, {900, 900, 1000}};
  auto const cost = [](std::int64_t length) { return length; };
  std::uint64_t id = 0;
  for (auto const& step_lengths : drawn) {
    std::vector<std::uint64_t> const ids{id, id + 1, id + 2};
    id += 3;
    auto const step = queue.push(ids, step_lengths, cost);
    for (auto const length : step.lengths) std::cout << length << ' ';
    std::cout << "run, " << queue.size() << " wait\n";
  }
  auto const saved = queue.state();  // for a checkpoint
  std::cout << "left: " << saved.waiting.size() << '\n';
}

}  // namespace cookbook

int main() {
  using namespace cookbook;
  run({{"which_levels", which_levels},
       {"packs_of_two_lengths", packs_of_two_lengths},
       {"train_on_levels_and_stop", train_on_levels_and_stop},
       {"groups_of_ranks_in_a_step", groups_of_ranks_in_a_step},
       {"tokens_of_each_rank", tokens_of_each_rank},
       {"long_samples_wait_for_each_other", long_samples_wait_for_each_other}});
}
