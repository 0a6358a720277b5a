// SPDX-License-Identifier: Apache-2.0
#include "published_total.hpp"

#include "csv_records.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "progress.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// The bytes of a parameter by the types that a configuration names; 0 where it names none or
/// another.
std::int64_t bytes_of_parameter(nlohmann::json const& configuration) {
  for (char const* const name : {"dtype", "torch_dtype"}) {
    if (!configuration.contains(name) || !configuration[name].is_string()) continue;
    std::string const type = configuration[name];
    if (type == "bfloat16" || type == "float16") return 2;
    if (type == "float32") return 4;
  }
  for (char const* const part : {"text_config", "thinker_config", "llm_config"}) {
    if (!configuration.contains(part) || !configuration[part].is_object()) continue;
    if (std::int64_t const bytes = bytes_of_parameter(configuration[part])) return bytes;
  }
  return 0;
}

}  // namespace

published_total total_of_index(std::string const& path, nlohmann::json const& index,
                               nlohmann::json const& configuration) {
  constexpr std::int64_t largest = std::int64_t{1} << 60;
  auto const metadata = json_fields(path, "", index).object("metadata");
  std::string const file = std::filesystem::path(path).filename().string();
  published_total result;
  if (metadata.has("total_size")) {
    result.bytes =
        static_cast<std::int64_t>(metadata.number("total_size", 1, static_cast<double>(largest)));
  }
  if (metadata.has("total_parameters")) {
    result.parameters = metadata.integer("total_parameters", 1, largest);
    result.source = "metadata.total_parameters of " + file;
    return result;
  }
  if (result.bytes == 0) static_cast<void>(metadata.at("total_size"));
  std::int64_t const each = bytes_of_parameter(configuration);
  result.source = "metadata.total_size of " + file;
  if (configuration.contains("quantization_config")) {
    result.source += ", no number of parameters, because the weights are quantized";
  } else if (each == 0) {
    result.source += ", no number of parameters, because the configuration has no dtype";
  } else if (result.bytes % each != 0) {
    result.source += ", no multiple of the " + std::to_string(each) + " bytes of a parameter";
  } else {
    result.parameters = result.bytes / each;
  }
  return result;
}

published_totals read_published_totals(std::filesystem::path const& path) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  published_totals result;
  auto const take = [&](position const& where, std::array<std::string_view, 2> const& values) {
    std::int64_t const parameters = parse_count(where, "parameters", values[1]);
    if (result.emplace(values[0], parameters).second) return;
    fail(where, "model \"" + std::string(values[0]) + "\" occurs twice");
  };
  for_each_csv_record(text, ',', take, "model", "parameters");
  return result;
}

}  // namespace examples
