#include "step_plan_writer.hpp"

#include "pack_options.hpp"

#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using json = nlohmann::ordered_json;

json head_json(dataset const& data, long_context_options const& options) {
  json inputs = json::array();
  for (source const& one : data.sources) {
    inputs.push_back({{"name", one.name}, {"records", one.records}});
  }
  return {{"format", "omnibal steps"},
          {"format_version", 1},
          {"library_version", library_version()},
          {"inputs", std::move(inputs)},
          {"fields", {{"tokens", options.lengths.fields.tokens}}},
          {"seed", options.seed},
          {"ranks", options.ranks},
          {"model", options.model.name},
          {"machine", options.machine.name},
          {"samples", data.samples.size()}};
}

struct rank_range {
  std::uint64_t first;
  std::uint64_t count;
};

json group_json(rank_range const& ranks, double seconds, std::vector<std::uint32_t> samples) {
  return {{"first_rank", ranks.first},
          {"degree", ranks.count},
          {"seconds", seconds},
          {"samples", std::move(samples)}};
}

/// Each cell of a step of a level that has a pack is a group.
json level_step_json(dataset const& data, omnibal::language_profile const& profile,
                     long_context_plan const& plan, std::size_t level, std::size_t step) {
  omnibal::packing_level const& setting = plan.packed.levels[level].setting;
  omnibal::steps const& schedule = plan.schedules[level];
  auto const sequence = static_cast<std::uint64_t>(setting.sequence);
  json groups = json::array();
  double longest = 0;
  for (std::size_t cell = 0; cell != schedule.ranks(); ++cell) {
    for (std::uint32_t const pack : schedule(step, cell)) {
      auto const reading = profile.reading(setting, documents_of(data, plan.packed, pack));
      double const seconds = 1e-9 * static_cast<double>(reading.nanoseconds);
      auto const samples = plan.packed.groups[pack];
      groups.push_back(
          group_json({cell * sequence, sequence}, seconds, {samples.begin(), samples.end()}));
      longest = std::max(longest, seconds);
    }
  }
  return {{"level", level}, {"seconds", longest}, {"micro_steps", json::array({groups})}};
}

json context_step_json(std::span<std::uint32_t const> samples, omnibal::context_plan const& plan) {
  json micro_steps = json::array();
  std::size_t g = 0;
  for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
    json groups = json::array();
    for (omnibal::context_group const& group : plan.groups_of(k)) {
      std::vector<std::uint32_t> own;
      for (std::uint32_t const item : plan.samples[g++]) own.push_back(samples[item]);
      groups.push_back(group_json({group.first_rank, group.degree}, group.time, std::move(own)));
    }
    micro_steps.push_back(std::move(groups));
  }
  return {{"seconds", plan.makespan}, {"micro_steps", std::move(micro_steps)}};
}

json levels_json(long_context_plan const& plan) {
  json levels = json::array();
  for (std::size_t level = 0; level != plan.schedules.size(); ++level) {
    omnibal::packed_level const& at = plan.packed.levels[level];
    levels.push_back({{"length", at.setting.length},
                      {"degree", at.setting.sequence},
                      {"checkpointed_layers", at.setting.checkpointed_layers},
                      {"packs", at.group_count},
                      {"steps", plan.schedules[level].size()}});
  }
  return levels;
}

json cost_json(omnibal::context_cost const& cost) {
  json degrees = json::array();
  for (omnibal::degree_time const& time : cost.degrees) {
    degrees.push_back({time.fixed, time.linear, time.quadratic});
  }
  return {{"micro_step", cost.micro_step}, {"degrees", std::move(degrees)}};
}

}  // namespace

std::vector<std::string> write_level_plan(staged_files& files, dataset const& data,
                                          long_context_options const& options,
                                          omnibal::language_profile const& profile,
                                          long_context_plan const& plan) {
  auto const order = level_order(plan, data, options.ranks, options.short_first_steps);
  files.write(options.output / "steps.jsonl", [&](std::ostream& out) {
    std::vector<std::size_t> next(plan.schedules.size(), 0);
    for (std::size_t const level : order) {
      out << level_step_json(data, profile, plan, level, next[level]++) << '\n';
    }
  });
  json head = head_json(data, options);
  head["rule"] = plan.name;
  head["levels"] = levels_json(plan);
  head["short_first_steps"] = options.short_first_steps;
  head["max_dist_ratio"] = plan.scheduled.max_dist_ratio;
  head["oversized"] = plan.packed.oversized;
  head["plans"] = json::array({{{"name", plan.name},
                                {"file", "steps.jsonl"},
                                {"steps", plan.step_count},
                                {"packs", plan.packed.groups.size()},
                                {"seconds", plan.epoch_seconds},
                                {"data_balance", plan.figures.data_balance},
                                {"attention_balance", plan.figures.attention_balance},
                                {"communication_ratio", plan.figures.communication_ratio},
                                {"pad_ratio", plan.figures.pad_ratio}}});
  // The last one marks the plan as complete.
  files.write(options.output / "plan.json",
              [&](std::ostream& out) { out << head.dump(2) << '\n'; });
  return {"steps.jsonl", "plan.json"};
}

std::vector<std::string> write_step_plans(staged_files& files, dataset const& data,
                                          long_context_options const& options,
                                          context_setting const& setting,
                                          context_comparison const& comparison) {
  std::vector<std::string> names;
  json plans = json::array();
  for (context_epoch const& epoch : comparison.epochs) {
    if (!epoch.misfit.empty()) continue;
    names.push_back(epoch.stem + ".jsonl");
    files.write(options.output / names.back(), [&epoch](std::ostream& out) {
      for (std::size_t k = 0; k != epoch.plans.size(); ++k) {
        out << context_step_json(epoch.steps[k], epoch.plans[k]) << '\n';
      }
    });
    plans.push_back({{"name", epoch.name},
                     {"file", names.back()},
                     {"steps", epoch.plans.size()},
                     {"seconds", epoch.seconds},
                     {"waiting", epoch.waiting},
                     {"sharing", epoch.sharing},
                     {"micro_steps", epoch.micro_steps},
                     {"most_tokens", epoch.most_tokens}});
  }
  json head = head_json(data, options);
  head["ranks_per_node"] = options.ranks_per_node;
  head["degrees"] = options.degrees;
  head["rank_tokens"] = options.rank_tokens;
  head["cost"] = cost_json(setting.step.cost);
  head["oversized"] = comparison.oversized;
  head["lower_bound"] = comparison.lower_bound;
  head["plans"] = std::move(plans);
  names.emplace_back("plan.json");
  // The last one marks the plans as complete.
  files.write(options.output / names.back(),
              [&](std::ostream& out) { out << head.dump(2) << '\n'; });
  return names;
}

}  // namespace examples
