// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cost/machines.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/plan/plan_configuration.hpp>
#include <omnibal/plan/predict_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::configuration_choice;
using omnibal::configuration_plan;
using omnibal::language_model;
using omnibal::loss_reason;
using omnibal::plan_configuration;
using omnibal::plan_configuration_options;
using omnibal::solve_status;
using omnibal::step_data;

language_model small_model() {
  return {.input = {.vocabulary = 32'000, .hidden = 1024},
          .layers = 16,
          .layer = {.hidden = 1024, .heads = 16, .kv_heads = 8, .mlp = 2816},
          .output = {.vocabulary = 32'000, .hidden = 1024}};
}

language_model gpt3_175b() {
  return {.input = {.vocabulary = 51'200, .hidden = 12'288},
          .layers = 96,
          .layer = {.hidden = 12'288,
                    .heads = 96,
                    .mlp = 49'152,
                    .feed_forward = omnibal::mlp_kind::plain},
          .output = {.vocabulary = 51'200, .hidden = 12'288}};
}

struct three_windows {
  template <class Visit>
  void for_each_layer(Visit const& visit) const {
    for (std::int64_t const window : {256, 512, 1024}) {
      auto layer = small_model().layer;
      layer.span = {omnibal::span_kind::window, window};
      visit(layer, 4);
    }
  }
};

/// A tower of six layers with 64 patches a tile, and the small model.
omnibal::vision_language_model small_pair() {
  return {.vision = {.patches = {.hidden = 512, .image_size = 112},
                     .layers = 6,
                     .layer = {.hidden = 512, .heads = 8, .mlp = 2048, .image_size = 112}},
          .connector = {.input = 2048, .hidden = 1024, .output = 1024, .tile_tokens = 16},
          .language = small_model()};
}

step_data small_data() { return {.sequences = 32, .tokens = 2048}; }

plan_configuration_options small_options() {
  return {.devices = 8, .memory_bytes = 40'000'000'000, .reserve_bytes = 2'000'000'000};
}

configuration_plan planned(plan_configuration_options const& options,
                           step_data const& data = small_data()) {
  return plan_configuration(small_model(), omnibal::machines::h100, data, options);
}

std::int64_t peak_of(omnibal::planned_configuration const& given) {
  return std::ranges::max(given.prediction.peak_bytes);
}

std::string error_of(plan_configuration_options const& options,
                     step_data const& data = small_data()) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(planned(options, data)); });
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// A plan must be a step that predict_step accepts, use all devices and the whole batch, and fit.
TEST_CASE("a planned configuration is a step of all devices") {
  auto const plan = planned(small_options());
  REQUIRE(plan.status == solve_status::solved);
  CHECK(plan.proven);
  CHECK(plan.lower_bound == plan.best.prediction.total());
  CHECK(plan.runners_up.size() == 4);
  std::vector<omnibal::planned_configuration> all = plan.runners_up;
  all.push_back(plan.best);
  for (auto const& family : plan.families) {
    if (family.reason != loss_reason::memory) all.push_back(family.best);
  }
  double const best = plan.best.prediction.total();
  for (auto const& one : all) {
    auto const& degrees = one.step.degrees;
    CHECK(degrees.tensor * degrees.pipeline * degrees.sequence * degrees.data == 8);
    CHECK(one.step.sequences * one.step.micro_batches * degrees.data == 32);
    CHECK(peak_of(one) <= 38'000'000'000);
    CHECK(one.prediction.total() >= best);
    CHECK(one.padding == 0);
    auto const again = omnibal::predict_step(small_model(), one.step, omnibal::machines::h100);
    CHECK(again == one.prediction);
  }
  for (std::size_t i = 1; i < plan.runners_up.size(); ++i) {
    CHECK(plan.runners_up[i - 1].prediction.total() <= plan.runners_up[i].prediction.total());
  }
  // Three times the forward FLOPs of the model for each sequence.
  omnibal::micro_batch_work const sequence{.documents = omnibal::equal_sequences({1, 2048})};
  std::int64_t flops = 0;
  for (auto const& cost : omnibal::layer_costs(small_model(), sequence)) flops += cost.flops();
  CHECK(plan.flops == Approx(32.0 * static_cast<double>(flops)));
}

// Less memory must never give a faster step, and too little must be said with a bound.
TEST_CASE("less memory is never faster") {
  auto options = small_options();
  options.reserve_bytes = 0;
  double last = 0;
  std::int64_t least = 0;
  for (std::int64_t memory = 64'000'000'000; memory > 1'000'000; memory /= 2) {
    options.memory_bytes = memory;
    auto const plan = planned(options);
    if (plan.status == solve_status::infeasible) {
      CHECK(plan.proven);
      CHECK(plan.min_bytes > memory);
      least = plan.min_bytes;
      break;
    }
    CHECK(peak_of(plan.best) <= memory);
    CHECK(plan.best.prediction.total() >= last);
    last = plan.best.prediction.total();
  }
  CHECK(least > 0);
}

// A link to the host must help exactly where the memory is short, and the host has a limit too.
TEST_CASE("a search offloads if the memory is short") {
  auto options = small_options();
  options.reserve_bytes = 0;
  options.recompute = {omnibal::recompute_choice::full};
  options.sharding = {omnibal::sharded_state::nothing};
  options.tensor_parallel = {1};
  options.pipeline_parallel = {1};
  options.context_parallel = {1};
  options.micro_batch_sizes = {4};
  options.memory_bytes = planned(options).best.prediction.peak_bytes[0] - 1;
  CHECK(planned(options).status == solve_status::infeasible);
  options.offload_bytes_per_second = 5e10;
  auto const plan = planned(options);
  REQUIRE(plan.status == solve_status::solved);
  CHECK(plan.proven);
  CHECK(plan.configurations == 5 * 2);
  CHECK(plan.best.offload_percent == 25);
  CHECK(plan.best.step.offload == omnibal::activation_offload{0.25, 5e10});
  CHECK(peak_of(plan.best) <= options.memory_bytes);
  REQUIRE(plan.families.size() == 4);
  CHECK(plan.families[0].choice == configuration_choice::offload);
  CHECK(plan.families[0].value == 0);
  CHECK(plan.families[0].reason == loss_reason::memory);
  CHECK(plan.families[1].value == 50);
  CHECK(plan.families[1].reason == loss_reason::links);
  options.host_memory_bytes = plan.best.prediction.host_bytes[0];
  CHECK(planned(options).best.offload_percent == 25);
  --options.host_memory_bytes;
  auto const without_host = planned(options);
  CHECK(without_host.status == solve_status::infeasible);
  CHECK(without_host.min_bytes <= options.memory_bytes);
}

// Packed samples must be offloaded at the bytes of the largest micro-batch, here by its squares.
TEST_CASE("the host has room for the largest micro-batch") {
  auto model = small_model();
  model.layer.kernel = omnibal::attention_kernel::unfused;
  auto options = small_options();
  options.offload_bytes_per_second = 1e11;
  options.offload_percent = {100};
  options.recompute = {omnibal::recompute_choice::none};
  options.token_capacities = {4096};
  step_data data{.sequences = 64, .lengths = std::vector<std::int64_t>(64, 100)};
  data.lengths[0] = 4000;
  auto const plan = plan_configuration(model, omnibal::machines::h100, data, options);
  REQUIRE(plan.status == solve_status::solved);
  CHECK(plan.best.step.offload.share == 1);
  auto largest = plan.best.step;
  largest.work = plan.best.largest;
  CHECK(largest.work != plan.best.step.work);
  auto const of_largest = omnibal::predict_step(model, largest, omnibal::machines::h100);
  CHECK(plan.best.prediction.host_bytes == of_largest.host_bytes);
  CHECK(plan.best.prediction.peak_bytes == of_largest.peak_bytes);
}

// Packed documents must count the squares within a window, or a model with windows has no plan.
TEST_CASE("a model with a window plans packed lengths") {
  auto const plan_of = [](std::int64_t window, step_data const& data) {
    language_model model = small_model();
    if (window != 0) model.layer.span = {omnibal::span_kind::window, window};
    return plan_configuration(model, omnibal::machines::h100, data, small_options());
  };
  step_data mixed{.sequences = 64};
  for (std::int64_t i = 0; i != 200; ++i) mixed.lengths.push_back(100 + 3000 * (i % 7) / 6);
  double const whole = plan_of(0, mixed).best.prediction.total();
  CHECK(plan_of(1 << 20, mixed).best.prediction.total() == whole);
  double const within = plan_of(512, mixed).best.prediction.total();
  CHECK(within < whole);
  CHECK(plan_of(64, mixed).best.prediction.total() < within);

  // Samples that fill their micro-batches are sequences of one length.
  step_data const full{.sequences = 32, .lengths = std::vector<std::int64_t>(64, 2048)};
  auto options = small_options();
  options.token_capacities = {2048};
  language_model model = small_model();
  model.layer.span = {omnibal::span_kind::window, 512};
  auto const packed = plan_configuration(model, omnibal::machines::h100, full, options);
  options.token_capacities = {};
  options.micro_batch_sizes = {1};
  auto const equal = plan_configuration(model, omnibal::machines::h100, small_data(), options);
  CHECK(packed.best.prediction.total() == equal.best.prediction.total());
  CHECK(packed.best.prediction.peak_bytes == equal.best.prediction.peak_bytes);
}

// Sequences of one length need no squares within windows, so a model may have any number of them.
TEST_CASE("a model with three windows plans sequences of one length") {
  auto const plan_of = [](step_data const& data) {
    return plan_configuration(three_windows{}, omnibal::machines::h100, data, small_options());
  };
  CHECK(plan_of(small_data()).status == solve_status::solved);
  auto const error = test::error_text<std::invalid_argument>([&] {
    static_cast<void>(plan_of({.sequences = 2, .lengths = {2000, 1000}}));
  });
  CHECK(contains(error, "more than 2 different windows"));
}

// The space of one node-wide tensor degree would miss what the published sweeps searched.
TEST_CASE("the whole space of a large model is searched with few simulations") {
  auto const plan = plan_configuration(
      gpt3_175b(), omnibal::machines::a100_infiniband, {.sequences = 1536, .tokens = 2048},
      {.devices = 512, .memory_bytes = 80'000'000'000, .reserve_bytes = 6'000'000'000});
  CHECK(plan.proven);
  CHECK(plan.configurations > 500'000);
  CHECK(plan.predictions < 500);
  CHECK(peak_of(plan.best) <= 74'000'000'000);
  bool has_tensor_of_one = false;
  for (auto const& family : plan.families) {
    has_tensor_of_one |=
        family.choice == configuration_choice::tensor_parallel && family.value == 1;
  }
  CHECK(has_tensor_of_one);
}

// Each list must restrict exactly its own choice, or a user's constraint would be ignored.
TEST_CASE("the search keeps to the listed values") {
  using options_type = plan_configuration_options;
  auto const best_with = [](auto const& set) {
    options_type options = small_options();
    set(options);
    auto const plan = planned(options);
    REQUIRE(plan.status == solve_status::solved);
    return plan.best.step;
  };
  CHECK(best_with([](options_type& o) { o.tensor_parallel = {4}; }).degrees.tensor == 4);
  CHECK(best_with([](options_type& o) { o.pipeline_parallel = {2}; }).degrees.pipeline == 2);
  CHECK(best_with([](options_type& o) { o.context_parallel = {8}; }).degrees.sequence == 8);
  CHECK(best_with([](options_type& o) {
          o.virtual_pipeline = {3};
          o.pipeline_parallel = {4};
        }).chunks == 3);
  CHECK(best_with([](options_type& o) { o.micro_batch_sizes = {4}; }).sequences == 4);
  CHECK(best_with([](options_type& o) {
          o.recompute = {omnibal::recompute_choice::full};
        }).recomputed == omnibal::recompute_choice::full);
  CHECK(best_with([](options_type& o) {
          o.sharding = {omnibal::sharded_state::gradients};
        }).degrees.sharding == omnibal::sharded_state::gradients);
  auto const replicated = best_with([](options_type& o) {
    o.tensor_parallel = {2};
    o.norms = {omnibal::norm_regions::replicated};
  });
  CHECK(replicated.degrees.norms == omnibal::norm_regions::replicated);
  auto const even = best_with([](options_type& o) {
    o.cuts = {omnibal::stage_cuts::even};
    o.pipeline_parallel = {4};
    o.virtual_pipeline = {1};
  });
  CHECK(even.boundaries == omnibal::even_boundaries({.layers = 16, .stages = 4}));
  auto const balanced = best_with([](options_type& o) {
    o.cuts = {omnibal::stage_cuts::balanced};
    o.pipeline_parallel = {4};
    o.virtual_pipeline = {1};
  });
  CHECK(balanced.boundaries != even.boundaries);
  auto const software = best_with([](options_type& o) {
    o.precision = omnibal::matmul_precision::fp8;
    o.bytes = omnibal::fp8_bytes;
    o.reduced_bytes = 4;
    o.gathered_bytes = 1;
    o.bucket_bytes = 1000;
    o.layer_communication = omnibal::communication::overlapped;
    o.gradient_communication = omnibal::communication::blocking;
  });
  CHECK(software.precision == omnibal::matmul_precision::fp8);
  CHECK(software.bytes.matrix_copy == 2);
  CHECK(software.reduced_bytes == 4);
  CHECK(software.gathered_bytes == 1);
  CHECK(software.bucket_bytes == 1000);
  CHECK(software.layer_communication == omnibal::communication::overlapped);
  CHECK(software.gradient_communication == omnibal::communication::blocking);
}

// Experts may be shared by ranks of tensor parallelism too, and only models with experts have them.
TEST_CASE("experts have degrees of their own") {
  auto model = small_model();
  model.layer.mlp = 0;
  model.layer.experts = {.routed = 8, .active = 2, .mlp = 1024};
  auto options = small_options();
  options.tensor_parallel = {2};
  options.expert_parallel = {8};
  auto const plan = plan_configuration(model, omnibal::machines::h100, small_data(), options);
  CHECK(plan.best.step.degrees.expert == 8);
  CHECK(plan.best.step.degrees.expert_tensor == 1);
  CHECK(contains(error_of(options), "options allow no configuration of 8 devices"));
}

// A limit must end the search with what was found, and must not be called a proof.
TEST_CASE("a search that is cut short proves nothing") {
  auto options = small_options();
  options.predictions = 1;
  auto const cut = planned(options);
  CHECK_FALSE(cut.proven);
  CHECK(cut.predictions == 1);
  CHECK(cut.status == solve_status::solved);
  auto const whole = planned(small_options());
  CHECK(cut.lower_bound <= whole.best.prediction.total());
  CHECK(cut.best.prediction.total() >= whole.best.prediction.total());
}

namespace {

/// Packs the samples again and compares the numbers of a planned micro-batch.
void check_packing(omnibal::vision_language_model const& pair, step_data const& data,
                   omnibal::planned_configuration const& found) {
  CHECK(found.token_capacity % 128 == 0);
  CHECK(found.step.work.documents.tokens == found.token_capacity);
  std::vector<std::uint32_t> samples(data.lengths.size());
  for (std::size_t i = 0; i != samples.size(); ++i) samples[i] = static_cast<std::uint32_t>(i);
  auto const packed = omnibal::best_fit_decreasing(
      samples,
      [&](std::uint32_t i) {
        return omnibal::resources{data.tiles[i], data.lengths[i]};
      },
      omnibal::resources{found.tile_capacity, found.token_capacity});
  auto const packs = static_cast<std::int64_t>(packed.groups.size());
  // A step has a tenth of the samples, shared by the data-parallel ranks.
  std::int64_t const in_step = (packs + 9) / 10;
  std::int64_t const ranks = found.step.degrees.data;
  CHECK(found.step.micro_batches == (in_step + ranks - 1) / ranks);
  std::int64_t most_tiles = 0;
  std::int64_t most_squares = 0;
  double squares = 0;
  for (auto const& group : packed.groups) {
    std::int64_t tiles = 0;
    std::int64_t tokens = 0;
    std::int64_t of_group = 0;
    for (std::uint32_t const i : group) {
      tiles += data.tiles[i];
      tokens += data.lengths[i];
      of_group += data.lengths[i] * data.lengths[i];
    }
    of_group += (found.token_capacity - tokens) * (found.token_capacity - tokens);
    squares += static_cast<double>(of_group);
    most_tiles = std::max(most_tiles, tiles);
    most_squares = std::max(most_squares, of_group);
  }
  CHECK(found.step.work.tiles == most_tiles);
  CHECK(static_cast<double>(found.step.work.documents.squares) ==
        Approx(squares / static_cast<double>(packs)).epsilon(1e-6));
  CHECK(found.largest.documents.squares == most_squares);
  auto const again = omnibal::predict_step(pair, found.step, omnibal::machines::h100);
  CHECK(again.seconds == found.prediction.seconds);
  auto largest = found.step;
  largest.work = found.largest;
  CHECK(omnibal::predict_step(pair, largest, omnibal::machines::h100).peak_bytes ==
        found.prediction.peak_bytes);
}

}  // namespace

// Packing is inside: the numbers of micro-batches and the padding must follow from the packs.
TEST_CASE("samples are packed for each capacity") {
  step_data data{.sequences = 64};
  for (std::int64_t i = 0; i != 640; ++i) {
    data.lengths.push_back(100 + i * 7919 % 1900);
    data.tiles.push_back(1 + i % 5);
  }
  auto options = small_options();
  options.pipeline_parallel = {1};
  options.context_parallel = {1};
  options.tensor_parallel = {2};
  auto pair = small_pair();
  pair.language.layer.kernel = omnibal::attention_kernel::unfused;
  auto const plan = plan_configuration(pair, omnibal::machines::h100, data, options);
  REQUIRE(plan.status == solve_status::solved);
  CHECK(plan.proven);
  check_packing(pair, data, plan.best);
  std::size_t capacities = 1;
  for (auto const& family : plan.families) {
    if (family.choice != configuration_choice::micro_batch) continue;
    if (family.reason == loss_reason::memory) continue;
    check_packing(pair, data, family.best);
    ++capacities;
  }
  CHECK(capacities > 5);
  CHECK(plan.best.padding > 0);
  CHECK(plan.best.padding < 0.5);
  // Each other capacity is a family, which loses by its padding or its size.
  auto const families = std::ranges::count(plan.families, configuration_choice::micro_batch,
                                           &omnibal::configuration_family::choice);
  CHECK(families == 12);
}

// The bound of the bytes counts units in flight by a formula, which must be the schedule's number.
TEST_CASE("units in flight are those of the schedule") {
  for (std::int64_t const stages : {1, 2, 3, 4, 8}) {
    for (std::int64_t const groups : {1, 2, 5}) {
      for (std::int64_t const chunks : {1, 2, 3}) {
        if (chunks > 1 && stages == 1) continue;
        omnibal::detail::schedule_size const size{stages, stages * groups, chunks};
        auto const peaks = omnibal::peak_in_flight(
            omnibal::interleaved_1f1b{.stages = static_cast<std::size_t>(stages),
                                      .micro_batches = static_cast<std::size_t>(stages * groups),
                                      .chunks = static_cast<std::size_t>(chunks)});
        for (std::int64_t s = 0; s != stages; ++s) {
          CHECK(size.units_in_flight(s) == peaks[static_cast<std::size_t>(s)]);
        }
      }
    }
  }
}

// Whole sequences that are packs of one sample must give the configuration of whole sequences.
TEST_CASE("packs without padding cost what sequences cost") {
  auto options = small_options();
  options.micro_batch_sizes = {1};
  auto const equal = planned(options);
  options.micro_batch_sizes = {};
  options.token_capacities = {2048};
  auto const packed =
      planned(options, {.sequences = 32, .lengths = std::vector<std::int64_t>(50, 2048)});
  CHECK(packed.best.prediction == equal.best.prediction);
  CHECK(packed.best.padding == Approx(0).margin(1e-9));
  CHECK(packed.flops == Approx(equal.flops));
}

// A reason must name the part of the step that made the family lose.
TEST_CASE("families lose for a reason") {
  auto options = small_options();
  options.tensor_parallel = {1};
  options.context_parallel = {1};
  options.virtual_pipeline = {1};
  options.micro_batch_sizes = {4};
  options.recompute = {omnibal::recompute_choice::none};
  options.sharding = {omnibal::sharded_state::optimizer};
  auto const reason_of = [](configuration_plan const& plan, std::int64_t pipeline) {
    for (auto const& family : plan.families) {
      bool const is_pipeline = family.choice == configuration_choice::pipeline_parallel;
      if (is_pipeline && family.value == pipeline) return family.reason;
    }
    throw std::logic_error("no such family");
  };
  // Two micro-batches for each of eight stages wait for each other.
  CHECK(reason_of(planned(options), 8) == loss_reason::bubble);
  auto slow = omnibal::machines::h100;
  slow.node_bytes_per_second = 1e8;
  slow.network_bytes_per_second = 1e8;
  auto const on_slow = plan_configuration(small_model(), slow, small_data(), options);
  CHECK(on_slow.best.step.degrees.pipeline > 1);
  CHECK(reason_of(on_slow, 1) == loss_reason::links);
  options.reserve_bytes = 0;
  options.pipeline_parallel = {1};
  while (planned(options).status == solve_status::solved) {
    options.memory_bytes = options.memory_bytes / 10 * 9;
  }
  options.pipeline_parallel = {1, 2, 4, 8};
  CHECK(reason_of(planned(options), 1) == loss_reason::memory);
}

// A user's own functor must be used in the bounds and in the predictions.
TEST_CASE("plan_configuration uses the given pieces") {
  struct slow_links {
    double operator()(omnibal::machine const&, omnibal::collective const& given) const {
      return given.ranks > 1 ? 1000.0 : 0.0;
    }
  };
  omnibal::step_pieces<omnibal::matmul_time, omnibal::attention_time, omnibal::memory_time,
                       omnibal::optimizer_time, slow_links> const pieces;
  auto options = small_options();
  auto const plan =
      plan_configuration(small_model(), omnibal::machines::h100, small_data(), options, pieces);
  CHECK(plan.best.step.degrees.tensor == 1);
  CHECK(plan.best.prediction.total() > 100);
  CHECK(plan.proven);
}

// A message must name the option or the number that is wrong.
TEST_CASE("plan_configuration names what it refuses") {
  using options_type = plan_configuration_options;
  auto const error_with = [](auto const& set, step_data const& data = small_data()) {
    options_type options = small_options();
    set(options);
    return error_of(options, data);
  };
  auto const nothing = [](options_type&) {};
  CHECK(contains(error_with([](options_type& o) { o.devices = 0; }), "options.devices is 0"));
  CHECK(contains(error_with([](options_type& o) { o.memory_bytes = 0; }),
                 "options.memory_bytes is 0"));
  CHECK(contains(error_with([](options_type& o) { o.reserve_bytes = -1; }),
                 "options.reserve_bytes is -1"));
  CHECK(
      contains(error_with([](options_type& o) { o.tensor_parallel = {3}; }),
               "options.devices is 8, must be a multiple of options.tensor_parallel, which is 3"));
  CHECK(contains(error_with([](options_type& o) { o.pipeline_parallel = {0}; }),
                 "options.pipeline_parallel is 0"));
  CHECK(contains(error_with([](options_type& o) { o.context_parallel = {16}; }),
                 "options.context_parallel, which is 16"));
  CHECK(contains(error_with([](options_type& o) { o.expert_parallel = {5}; }),
                 "options.expert_parallel, which is 5"));
  CHECK(contains(error_with([](options_type& o) { o.virtual_pipeline = {0}; }),
                 "options.virtual_pipeline is 0"));
  CHECK(contains(error_with([](options_type& o) { o.micro_batch_sizes = {5}; }),
                 "data.sequences is 32, must be a multiple of options.micro_batch_sizes"));
  CHECK(contains(error_with([](options_type& o) { o.token_capacities = {4096}; }),
                 "options.token_capacities has values, but data.lengths has none"));
  CHECK(contains(error_with([](options_type& o) { o.bucket_bytes = 0; }),
                 "options.bucket_bytes is 0"));
  CHECK(contains(error_with([](options_type& o) { o.offload_bytes_per_second = -1; }),
                 "options.offload_bytes_per_second is -1"));
  CHECK(contains(error_with([](options_type& o) { o.host_memory_bytes = -1; }),
                 "options.host_memory_bytes is -1"));
  CHECK(contains(error_with([](options_type& o) { o.offload_percent = {101}; }),
                 "options.offload_percent is 101"));
  CHECK(contains(error_with([](options_type& o) {
                   o.offload_percent = {0, 50};
                 }),
                 "options.offload_percent has 50, must be 0"));
  CHECK(contains(error_with([](options_type& o) { o.reduced_bytes = 0; }),
                 "options.reduced_bytes is 0"));
  CHECK(contains(error_with([](options_type& o) { o.gathered_bytes = 65; }),
                 "options.gathered_bytes is 65"));
  CHECK(
      contains(error_with([](options_type& o) { o.predictions = 0; }), "options.predictions is 0"));
  CHECK(contains(error_with(nothing, {.sequences = 0, .tokens = 8}), "data.sequences is 0"));
  CHECK(contains(error_with(nothing, {.sequences = 8}), "data.tokens is 0"));
  CHECK(contains(error_with(nothing, {.sequences = 8, .tokens = 8, .document_tokens = 3}),
                 "data.tokens is 8, must be a multiple of data.document_tokens, which is 3"));
  CHECK(contains(error_with(nothing, {.sequences = 8, .tokens = 8, .lengths = {8}}),
                 "data.tokens is 8"));
  CHECK(contains(error_with(nothing, {.sequences = 8, .lengths = {8, 0}}), "data.lengths[1] is 0"));
  CHECK(contains(error_with(nothing, {.sequences = 8, .lengths = {8, 9}, .tiles = {1}}),
                 "data.tiles has 1 values for 2 lengths"));
  CHECK(contains(error_with(nothing, {.sequences = 8, .lengths = {8}, .tiles = {-1}}),
                 "data.tiles[0] is -1"));
  CHECK(contains(error_with([](options_type& o) { o.micro_batch_sizes = {1}; },
                            {.sequences = 8, .lengths = {8}}),
                 "options.micro_batch_sizes has values, but samples are packed"));
  CHECK(contains(error_with([](options_type& o) { o.token_capacities = {7}; },
                            {.sequences = 8, .lengths = {8}}),
                 "options.token_capacities is 7"));
  CHECK(contains(error_with(
                     [](options_type& o) {
                       o.tensor_parallel = {1};
                       o.pipeline_parallel = {1};
                     },
                     {.sequences = 3, .tokens = 7}),
                 "options allow no configuration of 8 devices for this model and 3 sequences"));
}
