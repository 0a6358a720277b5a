// SPDX-License-Identifier: Apache-2.0
// Every rank learns the lengths of all samples over NCCL, and all make the same plan by which
// samples would move so that loads are even. One process for each rank:
//
//   export NCCL_COMM_ID=node0:29400
//   torchrun --no-python --nproc-per-node 4 ./gather_lengths_nccl
//   mpirun -n 8 -x NCCL_COMM_ID ./gather_lengths_nccl
//   export WORLD_SIZE=2
//   for r in 0 1; do RANK=$r LOCAL_RANK=$r ./gather_lengths_nccl & done; wait
//
// gather_lengths_nccl --help says what it takes and returns.

#include "options/small_options.hpp"

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/connect.hpp>
#include <omnibal/cuda/nccl/find_nodes.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

namespace {

/// Tokens of samples, most of them short.
std::vector<std::int64_t> draw_lengths(std::size_t rank, std::size_t count) {
  omnibal::rng::engine words(1024, rank);
  std::vector<std::int64_t> lengths(count);
  for (auto& length : lengths) {
    length = 64 + static_cast<std::int64_t>(
                      omnibal::rng::below(words, 16'384 >> omnibal::rng::below(words, 8)));
  }
  return lengths;
}

template <class Parts>
void print_loads(char const* what, Parts const& parts, std::span<std::int64_t const> lengths) {
  std::int64_t largest = 0;
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank != parts.size(); ++rank) {
    std::int64_t load = 0;
    for (auto const sample : parts[rank]) load += lengths[sample];
    largest = std::max(largest, load);
    sum += load;
  }
  double const mean = static_cast<double>(sum) / static_cast<double>(parts.size());
  std::printf("%s: the largest load is %.2f times the mean\n", what,
              mean > 0 ? static_cast<double>(largest) / mean : 1.0);
}

void run(std::size_t samples) {
  namespace nccl = omnibal::nccl;
  nccl::communicator comm = nccl::connect_by_environment();
  auto const nodes = nccl::find_nodes(comm);
  auto const local = draw_lengths(comm.rank(), samples);

  omnibal::gather_lengths_workspace<1> workspace;
  std::vector<double> seconds;
  for (int repeat = 0; repeat != 20; ++repeat) {
    auto const start = std::chrono::steady_clock::now();
    omnibal::gather_lengths(comm, local, std::identity{}, {.max_samples = samples}, workspace);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  auto const& all = workspace.result();
  auto const plan = omnibal::make_plan(all.offsets(), all.values(), all.values(),
                                       {.ranks_per_node = nodes.ranks_per_node()});
  if (comm.rank() != 0) return;

  std::nth_element(seconds.begin(), seconds.begin() + 10, seconds.end());
  std::printf("%zu ranks on %zu nodes, %zu samples; lengths gathered in %.0f us\n", comm.size(),
              nodes.node_count(), all.values().size(), seconds[10] * 1e6);
  std::vector<std::uint32_t> indices(all.values().size());
  std::iota(indices.begin(), indices.end(), 0u);
  omnibal::grouping_view const before(plan.home_offsets().data(), indices.data(), comm.size());
  print_loads("before", before, all.values());
  print_loads("after ", plan.arrivals(), all.values());
  std::int64_t const total =
      std::accumulate(all.values().begin(), all.values().end(), std::int64_t{0});
  std::printf("%.1f %% of the tokens change their rank\n",
              100.0 * static_cast<double>(plan.moved_bytes()) / static_cast<double>(total));
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const samples = examples::parse_number(
        {.name = "gather_lengths_nccl",
         .description =
             "Gathers the lengths of all samples over NCCL and plans on every rank which samples "
             "move so that loads are balanced. A launcher starts one process for each rank.",
         .example = "mpirun -n 4 gather_lengths_nccl 64",
         .exit_status = "0 if the plan is made; 77 without a device; otherwise 1."},
        {.usual = 64, .description = "Draw this number of samples on each rank"}, count, words);
    if (samples) run(*samples);
    return 0;
  } catch (omnibal::gpu::error const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    bool const is_missing =
        error.code() == cudaErrorInsufficientDriver || error.code() == cudaErrorNoDevice;
    return is_missing ? 77 : 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
