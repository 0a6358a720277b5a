// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what simulated pipelines give for seeded integers.
// expected/pipeline.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/place_encoder.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

template <class Schedule>
void print_schedule(std::string const& name, Schedule const& schedule, std::uint64_t seed) {
  test::random_amounts random(seed);
  std::size_t const stages = schedule.stages * schedule.chunk_count();
  std::vector<std::vector<omnibal::stage_time<>>> times(stages);
  for (auto& stage : times) {
    for (std::size_t m = 0; m != schedule.micro_batches; ++m) {
      stage.push_back({random.between(0, 99), random.between(0, 99), random.between(0, 99)});
    }
  }
  std::vector<omnibal::transfer_time<>> transfers;
  for (std::size_t cut = 1; cut != stages; ++cut) {
    transfers.push_back({random.between(0, 20), random.between(0, 20)});
  }
  auto const result = omnibal::simulate_pipeline(schedule, times, transfers, 7,
                                                 {.timeline = omnibal::timeline_policy::recorded});
  test::fnv1a hash;
  hash.add(static_cast<std::uint64_t>(result.makespan));
  hash.add(digest_of(result.busy));
  hash.add(digest_of(result.peak_bytes));
  for (auto const& one : result.timeline) hash.add(static_cast<std::uint64_t>(one.end));
  std::string trace;
  omnibal::write_trace(result.timeline, std::back_inserter(trace));
  hash.add(digest_of(trace));
  print(name + " of seed " + std::to_string(seed), hash.value());
}

void print_encoder(std::uint64_t seed) {
  test::random_amounts random(seed);
  omnibal::encoder_work<> encoder{.pieces = 2};
  for (int m = 0; m != 12; ++m) {
    encoder.times.push_back({random.between(0, 99), random.between(0, 99), 0});
    encoder.transfers.push_back({random.between(0, 9), random.between(0, 9)});
    encoder.activation_bytes.push_back(random.between(0, 9));
    encoder.output_bytes.push_back(random.between(0, 9));
  }
  auto const placed = omnibal::place_encoder(omnibal::one_f_one_b{5, 12},
                                             omnibal::stage_time<>{50, 100}, 5, 7, encoder);
  test::fnv1a hash;
  hash.add(static_cast<std::uint64_t>(placed.step.makespan));
  hash.add(static_cast<std::uint64_t>(placed.before_makespan));
  hash.add(static_cast<std::uint64_t>(placed.lower_bound));
  hash.add(digest_of(placed.step.busy));
  hash.add(digest_of(placed.step.peak_bytes));
  for (auto const& one : placed.step.encoder) hash.add(static_cast<std::uint64_t>(one.end));
  print("place_encoder of seed " + std::to_string(seed), hash.value());
}

void print_pipeline(std::uint64_t seed) {
  print_schedule("gpipe", omnibal::gpipe{5, 12}, seed);
  print_schedule("one_f_one_b", omnibal::one_f_one_b{5, 12}, seed);
  print_schedule("interleaved_1f1b", omnibal::interleaved_1f1b{4, 12, 3}, seed);
  print_schedule("zb_h1", omnibal::zb_h1{5, 12}, seed);
  print_schedule("dual_pipe_v", omnibal::dual_pipe_v(5, 12), seed);
  print_encoder(seed);
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{1}, std::uint64_t{2}}) print_pipeline(seed);
}
