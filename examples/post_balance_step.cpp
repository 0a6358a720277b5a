// SPDX-License-Identifier: Apache-2.0
// One training step on four ranks that even their work first: docs/guides/exchange.md.

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

using document = std::vector<std::uint16_t>;

// What the data loader of a rank has drawn: documents of very different lengths.
std::vector<document> draw(std::size_t rank) {
  std::vector<std::size_t> const lengths[] = {
      {1800, 1700, 1500}, {700, 700, 600, 500}, {1600, 900, 100}, {900, 50, 40, 30, 20}};
  std::vector<document> drawn;
  for (std::size_t const length : lengths[rank]) drawn.emplace_back(length);
  return drawn;
}

// A unit of work for each token, and attention: a unit for each 1000 pairs of tokens.
std::int64_t work(document const& tokens) {
  auto const length = static_cast<std::int64_t>(tokens.size());
  return length + length * length / 1000;
}

void train(omnibal::thread_communicator& comm) {
  std::vector<document> const drawn = draw(comm.rank());

  // Every rank learns the work and the bytes of all documents and makes the same plan.
  auto const bytes = [](document const& tokens) { return tokens.size() * sizeof(tokens[0]); };
  omnibal::exchange_plan const plan =
      omnibal::plan_exchange(comm, drawn, work, bytes, {.ranks_per_node = 2});

  // Documents move, and the forward and backward pass take what has arrived.
  std::vector<document> const mine = omnibal::exchange_samples(comm, plan, drawn);
  std::vector<float> losses;
  for (document const& tokens : mine) losses.push_back(static_cast<float>(tokens.size()));

  // A number for each document goes back to the rank that has drawn it.
  std::vector<float> const own = omnibal::exchange_samples(comm, plan.inverse(), losses);
  for (std::size_t i = 0; i != drawn.size(); ++i) {
    if (own[i] != static_cast<float>(drawn[i].size())) std::printf("a loss is lost\n");
  }

  auto const before = omnibal::gather_lengths(comm, drawn, work);
  auto const after = omnibal::gather_lengths(comm, mine, work);
  if (comm.rank() != 0) return;
  for (std::size_t rank = 0; rank != comm.size(); ++rank) {
    auto const sum = [](auto const& row) {
      std::int64_t result = 0;
      for (std::int64_t const value : row) result += value;
      return static_cast<int>(result);
    };
    std::printf("rank %zu: work %5d -> %5d\n", rank, sum(before[rank]), sum(after[rank]));
  }
  std::printf("%d bytes change their rank, %d their node\n", static_cast<int>(plan.moved_bytes()),
              static_cast<int>(plan.moved_bytes_across_nodes()));
}

int main() { omnibal::thread_communicator::run(4, train); }
