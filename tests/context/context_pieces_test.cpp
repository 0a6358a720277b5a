// SPDX-License-Identifier: Apache-2.0
#include "to_vector.hpp"

#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::context_group;
using omnibal::context_layout;
using omnibal::context_padding;
using omnibal::context_piece;
using omnibal::context_pieces;
using omnibal::context_pieces_options;
using omnibal::context_plan;

/// All samples in one micro-step, on one group.
context_plan one_group(std::uint32_t first_rank, std::uint32_t degree, std::size_t samples) {
  context_plan plan;
  plan.micro_step_offsets = {0, 1};
  plan.groups = {{first_rank, degree, 1}};
  for (std::uint32_t i = 0; i != samples; ++i) plan.samples.push(i);
  plan.samples.close();
  return plan;
}

/// Groups of any degrees anywhere, samples in any order, also groups and micro-steps without any.
context_plan random_plan(omnibal::rng::engine& random, std::uint32_t ranks, std::uint32_t samples) {
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t i = samples; i > 1; --i) {
    std::swap(order[i - 1], order[omnibal::rng::below(random, i)]);
  }
  context_plan plan;
  std::size_t next = 0;
  while (next != samples || plan.micro_steps() == 0) {
    auto rank = static_cast<std::uint32_t>(omnibal::rng::below(random, 2));
    while (rank < ranks) {
      auto const degree = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, ranks - rank));
      for (std::uint64_t n = omnibal::rng::below(random, 5); n != 0 && next != samples; --n) {
        plan.samples.push(order[next++]);
      }
      plan.samples.close();
      plan.groups.push_back({rank, degree, 0});
      rank += degree + static_cast<std::uint32_t>(omnibal::rng::below(random, 3));
    }
    plan.micro_step_offsets.push_back(static_cast<std::uint32_t>(plan.groups.size()));
  }
  return plan;
}

struct question {
  context_plan plan;
  std::vector<std::int64_t> lengths;
  std::size_t ranks = 1;
  context_pieces_options options{};

  [[nodiscard]] context_layout layout() const {
    return context_pieces(plan, lengths, ranks, options);
  }
  /// The tokens of a sample with its padding, by the words of the contract.
  [[nodiscard]] std::int64_t padded(std::uint32_t sample, std::uint32_t degree) const {
    std::int64_t unit = options.multiple;
    if (options.padding == context_padding::to_equal_pieces && degree > 1) unit *= 2 * degree;
    std::int64_t result = lengths[sample];
    while (result % unit != 0) ++result;
    return result;
  }
};

/// The tokens and causal pairs of a rank, with padding.
struct share {
  std::int64_t tokens = 0;
  std::int64_t pairs = 0;
};

/// A token is attended by itself and those before it. Counted one by one.
share share_of(std::vector<std::int32_t> const& positions) {
  share result;
  for (std::int32_t const position : positions) {
    ++result.tokens;
    result.pairs += position + 1;
  }
  return result;
}

template <class Value>
std::int64_t spread(std::vector<share> const& shares, Value share::*value) {
  auto const less = [value](share const& a, share const& b) { return a.*value < b.*value; };
  auto const [least, most] = std::minmax_element(shares.begin(), shares.end(), less);
  return (*most).*value - (*least).*value;
}

/// What is wrong with the cut of a sample, empty where nothing is. `owners[t]` counts who has the
/// t-th padded token.
std::string sample_faults(question const& asked, context_layout const& layout, std::size_t g,
                          std::size_t micro_step, std::uint32_t sample) {
  context_group const& group = asked.plan.groups[g];
  std::int64_t const length = asked.lengths[sample];
  std::int64_t const padded = asked.padded(sample, group.degree);
  std::int64_t const multiple = asked.options.multiple;
  std::vector<int> owners(static_cast<std::size_t>(padded), 0);
  std::vector<share> shares;
  for (std::uint32_t place = 0; place != group.degree; ++place) {
    std::vector<std::int32_t> positions;
    for (std::uint32_t const number : layout.pieces_of(micro_step, group.first_rank + place)) {
      context_piece const& piece = layout.pieces()[number];
      if (piece.sample != sample) continue;
      if (number < layout.piece_offsets()[sample] || number >= layout.piece_offsets()[sample + 1]) {
        return "a piece beside those of its sample";
      }
      if (piece.first % multiple != 0 || piece.padded_tokens <= 0 ||
          piece.padded_tokens % multiple != 0) {
        return "a piece that is no multiple";
      }
      auto const left = std::clamp<std::int64_t>(length - piece.first, 0, piece.padded_tokens);
      if (piece.tokens != left) return "a piece with other tokens";
      for (std::int32_t t = 0; t != piece.padded_tokens; ++t) {
        if (piece.first + t >= padded) return "a piece beyond its sample";
        ++owners[static_cast<std::size_t>(piece.first + t)];
        positions.push_back(piece.first + t);
      }
    }
    if (!std::is_sorted(positions.begin(), positions.end())) return "a tail before its head";
    shares.push_back(share_of(positions));
  }
  if (std::count(owners.begin(), owners.end(), 1) != padded) return "a token not once";
  bool const is_equal = asked.options.padding == context_padding::to_equal_pieces;
  if (spread(shares, &share::tokens) > (is_equal ? 0 : multiple)) return "uneven tokens";
  if (spread(shares, &share::pairs) > (is_equal ? 0 : multiple * (padded + multiple))) {
    return "uneven pairs";
  }
  return {};
}

