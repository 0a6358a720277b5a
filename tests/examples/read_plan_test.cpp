// SPDX-License-Identifier: Apache-2.0
#include "read_plan.hpp"

#include "dataset.hpp"
#include "input_error.hpp"
#include "staged_files.hpp"
#include "synthetic.hpp"
#include "temporary_directory.hpp"
#include "vlm_exports.hpp"
#include "vlm_layers.hpp"
#include "vlm_scenarios.hpp"

#include <omnibal/cost/models.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;

struct written_plan {
  temporary_directory directory;
  dataset data = synthetic_lengths(2048, 1);
  planned_scenario planned;

  written_plan() : planned(plan_scenario(data, {"as assumed"}, omnibal::internvl_6_20b, 1)) {
    staged_files files;
    write_plan_files(files, "6+20B", planned, export_to_megatron(planned), {data, 1},
                     directory.path());
    files.commit();
  }

  [[nodiscard]] std::filesystem::path path(std::string const& suffix) const {
    return directory.path() / ("6+20B." + suffix);
  }
  [[nodiscard]] std::string text(std::string const& suffix) const {
    std::ostringstream text;
    text << std::ifstream(path(suffix), std::ios::binary).rdbuf();
    return text.str();
  }
  [[nodiscard]] omnibal::lever_result const& last() const {
    return planned.plan[omnibal::training_lever::memory];
  }

  /// The message for the plan with another text in one of its files.
  [[nodiscard]] std::string complaint(std::string const& suffix, std::string const& text) const {
    std::string const before = this->text(suffix);
    directory.write("6+20B." + suffix, text);
    std::string message;
    try {
      static_cast<void>(read_plan(path("plan.json")));
    } catch (input_error const& error) {
      message = error.what();
    }
    directory.write("6+20B." + suffix, before);
    return message;
  }
};

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  std::size_t const at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a plan that is read back gives the printed step time and memory of every stage") {
  written_plan const written;
  exported_plan const read = read_plan(written.path("plan.json"));
  CHECK(read.plan == written.last().plan);
  CHECK(read.printed == written.last().estimate);
  CHECK(read.machine.stages == 4);
  CHECK(simulate_plan(read) == written.last().estimate);
}

TEST_CASE(
    "a trainer that follows the recompute list stays below the memory, one that remakes "
    "only the layers that are remade whole does not") {
  written_plan const written;
  exported_plan read = read_plan(written.path("plan.json"));
  read.plan.choices = read_recompute_list(written.path("recompute.csv"), read.plan.boundaries);
  auto const memory = read.machine.memory_bytes.values()[0];
  for (std::int64_t const peak : simulate_plan(read).peak_bytes) CHECK(peak <= memory);

  auto const selective = static_cast<std::uint32_t>(omnibal::recompute_choice::selective);
  std::ranges::replace(read.plan.choices, selective, std::uint32_t{0});
  CHECK(std::ranges::max(simulate_plan(read).peak_bytes) > memory + memory / 4);
}

