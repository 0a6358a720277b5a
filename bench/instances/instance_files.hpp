// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Files of published instances in a folder of the user's, and what is known of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

namespace fs = std::filesystem;

/// What is known of an instance; -1: nothing.
struct known {
  std::int64_t optimum = -1;
  std::int64_t best = -1;
};

inline std::int64_t next_number(std::ifstream& file, fs::path const& path) {
  std::int64_t number = 0;
  if (file >> number) return number;
  throw std::runtime_error(path.string() + " ends early, or has a word that is no number");
}

inline std::map<std::string, known> read_optima(fs::path const& path) {
  std::map<std::string, known> result;
  std::ifstream file(path);
  std::string line;
  std::vector<std::string> columns;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, '\t');) row.push_back(field);
    if (columns.empty()) {
      columns = row;
      continue;
    }
    std::string name;
    known of;
    for (std::size_t i = 0; i != std::min(row.size(), columns.size()); ++i) {
      if (columns[i] == "file") name = row[i];
      if (row[i].empty()) continue;
      if (columns[i] == "optimum") of.optimum = std::stoll(row[i]);
      if (columns[i] == "best") of.best = std::stoll(row[i]);
    }
    result[name] = of;
  }
  return result;
}

inline double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

/// The files in a folder and below, but for tables and texts, in order.
inline std::vector<fs::path> instance_files(fs::path const& folder) {
  std::vector<fs::path> files;
  for (auto const& entry : fs::recursive_directory_iterator(folder)) {
    auto const extension = entry.path().extension();
    if (entry.is_regular_file() && extension != ".tsv" && extension != ".md") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace bench
