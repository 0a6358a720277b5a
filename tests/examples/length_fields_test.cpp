// SPDX-License-Identifier: Apache-2.0
// Counts that are not a field of their own: paths, lists, numbers with a scale.
#include "check_contains.hpp"
#include "decimal.hpp"
#include "input_error.hpp"
#include "read_samples.hpp"
#include "temporary_directory.hpp"

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>

namespace {

using examples::field_names;
using examples::input_format;
using examples::sample;

std::vector<sample> samples_of(std::string const& name, std::string_view text,
                               field_names const& fields,
                               input_format format = input_format::detect) {
  temporary_directory const directory;
  return read_samples(directory.write(name, text), fields, format);
}

std::string error_of(std::string const& name, std::string_view text, field_names const& fields,
                     input_format format = input_format::detect) {
  try {
    samples_of(name, text, fields, format);
  } catch (examples::input_error const& error) {
    return error.what();
  }
  return "";
}

std::optional<std::int64_t> product(std::string_view a, std::string_view b) {
  auto const left = examples::parse_decimal(a);
  auto const right = examples::parse_decimal(b);
  REQUIRE(left);
  REQUIRE(right);
  return examples::rounded_up_product(*left, *right);
}

}  // namespace

TEST_CASE("a path leads through objects") {
  field_names const fields{.images = "stats.tiles", .tokens = "stats.text.tokens"};
  std::string const first =
      R"({"stats": {"tiles": 4, "text": {"x": [{}], "tokens": 100}}, "y": 1})";
  std::string const second = R"({"stats": {"text": {"tokens": 30}, "z": null, "tiles": 0}})";
  std::vector<sample> const both{{4, 100}, {0, 30}};
  CHECK(samples_of("a.jsonl", first + "\n" + second + "\n", fields) == both);
  CHECK(samples_of("a.json", "[" + first + "," + second + "]", fields) == both);
  CHECK(samples_of("part-0", first + "\n" + second, fields) == both);
  temporary_directory const directory;
  directory.write("a.jsonl", first + "\n" + second);
  CHECK(read_samples(directory.write("m.json", R"({"a": {"token_lengths": "a.jsonl"}})"), fields) ==
        both);
}

TEST_CASE("a field with the whole name comes before a path") {
  field_names const fields{.images = "", .tokens = "a.b.c"};
  std::vector<sample> const five{{0, 5}};
  auto const one = [&](std::string_view text) { return samples_of("a.jsonl", text, fields); };
  CHECK(one(R"({"a.b.c": 5})") == five);
  CHECK(one(R"({"a": {"b": {"c": 7}}, "a.b.c": 5})") == five);
  CHECK(one(R"({"a.b.c": 5, "a": {"b": {"c": "no count"}}})") == five);
  CHECK(one(R"({"a.b": {"c": 5}, "a": {"b.c": 6, "b": {"c": 7}}})") == five);
  CHECK(one(R"({"a": {"b": {"c": 7}, "b.c": 5}})") == five);
  // Something else than an object has no fields.
  CHECK(one(R"({"a": 3, "a.b": [1], "a.b.c": 5})") == five);
  check_contains(error_of("a.jsonl", R"({"a": {"b": {"c": 7}, "b": {"c": 7}}})", fields),
                 {"record 1 (line 1)", "\"a.b.c\" occurs twice"});
  // Columns and tables have names only.
  CHECK(samples_of("a.csv", "a.b.c,a\n5,1\n", fields) == five);
  CHECK(samples_of("a.json", R"({"a.b.c": [5], "a": [1]})", fields) == five);
}

