// SPDX-License-Identifier: Apache-2.0
// The model of examples/train_vlm: a packed sample is trained as if it were alone.

#include "contents.hpp"
#include "feed.hpp"
#include "model.hpp"
#include "predicted_epoch.hpp"
#include "recompute.hpp"

#include <omnibal/sample/epoch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <catch.hpp>

namespace {

using namespace train_vlm;

/// Texts, images, several images; also the shortest text.
std::vector<sample_contents> small_samples(model_size const& size) {
  std::vector<sample_contents> samples;
  examples::sample const lengths[] = {{1, 16 + 9}, {0, 2}, {0, 23}, {3, 48 + 2}, {2, 32 + 17}};
  for (std::uint64_t id = 0; id != 5; ++id) {
    samples.push_back(make_contents(size, lengths[id], 7, id));
  }
  return samples;
}

std::vector<sample_contents const*> pointers_to(std::vector<sample_contents> const& samples) {
  std::vector<sample_contents const*> result;
  for (sample_contents const& sample : samples) result.push_back(&sample);
  return result;
}

double largest(at::Tensor const& values) { return values.abs().max().item<double>(); }

}  // namespace

TEST_CASE("packed and padded samples get the logits that they get alone", "[train_vlm]") {
  torch::manual_seed(1);
  model_size const size;
  vlm model(size);
  auto const samples = small_samples(size);
  auto const all = pointers_to(samples);
  std::vector<at::Tensor> alone;
  for (auto const& sample : all) {
    alone.push_back(model.logits(make_batch(size, std::span(&sample, 1), padding::none)));
  }
  at::Tensor const expected = at::cat(alone);
  for (padding const padded : {padding::none, padding::to_longest}) {
    at::Tensor const together = model.logits(make_batch(size, all, padded));
    REQUIRE(together.sizes() == expected.sizes());
    CHECK(largest(together - expected) < 1e-5);
  }
}

TEST_CASE("gradients of packed samples are the sum of those alone", "[train_vlm]") {
  torch::manual_seed(1);
  model_size const size;
  vlm model(size);
  auto const samples = small_samples(size);
  auto const all = pointers_to(samples);
  model.loss_sum(make_batch(size, all, padding::none)).backward();
  std::vector<at::Tensor> packed;
  for (auto const& parameter : model.parameters()) {
    REQUIRE(parameter.grad().defined());
    packed.push_back(parameter.grad().clone().reshape(-1));
  }
  model.zero_grad();
  for (auto const& sample : all) {
    model.loss_sum(make_batch(size, std::span(&sample, 1), padding::none)).backward();
  }
  std::vector<at::Tensor> alone;
  for (auto const& parameter : model.parameters()) alone.push_back(parameter.grad().reshape(-1));
  at::Tensor const sum = at::cat(alone);
  CHECK(((at::cat(packed) - sum).norm() / sum.norm()).item<double>() < 1e-5);
}

TEST_CASE("recomputed layers give the same gradients in less memory", "[train_vlm]") {
  torch::manual_seed(1);
  model_size const size;
  vlm model(size);
  auto const samples = small_samples(size);
  auto const all = pointers_to(samples);
  auto const run = [&](bool is_recomputed) {
    model.recompute_layers(std::vector<bool>(5, is_recomputed));
    model.zero_grad();
    return measure_memory([&] { model.loss_sum(make_batch(size, all, padding::none)).backward(); })
        .peak;
  };
  auto const gradients = [&] {
    std::vector<at::Tensor> rows;
    for (auto const& parameter : model.parameters()) rows.push_back(parameter.grad().reshape(-1));
    return at::cat(rows);
  };
  auto const bytes_kept = run(false);
  at::Tensor const kept = gradients();
  auto const bytes_recomputed = run(true);
  CHECK(bytes_recomputed < bytes_kept);
  CHECK(largest(gradients() - kept) <= 1e-6 * largest(kept));
}

TEST_CASE("contents are fixed by the number of the sample", "[train_vlm]") {
  model_size const size;
  examples::sample const sample{2, 40};
  auto const first = make_contents(size, sample, 3, 11);
  auto const again = make_contents(size, sample, 3, 11);
  auto const other = make_contents(size, sample, 3, 12);
  CHECK(first.pixels == again.pixels);
  CHECK(first.text == again.text);
  CHECK(first.pixels != other.pixels);
  CHECK(first.pixels.size() == 2 * 64 * 48);
  CHECK(first.text.size() == 40 - 2 * 16);
}

