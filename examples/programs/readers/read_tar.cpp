// SPDX-License-Identifier: Apache-2.0
// Shards of WebDataset: tar archives whose members with one key are a sample.
#include "byte_view.hpp"
#include "input_error.hpp"
#include "readers.hpp"
#include "text_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace examples {

namespace {

constexpr std::size_t block = 512;

struct tar_member {
  std::string name;
  std::string_view content;
};

/// A text in a field of fixed size, which ends at its first zero byte.
std::string_view text_of(std::string_view field) { return field.substr(0, field.find('\0')); }

/// Reads the regular files of an archive in the formats ustar, pax and GNU.
class tar_reader {
 public:
  explicit tar_reader(file_text const& text) : bytes_(text, "a tar archive") {}

  /// False at the end of the archive. Errors: `input_error` for an archive that is damaged,
  /// truncated or has sparse files.
  bool next(tar_member& member) {
    while (true) {
      std::string_view const header = bytes_.part(place_, block);
      if (header.find_first_not_of('\0') == header.npos) {
        check_end();
        return false;
      }
      check_sum(header);
      std::size_t const size = has_size_ ? size_ : octal(header.substr(124, 12), "size");
      char const type = header[156];
      place_ += block;
      std::string_view const content = bytes_.part(place_, size);
      // Also the blocks are whole.
      std::size_t const padded = size + (block - size % block) % block;
      bytes_.need(place_, padded);
      if (type == 'x' || type == 'g') {
        has_size_ = false;
        read_records(content, type == 'g');
      } else if (type == 'L') {
        if (name_.empty()) name_ = text_of(content);
      } else if (type != 'K') {
        member.name = name_.empty() ? name_in(header) : name_;
        member.content = content;
        bool const is_file = is_regular(type, size, member.name);
        name_.clear();
        has_size_ = false;
        place_ += padded;
        if (is_file) return true;
        continue;
      }
      place_ += padded;
    }
  }

  [[nodiscard]] byte_view const& bytes() const { return bytes_; }

 private:
  [[nodiscard]] std::string at() const { return "whose header at byte " + std::to_string(place_); }

  /// Two blocks of zeros end an archive; zeros may follow.
  void check_end() const {
    bytes_.need(place_, 2 * block);
    std::string_view const rest = bytes_.part(place_, bytes_.size() - place_);
    if (rest.find_first_not_of('\0') != rest.npos) bytes_.refuse("with bytes behind its end");
    if (rest.size() % block != 0) bytes_.refuse("that is truncated within a block of zeros");
  }

  /// The sum of the bytes of a header, its own field counting as blanks.
  void check_sum(std::string_view header) const {
    std::int64_t positive = 0;
    std::int64_t with_signs = 0;
    for (std::size_t i = 0; i != block; ++i) {
      bool const is_sum = i >= 148 && i < 156;
      positive += is_sum ? ' ' : static_cast<unsigned char>(header[i]);
      with_signs += is_sum ? ' ' : static_cast<signed char>(header[i]);
    }
    auto const sum = static_cast<std::int64_t>(octal(header.substr(148, 8), "checksum"));
    if (sum == positive || sum == with_signs) return;
    bytes_.refuse(at() + " has the checksum " + std::to_string(sum) + ", must have " +
                  std::to_string(positive));
  }

  /// Octal digits, or from a first byte 0x80 on a binary number, the highest byte first.
  [[nodiscard]] std::size_t octal(std::string_view field, std::string const& what) const {
    if (field[0] == '\x80') {
      if (field.substr(1, field.size() - 9).find_first_not_of('\0') != field.npos ||
          static_cast<unsigned char>(field[field.size() - 8]) > 0x7F) {
        bytes_.refuse(at() + " has a " + what + " above 2^63");
      }
      std::size_t value = 0;
      for (char const c : field.substr(field.size() - 8)) {
        value = value << 8 | static_cast<unsigned char>(c);
      }
      return value;
    }
    std::size_t const first = std::min(field.find_first_not_of(' '), field.size());
    std::size_t value = 0;
    char const* const last = field.data() + field.size();
    auto const [end, error] = std::from_chars(field.data() + first, last, value, 8);
    bool const is_ended = std::all_of(end, last, [](char c) { return c == ' ' || c == '\0'; });
    // An empty field is zero.
    bool const is_empty = error == std::errc::invalid_argument && end == field.data() + first;
    if (!is_ended || (error != std::errc{} && !is_empty)) {
      bytes_.refuse(at() + " has a " + what + " that is no octal number");
    }
    return value;
  }

  [[nodiscard]] static std::string name_in(std::string_view header) {
    std::string const name(text_of(header.substr(0, 100)));
    bool const has_prefix = header.substr(257, 6) == std::string_view("ustar\0", 6);
    std::string_view const prefix = has_prefix ? text_of(header.substr(345, 155)) : "";
    return prefix.empty() ? name : std::string(prefix) + '/' + name;
  }