TEST_CASE("a path that leads nowhere is an error that names what is there") {
  field_names const fields{.images = "", .tokens = "stats.tokens"};
  auto const error = [&](std::string_view text) { return error_of("a.jsonl", text, fields); };
  check_contains(error(R"({"stats": {"token": 5}})"),
                 {"a.jsonl: record 1 (line 1)", "no field \"stats.tokens\"",
                  "did you mean \"stats.token\"?", "--token-field"});
  check_contains(error(R"({"stats": null, "u": 1})"), {"no field \"stats.tokens\""});
  check_contains(error(R"({"u": {"tokens": 5}})"), {"no field \"stats.tokens\"", "\"u\""});
  check_contains(error("{\"stats\": {\"tokens\": 5}}\n{\"stats\": {\"tokens\": -5}}"),
                 {"record 2 (line 2)", "field \"stats.tokens\" is -5, which is negative"});
  check_contains(error(R"({"stats": {"tokens": {"n": 5}}})"), {"begins an object"});
  check_contains(error(R"({"stats": {"tokens": [5]}})"), {"begins a list"});
  check_contains(error(R"({"stats": {"tokens": 01}})"), {"not valid JSON", "`01`"});
  check_contains(error(R"({"stats": {"tokens": 5, "x": 1.2.3}})"), {"not valid JSON"});
}

TEST_CASE("every cut of a record with a path is an error") {
  field_names const fields{.images = "", .tokens = "stats.tokens"};
  std::string const whole = R"([{"stats": {"x": "a]}", "tokens": 5}}, {"stats.tokens": 7}])";
  CHECK(samples_of("a.json", whole, fields).size() == 2);
  for (std::size_t size = 0; size != whole.size(); ++size) {
    INFO(size);
    CHECK(!error_of("a.json", std::string_view(whole).substr(0, size), fields).empty());
  }
}

TEST_CASE("the elements of a list are counted") {
  field_names const fields{.images = "", .tokens = "input_ids", .is_list = true};
  std::vector<sample> const both{{0, 3}, {0, 0}};
  std::string const lines =
      "{\"input_ids\": [7, [8, 9], {\"a\": [1]}]}\n{\"x\": 1, \"input_ids\": []}\n";
  CHECK(samples_of("a.jsonl", lines, fields) == both);
  CHECK(samples_of("a.json", R"({"input_ids": [[7, 8, 9], []]})", fields) == both);
  field_names nested = fields;
  nested.tokens = "x.ids";
  CHECK(samples_of("a.jsonl", R"({"x": {"ids": [1, 2, 3]}})", nested) ==
        std::vector<sample>{{0, 3}});
  field_names scaled = fields;
  scaled.token_scale = "0.5";
  CHECK(samples_of("a.jsonl", lines, scaled) == std::vector<sample>{{0, 2}, {0, 0}});

  for (std::string const value : {"5", "null", "\"abc\"", "{"}) {
    check_contains(
        error_of("a.jsonl", "{\"input_ids\": " + value + (value == "{" ? "}}" : "}"), fields),
        {"a.jsonl: record 1", "field \"input_ids\" is " + value,
         "must be a list, whose elements --length-of counts"});
  }
  check_contains(error_of("a.jsonl", R"({"input_id": []})", fields),
                 {"did you mean \"input_id\"?", "--length-of names another"});
  check_contains(error_of("a.jsonl", R"({"input_ids": [1, 2 3]})", fields), {"not valid JSON"});
  check_contains(error_of("a.csv", "input_ids,n\n5,6\n", fields), {"CSV", "--length-of"});
  check_contains(error_of("a.txt", "5\n6\n", fields), {"list of numbers", "--length-of"});
  check_contains(error_of("a.json", "[5, 6]", fields), {"list of numbers", "--length-of"});
}

