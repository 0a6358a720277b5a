#pragma once

/// \file
/// Probes of a chain stage by stage, by a warp for each of thousands of limits.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/furthest.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/minimax_state.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// Walks along the stages that are as long as a limit allows.
struct probe_stages {
  minimax_chain of;
  std::size_t candidates;
  std::size_t stages;
  probed_stages* probed;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t k) const {
    if (of.state->is_found()) return;
    std::uint32_t const size = of.state->size;
    std::uint64_t const limit = of.state->limit(k, candidates);
    probed_stages seen = nothing_probed;
    std::uint32_t first = 0;
    for (std::size_t s = 1; s != stages && first != size; ++s) {
      std::uint64_t const start = of.sums[first];
      std::uint32_t const last =
          first + furthest(
                      block, [&](std::uint32_t d) { return of.sums[first + d] - start <= limit; },
                      size - first, of.likely);
      std::uint64_t const behind = last != size ? of.sums[last + 1] - start : ~std::uint64_t{0};
      seen = merge_probed{}(seen, {of.sums[last] - start, behind, 1});
      first = last;
    }
    std::uint64_t const rest = of.sums[size] - of.sums[first];
    bool const fits = rest <= limit;
    // One stage too many where the rest does not fit in the last.
    seen = merge_probed{}(seen, {rest, fits ? ~std::uint64_t{0} : rest, fits ? 0 : stages + 1});
    if (fits) seen.count = 0;
    block.once([&] { probed[k] = seen; });
  }
};

/// Walks along the stages from the last to the first.
struct cut_stages {
  minimax_chain of;
  std::size_t stages;
  std::size_t fewest;
  std::uint32_t* boundaries;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t last = of.state->size;
    std::uint64_t const limit = of.state->high;
    for (std::size_t s = stages; s-- != 1 && last != 0;) {
      std::uint64_t const end = of.sums[last];
      std::uint32_t const length = furthest(
          block, [&](std::uint32_t d) { return end - of.sums[last - d] <= limit; }, last,
          of.likely);
      last = larger_of(last - length, static_cast<std::uint32_t>(s * fewest));
      block.once([&] { boundaries[s] = last; });
    }
  }
};

/// The probes of one pass. One launch.
template <class Backend>
void probe_by_stages(Backend& backend, minimax_chain const& of, std::size_t candidates,
                     std::size_t stages, probed_stages* probed) {
  backend.template for_each_block<32>(candidates, 0, probe_stages{of, candidates, stages, probed});
}

/// The leftmost cuts with the smallest bottleneck. One launch.
template <class Backend>
void cut_by_stages(Backend& backend, minimax_chain const& of, std::size_t stages,
                   std::size_t fewest, std::uint32_t* boundaries) {
  backend.template for_each_block<32>(1, 0, cut_stages{of, stages, fewest, boundaries});
}

}  // namespace omnibal::inline v0::gpu::detail
