// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using numbers = std::vector<std::uint32_t>;

template <class Time>
nlohmann::json json_of(omnibal::pipeline_plan<Time> const& plan) {
  std::string text;
  omnibal::write_plan(plan, std::back_inserter(text));
  return nlohmann::json::parse(text);
}

/// What Megatron-LM makes of a layout: `*` repeats the letter before it.
std::vector<std::string> parsed_layout(std::string const& layout) {
  std::vector<std::string> stages(1);
  for (std::size_t i = 0; i != layout.size(); ++i) {
    if (layout[i] == '|') {
      stages.emplace_back();
    } else if (layout[i] == '*') {
      std::size_t digits = 0;
      auto const count = std::stoul(layout.substr(i + 1), &digits);
      stages.back().append(count - 1, stages.back().back());
      i += digits;
    } else {
      stages.back().push_back(layout[i]);
    }
  }
  return stages;
}

template <class Letter>
std::string layout_of(numbers const& boundaries, Letter const& letter) {
  std::string text;
  omnibal::write_megatron_layout(boundaries, letter, std::back_inserter(text));
  return text;
}

omnibal::pipeline_plan<std::int64_t> small_plan() {
  omnibal::pipeline_plan<std::int64_t> plan;
  plan.boundaries = {0, 2, 2, 5};
  plan.choices = {0, 1, 1, 0, 1};
  plan.stages = {{30, 400, 3}, {0, 7, 2}, {std::numeric_limits<std::int64_t>::max(), 500, 1}};
  plan.step_time = 90;
  plan.lower_bound = 88;
  return plan;
}

}  // namespace

