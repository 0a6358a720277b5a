// SPDX-License-Identifier: Apache-2.0
/// \file
/// Data sets of MosaicML (MDS) and litData: the lengths in their shards, and that no cut of them is
/// read.
#include "check_contains.hpp"
#include "input_error.hpp"
#include "read_samples.hpp"
#include "temporary_directory.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using namespace std::string_view_literals;
using examples::field_names;
using examples::input_format;
using examples::sample;

/// The text of the error that reading gives; empty if there is none.
std::string error_of(std::filesystem::path const& path, field_names const& fields) {
  try {
    read_samples(path, fields);
  } catch (examples::input_error const& error) {
    return error.what();
  }
  return "";
}

field_names text_field(std::string const& name, std::string const& scale = "") {
  return {.images = "", .tokens = name, .token_scale = scale};
}

field_names list_field(std::string const& name) {
  return {.images = "", .tokens = name, .is_list = true};
}

/// An integer with its low bytes first.
std::string low(std::uint64_t value, std::size_t bytes) {
  std::string result;
  for (std::size_t i = 0; i != bytes; ++i, value >>= 8) result += static_cast<char>(value & 0xFF);
  return result;
}

std::string high(std::uint64_t value, std::size_t bytes) {
  std::string const text = low(value, bytes);
  return {text.rbegin(), text.rend()};
}

/// The samples of a file: for each its columns. `sizes` says which columns have a size before them.
std::string shard(std::vector<std::vector<std::string>> const& samples,
                  std::vector<bool> const& sizes, std::string const& config = "") {
  std::vector<std::string> bodies;
  for (auto const& columns : samples) {
    std::string head;
    std::string body;
    for (std::size_t i = 0; i != columns.size(); ++i) {
      if (sizes[i]) head += low(columns[i].size(), 4);
      body += columns[i];
    }
    bodies.push_back(head + body);
  }
  std::string result = low(samples.size(), 4);
  std::size_t end = 4 * (samples.size() + 2) + config.size();
  std::string rest = config;
  for (std::string const& body : bodies) {
    result += low(end, 4);
    end += body.size();
    rest += body;
  }
  return result + low(end, 4) + rest;
}

/// A data set of MosaicML with the counts as integers, floats and arrays of all four encodings.
struct mosaic {
  std::vector<std::int64_t> counts{3, 0, 300};
  std::string names = R"(["any", "f", "fixed", "i", "n", "s", "t", "vit_num"])";
  std::string encodings =
      R"(["ndarray", "float32", "ndarray:int8:2,3", "int16", "int", "str", "ndarray:int32", "uint8"])";
  std::string sizes = "[null, 4, 6, 2, 8, null, null, 1]";
  std::string format = "\"mds\"";
  std::string samples{};
  std::string version = "2";
  std::string more{};

  [[nodiscard]] std::string bytes() const {
    std::vector<std::vector<std::string>> samples_of_shard;
    for (std::int64_t const count : counts) {
      auto const n = static_cast<std::uint64_t>(count < 0 ? 0 : count);
      auto const eighths = std::bit_cast<std::uint32_t>(static_cast<float>(count) / 8);
      // A type of 2 bytes, two axes, extents of 1 byte; one axis whose extent has 2 bytes.
      std::string const any =
          count < 256 ? std::string("\x11\x08") + low(n, 1) + low(2, 1) + std::string(4 * n, 'x')
                      : std::string("\x11\x05") + low(n, 2) + std::string(2 * n, 'x');
      samples_of_shard.push_back({any, low(eighths, 4), std::string(6, 'x'),
                                  low(static_cast<std::uint64_t>(count), 2),
                                  low(static_cast<std::uint64_t>(count), 8), std::string(n, 's'),
                                  "\x05" + low(n, 2) + std::string(4 * n, 'x'), "\x04"});
    }
    return shard(samples_of_shard, {true, false, false, false, false, true, true, false},
                 R"({"format": "mds"})");
  }

  [[nodiscard]] std::string about(std::string const& name, std::size_t size) const {
    std::string const number = samples.empty() ? std::to_string(counts.size()) : samples;
    return R"({"column_encodings": )" + encodings + R"(, "column_names": )" + names +
           R"(, "column_sizes": )" + sizes + R"(, "compression": null, "format": )" + format +
           R"(, "raw_data": {"basename": ")" + name + R"(", "bytes": )" + std::to_string(size) +
           R"(}, "samples": )" + number + more + R"(, "version": )" + version + "}";
  }

