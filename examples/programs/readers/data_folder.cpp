// SPDX-License-Identifier: Apache-2.0
#include "data_folder.hpp"

#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"

#include <string>
#include <system_error>

namespace examples {

namespace {

bool is_file(std::filesystem::path const& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

std::vector<std::filesystem::path> files_of_folder(std::filesystem::path const& folder,
                                                   progress& shown) {
  if (is_file(folder / "index.json")) return {folder / "index.json"};
  if (is_file(folder / "dataset_dict.json")) {
    fail({folder.string()}, "has several data sets of save_to_disk; name the folder of one");
  }
  if (!is_file(folder / "state.json")) {
    fail({folder.string()},
         "is a folder without the index.json of MosaicML and litData and without the state.json of "
         "save_to_disk");
  }
  file_text const text(folder / "state.json", shown);
  auto const content = parse_json(text.name(), text.view());
  json_fields const state(text.name(), "", content);
  for (std::string const& name : state.names()) {
    bool const has_index = name.starts_with("_indices") && name.find("files") != name.npos &&
                           state.has(name.c_str()) && !state.at(name.c_str()).empty();
    if (has_index)
      state.refuse(name.c_str(), "must be empty; save flatten_indices() of the data set");
  }
  auto const& files = state.at("_data_files");
  if (!files.is_array() || files.empty()) state.refuse("_data_files", "must be a list of files");
  std::vector<std::filesystem::path> result;
  for (auto const& file : files) {
    result.push_back(folder / json_fields(text.name(), "_data_files", file).text("filename"));
  }
  return result;
}

}  // namespace examples