TEST_CASE("write_plan writes what a JSON reader reads back") {
  auto const plan = small_plan();
  auto const json = json_of(plan);
  CHECK(json["status"] == "ok");
  CHECK(json["boundaries"].get<numbers>() == plan.boundaries);
  CHECK(json["choices"].get<numbers>() == plan.choices);
  REQUIRE(json["stages"].size() == 3);
  CHECK(json["stages"][0] == nlohmann::json{{"time", 30}, {"bytes", 400}, {"in_flight", 3}});
  CHECK(json["stages"][2]["time"].get<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  CHECK(json["step_time"] == 90);
  CHECK(json["lower_bound"] == 88);
  CHECK(json["proven"] == false);

  omnibal::pipeline_plan<double> floating;
  floating.boundaries = {0, 1};
  floating.choices = {0};
  floating.stages = {{0.1, 5, 1}};
  floating.proven = true;
  CHECK(json_of(floating)["stages"][0]["time"].get<double>() == 0.1);
  CHECK(json_of(floating)["proven"] == true);
}

TEST_CASE("write_plan writes why there is no plan") {
  omnibal::pipeline_plan<std::int64_t> plan;
  plan.status = omnibal::solve_status::infeasible;
  plan.stage = 2;
  plan.missing_bytes = 77;
  CHECK(json_of(plan) ==
        nlohmann::json{{"status", "infeasible"}, {"stage", 2}, {"missing_bytes", 77}});
}

TEST_CASE("recompute_lists has the layers of each stage with a choice") {
  auto const lists = omnibal::recompute_lists(small_plan(), 1);
  REQUIRE(lists.size() == 3);
  CHECK(numbers(lists[0].begin(), lists[0].end()) == numbers{1});
  CHECK(lists[1].empty());
  CHECK(numbers(lists[2].begin(), lists[2].end()) == numbers{2, 4});
  CHECK(omnibal::recompute_lists(small_plan(), 2).size() == 3);
  CHECK(omnibal::recompute_lists(omnibal::pipeline_plan<double>{}, 0).size() == 0);
}

TEST_CASE("write_megatron_layout writes a letter for each layer") {
  omnibal::language_model_letters const letters{.layers = 8};
  CHECK(layout_of({0, 3, 6, 8}, letters) == "Et*2|t*3|tL");
  CHECK(layout_of({0, 1, 1, 8}, letters) == "E||t*6L");
  CHECK(layout_of({0, 8}, letters) == "Et*6L");
  CHECK(layout_of({0}, letters).empty());
  CHECK(layout_of({0, 8, 8}, letters) == "Et*6L|");
  CHECK(layout_of({0, 0, 8}, letters) == "|Et*6L");
}

TEST_CASE("write_megatron_layout writes multi-token prediction, also on a stage of its own") {
  omnibal::language_model_letters const letters{.layers = 7, .prediction_layers = 2};
  CHECK(layout_of({0, 7}, letters) == "Et*3m*2L");
  CHECK(layout_of({0, 2, 7}, letters) == "Et|t*2m*2L");
  CHECK(layout_of({0, 4, 6, 7}, letters) == "Et*3|m*2|L");
  CHECK(layout_of({0, 4, 4, 6, 7, 7}, letters) == "Et*3||m*2|L|");
  CHECK(layout_of({0, 1, 3, 6, 7}, letters) == "E|t*2|tm*2|L");
  // DeepSeek-V3 with 16 stages of two chunks, the example of Megatron-LM.
  numbers boundaries{0, 4};
  for (int i = 0; i != 29; ++i) boundaries.push_back(boundaries.back() + 2);
  boundaries.insert(boundaries.end(), {63, 64});
  auto const stages = parsed_layout(
      layout_of(boundaries, omnibal::language_model_letters{.layers = 64, .prediction_layers = 1}));
  REQUIRE(stages.size() == 32);
  CHECK(stages[0] == "Ettt");
  CHECK(stages[29] == "tt");
  CHECK(stages[30] == "m");
  CHECK(stages[31] == "L");
}

TEST_CASE("write_megatron_layout refuses what Megatron-LM cannot run") {
  auto const error_of = [](numbers const& boundaries, std::string const& letters) {
    return test::error_text<std::invalid_argument>(
        [&] { layout_of(boundaries, [&](std::uint32_t layer) { return letters[layer]; }); });
  };
  std::string const name = "omnibal::write_megatron_layout: layer ";
  std::string const end = ", which Megatron-LM cannot run";
  CHECK(error_of({0, 3, 5}, "EtmmL") == name + "3 is m behind m of another stage" + end);
  CHECK(error_of({0, 3, 4}, "EtLL") == name + "3 is L behind L of another stage" + end);
  CHECK(error_of({0, 4}, "EtLL") == name + "3 is L behind L" + end);
  CHECK(error_of({0, 4}, "EtmtL") == name + "3 is t behind m" + end);
  CHECK(error_of({0, 4}, "EtLm") == name + "3 is m behind L" + end);
  CHECK(error_of({0, 4}, "EtLt") == name + "3 is t behind L" + end);
  CHECK(error_of({0, 3}, "EEt") == name + "1 is E behind E" + end);
  CHECK(error_of({0, 3}, "tEL") == name + "1 is E behind t" + end);
}

TEST_CASE("write_megatron_layout is read back as the stages of the plan") {
  omnibal::plan_layer<> const layer{{{10, 100, 3}, {13, 10, 5}}, 20};
  std::vector<omnibal::plan_layer<>> const layers(37, layer);
  for (std::size_t stages = 1; stages != 38; ++stages) {
    auto const plan = omnibal::plan_pipeline(layers, {.stages = stages, .memory_bytes = {100'000}},
                                             {.micro_batches = 8});
    auto const parsed =
        parsed_layout(layout_of(plan.boundaries, omnibal::language_model_letters{37}));
    REQUIRE(parsed.size() == stages);
    for (std::size_t s = 0; s != stages; ++s) {
      CHECK(parsed[s].size() == plan.boundaries[s + 1] - plan.boundaries[s]);
    }
    CHECK(parsed.front().front() == 'E');
    CHECK(parsed.back().back() == 'L');
  }
}

TEST_CASE("write_megatron_layout refuses boundaries and letters that mean nothing") {
  omnibal::language_model_letters const letters{.layers = 8};
  auto const error_of = [&](numbers const& boundaries) {
    return test::error_text<std::invalid_argument>([&] { layout_of(boundaries, letters); });
  };
  CHECK(error_of({}) == "omnibal::write_megatron_layout: there are no boundaries");
  CHECK(error_of({1, 8}) == "omnibal::write_megatron_layout: boundaries[0] is 1, must be 0");
  CHECK(error_of({0, 5, 3}) ==
        "omnibal::write_megatron_layout: boundaries[2] is 3, must be at least 5");
  auto const vision = [](std::uint32_t) { return 'v'; };
  CHECK_THROWS_AS(layout_of({0, 1}, vision), std::invalid_argument);
}

// Why: Megatron-LM stops at the start of a run if it cannot place the chunks of a layout.
TEST_CASE("write_megatron_layout writes plans with chunks unless Megatron-LM cannot run them") {
  auto const layout_with = [](omnibal::pipeline_plan<std::int64_t> const& plan) {
    std::string text;
    omnibal::write_megatron_layout(plan, omnibal::language_model_letters{8, 1},
                                   std::back_inserter(text));
    return text;
  };
  omnibal::pipeline_plan<std::int64_t> plan;
  plan.boundaries = {0, 2, 4, 6, 8};
  CHECK(layout_with(plan) == "Et|t*2|t*2|mL");
  plan.chunks = 2;
  CHECK(layout_with(plan) == "Et|t*2|t*2|mL");
  plan.boundaries = {0, 2, 4, 7, 8};
  CHECK(layout_with(plan) == "Et|t*2|t*2m|L");
  auto const error_of = [&] {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(layout_with(plan)); });
  };
  plan.boundaries = {0, 2, 7, 7, 8};
  CHECK(error_of() ==
        "omnibal::write_megatron_layout: layer 6 is m in chunk 0 of stage 1, and Megatron-LM runs "
        "m in the last chunk only");
  plan.boundaries = {0, 2, 4, 6, 8};
  plan.placement = omnibal::chunk_placement::v_shape;
  CHECK(error_of() ==
        "omnibal::write_megatron_layout: the chunks of the plan are not looped, and Megatron-LM "
        "runs looped chunks only");
  plan.boundaries.clear();
  plan.chunks = 1;
  CHECK(error_of() == "omnibal::write_megatron_layout: there are no boundaries");
}

// Why: a trainer that reads a plan must know on which stage each virtual stage lies.
TEST_CASE("write_plan writes the chunks of a plan") {
  CHECK(!json_of(small_plan()).contains("chunks"));
  auto plan = small_plan();
  plan.boundaries = {0, 1, 2, 3, 4, 4, 5};
  plan.chunks = 2;
  auto json = json_of(plan);
  CHECK(json["chunks"] == 2);
  CHECK(json["placement"] == "looped");
  CHECK(json["boundaries"].size() == 7);
  CHECK(json["step_time"] == 90);
  plan.placement = omnibal::chunk_placement::v_shape;
  CHECK(json_of(plan)["placement"] == "v_shape");
  plan.status = omnibal::solve_status::not_found;
  plan.missing_bytes = 9;
  CHECK(json_of(plan)["status"] == "not_found");
  CHECK(json_of(plan)["missing_bytes"] == 9);
}
