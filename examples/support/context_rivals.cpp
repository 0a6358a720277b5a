#include "context_rivals.hpp"

#include <omnibal/solve_status.hpp>

#include <array>
#include <cstddef>

namespace examples {

namespace {

bool is_solved(omnibal::context_plan const& plan) {
  return plan.status == omnibal::solve_status::solved;
}

/// Appends the micro-steps of a plan, whose sample i is `samples[i]` of the step.
void append(omnibal::context_plan& joined, omnibal::context_plan const& plan,
            std::vector<std::uint32_t> const& samples) {
  auto const first = static_cast<std::uint32_t>(joined.groups.size());
  for (std::size_t k = 1; k != plan.micro_step_offsets.size(); ++k) {
    joined.micro_step_offsets.push_back(first + plan.micro_step_offsets[k]);
  }
  joined.groups.insert(joined.groups.end(), plan.groups.begin(), plan.groups.end());
  for (auto const group : plan.samples) {
    for (std::uint32_t const item : group) joined.samples.push(samples[item]);
    joined.samples.close();
  }
  joined.makespan += plan.makespan;
  joined.idle_ranks += plan.idle_ranks;
}

}  // namespace

omnibal::context_plan one_degree(context_step const& step, std::span<std::int64_t const> lengths,
                                 std::uint32_t degree,
                                 omnibal::context_groups_workspace& workspace) {
  omnibal::context_groups_options options = step.options;
  options.degrees = {degree};
  return omnibal::context_groups(lengths, step.ranks, step.cost, context_step::memory, options,
                                 workspace);
}

std::vector<std::uint32_t> single_degrees(context_step const& step) {
  auto degrees = step.options.degrees;
  if (degrees.empty()) degrees = omnibal::divisors(step.ranks);
  std::uint32_t const node = step.options.ranks_per_node;
  std::erase_if(degrees, [&](std::uint32_t degree) {
    return degree > step.ranks || (node != 0 && degree > node && degree % node != 0);
  });
  return degrees;
}

omnibal::context_plan best_degree(context_step const& step, std::span<std::int64_t const> lengths,
                                  omnibal::context_groups_workspace& workspace) {
  omnibal::context_plan best;
  bool has_plan = false;
  for (std::uint32_t const degree : single_degrees(step)) {
    auto plan = one_degree(step, lengths, degree, workspace);
    bool const is_better =
        !has_plan || !is_solved(best) || (is_solved(plan) && plan.makespan < best.makespan);
    if (is_better) best = std::move(plan);
    has_plan = true;
  }
  return best;
}

omnibal::context_plan two_levels(context_step const& step,
                                 omnibal::context_groups_workspace& workspace) {
  auto whole = best_degree(step, step.lengths, workspace);
  std::uint32_t const least = single_degrees(step).front();
  std::array<std::vector<std::int64_t>, 2> lengths;
  std::array<std::vector<std::uint32_t>, 2> samples;
  for (std::uint32_t i = 0; i != step.lengths.size(); ++i) {
    bool const is_long = context_step::memory(step.lengths[i], least) > step.options.capacity;
    lengths[is_long].push_back(step.lengths[i]);
    samples[is_long].push_back(i);
  }
  omnibal::context_plan levels;
  append(levels, one_degree(step, lengths[0], least, workspace), samples[0]);
  auto const longer = best_degree(step, lengths[1], workspace);
  append(levels, longer, samples[1]);
  bool const is_better =
      is_solved(longer) && (!is_solved(whole) || levels.makespan < whole.makespan);
  return is_better ? levels : whole;
}

}  // namespace examples
