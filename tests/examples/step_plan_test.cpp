// SPDX-License-Identifier: Apache-2.0
#include "context_model.hpp"
#include "error_text.hpp"
#include "input_error.hpp"
#include "long_context_mix.hpp"
#include "read_step_plan.hpp"
#include "step_plan_writer.hpp"
#include "temporary_directory.hpp"

#include <omnibal/cost/models.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/language_profile.hpp>
#include <omnibal/sample/level_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using nlohmann::json;

std::string text_of(std::filesystem::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The steps of a file of JSON lines.
std::vector<json> steps_in(std::filesystem::path const& path) {
  std::vector<json> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) steps.push_back(json::parse(line));
  return steps;
}

/// What a trainer sees in a file: which samples, how long, and whether ranks have one group each.
struct read_plan {
  std::vector<std::uint32_t> samples;
  double seconds = 0;
  double waiting = 0;
  std::uint64_t micro_steps = 0;

  /// `overhead` is that of a micro-step; `check_group` sees each group.
  template <class Check>
  read_plan(std::vector<json> const& steps, std::uint32_t ranks, double overhead,
            Check const& check_group) {
    for (json const& step : steps) {
      double step_seconds = 0;
      for (json const& micro_step : step.at("micro_steps")) {
        ++micro_steps;
        std::vector<double> busy(ranks, 0);
        std::vector<bool> taken(ranks, false);
        for (json const& group : micro_step) {
          check_group(step, group);
          auto const first = group.at("first_rank").get<std::uint32_t>();
          auto const degree = group.at("degree").get<std::uint32_t>();
          for (std::uint32_t rank = first; rank != first + degree; ++rank) {
            CHECK(!taken.at(rank));
            taken[rank] = true;
            busy[rank] = group.at("seconds").get<double>();
          }
          for (json const& sample : group.at("samples")) samples.push_back(sample);
        }
        double const longest = *std::ranges::max_element(busy);
        step_seconds += overhead + longest;
        for (double const time : busy) waiting += (longest - time) / ranks;
      }
      CHECK(step.at("seconds").get<double>() == Approx(step_seconds));
      seconds += step_seconds;
    }
    std::ranges::sort(samples);
  }
};

/// Sees that the weights of the steps are what docs/reference/files.md says, by the tokens of
/// `data`.
void check_weights(std::filesystem::path const& folder, dataset const& data) {
  auto const read = read_step_plan(folder / "plan.json");
  for (exported_steps const& plan : read.plans) {
    std::vector<std::int64_t> tokens;
    for (exported_step const& step : plan.steps) {
      std::int64_t& sum = tokens.emplace_back(0);
      for (auto const& groups : step.micro_steps) {
        for (exported_group const& group : groups) {
          std::int64_t own = 0;
          for (std::uint32_t const sample : group.samples) own += data.samples[sample].tokens;
          CHECK(group.tokens == own);
          sum += own;
        }
      }
    }
    double const mean =
        static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})) /
        static_cast<double>(tokens.size());
    for (std::size_t k = 0; k != tokens.size(); ++k) {
      double weights = 0;
      for (auto const& groups : plan.steps[k].micro_steps) {
        for (exported_group const& group : groups) weights += group.weight;
      }
      auto const own = static_cast<double>(tokens[k]);
      bool const is_by_step = read.weights == loss_weights::step;
      CHECK(weights == Approx(is_by_step ? 1 : own / mean));
      CHECK(plan.steps[k].loss_normalizer == Approx(read.ranks / (is_by_step ? own : mean)));
    }
  }
}

/// The message where one text of a file is another.
std::string complaint_about(std::filesystem::path const& folder, std::string const& file,
                            std::string const& part, std::string const& in_place) {
  std::string const before = text_of(folder / file);
  std::string changed = before;
  REQUIRE(before.find(part) != std::string::npos);
  changed.replace(before.find(part), part.size(), in_place);
  std::ofstream(folder / file) << changed;
  std::string const message = test::error_text<input_error>(
      [&] { static_cast<void>(read_step_plan(folder / "plan.json")); });
  std::ofstream(folder / file) << before;
  return message;
}

