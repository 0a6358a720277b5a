// SPDX-License-Identifier: Apache-2.0
#include "dataset.hpp"
#include "model_file.hpp"
#include "read_plan.hpp"
#include "staged_files.hpp"
#include "synthetic.hpp"
#include "temporary_directory.hpp"
#include "vlm_exports.hpp"
#include "vlm_options.hpp"
#include "vlm_scenarios.hpp"

#include <omnibal/cost/models.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;

dataset const& lengths() {
  static dataset const data = synthetic_lengths(2048, 1);
  return data;
}

planned_scenario planned_for(model_description const& model, vlm_scenario const& scenario) {
  return plan_scenario(lengths(), scenario, model, 1);
}

/// Writes all files of the model 6+20B or 6+34B.
void write_files(std::string const& name, planned_scenario const& planned,
                 std::filesystem::path const& directory) {
  staged_files files;
  write_plan_files(files, name, planned, export_to_megatron(planned), {lengths(), 1}, directory);
  files.commit();
}

/// The letters of each stage, with `t*7` written out.
std::vector<std::string> stages_of(std::string const& layout) {
  std::vector<std::string> stages(1);
  for (std::size_t i = 0; i != layout.size(); ++i) {
    if (layout[i] == '|') {
      stages.emplace_back();
    } else if (layout[i] == '*') {
      std::size_t digits = 0;
      std::size_t const count = std::stoul(layout.substr(i + 1), &digits);
      stages.back().append(count - 1, layout[i - 1]);
      i += digits;
    } else {
      stages.back().push_back(layout[i]);
    }
  }
  return stages;
}

std::vector<std::uint32_t> const& boundaries_of(planned_scenario const& planned) {
  return planned.plan[omnibal::training_lever::memory].plan.boundaries;
}

std::string text_of(std::filesystem::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// Embedding, layers and loss of the language models.
constexpr std::size_t layers_20b = 48 + 2;
constexpr std::size_t layers_34b = 60 + 2;

void check_layout(planned_scenario const& planned, std::size_t layers) {
  auto const megatron = export_to_megatron(planned);
  INFO(megatron.layout + ": " + megatron.remark);
  auto const stages = stages_of(megatron.layout);
  std::string all;
  for (auto const& stage : stages) all += stage;
  std::string expected(layers, 't');
  expected.front() = 'E';
  expected.back() = 'L';
  CHECK(all == expected);
  REQUIRE(stages.size() <= planned.machine.stages);
  std::size_t const first = planned.machine.stages - stages.size();
  CHECK(contains(megatron.remark, first == 0 ? "the vision tower is on stage 0"
                                             : "on the stages from " + std::to_string(first)));

  auto const& boundaries = boundaries_of(planned);
  std::uint32_t const border = boundaries.back() - static_cast<std::uint32_t>(layers);
  bool const can_say =
      border < boundaries[1] || std::ranges::find(boundaries, border) != boundaries.end();
  CHECK(contains(megatron.remark, "the last plan has none") == !can_say);
  if (!can_say) return;
  for (std::size_t s = 0; s != stages.size(); ++s) {
    std::uint32_t const begin = std::max(boundaries[first + s], border);
    CHECK(stages[s].size() == boundaries[first + s + 1] - begin);
  }
}

}  // namespace

