// SPDX-License-Identifier: Apache-2.0
#include "length_files.hpp"

#include "progress.hpp"
#include "read_lengths.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace bench {

std::vector<std::filesystem::path> length_files() {
  std::vector<std::filesystem::path> files;
  char const* const folder = std::getenv("OMNIBAL_BENCH_LENGTHS");
  if (folder == nullptr) return files;
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<sample> read_lengths(std::vector<std::filesystem::path> const& files) {
  examples::progress shown(examples::visibility::hidden);
  examples::dataset data;
  for (auto const& file : files) {
    examples::read_lengths(file, examples::input_format::detect, {}, shown, data);
  }
  std::vector<sample> samples;
  samples.reserve(data.samples.size());
  for (auto const& [images, tokens] : data.samples) samples.push_back({images, tokens});
  return samples;
}

}  // namespace bench
