// SPDX-License-Identifier: Apache-2.0
/// \file
/// Chooses levels of length for a mixture of long and short samples, packs it in them, and compares
/// a simulated epoch with that of plain packing; or compares what runs given steps, groups of ranks
/// of different sizes among them: `pack_long_context --help`.

#include "models/context_model.hpp"
#include "options/clip_options.hpp"
#include "options/long_context_options.hpp"
#include "pictures/context_step_picture.hpp"
#include "pictures/long_context_picture.hpp"
#include "plans/context_comparison.hpp"
#include "plans/heard_profile.hpp"
#include "plans/long_context_plans.hpp"
#include "readers/dataset.hpp"
#include "readers/long_context_mix.hpp"
#include "readers/progress.hpp"
#include "reports/staged_files.hpp"
#include "reports/step_plan_writer.hpp"
#include "reports/table.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/select_levels.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace examples;

dataset load(long_context_options const& options) {
  if (options.lengths.files.empty()) {
    return long_context_mix(options.mix, options.synthetic_samples, options.seed);
  }
  progress hidden(visibility::hidden);
  return read_lengths(options.lengths, hidden);
}

std::string in_thousands(std::int64_t tokens) {
  return tokens % 1024 == 0 ? std::to_string(tokens / 1024) + "K" : std::to_string(tokens);
}

void print_levels(std::string const& rule, std::span<omnibal::packing_level const> levels,
                  std::int64_t layers) {
  std::cout << rule << ':';
  for (omnibal::packing_level const& level : levels) {
    std::cout << "  " << in_thousands(level.length) << " on " << level.sequence
              << (level.sequence == 1 ? " rank, " : " ranks, ") << level.checkpointed_layers
              << " of " << layers << " layers checkpointed;";
  }
  std::cout << '\n';
}

void print_plans(std::vector<long_context_plan> const& plans, std::int64_t ranks) {
  table shown({"", "packs", "steps", "DBR", "ABR", "weighed", "CR", "PR", "step, s", "GPU days",
               "planned in, s"});
  for (long_context_plan const& plan : plans) {
    auto const steps = static_cast<double>(plan.step_count);
    double const days = omnibal::gpu_days({.steps = steps,
                                           .seconds_per_step = plan.epoch_seconds / steps,
                                           .gpus = static_cast<double>(ranks)});
    shown.add({plan.name, counted(plan.packed.groups.size()), counted(plan.step_count),
               fixed(plan.figures.data_balance, 4), fixed(plan.figures.attention_balance, 4),
               fixed(plan.weighed_attention_balance, 4), fixed(plan.figures.communication_ratio, 3),
               fixed(plan.figures.pad_ratio, 4), fixed(plan.epoch_seconds / steps, 2),
               fixed(days, 3), fixed(plan.planning_seconds, 3)});
  }
  shown.print(std::cout);
}

/// ABR of each level, with random steps and with balanced ones.
void print_level_balance(long_context_plan const& plain, long_context_plan const& random,
                         long_context_plan const& balanced) {
  table shown({"ABR", "packs in a step", "steps", "random", "balanced"});
  omnibal::packed_level const& longest = plain.packed.levels.front();
  shown.add({"plain " + in_thousands(longest.setting.length),
             counted(plain.schedules.front().ranks()), counted(plain.schedules.front().size()),
             fixed(plain.level_attention_balance.front(), 4), ""});
  for (std::size_t level = 0; level != random.schedules.size(); ++level) {
    shown.add({in_thousands(random.packed.levels[level].setting.length),
               counted(random.schedules[level].ranks()), counted(random.schedules[level].size()),
               fixed(random.level_attention_balance[level], 4),
               fixed(balanced.level_attention_balance[level], 4)});
  }
  shown.print(std::cout);
}

/// Writes the plan and the picture that are asked for, all or none.
void write_files(long_context_options const& options, std::filesystem::path const& picture,
                 std::function<void(std::ostream&)> const& draw,
                 std::function<void(staged_files&)> const& write_plan) {
  if (options.output.empty() && picture.empty()) return;
  staged_files files;
  if (!picture.empty()) files.write(picture, draw);
  if (!options.output.empty()) write_plan(files);
  files.commit();
}

/// Says which files there are.
void print_files(long_context_options const& options, std::filesystem::path const& picture) {
  if (options.output.empty() && picture.empty()) return;
  std::cout << '\n';
  if (!options.output.empty()) std::cout << "Plan: " << options.output.string() << '\n';
  if (!picture.empty()) std::cout << "Picture: " << picture.string() << '\n';
}

/// The tower and its clips, if the model has one.
std::optional<clip_load> sound_of(long_context_options const& options) {
  if (!options.model.audio) return std::nullopt;
  return clip_load{*options.model.audio, options.clips, tokens_with_clips};
}

