// SPDX-License-Identifier: Apache-2.0
#include "read_lengths.hpp"

#include "check_contains.hpp"
#include "input_error.hpp"
#include "temporary_directory.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch.hpp>
#include <zlib.h>

namespace {

using examples::dataset;
using examples::field_names;
using examples::input_format;
using examples::sample;

dataset read(std::filesystem::path const& path, field_names const& fields = {},
             input_format format = input_format::detect) {
  examples::progress hidden(examples::visibility::hidden);
  dataset data;
  examples::read_lengths(path, format, fields, hidden, data);
  return data;
}

/// The text of the error that reading these bytes gives, or nothing where there is none.
std::string error_of(std::string const& name, std::string_view text,
                     field_names const& fields = {}) {
  temporary_directory const directory;
  try {
    read(directory.write(name, text), fields);
  } catch (examples::input_error const& error) {
    return error.what();
  }
  return "";
}

/// A file of NumPy: its header says `type` and `shape` as they are.
std::string npy(std::string const& type, std::string const& shape, std::string const& data) {
  std::string const header =
      "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         data;
}

std::vector<sample> const two{{5, 1341}, {0, 77}};

constexpr std::string_view two_as_json = R"([
    {"vit_num": 5, "token_num": 1341, "image_flags": 5},
    {"token_num": 77, "image_flag": [0, {"a": "]\""}], "vit_num": 0, "w": null, "v": 1e999}
])";

}  // namespace

TEST_CASE("all formats give the same samples") {
  temporary_directory const directory;
  CHECK(read(directory.write("a.json", two_as_json)).samples == two);
  CHECK(read(directory.write("no_extension", two_as_json)).samples == two);
  CHECK(
      read(directory.write("bom.json", std::string("\xEF\xBB\xBF").append(two_as_json))).samples ==
      two);
  CHECK(read(directory.write("a.jsonl",
                             "{\"vit_num\": 5, \"token_num\": 1341}\r\n\n"
                             "{\"token_num\": 77, \"vit_num\": 0}"))
            .samples == two);
  CHECK(read(directory.write("lines.json",
                             "{\"vit_num\": 5, \"token_num\": 1341}\n"
                             "{\"token_num\": 77, \"vit_num\": 0}\n"))
            .samples == two);
  CHECK(read(directory.write("a.csv",
                             "name, token_num ,vit_num\r\n\"x, \"\"y\"\"\",1341,5\r\n"
                             "\n,\"77\", 0"))
            .samples == two);
  CHECK(read(directory.write("table", "vit_num,token_num\n5,1341\n0,77\n")).samples == two);
}

TEST_CASE("the names of the fields can be chosen") {
  temporary_directory const directory;
  field_names const fields{.images = "tiles", .tokens = "length \"x\""};
  auto const data = read(
      directory.write("a.json", R"([{"tiles": 3, "length \"x\"": 4, "vit_num": -1}])"), fields);
  CHECK(data.samples == std::vector<sample>{{3, 4}});
}

TEST_CASE("the largest and the smallest counts are read") {
  temporary_directory const directory;
  auto const data =
      read(directory.write("a.json", R"([{"vit_num": 0, "token_num": 9223372036854775807}])"));
  CHECK(data.samples == std::vector<sample>{{0, 9223372036854775807}});
}

TEST_CASE("samples run through the files in order") {
  temporary_directory const directory;
  directory.write("lists/b.json", R"([{"vit_num": 1, "token_num": 2}])");
  directory.write("a.jsonl", R"({"vit_num": 3, "token_num": 4})");
  auto const manifest = directory.write("meta.json", R"({
      "first": {"root": "images/", "token_lengths": "./lists/b.json", "repeat": [1, 2]},
      "second": {"token_lengths": ")" + (directory.path() / "a.jsonl").string() +
                                                         R"("}})");
  auto const data = read(manifest);
  CHECK(data.samples == std::vector<sample>{{1, 2}, {3, 4}});
  REQUIRE(data.sources.size() == 2);
  CHECK(data.sources[0].records == 1);
  check_contains(data.sources[1].name, {"a.jsonl"});
}