std::vector<std::uint32_t> all_but(std::size_t count, std::vector<std::uint32_t> const& without) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  std::erase_if(all, [&](std::uint32_t sample) {
    return std::ranges::find(without, sample) != without.end();
  });
  return all;
}

}  // namespace

TEST_CASE("the plans of steps, read back, have all samples and the figures of the table") {
  temporary_directory const directory;
  dataset data = long_context_mix(length_mix::broad, 700, 6);
  data.samples[17].tokens = std::int64_t{1} << 33;
  long_context_options options;
  options.ranks = 16;
  options.output = directory.path() / "plan";
  context_setting setting{.ranks_per_node = 8, .size = {.samples = 200}, .seed = 1};
  setting.step.ranks = 16;
  setting.step.cost = context_cost_of(shape_of(*options.model.language), {16, 8});
  setting.step.options.capacity = options.rank_tokens;
  progress hidden(visibility::hidden);
  auto const comparison = compare_context(data, setting, hidden);
  auto const write = [&] {
    staged_files files;
    auto names = write_step_plans(files, data, options, setting, comparison);
    files.commit();
    return names;
  };
  auto const names = write();
  CHECK(names.size() == 8);
  CHECK(names.back() == "plan.json");

  auto const head = json::parse(text_of(options.output / "plan.json"));
  CHECK(head["format"] == "omnibal steps");
  CHECK(head["samples"] == 700);
  CHECK(head["ranks"] == 16);
  CHECK(head["oversized"] == json{17});
  CHECK(head["lower_bound"] == comparison.lower_bound);
  CHECK(head["inputs"][0]["records"] == 700);
  json const& costs = head["cost"]["degrees"];
  REQUIRE(costs.size() == 16);
  REQUIRE(head["plans"].size() == comparison.epochs.size());
  for (std::size_t p = 0; p != comparison.epochs.size(); ++p) {
    json const& plan = head["plans"][p];
    context_epoch const& epoch = comparison.epochs[p];
    CHECK(plan["name"] == epoch.name);
    auto const steps = steps_in(options.output / plan["file"].get<std::string>());
    CHECK(steps.size() == plan["steps"]);
    std::int64_t most = 0;
    auto const check = [&](json const&, json const& group) {
      auto const degree = group.at("degree").get<std::int64_t>();
      json const& cost = costs.at(static_cast<std::size_t>(degree - 1));
      double expected = cost[0];
      std::int64_t held = 0;
      for (json const& sample : group.at("samples")) {
        std::int64_t const length = data.samples[sample.get<std::size_t>()].tokens;
        auto const tokens = static_cast<double>(length);
        expected += cost[1].get<double>() * tokens + cost[2].get<double>() * tokens * tokens;
        held += (length + degree - 1) / degree;
      }
      CHECK(group.at("seconds").get<double>() == Approx(expected));
      CHECK(held <= head["rank_tokens"].get<std::int64_t>());
      most = std::max(most, held);
    };
    read_plan const read(steps, 16, head["cost"]["micro_step"], check);
    CHECK(read.samples == all_but(700, {17}));
    // What the program prints.
    CHECK(read.seconds == Approx(epoch.seconds));
    CHECK(plan["seconds"] == epoch.seconds);
    CHECK(read.waiting / read.seconds == Approx(epoch.waiting).margin(1e-12));
    CHECK(plan["waiting"] == epoch.waiting);
    CHECK(plan["sharing"] == epoch.sharing);
    CHECK(read.micro_steps == epoch.micro_steps);
    CHECK(plan["micro_steps"] == epoch.micro_steps);
    CHECK(most == epoch.max_tokens);
    CHECK(plan["max_tokens"] == epoch.max_tokens);
  }

  std::vector<std::string> before;
  for (std::string const& name : names) before.push_back(text_of(options.output / name));
  check_weights(options.output, data);
  CHECK(write() == names);
  for (std::size_t i = 0; i != names.size(); ++i) {
    CHECK(text_of(options.output / names[i]) == before[i]);
  }
}