TEST_CASE("the layout for Megatron has the layers of the language model on the stages of the plan",
          "[slow]") {
  for (std::size_t const stages : {std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
    CAPTURE(stages);
    vlm_scenario scenario{"stages"};
    scenario.assumed.stages = stages;
    scenario.assumed.memory_bytes = 640'000'000'000 / static_cast<std::int64_t>(stages);
    check_layout(planned_for(omnibal::internvl_6_20b, scenario), layers_20b);
    check_layout(planned_for(omnibal::internvl_6_34b, scenario), layers_34b);
  }
}

TEST_CASE("the layout for Megatron has the cuts of a plan that cuts before the language model") {
  auto planned = planned_for(omnibal::internvl_6_20b, {"as assumed"});
  auto const last = static_cast<std::size_t>(omnibal::training_lever::memory);
  auto& boundaries = planned.plan.levers[last].plan.boundaries;
  auto const border = boundaries.back() - static_cast<std::uint32_t>(layers_20b);
  boundaries = {0, border, border + 11, border + 30, boundaries.back()};
  check_layout(planned, layers_20b);
  CHECK(export_to_megatron(planned).layout == "Et*10|t*19|t*19L");
}

TEST_CASE("the file for Megatron is the line that is printed") {
  temporary_directory const directory;
  auto const planned = planned_for(omnibal::internvl_6_20b, {"as assumed"});
  auto const megatron = export_to_megatron(planned);
  write_files("6+20B", planned, directory.path());
  CHECK(text_of(directory.path() / "6+20B.megatron.txt") == megatron.layout + '\n');
  check_layout(planned, layers_20b);
}

TEST_CASE("the layout for Megatron has a tower that shares the first stage") {
  temporary_directory const directory;
  vlm_scenario scenario{"one stage"};
  scenario.assumed.stages = 1;
  scenario.assumed.memory_bytes = 2'000'000'000'000;
  auto const planned = planned_for(omnibal::internvl_6_20b, scenario);
  check_layout(planned, layers_20b);
  auto const megatron = export_to_megatron(planned);
  CHECK(megatron.layout == "Et*48L");
  write_files("6+20B", planned, directory.path());
  CHECK(text_of(directory.path() / "6+20B.megatron.txt") == "Et*48L\n");
}

// Why: a plan with chunks goes through cuts, simulation, files and letters, and all must have the
// same virtual stages.
TEST_CASE("a plan with chunks is simulated, written and read back") {
  temporary_directory const directory;
  vlm_scenario scenario{"chunks"};
  scenario.assumed.chunks = 3;
  scenario.assumed.memory_bytes = 160'000'000'000;
  auto const planned = planned_for(omnibal::internvl_6_20b, scenario);
  auto const& last = planned.plan[omnibal::training_lever::memory];
  REQUIRE(last.plan.status == omnibal::solve_status::solved);
  CHECK(last.plan.boundaries.size() == 4 * 3 + 1);
  CHECK(last.plan.stages.size() == 4);
  auto const step = first_step(planned, omnibal::training_lever::memory);
  CHECK(step.timeline.size() == 2 * 4 * 3 * scenario.assumed.micro_batches);
  write_files("6+20B", planned, directory.path());
  auto const read = read_plan(directory.path() / "6+20B.plan.json");
  CHECK(read.plan.boundaries == last.plan.boundaries);
  CHECK(simulate_plan(read) == last.estimate);
  auto const layout = nlohmann::json::parse(text_of(directory.path() / "6+20B.layout.json"));
  CHECK(layout["virtual_stages"] == 3);
  CHECK(layout["devices"] == 4);
  CHECK(layout["stages"].size() == 12);
  CHECK(layout["stages"][5]["device"] == 1);
  CHECK(layout["stages"][5]["chunk"] == 1);
  CHECK(layout["megatron"]["layout"].is_null());
  // The tower has 6 of 26 billion parameters and does not fit a twelfth of the model.
  CHECK(contains(export_to_megatron(planned).remark, "the last plan has none"));

  scenario.assumed.stages = 2;
  scenario.assumed.chunks = 2;
  auto const text = model_of("text.json", "", nlohmann::json::parse(R"({"name": "text",
    "language": {"layers": 6, "hidden": 64, "heads": 4, "mlp": 128, "vocabulary": 1000,
      "prediction": {"layers": 1}}})"));
  auto const letters =
      export_to_megatron(plan_scenario(lengths_for(lengths(), text), scenario, text, 1));
  CHECK(letters.remark == "all stages");
  CHECK(stages_of(letters.layout).size() == 4);
}

TEST_CASE("there is no layout for Megatron and no file where no plan fits the memory") {
  temporary_directory const directory;
  vlm_scenario scenario{"too little memory"};
  scenario.assumed.memory_bytes = 20'000'000'000;
  auto const planned = planned_for(omnibal::internvl_6_34b, scenario);
  auto const megatron = export_to_megatron(planned);
  CHECK(megatron.layout.empty());
  CHECK(contains(megatron.remark, "no plan fits the memory"));
  CHECK_THROWS_WITH(write_files("6+34B", planned, directory.path()),
                    Catch::Contains("no plan of 6+34B fits the memory"));
  CHECK(std::filesystem::is_empty(directory.path()));
}

// Clips follow the samples through random micro-batches and groups: none is lost or doubled.
TEST_CASE("a micro-batch has the clips for which its samples have room") {
  auto const hearing = model_of("hearing.json", "", nlohmann::json::parse(R"({"name": "hearing",
    "vision": {"layers": 2, "hidden": 64, "heads": 4, "mlp": 128, "image_size": 224},
    "audio": {"layers": 2, "hidden": 64, "heads": 4, "mlp": 128,
      "convolutions": [{"inputs": 80, "outputs": 64, "stride": 2}]},
    "audio_projectors": [{"patches_per_token": 2}],
    "language": {"layers": 2, "hidden": 64, "heads": 4, "mlp": 128, "vocabulary": 1000}})"));
  vlm_scenario scenario{"hearing"};
  scenario.assumed.stages = 2;
  scenario.clips = {.count = 3, .length = 400};
  auto const planned = planned_for(hearing, scenario);
  std::int64_t most = 0;
  for (vlm_data const* const data : {&planned.plan.first_data, &planned.plan.balanced_data}) {
    for (vlm_batch const& batch : data->batches) {
      std::int64_t expected = 0;
      for (std::uint32_t const index : batch.samples) {
        sample const& one = planned.samples.samples[index];
        // A tile has 64 tokens and a clip 200.
        std::int64_t clips = 0;
        while (clips != 3 && 64 * one.images + 200 * (clips + 1) <= one.tokens) ++clips;
        expected += clips;
        most = std::max(most, clips);
      }
      REQUIRE(batch.work.clips == omnibal::equal_sequences({.count = expected, .length = 400}));
    }
  }
  CHECK(most == 3);
  // A model without a tower has none, and one that attends to clips has all of them.
  CHECK(clips_for(omnibal::internvl_6_20b, scenario.clips)({.images = 0, .tokens = 4096}) == 0);
  sample_clips const apart{.most = {.count = 3, .length = 400}};
  CHECK(apart({.images = 0, .tokens = 1}) == 3);
}
