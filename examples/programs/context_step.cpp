// SPDX-License-Identifier: Apache-2.0
// A training step whose long document runs on several ranks: docs/guides/long_contexts.md. Its ranks are
// four threads, or with any argument those of mpirun.

#include "models/mean_attention.hpp"
#include "run_on_ranks.hpp"

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/cut_pieces.hpp>
#include <omnibal/exchange/exchange_samples.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

using document = std::vector<double>;

// What the data loader of a rank has drawn. Tokens are numbers here.
std::vector<document> draw(std::size_t rank) {
  std::vector<std::size_t> const lengths[] = {{36, 5}, {6, 7, 3}, {12}, {4, 9, 2}};
  std::vector<document> drawn;
  for (std::size_t const length : lengths[rank % 4]) {
    document& tokens = drawn.emplace_back();
    while (tokens.size() != length) tokens.push_back(static_cast<double>(3 * tokens.size() % 8));
  }
  return drawn;
}

template <class Comm>
void train(Comm& comm) {
  auto const rank = static_cast<std::size_t>(comm.rank());
  auto const ranks = static_cast<std::uint32_t>(comm.size());
  std::vector<document> const drawn = draw(rank);

  // Every rank learns all lengths and makes the same groups. 16 tokens fit on a rank.
  auto const lengths = omnibal::gather_lengths(comm, drawn, &document::size);
  auto const time = [](std::int64_t length, std::uint32_t degree) {
    return degree + static_cast<double>(50 * length + length * length) / 50 / degree;
  };
  // The same options as for the pieces, so that the memory holds their padding too.
  omnibal::context_pieces_options const options;
  auto const tokens = [&](std::int64_t length, std::uint32_t degree) {
    return omnibal::padded_piece_tokens(length, degree, options);
  };
  auto const cost = omnibal::tabulate_context_cost(time, ranks, {.lengths = {4, 12, 36}});
  auto const plan =
      omnibal::context_groups(lengths.values(), ranks, cost, tokens, {.capacity = 16});

  // Who gets which tokens; one exchange brings those of all micro-steps, in their order.
  auto const layout = omnibal::context_pieces(plan, lengths.values(), ranks, options);
  auto const exchange = omnibal::context_exchange(layout, lengths.offsets(), sizeof(double));
  auto const cut = omnibal::cut_pieces(layout, lengths.offsets(), rank, drawn);
  omnibal::ragged<double> const arrived = omnibal::exchange_samples(comm, exchange, cut);

  // Ranks of a group attend to all tokens of its samples.
  omnibal::ragged<double> outputs = arrived;
  std::size_t begin = 0;
  for (std::size_t k = 0; k != layout.micro_steps(); ++k) {
    auto const count = static_cast<std::size_t>(layout.tokens(k, rank));
    auto const own = arrived.values().subspan(begin, count);
    std::ranges::copy(examples::attend(comm, plan, layout, k, own, 16),
                      outputs.values().subspan(begin).begin());
    begin += count;
  }

  // What was made of each token goes back to the rank that has drawn its document.
  auto const back = omnibal::exchange_samples(comm, exchange.inverse(), outputs);
  auto const results = omnibal::join_pieces(layout, lengths.offsets(), rank, back);
  for (std::size_t i = 0; i != drawn.size(); ++i) {
    for (std::size_t t = 0; t != drawn[i].size(); ++t) {
      if (results[i][t] != examples::mean_attention(drawn[i], t)) std::printf("a wrong output\n");
    }
  }

  for (std::size_t k = 0; rank == 0 && k != layout.micro_steps(); ++k) {
    for (std::size_t r = 0; r != ranks; ++r) {
      std::printf("micro-step %zu, rank %zu: %2d tokens:", k, r, layout.tokens(k, r));
      for (std::uint32_t const number : layout.pieces_of(k, r)) {
        omnibal::context_piece const& piece = layout.pieces()[number];
        std::printf(" %u[%d, %d)", piece.sample, piece.first, piece.first + piece.tokens);
      }
      std::printf("\n");
    }
  }
}

int main(int count, char**) {
  auto const run = [](auto& comm) { train(comm); };
  if (count == 1) {
    omnibal::thread_communicator::run(4, run);
  } else {
    examples::run_on_mpi(run);
  }
}
