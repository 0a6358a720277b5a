// SPDX-License-Identifier: Apache-2.0
#include "balanced_training.hpp"
#include "batch_source.hpp"
#include "error_text.hpp"
#include "modality_mix.hpp"
#include "phase_report.hpp"
#include "post_balance_options.hpp"
#include "toy_model.hpp"
#include "vlm_layers.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using namespace examples;
using words = std::vector<std::uint64_t>;

batch_measures batch_of(std::size_t ranks, std::size_t samples_per_rank) {
  modality_costs const costs;
  batch_measures batch;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    batch.add_rank(draw_samples({.rank = rank, .samples = samples_per_rank}), costs);
  }
  return batch;
}

dataset of_samples(std::vector<sample> samples) {
  dataset data;
  data.samples = std::move(samples);
  return data;
}

std::optional<post_balance_options> parsed(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "post_balance");
  return parse_post_balance(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("tokens of tiles stand in documents, or documents attend to them") {
  multimodal_sample const sample{
      .number = 0, .text_tokens = 100, .pieces = {{modality::image, 1}, {modality::image, 2}}};
  for (std::string const name : {"blip2-opt-2.7b", "flamingo-3b"}) {
    auto const model = find_model(name, model_parts::both);
    modality_costs const costs(model);
    std::int64_t const tokens = model.cross ? 100 : 100 + 3 * 32;
    CHECK(costs.language_tokens(sample) == tokens);
    omnibal::micro_batch_work const batch{
        .tiles = 3, .documents = omnibal::equal_sequences({.count = 1, .length = tokens})};
    std::int64_t flops = 0;
    for (auto const& layer : omnibal::layer_costs(model.language_layers(), batch)) {
      flops += layer.flops();
    }
    CHECK(costs.language_time(sample) == flops / 400'000);
    std::int64_t encoder = 0;
    auto const layers = omnibal::layer_costs(model, {.tiles = 3});
    auto const kinds = layer_kinds(model);
    for (std::size_t l = 0; kinds[l] != "projector"; ++l) encoder += layers[l].flops();
    CHECK(costs.encoder_time(modality::image, 3) == encoder / 400'000);
    CHECK(costs.output_bytes(modality::image, 3) == 2 * 3 * (model.cross ? 64 * 2048 : 32 * 2560));
  }
}

TEST_CASE("draws depend on seed, step and rank, and have every kind of sample") {
  auto const samples = draw_samples({.samples = 2000});
  REQUIRE(samples.size() == 2000);
  std::size_t text_alone = 0;
  std::size_t with_both = 0;
  bool is_mixed = false;
  for (multimodal_sample const& sample : samples) {
    std::size_t const images = sample.sizes_of(modality::image).size();
    std::size_t const sounds = sample.sizes_of(modality::sound).size();
    REQUIRE(images + sounds == sample.pieces.size());
    if (sample.pieces.empty()) ++text_alone;
    if (images != 0 && sounds != 0) ++with_both;
    // A sound between images.
    for (std::size_t p = 1; p + 1 < sample.pieces.size(); ++p) {
      is_mixed |= sample.pieces[p].kind == modality::sound &&
                  sample.pieces[p - 1].kind == modality::image &&
                  sample.pieces[p + 1].kind == modality::image;
    }
    for (media_piece const& piece : sample.pieces) {
      REQUIRE(piece.size >= 1);
      REQUIRE(piece.size <= (piece.kind == modality::image ? 13 : 3200));
    }
  }
  CHECK(text_alone > 500);
  CHECK(text_alone < 700);
  CHECK(with_both > 200);
  CHECK(with_both < 400);
  CHECK(is_mixed);
  auto const same = [&](mix_draw const& which) {
    auto const others = draw_samples(which);
    return std::equal(others.begin(), others.end(), samples.begin(), [](auto& a, auto& b) {
      return a.text_tokens == b.text_tokens && a.pieces == b.pieces;
    });
  };
  CHECK(same({.samples = 30}));
  CHECK(!same({.step = 1, .samples = 30}));
  CHECK(!same({.rank = 1, .samples = 30}));
  CHECK(!same({.seed = 5, .samples = 30}));
}

TEST_CASE("ranks draw each sample of a data set once before any comes again") {
  dataset data = of_samples({{0, 5}, {2, 600}, {1, 256}, {0, 7}, {3, 1000}, {0, 0}, {1, 300}});
  std::size_t const count = data.samples.size();
  batch_source const source(data, 256);
  REQUIRE(source.size() == count);
  CHECK(batch_source().size() == 0);
  // Two ranks with three samples each: the first seven of two steps, and the next five.
  std::vector<sample> drawn;
  for (std::size_t step = 0; step != 2; ++step) {
    for (std::size_t rank = 0; rank != 2; ++rank) {
      for (multimodal_sample const& one :
           source.draw({.step = step, .rank = rank, .samples = 3}, 2)) {
        CHECK(one.number / 3 == rank);
        CHECK(one.pieces.size() <= 1);
        auto const tiles = one.pieces.empty() ? 0 : one.pieces[0].size;
        drawn.push_back({tiles, one.text_tokens + tiles * 256});
      }
    }
  }
  REQUIRE(drawn.size() == 12);
  auto const by_tokens = [](sample const& a, sample const& b) { return a.tokens < b.tokens; };
  std::vector<sample> epoch(drawn.begin(), drawn.begin() + 7);
  std::ranges::sort(epoch, by_tokens);
  std::ranges::sort(data.samples, by_tokens);
  CHECK(epoch == data.samples);
  std::vector<sample> rest(drawn.begin() + 7, drawn.end());
  std::ranges::sort(rest, by_tokens);
  CHECK(std::ranges::includes(data.samples, rest, by_tokens));
  auto const again = source.draw({.step = 1, .rank = 1, .samples = 3}, 2);
  CHECK(again[2].text_tokens + (again[2].pieces.empty() ? 0 : 256 * again[2].pieces[0].size) ==
        drawn.back().tokens);

  CHECK(test::error_text<std::runtime_error>([] {
          batch_source(of_samples({{0, 9}, {2, 511}}), 256);
        }) ==
        "sample 1 has 511 tokens, fewer than the 256 of each of its 2 tiles; where the field of "
        "tokens has the text alone, give --tokens-per-tile 256");
  CHECK(test::error_text<std::runtime_error>([] { batch_source(of_samples({}), 256); }) ==
        "there are no samples to draw");
}

TEST_CASE("measures of a batch are those of its samples") {
  modality_costs const costs;
  // A tile has the FLOPs of 6 * 5.5 billion parameters for each of 1025 tokens, and attention.
  double const tile = static_cast<double>(costs.encoder_time(modality::image, 1)) * 400'000;
  CHECK(tile > 6 * 5.4e9 * 1025);
  CHECK(tile < 1.2 * 6 * 5.6e9 * 1025);
  CHECK(costs.encoder_time(modality::image, 7) == Approx(7 * tile / 400'000));
  CHECK(costs.encoder_time(modality::sound, 2000) > 2 * costs.encoder_time(modality::sound, 1000));
  multimodal_sample const sample{
      0, 100, {{modality::sound, 51}, {modality::image, 3}, {modality::sound, 50}}};
  CHECK(costs.language_tokens(sample) == 100 + 3 * 256 + 26 + 25);
  batch_measures batch;
  batch.add_rank({sample, {1, 7, {}}}, costs);
  batch.add_rank({}, costs);
  CHECK(batch.offsets == std::vector<std::uint32_t>{0, 2, 2});
  CHECK(batch.bytes == std::vector<std::int64_t>{800, 56});
  CHECK(batch.encoders[0].piece_counts == std::vector<std::uint32_t>{1, 0});
  CHECK(batch.encoders[1].piece_counts == std::vector<std::uint32_t>{2, 0});
  CHECK(batch.encoders[1].output_bytes == std::vector<std::int64_t>{26 * 16384, 25 * 16384});
}

TEST_CASE("the gradients of the toy model are the derivatives of its loss") {
  toy_model const model;
  constexpr std::uint64_t r = toy_model::recurrence;
  constexpr std::uint64_t e = toy_model::embedding;
  // A word, an image and a word: s = r (r (r + e a) + y) + e b.
  multimodal_sample const sample{3, 5, {{modality::image, 1}}};
  words const script = script_of(sample);
  REQUIRE(script.size() == 3);
  std::uint64_t const a = script[0];
  std::uint64_t const b = script[2];
  words const content = content_of(sample, 0);
  REQUIRE(content.size() == 3);
  std::uint64_t y = 0;
  for (std::size_t i = 0; i != 3; ++i) {
    y += toy_model::encoder_weight(modality::image, i) * content[i];
  }
  CHECK(model.encode(modality::image, content) == y);
  auto const sum = train_at_home(model, {sample});
  CHECK(sum.recurrence == 3 * r * r + 2 * r * e * a + y);
  CHECK(sum.embedding == r * r * a + b);
  for (std::size_t i = 0; i != 3; ++i) CHECK(sum.encoders[0][i] == r * content[i]);
  CHECK(sum.encoders[0][3] == 0);
  CHECK(sum.encoders[1] == std::array<std::uint64_t, 4>{});
}

TEST_CASE("gradients notice an order of pieces that is not the sample's") {
  toy_model const model;
  multimodal_sample const sample{3, 5, {{modality::image, 1}, {modality::image, 2}}};
  words const outputs{11, 12};
  words const swapped{12, 11};
  words gradients(2);
  toy_gradients right;
  toy_gradients wrong;
  words const script = script_of(sample);
  std::array<std::span<std::uint64_t>, 2> const to{std::span(gradients), {}};
  model.train(script, {std::span<std::uint64_t const>(outputs), {}}, to, right);
  model.train(script, {std::span<std::uint64_t const>(swapped), {}}, to, wrong);
  CHECK(right != wrong);
}

TEST_CASE("exchanged samples have the gradients of samples at home") {
  toy_model const model;
  for (std::size_t const ranks : {1u, 2u, 3u, 5u}) {
    auto const batch = batch_of(ranks, 9);
    auto const check = [&](auto const& balance) {
      auto const plans =
          omnibal::make_orchestration(batch.offsets, batch.language(balance),
                                      batch.of_encoders(balance), {.ranks_per_node = 2});
      omnibal::thread_communicator::run(ranks, [&](omnibal::thread_communicator& comm) {
        auto const samples = draw_samples({.rank = comm.rank(), .samples = 9});
        auto const balanced = sum_over_ranks(comm, train_balanced(comm, model, plans, samples));
        if (balanced != sum_over_ranks(comm, train_at_home(model, samples))) {
          throw std::logic_error("other gradients");
        }
      });
      return plans;
    };
    check(omnibal::rebalance);
    check(omnibal::deal);
    auto const plans = check(omnibal::lpt);
    if (ranks == 1) continue;
    // Outputs that come in another order are noticed.
    auto wrong = plans;
    auto const& outputs = plans.encoders[0].outputs;
    auto const backwards = [&](auto const&, std::size_t parts, auto const&) {
      omnibal::grouping result;
      for (std::size_t p = 0; p != parts; ++p) {
        auto const right = outputs.arrivals(p);
        for (std::size_t k = right.size(); k-- != 0;) result.push(right[k]);
        result.close();
      }
      return result;
    };
    std::vector<int> const nothing(outputs.sample_count(), 0);
    wrong.encoders[0].outputs =
        omnibal::make_plan(outputs.home_offsets(), nothing, nothing, {}, backwards);
    CHECK_THROWS_AS(omnibal::thread_communicator::run(
                        ranks,
                        [&](omnibal::thread_communicator& comm) {
                          auto const samples = draw_samples({.rank = comm.rank(), .samples = 9});
                          auto const balanced =
                              sum_over_ranks(comm, train_balanced(comm, model, wrong, samples));
                          if (balanced != sum_over_ranks(comm, train_at_home(model, samples))) {
                            throw std::logic_error("other gradients");
                          }
                        }),
                    std::logic_error);
  }
}

TEST_CASE("the report has waiting and bytes of every phase") {
  auto const batch = batch_of(16, 24);
  auto const encoders = batch.of_encoders();
  auto const blind = omnibal::make_orchestration(batch.offsets, batch.language(), encoders, {});
  auto const aware =
      omnibal::make_orchestration(batch.offsets, batch.language(), encoders, {.ranks_per_node = 4});
  phase_report report(4);
  report.add(batch, blind, aware);
  CHECK(report.forward_seconds_after() < report.forward_seconds_before());
  std::ostringstream out;
  report.print(out);
  print_overhead(report, {.collective_seconds = 0.002, .seconds = 0.001}, out);
  std::string const text = out.str();
  auto const has_bytes = [&](std::int64_t bytes) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.2f", static_cast<double>(bytes) / 1e6);
    return text.find(' ' + std::string(number)) != std::string::npos;
  };
  CHECK(has_bytes(aware.encoders[0].inputs.moved_bytes()));
  CHECK(has_bytes(aware.encoders[0].inputs.moved_bytes_across_nodes()));
  CHECK(has_bytes(aware.encoders[1].outputs.moved_bytes_across_nodes()));
  CHECK(has_bytes(blind.encoders[1].outputs.moved_bytes()));
  CHECK(has_bytes(aware.samples.moved_bytes()));
  CHECK(text.find("2.00 ms with gathering") != std::string::npos);
  // Again the same step: means do not change.
  report.add(batch, blind, aware);
  std::ostringstream twice;
  report.print(twice);
  CHECK(text.rfind(twice.str(), 0) == 0);
}

TEST_CASE("the command line of post_balance") {
  for (char const* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) unsetenv(name);
  auto const defaults = parsed({});
  REQUIRE(defaults.has_value());
  CHECK(defaults->engine == rank_engine::threads);
  CHECK(defaults->ranks == 4);
  CHECK(defaults->ranks_per_node == 2);
  auto const simulated = parsed({"--simulate", "2560", "--steps", "5", "--balance", "lpt"});
  CHECK(simulated->engine == rank_engine::simulated);
  CHECK(simulated->ranks == 2560);
  CHECK(simulated->ranks_per_node == 8);
  CHECK(simulated->samples_per_rank == 32);
  CHECK(simulated->steps == 5);
  CHECK(simulated->rule == plan_rule::lpt);
  CHECK(parsed({"--mpi"})->engine == rank_engine::mpi);
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  CHECK(parsed({})->engine == rank_engine::mpi);
  CHECK(parsed({"--threads", "3"})->engine == rank_engine::threads);
  CHECK(parsed({"--simulate", "3"})->engine == rank_engine::simulated);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  auto const text = [](std::vector<char const*> const& arguments) {
    return test::error_text<std::runtime_error>([&] { static_cast<void>(parsed(arguments)); });
  };
  CHECK(text({"--threads", "0"}).find("--threads") != std::string::npos);
  CHECK(text({"--threads", "2", "--mpi"}).find("--mpi") != std::string::npos);
  CHECK(text({"--steps", "1.5"}).find("is 1.5") != std::string::npos);
  CHECK(text({"--balance", "none"}).find("none") != std::string::npos);
}
