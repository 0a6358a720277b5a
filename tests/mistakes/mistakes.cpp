// SPDX-License-Identifier: Apache-2.0
// Calls that must not compile, one for each number of MISTAKE. count_lines.sh reads the lines that
// begin with "//|": number, the words of which the message must have one, what is wrong.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct sample {
  std::int64_t images = 1;
  std::int64_t tokens = 100;
};

#if MISTAKE <= 8
#include <omnibal/demand.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
std::vector<sample> const samples(9);
auto const demand = omnibal::demand_of(&sample::images, &sample::tokens);
omnibal::resources const capacity{9, 4096};
auto mistake() {
//| 1 | demand_function | a demand functor that takes another type
#if MISTAKE == 1
  return omnibal::best_fit_decreasing(
      samples, [](std::string const& text) { return text.size(); }, 4096);
//| 2 | amount | a demand functor that returns std::array
#elif MISTAKE == 2
  return omnibal::best_fit_decreasing(
      samples,
      [](sample const& s) {
        return std::array{s.images, s.tokens};
      },
      capacity);
//| 3 | same_kinds | a capacity of three resources for demands of two
#elif MISTAKE == 3
  return omnibal::best_fit_decreasing(samples, demand, omnibal::resources{9, 4096, 1});
//| 4 | demand_function | a mutable lambda
#elif MISTAKE == 4
  return omnibal::best_fit_decreasing(
      samples, [calls = 0](sample const& s) mutable { return s.tokens + ++calls; }, 4096);
//| 5 | demand_function | a functor that takes a sample that is not const
#elif MISTAKE == 5
  return omnibal::best_fit_decreasing(
      samples, [](sample& s) { return s.tokens; }, 4096);
//| 6 | sample_range | a std::list of samples
#elif MISTAKE == 6
  return omnibal::best_fit_decreasing(std::list<sample>(9), demand, capacity);
//| 7 | demand_function | demand_of with a member of another struct
#elif MISTAKE == 7
  return omnibal::best_fit_decreasing(samples, omnibal::demand_of(&std::pair<int, int>::first), 9);
//| 8 | fit_score | a score of one argument
#elif MISTAKE == 8
  return omnibal::best_fit_decreasing(samples, demand, capacity, {}, [](int) { return 1; });
#endif
}

#elif MISTAKE <= 14
#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/pack/isf.hpp>
std::vector<std::int64_t> const lengths(9, 100);
auto mistake() {
//| 9 | sample_range,known conversion | swapped arguments of lpt
#if MISTAKE == 9
  return omnibal::lpt(4, lengths);
//| 10 | demand_function | a cost functor that returns a bool
#elif MISTAKE == 10
  return omnibal::lpt(lengths, 4, [](std::int64_t length) { return length > 50; });
//| 11 | set_cost | a cost functor where a set cost is wanted
#elif MISTAKE == 11
  return omnibal::balance_set_cost(lengths, 4, [](std::int64_t length) { return length; });
//| 12 | index_measure | a functor of samples where one of indices is wanted
#elif MISTAKE == 12
  return omnibal::rebalance(omnibal::grouping{}, &sample::tokens, lengths);
//| 13 | keep_rule | a keep rule that returns nothing
#elif MISTAKE == 13
  return omnibal::isf(lengths, std::identity{}, 4096, {}, [](auto const&) {});
//| 14 | plan_balancer,known conversion | the workspace before the options
#elif MISTAKE == 14
  omnibal::make_plan_workspace<> workspace;
  return omnibal::make_plan(std::vector{0, 9}, lengths, lengths, workspace, {.max_overload = 0.1});
#endif
}

#elif MISTAKE <= 20
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/split_long.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/sample/step_sampler.hpp>
std::vector<std::int64_t> const lengths(9, 100);
auto mistake() {
//| 15 | integral_measure | lengths that are floating-point numbers in pack_levels
#if MISTAKE == 15
  return omnibal::pack_levels(std::vector<float>{1, 2}, std::identity{}, std::vector{128});
//| 16 | packer | a packer of two arguments in pack_levels
#elif MISTAKE == 16
  return omnibal::pack_levels(lengths, std::identity{}, std::vector{128},
                              [](auto const&, auto const&) { return omnibal::packing{}; });
//| 17 | packer | a packer of two arguments in split_long
#elif MISTAKE == 17
  return omnibal::split_long(lengths, std::identity{}, 128,
                             [](auto const&, auto const&) { return omnibal::packing{}; });
//| 18 | packing_objective | an objective that returns a string
#elif MISTAKE == 18
  return omnibal::tune_capacity(lengths, std::identity{}, 4.0, omnibal::best_fit_decreasing,
                                [](auto const&) { return std::string(); });
//| 19 | declared here,deleted | numbers where a shard is wanted
#elif MISTAKE == 19
  return omnibal::step_sampler(lengths, 8, 0).done();
//| 20 | step_scheduler | a scheduler that returns no steps
#elif MISTAKE == 20
  return omnibal::step_sampler<std::int64_t, int (*)(std::span<std::int64_t const>)>(lengths, {})
      .done();
#endif
}