TEST_CASE("a value that is no count is named with file, record and field") {
  struct row {
    std::string_view value, complaint;
  };
  for (auto const& [value, complaint] :
       {row{"-1", "negative"}, row{"3.5", "integer"}, row{"3.0", "integer"}, row{"3e2", "integer"},
        row{"9223372036854775808", "64-bit"}, row{"123456789012345678901234567890", "64-bit"},
        row{"\"12\"", "string"}, row{"null", "null"}, row{"true", "number"}, row{"NaN", "number"},
        row{"[1]", "list"}, row{"{\"a\": 1}", "object"}, row{"012", "zero"}}) {
    std::string const record = R"({"vit_num": 2, "token_num": )" + std::string(value) + "}";
    std::string const good = R"({"vit_num": 2, "token_num": 7})";
    // A list or an object is shown by its bracket.
    std::string_view const shown =
        value.substr(0, value.find_first_of("[{") == 0 ? 1 : value.size());
    check_contains(error_of("bad.json", "[" + good + "," + record + "]"),
                   {"bad.json: record 2: ", "\"token_num\"", complaint, shown});
    check_contains(error_of("bad.jsonl", good + "\n\n" + record),
                   {"bad.jsonl: record 2 (line 3): ", "\"token_num\"", complaint, shown});
  }
  for (std::string_view const value : {"-1", "3.5", "9223372036854775808", "x", "", "1e3", "+1"}) {
    check_contains(error_of("bad.csv", "token_num,vit_num\n1,2\n" + std::string(value) + ",2\n"),
                   {"bad.csv: record 2 (line 3): field \"token_num\" is ", value});
  }
}

TEST_CASE("a missing field is named, and the nearest one suggested") {
  std::string const good = R"({"vit_num": 2, "token_num": 7},)";
  check_contains(error_of("a.json", "[" + good + R"({"vit_num": 2}])"),
                 {"a.json: record 2: ", "no field \"token_num\""});
  check_contains(error_of("a.json", "[" + good + R"({"vit_nun": 2, "token_num": 7}])"),
                 {"record 2", "no field \"vit_num\"", "did you mean \"vit_nun\"?"});
  check_contains(error_of("a.json", R"([{"length": 2, "size": 7}])"),
                 {"no field \"vit_num\"", "\"length\", \"size\""});
  check_contains(error_of("a.json", "[{}]"), {"record 1", "no field", "no fields at all"});
  check_contains(error_of("a.csv", "vit_num,token_nums\n1,2\n"),
                 {"a.csv: ", "no field \"token_num\"", "did you mean \"token_nums\"?"});
  check_contains(error_of("a.json", R"([{"vit_num": 1, "token_num": 2}])",
                          {.images = "vit_num", .tokens = "tokens"}),
                 {"no field \"tokens\""});
  check_contains(error_of("a.json", R"([{"vit_num": 1, "token_num": 2, "vit_num": 1}])"),
                 {"record 1", "\"vit_num\" occurs twice"});
}

TEST_CASE("a truncated file is an error wherever it ends") {
  std::string const text(two_as_json);
  for (std::size_t size = 0; size != text.size(); ++size) {
    INFO("the first " << size << " bytes");
    CHECK(error_of("cut.json", text.substr(0, size)).find("cut.json: ") != std::string::npos);
  }
  check_contains(error_of("cut.json", text.substr(0, text.size() - 10)),
                 {"record 2", "truncated", "not closed"});
  check_contains(
      error_of("cut.jsonl", "{\"vit_num\": 1, \"token_num\": 2}\n{\"vit_num\": 1, \"tok"),
      {"cut.jsonl: record 2 (line 2): ", "truncated"});
  check_contains(error_of("cut.csv", "vit_num,token_num\n1,2\n1"),
                 {"cut.csv: record 2 (line 3): ", "fewer columns"});
  check_contains(error_of("cut.json", R"({"a": {"token_lengths": "b.json"}, "c": {"tok)"),
                 {"cut.json: ", "truncated"});
}

