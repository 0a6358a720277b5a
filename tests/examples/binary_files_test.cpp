// SPDX-License-Identifier: Apache-2.0
// Indexes of Megatron and shards of WebDataset: what they say, and that no cut of them is read.
#include "check_contains.hpp"
#include "input_error.hpp"
#include "read_lengths.hpp"
#include "temporary_directory.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using namespace std::string_view_literals;
using examples::dataset;
using examples::field_names;
using examples::sample;

std::vector<sample> samples_of(std::string const& name, std::string_view bytes,
                               field_names const& fields = {}) {
  temporary_directory const directory;
  examples::progress hidden(examples::visibility::hidden);
  dataset data;
  examples::read_lengths(directory.write(name, bytes), examples::input_format::detect, fields,
                         hidden, data);
  return data.samples;
}

/// The text of the error that reading gives; empty where there is none.
std::string error_of(std::string_view bytes, field_names const& fields = {}) {
  try {
    samples_of("a", bytes, fields);
  } catch (examples::input_error const& error) {
    return error.what();
  }
  return "";
}

template <class Integer>
void put(std::string& bytes, Integer value) {
  auto rest = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i != sizeof(Integer); ++i, rest >>= 8) {
    bytes += static_cast<char>(rest & 0xFF);
  }
}

struct megatron {
  std::vector<std::int32_t> lengths{100, 30, 200, 50};
  std::vector<std::int64_t> places{0, 400, 520, 1320};
  std::vector<std::int64_t> documents{0, 1, 3, 3, 4};
  std::vector<std::int8_t> modes{};
  std::uint64_t version = 1;
  std::uint8_t type = 4;

  [[nodiscard]] std::string bytes() const {
    std::string result("MMIDIDX\0\0"sv);
    put(result, version);
    put(result, type);
    put(result, static_cast<std::uint64_t>(lengths.size()));
    put(result, static_cast<std::uint64_t>(documents.size()));
    for (auto const one : lengths) put(result, one);
    for (auto const one : places) put(result, one);
    for (auto const one : documents) put(result, one);
    for (auto const one : modes) put(result, one);
    return result;
  }
};

std::string octal(std::size_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*zo", digits, value);
  return text;
}

/// A header of a tar archive with its checksum.
std::string tar_header(std::string const& name, std::size_t size, char type = '0',
                       std::string const& prefix = "", std::string_view magic = "ustar\00000"sv) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 8, "0000644"sv.data(), 8);
  header.replace(124, 12, octal(size, 11).c_str(), 12);
  header[156] = type;
  header.replace(257, magic.size(), magic);
  header.replace(345, prefix.size(), prefix);
  header.replace(148, 8, 8, ' ');
  std::size_t sum = 0;
  for (char const c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, octal(sum, 6).c_str(), 7);
  return header;
}

std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512, '\0');
  return text;
}

std::string tar_file(std::string const& name, std::string const& content, char type = '0',
                     std::string const& prefix = "") {
  return tar_header(name, content.size(), type, prefix) + padded(content);
}

std::string const tar_end(1024, '\0');

/// The record of pax, whose length counts its own digits.
std::string pax_record(std::string const& key, std::string const& value) {
  std::string const rest = " " + key + "=" + value + "\n";
  std::size_t size = rest.size();
  while (std::to_string(size).size() + rest.size() != size) ++size;
  return std::to_string(size) + rest;
}

}  // namespace

TEST_CASE("an index of Megatron has sequences and documents") {
  megatron index;
  std::vector<sample> const sequences{{0, 100}, {0, 30}, {0, 200}, {0, 50}};
  std::vector<sample> const documents{{0, 100}, {0, 230}, {0, 0}, {0, 50}};
  CHECK(samples_of("a.idx", index.bytes()) == sequences);
  CHECK(samples_of("a.json", index.bytes()) == sequences);
  CHECK(samples_of("a.idx", index.bytes(), {.are_documents = true}) == documents);
  CHECK(samples_of("a.idx", index.bytes(), {.token_scale = "0.5"})[0] == sample{0, 50});
  // Modes that are all zero, and other sizes of tokens.
  index.modes.assign(4, 0);
  CHECK(samples_of("a.idx", index.bytes()) == sequences);
  std::pair<std::uint8_t, std::int64_t> const types[]{{1, 1}, {2, 1}, {3, 2}, {5, 8},
                                                      {6, 8}, {7, 4}, {8, 2}};
  for (auto const& [type, size] : types) {
    index.type = type;
    index.places = {0, 100 * size, 130 * size, 330 * size};
    CHECK(samples_of("a.idx", index.bytes()) == sequences);
  }
}