/// What is wrong with the offsets and ids of a rank in a micro-step.
std::string rank_faults(question const& asked, context_layout const& layout, std::size_t k,
                        std::size_t rank) {
  std::size_t const g = asked.plan.group_of(k, rank);
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int32_t> positions;
  std::int32_t longest = 0;
  std::size_t pieces = 0;
  std::vector<std::uint32_t> samples;
  if (g != asked.plan.groups.size()) samples = test::to_vector(asked.plan.samples[g]);
  auto const own = layout.pieces_of(k, rank);
  for (std::uint32_t const sample : samples) {
    std::int32_t tokens = 0;
    for (; pieces != own.size() && layout.pieces()[own[pieces]].sample == sample; ++pieces) {
      context_piece const& piece = layout.pieces()[own[pieces]];
      tokens += piece.padded_tokens;
      for (std::int32_t t = 0; t != piece.padded_tokens; ++t) positions.push_back(piece.first + t);
    }
    offsets.push_back(offsets.back() + tokens);
    longest = std::max(longest, tokens);
  }
  if (pieces != own.size()) return "pieces that are not in the order of the group";
  if (test::to_vector(layout.cu_seqlens(k, rank)) != offsets) return "wrong offsets";
  if (layout.tokens(k, rank) != offsets.back()) return "a wrong number of tokens";
  if (layout.longest(k, rank) != longest) return "a wrong longest sequence";
  std::vector<std::int32_t> ids;
  layout.position_ids(k, rank, std::back_inserter(ids));
  return ids == positions ? "" : "wrong position ids";
}

/// What is wrong with a layout, empty where nothing is.
std::string layout_faults(question const& asked, context_layout const& layout) {
  context_plan const& plan = asked.plan;
  if (layout.ranks() != asked.ranks || layout.micro_steps() != plan.micro_steps() ||
      layout.sample_count() != asked.lengths.size()) {
    return "another step";
  }
  auto const whole = omnibal::cu_seqlens(plan.samples, asked.lengths);
  for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
    for (std::size_t rank = 0; rank != asked.ranks; ++rank) {
      std::string const found = rank_faults(asked, layout, k, rank);
      if (!found.empty()) return found;
    }
    for (std::size_t g = plan.micro_step_offsets[k]; g != plan.micro_step_offsets[k + 1]; ++g) {
      std::int32_t end = 0;
      std::vector<std::int32_t> padded{0};
      std::vector<share> shares;
      for (std::uint32_t const sample : plan.samples[g]) {
        std::string const found = sample_faults(asked, layout, g, k, sample);
        if (!found.empty()) return found;
        end += static_cast<std::int32_t>(asked.padded(sample, plan.groups[g].degree));
        padded.push_back(end);
      }
      if (test::to_vector(layout.padded_sequences()[g]) != padded) return "wrong padded offsets";
      if (test::to_vector(layout.sequences()[g]) != test::to_vector(whole[g]) ||
          layout.sequences().longest(g) != whole.longest(g)) {
        return "wrong offsets of whole samples";
      }
      for (std::uint32_t place = 0; place != plan.groups[g].degree; ++place) {
        shares.push_back({layout.tokens(k, plan.groups[g].first_rank + place), 0});
      }
      if (spread(shares, &share::tokens) > asked.options.multiple) return "uneven ranks";
    }
  }
  auto const numbers = layout.cells().items();
  std::vector<std::uint32_t> seen(numbers.begin(), numbers.end());
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint32_t> all(layout.pieces().size());
  std::iota(all.begin(), all.end(), 0u);
  if (seen != all) return "pieces lost or doubled";
  for (std::size_t p = 1; p < all.size(); ++p) {
    context_piece const& before = layout.pieces()[p - 1];
    context_piece const& piece = layout.pieces()[p];
    bool const follows = before.sample == piece.sample
                             ? before.first + before.padded_tokens == piece.first
                             : before.sample < piece.sample && piece.first == 0;
    if (!follows) return "pieces that are not in the order of the samples";
  }
  return {};
}

