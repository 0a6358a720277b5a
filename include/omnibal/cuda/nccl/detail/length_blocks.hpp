// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The steps of gathering lengths on a device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// The lengths of the samples of this rank, on the device.
struct local_columns {
  /// The `kinds` numbers of each sample, one sample after the other; null if `offsets` contain
  /// them.
  std::int64_t const* values = nullptr;
  /// The positions of payloads, one element more than there are samples. The sizes of the payloads
  /// are a further column, the last one. Null if there are no payloads.
  std::uint64_t const* offsets = nullptr;
  std::uint32_t kinds = 1;
  /// The number of samples, or null if `given_count` is the number.
  std::uint32_t const* count = nullptr;
  /// The number of samples for which there is memory.
  std::uint32_t given_count = 0;

  [[nodiscard]] OMNIBAL_HOST_DEVICE bool has_count_above_memory() const {
    return count != nullptr && *count > given_count;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t size() const {
    return count == nullptr || has_count_above_memory() ? given_count : *count;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t columns() const {
    return kinds + (offsets == nullptr ? 0 : 1);
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t at(std::uint32_t sample,
                                                    std::uint32_t column) const {
    if (column < kinds) return values[std::size_t{sample} * kinds + column];
    return static_cast<std::int64_t>(offsets[sample + 1] - offsets[sample]);
  }
};

/// Writes the block of a rank: a header and the numbers of `most` samples, with zeros for missing
/// samples.
struct write_length_block {
  local_columns local;
  std::uint32_t most;
  gpu::fault const* faults;
  std::int64_t* block;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint32_t const count = local.size();
    if (i == 0) {
      gpu::fault const before = faults == nullptr ? gpu::fault::none : *faults;
      gpu::fault const own =
          local.has_count_above_memory() ? gpu::fault::unknown_index : gpu::fault::none;
      std::uint64_t const bits = static_cast<std::uint32_t>(before | own);
      block[0] = static_cast<std::int64_t>(bits << 32 | count);
      return;
    }
    std::uint32_t const columns = local.columns();
    auto const sample = static_cast<std::uint32_t>((i - 1) / columns);
    auto const column = static_cast<std::uint32_t>((i - 1) % columns);
    block[i] = sample < count ? local.at(sample, column) : 0;
  }
};

/// The gathered blocks of all ranks, one after the other.
struct length_blocks {
  std::int64_t const* words;
  std::uint32_t ranks;
  std::uint32_t most;
  std::uint32_t columns;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t block_words() const {
    return std::size_t{most} * columns + 1;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint64_t header(std::size_t rank) const {
    return static_cast<std::uint64_t>(words[rank * block_words()]);
  }
  /// Returns the number of samples of a rank, at most `most`. `sum_length_counts` raises a fault if
  /// the rank has more.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t count(std::size_t rank) const {
    auto const given = static_cast<std::uint32_t>(header(rank));
    return given < most ? given : most;
  }
};

/// Writes the position of the samples of each rank, as one block of threads. Raises the faults that
/// ranks had before, and `no_room` if a rank has more than `most` samples or all samples exceed
/// `room`.
struct sum_length_counts {
  /// The number of threads of the block, not tuned on a device.
  static constexpr int threads = 512;

  length_blocks blocks;
  std::uint64_t room;
  std::uint32_t* offsets;
  gpu::fault* faults;

  template <gpu::detail::thread_block Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    std::uint32_t const found = block.reduce(
        blocks.ranks,
        [&](std::size_t rank) {
          std::uint64_t const header = blocks.header(rank);
          bool const is_too_many = static_cast<std::uint32_t>(header) > blocks.most;
          auto const here = is_too_many ? gpu::fault::no_room : gpu::fault::none;
          return static_cast<std::uint32_t>(header >> 32) | static_cast<std::uint32_t>(here);
        },
        gpu::detail::unite_bits{}, std::uint32_t{0});
    block.for_each(blocks.ranks, [&](std::size_t rank) { offsets[rank] = blocks.count(rank); });
    std::uint32_t const total = block.exclusive_sum(offsets, blocks.ranks);
    block.once([&] {
      offsets[blocks.ranks] = total;
      if (found != 0) gpu::detail::raise(faults, static_cast<gpu::fault>(found));
      if (total > room) gpu::detail::raise(faults, gpu::fault::no_room);
    });
  }
};

/// The output array for the numbers of samples. Column `column` of sample `sample` is at `sample *
/// step + column * column_step`.
struct length_columns {
  std::int64_t* values;
  std::size_t step;
  std::size_t column_step;
  std::uint64_t room;
};

/// Writes the numbers of all samples one after the other.
struct collect_lengths {
  length_blocks blocks;
  std::uint32_t const* offsets;
  length_columns out;
  gpu::fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::size_t const rank = i / blocks.most;
    auto const sample = static_cast<std::uint32_t>(i % blocks.most);
    if (sample >= blocks.count(rank)) return;
    std::size_t const to = std::size_t{offsets[rank]} + sample;
    if (to >= out.room) return;
    std::int64_t const* const from =
        blocks.words + rank * blocks.block_words() + 1 + std::size_t{sample} * blocks.columns;
    for (std::uint32_t column = 0; column != blocks.columns; ++column) {
      if (from[column] < 0) gpu::detail::raise(faults, gpu::fault::invalid_amount);
      out.values[to * out.step + column * out.column_step] = from[column];
    }
  }
};

/// Gathers the lengths of all samples by one collective of blocks of `most` samples. `offsets` has
/// one more element than there are ranks. `wire` is NCCL on the stream of the backend. Every rank
/// also receives the faults that any rank has already reported.
template <gpu::detail::kernel_backend Backend, class Wire>
void gather_columns(Backend& b, Wire const& wire, local_columns const& local, std::uint32_t most,
                    std::uint32_t* offsets, length_columns const& out, gpu::fault* faults) {
  std::uint32_t const ranks = wire.size();
  std::size_t const words = std::size_t{most} * local.columns() + 1;
  auto* const own = b.template scratch<std::int64_t>(words);
  auto* const all = b.template scratch<std::int64_t>(words * ranks);
  b.for_each(words, write_length_block{local, most, faults, own});
  wire.all_gather(own, all, words * sizeof(std::int64_t));
  length_blocks const blocks{all, ranks, most, local.columns()};
  b.template for_each_block<sum_length_counts::threads>(
      1, 0, sum_length_counts{blocks, out.room, offsets, faults});
  b.for_each(std::size_t{ranks} * most, collect_lengths{blocks, offsets, out, faults});
}

}  // namespace omnibal::inline v0::nccl::detail