TEST_CASE("every cut of an index of Megatron is an error") {
  megatron index;
  for (bool const has_modes : {false, true}) {
    if (has_modes) index.modes.assign(4, 0);
    std::string const whole = index.bytes();
    for (std::size_t size = 0; size != whole.size(); ++size) {
      // Without modes the index is whole.
      if (has_modes && size + 4 == whole.size()) continue;
      INFO(size);
      CHECK(!error_of(std::string_view(whole).substr(0, size)).empty());
    }
    CHECK(!error_of(whole + '\0').empty());
  }
}

TEST_CASE("an index of Megatron that contradicts itself is refused") {
  auto const error = [](std::function<void(megatron&)> const& change, bool documents = false) {
    megatron index;
    change(index);
    return error_of(index.bytes(), {.are_documents = documents});
  };
  check_contains(error([](auto& index) { index.version = 2; }), {"version 2, must be 1"});
  check_contains(error([](auto& index) { index.type = 0; }), {"type 0"});
  check_contains(error([](auto& index) { index.type = 9; }), {"type 9"});
  check_contains(error([](auto& index) { index.lengths[2] = -1; }), {"sequence 2 has -1 tokens"});
  check_contains(error([](auto& index) { index.places[1] = 401; }),
                 {"sequence 1 has the place 401, must have 400"});
  check_contains(error([](auto& index) { index.type = 8; }), {"sequence 1 has the place 400"});
  check_contains(error([](auto& index) { index.documents[2] = 0; }), {"document 1 has"});
  check_contains(error([](auto& index) { index.documents[2] = 5; }), {"document 1 has"});
  check_contains(error([](auto& index) { index.documents[0] = 1; }), {"begin with sequence 0"});
  check_contains(error([](auto& index) { index.documents.back() = 3; }), {"end with sequence 4"});
  check_contains(error([](auto& index) { index.documents.clear(); }), {"documents do not begin"});
  check_contains(error([](auto& index) {
                   index.modes = {0, 0, 1, 0};
                 }),
                 {"sequence 2 has a mode of its own"});
  // Numbers whose products leave 64 bits.
  std::string huge = megatron{}.bytes();
  huge.replace(18, 8, 8, '\xff');
  check_contains(error_of(huge), {"18446744073709551615 sequences"});
  huge = megatron{}.bytes();
  huge.replace(26, 8, 8, '\xff');
  check_contains(error_of(huge), {"18446744073709551615 ends"});
  check_contains(error_of("vit_num,token_num\n1,2\n", {.are_documents = true}),
                 {"--megatron-documents"});
  check_contains(error_of(megatron{}.bytes(), {.tokens = "n"}), {"--token-field"});
  check_contains(error_of(megatron{}.bytes(), {.is_list = true}), {"--length-of"});
}

TEST_CASE("the members of a shard are grouped by the rule of WebDataset") {
  field_names const text{.tar_member = "txt"};
  std::string const shard = tar_file("./a/000.jpg", "picture") + tar_file("./a/000.txt", "five5") +
                            tar_file("./a", "", '5') + tar_file("README", "no dot: no sample") +
                            tar_file("__meta__/x.txt", "metadata") + tar_file(".txt", "hidden") +
                            tar_file("b/001.seg.png", "png") + tar_file("b/001.TXT", "") +
                            tar_file("002.txt", std::string(513, 'x'), '\0', "c.d") + tar_end;
  CHECK(samples_of("a.tar", shard, text) == std::vector<sample>{{0, 5}, {0, 0}, {0, 513}});
  CHECK(samples_of("a.tar", shard, {.token_scale = "0.25", .tar_member = "txt"}) ==
        std::vector<sample>{{0, 2}, {0, 0}, {0, 129}});
  check_contains(error_of(shard, {.tar_member = "seg.png"}),
                 {"record 1", "\"./a/000\" has no member .seg.png", "\"jpg\""});
  check_contains(error_of(tar_file("a.txt", "1") + tar_file("a.TXT", "2") + tar_end, text),
                 {"two members \"a.TXT\""});
  check_contains(error_of("5\n6\n", text), {"no tar archive", "--tar-member", "\"txt\""});
}

