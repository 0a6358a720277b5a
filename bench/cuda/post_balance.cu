// SPDX-License-Identifier: Apache-2.0
// Times of post-balancing on one GPU: the lengths of 64 ranks and the plan, apart from the
// collective, and what an exchange copies, apart from the network.

#include "device_program.hpp"
#include "limits.cuh"
#include "moves.hpp"
#include "samples.hpp"
#include "timing.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/exchange_on_stream.hpp>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/post_balance.cuh>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace gpu = omnibal::gpu;
namespace nccl = omnibal::nccl;

namespace {

/// Mostly short lengths of 16 to 131071 tokens.
std::vector<std::int64_t> lengths_with_tail(std::size_t count, std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths) {
    std::int64_t const octave =
        std::min(bench::detail::uniform(random, 0, 12), bench::detail::uniform(random, 0, 12));
    length = bench::detail::uniform(random, 16, 31) << octave;
  }
  return lengths;
}

/// Rank 0 of some, whose collectives cost nothing: what the others send is there.
class silent_network {
 public:
  silent_network(std::uint32_t ranks, void const* gathered, cudaStream_t stream)
      : ranks_(ranks), gathered_(gathered), stream_(stream) {}

  [[nodiscard]] std::uint32_t rank() const { return 0; }
  [[nodiscard]] std::uint32_t size() const { return ranks_; }
  /// One copy within the device stands for the collective.
  void all_gather(void const*, void* out, std::size_t bytes) const {
    gpu::check(cudaMemcpyAsync(out, gathered_, ranks_ * bytes, cudaMemcpyDeviceToDevice, stream_));
  }
  template <class Post>
  void exchange(Post const&) const {}

 private:
  std::uint32_t ranks_;
  void const* gathered_;
  cudaStream_t stream_;
};

/// The silent network for a backend that runs, and for one that measures.
template <class Backend>
auto network_for(Backend const&, silent_network const& network) {
  if constexpr (std::derived_from<Backend, gpu::detail::scratch_meter>) {
    return nccl::detail::silent_wire{network.rank(), network.size()};
  } else {
    return network;
  }
}

/// Gathering costs, longest processing time first and the tables of the plan.
void time_plan(test::comparison& results, bench::stopwatch& watch) {
  constexpr std::uint32_t ranks = 64;
  constexpr std::uint32_t samples = 64;
  constexpr std::size_t all = ranks * samples;
  auto const pool = gpu::on(watch.stream());
  auto costs = lengths_with_tail(all, 1);
  for (std::int64_t& cost : costs) cost *= cost;
  std::vector<std::int64_t> blocks;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    blocks.push_back(samples);
    blocks.insert(blocks.end(), costs.begin() + static_cast<std::ptrdiff_t>(rank * samples),
                  costs.begin() + static_cast<std::ptrdiff_t>((rank + 1) * samples));
  }
  auto const gathered = gpu::upload(pool, blocks);
  auto const own = gpu::upload(pool, costs);
  nccl::device_plan<> const plan(pool, {.ranks = ranks, .max_samples = samples});
  gpu::device_array<std::int64_t> const columns(pool, all);
  auto const faults = gpu::upload(pool, std::vector(1, gpu::fault::none));

  nccl::detail::local_columns local;
  local.values = own.data();
  local.given_count = samples;
  auto const arrays = nccl::detail::arrays_of(plan, columns.data());
  silent_network const network(ranks, gathered.data(), watch.stream());
  auto const make = [&](auto& b) {
    nccl::detail::make_plan_on_stream(b, network_for(b, network), local, arrays, faults.data());
  };
  gpu::device_array<std::byte> const memory(pool, gpu::detail::device_scratch_bytes(make));
  gpu::given_scratch scratch(memory.span());
  auto const exec = gpu::on(watch.stream(), scratch);
  auto const run = [&] { gpu::detail::run_on_device(exec, make); };

  gpu::device_array<std::uint64_t> const keys(pool, all);
  gpu::check(cudaMemcpyAsync(keys.data(), own.data(), all * sizeof(std::uint64_t),
                             cudaMemcpyDeviceToDevice, watch.stream()));
  auto const sort = bench::time_sort(watch, gpu::device_span<std::uint64_t const>(keys),
                                     "CUB's sort of all costs");
  std::string const name = "gather and plan but the collective, 64 ranks x 64 samples";
  bench::promise const asked{.max_microseconds = 200};
  bench::print_time(name, watch.median(run), sort, asked);
  bench::print_time(name + ", graph", watch.median_of_graph(run), sort, asked);
  // A cost and an index of each sample.
  bench::time_hot_and_cold(watch, name, 12 * all, run);

  auto const parts = omnibal::lpt(costs, ranks);
  auto const items = gpu::download(pool, gpu::device_span<std::uint32_t const>(plan.item_at()));
  results.same(items, std::vector(parts.items().begin(), parts.items().end()), "the plan is lpt's");
  results.expect(gpu::download(pool, faults)[0] == gpu::fault::none, "there are no faults");
}

