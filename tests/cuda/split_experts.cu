// SPDX-License-Identifier: Apache-2.0
// The split of tokens over copies of experts on the device is that of the host, layer by layer.

#include "device_program.hpp"

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/split_experts.cuh>
#include <omnibal/experts/split_experts.hpp>
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
  std::size_t slots;
  std::size_t layers;
};

/// Tokens and slots of layers, with first tokens.
struct layers_of_experts {
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> slots;
  std::vector<std::int64_t> first;
};

layers_of_experts draw(sizes const& size) {
  omnibal::rng::engine random(size.ranks);
  auto const below = [&](std::uint64_t limit) { return omnibal::rng::below(random, limit); };
  layers_of_experts result;
  result.tokens.assign(size.layers * size.experts, 0);
  for (std::size_t l = 0; l != size.layers; ++l) {
    for (std::size_t s = 0; s != size.ranks * size.slots; ++s) {
      // Each expert once if the slots suffice, then experts with low numbers.
      auto const expert = s < size.experts ? s : below(1 + size.experts / 4);
      result.slots.push_back(static_cast<std::uint32_t>(expert));
      result.tokens[l * size.experts + expert] =
          static_cast<std::int64_t>(below(std::uint64_t{2} << below(14)));
    }
    for (std::size_t r = 0; r != size.ranks; ++r) {
      result.first.push_back(static_cast<std::int64_t>(below(100)));
    }
  }
  return result;
}

void compare(test::comparison& results, gpu::execution<> const& exec, sizes const& size) {
  auto const given = draw(size);
  auto const tokens = gpu::upload(exec, given.tokens);
  auto const slots = gpu::upload(exec, given.slots);
  auto const first = gpu::upload(exec, given.first);
  gpu::device_array<std::int64_t> const split(exec, given.slots.size());
  gpu::device_array<std::int64_t> const rank_tokens(exec, size.layers * size.ranks);
  gpu::device_array<std::int64_t> const largest(exec, size.layers);
  gpu::device_array<std::uint8_t> const is_full(exec, size.layers * size.ranks);
  auto const faults = gpu::upload(exec, std::vector<gpu::fault>(1, gpu::fault::none));
  gpu::split_experts(exec, tokens, slots, size.ranks,
                     {.layers = size.layers, .first_tokens = first},
                     {split, rank_tokens, largest, is_full, faults});

  omnibal::expert_split all;
  std::vector<std::int64_t> largest_of_all;
  std::vector<std::uint8_t> full_of_all(size.layers * size.ranks, 0);
  for (std::size_t l = 0; l != size.layers; ++l) {
    auto const part = [&](auto const& values) {
      std::size_t const count = values.size() / size.layers;
      return std::span(values).subspan(l * count, count);
    };
    auto const host = omnibal::split_experts(part(given.tokens), part(given.slots), size.ranks,
                                             {.first_tokens = part(given.first)});
    all.tokens.insert(all.tokens.end(), host.tokens.begin(), host.tokens.end());
    all.rank_tokens.insert(all.rank_tokens.end(), host.rank_tokens.begin(), host.rank_tokens.end());
    largest_of_all.push_back(host.largest);
    for (std::uint32_t const rank : host.full_ranks) full_of_all[l * size.ranks + rank] = 1;
  }
  std::string const name = std::to_string(size.ranks) + " x " + std::to_string(size.slots);
  results.same(gpu::download(exec, split), all.tokens, "the split over " + name);
  results.same(gpu::download(exec, rank_tokens), all.rank_tokens, "the tokens of ranks, " + name);
  results.same(gpu::download(exec, largest), largest_of_all, "the largest ranks, " + name);
  results.same(gpu::download(exec, is_full), full_of_all, "the full ranks, " + name);
  results.same(gpu::download(exec, faults), std::vector<gpu::fault>(1, gpu::fault::none),
               "the faults, " + name);
}

}  // namespace

int main() {
  return test::device_program([](test::comparison& results) {
    auto const exec = gpu::on(cudaStreamPerThread);
    for (sizes const& size :
         {sizes{1, 1, 1, 1}, sizes{6, 3, 4, 2}, sizes{256, 8, 34, 3}, sizes{256, 16, 18, 2},
          sizes{256, 32, 9, 2}, sizes{256, 64, 5, 4}, sizes{500, 300, 3, 1}}) {
      compare(results, exec, size);
    }
  });
}