TEST_CASE("a file without records is an error") {
  for (std::string const name : {"none.json", "none.jsonl", "none.csv", "none"}) {
    check_contains(error_of(name, ""), {name, "empty"});
    check_contains(error_of(name, " \n"), {name, "empty"});
  }
  check_contains(error_of("none.json", "[]"), {"none.json", "no records"});
  check_contains(error_of("none.json", "{}"), {"none.json", "no entries"});
  check_contains(error_of("none.csv", "vit_num,token_num\n"), {"none.csv", "no records"});
}

TEST_CASE("malformed text is an error") {
  std::string const good = R"({"vit_num": 2, "token_num": 7})";
  check_contains(error_of("a.json", "17"), {"a.json", "list", "17"});
  check_contains(error_of("a.json", R"(["x"])"),
                 {"record 1", "is \"x\", must be an object or a number"});
  check_contains(error_of("a.json", "[" + good + ",]"), {"record 2"});
  check_contains(error_of("a.json", "[" + good + " " + good + "]"), {"record 2"});
  check_contains(error_of("a.json", "[" + good + "]]"), {"a.json", "end"});
  check_contains(error_of("a.json", "[" + good + "],[" + good + "]"), {"a.json", "end"});
  check_contains(error_of("a.json", R"([{"vit_num": 2, "token_num": 7, "x": nul}])"), {"record 1"});
  check_contains(error_of("a.json", R"([{"vit_num": 2, "token_num": 7, "x": [1 2]}])"),
                 {"record 1"});
  check_contains(error_of("a.json", R"([{"vit_num": 2, "token_num": 7, "x": "\q"}])"),
                 {"record 1"});
  check_contains(error_of("a.json", "[{\"vit_num\": 2, \"token_num\": 7, \"x\": \"\xff\"}]"),
                 {"a.json", "UTF-8"});
  check_contains(error_of("a.jsonl", good + good), {"a.jsonl: record 1 (line 1)", "end"});
  check_contains(error_of("a.jsonl", good + "\n[1]"), {"a.jsonl: record 2 (line 2)", "object"});
  check_contains(error_of("a.csv", "vit_num,token_num\n1,2,3\n"),
                 {"record 1 (line 2)", "more columns"});
  check_contains(error_of("a.csv", "vit_num,vit_num,token_num\n1,2,3\n"), {"a.csv", "vit_num"});
  check_contains(error_of("a.csv", std::string("vit_num,token_num\n1,2\0003\n", 25)),
                 {"a.csv", "zero byte"});
}

TEST_CASE("every entry of a manifest must lead to a file of lengths") {
  check_contains(error_of("m.json", R"({"a": {"root": "x"}})"),
                 {"m.json", "entry \"a\"", "no \"token_lengths\""});
  check_contains(error_of("m.json", R"({"a": {"token_lengths": "gone.json"}})"),
                 {"m.json", "entry \"a\"", "gone.json"});
  check_contains(error_of("m.json", R"({"a": {"token_lengths": 7}})"), {"entry \"a\"", "7"});
  check_contains(error_of("m.json", R"({"a": {"token_lengths": "m.json"}})"),
                 {"entry \"a\"", "a manifest itself"});
  check_contains(
      error_of("m.json", R"({"a": {"token_lengths": "x"}, "a": {"token_lengths": "x"}})"),
      {"entry \"a\"", "twice"});
  check_contains(error_of("m.json", R"({"a": {}, "b": {"token_lengths": "x"}})"), {"entry \"a\""});
}

TEST_CASE("a path that cannot be read is named") {
  temporary_directory const directory;
  CHECK_THROWS_AS(read(directory.path() / "absent.json"), examples::input_error);
  CHECK_THROWS_AS(read(directory.path()), examples::input_error);
}