TEST_CASE("the plan of levels, read back, is what a level sampler runs") {
  temporary_directory const directory;
  dataset data = long_context_mix(length_mix::two_sources, 4000, 2);
  data.samples[5].tokens = 200'000;
  long_context_options options;
  options.ranks = 16;
  options.output = directory.path();
  options.seed = 3;
  options.short_first_steps = 4;
  omnibal::language_profile const profile{.model = omnibal::llama3_8b,
                                          .device = {.flops_per_second = 156'000'000'000'000},
                                          .memory_bytes = 80'000'000'000,
                                          .ranks = 16,
                                          .link_bytes_per_second = 100'000'000'000};
  std::vector<omnibal::packing_level> const levels{
      {.length = 16384, .checkpointed_layers = 4},
      {.length = 131072, .sequence = 8, .checkpointed_layers = 6}};
  auto const plan = make_plan({"two levels", levels, pack_kind::best_fit, step_order::by_attention},
                              data, {profile}, options.seed);
  staged_files files;
  auto const names = write_level_plan(files, data, options, {profile}, plan);
  files.commit();
  CHECK(names == std::vector<std::string>{"steps.jsonl", "plan.json"});

  auto const head = json::parse(text_of(directory.path() / "plan.json"));
  CHECK(head["format"] == "omnibal steps");
  CHECK(head["rule"] == "two levels");
  CHECK(head["oversized"] == json{5});
  CHECK(head["short_first_steps"] == 4);
  CHECK(head["plans"][0]["seconds"] == plan.epoch_seconds);
  CHECK(head["plans"][0]["packs"] == plan.packed.groups.size());
  CHECK(head["plans"][0]["attention_balance"] == plan.figures.attention_balance);
  REQUIRE(head["levels"].size() == 2);
  for (std::size_t level = 0; level != 2; ++level) {
    CHECK(head["levels"][level]["length"] == levels[level].length);
    CHECK(head["levels"][level]["degree"] == levels[level].sequence);
    CHECK(head["levels"][level]["checkpointed_layers"] == levels[level].checkpointed_layers);
    CHECK(head["levels"][level]["steps"] == plan.schedules[level].size());
  }

  auto const steps = steps_in(directory.path() / "steps.jsonl");
  CHECK(steps.size() == plan.step_count);
  std::vector<std::size_t> packs(2, 0);
  auto const check = [&](json const& step, json const& group) {
    auto const level = step.at("level").get<std::size_t>();
    ++packs.at(level);
    CHECK(group.at("degree") == levels[level].sequence);
    CHECK(group.at("first_rank").get<std::int64_t>() % levels[level].sequence == 0);
    std::int64_t tokens = 0;
    for (json const& sample : group.at("samples")) tokens += data.samples[sample].tokens;
    CHECK(tokens <= levels[level].length);
  };
  read_plan const read(steps, 16, 0, check);
  CHECK(read.samples == all_but(4000, {5}));
  CHECK(read.seconds == Approx(plan.epoch_seconds));
  CHECK(packs[0] == head["levels"][0]["packs"]);
  CHECK(packs[1] == head["levels"][1]["packs"]);
  for (std::size_t k = 0; k != 4; ++k) CHECK(steps[k].at("level") == 0);

  check_weights(directory.path(), data);
  CHECK(read_step_plan(directory.path() / "plan.json").weights == loss_weights::epoch);
  options.weights = loss_weights::step;
  staged_files by_step;
  write_level_plan(by_step, data, options, {profile}, plan);
  by_step.commit();
  check_weights(directory.path(), data);
  CHECK(read_step_plan(directory.path() / "plan.json").weights == loss_weights::step);

  // Rank by rank the steps of the sampler with these options.
  omnibal::level_sampler_options const of_sampler{
      {.seed = head["seed"], .max_dist_ratio = head["max_dist_ratio"]}, head["short_first_steps"]};
  auto const loads = omnibal::group_loads(
      plan.packed.groups, data.samples, [](sample const& one) { return one.tokens * one.tokens; });
  for (std::size_t const rank : {0u, 7u, 8u, 15u}) {
    omnibal::level_sampler sampler(plan.packed, loads, {.ranks = 16, .rank = rank}, of_sampler);
    for (json const& step : steps) {
      auto const own = sampler.next();
      CHECK(step.at("level") == own.level);
      std::vector<std::uint32_t> expected;
      for (std::uint32_t const pack : own.groups) {
        auto const samples = plan.packed.groups[pack];
        expected.insert(expected.end(), samples.begin(), samples.end());
      }
      std::vector<std::uint32_t> found;
      for (json const& group : step.at("micro_steps").at(0)) {
        auto const first = group.at("first_rank").get<std::size_t>();
        if (rank < first || rank >= first + group.at("degree").get<std::size_t>()) continue;
        for (json const& sample : group.at("samples")) found.push_back(sample);
      }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a plan of steps that is not whole is refused with file, line, field and value") {
  temporary_directory const folder;
  folder.write("plan.json", R"({"format": "omnibal steps", "format_version": 1, "ranks": 4,
      "weights": "step", "plans": [{"name": "groups", "file": "groups.jsonl", "steps": 2}]})");
  folder.write("groups.jsonl",
               R"({"seconds":1,"loss_normalizer":0.04,"micro_steps":[[{"first_rank":0,"degree":2,)"
               R"("seconds":1,"tokens":75,"weight":0.75,"samples":[0,1]},{"first_rank":2,)"
               R"("degree":1,"seconds":1,"tokens":25,"weight":0.25,"samples":[2]}]]})"
               "\n"
               R"({"seconds":1,"loss_normalizer":0.4,"micro_steps":[[{"first_rank":1,"degree":1,)"
               R"("seconds":1,"tokens":10,"weight":1,"samples":[3]}],[]]})"
               "\n");
  auto const plan = read_step_plan(folder.path() / "plan.json");
  CHECK(plan.ranks == 4);
  REQUIRE(plan.plans.size() == 1);
  CHECK(plan.plans[0].name == "groups");
  REQUIRE(plan.plans[0].steps.size() == 2);
  CHECK(plan.plans[0].steps[1].micro_steps.size() == 2);
  CHECK(plan.plans[0].steps[0].micro_steps[0][0].samples == std::vector<std::uint32_t>{0, 1});

  struct broken {
    std::string file, part, in_place, message;
  };
  std::vector<broken> const all{
      {"plan.json", "omnibal steps", "omnibal plan", "field \"format\" is \"omnibal plan\""},
      {"plan.json", "\"step\"", "\"steps\"",
       "field \"weights\" is \"steps\"; did you mean \"step\"?"},
      {"plan.json", "\"step\"", "\"epoch\"",
       "groups.jsonl: line 1: field \"loss_normalizer\" is 0.04"},
      {"plan.json", "\"steps\": 2", "\"steps\": 3", "groups.jsonl: has 2 steps of 3"},
      {"groups.jsonl", "0.75", "0.5", "line 1: field \"weight\" is 0.5, must be 0.75"},
      {"groups.jsonl", "0.4,", "0.5,", "line 2: field \"loss_normalizer\" is 0.5, must be 0.4"},
      {"groups.jsonl", "[3]", "[1]", "line 2: sample 1 runs twice"},
      {"groups.jsonl", "\"first_rank\":2", "\"first_rank\":1",
       "line 1: rank 1 is in two groups of a micro-step"},
      {"groups.jsonl", "\"degree\":1", "\"degree\":3",
       "line 1: field \"micro_steps.degree\" is 3, must be an integer from 1 to 2"},
      {"groups.jsonl", "\"tokens\":75,", "", "line 1: no field \"micro_steps.tokens\""},
      {"groups.jsonl", "[[", "[", "groups.jsonl: line 1: "}};
  for (broken const& one : all) {
    std::string const message = complaint_about(folder.path(), one.file, one.part, one.in_place);
    INFO(message << " lacks " << one.message);
    CHECK(message.find(one.message) != std::string::npos);
  }
}
