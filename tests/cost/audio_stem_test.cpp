// SPDX-License-Identifier: Apache-2.0
// The convolutions of audio towers, whole audio towers and connectors of several kinds.

#include <omnibal/cost/audio_stem.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/projector.hpp>

#include <cstdint>
#include <stdexcept>

#include <catch.hpp>

namespace {

using omnibal::recompute_choice;

/// The stem of Whisper large.
omnibal::audio_stem whisper_stem() {
  return {.convolutions = {{{.inputs = 128, .outputs = 1280, .kernel = 3},
                            {.inputs = 1280, .outputs = 1280, .kernel = 3, .stride = 2}}},
          .positions = 1500};
}

omnibal::micro_batch_work one_clip() {
  return {.clips = omnibal::equal_sequences({.count = 1, .length = 1500})};
}

}  // namespace

TEST_CASE("the encoder of Whisper large has its published parameters") {
  omnibal::audio_model const tower{
      .stem = whisper_stem(),
      .layers = 32,
      .layer = {.hidden = 1280, .heads = 20, .mlp = 5120, .key_bias = false},
      .has_last_norm = true};
  CHECK(omnibal::count_parameters(tower).total == 636'968'960);
}

TEST_CASE("a stem of convolutions counts the positions of each of them") {
  auto const cost = whisper_stem()(one_clip());
  std::int64_t const first = 2 * 3000 * 3 * 128 * 1280LL;
  std::int64_t const second = 2 * 1500 * 3 * 1280LL * 1280;
  CHECK(cost.forward.flops == first + second);
  CHECK(cost.backward.flops == 2 * cost.forward.flops);
  // The spectrum, both inputs of activations, and the input of the second convolution.
  CHECK(cost[recompute_choice::none].kept_bytes ==
        2 * (3000 * 128 + 3000 * 1280 + 3000 * 1280 + 1500 * 1280));
  CHECK(cost.cut_bytes == 2 * 1500 * 1280);
}

TEST_CASE("a matrix of bands is a convolution whose kernel is its stride") {
  omnibal::audio_stem const stem{
      .convolutions = {{{.inputs = 1, .outputs = 480, .kernel = 9, .stride = 4},
                        {.inputs = 480, .outputs = 480, .kernel = 9, .stride = 4},
                        {.inputs = 480, .outputs = 480, .kernel = 9, .stride = 4},
                        {.inputs = 480,
                         .outputs = 1280,
                         .kernel = 16,
                         .stride = 16,
                         .has_bias = false,
                         .has_activation = false}}}};
  CHECK(stem.hidden() == 1280);
  CHECK(omnibal::count_parameters(stem).total ==
        480 * 10 + 2 * (480 * 480 * 9 + 480) + 480 * 16 * 1280);
}

TEST_CASE("a stem whose convolutions do not follow each other is refused") {
  auto stem = whisper_stem();
  stem.convolutions[1].inputs = 640;
  CHECK_THROWS_AS(stem({}), std::invalid_argument);
  CHECK_THROWS_AS(omnibal::audio_stem{}({}), std::invalid_argument);
}

TEST_CASE("a connector of clips has a gate and a norm of its outputs") {
  omnibal::projector const plain{.input = 64,
                                 .hidden = 128,
                                 .output = 32,
                                 .patches_per_token = 2,
                                 .source = omnibal::projector_source::clips};
  auto gated = plain;
  gated.feed_forward = omnibal::mlp_kind::gated;
  gated.has_output_norm = true;
  gated.other_parameters = 7;
  std::int64_t const tokens = 750;
  CHECK(gated(one_clip()).parameters - plain(one_clip()).parameters == 64 * 128 + 128 + 32 + 7);
  CHECK(gated(one_clip()).forward.flops - plain(one_clip()).forward.flops == 2 * tokens * 64 * 128);
  CHECK(gated(one_clip())[recompute_choice::none].kept_bytes -
            plain(one_clip())[recompute_choice::none].kept_bytes ==
        2 * tokens * (128 + 32));
}

TEST_CASE("a tower of runs costs as much as a tower of equal layers") {
  omnibal::mixed_vision_model mixed = omnibal::internvit_6b;
  omnibal::micro_batch_work const batch{.tiles = 2};
  CHECK(omnibal::layer_costs(mixed, batch) == omnibal::layer_costs(omnibal::internvit_6b, batch));
  mixed.runs = {{40, mixed.layer()}, {5, mixed.layer()}};
  CHECK(mixed.layers() == 45);
  CHECK(omnibal::layer_costs(mixed, batch) == omnibal::layer_costs(omnibal::internvit_6b, batch));
}
