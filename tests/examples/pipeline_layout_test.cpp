// SPDX-License-Identifier: Apache-2.0
// Layouts of all parts of a model: each layer once, losses behind all that they need.
#include "pipeline_layout.hpp"

#include "model_file.hpp"
#include "vlm_layers.hpp"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using numbers = std::vector<std::uint32_t>;
using texts = std::vector<std::string>;

model_description model(std::string const& text) {
  return model_of("x.json", "", nlohmann::json::parse(text));
}

/// Layers: 0 patch embedding, 1-4 tower, 5 norm, 6 projector, 7 embedding, 8-10 language, 11-12
/// prediction, 13 losses.
model_description const& mixed() {
  static model_description const given = model(R"({"name": "mixed",
    "vision": {"layers": 4, "hidden": 64, "heads": 4, "mlp": 128, "image_size": 56,
      "last_norm": true},
    "language": {"layers": 3, "hidden": 128, "heads": 4, "mlp": 256, "vocabulary": 1000,
      "prediction": {"layers": 2}}})");
  return given;
}

pipeline_layout layout_with(numbers const& boundaries, std::size_t devices) {
  auto const kinds = layer_kinds(mixed());
  numbers choices(kinds.size(), 1);
  choices.front() = 0;
  choices.back() = 0;
  return layout_of("mixed", kinds, 2, boundaries, choices, devices);
}

nlohmann::json json_of(pipeline_layout const& layout, megatron_export const& megatron = {}) {
  std::ostringstream out;
  write_layout(layout, megatron, out);
  return nlohmann::json::parse(out.str());
}

std::string error_of(pipeline_layout const& layout) {
  try {
    check_layout(layout);
    return "no error";
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
}

layer_range& range_of(pipeline_layout& layout, std::size_t stage, layout_part part) {
  return layout.stages[stage].parts[static_cast<std::size_t>(part)];
}

}  // namespace

TEST_CASE("a layout has the layers of towers and language model on the stages of a plan") {
  numbers const boundaries{0, 3, 9, 11, 14};
  auto const json = json_of(layout_with(boundaries, 4));
  CHECK(json["format"] == "omnibal pipeline layout");
  CHECK(json["format_version"] == 1);
  CHECK(json["devices"] == 4);
  CHECK(json["virtual_stages"] == 1);
  CHECK(json["layers"] ==
        nlohmann::json{{"vision", 4}, {"connector", 1}, {"language", 3}, {"prediction", 2}});
  CHECK(json["losses"] == texts{"main", "prediction 1", "prediction 2"});
  auto const& stages = json["stages"];
  REQUIRE(stages.size() == 4);
  CHECK(stages[0]["vision"] == numbers{0, 2});
  CHECK(stages[0]["single_layers"] == texts{"patch embedding"});
  CHECK(stages[0]["embedding"] == false);
  CHECK(stages[0]["recompute"] == texts{"none", "selective", "selective"});
  // A stage with layers of both.
  CHECK(stages[1]["vision"] == numbers{2, 4});
  CHECK(stages[1]["connector"] == numbers{0, 1});
  CHECK(stages[1]["language"] == numbers{0, 1});
  CHECK(stages[1]["embedding"] == true);
  CHECK(stages[1]["single_layers"] == texts{"tower norm"});
  CHECK(stages[2]["language"] == numbers{1, 3});
  CHECK(stages[2]["losses"] == texts{});
  CHECK(stages[3]["language"] == numbers{3, 3});
  CHECK(stages[3]["prediction"] == numbers{0, 2});
  CHECK(stages[3]["losses"] == texts{"main", "prediction 1", "prediction 2"});
  CHECK(stages[3]["recompute"] == texts{"selective", "selective", "none"});
  CHECK(!stages[3].contains("audio"));
}

TEST_CASE("virtual stages go around the devices") {
  auto const json = json_of(layout_with({0, 3, 7, 11, 14}, 2));
  CHECK(json["virtual_stages"] == 2);
  CHECK(json["stages"][2]["device"] == 0);
  CHECK(json["stages"][2]["chunk"] == 1);
  CHECK(json["stages"][3]["device"] == 1);
  CHECK_THROWS_WITH(layout_with({0, 3, 7, 14}, 2),
                    Catch::Contains("3 stages are no multiple of 2 devices"));
}

TEST_CASE("every way to cut a model is a layout that can run") {
  for (std::uint32_t first = 0; first <= 14; ++first) {
    for (std::uint32_t second = first; second <= 14; ++second) {
      auto const layout = layout_with({0, first, second, 14}, 3);
      std::size_t layers = 0;
      for (auto const& stage : layout.stages) layers += stage.recompute.size();
      CHECK(layers == 14);
    }
  }
}

