#pragma once

/// \file
/// `best_fit_rounds` as a sequence of launches.

#include <omnibal/config.hpp>
#include <omnibal/cuda/best_fit_rounds/fit_rounds.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/scratch_meter.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

/// The key by which sizes descend; that of oversized samples is above all others.
template <class Amount>
struct fit_measure {
  Amount const* demands;
  std::uint64_t capacity;
  std::uint64_t* keys;
  std::uint32_t* indices;
  fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    std::uint64_t const size = checked_amount(demands[i], 0, faults);
    keys[i] = size <= capacity ? capacity - size : capacity + 1;
    indices[i] = static_cast<std::uint32_t>(i);
  }
};

/// From sorted keys to sizes, and where the samples that fit and those that take something end.
/// Every sample that fits waits.
struct fit_sizes {
  fit_arrays arrays;
  std::uint64_t capacity;
  std::size_t count;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    std::uint64_t const key = arrays.keys[k];
    std::uint64_t const next = k + 1 == count ? capacity + 1 : arrays.keys[k + 1];
    auto const number = static_cast<std::uint32_t>(k);
    if (key <= capacity && next > capacity) arrays.state->fitting = number + 1;
    if (key < capacity && next >= capacity) arrays.state->positive = number + 1;
    // No group has this number.
    if (key > capacity) arrays.group_of[k] = static_cast<std::uint32_t>(count);
    arrays.sizes[k] = capacity - key;
    arrays.waiting[k] = number;
  }
};

/// Writes items, offsets, oversized samples and the report. Samples are sorted by their group.
struct fit_finish {
  std::uint32_t const* group_of;
  std::uint32_t const* indices;
  fit_state const* state;
  std::size_t count;
  packing_span out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t k) const {
    std::size_t const fitting = state->fitting;
    std::size_t const groups = state->group_count;
    std::size_t const room = out.groups.room();
    if (k < fitting) {
      std::uint32_t const group = group_of[k];
      out.groups.items[k] = indices[k];
      bool const is_first = k == 0 || group_of[k - 1] != group;
      if (is_first && group < room) out.groups.offsets[group] = static_cast<std::uint32_t>(k);
    } else if (k < count && k - fitting < out.oversized.size()) {
      out.oversized[k - fitting] = indices[k];
    }
    if (k <= room && k >= groups) out.groups.offsets[k] = state->fitting;
    if (k == 0) write_numbers(fitting, groups, room);
  }

 private:
  OMNIBAL_HOST_DEVICE void write_numbers(std::size_t fitting, std::size_t groups,
                                         std::size_t room) const {
    if (groups > room) raise(out.faults.data(), fault::no_room);
    if (groups > room) out.groups.offsets[room] = state->fitting;
    if (count - fitting > out.oversized.size()) raise(out.faults.data(), fault::no_room);
    if (!out.groups.group_count.empty()) {
      out.groups.group_count[0] = static_cast<std::uint32_t>(groups);
    }
    if (!out.oversized_count.empty()) {
      out.oversized_count[0] = static_cast<std::uint32_t>(count - fitting);
    }
    if (out.report.empty()) return;
    packing_report report;
    report.lower_bound = state->lower_bound;
    report.rounds = state->rounds;
    report.item_rounds = state->item_rounds;
    out.report[0] = report;
  }
};

/// The number of bits of a value.
[[nodiscard]] constexpr int bits_of(std::uint64_t value) {
  int bits = 0;
  for (; value != 0; value >>= 1) ++bits;
  return bits;
}

/// Two sorts, and one launch for all rounds.
template <class Backend, class Amount>
void best_fit_rounds(Backend& backend, Amount const* demands, std::size_t count,
                     std::uint64_t capacity, std::size_t most_blocks, packing_span const& out) {
  fit_arrays const arrays = make_fit_arrays(backend, count);
  auto* const indices = backend.template scratch<std::uint32_t>(count);
  backend.fill_zero(arrays.state, 1);
  backend.for_each(count,
                   fit_measure<Amount>{demands, capacity, arrays.keys, indices, out.faults.data()});
  backend.sort_pairs(arrays.keys, indices, count, 0, bits_of(capacity + 1));
  backend.for_each(count, fit_sizes{arrays, capacity, count});
  std::size_t const blocks = smaller_of(most_blocks, most_grid_blocks);
  backend.template for_grid<best_fit_tuning::threads>(
      smaller_of(count / best_fit_tuning::least_indices, blocks * best_fit_tuning::threads - 1),
      fit_rounds::shared_bytes, fit_rounds{arrays, capacity});
  backend.sort_pairs(arrays.group_of, indices, count, 0, bits_of(count));
  std::size_t const written = larger_of(count, out.groups.offsets.size());
  backend.for_each(written, fit_finish{arrays.group_of, indices, arrays.state, count, out});
}

}  // namespace omnibal::inline v0::gpu::detail
