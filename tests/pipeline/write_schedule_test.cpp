// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_schedule.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>

#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>

#include <catch.hpp>

namespace {

template <class Schedule>
std::string text_of(Schedule const& schedule) {
  std::string text;
  omnibal::write_schedule(schedule, std::back_inserter(text));
  return text;
}

}  // namespace

TEST_CASE("write_schedule writes a row for each stage in PyTorch's letters") {
  CHECK(text_of(omnibal::one_f_one_b{2, 2}) == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(text_of(omnibal::zb_h1{2, 2}) == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
  CHECK(text_of(omnibal::interleaved_1f1b{2, 2, 2}) ==
        "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  // Chunk 1 of stage 0 is the last virtual stage of a V.
  CHECK(text_of(omnibal::zb_v(1, 1)) == "0F0,1F0,1I0,0I0,1W0,0W0\n");
  // The order of PyTorch's ScheduleDualPipeV, with overlapping pairs and whole passes as two words.
  CHECK(text_of(omnibal::dual_pipe_v(1, 2)) == "0F0,1F0,0F1,1I0,1W0,1F1,0I0,0W0,1I1,1W1,0I1,0W1\n");
}

TEST_CASE("write_schedule refuses a virtual stage on two stages") {
  auto const both = omnibal::list_schedule({2, 2, 1, omnibal::chunk_placement::bidirectional},
                                           omnibal::stage_time<>{1, 1, 1});
  CHECK(test::error_text<std::invalid_argument>([&] { text_of(both.schedule); }) ==
        "omnibal::write_schedule: virtual stage 0 lies on stage 0 and on stage 1, must lie on one");
}

TEST_CASE("write_schedule refuses a virtual stage that does not exist") {
  struct far_schedule : omnibal::one_f_one_b {
    [[nodiscard]] static std::size_t virtual_stage(std::size_t stage,
                                                   omnibal::pipeline_unit const& /*unit*/) {
      return stage + 1;
    }
  };
  CHECK(test::error_text<std::invalid_argument>([] {
          text_of(far_schedule{{2, 1}});
        }) == "omnibal::write_schedule: a unit of stage 1 is virtual stage 2, there are 2");
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(
              omnibal::simulate_pipeline(far_schedule{{2, 1}}, omnibal::stage_time<>{1, 1}));
        }).find("virtual_stage(1, chunk 0, micro-batch 0) is 2") != std::string::npos);
}
