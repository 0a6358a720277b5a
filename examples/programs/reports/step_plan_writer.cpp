// SPDX-License-Identifier: Apache-2.0
#include "step_plan_writer.hpp"

#include "pack_options.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
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
  json result{{"format", "omnibal steps"},
              {"format_version", 1},
              {"library_version", library_version()},
              {"inputs", std::move(inputs)},
              {"fields", {{"tokens", options.lengths.fields.tokens}}},
              {"seed", options.seed},
              {"ranks", options.ranks},
              {"model", options.model.name},
              {"machine", options.machine.name},
              {"samples", data.samples.size()},
              {"weights", loss_weight_names.at(static_cast<std::size_t>(options.weights))}};
  if (options.model.audio) {
    result["clips"] = {{"count", options.clips.count},
                       {"length", options.clips.length},
                       {"in_tokens", tokens_with_clips}};
  }
  return result;
}

/// The tokens of each step, and what each is divided by.
class loss_divisor {
 public:
  loss_divisor(long_context_options const& options, std::vector<std::int64_t> step_tokens)
      : tokens_(std::move(step_tokens)),
        ranks_(static_cast<double>(options.ranks)),
        is_by_step_(options.weights == loss_weights::step),
        of_epoch_(ranks_ * omnibal::loss_normalizer(tokens_)) {}

  /// Of each token's loss, before the mean over the ranks.
  [[nodiscard]] double scale(std::size_t step) const {
    return is_by_step_ ? ranks_ * omnibal::loss_normalizer(std::array{tokens_[step]}) : of_epoch_;
  }
  /// Of the mean loss of so many tokens.
  [[nodiscard]] double weight(std::size_t step, std::int64_t tokens) const {
    return scale(step) * static_cast<double>(tokens) / ranks_;
  }

 private:
  std::vector<std::int64_t> tokens_;
  double ranks_;
  bool is_by_step_;
  double of_epoch_;
};

struct rank_range {
  std::uint64_t first;
  std::uint64_t count;
};

/// The weight of a group is that of its step.
struct step_writer {
  dataset const& data;
  loss_divisor const& divisor;
  std::size_t step;

  [[nodiscard]] json group(rank_range const& ranks, double seconds,
                           std::vector<std::uint32_t> samples) const {
    std::int64_t tokens = 0;
    for (std::uint32_t const i : samples) tokens += data.samples[i].tokens;
    return {{"first_rank", ranks.first},
            {"degree", ranks.count},
            {"seconds", seconds},
            {"tokens", tokens},
            {"weight", divisor.weight(step, tokens)},
            {"samples", std::move(samples)}};
  }
  [[nodiscard]] json whole(double seconds, json micro_steps) const {
    return {{"seconds", seconds},
            {"loss_normalizer", divisor.scale(step)},
            {"micro_steps", std::move(micro_steps)}};
  }
};

/// Each cell of a step of a level that has a pack is a group.
json level_step_json(step_writer const& writer, heard_profile const& profile,
                     long_context_plan const& plan, std::size_t level, std::size_t step) {
  omnibal::packing_level const& setting = plan.packed.levels[level].setting;
  omnibal::steps const& schedule = plan.schedules[level];
  auto const sequence = static_cast<std::uint64_t>(setting.sequence);
  auto const spans = omnibal::attention_spans(profile.language.model);
  json groups = json::array();
  double longest = 0;
  for (std::size_t cell = 0; cell != schedule.ranks(); ++cell) {
    for (std::uint32_t const pack : schedule(step, cell)) {
      auto const documents = documents_of(writer.data, plan.packed, pack, spans);
      auto const reading = profile.reading(setting, documents);
      double const seconds = 1e-9 * static_cast<double>(reading.nanoseconds);
      auto const samples = plan.packed.groups[pack];
      groups.push_back(
          writer.group({cell * sequence, sequence}, seconds, {samples.begin(), samples.end()}));
      longest = std::max(longest, seconds);
    }
  }
  json result{{"level", level}};
  result.update(writer.whole(longest, json::array({groups})));
  return result;
}

json context_step_json(step_writer const& writer, std::span<std::uint32_t const> samples,
                       omnibal::context_plan const& plan) {
  json micro_steps = json::array();
  std::size_t g = 0;
  for (std::size_t k = 0; k != plan.micro_steps(); ++k) {
    json groups = json::array();
    for (omnibal::context_group const& group : plan.groups_of(k)) {
      std::vector<std::uint32_t> own;
      for (std::uint32_t const item : plan.samples[g++]) own.push_back(samples[item]);
      groups.push_back(writer.group({group.first_rank, group.degree}, group.time, std::move(own)));
    }
    micro_steps.push_back(std::move(groups));
  }
  return writer.whole(plan.makespan, std::move(micro_steps));
}

/// The tokens of each step in the order of the levels.
std::vector<std::int64_t> tokens_of_steps(dataset const& data, long_context_plan const& plan,
                                          std::span<std::size_t const> order) {
  std::vector<std::int64_t> result;
  std::vector<std::size_t> next(plan.schedules.size(), 0);
  for (std::size_t const level : order) {
    omnibal::steps const& schedule = plan.schedules[level];
    std::int64_t& tokens = result.emplace_back(0);
    for (std::size_t cell = 0; cell != schedule.ranks(); ++cell) {
      for (std::uint32_t const pack : schedule(next[level], cell)) {
        tokens += documents_of(data, plan.packed, pack).tokens;
      }
    }
    ++next[level];
  }
  return result;
}

std::vector<std::int64_t> tokens_of_steps(dataset const& data, omnibal::grouping const& steps) {
  std::vector<std::int64_t> result;
  for (auto const samples : steps) {
    std::int64_t& tokens = result.emplace_back(0);
    for (std::uint32_t const i : samples) tokens += data.samples[i].tokens;
  }
  return result;
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
                                          heard_profile const& profile,
                                          long_context_plan const& plan) {
  auto const order = level_order(plan, data, options.ranks, options.short_first_steps);
  loss_divisor const divisor(options, tokens_of_steps(data, plan, order));
  files.write(options.output / "steps.jsonl", [&](std::ostream& out) {
    std::vector<std::size_t> next(plan.schedules.size(), 0);
    for (std::size_t k = 0; k != order.size(); ++k) {
      std::size_t const level = order[k];
      out << level_step_json({data, divisor, k}, profile, plan, level, next[level]++) << '\n';
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
    loss_divisor const divisor(options, tokens_of_steps(data, epoch.steps));
    files.write(options.output / names.back(), [&](std::ostream& out) {
      for (std::size_t k = 0; k != epoch.plans.size(); ++k) {
        out << context_step_json({data, divisor, k}, epoch.steps[k], epoch.plans[k]) << '\n';
      }
    });
    plans.push_back({{"name", epoch.name},
                     {"file", names.back()},
                     {"steps", epoch.plans.size()},
                     {"seconds", epoch.seconds},
                     {"waiting", epoch.waiting},
                     {"sharing", epoch.sharing},
                     {"micro_steps", epoch.micro_steps},
                     {"max_tokens", epoch.max_tokens}});
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
