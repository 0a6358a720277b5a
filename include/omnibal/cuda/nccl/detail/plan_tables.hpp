#pragma once

/// \file
/// What a rank sends, keeps and gets, found on the device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// The first position of ascending numbers that is not below `value`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t position_of(std::uint32_t const* numbers,
                                                                   std::uint32_t count,
                                                                   std::uint32_t value) {
  return gpu::detail::first_false(std::uint32_t{0}, count,
                                  [&](std::uint32_t k) { return numbers[k] < value; });
}

/// The last of `owners` whose offset is not above `position`: that which has it. Precondition:
/// `position < offsets[owners]`.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint32_t owner_of(std::uint32_t const* offsets,
                                                                std::uint32_t owners,
                                                                std::uint32_t position) {
  return position_of(offsets, owners + 1, position + 1) - 1;
}

/// The samples of a rank before and after an exchange, in the order in which they travel: by
/// destination and by source, and then as they arrive, which both sides know. What stays is sent to
/// oneself. Trivially copyable.
struct plan_tables {
  device_plan_view plan;
  std::uint32_t rank;
  /// The positions of the samples before, by slot, and the slots.
  std::uint32_t* leaving;
  std::uint32_t* leaving_slots;
  /// The positions of the samples after, by source, and the sources.
  std::uint32_t* coming;
  std::uint32_t* coming_from;
  /// The first of `leaving` for each rank and of `coming` from each, and the ends.
  std::uint32_t* send_begin;
  std::uint32_t* receive_begin;

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t home_count() const {
    std::uint32_t const count = plan.home_offsets[rank + 1] - plan.home_offsets[rank];
    return count < plan.most_home ? count : plan.most_home;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t arrival_count() const {
    std::uint32_t const count = plan.arrival_offsets[rank + 1] - plan.arrival_offsets[rank];
    return count < plan.most_arrivals ? count : plan.most_arrivals;
  }

  /// Whether the k-th that leaves, or comes, is one that stays.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool leaves_to_itself(std::uint32_t k) const {
    return k >= send_begin[rank] && k < send_begin[rank + 1];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool comes_from_itself(std::uint32_t k) const {
    return k >= receive_begin[rank] && k < receive_begin[rank + 1];
  }

  /// The sample of the global batch that leaves or comes k-th.
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_leaving(std::uint32_t k) const {
    return plan.home_offsets[rank] + leaving[k];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::uint32_t sample_coming(std::uint32_t k) const {
    return plan.item_at[plan.arrival_offsets[rank] + coming[k]];
  }
};

/// Keys by which both lists are sorted; what is padding goes to the end.
struct write_plan_keys {
  plan_tables tables;
  gpu::fault* faults;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    auto const& plan = tables.plan;
    auto const k = static_cast<std::uint32_t>(i);
    std::uint32_t const samples = plan.home_offsets[plan.ranks];
    if (k < plan.most_home) {
      bool const is_there = k < tables.home_count();
      tables.leaving[k] = k;
      tables.leaving_slots[k] =
          is_there ? plan.slot_of[plan.home_offsets[tables.rank] + k] : plan.most_samples;
    }
    if (k < plan.most_arrivals) {
      std::uint32_t source = plan.ranks;
      if (k < tables.arrival_count()) {
        std::uint32_t const sample = plan.item_at[plan.arrival_offsets[tables.rank] + k];
        if (sample < samples) {
          source = owner_of(plan.home_offsets, plan.ranks, sample);
        } else {
          gpu::detail::raise(faults, gpu::fault::unknown_index);
        }
      }
      tables.coming[k] = k;
      tables.coming_from[k] = source;
    }
    if (k != 0) return;
    bool const fits =
        plan.home_offsets[tables.rank + 1] - plan.home_offsets[tables.rank] <= plan.most_home &&
        plan.arrival_offsets[tables.rank + 1] - plan.arrival_offsets[tables.rank] <=
            plan.most_arrivals;
    if (!fits) gpu::detail::raise(faults, gpu::fault::no_room);
  }
};

/// Where the samples for each rank, and from each, begin in the sorted lists.
struct find_plan_begins {
  plan_tables tables;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t peer) const {
    auto const& plan = tables.plan;
    tables.send_begin[peer] =
        position_of(tables.leaving_slots, plan.most_home, plan.arrival_offsets[peer]);
    tables.receive_begin[peer] =
        position_of(tables.coming_from, plan.most_arrivals, static_cast<std::uint32_t>(peer));
  }
};

/// Takes the memory of the tables from `take(bytes)`-like scratch of a backend.
template <class Take>
[[nodiscard]] plan_tables take_plan_tables(Take const& take, device_plan_view const& plan,
                                           std::uint32_t rank) {
  plan_tables tables{};
  tables.plan = plan;
  tables.rank = rank;
  tables.leaving = take(plan.most_home);
  tables.leaving_slots = take(plan.most_home);
  tables.coming = take(plan.most_arrivals);
  tables.coming_from = take(plan.most_arrivals);
  tables.send_begin = take(std::size_t{plan.ranks} + 1);
  tables.receive_begin = take(std::size_t{plan.ranks} + 1);
  return tables;
}

/// Fills the tables. Two sorts by radix, whose keys are as short as the plan allows.
template <class Backend>
void make_plan_tables(Backend& b, plan_tables const& tables, gpu::fault* faults) {
  auto const& plan = tables.plan;
  std::uint32_t const most =
      plan.most_home > plan.most_arrivals ? plan.most_home : plan.most_arrivals;
  int const slot_bits = static_cast<int>(std::bit_width(plan.most_samples));
  int const rank_bits = static_cast<int>(std::bit_width(plan.ranks));
  b.for_each(std::size_t{most} + 1, write_plan_keys{tables, faults});
  b.sort_pairs(tables.leaving_slots, tables.leaving, plan.most_home, 0, slot_bits);
  b.sort_pairs(tables.coming_from, tables.coming, plan.most_arrivals, 0, rank_bits);
  b.for_each(std::size_t{plan.ranks} + 1, find_plan_begins{tables});
}

}  // namespace omnibal::inline v0::nccl::detail
