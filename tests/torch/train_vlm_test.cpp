// SPDX-License-Identifier: Apache-2.0
// The model of examples/train_vlm: a packed sample is trained as if it were alone.

#include "contents.hpp"
#include "feed.hpp"
#include "model.hpp"
#include "recompute.hpp"

#include <omnibal/sample/epoch.hpp>

#include <algorithm>
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
