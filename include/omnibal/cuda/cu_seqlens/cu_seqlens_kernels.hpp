// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cumulative sequence lengths of the samples of each group.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/group_loads.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// Writes the cumulative lengths of several groups in each block. One thread handles a small group,
/// and the whole block handles a large group.
template <class Length>
struct accumulate_lengths {
  static constexpr int min_blocks = 4;
  static constexpr std::uint64_t max_tokens = 0x7fffffff;

  demands_of_items<Length> of;
  std::uint64_t* begins;
  std::int32_t* offsets;
  std::size_t offset_room;
  std::int32_t* longest;
  std::size_t groups_per_block;

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t index) const {
    std::size_t const first = index * groups_per_block;
    std::size_t const here = smaller_of(groups_per_block, of.groups.size() - first);
    auto const size = [&](std::size_t k) { return std::size_t{of.groups.group_size(first + k)}; };

    block.for_each(here, [&](std::size_t k) {
      std::size_t const g = first + k;
      begins[g] = begin_of(g);
      if (g + 1 == of.groups.size()) begins[g + 1] = begin_of(g + 1);
      if (begin_of(g + 1) > offset_room) {
        raise(of.faults, fault::no_room);
        longest[g] = 0;
      } else if (size(k) <= group_tuning::thread_limit) {
        accumulate(g);
      }
    });
    std::size_t const largest = block.reduce(here, size, take_larger{}, std::size_t{0});
    if (largest <= group_tuning::thread_limit) return;
    for (std::size_t k = 0; k != here; ++k) {
      if (size(k) <= group_tuning::thread_limit || begin_of(first + k + 1) > offset_room) continue;
      accumulate(block, first + k, size(k));
    }
  }

 private:
  /// Returns the position of the first offset of group g. A group has one more offset than samples.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t begin_of(std::size_t g) const {
    return std::uint64_t{of.groups.offset(g)} + g;
  }

  OMNIBAL_HOST_DEVICE void accumulate(std::size_t g) const {
    std::int32_t* const out = offsets + begin_of(g);
    std::size_t const begin = of.groups.offset(g);
    std::uint64_t end = 0;
    std::uint64_t most = 0;
    out[0] = 0;
    for (std::size_t k = 0; k != of.groups.group_size(g); ++k) {
      std::uint64_t const tokens = of(begin + k).amounts[0];
      end = saturating_sum(end, tokens);
      most = larger_of(most, tokens);
      out[k + 1] = static_cast<std::int32_t>(smaller_of(end, max_tokens));
    }
    finish(g, end, most);
  }

  template <thread_block Block>
  OMNIBAL_HOST_DEVICE void accumulate(Block& block, std::size_t g, std::size_t size) const {
    // Sums of 32 bits cannot wrap if the total has at most 31 bits.
    auto* const out = reinterpret_cast<std::uint32_t*>(offsets + begin_of(g));
    std::size_t const begin = of.groups.offset(g);
    auto const tokens = [&](std::size_t k) { return of(begin + k).amounts[0]; };
    std::uint64_t const total = block.reduce(size, tokens, add_saturating{}, std::uint64_t{0});
    std::uint64_t const most = block.reduce(size, tokens, take_larger{}, std::uint64_t{0});
    bool const fits = total <= max_tokens;
    block.for_each(size + 1, [&](std::size_t k) {
      out[k] = k < size && fits ? static_cast<std::uint32_t>(tokens(k)) : 0;
    });
    block.exclusive_sum(out, size + 1);
    block.once([&] { finish(g, total, most); });
  }

  OMNIBAL_HOST_DEVICE void finish(std::size_t g, std::uint64_t total, std::uint64_t most) const {
    if (total > max_tokens) raise(of.faults, fault::overflow);
    longest[g] = static_cast<std::int32_t>(smaller_of(most, max_tokens));
  }
};

struct write_first_begin {
  std::uint64_t* begins;
  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const { begins[0] = 0; }
};

template <kernel_backend Backend, class Length>
void cu_seqlens(Backend& backend, grouping_view groups, Length const* lengths, std::size_t count,
                std::uint64_t* begins, std::int32_t* offsets, std::size_t offset_room,
                std::int32_t* longest, fault* faults) {
  if (groups.empty()) {
    backend.for_each(1, write_first_begin{begins});
    return;
  }
  std::size_t const per_block = groups_per_block(count, groups.size());
  backend.template for_each_block<group_tuning::threads>(
      parts_of(groups.size(), per_block), 0,
      accumulate_lengths<Length>{
          {groups, lengths, count, faults}, begins, offsets, offset_room, longest, per_block});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