TEST_CASE("a number with a scale is rounded up without an error of rounding") {
  field_names const fields{.images = "", .tokens = "duration", .token_scale = "12.5"};
  std::vector<sample> const all{{0, 13}, {0, 0}, {0, 1}, {0, 250}};
  CHECK(samples_of("a.jsonl",
                   "{\"duration\": 1.04}\n{\"duration\": 0.0}\n{\"duration\": 1e-9}\n"
                   "{\"duration\": 2E1}",
                   fields) == all);
  CHECK(samples_of("a.csv", "duration\n1.04\n0\n1e-9\n20\n", fields) == all);
  CHECK(samples_of("a.json", R"({"duration": [1.04, 0, 1e-9, 20]})", fields) == all);
  field_names const nameless{.images = "", .token_scale = "12.5"};
  CHECK(samples_of("a.json", "[1.04, 0, 1e-9, 20]", nameless) == all);
  CHECK(samples_of("a.txt", "1.04\n0\n1e-9\n20\n", nameless, input_format::numbers) == all);
  // The images and the tokens of tiles have no scale.
  field_names const tiles{.tokens_per_tile = 256, .token_scale = "0.5"};
  CHECK(samples_of("a.csv", "vit_num,token_num\n2,11\n", tiles) == std::vector<sample>{{2, 518}});
}

TEST_CASE("a number that no scale makes a count of is named") {
  field_names const fields{.images = "", .tokens = "d", .token_scale = "12.5"};
  struct row {
    std::string value, complaint;
  };
  for (row const& one :
       {row{"-0.5", "is negative"}, row{"NaN", "is not a number"},
        row{"Infinity", "is not a number"}, row{"1e18", "is too large"},
        row{"1e999999999999999999999", "is too large"},
        row{"0.12345678901234567891", "has more than 19 digits"}, row{"\"1.5\"", "is not a number"},
        row{"null", "is not a number"}, row{"[1.5]", "begins a list"}}) {
    INFO(one.value);
    check_contains(error_of("a.jsonl", "{\"d\": 1}\n{\"d\": " + one.value + "}", fields),
                   {"a.jsonl: record 2 (line 2)", "field \"d\" is " + one.value.substr(0, 1),
                    one.complaint, "12.5"});
  }
  check_contains(error_of("a.csv", "d,x\n1,2\nnan,3\n", fields), {"record 2 (line 3)", "is nan"});
  check_contains(error_of("a.csv", "d,x\n,3\n", fields), {"record 1 (line 2)", "is empty"});
  for (std::string const factor : {"0", "-1", "x", "1e", "12345678901234567891"}) {
    check_contains(
        error_of("a.jsonl", "{\"d\": 1}", {.images = "", .tokens = "d", .token_scale = factor}),
        {"--token-scale is " + factor, "above 0"});
  }
}

TEST_CASE("products of decimals are exact") {
  CHECK(product("0.3", "10") == 3);
  CHECK(product("1.1", "1.1") == 2);
  CHECK(product("0.1", "0.1") == 1);
  CHECK(product("4.35", "100") == 435);
  CHECK(product("1e-1000000", "1") == 1);
  CHECK(product("0e999999", "5") == 0);
  CHECK(product("9223372036854775807", "1") == INT64_MAX);
  CHECK(product("9223372036854775807", "1.000000000000000001") == std::nullopt);
  CHECK(product("922337203685477580.7", "10") == INT64_MAX);
  CHECK(product("9223372036854775808", "1") == std::nullopt);
  CHECK(product("9999999999999999999", "9999999999999999999e-19") == std::nullopt);
  CHECK(product("9999999999999999999e-19", "9999999999999999999e-19") == 1);
  for (char const* const text :
       {"", "-", ".5", "5.", "+5", "0x1", "1e", "inf", "nan", "1 ", "-1"}) {
    CHECK(!examples::parse_decimal(text));
  }
  // Against integers: a / 1000 times b / 100, rounded up.
  std::mt19937_64 random(7);
  for (int trial = 0; trial != 20'000; ++trial) {
    std::uint64_t const a = random() % 10'000'000;
    std::uint64_t const b = 1 + random() % 100'000;
    auto const text = [](std::uint64_t value, std::uint64_t unit) {
      std::string const fraction = std::to_string(unit + value % unit);
      return std::to_string(value / unit) + "." + fraction.substr(1);
    };
    auto const expected = static_cast<std::int64_t>((a * b + 99'999) / 100'000);
    CHECK(product(text(a, 1000), text(b, 100)) == expected);
  }
}
