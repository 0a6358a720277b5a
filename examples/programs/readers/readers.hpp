// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The readers of one file each, behind `read_lengths`.

#include "dataset.hpp"
#include "decimal.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "progress.hpp"
#include "read_lengths.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A value as it stands in a file: the text at which it begins, or the number of elements of a
/// list.
struct field_value {
  std::string_view text;
  std::optional<std::size_t> elements{};
};

/// The same for a value that is no text in a file; the text of a list begins with `[`.
struct column_value {
  std::string text;
  std::optional<std::size_t> elements{};
};

/// The fields that a record must have, and the sample that their counts make.
class record_fields {
 public:
  static constexpr std::size_t most = 3;
  using counts = std::array<std::int64_t, most>;

  /// Errors: `input_error` for a scale that is no number above 0.
  explicit record_fields(field_names const& fields);

  [[nodiscard]] std::span<std::string const> names() const { return names_; }
  [[nodiscard]] bool has_images() const { return names_.size() > 1; }

  /// True if no name has a dot and every value is the count itself, so that a record needs no
  /// search.
  [[nodiscard]] bool are_plain() const { return are_plain_; }

  [[nodiscard]] bool are_documents() const { return fields_.are_documents; }
  [[nodiscard]] std::string const& tar_member() const { return fields_.tar_member; }
  [[nodiscard]] bool has_scale() const { return scale_.has_value(); }

  /// The count that the value of the field at a place among `names()` means: a nonnegative integer,
  /// or for tokens a nonnegative number times the scale, rounded up, or the elements of a list.
  /// Errors: `input_error` for another value.
  [[nodiscard]] std::int64_t count(position const& where, std::size_t place,
                                   field_value const& value) const;

  /// The tokens of a number that is no field, times the scale. Errors: as `count`.
  [[nodiscard]] std::int64_t tokens(position const& where, std::string_view text) const;

  /// Errors: `input_error` where a name was chosen, which samples without names cannot have; `kind`
  /// says what they are.
  void check_nameless(position const& where, std::string_view kind) const;

  /// Errors: `input_error` where an option is for files of another format.
  void check_format(position const& where, input_format format) const;

  /// Errors: `input_error` where elements of a list are to be counted; `kind` has no lists.
  void check_no_list(position const& where, std::string_view kind) const;

  /// The place of a field among `names()`, or their number where it is none of them.
  [[nodiscard]] std::size_t find(std::string_view name) const;

  /// The sample of counts in the order of `names()`. Errors: `input_error` where its tokens leave
  /// 64 bits.
  [[nodiscard]] sample make(position const& where, counts const& values) const;

 private:
  [[nodiscard]] std::int64_t scaled(position const& where, std::string_view field,
                                    std::string_view text) const;

  field_names const& fields_;
  std::vector<std::string> names_;
  std::optional<decimal> scale_;
  bool are_plain_ = true;
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

/// The sequences, or the documents, of the index of a Megatron corpus. Errors: `input_error` where
/// lengths, places and documents do not fit to each other and to the size of the file, for
/// sequences with modes, which may be images, and where `fields` name what an index does not have.
void read_megatron(file_text const& text, record_fields const& fields, dataset& data);

/// The samples of the shards that an index of MosaicML (MDS) names, beside the index: integers,
/// floats and arrays, whose first extents count as the elements of a list. Errors: `input_error`
/// for shards and values that contradict the index, and for columns of other encodings.
void read_mds(file_text const& text, record_fields const& fields, progress& shown, dataset& data);

/// The same for the chunks that an index of litData names. Errors: `input_error` also for chunks
/// that are encrypted, or written for another loader than that of items.
void read_litdata(file_text const& text, record_fields const& fields, progress& shown,
                  dataset& data);

/// The rows of a Parquet file, an Arrow file or an Arrow stream, as their first bytes tell. Appends
/// records behind that of `where`. Errors: `input_error` for damaged files, for columns that are
/// neither integers, floats nor lists, and for every file without Arrow C++.
void read_arrow(std::string_view bytes, record_fields const& fields, position& where,
                dataset& data);

/// The samples of a shard of WebDataset: the fields of the member `.json` of each, or the bytes of
/// the member that `fields` name. Errors: `input_error` for an archive that is damaged, truncated
/// or has sparse files, and for a sample without the member.
void read_tar(file_text const& text, record_fields const& fields, dataset& data);

/// The sample of a JSON object, which is a part of the view of `text`. Errors: `input_error`.
[[nodiscard]] sample read_json_object(file_text const& text, std::string_view object,
                                      position const& where, record_fields const& fields);

struct manifest_entry {
  std::string name;
  std::string path;
};

[[nodiscard]] std::vector<manifest_entry> read_manifest(file_text const& text);

/// Where the list or object ends that `text` begins with; npos where it is never closed. Brackets
/// in strings do not count.
[[nodiscard]] std::size_t end_of_json(std::string_view text);

}  // namespace examples