TEST_CASE("the members .json of a shard have the fields") {
  std::string const shard = tar_file("0.json", R"({"vit_num": 4, "token_num": 100})") +
                            tar_file("0.txt", "x") +
                            tar_file("1.json", " {\"token_num\": 30, \"vit_num\": 0}\n") + tar_end;
  CHECK(samples_of("a.tar", shard) == std::vector<sample>{{4, 100}, {0, 30}});
  check_contains(error_of(tar_file("0.json", "[1]") + tar_end), {"0.json", "JSON object"});
  check_contains(error_of(tar_file("0.json", "{\"vit_num\": 4}") + tar_end),
                 {"0.json", "no field \"token_num\""});
  check_contains(error_of(tar_file("0.json", "{} {}") + tar_end, {.images = ""}), {"0.json"});
  check_contains(error_of(tar_file("0.json", R"({"token_num": 4)") + tar_end, {.images = ""}),
                 {"0.json", "not valid JSON"});
  check_contains(error_of(tar_file("0.txt", "x") + tar_end), {"no member .json", "--tar-member"});
  check_contains(error_of(tar_end), {"no"});
}

TEST_CASE("long names and sizes of pax and GNU are read") {
  field_names const text{.tar_member = "txt"};
  std::string const path(150, 'p');
  std::string const gnu = tar_file("././@LongLink", path + ".txt" + '\0', 'L') +
                          tar_header("cut.jpg", 3, '0', "", "ustar  \0"sv) + padded("abc") +
                          tar_end;
  CHECK(samples_of("a.tar", gnu, text) == std::vector<sample>{{0, 3}});
  std::string const pax =
      tar_file("pax", pax_record("comment", "x"), 'g') +
      tar_file(
          "pax",
          pax_record("mtime", "1.5") + pax_record("path", path + ".txt") + pax_record("size", "3"),
          'x') +
      tar_header("cut.jpg", 0) + padded("abc") + tar_file("b.txt", "four") + tar_end;
  CHECK(samples_of("a.tar", pax, text) == std::vector<sample>{{0, 3}, {0, 4}});
  // A size in binary.
  std::string binary = tar_header("a.txt", 3);
  binary.replace(124, 12, "\x80\0\0\0\0\0\0\0\0\0\0\x03"sv);
  std::size_t sum = 0;
  binary.replace(148, 8, 8, ' ');
  for (char const c : binary) sum += static_cast<unsigned char>(c);
  binary.replace(148, 7, octal(sum, 6).c_str(), 7);
  CHECK(samples_of("a.tar", binary + padded("abc") + tar_end, text) == std::vector<sample>{{0, 3}});
}