TEST_CASE("the slowest of several ranks takes longer than each is predicted", "[train_vlm]") {
  // The mean of the larger of two normal errors is the standard deviation over the root of pi.
  double const two[] = {3.0, 3.0};
  CHECK(expected_largest(two, 0.05) == Approx(3.0 * (1 + 0.05 / std::sqrt(std::acos(-1.0)))));
  double const one[] = {3.0};
  CHECK(expected_largest(one, 0.05) == Approx(3.0).epsilon(1e-5));
  double const apart[] = {1.0, 3.0, 2.0};
  CHECK(expected_largest(apart, 0.01) == Approx(3.0).epsilon(1e-5));
  CHECK(expected_largest(apart, 0.0) == 3.0);
  CHECK(expected_largest({}, 0.1) == 0.0);
}

TEST_CASE("an epoch is predicted as the sum of its slowest ranks", "[train_vlm]") {
  train_options options;
  options.synthetic_samples = 200;
  options.oversized = oversized_kind::own_group;
  packed_data const data = pack_data(options);
  batch_profile profile{.cost = {.slopes = {0, 1, 0, 0}}, .step_seconds = 10};
  options.form = form_kind::random_packs;
  // One rank never waits: all tokens, and the rest of each step.
  double tokens = 0;
  for (auto const& sample : data.samples) tokens += static_cast<double>(sample.tokens);
  auto const packs = static_cast<double>(data.packs.size());
  CHECK(predicted_epoch(options, data, profile, 1) == Approx(tokens + 10 * packs));
  // On two ranks steps last at least half of that, and a spread makes them longer.
  double const on_two = predicted_epoch(options, data, profile, 2);
  CHECK(on_two >= tokens / 2 + 10 * packs / 2);
  profile.spread = 0.1;
  CHECK(predicted_epoch(options, data, profile, 2) > on_two);
  // Only post-balancing exchanges samples.
  profile.exchange_seconds = 1000;
  CHECK(predicted_epoch(options, data, profile, 1) == Approx(tokens + 10 * packs));
  options.form = form_kind::post_balanced;
  CHECK(predicted_epoch(options, data, profile, 1) > 1000);
}

TEST_CASE("a capacity is chosen for the data", "[train_vlm]") {
  train_options options;
  options.synthetic_samples = 400;
  options.oversized = oversized_kind::own_group;
  for (double const target : {2.0, 4.0}) {
    options.target_batch = target;
    packed_data const data = pack_data(options);
    double const mean = 400.0 / static_cast<double>(data.packs.size());
    CHECK(mean > target - 0.5);
    CHECK(mean < target + 1.5);
  }
  options.target_batch = 0;
  options.capacity_images = 13;
  options.capacity_tokens = 4096;
  CHECK(pack_data(options).capacity == omnibal::resources<2>{13, 4096 / 16});
}

TEST_CASE("every form gives each sample once in an epoch, also when ranks change", "[train_vlm]") {
  train_options options;
  options.synthetic_samples = 100;
  packed_data const data = pack_data(options);
  time_model const cost{.offset = 1e-3, .slopes = {1e-3, 1e-5, 1e-8, 1e-5}};
  for (form_kind const form : all_forms) {
    options.form = form;
    std::vector<std::uint32_t> run;
    omnibal::sampler_state state;
    auto const go = [&](std::size_t ranks, std::uint64_t steps, bool resumes) {
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        feed of(options, data, cost, {ranks, rank}, resumes ? &state : nullptr);
        std::uint64_t const end = std::min(of.step_count(), of.step() + steps);
        while (of.step() != end) {
          auto const ids = of.next();
          run.insert(run.end(), ids.begin(), ids.end());
        }
        if (rank + 1 == ranks) state = of.state();
      }
    };
    std::uint64_t const all = 1000;
    go(3, 4, false);
    CHECK(!run.empty());
    go(2, all, true);
    std::ranges::sort(run);
    std::vector<std::uint32_t> expected(100);
    std::iota(expected.begin(), expected.end(), 0u);
    CHECK(run == expected);
  }
}
