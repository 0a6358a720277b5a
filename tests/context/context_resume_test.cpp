// SPDX-License-Identifier: Apache-2.0
// Samplers that draw the samples of steps of context groups go on where they stopped, also with
// other ranks, and every token is trained once.

#include "samples.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::sampler_state;
using omnibal::shard;

std::vector<std::int64_t> some_lengths(std::size_t count) {
  test::random_amounts random(count);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) length = random.heavy_tail(4000);
  return lengths;
}

/// How often each token of the data was trained.
class trained_tokens {
 public:
  explicit trained_tokens(std::vector<std::int64_t> const& lengths) {
    for (std::int64_t const length : lengths) {
      counts_.emplace_back(static_cast<std::size_t>(length), 0);
    }
  }

  /// Plans the step of these samples, which are numbers of the data, by rank, and trains the pieces
  /// that ranks get. Returns what identifies the plan.
  std::uint64_t train(std::vector<std::vector<std::uint32_t>> const& drawn) {
    std::vector<std::uint32_t> samples;
    std::vector<std::int64_t> lengths;
    std::vector<std::size_t> home_offsets{0};
    for (auto const& of_rank : drawn) {
      for (std::uint32_t const sample : of_rank) {
        samples.push_back(sample);
        lengths.push_back(static_cast<std::int64_t>(counts_[sample].size()));
      }
      home_offsets.push_back(samples.size());
    }
    std::size_t const ranks = drawn.size();
    omnibal::context_cost cost{.micro_step = 100};
    for (std::size_t degree = 1; degree <= ranks; ++degree) {
      cost.degrees.push_back({20, 1.0 / static_cast<double>(degree), 0});
    }
    auto const memory = [](std::int64_t length, std::uint32_t degree) {
      return (length + degree - 1) / degree;
    };
    auto const plan = omnibal::context_groups(lengths, ranks, cost, memory, {.capacity = 1500});
    auto const layout = omnibal::context_pieces(plan, lengths, ranks, {.multiple = 4});
    auto const exchange = omnibal::context_exchange(layout, home_offsets, 2);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      for (std::uint32_t const number : exchange.arrivals(rank)) {
        auto const& piece = layout.pieces()[number];
        for (std::int32_t t = 0; t != piece.tokens; ++t) {
          ++counts_[samples[piece.sample]][static_cast<std::size_t>(piece.first + t)];
        }
      }
    }
    return exchange.digest();
  }

  [[nodiscard]] bool all_are(int times) const {
    return std::all_of(counts_.begin(), counts_.end(), [times](std::vector<int> const& sample) {
      return std::count(sample.begin(), sample.end(), times) == std::ssize(sample);
    });
  }

 private:
  std::vector<std::vector<int>> counts_;
};

/// A data set in packs of one length.
struct packed_data {
  std::vector<std::int64_t> lengths = some_lengths(900);
  omnibal::grouping groups =
      omnibal::best_fit_decreasing(lengths, std::identity{}, std::int64_t{4000}).groups;
  std::vector<omnibal::resources<1>> loads = omnibal::group_loads(groups, lengths, std::identity{});

  [[nodiscard]] std::vector<omnibal::step_sampler<omnibal::resources<1>>> samplers(
      std::size_t ranks, std::optional<sampler_state> const& state) const {
    omnibal::schedule_steps_options const options{
        .seed = 5, .remainder = omnibal::remainder_policy::short_step};
    std::vector<omnibal::step_sampler<omnibal::resources<1>>> result;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      shard const place{ranks, rank};
      state ? result.emplace_back(loads, place, options, *state)
            : result.emplace_back(loads, place, options);
    }
    return result;
  }
  template <class Step>
  [[nodiscard]] static auto groups_of(Step const& step, std::size_t /*rank*/) {
    return step;
  }
};

/// The same in packs of three levels, on one, two and four ranks.
struct packed_levels {
  std::vector<std::int64_t> lengths = some_lengths(900);
  omnibal::level_packing packed = omnibal::pack_levels(
      lengths, std::identity{},
      std::vector<omnibal::packing_level>{
          {.length = 400}, {.length = 1600, .sequence = 2}, {.length = 4000, .sequence = 4}});
  omnibal::grouping groups = packed.groups;
  std::vector<omnibal::resources<1>> loads = omnibal::group_loads(groups, lengths, std::identity{});

  [[nodiscard]] std::vector<omnibal::level_sampler<omnibal::resources<1>>> samplers(
      std::size_t ranks, std::optional<sampler_state> const& state) const {
    omnibal::level_sampler_options const options{
        .schedule = {.seed = 5, .remainder = omnibal::remainder_policy::short_step},
        .short_first_steps = 2};
    std::vector<omnibal::level_sampler<omnibal::resources<1>>> result;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      shard const place{ranks, rank};
      state ? result.emplace_back(packed, loads, place, options, *state)
            : result.emplace_back(packed, loads, place, options);
    }
    return result;
  }
  /// The first of the ranks that share a pack has drawn it.
  [[nodiscard]] static std::span<std::uint32_t const> groups_of(omnibal::level_step const& step,
                                                                std::size_t rank) {
    bool const is_first = rank % static_cast<std::size_t>(step.setting.sequence) == 0;
    return is_first ? step.groups : std::span<std::uint32_t const>();
  }
};

template <class Data>
struct training {
  Data const* data;
  std::vector<typename std::remove_cvref_t<decltype(std::declval<Data const&>().samplers(
      1, std::nullopt))>::value_type>
      samplers;

  training(Data const& of, std::size_t ranks, std::optional<sampler_state> const& state = {})
      : data(&of), samplers(of.samplers(ranks, state)) {}

  [[nodiscard]] bool done() const { return samplers.front().done(); }
  [[nodiscard]] sampler_state state() const { return samplers.front().state(); }

  std::uint64_t step(trained_tokens& tokens) {
    std::vector<std::vector<std::uint32_t>> drawn(samplers.size());
    for (std::size_t rank = 0; rank != samplers.size(); ++rank) {
      auto const step = samplers[rank].next();
      for (std::uint32_t const pack : data->groups_of(step, rank)) {
        for (std::uint32_t const sample : data->groups[pack]) drawn[rank].push_back(sample);
      }
    }
    return tokens.train(drawn);
  }
};

template <class Data>
void resume_everywhere(std::vector<std::size_t> const& other_ranks) {
  Data const data;
  training<Data> all(data, 8);
  trained_tokens before(data.lengths);
  std::size_t steps = 0;
  for (; !all.done(); ++steps) {
    sampler_state const state = all.state();
    for (std::size_t const ranks : other_ranks) {
      training<Data> other(data, ranks, state);
      trained_tokens tokens = before;
      while (!other.done()) static_cast<void>(other.step(tokens));
      REQUIRE(tokens.all_are(1));
    }
    training<Data> same(data, 8, state);
    trained_tokens ignored(data.lengths);
    std::uint64_t const again = same.step(ignored);
    REQUIRE(all.step(before) == again);
  }
  CHECK(before.all_are(1));
  CHECK(steps > 3);
}

TEST_CASE("a step sampler resumes in steps of context groups, also with other ranks", "[context]") {
  resume_everywhere<packed_data>({3, 6, 8, 16});
}

TEST_CASE("a level sampler resumes in steps of context groups, also with other ranks",
          "[context]") {
  resume_everywhere<packed_levels>({4, 8, 16});
}

}  // namespace