/// What rank 0 copies in an exchange of `ranks` ranks whose samples nearly all move, without the
/// network.
void time_copies(test::comparison& results, bench::stopwatch& watch, std::size_t row_bytes) {
  constexpr std::uint32_t ranks = 8;
  auto const rows = static_cast<std::uint32_t>(bench::bytes_to_move() / row_bytes);
  auto const pool = gpu::on(watch.stream());
  auto const made = bench::plan_of_moves(ranks, rows);
  auto const plan = nccl::device_plan<>::upload(pool, made, 0);
  std::size_t const arrivals = made.arrivals(0).size();
  gpu::device_array<std::byte> const in(pool, rows * row_bytes);
  gpu::device_array<std::byte> const out(pool, arrivals * row_bytes);
  gpu::check(cudaMemsetAsync(in.data(), 1, in.size(), watch.stream()));
  nccl::detail::payload const load =
      nccl::detail::payload_of("bench", nccl::device_rows<std::byte const>{in, row_bytes},
                               nccl::device_rows<std::byte>{out, row_bytes});
  auto const report = gpu::upload(pool, std::vector(1, nccl::exchange_report{}));
  bench::traffic const bytes(made, 0, row_bytes);
  gpu::device_array<std::uint32_t> const indices(pool, nccl::detail::index_count(plan));
  gpu::device_array<std::uint64_t> const positions(pool, nccl::detail::position_count(plan));
  gpu::device_array<std::uint64_t> const words(pool, 3 * ranks + 2);
  std::uint32_t* next = indices.data();
  auto const tables = nccl::detail::take_plan_tables(
      [&](std::size_t n) { return std::exchange(next, next + n); }, positions.data(), plan, 0);
  silent_network const network(ranks, nullptr, watch.stream());
  auto const find = [&](auto& b) {
    nccl::detail::make_plan_tables(b, tables, &report.data()->faults);
    nccl::detail::find_routes(b, tables, load, report.data(), &report.data()->faults, nullptr, 0,
                              words.data());
  };
  auto const move = [&](auto& b) {
    nccl::detail::moved_field field[] = {{tables, load, {bytes.sent, bytes.received, bytes.kept}}};
    nccl::detail::exchange_messages(b, network_for(b, network), std::span(field), report.data());
  };
  std::size_t const scratch_bytes =
      std::max(gpu::detail::device_scratch_bytes(find), gpu::detail::device_scratch_bytes(move));
  gpu::device_array<std::byte> const memory(pool, scratch_bytes);
  gpu::given_scratch scratch(memory.span());
  auto const exec = gpu::on(watch.stream(), scratch);
  gpu::detail::run_on_device(exec, find);
  auto const found = gpu::download(pool, words);
  results.same(std::vector(found.begin(), found.begin() + ranks), bytes.sent, "what is sent");
  results.same(std::vector(found.begin() + ranks, found.begin() + 2 * ranks), bytes.received,
               "what is received");
  results.expect(found[2 * ranks] == bytes.kept, "what stays");

  auto const copy = bench::time_copy(watch, bytes.copied(), "a copy of as much");
  std::string const of =
      ", " + std::to_string(rows) + " rows of " + std::to_string(row_bytes) + " B";
  bench::print_time("pack and unpack" + of,
                    watch.median([&] { gpu::detail::run_on_device(exec, move); }), copy);
  bench::print_time("tables of an exchange" + of,
                    watch.median([&] { gpu::detail::run_on_device(exec, find); }), copy);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    bench::stopwatch watch;
    time_plan(results, watch);
    for (int const bits : {10, 14, 20}) {
      std::size_t const row_bytes = std::size_t{1} << bits;
      time_copies(results, watch, row_bytes);
    }
  });
}
