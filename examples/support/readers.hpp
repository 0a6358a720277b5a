#pragma once

/// \file
/// The readers of one file each, behind `read_lengths`.

#include "dataset.hpp"
#include "file_text.hpp"
#include "progress.hpp"
#include "read_lengths.hpp"

#include <string>
#include <vector>

namespace examples {

void read_json_list(file_text const& text, field_names const& fields, progress& shown,
                    std::vector<sample>& samples);

void read_json_lines(file_text const& text, field_names const& fields, progress& shown,
                     std::vector<sample>& samples);

void read_csv(file_text const& text, field_names const& fields, progress& shown,
              std::vector<sample>& samples);

struct manifest_entry {
  std::string name;
  std::string path;
};

[[nodiscard]] std::vector<manifest_entry> read_manifest(file_text const& text);

}  // namespace examples
