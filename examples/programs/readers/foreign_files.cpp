// SPDX-License-Identifier: Apache-2.0
#include "foreign_files.hpp"

#include "text_lines.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace examples {

namespace {

using namespace std::string_view_literals;

struct foreign {
  std::string_view magic;
  std::string_view name;
};

/// A longer beginning stands before its own beginning.
constexpr foreign kinds[]{{"PK\x03\x04"sv, "a zip file (.npz, .zip)"},
                          {"PK\x05\x06"sv, "a zip file (.npz, .zip)"},
                          {"\xFD"
                           "7zXZ\0"sv,
                           "an xz file"},
                          {"\x04\x22\x4D\x18"sv, "an lz4 file"},
                          {"\x89HDF\r\n\x1A\n"sv, "an HDF5 file"},
                          {"SQLite format 3\0"sv, "an SQLite database"},
                          {"\x00\x00\xFE\xFF"sv, "a text in UTF-32"},
                          {"\xFF\xFE\0\0"sv, "a text in UTF-32"},
                          {"\xFF\xFE"sv, "a text in UTF-16"},
                          {"\xFE\xFF"sv, "a text in UTF-16"}};

bool is_bzip2(std::string_view bytes) {
  return bytes.size() >= 4 && bytes.starts_with("BZh") && is_digit(bytes[3]) &&
         (bytes.size() == 4 || bytes.substr(4).starts_with("1AY&SY"sv) ||
          bytes.substr(4).starts_with("\x17\x72\x45\x38\x50\x90"sv));
}

/// Protocols 0 and 1 have no magic number: these are the opcodes with which lists, dictionaries,
/// tuples and arrays begin.
bool is_old_pickle(std::string_view bytes) {
  for (std::string_view const begin : {"(lp"sv, "(dp"sv, "]q\0"sv, "}q\0"sv}) {
    if (bytes.starts_with(begin)) return true;
  }
  // A tuple of integers.
  if (bytes.starts_with("(I") && bytes.size() > 2 && is_digit(bytes[2])) return true;
  // A global name: module and name, each with a line end, and where it is memorized.
  if (!bytes.starts_with('c')) return false;
  std::string_view const rest = bytes.substr(0, 200);
  std::size_t const module = rest.find('\n');
  std::size_t const name = module == rest.npos ? module : rest.find('\n', module + 1);
  if (name == rest.npos) return false;
  std::string_view const memo = rest.substr(name + 1);
  return memo.starts_with("p0\n") || memo.starts_with("q\0"sv);
}

bool is_pickle(std::string_view bytes) {
  bool const has_protocol =
      bytes.size() >= 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  return has_protocol || is_old_pickle(bytes);
}

/// The checksum CRC-32C, as TFRecord stores it.
std::uint32_t masked_checksum(std::string_view bytes) {
  std::uint32_t sum = ~std::uint32_t{0};
  for (char const c : bytes) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit != 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1U) != 0 ? 0x82F63B78U : 0U);
    }
  }
  return std::rotr(~sum, 15) + 0xA282EAD8U;
}

/// A record begins with its length and the checksum of that.
bool is_tfrecord(std::string_view bytes) {
  if (bytes.size() < 12) return false;
  std::uint32_t stored = 0;
  for (std::size_t i = 12; i-- != 8;) {
    stored = stored << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return masked_checksum(bytes.substr(0, 8)) == stored;
}

}  // namespace

std::string_view foreign_kind(std::string_view bytes) {
  for (auto const& [magic, name] : kinds) {
    if (bytes.starts_with(magic)) return name;
  }
  if (is_bzip2(bytes)) return "a bzip2 file";
  if (is_pickle(bytes)) return "a Python pickle";
  if (is_tfrecord(bytes)) return "a TFRecord file";
  return {};
}

}  // namespace examples