TEST_CASE("text has tokens alone") {
  temporary_directory const directory;
  std::vector<sample> const texts{{0, 1341}, {0, 77}, {0, 0}};
  CHECK(read(directory.write("a.json", "[1341, 77,\n0]")).samples == texts);
  CHECK(read(directory.write("a.txt", "1341\r\n\n 77 \n0")).samples == texts);
  field_names const text{.images = "", .tokens = "n"};
  CHECK(read(directory.write("b.json", R"([{"n": 1341}, {"n": 77, "vit_num": 3}, {"n": 0}])"), text)
            .samples == texts);
  CHECK(read(directory.write("c.json", R"({"x": [1], "n": [1341, 77, 0]})"), text).samples ==
        texts);
  auto const data = read(directory.write("a.csv", "n\n1341\n77\n0\n"), text);
  CHECK(data.samples == texts);
  CHECK(data.kind == examples::sample_kind::text);
  CHECK(read(directory.write("d.json", two_as_json)).kind ==
        examples::sample_kind::images_and_text);
}

TEST_CASE("columns, tables of other separators and compressed files are read") {
  temporary_directory const directory;
  CHECK(
      read(directory.write("a.json", R"({"token_num": [1341, 77], "vit_num": [5, 0]})")).samples ==
      two);
  // The first field of a record is a list, and another record follows it.
  CHECK(read(directory.write("lines",
                             "{\"flags\": [1], \"vit_num\": 5, \"token_num\": 1341}\n"
                             "{\"flags\": [], \"vit_num\": 0, \"token_num\": 77}\n"))
            .samples == two);
  CHECK(read(directory.write("a.tsv", "name, x\ttoken_num\tvit_num\na b\t1341\t5\n\t77\t0\n"))
            .samples == two);
  CHECK(
      read(directory.write("b.csv", "name;token_num;vit_num\n\"a;b\";1341;5\nc;77;0\n")).samples ==
      two);
  auto const path = directory.path() / "a.json.gz";
  gzFile const file = gzopen(path.c_str(), "wb");
  gzwrite(file, two_as_json.data(), static_cast<unsigned>(two_as_json.size()));
  gzclose(file);
  CHECK(read(path).samples == two);
}

TEST_CASE("arrays of NumPy are read in every type of integers") {
  temporary_directory const directory;
  auto const array = [&](std::string const& type, std::string const& shape,
                         std::string const& data) { return npy("'" + type + "'", shape, data); };
  auto const read_array = [&](std::string const& bytes) {
    return read(directory.write("a.npy", bytes)).samples;
  };
  CHECK(read_array(array("|u1", "(2,)", "\x05\xff")) == std::vector<sample>{{0, 5}, {0, 255}});
  CHECK(read_array(array("<i2", "(1, 2)", std::string("\x05\x00\x3d\x05", 4))) ==
        std::vector<sample>{{5, 1341}});
  CHECK(read_array(array(">u2", "(1, 2)", std::string("\x00\x05\x05\x3d", 4))) ==
        std::vector<sample>{{5, 1341}});
  CHECK(read_array(array("<i8", "(1, 1)", std::string("\x4d\0\0\0\0\0\0\0", 8))) ==
        std::vector<sample>{{0, 77}});
  auto const refused = [&](std::string const& bytes, std::string_view part) {
    check_contains(error_of("a.npy", bytes), {"a.npy: ", part});
  };
  refused(array("<f8", "(1,)", std::string(8, '\0')), "'<f8'");
  refused(array("|i1", "(2,)", "\x05\xff"), "record 2: is -1, must be");
  refused(array("<u8", "(1,)", std::string(8, '\xff')), "record 1: is 18446744073709551615");
  refused(array("<i8", "(1,)", std::string(8, '\xff')), "record 1: is -1");
  refused(array("<i2", "(2,)", std::string(3, '\0')), "3 bytes");
  refused(array("<i2", "(2,)", std::string(5, '\0')), "5 bytes");
  refused(array("<i2", "(1, 3)", std::string(6, '\0')), "(1, 3)");
  refused(array("<i2", "(1, 1, 1)", std::string(2, '\0')), "(1, 1, 1)");
  for (std::string const shape :
       {"(-3,)", "(+3,)", "(+3, -1)", "(3.0,)", "(3 1)", "(3)", "()", "3", "(3,"}) {
    refused(array("|u1", shape, "\x05\x05\x05"), "of shape " + shape.substr(0, 3));
  }
  CHECK(read_array(array("|u1", "(1L,)", "\x05")) == std::vector<sample>{{0, 5}});
  refused(npy("[('vit_num', '<i4'), ('token_num', '<i8')]", "(1,)", std::string(12, '\0')),
          "[('vit_num', '<i4'), ('token_num', '<i8')]");
  refused(std::string("\x93NUMPY\x01\x00\xff", 9), "truncated");
  refused(std::string("\x93NUMPY\x04\x00\x01\x00\x00\x00x", 13), "version 4");
  CHECK_THROWS_AS(read(directory.write("b.npy", "vit_num,token_num\n1,2\n"), {}, input_format::npy),
                  examples::input_error);
}

