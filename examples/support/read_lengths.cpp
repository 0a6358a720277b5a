#include "read_lengths.hpp"

#include "input_error.hpp"
#include "readers.hpp"

#include <string_view>
#include <system_error>

namespace examples {

namespace {

constexpr std::string_view blank = " \t\r\n";

/// True where the first field of the object that `text` begins with holds an object, as in a
/// manifest.
bool begins_nested_object(std::string_view text) {
  std::size_t i = text.find_first_not_of(blank, 1);
  if (i == std::string_view::npos || text[i] != '"') return i != text.npos && text[i] == '}';
  for (++i; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') ++i;
  }
  i = text.find_first_not_of(blank, i + 1);
  if (i == std::string_view::npos || text[i] != ':') return false;
  i = text.find_first_not_of(blank, i + 1);
  return i != std::string_view::npos && text[i] == '{';
}

input_format detected(file_text const& text) {
  std::string const extension = std::filesystem::path(text.name()).extension().string();
  if (extension == ".jsonl" || extension == ".ndjson") return input_format::jsonl;
  if (extension == ".csv") return input_format::csv;
  std::size_t const first = text.view().find_first_not_of(blank);
  if (first == std::string_view::npos) fail({text.name()}, "the file is empty");
  std::string_view const body = text.view().substr(first);
  if (body.front() == '[') return input_format::json;
  if (body.front() == '{') {
    return begins_nested_object(body) ? input_format::manifest : input_format::jsonl;
  }
  return extension == ".json" ? input_format::json : input_format::csv;
}

void read_samples(file_text const& text, input_format format, field_names const& fields,
                  progress& shown, dataset& data) {
  std::size_t const before = data.samples.size();
  if (text.view().find_first_not_of(blank) == std::string_view::npos) {
    fail({text.name()}, "the file is empty");
  }
  shown.begin("reading " + text.name());
  switch (format) {
    case input_format::jsonl: read_json_lines(text, fields, shown, data.samples); break;
    case input_format::csv: read_csv(text, fields, shown, data.samples); break;
    default: read_json_list(text, fields, shown, data.samples);
  }
  std::size_t const records = data.samples.size() - before;
  if (records == 0) fail({text.name()}, "has no records");
  data.sources.push_back({text.name(), records});
}

/// Where a path of a manifest leads: beside the manifest, or else from the working directory.
std::filesystem::path resolved(file_text const& manifest, manifest_entry const& entry) {
  std::filesystem::path const beside =
      std::filesystem::path(manifest.name()).parent_path() / entry.path;
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return beside.lexically_normal();
  if (std::filesystem::exists(entry.path, ignored)) return entry.path;
  fail({manifest.name()}, "entry \"" + entry.name + "\" names " + entry.path +
                              ", which is neither beside the manifest (" + beside.string() +
                              ") nor in the working directory");
}

void read_manifest_files(file_text const& manifest, field_names const& fields, progress& shown,
                         dataset& data) {
  auto const entries = read_manifest(manifest);
  if (entries.empty()) fail({manifest.name()}, "has no entries");
  for (manifest_entry const& entry : entries) {
    file_text const text(resolved(manifest, entry), shown);
    input_format const format = detected(text);
    if (format == input_format::manifest) {
      fail({manifest.name()},
           "entry \"" + entry.name + "\" names " + text.name() + ", which is a manifest itself");
    }
    read_samples(text, format, fields, shown, data);
  }
}

}  // namespace

void read_lengths(std::filesystem::path const& path, input_format format, field_names const& fields,
                  progress& shown, dataset& data) {
  shown.begin("loading " + path.string());
  file_text const text(path, shown);
  input_format const actual = format == input_format::detect ? detected(text) : format;
  if (actual == input_format::manifest) {
    read_manifest_files(text, fields, shown, data);
  } else {
    read_samples(text, actual, fields, shown, data);
  }
}

}  // namespace examples