TEST_CASE("the recompute list says for each layer what it saves and what that takes") {
  written_plan const written;
  auto const& planned = written.planned;
  auto const layers = omnibal::shape_costs(planned.plan.balanced_data.batches,
                                           planned.machine.device, planned.cost);
  auto const& plan = written.last().plan;
  std::istringstream lines(written.text("recompute.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "layer,stage,kind,choice,kept_bytes,saved_bytes,recompute_nanoseconds");
  for (std::size_t l = 0; l != layers.size(); ++l) {
    REQUIRE(std::getline(lines, line));
    std::size_t const after = static_cast<std::size_t>(
        std::ranges::upper_bound(plan.boundaries, static_cast<std::uint32_t>(l)) -
        plan.boundaries.begin());
    auto const& chosen = layers[l].choices[plan.choices[l]];
    auto const& all = layers[l].choices[0];
    std::ostringstream expected;
    expected << l << ',' << after - 1 << ',' << layer_kinds(planned.cost.model)[l] << ','
             << recompute_names[plan.choices[l]] << ',' << chosen.bytes << ','
             << all.bytes - chosen.bytes << ',' << chosen.time - all.time;
    CHECK(line == expected.str());
  }
  CHECK(!std::getline(lines, line));
}

TEST_CASE("a recompute list is never written empty or in part") {
  written_plan const written;
  auto const& planned = written.planned;
  auto const layers = omnibal::shape_costs(planned.plan.balanced_data.batches,
                                           planned.machine.device, planned.cost);
  auto const kinds = layer_kinds(planned.cost.model);
  std::ostringstream out;
  auto plan = written.last().plan;
  plan.choices.pop_back();
  CHECK_THROWS_AS(write_recompute_list(plan, layers, kinds, out), std::invalid_argument);
  plan = written.last().plan;
  plan.boundaries.back() -= 1;
  CHECK_THROWS_AS(write_recompute_list(plan, layers, kinds, out), std::invalid_argument);
  CHECK_THROWS_AS(write_recompute_list({}, {}, {}, out), std::invalid_argument);
  CHECK(out.str().empty());
}

TEST_CASE("each sample of the data set is in one micro-batch or listed as left out") {
  written_plan const written;
  auto const plan = nlohmann::json::parse(written.text("plan.json"));
  std::vector<std::uint32_t> seen;
  for (vlm_batch const& batch : read_plan(written.path("plan.json")).data.batches) {
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
  }
  for (std::uint32_t const sample : seen) REQUIRE(sample < written.data.samples.size());
  for (char const* const list : {"oversized", "left_out"}) {
    for (auto const& sample : plan[list]) seen.push_back(sample);
  }
  std::ranges::sort(seen);
  std::vector<std::uint32_t> all(written.data.samples.size());
  std::iota(all.begin(), all.end(), 0u);
  CHECK(seen == all);
}

TEST_CASE("files of a plan that are wrong are named with the field and the value") {
  written_plan const written;
  std::string const list = written.text("recompute.csv");
  std::string const head = list.substr(0, list.find('\n') + 1);
  std::string const plan = written.text("plan.json");
  std::string const steps = written.text("steps.jsonl");
  struct wrong_file {
    std::string suffix;
    std::string text;
    std::string message;
  };
  std::vector<wrong_file> const files{
      {"recompute.csv", head, "6+20B.recompute.csv: has 0 layers of 97"},
      {"recompute.csv", list.substr(0, list.find("\n50,") + 1), "has 50 layers of 97"},
      {"recompute.csv",
       list.substr(0, list.find("\n50,") + 1) + list.substr(list.find("\n51,") + 1),
       "field \"layer\" is \"51\", must be 50"},
      {"recompute.csv", list + "97,3,head,none,0,0,0\n", "the plan has 97 layers"},
      {"recompute.csv", replaced(list, "\n5,0,", "\n5,1,"),
       "record 6 (line 7): field \"stage\" is \"1\", must be 0"},
      {"recompute.csv", replaced(list, "selective", "some"),
       "field \"choice\" is \"some\", must be none, selective or full"},
      {"recompute.csv", replaced(list, "selective", "full"), "is full, in "},
      {"recompute.csv", "", "6+20B.recompute.csv"},
      {"plan.json", plan.substr(0, 200), "6+20B.plan.json: line"},
      {"plan.json", "[]", "is [], must be an object"},
      {"plan.json", replaced(plan, "omnibal pipeline plan", "omnibal plan"),
       "field \"format\" is \"omnibal plan\""},
      {"plan.json", replaced(plan, "\"format_version\": 1", "\"format_version\": 2"),
       "field \"format_version\" is 2, must be an integer from 1 to 1"},
      {"plan.json", replaced(plan, "\"memory_bytes\": 8", "\"memory_bytes\": -8"),
       "field \"machine.memory_bytes\" is -80000000000"},
      {"plan.json", replaced(plan, "\"memory_bytes\"", "\"memory_byte\""),
       "no field \"machine.memory_bytes\"; did you mean \"memory_byte\"?"},
      {"plan.json", replaced(plan, "\"split\"", "\"splits\""),
       "field \"degrees.norms\" is \"splits\"; did you mean \"split\"?"},
      {"steps.jsonl", "", "6+20B.steps.jsonl"},
      {"steps.jsonl", "{\"ranks\":[]}\n", "line 1: must have a list \"ranks\" of 8 ranks"},
      {"steps.jsonl", steps + steps, "runs twice"},
      {"steps.jsonl", steps.substr(0, steps.size() / 2), "steps.jsonl: line"}};
  for (wrong_file const& one : files) {
    std::string const message = written.complaint(one.suffix, one.text);
    INFO(one.suffix << ": " << message << " lacks " << one.message);
    CHECK(contains(message, one.message));
  }
}