TEST_CASE("tiles follow from the pixels of an image") {
  using examples::count_tiles;
  examples::tile_rule const rule{.size = 448, .most = 12};
  CHECK(count_tiles(0, 300, rule) == 0);
  CHECK(count_tiles(448, 448, rule) == 1);
  CHECK(count_tiles(900, 900, rule) == 5);
  CHECK(count_tiles(200, 200, rule) == 1);
  CHECK(count_tiles(448, 896, rule) == 3);
  CHECK(count_tiles(2000, 2000, rule) == 10);
  CHECK(count_tiles(10000, 100, rule) == 13);
  CHECK(count_tiles(1600, 1200, rule) == 13);

  temporary_directory const directory;
  field_names const fields{
      .tokens = "n", .width = "w", .height = "h", .tiles = rule, .tokens_per_tile = 256};
  auto const path = directory.write("a.jsonl", R"({"w": 448, "h": 896, "n": 100})"
                                               "\n"
                                               R"({"w": 0, "h": 0, "n": 7})");
  CHECK(read(path, fields).samples == std::vector<sample>{{3, 868}, {0, 7}});
}

TEST_CASE("options act on arrays of two columns as on the same numbers with names") {
  temporary_directory const directory;
  auto const named = directory.write("a.csv", "vit_num,token_num\n4,100\n0,7\n");
  auto const array =
      directory.write("a.npy", npy("'|u1'", "(2, 2)", std::string("\x04\x64\x00\x07", 4)));
  auto const listed = directory.write("m.json", R"({"a": {"token_lengths": "a.npy"}})");
  field_names const text{.images = ""};
  field_names const tiles{.tokens_per_tile = 256};
  for (field_names const& fields : {field_names{}, text, tiles}) {
    auto const expected = read(named, fields);
    for (auto const& path : {array, listed}) {
      CHECK(read(path, fields).samples == expected.samples);
      CHECK(read(path, fields).kind == expected.kind);
    }
  }
  CHECK(read(array, tiles).samples == std::vector<sample>{{4, 1124}, {0, 7}});
  CHECK(read(array, text).kind == examples::sample_kind::text);
}

TEST_CASE("names of fields are refused where samples have none") {
  temporary_directory const directory;
  directory.write("a.npy", npy("'|u1'", "(1, 2)", "\x04\x64"));
  directory.write("b.npy", npy("'|u1'", "(1,)", "\x04"));
  directory.write("c.txt", "7\n");
  directory.write("d.json", "[7]");
  directory.write("m.json", R"({"a": {"token_lengths": "a.npy"}})");
  struct row {
    field_names fields;
    std::string_view option;
  };
  for (std::string const name : {"a.npy", "b.npy", "c.txt", "d.json", "m.json"}) {
    for (row const& one :
         {row{{.width = "w", .height = "h"}, "--image-size-fields"},
          row{{.images = "tiles"}, "--image-field"}, row{{.tokens = "n"}, "--token-field"},
          row{{.images = "", .tokens = "n"}, "--token-field"}}) {
      std::string message;
      try {
        read(directory.path() / name, one.fields);
      } catch (examples::input_error const& error) {
        message = error.what();
      }
      check_contains(message, {one.option, "without names"});
    }
  }
}

