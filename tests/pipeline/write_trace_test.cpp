// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using omnibal::operation_kind;
using omnibal::stage_time;
using omnibal::timed_operation;
using omnibal::write_trace;

constexpr omnibal::simulate_pipeline_options recorded{.timeline =
                                                          omnibal::timeline_policy::recorded};

template <class Timeline, class... More>
std::string trace_text(Timeline const& timeline, More const&... more) {
  std::string text;
  write_trace(timeline, more..., std::back_inserter(text));
  return text;
}

template <class Timeline, class... More>
nlohmann::json events_of(Timeline const& timeline, More const&... more) {
  return nlohmann::json::parse(trace_text(timeline, more...)).at("traceEvents");
}

/// A name as Perfetto shows it: of the process, or of a thread.
std::string name_in(nlohmann::json const& events, std::string const& kind, int thread) {
  for (auto const& event : events) {
    if (event.at("name") == kind && event.at("tid") == thread) return event["args"]["name"];
  }
  return "none";
}

using one_operation = std::vector<timed_operation<std::int64_t>>;

/// The text of a time of one operation.
std::string begin_text(std::int64_t begin, omnibal::time_unit unit) {
  one_operation const timeline{{operation_kind::forward, 0, 0, 0, begin, begin}};
  std::string const text = trace_text(timeline, omnibal::write_trace_options{.unit = unit});
  std::size_t const first = text.find("\"ts\":") + 5;
  return text.substr(first, text.find(',', first) - first);
}

}  // namespace

TEST_CASE("write_trace writes every operation once, and those of a stage do not overlap") {
  auto const result = omnibal::simulate_pipeline(omnibal::interleaved_1f1b{4, 8, 2},
                                                 stage_time{1000, 2000}, 300, 0, recorded);
  auto const events = events_of(result.timeline);
  std::map<int, std::int64_t> end_of;
  std::map<std::tuple<int, std::string, int, int>, int> seen;
  std::size_t operations = 0;
  for (auto const& event : events) {
    if (event.at("ph") != "X") continue;
    ++operations;
    int const stage = event.at("tid");
    // Microseconds, here whole multiples of 0.1.
    auto const begin = static_cast<std::int64_t>(event.at("ts").get<double>() * 1000 + 0.5);
    auto const length = static_cast<std::int64_t>(event.at("dur").get<double>() * 1000 + 0.5);
    CHECK(begin >= end_of[stage]);
    end_of[stage] = begin + length;
    ++seen[{stage, event.at("cat"), event.at("args").at("chunk"),
            event.at("args").at("micro_batch")}];
  }
  CHECK(operations == 4u * 8u * 2u * 2u);
  CHECK(seen.size() == operations);
  std::int64_t makespan = 0;
  for (auto const& [stage, end] : end_of) makespan = std::max(makespan, end);
  CHECK(makespan == result.makespan);
}

TEST_CASE("write_trace names kinds, stages and the process") {
  auto const result =
      omnibal::simulate_pipeline(omnibal::zb_h1{2, 2}, stage_time{1, 1, 1}, 0, 0, recorded);
  auto const events = events_of(result.timeline);
  CHECK(name_in(events, "process_name", 0) == "pipeline");
  CHECK(name_in(events, "thread_name", 1) == "stage 1");
  std::map<std::string, int> kinds;
  for (auto const& event : events) {
    if (event.at("ph") == "X") ++kinds[event.at("cat")];
  }
  CHECK(kinds == std::map<std::string, int>{{"forward", 4}, {"backward", 4}, {"weight", 4}});

  std::string const odd = "a \"b\" \\ \n\t\x01 ü";
  auto const named =
      events_of(result.timeline, omnibal::write_trace_options{.process = odd, .process_id = 7},
                [&](std::uint32_t stage) { return odd + std::to_string(stage); });
  CHECK(name_in(named, "process_name", 0) == odd);
  CHECK(name_in(named, "thread_name", 1) == odd + "1");
  CHECK(named[0].at("pid") == 7);
}

TEST_CASE("write_trace writes integer times exactly") {
  using omnibal::time_unit;
  CHECK(begin_text(1'234'567, time_unit::nanoseconds) == "1234.567");
  CHECK(begin_text(123, time_unit::nanoseconds) == "0.123");
  CHECK(begin_text(7, time_unit::nanoseconds) == "0.007");
  CHECK(begin_text(0, time_unit::nanoseconds) == "0.000");
  CHECK(begin_text(42, time_unit::microseconds) == "42");
  CHECK(begin_text(42, time_unit::milliseconds) == "42000");
  CHECK(begin_text(42, time_unit::seconds) == "42000000");
  CHECK(begin_text(0, time_unit::seconds) == "0");
  CHECK(begin_text(std::numeric_limits<std::int64_t>::max(), time_unit::nanoseconds) ==
        "9223372036854775.807");
}

TEST_CASE("write_trace takes floating-point times and no operations") {
  std::vector<timed_operation<double>> const timeline{
      {operation_kind::backward, 1, 2, 3, 0.5, 0.75}};
  auto const events =
      events_of(timeline, omnibal::write_trace_options{.unit = omnibal::time_unit::seconds});
  CHECK(events[1].at("ts") == 500'000.0);
  CHECK(events[1].at("dur") == 250'000.0);
  CHECK(events[1].at("name") == "backward 3");
  CHECK(events[1].at("args").at("chunk") == 2);
  CHECK(events_of(one_operation{}).size() == 1);
}

TEST_CASE("write_trace refuses operations that cannot be") {
  auto const error_of = [](auto begin, auto end) {
    std::vector<timed_operation<decltype(begin)>> const timeline{
        {operation_kind::forward, 0, 0, 0, begin, end}};
    return test::error_text<std::invalid_argument>([&] { trace_text(timeline); });
  };
  CHECK(error_of(std::int64_t{-1}, std::int64_t{3}).find("begin[0] is -1") != std::string::npos);
  CHECK(error_of(std::int64_t{5}, std::int64_t{3}).find("duration[0] is -2") != std::string::npos);
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_of(not_a_number, 1.0).find("begin[0]") != std::string::npos);
  CHECK(error_of(1.0, not_a_number).find("duration[0]") != std::string::npos);
}
