// SPDX-License-Identifier: Apache-2.0
#include "pipeline_picture.hpp"

#include "well_formed.hpp"

#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

constexpr omnibal::simulate_pipeline_options recorded{.timeline =
                                                          omnibal::timeline_policy::recorded};

template <class Schedule>
std::string picture_of(Schedule const& schedule, omnibal::stage_time<> const& time,
                       std::string const& title = "title") {
  auto const result = omnibal::simulate_pipeline(schedule, time, 0, 0, recorded);
  std::ostringstream out;
  examples::write_pipeline_picture(examples::scaled(result.timeline, 1e-3),
                                   {.title = title, .unit = "ms"}, out);
  return out.str();
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t i = text.find(part); i != std::string_view::npos; i = text.find(part, i + 1)) {
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the picture of a pipeline has a box for every operation") {
  std::string const text = picture_of(omnibal::one_f_one_b{4, 8}, {1000, 2000}, "a < b & \"c\"");
  CHECK(xml_complaint(text) == "");
  // 64 operations, 4 rows, 2 in the legend; the ground has no place.
  CHECK(occurrences(text, "<rect x=") == 64 + 4 + 2);
  CHECK(occurrences(text, ">7</text>") == 4 * 2);
  CHECK(text.find("stage 3") != std::string::npos);
  CHECK(text.find("waiting: 27.3 %") != std::string::npos);
  CHECK(text.find("takes 33.000 ms") != std::string::npos);
  CHECK(text == picture_of(omnibal::one_f_one_b{4, 8}, {1000, 2000}, "a < b & \"c\""));
}

TEST_CASE("the picture of a pipeline shows chunks and gradients of the weights") {
  CHECK(picture_of(omnibal::zb_h1{3, 6}, {10, 10, 10}).find("weight gradients") !=
        std::string::npos);
  std::string const interleaved = picture_of(omnibal::interleaved_1f1b{3, 6, 2}, {10, 20});
  CHECK(interleaved.find("weight gradients") == std::string::npos);
  CHECK(occurrences(interleaved, "fill-opacity=\"0.7\"") == 3 * 6 * 2);
}

TEST_CASE("the picture of a pipeline stays small") {
  for (std::size_t const stages : {2u, 64u}) {
    std::string const text = picture_of(omnibal::one_f_one_b{stages, 2000}, {1000, 2000});
    CHECK(xml_complaint(text) == "");
    CHECK(text.size() < 1'000'000);
    CHECK(occurrences(text, "<rect x=") > 2 * stages);
  }
}

// Why: schedules can only be compared by eye if all of them have the same scale.
TEST_CASE("pictures of schedules have one time axis") {
  auto const drawn = [](std::string name, auto const& schedule, omnibal::stage_time<> const& time) {
    auto const step = omnibal::simulate_pipeline(schedule, time, 0, 0, recorded);
    return examples::named_timeline{std::move(name), examples::scaled(step.timeline, 1e-3)};
  };
  std::vector<examples::named_timeline> const both{
      drawn("1F1B", omnibal::one_f_one_b{2, 4}, {1000, 2000}),
      drawn("a < b", omnibal::interleaved_1f1b{2, 4, 2}, {500, 1000})};
  std::ostringstream out;
  examples::write_schedule_pictures(both, {.title = "both", .unit = "ms"}, out);
  std::string const text = out.str();
  CHECK(xml_complaint(text) == "");
  // Operations, rows, legend.
  CHECK(occurrences(text, "<rect x=") == 2 * 4 * 2 + 2 * 4 * 4 + 2 * 2 + 2);
  CHECK(text.find("15.00 ms, waiting: 20.0 %") != std::string::npos);
  CHECK(text.find("13.50 ms, waiting: 11.1 %") != std::string::npos);
  // The plot is 998 wide for 15 ms: passes of 1 ms in both schedules, of 0.5 ms in the second one.
  CHECK(occurrences(text, " width=\"66.5\"") == 2 * 4 + 2 * 2 * 4);
  CHECK(occurrences(text, " width=\"33.3\"") == 2 * 2 * 4);
}

TEST_CASE("the picture of a pipeline may be empty or take no time") {
  std::ostringstream out;
  examples::write_pipeline_picture({}, {.title = "none", .unit = "s"}, out);
  CHECK(xml_complaint(out.str()) == "");
  CHECK(xml_complaint(picture_of(omnibal::one_f_one_b{2, 3}, {0, 0})) == "");
  CHECK(xml_complaint(picture_of(omnibal::one_f_one_b{2, 3000}, {0, 0})) == "");
}