TEST_CASE("JSON lines are told from a manifest and from columns") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  std::vector<sample> const both{{0, 5}, {0, 7}};
  std::string const objects = "{\"m\": {\"a\": 1}, \"n\": 5}\n{\"m\": {\"a\": 2}, \"n\": 7}\n";
  std::string const lists = "{\"m\": [1], \"n\": 5}\n{\"m\": [2], \"n\": 7}\n";
  for (std::string const& text : {objects, lists}) {
    for (std::string const name : {"a.json", "part-00000", "A.JSON", "a.txt"}) {
      CHECK(read(directory.write(name, text), fields).samples == both);
    }
  }
  // One record alone is what its extension says.
  std::string const one = R"({"m": {"a": 1}, "n": 5})";
  for (std::string const name : {"a.JSONL", "a.jsonl.gzip", "a.Jsonl.GZ", "a.NDJSON"}) {
    CHECK(read(directory.write(name, one), fields).samples == std::vector<sample>{{0, 5}});
  }
  CHECK(read(directory.write("a.CSV", "n\n5\n7\n"), fields).samples == both);
  CHECK(read(directory.write("one.json", one), fields, input_format::jsonl).samples ==
        std::vector<sample>{{0, 5}});
  check_contains(error_of("one.json", one, fields), {"one.json", "--format jsonl"});
  check_contains(error_of("one.json", R"({"n": 5, "m": [1]})", {.images = "m", .tokens = "n"}),
                 {"one.json", "\"m\"", "list"});
  check_contains(error_of("one.json", R"({"m": [1], "n": 5})", fields),
                 {"one.json", "\"n\" is 5", "--format jsonl"});
  check_contains(error_of("one.json", R"({"m": {"a": 1}})"), {"\"m\"", "--format jsonl"});
}

TEST_CASE("what JSON lacks and Python writes is ignored in ignored fields") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  for (std::string const ignored :
       {R"("\ud83d")", R"("\ude00 \ud83d\ud83d")", R"("\ud83d\u0041")", "NaN", "Infinity",
        "-Infinity", R"([NaN, {"y": -Infinity, "\ud83d": "\\\ud83d"}])", "1e999", "-0.5E+10",
        "1234567890123456789012345678901234567890", "0", "-0", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""}) {
    for (std::string const& record :
         {R"({"x": )" + ignored + R"(, "n": 5})", R"({"n": 5, "x": )" + ignored + "}"}) {
      INFO(record);
      CHECK(read(directory.write("a.jsonl", record), fields).samples ==
            std::vector<sample>{{0, 5}});
      CHECK(read(directory.write("a.json", "[" + record + "]"), fields).samples ==
            std::vector<sample>{{0, 5}});
    }
  }
  CHECK(read(directory.write("a.jsonl", R"({"\ud83d": 1, "n": 5})"), fields).samples ==
        std::vector<sample>{{0, 5}});
}

TEST_CASE("what is no JSON is an error in ignored fields too") {
  field_names const fields{.images = "", .tokens = "n"};
  for (std::string const ignored :
       {"01",          "-01",      "1-2-3",   "1.2.3",     "-",           "+1",      ".5",
        "1.",          "1e",       "1e+",     "0x1",       "1_000",       "nan",     "inf",
        "-NaN",        "NaNa",     "Infinit", "nul",       "True",        "\"\\q\"", "\"\\u12\"",
        "\"\\u12g4\"", "\"a\tb\"", "[1 2]",   "{\"a\" 1}", "{\"\\q\": 1}"}) {
    for (std::string const& record :
         {R"({"x": )" + ignored + R"(, "n": 5})", R"({"n": 5, "x": )" + ignored + "}"}) {
      INFO(record);
      check_contains(error_of("a.jsonl", record, fields), {"a.jsonl: record 1 (line 1)"});
      check_contains(error_of("a.json", "[" + record + "]", fields), {"a.json: "});
    }
  }
}