void compare_levels(long_context_options const& options, dataset const& data) {
  heard_profile const profile{
      sharded_profile(*options.model.language, options.machine, options.ranks), sound_of(options)};
  auto const search = level_search_of(profile.language, options.machine);
  auto const published = omnibal::select_levels(profile, search);
  auto const least = omnibal::select_levels(profile, search, data.samples, &sample::tokens);
  if (published.status != omnibal::solve_status::solved) {
    throw std::runtime_error("the longest level of " + options.model.name + " does not fit on " +
                             std::to_string(options.ranks) + " devices " + options.machine.name);
  }

  using enum pack_kind;
  using enum step_order;
  std::vector<level_rule> const rules{
      {"plain packing", {published.levels.back()}, random_groups, random},
      {"+ hierarchy", published.levels, random_groups, random},
      {"+ balance", published.levels, random_groups, by_attention},
      {"+ best fit", published.levels, best_fit, by_attention},
      {"+ levels of least time", least.levels, best_fit, by_attention}};
  std::vector<long_context_plan> plans;
  plans.reserve(rules.size());
  for (level_rule const& rule : rules) {
    plans.push_back(make_plan(rule, data, profile, options.seed));
    if (plans.back().step_count == 0) throw std::runtime_error("no sample fits the longest level");
  }

  std::span<long_context_plan const> const ablation(plans.data(), 3);
  auto const& best = *std::ranges::min_element(plans, {}, &long_context_plan::epoch_seconds);
  write_files(
      options, options.svg, [&](std::ostream& out) { write_levels(data, ablation, out); },
      [&](staged_files& files) { write_level_plan(files, data, options, profile, best); });

  std::cout << counted(data.samples.size()) << " samples, " << options.ranks << " ranks, "
            << counted(plans[0].packed.oversized.size()) << " samples above "
            << in_thousands(published.levels.back().length)
            << " tokens\nTimes are estimates of the cost model\n\n";
  print_levels("published rule", published.levels, search.layers);
  print_levels("least epoch time", least.levels, search.layers);
  std::cout << '\n';
  print_plans(plans, options.ranks);
  std::cout << '\n';
  print_level_balance(plans[0], plans[1], plans[2]);
  print_files(options, options.svg);
  if (!options.output.empty()) std::cout << "The plan is that of \"" << best.name << "\"\n";
}

std::string size_of_steps(step_size const& size) {
  return size.samples != 0 ? counted(size.samples) + " samples" : counted(size.tokens) + " tokens";
}

/// What an epoch takes beyond the bound. A plan that is as short is not below it by rounding.
std::string over_the_bound(context_epoch const& epoch, double bound) {
  double const share = epoch.seconds / bound - 1;
  return percent(std::abs(share) < 1e-9 ? 0 : share, 1);
}

void print_comparison(context_comparison const& comparison) {
  table shown({"", "epoch, s", "over the bound", "sharing", "waiting", "micro-steps",
               "tokens of a rank", "planned in, ms"});
  for (context_epoch const& epoch : comparison.epochs) {
    if (epoch.stem == "like_lengths") shown.add_rule();
    if (!epoch.misfit.empty()) {
      shown.add({epoch.name, "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    auto const steps = static_cast<double>(epoch.plans.size());
    shown.add({epoch.name, fixed(epoch.seconds, 3), over_the_bound(epoch, comparison.lower_bound),
               percent(epoch.sharing, 1), percent(epoch.waiting, 1),
               fixed(static_cast<double>(epoch.micro_steps) / steps, 2),
               counted(static_cast<std::uint64_t>(epoch.max_tokens)),
               fixed(epoch.planning_milliseconds, 2)});
  }
  shown.print(std::cout);
  for (context_epoch const& epoch : comparison.epochs) {
    if (!epoch.misfit.empty()) std::cout << epoch.name << ": " << epoch.misfit << '\n';
  }
}

void compare_steps(long_context_options const& options, dataset const& data) {
  auto const ranks = static_cast<std::uint32_t>(options.ranks);
  context_setting setting{
      .ranks_per_node = options.ranks_per_node, .size = options.size, .seed = options.seed};
  setting.step.ranks = ranks;
  machine_description const& machine = options.machine;
  setting.step.cost =
      context_cost_of(shape_of(*options.model.language),
                      {.ranks = ranks,
                       .ranks_per_node = options.ranks_per_node,
                       .flops = static_cast<double>(machine.flops),
                       .node_link_bytes = static_cast<double>(machine.node_link_bytes),
                       .link_bytes = static_cast<double>(machine.link_bytes)});
  if (auto const sound = sound_of(options)) {
    add_sound(setting.step.cost, *sound, static_cast<double>(machine.flops));
  }
  setting.step.options.capacity = options.rank_tokens;
  setting.step.options.degrees = options.degrees;
  progress shown(shown_on_terminal());
  auto const comparison = compare_context(data, setting, shown);
  write_files(
      options, options.svg_step,
      [&](std::ostream& out) { write_step_picture(data, setting, comparison, out); },
      [&](staged_files& files) { write_step_plans(files, data, options, setting, comparison); });
  std::size_t const steps = comparison.epochs.front().steps.size();
  std::cout << counted(data.samples.size()) << " samples in " << counted(steps)
            << (steps == 1 ? " step of " : " steps of ") << size_of_steps(options.size) << ", "
            << counted(ranks) << " ranks in nodes of " << counted(options.ranks_per_node) << ", "
            << options.model.name << ", a rank holds " << in_thousands(options.rank_tokens)
            << " tokens\n";
  if (!comparison.oversized.empty()) {
    std::cout << "left out, as they fit on no group: " << counted(comparison.oversized.size())
              << " samples\n";
  }
  std::cout << "Times are estimates of the cost model\n\n";
  print_comparison(comparison);
  print_files(options, options.svg_step);
}

void run(long_context_options const& options) {
  dataset const data = load(options);
  if (options.model.vision) {
    std::cout << "The vision tower of " << options.model.name
              << " does not run: samples are texts\n";
  }
  if (options.model.audio) {
    std::cout << "Every " << counted(tokens_with_clips) << " tokens have " << text_of(options.clips)
              << '\n';
  }
  if (options.task == long_context_task::steps) {
    compare_steps(options, data);
  } else {
    compare_levels(options, data);
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const options = parse_long_context(count, words);
    if (options) run(*options);
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to the standard output");
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "pack_long_context: error: " << error.what() << '\n';
    return 1;
  }
}
