// SPDX-License-Identifier: Apache-2.0
#include "context_comparison.hpp"

#include "table.hpp"

#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace examples {

namespace {

using omnibal::context_plan;
using planner =
    std::function<context_plan(context_step const&, omnibal::context_groups_workspace&)>;

double processor_milliseconds() {
  return 1e3 * static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

std::uint32_t widest_degree(context_step const& step) {
  return step.options.degrees.empty() ? step.ranks
                                      : std::min(step.ranks, step.options.degrees.back());
}

bool fits(context_step const& step, std::int64_t tokens) {
  if (tokens > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) return false;
  return context_step::memory(tokens, widest_degree(step)) <= step.options.capacity;
}

/// Cuts an order of samples into steps.
omnibal::grouping cut(dataset const& data, std::span<std::uint32_t const> order,
                      step_size const& size) {
  omnibal::grouping steps;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  for (std::uint32_t const sample : order) {
    steps.push(sample);
    ++samples;
    tokens += static_cast<std::uint64_t>(data.samples[sample].tokens);
    bool const is_full = size.samples != 0 ? samples == size.samples : tokens >= size.tokens;
    if (!is_full) continue;
    steps.close();
    samples = tokens = 0;
  }
  if (samples != 0) steps.close();
  return steps;
}

/// The most tokens of a rank in any group of a plan.
std::int64_t max_tokens_of(context_plan const& plan, std::span<std::int64_t const> lengths) {
  std::int64_t most = 0;
  for (std::size_t g = 0; g != plan.groups.size(); ++g) {
    std::int64_t tokens = 0;
    for (std::uint32_t const item : plan.samples[g]) {
      tokens += context_step::memory(lengths[item], plan.groups[g].degree);
    }
    most = std::max(most, tokens);
  }
  return most;
}

class epoch_planner {
 public:
  epoch_planner(dataset const& data, context_setting const& setting, progress& shown)
      : data_(data), setting_(setting), shown_(shown) {}

  [[nodiscard]] context_epoch operator()(std::string name, std::string stem,
                                         omnibal::grouping steps,
                                         omnibal::context_groups_options const& options,
                                         planner const& plan_of) {
    context_epoch epoch{
        .name = std::move(name), .stem = std::move(stem), .steps = std::move(steps)};
    context_step step = setting_.step;
    step.options = options;
    double waiting = 0;
    double sharing = 0;
    shown_.begin("planning: " + epoch.name);
    for (std::size_t k = 0; k != epoch.steps.size(); ++k) {
      shown_.update(k, epoch.steps.size());
      step.lengths.clear();
      for (std::uint32_t const sample : epoch.steps[k]) {
        step.lengths.push_back(data_.samples[sample].tokens);
      }
      double const begin = processor_milliseconds();
      context_plan plan = plan_of(step, workspace_);
      epoch.planning_milliseconds += processor_milliseconds() - begin;
      if (plan.status != omnibal::solve_status::solved) {
        return misfit(std::move(epoch), step.lengths[plan.sample], plan.min_degree);
      }
      auto const figures = figures_of(plan, step);
      epoch.seconds += figures.seconds;
      waiting += figures.waiting;
      sharing += figures.sharing;
      epoch.micro_steps += plan.micro_steps();
      epoch.max_tokens = std::max(epoch.max_tokens, max_tokens_of(plan, step.lengths));
      epoch.plans.push_back(std::move(plan));
    }
    epoch.waiting = waiting / epoch.seconds;
    epoch.sharing = sharing / epoch.seconds;
    epoch.planning_milliseconds /= static_cast<double>(epoch.steps.size());
    return epoch;
  }

 private:
  static context_epoch misfit(context_epoch epoch, std::int64_t tokens, std::uint32_t degree) {
    epoch.misfit = "a sample of " + counted(static_cast<std::uint64_t>(tokens)) + " tokens needs " +
                   counted(degree) + " ranks";
    epoch.plans.clear();
    return epoch;
  }

  dataset const& data_;
  context_setting const& setting_;
  progress& shown_;
  omnibal::context_groups_workspace workspace_;
};

context_plan groups_plan(context_step const& step, omnibal::context_groups_workspace& workspace) {
  return omnibal::context_groups(step.lengths, step.ranks, step.cost, context_step::memory,
                                 step.options, workspace);
}

context_plan best_plan(context_step const& step, omnibal::context_groups_workspace& workspace) {
  return best_degree(step, step.lengths, workspace);
}

/// The degree that is the best one for all steps together.
context_epoch best_single(epoch_planner& plan, context_step const& step,
                          omnibal::grouping const& steps) {
  std::optional<context_epoch> best;
  for (std::uint32_t const degree : single_degrees(step)) {
    auto epoch = plan("one degree, " + counted(degree), "one_degree", steps, step.options,
                      [degree](context_step const& one, auto& workspace) {
                        return one_degree(one, one.lengths, degree, workspace);
                      });
    bool const is_better =
        !best || !best->misfit.empty() || (epoch.misfit.empty() && epoch.seconds < best->seconds);
    if (is_better) best = std::move(epoch);
  }
  return std::move(*best);
}

/// Those of the allowed degrees for which `is_allowed` is true.
template <class Allowed>
std::vector<std::uint32_t> degrees_where(context_step const& step, Allowed is_allowed) {
  std::vector<std::uint32_t> degrees = step.options.degrees;
  if (degrees.empty()) {
    for (std::uint32_t degree = 1; degree <= step.ranks; ++degree) degrees.push_back(degree);
  }
  std::erase_if(degrees, [&](std::uint32_t degree) { return !is_allowed(degree); });
  return degrees;
}

}  // namespace

double sharing_time(context_plan const& plan, std::size_t group, context_step const& step) {
  double tokens = 0;
  double squares = 0;
  for (std::uint32_t const item : plan.samples[group]) {
    auto const length = static_cast<double>(step.lengths[item]);
    tokens += length;
    squares += length * length;
  }
  omnibal::context_group const& at = plan.groups[group];
  double const alone = step.cost.degrees.front()(tokens, squares) / at.degree;
  return std::max(0.0, at.time - alone);
}

step_figures figures_of(context_plan const& plan, context_step const& step) {
  step_figures result{.seconds = plan.makespan};
  std::size_t group = 0;
  for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
    double longest = 0;
    double busy = 0;
    double sharing = 0;
    for (omnibal::context_group const& one : plan.groups_of(k)) {
      longest = std::max(longest, one.time);
      busy += one.time * one.degree;
      sharing += sharing_time(plan, group++, step) * one.degree;
    }
    result.waiting += longest - busy / step.ranks;
    result.sharing += sharing / step.ranks;
  }
  return result;
}