TEST_CASE("the first rank has head and tail, the last one the middle", "[context]") {
  auto const plan = one_group(1, 3, 1);
  auto const layout = context_pieces(plan, std::vector<int>{12}, 5);
  CHECK(test::to_vector(layout.pieces()) ==
        std::vector<context_piece>{
            {0, 0, 2, 2}, {0, 2, 2, 2}, {0, 4, 4, 4}, {0, 8, 2, 2}, {0, 10, 2, 2}});
  CHECK(layout.pieces_of(0, 0).empty());
  CHECK(test::to_vector(layout.pieces_of(0, 1)) == std::vector<std::uint32_t>{0, 4});
  CHECK(test::to_vector(layout.pieces_of(0, 2)) == std::vector<std::uint32_t>{1, 3});
  CHECK(test::to_vector(layout.pieces_of(0, 3)) == std::vector<std::uint32_t>{2});
  CHECK(test::to_vector(layout.cu_seqlens(0, 1)) == std::vector<std::int32_t>{0, 4});
  CHECK(test::to_vector(layout.cu_seqlens(0, 0)) == std::vector<std::int32_t>{0});
  std::vector<std::int32_t> ids;
  layout.position_ids(0, 1, std::back_inserter(ids));
  CHECK(ids == std::vector<std::int32_t>{0, 1, 10, 11});
}

TEST_CASE("equal pieces are those of Megatron's context parallelism", "[context]") {
  auto const plan = one_group(0, 2, 2);
  auto const layout = context_pieces(plan, std::vector<int>{10, 3}, 2,
                                     {.multiple = 2, .padding = context_padding::to_equal_pieces});
  // 10 tokens are padded to 16, of which rank 0 has the chunks 0 and 3; 3 to 8.
  CHECK(test::to_vector(layout.pieces()) ==
        std::vector<context_piece>{
            {0, 0, 4, 4}, {0, 4, 6, 8}, {0, 12, 0, 4}, {1, 0, 2, 2}, {1, 2, 1, 4}, {1, 6, 0, 2}});
  CHECK(test::to_vector(layout.cu_seqlens(0, 0)) == std::vector<std::int32_t>{0, 8, 12});
  CHECK(test::to_vector(layout.cu_seqlens(0, 1)) == std::vector<std::int32_t>{0, 8, 12});
  CHECK(test::to_vector(layout.sequences()[0]) == std::vector<std::int32_t>{0, 10, 13});
  CHECK(test::to_vector(layout.padded_sequences()[0]) == std::vector<std::int32_t>{0, 16, 24});
  CHECK(layout.sequences().longest(0) == 10);
}

TEST_CASE("every length on every degree is cut evenly, and nothing is lost", "[context]") {
  auto const multiple = GENERATE(1u, 2u, 7u);
  auto const padding = GENERATE(context_padding::to_multiple, context_padding::to_equal_pieces);
  for (std::uint32_t degree = 1; degree <= 9; ++degree) {
    for (std::int64_t length = 0; length <= 70; ++length) {
      // The same sample again and again, since the extra blocks go on from rank to rank.
      question const asked{
          one_group(2, degree, 4), {length, length, 1, length}, degree + 3, {multiple, padding}};
      INFO(length << " tokens on " << degree << " ranks");
      REQUIRE(layout_faults(asked, asked.layout()) == "");
    }
  }
}

TEST_CASE("a long sample is cut evenly among any number of ranks", "[context]") {
  for (std::uint32_t const degree : {2u, 3u, 24u, 63u, 64u}) {
    for (std::uint32_t const multiple : {1u, 16u, 128u}) {
      question const asked{one_group(0, degree, 1), {20'011}, 64, {multiple}};
      INFO(degree << " ranks, blocks of " << multiple);
      CHECK(layout_faults(asked, asked.layout()) == "");
    }
  }
}

TEST_CASE("pieces of any plan keep all promises", "[context]") {
  for (std::uint64_t seed = 1; seed != 300; ++seed) {
    omnibal::rng::engine random(seed);
    auto const ranks = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 12));
    auto const samples = static_cast<std::uint32_t>(omnibal::rng::below(random, 40));
    question asked{random_plan(random, ranks, samples), {}, ranks};
    for (std::uint32_t i = 0; i != samples; ++i) {
      std::uint64_t const most = std::uint64_t{1} << omnibal::rng::below(random, 9);
      asked.lengths.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, most)));
    }
    asked.options.multiple = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 6));
    if (omnibal::rng::below(random, 2) == 0) {
      asked.options.padding = context_padding::to_equal_pieces;
    }
    INFO("seed " << seed);
    REQUIRE(layout_faults(asked, asked.layout()) == "");
  }
}

