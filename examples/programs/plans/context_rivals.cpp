// SPDX-License-Identifier: Apache-2.0
#include "context_rivals.hpp"

#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

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

/// Some samples of a step.
struct level_samples {
  std::vector<std::int64_t> lengths;
  std::vector<std::uint32_t> samples;

  void add(level_samples const& others) {
    lengths.insert(lengths.end(), others.lengths.begin(), others.lengths.end());
    samples.insert(samples.end(), others.samples.begin(), others.samples.end());
  }
};

/// Samples up to an eighth, a quarter, a half, ... of what a rank holds; octaves without samples
/// are left out.
std::vector<level_samples> octaves_of(context_step const& step) {
  std::vector<level_samples> octaves(64);
  for (std::uint32_t i = 0; i != step.lengths.size(); ++i) {
    std::int64_t const length = std::max<std::int64_t>(step.lengths[i], 1);
    auto const eighths = static_cast<std::uint64_t>((8 * length - 1) / step.options.capacity);
    level_samples& octave = octaves[static_cast<std::size_t>(std::bit_width(eighths))];
    octave.lengths.push_back(step.lengths[i]);
    octave.samples.push_back(i);
  }
  std::erase_if(octaves, [](level_samples const& octave) { return octave.samples.empty(); });
  return octaves;
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

omnibal::context_plan best_levels(context_step const& step,
                                  omnibal::context_groups_workspace& workspace) {
  auto const octaves = octaves_of(step);
  // Of the first octaves, parted in the best way, whose last level begins with octave `begins`.
  std::vector<double> least{0};
  std::vector<std::size_t> begins{0};
  for (std::size_t last = 1; last <= octaves.size(); ++last) {
    least.push_back(std::numeric_limits<double>::infinity());
    begins.push_back(0);
    level_samples level;
    for (std::size_t first = last; first-- != 0;) {
      level.add(octaves[first]);
      auto const plan = best_degree(step, level.lengths, workspace);
      if (!is_solved(plan) || least[first] + plan.makespan >= least[last]) continue;
      least[last] = least[first] + plan.makespan;
      begins[last] = first;
    }
  }
  omnibal::context_plan joined;
  for (std::size_t last = octaves.size(); last != 0; last = begins[last]) {
    level_samples level;
    for (std::size_t o = begins[last]; o != last; ++o) level.add(octaves[o]);
    append(joined, best_degree(step, level.lengths, workspace), level.samples);
  }
  return joined;
}

}  // namespace examples
