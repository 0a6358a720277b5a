// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Errors of input that name the file, the record and the value.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace examples {

/// The input cannot be used. The text says which file, record, field and value.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A record, or the header for all records, lacks a field.
class missing_field : public input_error {
 public:
  missing_field(std::string const& text, std::string_view name) : input_error(text), name_(name) {}

  [[nodiscard]] std::string const& name() const { return name_; }

 private:
  std::string name_;
};

/// A place in an input file. Records and lines count from one; zero is "not known".
struct position {
  std::string_view file;
  std::size_t record = 0;
  std::size_t line = 0;
};

/// `train.jsonl: record 3 (line 4)`, without the parts that are not known.
[[nodiscard]] std::string to_text(position const& where);

[[noreturn]] void fail(position const& where, std::string_view problem);

/// Fails because `text`, a token as it stands in the file, is not a count that fits 64 bits. Where
/// `field` is empty the record is the value.
[[noreturn]] void fail_value(position const& where, std::string_view field, std::string_view text);

/// The same for another rule: `problem` says what is wrong with the text, `rule` what it must be.
[[noreturn]] void fail_value(position const& where, std::string_view field, std::string_view text,
                             std::string_view problem, std::string_view rule);

/// Throws `missing_field` for `field`; points to the name in `present` that was probably meant.
[[noreturn]] void fail_missing(position const& where, std::string_view field,
                               std::span<std::string const> present);

/// `; did you mean "near"?` for the nearest of the names, or `; the fields are ...` where none is
/// near; `plural` says what they are.
[[nodiscard]] std::string hint_at(std::string_view name, std::span<std::string const> present,
                                  std::string_view plural = "fields");

/// The count that a text holds: digits only.
[[nodiscard]] std::int64_t parse_count(position const& where, std::string_view field,
                                       std::string_view text);

}  // namespace examples