context_comparison compare_context(dataset const& data, context_setting const& setting,
                                   progress& shown) {
  context_comparison result;
  context_step const& step = setting.step;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i != data.samples.size(); ++i) {
    (fits(step, data.samples[i].tokens) ? order : result.oversized).push_back(i);
  }
  if (order.empty()) throw std::runtime_error("no sample fits on any group of ranks");
  omnibal::rng::fisher_yates{setting.seed}(std::span(order), 0);
  auto const steps = cut(data, order, setting.size);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&data](std::uint32_t sample) { return data.samples[sample].tokens; });
  auto const alike = cut(data, order, setting.size);

  epoch_planner plan(data, setting, shown);
  auto& epochs = result.epochs;
  epochs.push_back(best_single(plan, step, steps));
  epochs.push_back(plan("best degree of each step", "best_degree", steps, step.options, best_plan));
  epochs.push_back(plan("levels", "levels", steps, step.options, best_levels));
  auto const add_groups = [&](std::string name, std::string stem,
                              omnibal::context_groups_options const& options) {
    if (options.degrees.empty() && !step.options.degrees.empty()) return;
    epochs.push_back(plan(std::move(name), std::move(stem), steps, options, groups_plan));
  };
  auto of_powers = step.options;
  of_powers.degrees =
      degrees_where(step, [](std::uint32_t degree) { return (degree & (degree - 1)) == 0; });
  add_groups("groups, powers of two", "groups_powers_of_two", of_powers);
  auto in_nodes = step.options;
  in_nodes.ranks_per_node = setting.ranks_per_node;
  in_nodes.degrees = degrees_where(step, [&setting](std::uint32_t degree) {
    return degree <= setting.ranks_per_node || degree % setting.ranks_per_node == 0;
  });
  add_groups("groups in nodes of " + counted(setting.ranks_per_node), "groups_in_nodes", in_nodes);
  add_groups(step.options.degrees.empty() ? "groups, any degree" : "groups, all degrees given",
             "groups", step.options);
  for (context_plan const& one : epochs.back().plans) result.lower_bound += one.lower_bound;
  epochs.push_back(
      plan("like lengths, best degree", "like_lengths", alike, step.options, best_plan));
  shown.end();
  return result;
}

}  // namespace examples
