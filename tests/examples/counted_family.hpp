// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small configurations with the number of parameters that their classes have.

#include "model_file.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace test {

/// A configuration and the number of parameters of its class in transformers 5.24.0, counted on the
/// meta device. The configuration is `text`, or, if `text` has no model_type, the common sizes with
/// the name as model_type and what `text` changes. Other fields have the defaults of the class.
struct counted_family {
  char const* name;
  char const* text;
  std::int64_t total;
};

inline nlohmann::json configuration_of(counted_family const& family) {
  auto const given = nlohmann::json::parse(family.text);
  if (given.contains("model_type")) return given;
  nlohmann::json result{{"model_type", family.name}, {"vocab_size", 1000},
                        {"hidden_size", 512},        {"intermediate_size", 1024},
                        {"num_hidden_layers", 6},    {"num_attention_heads", 8}};
  result.update(given);
  return result;
}

/// Compares the totals, and reads what is written of each model.
inline void check_families(std::vector<counted_family> const& families) {
  for (counted_family const& one : families) {
    INFO(one.name);
    auto const model = examples::model_of("config.json", "", configuration_of(one));
    CHECK(omnibal::count_parameters(model.without_prediction()).total == one.total);
    auto const written = examples::model_json(model);
    auto const again = examples::model_of("x.json", "", nlohmann::json::parse(written.dump()));
    CHECK(examples::model_json(again) == written);
  }
}

}  // namespace test