TEST_CASE("pieces of a plan of context_groups", "[context]") {
  omnibal::context_cost cost{.micro_step = 10};
  for (int degree = 1; degree <= 16; ++degree) cost.degrees.push_back({5, 1.0 / degree, 0});
  std::vector<std::int64_t> lengths(200);
  for (std::size_t i = 0; i != lengths.size(); ++i) {
    lengths[i] = static_cast<std::int64_t>(i % 20 == 0 ? 3000 + 10 * i : i);
  }
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  question const asked{
      omnibal::context_groups(lengths, 16, cost, memory, {.capacity = 1024}), lengths, 16, {4}};
  CHECK(asked.plan.micro_steps() > 1);
  CHECK(layout_faults(asked, asked.layout()) == "");
}

TEST_CASE("no samples have no pieces", "[context]") {
  auto const layout = context_pieces(context_plan{}, std::vector<std::int64_t>{}, 3);
  CHECK(layout.ranks() == 3);
  CHECK(layout.micro_steps() == 0);
  CHECK(layout.pieces().empty());
  CHECK(layout.cells().empty());
  CHECK(layout.sequences().empty());
}

}  // namespace

TEST_CASE("padded tokens are those of the rank with most", "[context]") {
  using omnibal::context_padding;
  CHECK(omnibal::padded_piece_tokens(9, 2) == 5);
  CHECK(omnibal::padded_piece_tokens(9, 1, {.multiple = 4}) == 12);
  CHECK(omnibal::padded_piece_tokens(9, 2, {.multiple = 2}) == 6);
  CHECK(omnibal::padded_piece_tokens(9, 2, {.padding = context_padding::to_equal_pieces}) == 6);
  CHECK(omnibal::padded_piece_tokens(0, 3) == 0);
  for (std::uint32_t k = 0; k != 2'000; ++k) {
    omnibal::rng::engine random(k);
    auto const degree = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 9));
    std::vector<std::int64_t> const length{
        static_cast<std::int64_t>(omnibal::rng::below(random, 200))};
    omnibal::context_pieces_options const options{
        .multiple = static_cast<std::uint32_t>(1 + omnibal::rng::below(random, 5)),
        .padding = k % 2 == 0 ? context_padding::to_multiple : context_padding::to_equal_pieces};
    omnibal::context_plan plan;
    plan.micro_step_offsets = {0, 1};
    plan.groups = {{0, degree, 1}};
    plan.samples.push(0);
    plan.samples.close();
    auto const layout = omnibal::context_pieces(plan, length, degree, options);
    std::int64_t most = 0;
    for (std::uint32_t rank = 0; rank != degree; ++rank) {
      most = std::max<std::int64_t>(most, layout.tokens(0, rank));
    }
    REQUIRE(omnibal::padded_piece_tokens(length[0], degree, options) == most);
  }
}

TEST_CASE("plans with the padded tokens keep the capacity with the padding", "[context]") {
  int exceeded = 0;
  for (std::uint32_t k = 0; k != 400; ++k) {
    omnibal::rng::engine random(k);
    omnibal::context_pieces_options const options{
        .multiple = 1u << omnibal::rng::below(random, 3),
        .padding = k % 4 == 0 ? omnibal::context_padding::to_multiple
                              : omnibal::context_padding::to_equal_pieces};
    std::vector<std::int64_t> lengths(3 + omnibal::rng::below(random, 30));
    for (std::int64_t& length : lengths) {
      std::uint64_t const most = omnibal::rng::below(random, 3) == 0 ? 2000 : 60;
      length = static_cast<std::int64_t>(1 + omnibal::rng::below(random, most));
    }
    omnibal::context_cost cost;
    for (int d = 1; d <= 8; ++d) cost.degrees.push_back({0.01, 1.0 / d, 0.001 / d});
    auto const capacity = static_cast<std::int64_t>(256 + omnibal::rng::below(random, 256));
    auto const is_above = [&](auto const& memory) {
      auto const plan = omnibal::context_groups(
          lengths, 8, cost, memory, {.capacity = capacity, .degrees = omnibal::powers_of_two(8)});
      if (plan.status != omnibal::solve_status::solved) return false;
      auto const layout = omnibal::context_pieces(plan, lengths, 8, options);
      for (std::size_t step = 0; step != layout.micro_steps(); ++step) {
        for (std::size_t rank = 0; rank != 8; ++rank) {
          if (layout.tokens(step, rank) > capacity) return true;
        }
      }
      return false;
    };
    INFO("seed " << k);
    REQUIRE_FALSE(is_above([&](std::int64_t length, std::uint32_t degree) {
      return omnibal::padded_piece_tokens(length, degree, options);
    }));
    exceeded += is_above([](std::int64_t length, std::uint32_t degree) {
      return (length + degree - 1) / degree;
    })
                    ? 1
                    : 0;
  }
  // Without the padding the capacity does not hold.
  CHECK(exceeded > 0);
}