  /// The path of the index of one shard.
  [[nodiscard]] std::filesystem::path write(temporary_directory const& directory) const {
    std::string const data = bytes();
    directory.write("s.mds", data);
    return directory.write("index.json",
                           "{\"shards\": [" + about("s.mds", data.size()) + "], \"version\": 2}");
  }
};

/// A data set of litData with the counts as an integer, a float and arrays.
struct litdata {
  std::vector<std::uint64_t> counts{3, 0, 300};
  std::string config =
      "\"compression\": null, \"encryption\": null, \"item_loader\": "
      "\"PyTreeLoader\"";
  std::string format =
      R"(["int", "float", "no_header_numpy:3", "no_header_tensor:17", "numpy", "tensor", "str"])";

  [[nodiscard]] std::string bytes() const {
    std::vector<std::vector<std::string>> items;
    for (std::uint64_t const n : counts) {
      auto const eighths = std::bit_cast<std::uint64_t>(static_cast<double>(n) / 8);
      items.push_back({low(n, 8), low(eighths, 8), std::string(8 * n, 'x'), std::string(8 * n, 'x'),
                       low(2, 4) + low(2, 4) + low(n, 4) + low(2, 4) + std::string(8 * n, 'x'),
                       high(11, 4) + high(2, 4) + high(n, 4) + high(1, 4) + std::string(n, 'x'),
                       "text"});
    }
    return shard(items, std::vector<bool>(7, true));
  }

  [[nodiscard]] std::string index(std::string const& name) const {
    std::string const leaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";
    std::string leaves = leaf;
    for (int i = 1; i != 5; ++i) leaves += ", " + leaf;
    // The last two are in a dictionary of their own.
    std::string const inner =
        R"({\"type\": \"builtins.dict\", \"context\": \"[\\\"a\\\", \\\"b\\\"]\", \"children_spec\": [)" +
        leaf + ", " + leaf + "]}";
    std::string const spec =
        R"("[1, {\"type\": \"builtins.dict\", \"context\": \"[\\\"n\\\", \\\"f\\\", \\\"ids\\\", \\\"t\\\", \\\"m\\\", \\\"d\\\"]\", \"children_spec\": [)" +
        leaves + ", " + inner + R"(]}]")";
    return R"({"chunks": [{"chunk_bytes": 9, "chunk_size": )" + std::to_string(counts.size()) +
           R"(, "dim": null, "filename": ")" + name + R"("}], "config": {)" + config +
           R"(, "data_format": )" + format + R"(, "data_spec": )" + spec + "}}";
  }

  [[nodiscard]] std::filesystem::path write(temporary_directory const& directory) const {
    directory.write("chunk-0-0.bin", bytes());
    return directory.write("index.json", index("chunk-0-0.bin"));
  }
};

/// What zstd writes for bytes that it cannot compress.
std::string zstd_frame(std::string const& bytes) {
  return "\x28\xb5\x2f\xfd\xa0" + low(bytes.size(), 4) + low(bytes.size() << 3 | 1, 3) + bytes;
}

}  // namespace

TEST_CASE("integers, floats and arrays of MosaicML's shards are lengths") {
  temporary_directory const directory;
  mosaic const data;
  std::filesystem::path const index = data.write(directory);
  std::vector<sample> const all{{0, 3}, {0, 0}, {0, 300}};
  for (std::filesystem::path const& path : {index, directory.path()}) {
    for (std::string const name : {"n", "i"}) CHECK(read_samples(path, text_field(name)) == all);
    for (std::string const name : {"t", "any"}) CHECK(read_samples(path, list_field(name)) == all);
    CHECK(read_samples(path, list_field("fixed")) == std::vector<sample>{{0, 2}, {0, 2}, {0, 2}});
    CHECK(read_samples(path, text_field("f", "8")) == all);
    CHECK(read_samples(path, {.tokens = "n"}) == std::vector<sample>{{4, 3}, {4, 0}, {4, 300}});
    CHECK(read_samples(path, text_field("n"), input_format::mds) == all);
  }
  // Two shards, and the index in another layout.
  std::string const bytes = data.bytes();
  directory.write("b/s.mds", bytes);
  directory.write("index.json", "{ \"version\": 2, \"shards\" :\n[ " +
                                    data.about("s.mds", bytes.size()) + ", " +
                                    data.about("b/s.mds", bytes.size()) + "]}");
  CHECK(read_samples(directory.path(), text_field("n")).size() == 6);
}