TEST_CASE("ignored fields may be nested 1000 deep, and no deeper") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  struct row {
    std::string begin, end;
  };
  for (auto const& [begin, end] : {row{"[", "]"}, row{"{\"a\":", "}"}}) {
    auto const nested = [&, b = begin, e = end](std::size_t depth) {
      std::string text = "{\"x\": ";
      for (std::size_t i = 0; i != depth; ++i) text += b;
      text += "1";
      for (std::size_t i = 0; i != depth; ++i) text += e;
      return text + ", \"n\": 5}";
    };
    CHECK(read(directory.write("a.jsonl", nested(1000)), fields).samples ==
          std::vector<sample>{{0, 5}});
    check_contains(error_of("a.jsonl", nested(1100), fields), {"record 1 (line 1)", "1000"});
    check_contains(error_of("a.json", "[" + nested(1'000'000) + "]", fields), {"record 1", "1000"});
    check_contains(error_of("m.json", "{\"a\": " + nested(1'000'000) + "}", fields), {"1000"});
  }
}

TEST_CASE("line breaks and separators in quotes belong to the value") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  std::vector<sample> const both{{0, 5}, {0, 7}};
  for (std::string const text :
       {"n,t\n5,\"a\nb\"\n7,\"\n\n,\"\"\n\"\"\"\n", "t,n\r\n\"a\r\nb, \"\"c\"\"\",5\r\n\"\",7\r\n",
        "\"a\n\tb\",\"n\"\n\"7\n9,9\",\"5\"\n, 7", "t,n\n \"a\n,b\" ,5\nx \"y,7\n",
        "t;n\n\"a,\n;\";5\n\"b\";7", "\n\nt,n\n,5\n   \n,7\n\n"}) {
    INFO(text);
    CHECK(read(directory.write("a.csv", text), fields).samples == both);
  }
  check_contains(error_of("a.csv", "t,n\n\"a\nb\",5\n\"c\n\",-7\n", fields),
                 {"a.csv: record 2 (line 4): field \"n\" is -7"});
  check_contains(error_of("a.csv", "t,n\na,5\n\"b,7\nc,8\n", fields),
                 {"a.csv: record 2 (line 3): a quote is not closed"});
  check_contains(error_of("a.csv", "t,n\n\"a\"b,5\n", fields),
                 {"record 1 (line 2)", "text follows a closing quote"});
  check_contains(error_of("a.csv", "t,n\na,5,\n", fields), {"more columns", "3, not 2"});
  check_contains(error_of("a.csv", "n,t\n5,\n7", fields), {"record 2 (line 3)", "fewer columns"});
  CHECK(read(directory.write("a.csv", "n,t\n5,\n7,"), fields).samples == both);
}

TEST_CASE("a quote in a text beside tabulators is a letter") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  CHECK(read(directory.write("a.tsv", "t\tn\n\"a\t5\n5\" b\"\t7\n"), fields).samples ==
        std::vector<sample>{{0, 5}, {0, 7}});
  CHECK(read(directory.write("b.tsv", "\"t\"\t\"n\"\n\"a\"\t\"5\"\n\"\t 7\n"), fields).samples ==
        std::vector<sample>{{0, 5}, {0, 7}});
  CHECK(read(directory.write("c.tsv", "\tn\n0\t5\n1\t7\n"), fields).samples ==
        std::vector<sample>{{0, 5}, {0, 7}});
  check_contains(error_of("d.tsv", "t\tn\n\"a\nb\"\t5\n", fields),
                 {"record 1 (line 2)", "fewer columns", "a quote is a letter"});
  // A tabulator in a quoted name separates nothing.
  CHECK(read(directory.write("e.csv", "\"a\tb\",n\nx,5\ny,7\n"), fields).samples ==
        std::vector<sample>{{0, 5}, {0, 7}});
}

