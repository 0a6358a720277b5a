// SPDX-License-Identifier: Apache-2.0
#include "public_pair.hpp"

#include "audio_families.hpp"
#include "field_rules.hpp"
#include "input_error.hpp"
#include "public_parts.hpp"
#include "public_text.hpp"
#include "public_tower.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// The rules of the object around tower and language model. What it repeats of the language model
/// must be equal; `repeated` keeps the names of these fields.
field_rules pair_rules(json_fields const& given, pair_family const& family, json_fields const* text,
                       std::vector<std::string>& repeated) {
  field_rules rules{
      .understood = family.understood, .neutral = family.neutral, .ignored = family.ignored};
  rules.understood.insert(rules.understood.end(), {family.text_field, "tie_word_embeddings"});
  if (!family.tower_family.empty()) rules.understood.emplace_back("vision_config");
  if (!family.audio_family.empty()) rules.understood.push_back(family.audio_field);
  rules.add(common_rules());
  if (text == nullptr) return rules;
  for (std::string const& field : text->names()) {
    char const* const c_name = field.c_str();
    if (!given.has(c_name) || !text->has(c_name) || field == "model_type") continue;
    if (given.at(c_name) == text->at(c_name)) repeated.push_back(field);
  }
  rules.understood.insert(rules.understood.end(), repeated.begin(), repeated.end());
  return rules;
}

/// True where the pair ties the matrices of its language model. What the two parts say may differ.
bool is_tied(json_fields const& given, json_fields const& text, pair_family const& family,
             bool otherwise) {
  constexpr char const* name = "tie_word_embeddings";
  bool const of_text = text.flag_or(name, otherwise);
  if (family.tied == tied_by::pair) {
    bool const of_class = text.has(name) ? of_text : family.ties_by_default;
    return given.flag_or(name, of_class);
  }
  if (!given.has(name) || family.tied == tied_by::language) return of_text;
  bool const of_pair = given.flag_or(name, otherwise);
  if (family.tied == tied_by::either && of_text) return true;
  if (!text.has(name) || of_text == of_pair) return of_pair;
  given.refuse(name, "but " + in_quotes(text.path_of(name)) +
                         " is not, and versions of transformers differ about which of them holds; "
                         "make the two equal");
}

omnibal::mixed_language_model text_of_pair(json_fields const& given, std::string const& name,
                                           pair_family const& family) {
  std::string const field(family.text_field);
  // The rules refer to these names.
  std::vector<std::string> repeated;
  if (!given.has(field.c_str()) && !family.text_family.empty()) {
    return public_text(given, std::string(family.text_family),
                       {.around = pair_rules(given, family, nullptr, repeated), .name = name});
  }
  auto completed = nlohmann::json::parse(family.text_defaults);
  completed.update(given.at(field.c_str()));
  for (std::string_view const unused : family.text_ignored) completed.erase(std::string(unused));
  json_fields const text(given.file(), given.path_of(field.c_str()), completed);
  check_fields(given, name, pair_rules(given, family, &text, repeated));
  std::string const stated = stated_family(text, family.text_family);
  return public_text(text, stated,
                     {.is_tied = is_tied(given, text, family, ties_by_default(text, stated))});
}

/// The tower of a file, or that of the class.
vision_part vision_of(json_fields const& given, pair_family const& family) {
  if (given.has("vision_config")) {
    auto const vision = given.object("vision_config");
    return public_tower(vision, stated_family(vision, family.tower_family));
  }
  auto const defaults = nlohmann::json::parse(family.vision_defaults);
  return public_tower(json_fields(given.file(), given.path_of("vision_config"), defaults),
                      std::string(family.tower_family));
}

}  // namespace

model_description public_pair(json_fields const& given, std::string const& name,
                              pair_family const& family) {
  if (!family.inner.empty()) {
    field_rules rules{.understood = {family.inner}, .ignored = family.ignored};
    rules.add(common_rules());
    check_fields(given, name, rules);
    auto const inner = given.object(std::string(family.inner).c_str());
    std::string const stated = stated_family(inner, name + "_thinker");
    auto model = public_pair(inner, stated, family_in(pair_families(), inner, stated));
    for (ignored_fields const& group : family.ignored) {
      for (std::string_view const field : group.names) {
        std::string const part(field);
        if (!given.has(part.c_str()) || !given.at(part.c_str()).is_object()) continue;
        model.omitted.push_back({part});
      }
    }
    return model;
  }
  model_description model;
  auto const has_tower = [&](std::string_view tower, char const* field) {
    return !tower.empty() && (!family.has_optional_towers || given.has(field));
  };
  bool const has_vision = has_tower(family.tower_family, "vision_config");
  // Without a size of its own a tower is that of the class, which is known for some families.
  if (has_vision && family.vision_defaults == "{}") static_cast<void>(given.at("vision_config"));
  model.language = text_of_pair(given, name, family);
  std::int64_t const width = model.language->input.hidden;
  if (has_vision) {
    model.vision = vision_of(given, family);
    pair_draft draft{.given = given, .width = width, .vision = *model.vision};
    if (family.connect != nullptr) family.connect(draft);
    auto& connector = model.vision->connector;
    if (connector.output == 0) connector.output = width;
    if (connector.hidden < 0) connector.hidden = width;
  }
  std::string const audio_field(family.audio_field);
  if (has_tower(family.audio_family, audio_field.c_str())) {
    auto const audio = given.object(audio_field.c_str());
    model.audio = public_audio(audio, stated_family(audio, family.audio_family), width);
    if (family.connect_audio != nullptr) family.connect_audio(given, width, *model.audio);
  }
  return model;
}

}  // namespace examples