TEST_CASE("a shard of MosaicML that is compressed is expanded, or the command is named") {
  temporary_directory const directory;
  mosaic data;
  std::string const bytes = data.bytes();
  data.more = R"(, "zip_data": {"basename": "s.mds.zstd", "bytes": 9})";
  directory.write("index.json", "{\"shards\": [" + data.about("s.mds", bytes.size()) + "]}");
  directory.write("s.mds.zstd", zstd_frame(bytes));
  std::string const message = error_of(directory.path(), text_field("n"));
  if (message.empty()) {
    CHECK(read_samples(directory.path(), text_field("n")).size() == 3);
  } else {
    check_contains(message, {"s.mds.zstd", "is a zstd file", "zstd -dc "});
  }
  directory.write("s.mds.zstd", "BZh9");
  check_contains(error_of(directory.path(), text_field("n")),
                 {"s.mds.zstd", "neither gzip nor zstd"});
  // A file that is not compressed comes first, also if its beginning is that of a compressed one.
  data.counts.assign(0x8b1f, 0);
  data.names = "[\"n\"]";
  data.encodings = "[\"uint8\"]";
  data.sizes = "[1]";
  std::string const large = shard(std::vector(0x8b1f, std::vector<std::string>{"\x05"}), {false});
  REQUIRE(large.starts_with("\x1f\x8b"));
  directory.write("s.mds", large);
  directory.write("index.json", "{\"shards\": [" + data.about("s.mds", large.size()) + "]}");
  CHECK(read_samples(directory.path(), text_field("n")) == std::vector<sample>(0x8b1f, {0, 5}));
}

TEST_CASE("an index of MosaicML that is not understood is refused") {
  auto const error = [](std::function<void(mosaic&)> const& change, field_names const& fields) {
    temporary_directory const directory;
    mosaic data;
    change(data);
    return error_of(data.write(directory), fields);
  };
  auto const nothing = [](mosaic&) {};
  check_contains(error(nothing, text_field("s")),
                 {"index.json: column \"s\" has the encoding \"str\"", "must be integers"});
  check_contains(error(nothing, text_field("x")),
                 {"index.json: no field \"x\"", "--token-field names another"});
  check_contains(error(nothing, text_field("f")),
                 {"index.json: record 1: field \"f\" is 0.375", "not an integer"});
  check_contains(error(nothing, text_field("t")), {"record 1", "\"t\" is [", "begins a list"});
  check_contains(error(nothing, list_field("n")), {"record 1", "\"n\" is 3", "must be a list"});
  field_names member = text_field("n");
  member.tar_member = "txt";
  check_contains(error(nothing, member), {"no tar archive"});
  auto const n = text_field("n");
  check_contains(error([](auto& d) { d.counts = {3, -1}; }, n), {"record 2: field \"n\" is -1"});
  check_contains(error([](auto& d) { d.counts = {-1}; }, text_field("i")), {"field \"i\" is -1"});
  check_contains(error([](auto& d) { d.sizes = "[null, 4, 6, 2, 8, null, null, 0]"; }, n),
                 {"sample 0", "do not fill"});
  check_contains(error([](auto& d) { d.format = "\"json\""; }, n),
                 {"\"shards.0.format\" is \"json\"", "must be \"mds\""});
  check_contains(error([](auto& d) { d.version = "1"; }, n), {"\"shards.0.version\" is 1"});
  check_contains(error([](auto& d) { d.samples = "null"; }, n), {"\"shards.0.samples\" is null"});
  check_contains(error([](auto& d) { d.samples = "4"; }, n),
                 {"s.mds: is a shard of MosaicML without the 4 samples of its index"});
  check_contains(error([](auto& d) { d.samples = "9223372036854775807"; }, n), {"s.mds: is a"});
  check_contains(error([](auto& d) { d.sizes = "3"; }, n), {"\"shards.0.column_sizes\" is 3"});
  check_contains(error([](auto& d) { d.sizes = "[null, 4]"; }, n), {"for each column"});
  check_contains(error([](auto& d) { d.encodings = "[1]"; }, n), {"for each column"});
  check_contains(error([](auto& d) { d.sizes = "[null, 4, 6, 3, 8, null, null, 1]"; }, n),
                 {"sample 0", "do not fill"});
  check_contains(error([](auto& d) { d.sizes = "[null, 4, 6, 2, 7, null, null, 2]"; }, n),
                 {"number of 7 bytes, must have 8 as int64"});
  check_contains(error([](auto& d) { d.names.replace(d.names.find("\"i\""), 3, "\"n\""); }, n),
                 {"column \"n\" occurs twice"});
  auto const encoded = [&](std::string const& encoding, field_names const& fields) {
    auto const change = [&](mosaic& d) {
      d.encodings.replace(d.encodings.find("ndarray:int32"), 13, encoding);
    };
    return error(change, fields);
  };
  for (std::string const unknown : {"ndarray:int33", "ndarray:int32:x", "ndarray:int32:2,x"}) {
    check_contains(encoded(unknown, list_field("t")), {"unknown encoding \"" + unknown + "\""});
  }
  for (std::string const other : {"ndarray:int64", "ndarray:int8"}) {
    check_contains(encoded(other, list_field("t")), {"extents do not fit"});
  }
  check_contains(encoded("ndarray", list_field("t")), {"array"});
  temporary_directory const directory;
  mosaic const data;
  std::string bytes = data.bytes();
  directory.write("s.mds", bytes);
  std::filesystem::path const index = directory.write(
      "index.json", "{\"shards\": [" + data.about("s.mds", bytes.size() + 1) + "]}");
  check_contains(error_of(index, n), {"s.mds: has " + std::to_string(bytes.size()) + " bytes"});
  // The first sample begins within the places of the samples.
  bytes.replace(4, 4, low(16, 4));
  REQUIRE(data.write(directory) == index);
  directory.write("s.mds", bytes);
  check_contains(error_of(index, n), {"in order up to its end"});
  temporary_directory const empty;
  check_contains(error_of(empty.path(), n), {empty.path().string(), "is a folder without"});
  check_contains(
      error_of(empty.write("index.json", R"({"shards": [{"column_encodings": []}]})"), n),
      {"no field \"shards.0.format\""});
}

