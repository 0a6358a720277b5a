#pragma once

/// \file
/// Gathering costs and making a plan of them on a stream, for any backend.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/cost_steps.hpp>
#include <omnibal/cuda/detail/lpt.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl::detail {

/// The arrays of a plan that is made, and of what it is made from.
struct plan_arrays {
  std::uint32_t* home_offsets;
  std::uint32_t* arrival_offsets;
  std::uint32_t* item_at;
  std::uint32_t* slot_of;
  std::uint32_t ranks;
  std::uint32_t most_home;
  std::uint32_t most_samples;
  /// The costs of all samples, then their sizes where there are any.
  std::int64_t* columns;
};

/// All samples as one step.
struct write_step_offsets {
  std::uint32_t const* home_offsets;
  std::uint32_t ranks;
  std::uint32_t* step;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const {
    step[0] = 0;
    step[1] = home_offsets[ranks];
  }
};

/// The slot of each sample.
struct write_slots {
  plan_arrays plan;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t slot) const {
    std::uint32_t const samples = plan.home_offsets[plan.ranks];
    if (slot >= samples) return;
    std::uint32_t const sample = plan.item_at[slot];
    if (sample < samples) plan.slot_of[sample] = static_cast<std::uint32_t>(slot);
  }
};

/// Parts by longest processing time first.
struct lpt_parts {
  template <class Backend>
  void operator()(Backend& b, gpu::cost_steps const& costs, std::size_t parts,
                  gpu::part_span const& out) const {
    gpu::detail::lpt(b, costs, parts, count_policy::any, out);
  }
};

/// Gathers what `local` says of samples, makes a part for each rank and the plan by which rank r
/// gets part r.
template <class Backend, class Wire, class Balance>
void make_plan_on_stream(Backend& b, Wire const& wire, local_columns const& local,
                         plan_arrays const& plan, Balance const& balance, gpu::fault* faults) {
  std::size_t const samples = plan.most_samples;
  gather_columns(b, wire, local, plan.most_home, plan.home_offsets,
                 {plan.columns, 1, samples, samples}, faults);
  auto* const step = b.template scratch<std::uint32_t>(2);
  b.for_each(1, write_step_offsets{plan.home_offsets, plan.ranks, step});
  gpu::cost_steps const costs({plan.columns, samples}, {step, 2}, samples);
  gpu::part_span const parts{
      {{plan.arrival_offsets, std::size_t{plan.ranks} + 1}, {plan.item_at, samples}, {}},
      {},
      {faults, 1}};
  balance(b, costs, plan.ranks, parts);
  b.for_each(samples, write_slots{plan});
}

}  // namespace omnibal::inline v0::nccl::detail
