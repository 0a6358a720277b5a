// SPDX-License-Identifier: Apache-2.0
// Models by name: known models, files, and pairs of these.
#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "published_total.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

model_description const* known_model(std::string const& name) {
  for (model_description const& model : known_models()) {
    if (lower(model.name) == lower(name)) return &model;
  }
  return nullptr;
}

bool names_file(std::string const& given) {
  return given.ends_with(".json") || given.find('/') != std::string::npos;
}

/// Python's json writes `NaN`, `Infinity` and `-Infinity`, which are no JSON: the text with these
/// as texts. A field that needs a number refuses a text.
std::string without_constants(std::string_view text) {
  constexpr std::array<std::string_view, 3> constants{"-Infinity", "Infinity", "NaN"};
  std::string result;
  result.reserve(text.size());
  bool is_text = false;
  for (std::size_t at = 0; at < text.size();) {
    std::string_view const rest = text.substr(at);
    auto const* const found =
        is_text ? constants.end() : std::ranges::find_if(constants, [&](std::string_view one) {
          return rest.starts_with(one);
        });
    if (found != constants.end()) {
      result.append(1, '"').append(*found).append(1, '"');
      at += found->size();
      continue;
    }
    bool const is_escaped = is_text && rest.front() == '\\' && rest.size() > 1;
    if (rest.front() == '"') is_text = !is_text;
    result.append(rest.substr(0, is_escaped ? 2 : 1));
    at += is_escaped ? 2 : 1;
  }
  return result;
}

/// Refuses a file that is read while it is read: model files that name each other.
class open_model_file {
 public:
  explicit open_model_file(std::string const& path)
      : path_(std::filesystem::weakly_canonical(path).string()) {
    if (std::ranges::find(open(), path_) != open().end()) {
      fail({path}, "is named by itself, or by a model file that it names");
    }
    open().push_back(path_);
  }
  open_model_file(open_model_file const&) = delete;
  open_model_file& operator=(open_model_file const&) = delete;
  ~open_model_file() { open().pop_back(); }

 private:
  static std::vector<std::string>& open() {
    thread_local std::vector<std::string> paths;
    return paths;
  }

  std::string path_;
};

constexpr std::string_view index_name = "model.safetensors.index.json";

/// A file as JSON.
nlohmann::json read_json(std::string const& path) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  return parse_json(text.name(), without_constants(text.view()));
}

/// A file with a model, or its folder, or the index of weights in its folder. The index is read
/// only if one of the last two is given.
model_description read_model_file(std::string const& given, std::string_view family) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path const named(given);
  bool const is_index = named.filename() == index_name;
  bool const is_folder = fs::is_directory(named, ignored);
  fs::path const folder = is_index ? named.parent_path() : named;
  std::string const path = is_index || is_folder ? (folder / "config.json").string() : given;
  open_model_file const guard(path);
  nlohmann::json const configuration = read_json(path);
  model_description model = model_of(path, "", configuration, family);
  std::string const index = (folder / index_name).string();
  if (is_index || (is_folder && fs::exists(index, ignored))) {
    model.published = total_of_index(index, read_json(index), configuration);
  }
  if (!model.name.empty()) return model;
  // A configuration is called config.json, its folder as the model.
  fs::path const whole = fs::absolute(path).lexically_normal();
  bool const is_in_folder = whole.stem() == "config" && whole.has_parent_path();
  model.name = (is_in_folder ? whole.parent_path().filename() : whole.stem()).string();
  return model;
}

/// One name or file. Precondition: it is one.
model_description single_model(std::string const& given, std::string_view family) {
  auto const* const known = known_model(given);
  return known != nullptr ? *known : read_model_file(given, family);
}

bool is_single_model(std::string const& given) {
  return known_model(given) != nullptr || names_file(given);
}

[[noreturn]] void fail_unknown(std::string const& given) {
  std::vector<std::string> names;
  for (model_description const& model : known_models()) names.push_back(model.name);
  throw input_error("there is no model \"" + given + "\"" + hint_at(given, names, "models"));
}

/// The first place where a plus has a name or a file on either side, or on one side of it if there
/// is none; `npos` where nothing is known.
std::size_t border_of(std::string const& given) {
  std::size_t half = std::string::npos;
  for (std::size_t plus = given.find('+'); plus != std::string::npos;
       plus = given.find('+', plus + 1)) {
    bool const is_first = is_single_model(given.substr(0, plus));
    bool const is_second = is_single_model(given.substr(plus + 1));
    if (is_first && is_second) return plus;
    if ((is_first || is_second) && half == std::string::npos) half = plus;
  }
  return half;
}

model_description joined(std::string const& given, std::size_t plus, std::string_view family) {
  std::string const first = given.substr(0, plus);
  std::string const second = given.substr(plus + 1);
  for (std::string const& name : {first, second}) {
    if (!is_single_model(name)) fail_unknown(name);
  }
  if (!family.empty() && known_model(first) != nullptr && known_model(second) != nullptr) {
    throw input_error("\"" + given + "\" is two known models: --as is for public configurations");
  }
  auto result = single_model(first, family);
  auto const language = single_model(second, family);
  if (!result.vision) throw input_error("model \"" + first + "\" has no vision tower");
  if (!language.language) throw input_error("model \"" + second + "\" has no language model");
  result.language = language.language;
  result.cross.reset();
  result.published.reset();
  if (result.audio && !result.audio->connectors.empty()) {
    result.audio->connectors.back().layer.output = language.language->input.hidden;
  }
  result.name += '+' + language.name;
  lead_connectors(result);
  return result;
}

/// A name, a file that there is, two of these, or a file that there is not.
model_description any_model(std::string const& given, std::string_view family) {
  std::error_code ignored;
  if (known_model(given) != nullptr && !family.empty()) {
    throw input_error("\"" + given + "\" is a known model: --as is for public configurations");
  }
  if (known_model(given) != nullptr || std::filesystem::exists(given, ignored)) {
    return single_model(given, family);
  }
  std::size_t const plus = border_of(given);
  if (plus != std::string::npos) return joined(given, plus, family);
  if (names_file(given)) return single_model(given, family);
  fail_unknown(given);
}

}  // namespace

model_description find_model(std::string const& given, model_parts needed,
                             std::string_view family) {
  model_description model = any_model(given, family);
  if (needed == model_parts::any) return model;
  if (needed != model_parts::vision && !model.language) {
    throw input_error("model \"" + given +
                      "\" is a vision tower alone; add a language model, as in " + model.name +
                      "+llama3-8b");
  }
  if (needed != model_parts::language && !model.vision) {
    throw input_error("model \"" + given + "\" has no vision tower; add one, as in internvit-6b+" +
                      model.name);
  }
  return model;
}

model_description padded(model_description model, std::int64_t tensor_ranks) {
  auto const pad = [&](auto& layer) {
    std::int64_t const odd = layer.heads % tensor_ranks;
    if (odd == 0) return;
    if (layer.head_size == 0) layer.head_size = layer.hidden / layer.heads;
    layer.heads += tensor_ranks - odd;
  };
  if (!model.vision) return model;
  for (omnibal::vision_run& run : model.vision->tower.runs) pad(run.layer);
  if (model.vision->resampler) pad(model.vision->resampler->layer);
  return model;
}

}  // namespace examples