TEST_CASE("a layout that no trainer can run is refused with what is wrong") {
  auto const whole = layout_with({0, 3, 9, 11, 14}, 4);
  std::string const cannot = "the layout cannot run: ";
  CHECK(error_of(whole) == "no error");

  auto gap = whole;
  range_of(gap, 1, layout_part::vision).first = 3;
  CHECK(error_of(gap) == cannot + "stage 1 has the vision layers 3 to 4, must begin with 2");
  auto twice = whole;
  range_of(twice, 2, layout_part::language).first = 0;
  CHECK(error_of(twice) == cannot + "stage 2 has the language layers 0 to 3, must begin with 1");
  auto missing = whole;
  range_of(missing, 2, layout_part::language).end = 2;
  CHECK(error_of(missing) == cannot + "the stages have 2 language layers, the model has 3");
  auto early_loss = whole;
  std::swap(early_loss.stages[2].losses, early_loss.stages[3].losses);
  CHECK(error_of(early_loss) == cannot + "stage 3 has multi-token prediction behind the losses");
  auto split_loss = whole;
  split_loss.stages[2].losses = {"main"};
  split_loss.stages[3].losses.erase(split_loss.stages[3].losses.begin());
  CHECK(error_of(split_loss) ==
        cannot + "stage 2 has 1 losses, must have all losses of the model or none");
  auto no_loss = whole;
  no_loss.stages[3].losses.clear();
  CHECK(error_of(no_loss) == cannot + "\"main\" is on 0 stages, must be on 1");
  auto no_embedding = whole;
  no_embedding.stages[1].has_embedding = false;
  CHECK(error_of(no_embedding) == cannot + "the embedding is on 0 stages");
  auto late_embedding = whole;
  late_embedding.stages[1].has_embedding = false;
  late_embedding.stages[2].has_embedding = true;
  CHECK(error_of(late_embedding) == cannot + "stage 2 has the embedding behind the language model");
  auto late_tower = whole;
  std::swap(late_tower.stages[1].single_layers, late_tower.stages[2].single_layers);
  CHECK(error_of(late_tower) == cannot + "stage 2 has a tower behind the language model");
  auto no_choice = whole;
  no_choice.stages[0].recompute.pop_back();
  CHECK(error_of(no_choice) == cannot + "stage 0 has 3 layers and 2 choices of recomputation");
  auto unknown = whole;
  unknown.stages[0].single_layers.emplace_back("audio stem");
  CHECK(error_of(unknown) == cannot + "\"audio stem\" is no part of the model");
  CHECK(error_of({}) == cannot + "there are no stages");
}

TEST_CASE("Megatron-LM's letters are there where they can say the same") {
  auto const letters = [](numbers const& boundaries, std::size_t chunks = 1) {
    std::string const obstacle =
        megatron_obstacle(mixed(), boundaries, (boundaries.size() - 1) / chunks);
    return obstacle.empty() ? megatron_letters(mixed(), boundaries).layout : obstacle;
  };
  CHECK(letters({0, 7, 10, 14}) == "Et*2|tm*2L");
  CHECK(letters({0, 7, 11, 13, 14}) == "Et*3|m*2|L");
  CHECK(
      letters({0, 3, 9, 14}) ==
      "its stage 1 has the layers 3 to 8, of which those before 7 belong to the vision tower, and "
      "the layout has letters for language models only");
  // A tower whole on the first stage is where Megatron-Bridge builds it.
  CHECK(letters({0, 9, 14}) == "Et|t*2m*2L");
  CHECK(letters({0, 8, 9, 10, 14}, 2) == "E|t|t|tm*2L");
  CHECK(
      letters({0, 7, 9, 10, 14}, 2) ==
      "the vision tower is on the virtual stages 0 to 0, and with several chunks the layout needs "
      "it whole on the first one");
  CHECK(
      letters({0, 3, 8, 10, 14}, 2) ==
      "the vision tower is on the virtual stages 0 to 1, and with several chunks the layout needs "
      "it whole on the first one");
  CHECK(letters({0, 9, 13, 14, 14}, 2) ==
        "its layers of multi-token prediction begin in chunk 0 of device 1, and Megatron-LM runs "
        "them in the last chunk of a device");
  CHECK(megatron_letters(mixed(), numbers{0, 9, 14}).remark ==
        "all stages; the vision tower is on stage 0 before the embedding, as Megatron-Bridge "
        "builds it");
  CHECK(letters({0, 7, 12, 14}) ==
        "its layers of multi-token prediction are on the stages 1 to 2, and Megatron-LM runs all "
        "of them on one stage");
  auto const speech = model(R"({"model_type": "whisper", "d_model": 64, "encoder_layers": 2,
    "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4})");
  CHECK(megatron_obstacle(speech, numbers{0, 4, 9}, 2) ==
        "the layout has no letter for layers of cross-attention");
}