TEST_CASE("every cut of a shard of MosaicML is an error") {
  temporary_directory const directory;
  mosaic data;
  data.counts = {2, 1};
  std::string const whole = data.bytes();
  for (bool const knows_size : {true, false}) {
    for (std::size_t size = 0; size != whole.size(); ++size) {
      INFO(size);
      directory.write("s.mds", std::string_view(whole).substr(0, size));
      auto const index = directory.write(
          "index.json",
          "{\"shards\": [" + data.about("s.mds", knows_size ? whole.size() : size) + "]}");
      check_contains(error_of(index, list_field("t")), {"s.mds"});
    }
  }
}

TEST_CASE("integers, floats and arrays of litData's chunks are lengths") {
  temporary_directory const directory;
  litdata data;
  std::filesystem::path const index = data.write(directory);
  std::vector<sample> const all{{0, 3}, {0, 0}, {0, 300}};
  for (std::filesystem::path const& path : {index, directory.path()}) {
    CHECK(read_samples(path, text_field("n")) == all);
    CHECK(read_samples(path, text_field("f", "8")) == all);
    for (std::string const name : {"ids", "t", "m", "d.a"}) {
      INFO(name);
      CHECK(read_samples(path, list_field(name)) == all);
    }
  }
  check_contains(error_of(index, text_field("d.b")), {"chunk-0-0.bin", "\"d.b\"", "\"str\""});
  check_contains(error_of(index, text_field("d.c")), {"no field \"d.c\"", "did you mean \"d.a\"?"});
  check_contains(error_of(index, text_field("ids")), {"record 1", "begins a list"});
  // A whole chunk in a frame of zstd.
  data.config = R"("compression": "zstd:4", "compression_level": null)";
  directory.write("index.json", data.index("chunk-0-0.zstd:4.bin"));
  directory.write("chunk-0-0.zstd:4.bin", zstd_frame(data.bytes()));
  std::string const message = error_of(index, text_field("n"));
  if (message.empty()) {
    CHECK(read_samples(index, text_field("n")) == all);
  } else {
    check_contains(message, {"zstd:4.bin", "is a zstd file", "zstd -dc "});
  }
}