TEST_CASE("a shard that is damaged or not understood is refused") {
  field_names const text{.tar_member = "txt"};
  auto const error = [&](std::string const& bytes) { return error_of(bytes, text); };
  std::string damaged = tar_file("a.txt", "abc") + tar_end;
  damaged[1] = 'x';
  check_contains(error(damaged), {"header at byte 0", "checksum"});
  check_contains(error(tar_file("a.txt", "abc", 'S') + tar_end), {"sparse file \"a.txt\""});
  check_contains(error(tar_file("a.txt", "abc", 'Q') + tar_end), {"unknown type 'Q'"});
  check_contains(error(tar_file("a.txt", "abc", '2') + tar_end), {"link or folder"});
  check_contains(error(tar_file("a.txt", "abc") + tar_end + "x"), {"bytes behind its end"});
  check_contains(error(tar_file("p", "5 a=", 'x') + tar_end), {"damaged pax header"});
  check_contains(error(tar_file("p", "99 a=b\n", 'x') + tar_end), {"damaged pax header"});
  check_contains(error(tar_file("p", "6 ab\n\n", 'x') + tar_end), {"damaged pax header"});
  check_contains(error(tar_file("p", pax_record("GNU.sparse.major", "1"), 'x') + tar_end),
                 {"GNU.sparse.major"});
  check_contains(error(tar_file("p", pax_record("path", "x"), 'g') + tar_end), {"for all members"});
  check_contains(error(tar_file("p", pax_record("size", "-1"), 'x') + tar_end), {"pax size -1"});
  std::string bad_size = tar_header("a.txt", 3);
  bad_size.replace(124, 3, "9x9");
  bad_size.replace(148, 8, 8, ' ');
  std::size_t sum = 0;
  for (char const c : bad_size) sum += static_cast<unsigned char>(c);
  bad_size.replace(148, 7, octal(sum, 6).c_str(), 7);
  check_contains(error(bad_size + tar_end), {"size that is no octal number"});
}

TEST_CASE("every cut of a shard is an error") {
  field_names const text{.tar_member = "txt"};
  std::string const whole = tar_file("p", pax_record("path", "a.txt"), 'x') + tar_file("x", "abc") +
                            tar_file("././@LongLink", std::string(120, 'n') + ".txt", 'L') +
                            tar_file("y", "") + tar_end;
  REQUIRE(samples_of("a.tar", whole, text).size() == 2);
  // All cuts near the borders of blocks, and some within them.
  for (std::size_t size = 0; size < whole.size();
       size += size % 512 < 500 && size % 512 > 20 ? 31 : 1) {
    INFO(size);
    CHECK(!error_of(std::string_view(whole).substr(0, size), text).empty());
  }
}

TEST_CASE("changed bytes are read or refused") {
  field_names const text{.tar_member = "txt"};
  std::string const files[]{megatron{}.bytes(), tar_file("p", pax_record("path", "a.txt"), 'x') +
                                                    tar_file("x", "abc") +
                                                    tar_file("././@LongLink", "b.txt", 'L') +
                                                    tar_file("y", "") + tar_end};
  std::mt19937 random(3);
  for (int trial = 0; trial != 500; ++trial) {
    std::size_t const which = random() % 2;
    std::string bytes = files[which];
    for (std::size_t change = random() % 3; change != 3; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    // The sanitizers see a read outside.
    (void)error_of(bytes, which == 0 ? field_names{} : text);
  }
}

TEST_CASE("what zstd has compressed is expanded, or the command is named") {
  // zstd -c of the table below.
  std::string_view const packed =
      "\x28\xb5\x2f\xfd\x04\x58\xf1\x00\x00\x76\x69\x74\x5f\x6e\x75\x6d\x2c\x74\x6f\x6b"
      "\x65\x6e\x5f\x6e\x75\x6d\x0a\x35\x2c\x31\x33\x34\x31\x0a\x30\x2c\x37\x37\x0a\x52"
      "\x70\xb0\x7a"sv;
  std::vector<sample> const both{{5, 1341}, {0, 77}};
  REQUIRE(samples_of("a.csv", "vit_num,token_num\n5,1341\n0,77\n") == both);
  std::string const message = error_of(packed);
  if (message.empty()) {
    CHECK(samples_of("a.csv.zst", packed) == both);
    CHECK(samples_of("a", packed) == both);
    check_contains(error_of(std::string(packed) + "x"), {"zstd"});
    std::string damaged(packed);
    damaged[damaged.size() - 1] ^= 1;
    check_contains(error_of(damaged), {"zstd"});
  } else {
    check_contains(message, {"is a zstd file", "zstd -dc "});
  }
  for (std::size_t size = 0; size != packed.size(); ++size) {
    INFO(size);
    CHECK(!error_of(packed.substr(0, size)).empty());
  }
}
