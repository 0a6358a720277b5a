// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The readers of one file each, behind `read_lengths`.

#include "dataset.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "progress.hpp"
#include "read_lengths.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// The fields that a record must have, and the sample that their counts make.
class record_fields {
 public:
  static constexpr std::size_t most = 3;
  using counts = std::array<std::int64_t, most>;

  explicit record_fields(field_names const& fields);

  [[nodiscard]] std::span<std::string const> names() const { return names_; }
  [[nodiscard]] bool has_images() const { return names_.size() > 1; }

  /// Errors: `input_error` where a name was chosen, which samples without names cannot have; `kind`
  /// says what they are.
  void check_nameless(position const& where, std::string_view kind) const;

  /// The place of a field among `names()`, or their number where it is none of them.
  [[nodiscard]] std::size_t find(std::string_view name) const;

  /// The sample of counts in the order of `names()`. Errors: `input_error` where its tokens leave
  /// 64 bits.
  [[nodiscard]] sample make(position const& where, counts const& values) const;

 private:
  field_names const& fields_;
  std::vector<std::string> names_;
};

void read_json_list(file_text const& text, record_fields const& fields, progress& shown,
                    dataset& data);

void read_json_columns(file_text const& text, record_fields const& fields, dataset& data);

void read_json_lines(file_text const& text, record_fields const& fields, progress& shown,
                     dataset& data);

void read_csv(file_text const& text, record_fields const& fields, progress& shown, dataset& data);

void read_numbers(file_text const& text, record_fields const& fields, progress& shown,
                  dataset& data);

/// Of two columns the first are images, the second tokens, to which `fields` apply as to those of
/// records. Errors: `input_error` also where `fields` name what an array does not have.
void read_npy(file_text const& text, record_fields const& fields, dataset& data);

struct manifest_entry {
  std::string name;
  std::string path;
};

[[nodiscard]] std::vector<manifest_entry> read_manifest(file_text const& text);

/// Where the list or object ends that `text` begins with; npos where it is never closed. Brackets
/// in strings do not count.
[[nodiscard]] std::size_t end_of_json(std::string_view text);

}  // namespace examples