TEST_CASE("items of litData that are one array have no names") {
  temporary_directory const directory;
  directory.write("c.bin", shard({{std::string(12, 'x')}, {""}}, {true}));
  auto const index = directory.write(
      "index.json",
      R"({"chunks": [{"chunk_bytes": 9, "chunk_size": 2, "filename": "c.bin"}], "config": )"
      R"({"data_format": ["no_header_tensor:16"], "data_spec": )"
      R"("[1, {\"type\": null, \"context\": null, \"children_spec\": []}]"}})");
  CHECK(read_samples(index, {}) == std::vector<sample>{{0, 3}, {0, 0}});
  CHECK(read_samples(index, {.token_scale = "0.5"}) == std::vector<sample>{{0, 2}, {0, 0}});
  check_contains(error_of(index, text_field("n")), {"without names", "--token-field"});
  directory.write("c.bin", shard({{"xxxxxx"}, {""}}, {true}));
  check_contains(error_of(index, {}), {"c.bin", "6 bytes of the encoding no_header_tensor:16"});
}

TEST_CASE("an index of litData that is not understood is refused") {
  auto const error = [](std::function<void(litdata&)> const& change, field_names const& fields) {
    temporary_directory const directory;
    litdata data;
    change(data);
    return error_of(data.write(directory), fields);
  };
  auto const n = text_field("n");
  std::pair<std::string, std::string> const configs[]{
      {R"("encryption": {"algorithm": "fernet"})", "\"config.encryption\""},
      {R"("compression": "lz4")", "\"config.compression\" is \"lz4\""},
      {R"("compression": "zstd", "compression_level": "batch")", "is \"batch\""},
      {R"("item_loader": "TokensLoader")", "is \"TokensLoader\""}};
  for (auto const& [config, words] : configs) {
    check_contains(error([&](auto& d) { d.config = config; }, n),
                   {"index.json", words, "docs/reference/files.md"});
  }
  check_contains(error([](auto& d) { d.config = R"("compression": "zstd")"; }, n),
                 {"chunk-0-0.bin", "neither gzip nor zstd"});
  check_contains(error([](auto& d) { d.format = "[\"int\"]"; }, n), {"each of the 7 values"});
  check_contains(
      error([](auto& d) { d.format.replace(d.format.find(":17"), 3, ":77"); }, list_field("t")),
      {"no_header_tensor:77"});
  check_contains(
      error([](auto& d) { d.format.replace(d.format.find(":3"), 2, ":x"); }, list_field("ids")),
      {"no_header_numpy:x"});
  check_contains(error([](auto& d) { d.format.replace(d.format.find("numpy\""), 6, "tensor\""); },
                       list_field("m")),
                 {"array"});
  temporary_directory const directory;
  litdata const data;
  std::filesystem::path const index = data.write(directory);
  std::string const whole = data.index("chunk-0-0.bin");
  for (auto const& [from, to] :
       {std::pair{"[1, {", "[2, {"}, std::pair{"\"[1, {", "\"[1, 7, {"},
        std::pair{"children_spec", "child"}, std::pair{R"([\\\"n\\\", )", "["}}) {
    std::string changed = whole;
    changed.replace(changed.find(from), std::string_view(from).size(), to);
    directory.write("index.json", changed);
    INFO(to);
    check_contains(error_of(index, n), {"config.data_spec", "no tree of PyTorch"});
  }
}

TEST_CASE("every cut of a chunk of litData is an error, and changed bytes are read or refused") {
  temporary_directory const directory;
  litdata data;
  data.counts = {2, 1};
  std::string const whole = data.bytes();
  std::filesystem::path const index = data.write(directory);
  for (std::size_t size = 0; size != whole.size(); ++size) {
    INFO(size);
    directory.write("chunk-0-0.bin", std::string_view(whole).substr(0, size));
    check_contains(error_of(index, list_field("m")), {"chunk-0-0.bin"});
  }
  mosaic other;
  other.counts = {2, 1};
  std::string const shard_bytes = other.bytes();
  std::filesystem::path const other_index = directory.write(
      "other/index.json", "{\"shards\": [" + other.about("s.mds", shard_bytes.size()) + "]}");
  std::mt19937 random(3);
  for (int trial = 0; trial != 300; ++trial) {
    bool const is_mosaic = trial % 2 == 0;
    std::string bytes = is_mosaic ? shard_bytes : whole;
    for (std::size_t change = random() % 3; change != 3; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    }
    // The sanitizers see a read outside.
    directory.write(is_mosaic ? "other/s.mds" : "chunk-0-0.bin", bytes);
    for (std::string const name : {"t", "m", "any", "d.a"}) {
      (void)error_of(is_mosaic ? other_index : index, list_field(name));
    }
  }
}
