// SPDX-License-Identifier: Apache-2.0
#include "public_model.hpp"

#include "audio_families.hpp"
#include "field_rules.hpp"
#include "pair_families.hpp"
#include "public_pair.hpp"
#include "public_parts.hpp"
#include "public_text.hpp"
#include "public_tower.hpp"
#include "text_families.hpp"
#include "tower_connector.hpp"
#include "tower_families.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// True if the name is that of a pair and of its tower, and the fields are those of the tower.
bool is_tower_of(json_fields const& given, std::string const& name) {
  return family_of(tower_families(), name) != nullptr && given.has("depth");
}

model_description lone_tower(vision_part const& vision) {
  model_description model;
  model.vision = vision;
  // The hidden layer of its connector would have the width of a language model.
  auto& connector = model.vision->connector;
  if (connector.hidden < 0) connector.hidden = 0;
  std::int64_t further = 0;
  for (connector_run const& run : vision.further) further += run.count * run.layer({}).parameters;
  if (connector.output == 0 && further != 0) {
    model.omitted.push_back({"connector of the class of the tower", further});
  }
  return model;
}

/// An audio tower without the connectors that need the width of a language model.
model_description lone_audio(json_fields const& given, std::string const& name) {
  model_description model;
  model.audio = public_audio(given, name, 0);
  std::erase_if(model.audio->connectors,
                [](connector_run const& run) { return run.layer.output == 0; });
  return model;
}

model_description clip_tower(json_fields const& given, std::string const& name,
                             clip_family const& family) {
  field_rules rules{
      .understood = {"vision_config"},
      .ignored = {
          {"the tower of texts is not read", {"text_config", "text_config_dict"}},
          {"the space that texts and images share", {"projection_dim", "max_logit_scale"}}}};
  rules.add(common_rules());
  check_fields(given, name, rules);
  auto const defaults = nlohmann::json::object();
  json_fields const vision =
      given.has("vision_config")
          ? given.object("vision_config")
          : json_fields(given.file(), given.path_of("vision_config"), defaults);
  auto model = lone_tower(public_tower(vision, stated_family(vision, family.tower_family)));
  model.omitted.push_back({"tower of texts and projections",
                           family.omitted_parameters(given, model.vision->tower.layer().hidden)});
  return model;
}

model_description open_clip_model(json_fields const& given) {
  field_rules rules{
      .understood = {"vision_cfg"},
      .ignored = {{"the tower of texts is not read", {"text_cfg", "quick_gelu"}},
                  {"the space that texts and images share", {"embed_dim", "custom_text"}}}};
  check_fields(given, "open_clip", rules);
  auto const fields = given.object("vision_cfg");
  auto const tower = open_clip_tower(fields);
  auto model = lone_tower({tower, connector_of(fields, tower, usual_side(tower))});
  if (given.has("text_cfg")) model.omitted.push_back({"text_cfg"});
  return model;
}

}  // namespace

bool is_public_model(json_fields const& given) {
  constexpr std::array names{"model_type",  "hidden_size", "vocab_size", "vision_config",
                             "text_config", "llm_config",  "vision_cfg", "thinker_config"};
  return std::ranges::any_of(names, [&](char const* name) { return given.has(name); });
}

model_description public_model(json_fields const& given, std::string_view family) {
  std::string const name = family.empty() ? stated_family(given, "") : std::string(family);
  if (name.empty() && given.has("vision_cfg")) return open_clip_model(given);
  model_description model;
  if (family_of(pair_families(), name) != nullptr && !is_tower_of(given, name)) {
    model = public_pair(given, name, *family_of(pair_families(), name));
  } else if (family_of(text_families(), name) != nullptr) {
    model.language = public_text(given, name);
  } else if (auto const* const clip = family_of(clip_families(), name)) {
    model = clip_tower(given, name, *clip);
  } else if (family_of(speech_families(), name) != nullptr) {
    model = public_speech(given, name);
  } else if (family_of(audio_families(), name) != nullptr) {
    model = lone_audio(given, name);
  } else if (family_of(tower_families(), name) != nullptr) {
    model = lone_tower(public_tower(given, name));
  } else {
    fail_family(given, name);
  }
  return model;
}

}  // namespace examples
