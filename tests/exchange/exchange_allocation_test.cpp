// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

/// Two ranks in one thread, of which this is rank 0; the other one has the same samples and sends
/// the same.
class mirrored_rank {
 public:
  static std::size_t rank() { return 0; }
  static std::size_t size() { return 2; }
  static void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    std::copy(in.begin(), in.end(), out.begin());
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(in.size()));
  }
  static void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const>,
                           std::span<std::byte> out, std::span<std::uint64_t const>) {
    // Another number of samples may come than leave.
    auto const rest = std::copy_n(in.begin(), std::min(in.size(), out.size()), out.begin());
    std::fill(rest, out.end(), std::byte{0});
  }
};

}  // namespace

TEST_CASE("a training loop allocates nothing once it has seen the largest step") {
  std::vector<std::int64_t> samples(200);
  for (std::size_t i = 0; i != samples.size(); ++i) {
    samples[i] = static_cast<std::int64_t>(i * 37 % 101);
  }
  omnibal::ragged<float> payloads;
  std::vector<float> const values(101);
  for (std::int64_t const sample : samples) {
    payloads.push(std::span(values).first(static_cast<std::size_t>(sample)));
  }
  mirrored_rank const comm;
  auto const bytes = [](std::int64_t sample) { return sample; };
  auto const floating = [](std::int64_t sample) { return 0.5 * static_cast<double>(sample); };
  omnibal::gather_lengths_workspace<1> lengths;
  omnibal::plan_exchange_workspace<1> planner;
  omnibal::exchange_samples_workspace mover;
  omnibal::exchange_plan inverse;
  std::vector<std::int64_t> mine;
  std::vector<std::int64_t> again;
  omnibal::ragged<float> my_payloads;
  auto const step = [&] {
    omnibal::gather_lengths(comm, samples, std::identity{}, {}, lengths);
    omnibal::gather_lengths(comm, samples, std::identity{}, {.max_samples = 200}, lengths);
    omnibal::plan_exchange(comm, samples, floating, bytes, {}, omnibal::rebalance, planner);
    auto const& plan = omnibal::plan_exchange(comm, samples, bytes, bytes, {.max_overload = 0.001},
                                              omnibal::rebalance, planner);
    plan.inverse_into(inverse);
    omnibal::exchange_samples(comm, plan, samples, mine, mover);
    omnibal::exchange_samples(comm, inverse, mine, again, mover);
    omnibal::exchange_samples(comm, plan, payloads, my_payloads, mover);
  };
  step();
  CHECK(test::allocations_of(step) == 0);
  CHECK(planner.result().sample_count() == 400);
  CHECK(lengths.result().values().size() == 400);
}

TEST_CASE("the phases of a training loop allocate nothing once they have seen the largest step") {
  struct sample {
    std::int64_t text;
    std::vector<std::int64_t> images;
  };
  std::vector<sample> samples(150);
  for (std::size_t i = 0; i != samples.size(); ++i) {
    samples[i] = {static_cast<std::int64_t>(i * 37 % 101),
                  std::vector<std::int64_t>(i % 4, static_cast<std::int64_t>(i * 13 % 29))};
  }
  auto const length = [](std::int64_t value) { return value; };
  auto const images = [](sample const& s) -> std::vector<std::int64_t> const& { return s.images; };
  auto const as_double = [](std::int64_t value) { return 0.5 * static_cast<double>(value); };
  omnibal::language_phase const language{&sample::text, &sample::text};
  std::tuple const encoders{omnibal::encoder_phase{images, length, length, length},
                            omnibal::encoder_phase{images, as_double, length, length}};
  mirrored_rank const comm;
  omnibal::orchestrate_workspace<2> workspace;
  std::uint64_t digest = 0;
  auto const step = [&] {
    digest =
        omnibal::orchestrate(comm, samples, language, encoders, {.ranks_per_node = 2}, workspace)
            .digest();
  };
  step();
  CHECK(test::allocations_of(step) == 0);
  CHECK(digest ==
        omnibal::orchestrate(comm, samples, language, encoders, {.ranks_per_node = 2}).digest());
  CHECK(workspace.result().encoders[1].inputs.sample_count() != 0);
  // Fewer samples take no more memory.
  samples.resize(100);
  CHECK(test::allocations_of(step) == 0);
}

TEST_CASE("a simulation allocates nothing once it has seen the largest batch") {
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t r = 0; r <= 100; ++r) offsets.push_back(20 * r);
  std::uint32_t turn = 0;
  auto const cost = [&](std::uint32_t i) { return (i * 7919 + turn * 31) % 1000; };
  omnibal::make_plan_workspace<1> workspace;
  std::int64_t moved = 0;
  auto const step = [&] {
    moved += omnibal::make_plan(offsets, cost, cost, {.ranks_per_node = 8, .max_overload = 0.02},
                                omnibal::rebalance, workspace)
                 .moved_bytes();
  };
  for (; turn != 5; ++turn) step();
  CHECK(test::allocations_of(step) == 0);
  CHECK(moved != 0);
}
