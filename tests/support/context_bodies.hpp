// SPDX-License-Identifier: Apache-2.0
#pragma once

// What steps of context groups must satisfy on every communicator: causal attention over pieces is
// that over whole samples, bit for bit.

#include "gathered_rows.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/cut_pieces.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline constexpr std::size_t head_size = 4;
using head_vector = std::array<double, head_size>;

/// What a token takes to attention, and the output there.
struct token_state {
  head_vector query;
  head_vector key;
  head_vector value;
};

/// Any states, which name their token.
inline std::vector<token_state> states_of(std::size_t rank, std::size_t sample,
                                          std::int64_t length) {
  random_amounts random(rank * 1'000'003 + sample);
  std::vector<token_state> result(static_cast<std::size_t>(length));
  for (token_state& token : result) {
    for (head_vector* const part : {&token.query, &token.key, &token.value}) {
      for (double& number : *part) {
        number = static_cast<double>(random.between(-1000, 1000)) / 700;
      }
    }
  }
  return result;
}

/// One row of causal attention: softmax over the tokens up to `position`, which are added in order.
inline head_vector attend(head_vector const& query, std::span<token_state const> tokens,
                          std::size_t position) {
  std::vector<double> scores;
  double largest = 0;
  for (std::size_t t = 0; t <= position; ++t) {
    double score = 0;
    for (std::size_t i = 0; i != head_size; ++i) score += query[i] * tokens[t].key[i];
    scores.push_back(score);
    largest = t == 0 ? score : std::max(largest, score);
  }
  head_vector result{};
  double sum = 0;
  for (std::size_t t = 0; t <= position; ++t) {
    double const weight = std::exp(scores[t] - largest);
    sum += weight;
    for (std::size_t i = 0; i != head_size; ++i) result[i] += weight * tokens[t].value[i];
  }
  for (double& number : result) number /= sum;
  return result;
}

/// A step that all ranks have planned.
struct context_step_plan {
  std::vector<std::int64_t> lengths;
  std::vector<std::uint64_t> home_offsets;
  omnibal::context_plan groups;
  omnibal::context_layout layout;
  omnibal::exchange_plan exchange;
};

inline std::vector<std::int64_t> context_lengths(std::uint64_t round, std::size_t rank) {
  random_amounts random(round * 1000 + rank);
  std::vector<std::int64_t> result(
      static_cast<std::size_t>(round % 5 == 1 ? 0 : random.between(0, 6)));
  for (std::int64_t& length : result)
    length = random.between(0, 3) == 0 ? random.between(20, 60) : random.between(0, 9);
  return result;
}

template <class Comm>
context_step_plan plan_context_step(Comm& comm, std::vector<std::int64_t> const& local,
                                    omnibal::context_pieces_options const& options) {
  auto const ranks = static_cast<std::size_t>(comm.size());
  auto const gathered = omnibal::gather_lengths(comm, local);
  context_step_plan step;
  step.lengths.assign(gathered.values().begin(), gathered.values().end());
  step.home_offsets.assign(gathered.offsets().begin(), gathered.offsets().end());
  omnibal::context_cost cost{.micro_step = 4};
  for (std::size_t degree = 1; degree <= ranks; ++degree) {
    cost.degrees.push_back({1, 1.0 / static_cast<double>(degree), 0});
  }
  auto const memory = [](std::int64_t length, std::uint32_t degree) {
    return (length + degree - 1) / degree;
  };
  std::int64_t const most = std::max<std::int64_t>(12, 60 / static_cast<std::int64_t>(ranks) + 1);
  step.groups = omnibal::context_groups(step.lengths, ranks, cost, memory, {.capacity = most});
  step.layout = omnibal::context_pieces(step.groups, step.lengths, ranks, options);
  step.exchange = omnibal::context_exchange(step.layout, step.home_offsets, sizeof(token_state),
                                            {.ranks_per_node = 2});
  // Padding does not travel.
  for (std::size_t p = 0; p != step.layout.pieces().size(); ++p) {
    auto const tokens = step.layout.pieces()[p].tokens;
    require(step.exchange.bytes()[p] == static_cast<std::int64_t>(sizeof(token_state)) * tokens,
            "the bytes of a piece");
  }
  return step;
}

