// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A stand-in for causal attention over the pieces of context groups.

#include <omnibal/comm/collectives.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/context/context_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace examples {

/// Causal attention that heeds all tokens alike: the mean of those up to a position.
[[nodiscard]] inline double mean_attention(std::span<double const> tokens, std::size_t position) {
  double sum = 0;
  for (std::size_t t = 0; t <= position; ++t) sum += tokens[t];
  return sum / static_cast<double>(position + 1);
}

/// Calls `f(t, first, position)` for each token t of a rank in a micro-step: `first` is where its
/// sample begins among the whole samples of the group.
template <class F>
void for_each_token(omnibal::context_layout const& layout, std::size_t micro_step, std::size_t rank,
                    std::span<std::int32_t const> whole, F const& f) {
  std::vector<std::int32_t> positions;
  layout.position_ids(micro_step, rank, std::back_inserter(positions));
  auto const ends = layout.cu_seqlens(micro_step, rank).subspan(1);
  for (std::size_t sample = 0, t = 0; t != positions.size(); ++t) {
    while (static_cast<std::int32_t>(t) == ends[sample]) ++sample;
    f(t, static_cast<std::size_t>(whole[sample]), static_cast<std::size_t>(positions[t]));
  }
}

/// The outputs of the tokens that this rank has in a micro-step. No rank has more than `most`. The
/// ranks of a group would gather the tokens of their samples; here all ranks do, for want of a
/// communicator of each group.
template <class Comm>
[[nodiscard]] std::vector<double> attend(Comm& comm, omnibal::context_plan const& plan,
                                         omnibal::context_layout const& layout,
                                         std::size_t micro_step, std::span<double const> tokens,
                                         std::size_t most) {
  std::vector<double> block(most);
  std::ranges::copy(tokens, block.begin());
  std::vector<double> const gathered = omnibal::all_gather(comm, block);
  auto const own = static_cast<std::size_t>(comm.rank());
  std::size_t const g = plan.group_of(micro_step, own);
  if (g == plan.groups.size()) return {};
  auto const whole = layout.padded_sequences()[g];
  std::vector<double> samples(static_cast<std::size_t>(whole.back()));
  for (std::size_t place = 0; place != plan.groups[g].degree; ++place) {
    std::size_t const rank = plan.groups[g].first_rank + place;
    auto const put = [&](std::size_t t, std::size_t first, std::size_t position) {
      samples[first + position] = gathered[rank * most + t];
    };
    for_each_token(layout, micro_step, rank, whole, put);
  }
  std::vector<double> outputs;
  auto const add = [&](std::size_t, std::size_t first, std::size_t position) {
    outputs.push_back(mean_attention(std::span(samples).subspan(first), position));
  };
  for_each_token(layout, micro_step, own, whole, add);
  return outputs;
}

}  // namespace examples
