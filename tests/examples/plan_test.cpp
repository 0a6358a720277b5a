// SPDX-License-Identifier: Apache-2.0
#include "input_error.hpp"
#include "npy.hpp"
#include "pack_samples.hpp"
#include "plan_writer.hpp"
#include "schedule_groups.hpp"
#include "staged_files.hpp"
#include "synthetic.hpp"
#include "temporary_directory.hpp"

#include <omnibal/group_loads.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using examples::pack_options;
using examples::packer_kind;
using examples::shuffle_kind;

std::vector<pack_options> ways_to_pack() {
  std::vector<pack_options> ways(8);
  ways[1].packer = packer_kind::next_fit;
  for (std::size_t i = 2; i != 7; ++i) ways[i].packer = packer_kind::isf;
  ways[3].shuffle = shuffle_kind::feistel;
  ways[4].shuffle = shuffle_kind::numpy;
  ways[5].shuffle = shuffle_kind::numpy;
  ways[5].keep = examples::keep_kind::reference;
  ways[6].align_tokens = 128;
  ways[7].improvement = examples::improvement_kind::exchanges;
  return ways;
}

/// The text of the error that the check of the sums gives, or nothing where there is none.
std::string sum_error(examples::dataset const& data, pack_options const& options) {
  try {
    examples::check_sums(data, options);
  } catch (examples::input_error const& error) {
    return error.what();
  }
  return "";
}