#elif MISTAKE <= 26
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
auto const seconds = [](std::size_t, std::size_t first, std::size_t last) { return last - first; };
auto mistake() {
//| 21 | stage_cost | a stage cost of two arguments
#if MISTAKE == 21
  return omnibal::partition_layers(
      9, 2, [](std::size_t first, std::size_t last) { return last - first; });
//| 22 | weight_list,known conversion | a fraction where whole bytes are wanted
#elif MISTAKE == 22
  return omnibal::partition_layers(9, 2, seconds, {}, {.capacity = 80.5});
//| 23 | stage_predicate | a predicate of one argument
#elif MISTAKE == 23
  return omnibal::partition_layers(9, 2, seconds, [](std::size_t) { return true; });
//| 24 | stage_cost | a stage cost that returns a string
#elif MISTAKE == 24
  return omnibal::partition_layers(
      9, 2, [](std::size_t, std::size_t, std::size_t) { return std::string(); });
//| 25 | layer_chain | layers that are a functor
#elif MISTAKE == 25
  return omnibal::partition_layers(seconds, 2, seconds);
//| 26 | stage_capacity,known conversion | the bytes of a memory rule as a text
#elif MISTAKE == 26
  return omnibal::memory_rule{seconds, "80e9"};
#endif
}

#elif MISTAKE <= 32
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/recompute/select_recompute.hpp>
struct unchecked_schedule {
  std::size_t stages = 2;
  std::size_t micro_batches = 4;
};
struct choice_without_bytes {
  std::int64_t time;
};
struct layer_without_state {
  std::vector<omnibal::activation_option<>> choices;
};
auto mistake() {
//| 27 | pipeline_schedule | a schedule without its functions
#if MISTAKE == 27
  return omnibal::simulate_pipeline(unchecked_schedule{}, omnibal::stage_time{1, 2});
//| 28 | stage_times | times that are texts
#elif MISTAKE == 28
  return omnibal::simulate_pipeline(omnibal::gpipe{2, 4}, std::string("1"));
//| 29 | bytes | a choice without bytes
#elif MISTAKE == 29
  return omnibal::select_recompute(std::vector<std::vector<choice_without_bytes>>(3), 100);
//| 30 | state_bytes | a layer without state_bytes
#elif MISTAKE == 30
  return omnibal::plan_pipeline(std::vector<layer_without_state>(3), {}, {.micro_batches = 4});
//| 31 | timeline_range | a timeline of numbers
#elif MISTAKE == 31
  return omnibal::write_trace(std::vector<int>(3), std::back_inserter(*new std::string()));
//| 32 | stage_namer | a namer that returns numbers
#elif MISTAKE == 32
  return omnibal::write_trace(
      std::vector<omnibal::timed_operation<std::int64_t>>(), {},
      [](std::uint32_t stage) { return &stage; }, std::back_inserter(*new std::string()));
#endif
}

#else
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/comm/self_communicator.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
struct owner {
  std::vector<int> tokens;
};
omnibal::self_communicator const comm;
std::vector<std::int64_t> const lengths(9, 100);
auto mistake() {
//| 33 | sendable_field | a struct with a vector in exchange_samples
#if MISTAKE == 33
  return omnibal::exchange_samples(comm, omnibal::exchange_plan{}, std::vector<owner>(3));
//| 34 | offset_range | offsets that are floating-point numbers
#elif MISTAKE == 34
  return omnibal::make_plan(std::vector{0.0, 9.0}, lengths, lengths);
//| 35 | plan_balancer | a balancer that returns nothing
#elif MISTAKE == 35
  return omnibal::make_plan(std::vector{0, 9}, lengths, lengths, {}, [](auto const&...) {});
//| 36 | bytes_function | bytes that are floating-point numbers
#elif MISTAKE == 36
  return omnibal::plan_exchange(comm, lengths, std::identity{}, [](std::int64_t) { return 0.5; });
//| 37 | communicator | a number where a communicator is wanted
#elif MISTAKE == 37
  return omnibal::gather_lengths(8, lengths);
//| 38 | integral_measure | lengths that are floating-point numbers in gather_lengths
#elif MISTAKE == 38
  return omnibal::gather_lengths(comm, lengths, [](std::int64_t length) { return 0.5 * length; });
#endif
}
#endif

int main() { static_cast<void>(mistake()); }