  [[nodiscard]] bool is_regular(char type, std::size_t size, std::string const& name) const {
    bool const is_old = type == '\0';
    if (type == '0' || type == '7' || (is_old && !name.ends_with('/'))) return true;
    if (type == 'S') bytes_.refuse("with the sparse file \"" + name + "\", which is not read");
    bool const is_known = is_old || (type >= '1' && type <= '6');
    if (!is_known) {
      bytes_.refuse("with \"" + name + "\" of the unknown type '" + std::string(1, type) + "'");
    }
    if (size != 0) {
      bytes_.refuse("with the link or folder \"" + name + "\" of " + std::to_string(size) +
                    " bytes, must have none");
    }
    return false;
  }

  /// The records `LENGTH NAME=VALUE` of pax, for the next member or for all that follow.
  void read_records(std::string_view records, bool is_global) {
    while (!records.empty()) {
      std::size_t length = 0;
      auto const [end, error] =
          std::from_chars(records.data(), records.data() + records.size(), length);
      auto const digits = static_cast<std::size_t>(end - records.data());
      if (error != std::errc{} || length > records.size() || length < digits + 3 ||
          records[digits] != ' ' || records[length - 1] != '\n') {
        bytes_.refuse("with a damaged pax header before byte " + std::to_string(place_));
      }
      std::string_view const record = records.substr(digits + 1, length - digits - 2);
      std::size_t const equals = record.find('=');
      if (equals == record.npos) {
        bytes_.refuse("with a damaged pax header before byte " + std::to_string(place_));
      }
      apply(record.substr(0, equals), record.substr(equals + 1), is_global);
      records.remove_prefix(length);
    }
  }

  void apply(std::string_view key, std::string_view value, bool is_global) {
    bool const is_sparse = key.starts_with("GNU.sparse.");
    if (is_sparse || (is_global && (key == "path" || key == "size"))) {
      bytes_.refuse("with the pax field " + std::string(key) +
                    (is_sparse ? "" : " for all members") + ", which is not read");
    }
    if (key == "path") name_ = value;
    if (key != "size") return;
    auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), size_);
    has_size_ = error == std::errc{} && end == value.data() + value.size();
    if (!has_size_) bytes_.refuse("with the pax size " + std::string(value));
  }

  byte_view bytes_;
  std::size_t place_ = 0;
  /// What extended headers say about the next member.
  std::string name_;
  std::size_t size_ = 0;
  bool has_size_ = false;
};

/// The key and the extension of a member as WebDataset cuts them: before and behind the first dot
/// of the last name. The key is empty for a member that is part of no sample.
struct member_key {
  std::string_view key;
  std::string extension;
};

member_key key_of_member(std::string_view path) {
  std::string_view const top = path.substr(0, path.find('/'));
  bool const is_meta = top.size() >= 4 && top.starts_with("__") && top.ends_with("__");
  std::size_t const slash = path.rfind('/');
  std::size_t const name = slash == path.npos ? 0 : slash + 1;
  std::size_t const dot = path.find('.', name);
  if (is_meta || dot == path.npos || dot == 0) return {};
  if (dot == name) {
    // A hidden file in a folder without a dot: the folder is the key.
    std::size_t const before = slash == 0 ? path.npos : path.rfind('/', slash - 1);
    std::size_t const folder = before == path.npos ? 0 : before + 1;
    if (path.substr(folder, slash - folder).find('.') != path.npos) return {};
  }
  std::string extension(path.substr(dot + 1));
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return {path.substr(0, dot), extension};
}

/// The members of one sample.
struct tar_sample {
  std::string key;
  std::vector<std::string> extensions;
  std::vector<std::string_view> contents;
};

}  // namespace

void read_tar(file_text const& text, record_fields const& fields, dataset& data) {
  bool const reads_sizes = !fields.tar_member().empty();
  std::string const wanted = reads_sizes ? fields.tar_member() : "json";
  if (reads_sizes) fields.check_nameless({text.name()}, "a tar archive read with --tar-member");
  if (!reads_sizes && fields.has_images()) data.kind = sample_kind::images_and_text;
  tar_reader reader(text);
  position where{text.name()};
  tar_sample current;
  auto const finish = [&] {
    if (current.key.empty()) return;
    ++where.record;
    auto const found = std::ranges::find(current.extensions, wanted);
    if (found == current.extensions.end()) {
      fail(where,
           "\"" + current.key + "\" has no member ." + wanted +
               hint_at(wanted, current.extensions, "members") +
               (reads_sizes ? "" : "; --tar-member names one whose bytes are counted instead"));
    }
    auto const place = static_cast<std::size_t>(found - current.extensions.begin());
    std::string_view const content = current.contents[place];
    if (reads_sizes) {
      data.samples.push_back({0, fields.tokens(where, std::to_string(content.size()))});
      return;
    }
    std::string const name = text.name() + ": " + current.key + ".json";
    data.samples.push_back(read_json_object(text, content, {name}, fields));
  };
  for (tar_member member; reader.next(member);) {
    if (member.name.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
      reader.bytes().refuse("with a line break or zero byte in the name of a member");
    }
    auto const [key, extension] = key_of_member(member.name);
    if (key.empty()) continue;
    if (key != current.key) {
      finish();
      current = {std::string(key), {}, {}};
    }
    if (std::ranges::find(current.extensions, extension) != current.extensions.end()) {
      reader.bytes().refuse("with two members \"" + member.name + "\" in one sample");
    }
    current.extensions.push_back(extension);
    current.contents.push_back(member.content);
  }
  finish();
}

}  // namespace examples