std::string written(std::filesystem::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("every packer puts each sample into one group or lists it as oversized") {
  auto const data = examples::synthetic_lengths(3000, 7);
  for (pack_options const& options : ways_to_pack()) {
    auto const result = examples::pack_samples(data, options);
    std::vector<std::uint32_t> seen(result.groups.items().begin(), result.groups.items().end());
    seen.insert(seen.end(), result.oversized.begin(), result.oversized.end());
    std::ranges::sort(seen);
    std::vector<std::uint32_t> all(data.samples.size());
    std::iota(all.begin(), all.end(), 0u);
    CHECK(seen == all);
    for (auto const& load : omnibal::group_loads(result.groups.view(), data.samples,
                                                 examples::packed_demand(options))) {
      CHECK(load.fits(options.capacity));
      CHECK(load[1] % options.align_tokens == 0);
    }
  }
}

TEST_CASE("the files of a plan hold the packing, and equal input gives equal bytes") {
  temporary_directory const directory;
  auto const data = examples::synthetic_lengths(2000, 3);
  pack_options options;
  options.output = directory.path() / "made" / "here";
  auto const result = examples::pack_samples(data, options);
  auto const loads =
      omnibal::group_loads(result.groups.view(), data.samples, examples::packed_demand(options));
  auto const schedule = examples::schedule_groups(options, loads);
  auto const write = [&] {
    examples::staged_files files;
    auto names = examples::write_plan(files, data, options, result, loads, schedule);
    files.commit();
    return names;
  };
  auto const names = write();
  CHECK(names.size() == 7);

  auto const plan = nlohmann::json::parse(written(options.output / "plan.json"));
  auto const equals = [](nlohmann::json const& list, auto const& values) {
    return list.get<std::vector<std::uint32_t>>() ==
           std::vector<std::uint32_t>(values.begin(), values.end());
  };
  CHECK(equals(plan["groups"]["offsets"], result.groups.offsets()));
  CHECK(equals(plan["groups"]["items"], result.groups.items()));
  CHECK(equals(plan["oversized"], result.oversized));
  CHECK(equals(plan["order"], schedule.steps.cells().items()));
  CHECK(equals(plan["left_out"], schedule.left_out));
  CHECK(equals(plan["carried"], schedule.carried));
  CHECK(plan["schedule"]["steps"] == schedule.steps.size());
  CHECK(plan["schedule"]["repeats"] == 0);
  CHECK(plan["schedule"]["remainder"] == "short-step");
  CHECK(plan["schedule"]["dist_ratio"]["tokens"] == schedule.dist_ratio[1]);
  CHECK(plan["capacity"] == nlohmann::json{{"images", 9}, {"tokens", 4096}});
  CHECK(plan["report"]["groups"] == result.groups.size());
  CHECK(plan["inputs"][0]["records"] == 2000);
  CHECK(plan["packer"]["improved"] == false);

  std::vector<std::string> before;
  for (auto const& name : names) before.push_back(written(options.output / name));
  CHECK(write() == names);
  for (std::size_t i = 0; i != names.size(); ++i) {
    CHECK(written(options.output / names[i]) == before[i]);
  }
}

TEST_CASE("a NumPy file has an aligned header and the values as they are") {
  std::ostringstream out;
  std::vector<std::int64_t> const values{1, -2, 3, 4, 5, 6};
  examples::write_npy(out, std::span<std::int64_t const>(values), std::array<std::size_t, 2>{3, 2});
  std::string const text = out.str();
  REQUIRE(text.size() == 128 + 48);
  CHECK(text.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  CHECK(text.find("'fortran_order': False, 'shape': (3, 2, ), }") != std::string::npos);
  CHECK(text[127] == '\n');
  std::int64_t second = 0;
  std::copy_n(text.data() + 136, 8, reinterpret_cast<char*>(&second));
  CHECK(second == -2);
}

TEST_CASE("files that are not committed leave nothing behind") {
  temporary_directory const directory;
  {
    examples::staged_files files;
    files.write(directory.path() / "a" / "b" / "one", [](std::ostream& out) { out << 1; });
    files.write(directory.path() / "a" / "c" / "two", [](std::ostream& out) { out << 2; });
  }
  CHECK(directory.names().empty());

  directory.write("kept/plan.json", "old");
  auto const fails = [&] {
    examples::staged_files files;
    auto const kept = directory.path() / "kept";
    files.write(kept / "one", [](std::ostream& out) { out << 1; });
    files.write(kept / "two", [](std::ostream& out) { out.setstate(std::ios::failbit); });
    files.commit();
  };
  CHECK_THROWS_AS(fails(), std::runtime_error);
  CHECK(written(directory.path() / "kept" / "plan.json") == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path() / "kept"), {}) == 1);

  directory.write("file", "x");
  auto const below = [&](std::filesystem::path const& path) {
    examples::staged_files files;
    files.write(directory.path() / path, [](std::ostream& out) { out << 1; });
  };
  CHECK_THROWS_AS(below("file/one"), std::runtime_error);
  CHECK_THROWS_AS(below("file/below/one"), std::runtime_error);
  auto const twice = [&] {
    examples::staged_files files;
    for (auto const* const name : {"twice", "new/../twice"}) {
      files.write(directory.path() / name, [](std::ostream& out) { out << 1; });
    }
  };
  CHECK_THROWS_AS(twice(), std::runtime_error);
  CHECK(std::ranges::count(directory.names(), "twice") == 0);
}

TEST_CASE("a sum above 64 bits is named with file, record, field and value") {
  std::int64_t const huge = 9000000000000000000;
  examples::dataset data;
  data.samples = {{1, huge}, {1, 5}, {1, huge}};
  data.sources = {{"a.json", 1}, {"b.json", 2}};
  pack_options options;
  options.capacity = {9, huge};
  std::string const message = sum_error(data, options);
  CHECK(message.find("b.json: record 2") != std::string::npos);
  CHECK(message.find("\"token_num\" is 9000000000000000000") != std::string::npos);

  // What fits no group is in no sum.
  options.capacity = {9, 4096};
  CHECK(sum_error(data, options).empty());

  data.samples = {{1, huge}};
  data.sources = {{"a.json", 1}};
  options.capacity = {9, 9223372036854775807};
  options.align_tokens = 1000000000000000000;
  CHECK(sum_error(data, options).empty());
  data.samples[0].tokens += 1;
  CHECK(sum_error(data, options).find("a.json: record 1") == 0);
}