/// The states of whole samples of a group, where the offsets and the position ids of its ranks say
/// that its tokens are. `arrived` has the padded tokens of each rank in this micro-step.
inline std::vector<token_state> whole_samples(context_step_plan const& step, std::size_t micro_step,
                                              std::size_t g,
                                              omnibal::ragged<token_state> const& arrived) {
  auto const whole = step.layout.padded_sequences()[g];
  std::vector<token_state> result(static_cast<std::size_t>(whole.back()));
  omnibal::context_group const& group = step.groups.groups[g];
  std::vector<int> written(result.size(), 0);
  for (std::size_t rank = group.first_rank; rank != group.first_rank + group.degree; ++rank) {
    auto const offsets = step.layout.cu_seqlens(micro_step, rank);
    std::vector<std::int32_t> ids;
    step.layout.position_ids(micro_step, rank, std::back_inserter(ids));
    require(ids.size() == arrived[rank].size(), "an id for each token");
    for (std::size_t s = 0; s + 1 != offsets.size(); ++s) {
      for (std::int32_t t = offsets[s]; t != offsets[s + 1]; ++t) {
        auto const from = static_cast<std::size_t>(t);
        auto const to = static_cast<std::size_t>(whole[s] + ids[from]);
        result.at(to) = arrived[rank][from];
        ++written[to];
      }
    }
  }
  require(std::count(written.begin(), written.end(), 1) == std::ssize(written),
          "each token of a group once");
  return result;
}

/// Attention of this rank over its pieces in all micro-steps: an output for each token that came.
template <class Comm>
omnibal::ragged<head_vector> attend_pieces(Comm& comm, context_step_plan const& step,
                                           omnibal::ragged<token_state> const& arrived) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  omnibal::ragged<head_vector> result;
  std::size_t row = 0;
  for (std::size_t k = 0; k != step.layout.micro_steps(); ++k) {
    // Padding is zeros, which no token attends to.
    std::vector<token_state> padded;
    std::size_t const first_row = row;
    for (std::uint32_t const number : step.layout.pieces_of(k, rank)) {
      auto const& piece = step.layout.pieces()[number];
      auto const tokens = arrived[row++];
      require(std::ssize(tokens) == piece.tokens, "the tokens of a piece");
      padded.insert(padded.end(), tokens.begin(), tokens.end());
      padded.resize(padded.size() + static_cast<std::size_t>(piece.padded_tokens - piece.tokens));
    }
    auto const all = gathered_rows(comm, padded);
    std::size_t const g = step.groups.group_of(k, rank);
    if (g == step.groups.groups.size()) continue;
    auto const states = whole_samples(step, k, g, all);
    auto const whole = step.layout.padded_sequences()[g];
    row = first_row;
    for (std::uint32_t const number : step.layout.pieces_of(k, rank)) {
      auto const& piece = step.layout.pieces()[number];
      auto const group = step.groups.samples[g];
      auto const in_group = std::find(group.begin(), group.end(), piece.sample) - group.begin();
      auto const begin = static_cast<std::size_t>(whole[static_cast<std::size_t>(in_group)]);
      std::vector<head_vector> outputs;
      for (std::int32_t t = 0; t != piece.tokens; ++t) {
        auto const query = arrived[row][static_cast<std::size_t>(t)].query;
        outputs.push_back(attend(query, std::span<token_state const>(states).subspan(begin),
                                 static_cast<std::size_t>(piece.first + t)));
      }
      result.push(outputs);
      ++row;
    }
  }
  require(row == arrived.size(), "all pieces that arrived");
  return result;
}

