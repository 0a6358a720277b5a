// SPDX-License-Identifier: Apache-2.0
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/mpi.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  omnibal::mpi::environment const mpi(argc, argv);
  omnibal::mpi::communicator comm;  // its own duplicate of MPI_COMM_WORLD

  // Rank 0 has drawn three long documents, the others a short one each.
  std::vector<std::vector<int>> drawn(comm.rank() == 0 ? 3 : 1);
  for (auto& tokens : drawn) tokens.resize(comm.rank() == 0 ? 900 : 100);
  auto const length = [](std::vector<int> const& tokens) { return tokens.size(); };
  auto const bytes = [](std::vector<int> const& tokens) { return 4 * tokens.size(); };

  auto const plan = omnibal::plan_exchange(comm, drawn, length, bytes);
  auto const mine = omnibal::exchange_samples(comm, plan, drawn);
  auto const all = omnibal::gather_lengths(comm, mine, length);
  if (comm.rank() != 0) return 0;
  for (std::size_t rank = 0; rank != all.size(); ++rank) {
    std::cout << "rank " << rank << " trains";
    for (auto const tokens : all[rank]) std::cout << ' ' << tokens;
    std::cout << '\n';
  }
}
