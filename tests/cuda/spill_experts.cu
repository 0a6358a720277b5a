// SPDX-License-Identifier: Apache-2.0
// The plan of foreign copies of experts on the device is that of the host, layer by layer.

#include "device_program.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/spill_experts.cuh>
#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

struct sizes {
  std::size_t experts;
  std::size_t ranks;
  std::size_t layers;
};

void compare(test::comparison& results, gpu::execution<> const& exec, sizes const& size) {
  omnibal::rng::engine random(size.ranks);
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> home;
  for (std::size_t e = 0; e != size.layers * size.experts; ++e) {
    std::uint64_t const limit = std::uint64_t{2} << omnibal::rng::below(random, 14);
    tokens.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, limit)));
    home.push_back(static_cast<std::uint32_t>(e % size.experts * size.ranks / size.experts));
  }
  std::size_t const room = size.experts + size.ranks;
  auto const given_tokens = gpu::upload(exec, tokens);
  auto const given_home = gpu::upload(exec, home);
  gpu::device_array<omnibal::foreign_copy> const copies(exec, size.layers * room);
  gpu::device_array<std::uint32_t> const copy_count(exec, size.layers);
  gpu::device_array<std::int64_t> const home_tokens(exec, tokens.size());
  gpu::device_array<std::int64_t> const rank_tokens(exec, size.layers * size.ranks);
  gpu::device_array<std::int64_t> const largest(exec, size.layers);
  gpu::device_array<std::int64_t> const cap(exec, size.layers);
  gpu::device_array<std::uint32_t> const fewest(exec, size.layers);
  gpu::device_array<omnibal::solve_status> const status(exec, size.layers);
  gpu::device_array<std::uint8_t> const is_proven(exec, size.layers);
  auto const faults = gpu::upload(exec, std::vector<gpu::fault>(1, gpu::fault::none));
  gpu::spill_experts(exec, given_tokens, given_home, size.ranks, {.layers = size.layers},
                     {copies, copy_count, home_tokens, rank_tokens, largest, cap, fewest, status,
                      is_proven, faults});

  omnibal::spill_plan all;
  std::vector<std::int64_t> largest_of_all;
  std::vector<std::uint32_t> fewest_of_all;
  std::vector<std::uint8_t> proven_of_all;
  for (std::size_t l = 0; l != size.layers; ++l) {
    auto const part = [&](auto const& values) {
      return std::span(values).subspan(l * size.experts, size.experts);
    };
    auto const host = omnibal::spill_experts(part(tokens), part(home), size.ranks,
                                             {.effort = omnibal::effort::fast});
    all.copies.insert(all.copies.end(), host.copies.begin(), host.copies.end());
    all.copies.resize((l + 1) * room);
    all.rank_tokens.insert(all.rank_tokens.end(), host.rank_tokens.begin(), host.rank_tokens.end());
    largest_of_all.push_back(host.largest);
    fewest_of_all.push_back(static_cast<std::uint32_t>(host.fewest_copies));
    proven_of_all.push_back(host.proven ? 1 : 0);
  }
  std::string const name = std::to_string(size.experts) + " experts";
  results.same(gpu::download(exec, copies), all.copies, "the copies of " + name);
  results.same(gpu::download(exec, rank_tokens), all.rank_tokens, "the tokens of ranks, " + name);
  results.same(gpu::download(exec, largest), largest_of_all, "the largest ranks, " + name);
  results.same(gpu::download(exec, fewest), fewest_of_all, "the bounds, " + name);
  results.same(gpu::download(exec, is_proven), proven_of_all, "the proofs, " + name);
  results.same(gpu::download(exec, faults), std::vector<gpu::fault>(1, gpu::fault::none),
               "the faults, " + name);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    auto const exec = gpu::on(cudaStreamPerThread);
    for (sizes const& size : {sizes{1, 1, 1}, sizes{6, 3, 2}, sizes{128, 32, 3}, sizes{128, 64, 4},
                              sizes{900, 500, 1}}) {
      compare(results, exec, size);
    }
  });
}