TEST_CASE("a carriage return alone ends a line where there is no line feed") {
  temporary_directory const directory;
  field_names const fields{.images = "", .tokens = "n"};
  std::vector<sample> const both{{0, 5}, {0, 7}};
  CHECK(read(directory.write("a.csv", "n,t\r5,\"a\rb\"\r7,\r"), fields).samples == both);
  CHECK(read(directory.write("a.tsv", "n\tt\r5\ta\r7\t"), fields).samples == both);
  CHECK(read(directory.write("a.jsonl", "{\"n\": 5}\r{\"n\": 7}"), fields).samples == both);
  CHECK(read(directory.write("part", "{\"m\": {}, \"n\": 5}\r{\"n\": 7}"), fields).samples == both);
  CHECK(read(directory.write("a.txt", "5\r7\r")).samples == both);
  check_contains(error_of("b.csv", "n\r5\r-7\r", fields), {"record 2 (line 3)", "is -7"});
}

TEST_CASE("damaged files of Arrow are named, or their conversion") {
  using namespace std::string_view_literals;
  std::pair<std::string_view, std::string_view> const files[]{
      {"\xff\xff\xff\xff\x78\0\0\0"sv, "is an Arrow stream"},
      {"ARROW1\0\0\xff\xff\xff\xff"sv, "is an Arrow (Feather) file"},
      {"PAR1\x15\x04"sv, "is a Parquet file"}};
  for (auto const& [text, kind] : files) {
    for (std::string const name : {"a", "a.json", "a.csv", "a.jsonl"}) {
      std::string const message = error_of(name, text);
      bool const is_built_in = message.find("cannot be read") != std::string::npos;
      check_contains(message, {kind, is_built_in ? name : "docs/reference/files.md"});
    }
  }
}

TEST_CASE("files of other programs are named") {
  using namespace std::string_view_literals;
  struct row {
    std::string text;
    std::string_view name;
  };
  for (row const& one :
       {row{"PK\x03\x04\x14", "zip"},
        row{std::string("\xfd"
                        "7zXZ\0\0\4"sv),
            "xz"},
        row{"\x04\x22\x4d\x18\x64", "lz4"}, row{"BZh91AY&SY", "bzip2"},
        row{"\x89HDF\r\n\x1a\n", "HDF5"}, row{std::string("SQLite format 3\0\x10"sv), "SQLite"},
        row{std::string("\xff\xfe[\0"sv), "UTF-16"}, row{std::string("\xfe\xff\0["sv), "UTF-16"},
        row{std::string("\xff\xfe\0\0[\0\0\0"sv), "UTF-32"}, row{"\x80\x02]q", "pickle"},
        row{"\x80\x03]q", "pickle"}, row{"\x80\x04\x95", "pickle"}, row{"\x80\x05\x95", "pickle"},
        row{"(lp0\nI5\na.", "pickle"}, row{"(dp0\nVn\np1\nI5\ns.", "pickle"},
        row{std::string("]q\0(K\x05K\x07"
                        "e."sv),
            "pickle"},
        row{"cnumpy.core.multiarray\n_reconstruct\np0\n(cnumpy", "pickle"},
        // The length 1 and its checksum.
        row{std::string("\x01\0\0\0\0\0\0\0\x01\x75\xde\x41 x"sv), "TFRecord"}}) {
    for (std::string const name : {"a", "a.json", "a.csv", "a.jsonl"}) {
      INFO(one.name);
      std::string const message = error_of(name, one.text);
      check_contains(message, {one.name, "docs/reference/files.md"});
    }
  }
  // The beginning of another format is no proof in a text.
  temporary_directory const directory;
  CHECK(read(directory.write("a.csv", "PAR1,vit_num,token_num\nx,1,2\n")).samples.size() == 1);
  CHECK(read(directory.write("a.csv", "BZh,vit_num,token_num\nx,1,2\n")).samples.size() == 1);
  check_contains(error_of("raw.bin", std::string("\5\0\7\0"sv)), {"raw.bin", "zero byte", "raw"});
}
