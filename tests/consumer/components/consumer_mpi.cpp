// SPDX-License-Identifier: Apache-2.0
// A user's program with the component mpi: all ranks learn the lengths of each other.

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/mpi.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  omnibal::mpi::environment const mpi(argc, argv);
  omnibal::mpi::communicator const world(MPI_COMM_WORLD);
  std::vector<std::int64_t> const local(world.rank() + 1, 1024);
  auto const lengths = omnibal::gather_lengths(world, local);
  std::printf("rank %zu of %zu knows %zu lengths\n", world.rank(), world.size(),
              lengths.values().size());
}