template <class Comm>
void attend_over_groups(Comm& comm, omnibal::context_pieces_options const& options) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  bool is_shared = comm.size() == 1;
  for (std::uint64_t round = 0; round != 8; ++round) {
    auto const lengths = context_lengths(round, rank);
    std::vector<std::vector<token_state>> samples;
    for (std::size_t i = 0; i != lengths.size(); ++i) {
      samples.push_back(states_of(rank, i, lengths[i]));
    }
    auto const step = plan_context_step(comm, lengths, options);
    require(omnibal::all_equal(comm, step.exchange.digest()), "the same plan on all ranks");
    for (auto const& group : step.groups.groups) is_shared |= group.degree > 1;
    auto const cut = omnibal::cut_pieces(step.layout, step.home_offsets, rank, samples);
    auto const tokens_of = [&](std::uint32_t number) {
      return step.layout.pieces()[number].tokens;
    };
    auto const arrived = omnibal::exchange_samples(comm, omnibal::agreed(step.exchange),
                                                   omnibal::sized_field{cut, tokens_of});
    auto const outputs = attend_pieces(comm, step, arrived);
    auto const inverse = step.exchange.inverse();
    auto const back = omnibal::exchange_samples(comm, omnibal::agreed(inverse), outputs);
    auto const whole = omnibal::join_pieces(step.layout, step.home_offsets, rank, back);
    require(whole.size() == samples.size(), "a result for each sample");
    for (std::size_t i = 0; i != samples.size(); ++i) {
      require(whole[i].size() == samples[i].size(), "a result for each token");
      for (std::size_t t = 0; t != samples[i].size(); ++t) {
        require(whole[i][t] == attend(samples[i][t].query, samples[i], t),
                "attention of sample " + std::to_string(i) + ", token " + std::to_string(t));
      }
    }
  }
  require(is_shared, "a group of several ranks");
}

/// Values of several fields, with other numbers for each token, go and come back.
template <class Comm>
void return_context_fields(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  for (std::uint64_t round = 0; round != 10; ++round) {
    auto const lengths = context_lengths(round + 50, rank);
    omnibal::ragged<std::uint16_t> ids;
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i != lengths.size(); ++i) {
      auto const length = static_cast<std::size_t>(lengths[i]);
      std::vector<std::uint16_t> own(length);
      for (std::size_t t = 0; t != length; ++t) {
        own[t] = static_cast<std::uint16_t>(rank * 5000 + i * 100 + t);
      }
      ids.push(own);
      rows.emplace_back(3 * length, static_cast<float>(rank + 10 * i));
    }
    auto const step = plan_context_step(comm, lengths, {.multiple = 2});
    auto const cut_ids = omnibal::cut_pieces(step.layout, step.home_offsets, rank, ids);
    auto const cut_rows = omnibal::cut_pieces(step.layout, step.home_offsets, rank, rows);
    auto const there = omnibal::exchange_samples(comm, step.exchange, cut_ids, cut_rows);
    auto const back = omnibal::exchange_samples(comm, step.exchange.inverse(), there);
    auto const same_ids =
        omnibal::join_pieces(step.layout, step.home_offsets, rank, std::get<0>(back));
    auto const same_rows =
        omnibal::join_pieces(step.layout, step.home_offsets, rank, std::get<1>(back));
    for (std::size_t i = 0; i != lengths.size(); ++i) {
      require(to_vector(same_ids[i]) == to_vector(ids[i]), "ids that came back");
      require(to_vector(same_rows[i]) == to_vector(rows[i]), "rows that came back");
    }
  }
}

/// Calls `run(name, body)` for every body.
template <class Run>
void for_each_context_body(Run const& run) {
  run("attend_over_groups", [](auto& comm) { attend_over_groups(comm, {}); });
  run("attend_over_groups, padded", [](auto& comm) {
    attend_over_groups(comm, {.multiple = 3});
    attend_over_groups(comm, {.multiple = 2, .padding = omnibal::context_padding::to_equal_pieces});
  });
  run("return_context_fields", [](auto& comm) { return_context_fields(comm); });
}

}  // namespace test
