// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/machines.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/predict_step.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::communication;
using omnibal::language_model;
using omnibal::machine;
using omnibal::predict_step;
using omnibal::step_seconds;
using omnibal::training_step;

constexpr double infinite = std::numeric_limits<double>::infinity();

language_model small_model() {
  return {.input = {.vocabulary = 32'000, .hidden = 1024},
          .layers = 16,
          .layer = {.hidden = 1024, .heads = 16, .kv_heads = 8, .mlp = 2816},
          .output = {.vocabulary = 32'000, .hidden = 1024}};
}

/// Eight experts, two of them for each token.
language_model sparse_model() {
  auto model = small_model();
  model.layer.mlp = 0;
  model.layer.experts = {.routed = 8, .active = 2, .mlp = 1024};
  return model;
}

training_step small_step() { return {.sequences = 2, .tokens = 2048, .micro_batches = 8}; }

/// A machine whose host never delays the device.
machine eager_machine() {
  machine on = omnibal::machines::h100;
  on.launch_seconds = 0;
  return on;
}

machine free_links() {
  machine on = eager_machine();
  on.node_bytes_per_second = infinite;
  on.network_bytes_per_second = infinite;
  on.exchange_bytes_per_second = infinite;
  on.hop_seconds = 0;
  return on;
}

double seconds_of(training_step const& step, machine const& on = eager_machine()) {
  return predict_step(small_model(), step, on).total();
}

double communicated(step_seconds const& parts) {
  return parts.tensor + parts.context + parts.expert + parts.transfer + parts.gradients;
}

std::string error_of(training_step const& step, machine const& on = eager_machine()) {
  return test::error_text<std::invalid_argument>([&] { static_cast<void>(seconds_of(step, on)); });
}

}  // namespace

// The shapes are written by hand: they must have the FLOPs that the cost of the layer counts.
TEST_CASE("the shapes of a layer have the FLOPs of its cost") {
  std::vector<omnibal::transformer> layers{small_model().layer, sparse_model().layer};
  layers.push_back(layers[0]);
  layers.back().feed_forward = omnibal::mlp_kind::plain;
  layers.push_back(layers[0]);
  layers.back().kernel = omnibal::attention_kernel::unfused;
  layers.push_back(layers[0]);
  layers.back().kv_heads = 0;
  layers.back().head_size = 64;
  layers.back().latent = {
      .key_value_rank = 256, .query_rank = 384, .rope_size = 32, .value_size = 64};
  layers.push_back(sparse_model().layer);
  layers.back().experts.shared = 1;
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({2, 2048})};
  for (std::int64_t const tensor : {1, 2, 4}) {
    for (std::int64_t const sequence : {1, 2}) {
      omnibal::parallel_degrees const degrees{.tensor = tensor, .sequence = sequence};
      for (auto const& layer : layers) {
        auto const shapes = omnibal::detail::shapes_of("test", layer, batch, degrees, {});
        double flops = 0;
        for (auto const& shape : shapes.products) flops += shape.flops();
        auto const& core = shapes.attention;
        double const share = core.kernel == omnibal::attention_kernel::flash ? 0.5 : 1.0;
        flops += share * 2 * core.squares * core.heads * (core.query_size + core.value_size);
        auto const counted = static_cast<double>(layer(batch, degrees).forward.flops);
        // The cost gives the router to every tensor-parallel rank; latent projections too.
        double const allowed =
            layer.experts.routed != 0 || layer.latent.key_value_rank != 0 ? 0.03 : 1e-9;
        INFO("tensor " << tensor << ", sequence " << sequence);
        CHECK(std::abs(flops / counted - 1) < allowed);
      }
    }
  }
}

// A step of one device has no communication and no bubble, and it equals the sum of its layers.
TEST_CASE("degrees of one cost what a single device costs") {
  auto const step = small_step();
  auto const found = predict_step(small_model(), step, eager_machine());
  CHECK(communicated(found.seconds) == 0);
  CHECK(found.seconds.bubble == 0);
  CHECK(found.seconds.launch == 0);
  omnibal::step_pieces<> const pieces;
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({2, 2048})};
  auto const shapes = omnibal::detail::shapes_of("test", small_model().layer, batch, {}, {});
  double products = 0;
  for (auto const& shape : shapes.products) {
    products += pieces.matmul(eager_machine(), shape, omnibal::matmul_precision::bf16);
  }
  double const head =
      pieces.matmul(eager_machine(), {.rows = 4096, .columns = 32'000, .depth = 1024},
                    omnibal::matmul_precision::bf16);
  CHECK(found.seconds.matmul == Approx(8 * 3 * (16 * products + head)));
  auto const core = pieces.attention(eager_machine(), shapes.attention);
  CHECK(found.seconds.attention == Approx(8 * 16 * (core.forward + core.backward)));
  CHECK(found.total() == found.seconds.total());
}

// Each token goes to 1 + 7 / 8 devices on average instead of two.
TEST_CASE("tokens go to a device once") {
  training_step step = small_step();
  step.degrees = {.data = 8, .expert = 8, .expert_tensor = 1};
  machine on = eager_machine();
  on.hop_seconds = 0;
  double const bytes = 2.0 * 2 * 2048 * 2 * 1024;
  double const way = bytes * 7 / 8 * 15 / 16 / on.exchange_bytes_per_second;
  // 16 layers, eight micro-batches, and two ways in both passes.
  CHECK(predict_step(sparse_model(), step, on).seconds.expert == Approx(16 * 8 * 4 * way));
}

// Each constant must have an effect in its direction, or it could not be fitted.
TEST_CASE("a faster machine is never slower") {
  training_step step = small_step();
  step.degrees = {
      .tensor = 2, .sequence = 2, .data = 16, .expert = 4, .pipeline = 4, .expert_tensor = 1};
  step.precision = omnibal::matmul_precision::fp8;
  machine const on = omnibal::machines::h100;
  double const before = predict_step(sparse_model(), step, on).total();
  for (auto const& constant : omnibal::machine_constants) {
    if (constant.member == &machine::launch_seconds) continue;
    machine faster = on;
    faster.launch_seconds = 0;
    double const base = predict_step(sparse_model(), step, faster).total();
    bool const is_rate = !omnibal::detail::is_duration(constant);
    faster.*constant.member *= is_rate ? 2.0 : 0.5;
    INFO(constant.name);
    CHECK(predict_step(sparse_model(), step, faster).total() < base);
    CHECK(base <= before);
  }
}

// More work takes longer, whatever kind of work it is.
TEST_CASE("more work is never faster") {
  training_step const step = small_step();
  double const before = seconds_of(step);
  auto more = step;
  more.micro_batches = 9;
  CHECK(seconds_of(more) > before);
  more = step;
  more.sequences = 3;
  CHECK(seconds_of(more) > before);
  more = step;
  more.tokens = 4096;
  CHECK(seconds_of(more) > 2 * before);
  more = step;
  more.document_tokens = 512;
  CHECK(seconds_of(more) < before);
  more = step;
  more.recomputed = omnibal::recompute_choice::full;
  CHECK(seconds_of(more) > 1.2 * before);
  auto selective = step;
  selective.recomputed = omnibal::recompute_choice::selective;
  CHECK(seconds_of(selective) > before);
  CHECK(seconds_of(selective) < seconds_of(more));
  auto model = small_model();
  model.layers = 17;
  CHECK(predict_step(model, step, eager_machine()).total() > before);
}

// Efficiency must rise with the size of a product, and a long product must reach the rate.
TEST_CASE("large products are more efficient") {
  omnibal::matmul_time const time;
  machine const on = eager_machine();
  double last = 0;
  for (double side = 128; side < 1e6; side *= 2) {
    omnibal::matmul_shape const shape{.rows = side, .columns = side, .depth = side};
    double const rate = shape.flops() / time(on, shape, omnibal::matmul_precision::bf16);
    CHECK(rate > last);
    CHECK(rate < on.matmul_flops_per_second);
    last = rate;
  }
  CHECK(last > 0.99 * on.matmul_flops_per_second);
}

// Links without time must remove exactly the parts that are named after communication.
TEST_CASE("links that cost nothing leave the computation") {
  training_step step = small_step();
  step.degrees = {
      .tensor = 2, .sequence = 2, .data = 16, .expert = 4, .pipeline = 4, .expert_tensor = 1};
  for (auto const how : {communication::blocking, communication::overlapped}) {
    for (auto const sharding : {omnibal::sharded_state::nothing, omnibal::sharded_state::optimizer,
                                omnibal::sharded_state::parameters}) {
      step.layer_communication = how;
      step.gradient_communication = how;
      step.degrees.sharding = sharding;
      auto const linked = predict_step(sparse_model(), step, eager_machine());
      auto const unlinked = predict_step(sparse_model(), step, free_links());
      CHECK(communicated(unlinked.seconds) == 0);
      CHECK(communicated(linked.seconds) > 0);
      CHECK(unlinked.seconds.matmul == linked.seconds.matmul);
      CHECK(unlinked.total() < linked.total());
      CHECK(unlinked.peak_bytes == linked.peak_bytes);
    }
  }
}

// Overlap may hide communication, but must not create time.
TEST_CASE("overlapped communication costs at most blocking communication") {
  training_step step = small_step();
  step.degrees = {.tensor = 4, .data = 8, .pipeline = 2};
  step.chunks = 2;
  step.layer_communication = communication::blocking;
  step.gradient_communication = communication::blocking;
  double const blocking = seconds_of(step);
  step.layer_communication = communication::overlapped;
  double const layers = seconds_of(step);
  CHECK(layers < blocking);
  step.gradient_communication = communication::overlapped;
  CHECK(seconds_of(step) < layers);
}

// The bubble of 1F1B with equal stages and its reduction by chunks are known in closed form.
TEST_CASE("the bubble is that of the schedule") {
  auto model = small_model();
  // The head and the embedding have nearly no time.
  model.input.vocabulary = 8;
  model.output.vocabulary = 8;
  training_step step = small_step();
  step.micro_batches = 16;
  step.degrees.pipeline = 4;
  auto on = free_links();
  auto const plain = predict_step(model, step, on).seconds;
  double const work = plain.matmul + plain.attention + plain.memory;
  CHECK(plain.bubble == Approx(work * 3 / 16).epsilon(0.01));
  step.chunks = 4;
  auto const interleaved = predict_step(model, step, on).seconds;
  CHECK(interleaved.bubble == Approx(work * 3 / 64).epsilon(0.02));
}

// A timeline of a predicted step is simulated from its passes.
TEST_CASE("the passes of a step are simulated to its seconds") {
  auto const model = small_model();
  training_step step = small_step();
  step.micro_batches = 8;
  step.degrees.pipeline = 2;
  step.chunks = 2;
  auto const on = free_links();
  auto const predicted = predict_step(model, step, on);
  omnibal::interleaved_1f1b const schedule{2, 8, 2};
  auto const simulated = omnibal::simulate_pipeline(schedule, predicted.passes);
  double const behind = predicted.seconds.gradients + predicted.seconds.optimizer;
  CHECK(simulated.makespan + behind == Approx(predicted.total()));
}

// Small layers cannot run faster than the host launches them.
TEST_CASE("the host bounds the time of small layers") {
  training_step step{.sequences = 1, .tokens = 16, .micro_batches = 2};
  machine on = eager_machine();
  on.launch_seconds = 1e-3;
  auto const found = predict_step(small_model(), step, on);
  CHECK(found.total() > 2 * 16 * 2e-3);
  CHECK(found.total() < 1.1 * 2 * 16 * 2e-3);
  step.recomputed = omnibal::recompute_choice::full;
  CHECK(predict_step(small_model(), step, on).total() > 2 * 16 * 3e-3);
}

// The bytes are those of the layers and of the activations in flight.
TEST_CASE("the peak of a stage has its state and the activations in flight") {
  auto const model = small_model();
  training_step step = small_step();
  step.degrees.pipeline = 4;
  auto const peaks = predict_step(model, step, eager_machine()).peak_bytes;
  REQUIRE(peaks.size() == 4);
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({2, 2048})};
  auto const layer = model.layer(batch, step.degrees);
  auto const& kept = layer[omnibal::recompute_choice::none];
  CHECK(peaks[1] == 4 * layer.state_bytes() + 3 * 4 * kept.kept_bytes + kept.transient_bytes);
  CHECK(peaks[2] == 4 * layer.state_bytes() + 2 * 4 * kept.kept_bytes + kept.transient_bytes);
  CHECK(peaks[0] > peaks[1]);
}

// Offloaded bytes must leave the device and arrive at the host, with room for two layers.
TEST_CASE("offloaded activations count on the host") {
  auto const model = small_model();
  omnibal::micro_batch_work const batch{.documents = omnibal::equal_sequences({2, 2048})};
  for (auto const choice : {omnibal::recompute_choice::none, omnibal::recompute_choice::full}) {
    for (double const share : {0.25, 0.3, 0.6, 1.0}) {
      training_step step = small_step();
      step.degrees.pipeline = 4;
      step.recomputed = choice;
      step.offload = {share, infinite};
      auto const found = predict_step(model, step, eager_machine());
      auto const layer = model.layer(batch, step.degrees);
      auto const& bytes = layer[choice];
      auto const offloaded =
          static_cast<std::int64_t>(share * static_cast<double>(bytes.kept_bytes));
      std::int64_t const transient = bytes.transient_bytes + 2 * offloaded;
      INFO("share " << share);
      REQUIRE(found.host_bytes.size() == 4);
      CHECK(found.host_bytes[1] == 3 * 4 * offloaded);
      CHECK(found.host_bytes[2] == 2 * 4 * offloaded);
      CHECK(found.peak_bytes[1] ==
            4 * layer.state_bytes() + 3 * 4 * (bytes.kept_bytes - offloaded) + transient);
      CHECK(found.peak_bytes[2] ==
            4 * layer.state_bytes() + 2 * 4 * (bytes.kept_bytes - offloaded) + transient);
      step.offload = {};
      auto const kept = predict_step(model, step, eager_machine());
      CHECK(kept.host_bytes == std::vector<std::int64_t>(4));
      CHECK(kept.seconds == found.seconds);
    }
  }
}

// A transfer must hide behind a pass up to its time, in both directions, and cost the rest.
TEST_CASE("offload takes the time that passes do not hide") {
  auto const model = small_model();
  training_step step = small_step();
  step.recomputed = omnibal::recompute_choice::full;
  auto const kept = predict_step(model, step, eager_machine()).seconds;
  CHECK(kept.offload == 0);
  auto const bytes = static_cast<double>(
      model.layer({.documents = omnibal::equal_sequences({2, 2048})}, step.degrees)[step.recomputed]
          .kept_bytes);
  step.offload = {1, 1e6};
  auto const found = predict_step(model, step, eager_machine()).seconds;
  // Eight micro-batches of sixteen layers; nearly all of the transfers are longer than the passes.
  double const all = 8 * 16 * 2 * bytes / 1e6;
  double const hidden = kept.total() - kept.optimizer;
  CHECK(found.offload < all);
  CHECK(found.offload > all - hidden);
  CHECK(found.total() == Approx(kept.total() + found.offload));
  double last = found.offload;
  for (double rate = 1e7; rate < 1e13; rate *= 10) {
    step.offload.bytes_per_second = rate;
    double const seconds = predict_step(model, step, eager_machine()).seconds.offload;
    CHECK(seconds < last);
    last = seconds;
  }
  // Contention alone: a quarter of both transfers.
  step.offload.bytes_per_second = 1e12;
  CHECK(predict_step(model, step, eager_machine()).seconds.offload ==
        Approx(8 * 16 * 2 * 0.25 * bytes / 1e12));
}

// Groups that leave a node must use the network, and groups inside must not.
TEST_CASE("collectives use the links of their group") {
  omnibal::collective_time const time;
  machine on = eager_machine();
  on.hop_seconds = 0;
  using kind = omnibal::collective_kind;
  CHECK(time(on, {.kind = kind::all_reduce, .bytes = 1e9, .ranks = 1}) == 0);
  CHECK(time(on, {.kind = kind::gather, .bytes = 1e9, .ranks = 8}) ==
        Approx(1e9 * 7 / 8 / on.node_bytes_per_second));
  CHECK(time(on, {.kind = kind::all_reduce, .bytes = 1e9, .ranks = 8}) ==
        Approx(2e9 * 7 / 8 / on.node_bytes_per_second));
  CHECK(time(on, {.kind = kind::gather, .bytes = 1e9, .ranks = 8, .stride = 8}) ==
        Approx(1e9 * 7 / 8 / on.network_bytes_per_second));
  // Two members in a node have two shares of the network.
  CHECK(time(on, {.kind = kind::gather, .bytes = 1e9, .ranks = 8, .stride = 4}) ==
        Approx(1e9 * 7 / 8 / (2 * on.network_bytes_per_second)));
  CHECK(time(on, {.kind = kind::exchange, .bytes = 1e9, .ranks = 8}) ==
        Approx(1e9 * 7 / 8 / on.exchange_bytes_per_second));
  CHECK(time(on, {.kind = kind::exchange, .bytes = 1e9, .ranks = 16}) ==
        Approx(1e9 * 7 / 16 / on.exchange_bytes_per_second +
               1e9 * 8 / 16 / on.network_bytes_per_second));
  // Two copies reach 1 + 15 / 16 ranks and 1 + 1 / 2 nodes.
  CHECK(time(on, {.kind = kind::exchange, .bytes = 1e9, .ranks = 16, .copies = 2}) ==
        Approx(1e9 * 7 / 16 * 31 / 32 / on.exchange_bytes_per_second +
               1e9 * 8 / 16 * 3 / 4 / on.network_bytes_per_second));
  CHECK(time(on, {.kind = kind::ring, .bytes = 1e9, .ranks = 4}) ==
        Approx(3e9 / on.node_bytes_per_second));
  CHECK(time(on, {.kind = kind::transfer, .bytes = 1e9, .ranks = 2, .stride = 8}) ==
        Approx(1e9 / on.network_bytes_per_second));
  on.hop_seconds = 1e-3;
  // A tree of 2 x 2 x 10 steps is shorter than a ring of 2 x 1,023.
  CHECK(time(on, {.kind = kind::all_reduce, .bytes = 0, .ranks = 1024}) == Approx(0.040));
  CHECK(time(on, {.kind = kind::all_reduce, .bytes = 0, .ranks = 2}) == Approx(0.002));
  CHECK(time(on, {.kind = kind::gather, .bytes = 0, .ranks = 1024, .calls = 2}) == Approx(2.046));
}

// Heads of an odd size miss the tensor cores, which cost the prequel of BLOOM a third of its speed.
TEST_CASE("unfused attention is slow for heads of an odd size") {
  omnibal::attention_time const time;
  omnibal::attention_shape shape{.tokens = 8192,
                                 .squares = 4.0 * 2048 * 2048,
                                 .heads = 8,
                                 .query_size = 128,
                                 .value_size = 128,
                                 .kernel = omnibal::attention_kernel::unfused};
  auto const on = omnibal::machines::a100_infiniband;
  double const even = time(on, shape).forward;
  shape.query_size = 127;
  CHECK(time(on, shape).forward > 2.5 * even);
  // Without the time of scores, the two products become four.
  machine fast = on;
  fast.memory_bytes_per_second = infinite;
  CHECK(time(fast, shape).backward == Approx(2 * time(fast, shape).forward));
  shape.kernel = omnibal::attention_kernel::flash;
  CHECK(time(on, shape).backward == Approx(2.5 * time(on, shape).forward));
  double const causal = time(on, shape).forward;
  shape.mask = omnibal::attention_mask::full;
  CHECK(time(on, shape).forward == Approx(2 * causal));
}

// A user's own functor replaces a piece and nothing else.
TEST_CASE("a piece can be replaced") {
  struct free_products {
    double operator()(machine const&, omnibal::matmul_shape const&,
                      omnibal::matmul_precision) const {
      return 0;
    }
  };
  omnibal::step_pieces<free_products> const pieces;
  auto const whole = predict_step(small_model(), small_step(), eager_machine()).seconds;
  auto const rest = predict_step(small_model(), small_step(), eager_machine(), pieces).seconds;
  CHECK(rest.matmul == 0);
  CHECK(rest.attention == whole.attention);
  CHECK(rest.memory == whole.memory);
}

// The rule for the ends of the model decides the slowest stage of Llama 3 405B and of BLOOM.
TEST_CASE("even boundaries divide layers or units") {
  using list = std::vector<std::int64_t>;
  CHECK(omnibal::even_boundaries({.layers = 8, .stages = 4}) == list{0, 3, 5, 7, 10});
  CHECK(omnibal::even_boundaries({.layers = 6, .stages = 4}) == list{0, 2, 4, 6, 8});
  CHECK(omnibal::even_boundaries({.layers = 9, .stages = 4}) == list{0, 3, 6, 8, 11});
  CHECK(omnibal::even_boundaries({.layers = 5, .stages = 1}) == list{0, 7});
  for (std::int64_t layers = 1; layers != 40; ++layers) {
    for (std::int64_t stages = 1; stages <= layers; ++stages) {
      auto const found = omnibal::even_boundaries({.layers = layers, .stages = stages});
      REQUIRE(found.size() == static_cast<std::size_t>(stages + 1));
      CHECK(found.front() == 0);
      CHECK(found.back() == layers + 2);
      for (std::size_t s = 0; s + 1 != found.size(); ++s) CHECK(found[s] < found[s + 1]);
    }
  }
}

// A tower must be timed by the same kernels as a language layer without a mask.
TEST_CASE("a vision layer has the time of a layer without a mask") {
  omnibal::vision_language_model pair{
      .vision = {.patches = {.hidden = 1024, .image_size = 448},
                 .layers = 4,
                 .layer = {.hidden = 1024, .heads = 16, .mlp = 4096, .image_size = 448},
                 .has_last_norm = true},
      .connector = {.input = 4096, .hidden = 1024, .output = 1024, .tile_tokens = 256},
      .language = small_model()};
  training_step step = small_step();
  step.sequences = 1;
  step.tokens = 0;
  step.work = {.tiles = 2, .documents = omnibal::equal_sequences({2, 2048})};
  auto const with_tiles = predict_step(pair, step, eager_machine()).seconds;
  auto longer = pair;
  ++longer.vision.layers;
  auto const one_more = predict_step(longer, step, eager_machine()).seconds;
  // The same layer as the whole of a language model, for documents of a tile.
  omnibal::transformer const layer{.hidden = 1024,
                                   .heads = 16,
                                   .mlp = 4096,
                                   .feed_forward = omnibal::mlp_kind::plain,
                                   .mask = omnibal::attention_mask::full};
  omnibal::micro_batch_work const tiles{.documents = omnibal::equal_sequences({2, 1024})};
  auto const shapes = omnibal::detail::shapes_of("test", layer, tiles, {}, {});
  omnibal::step_pieces<> const pieces;
  double products = 0;
  for (auto const& shape : shapes.products) {
    products += pieces.matmul(eager_machine(), shape, omnibal::matmul_precision::bf16);
  }
  auto const core = pieces.attention(eager_machine(), shapes.attention);
  CHECK(one_more.matmul - with_tiles.matmul == Approx(8 * 3 * products));
  CHECK(one_more.attention - with_tiles.attention == Approx(8 * (core.forward + core.backward)));
  CHECK(one_more.memory > with_tiles.memory);
  // Without tiles the tower costs its launches and parameters only.
  step.work.tiles = 0;
  auto const without = predict_step(pair, step, eager_machine()).seconds;
  auto plain = small_step();
  auto const language = predict_step(small_model(), plain, eager_machine()).seconds;
  CHECK(without.attention == Approx(language.attention));
  CHECK(with_tiles.matmul > without.matmul);
}

// A projector and a patch embedding must have the products that their costs count.
TEST_CASE("projector and patches have the products of their FLOPs") {
  omnibal::machine on = free_links();
  on.operand_bytes_per_second = infinite;
  on.memory_bytes_per_second = infinite;
  omnibal::vision_language_model pair{
      .vision =
          {.patches = {.hidden = 256, .image_size = 112, .class_tokens = 1},
           .layers = 2,
           .layer = {.hidden = 256, .heads = 4, .mlp = 512, .image_size = 112, .class_tokens = 1}},
      .connector = {.input = 1024, .hidden = 2048, .output = 1024, .tile_tokens = 16},
      .language = small_model()};
  omnibal::micro_batch_work const work{.tiles = 6, .documents = omnibal::equal_sequences({2, 512})};
  for (auto const kind : {omnibal::mlp_kind::plain, omnibal::mlp_kind::gated}) {
    for (std::int64_t const hidden : {0, 2048}) {
      pair.connector.feed_forward = hidden == 0 ? omnibal::mlp_kind::plain : kind;
      pair.connector.hidden = hidden;
      for (std::int64_t const tensor : {1, 4}) {
        training_step step{.sequences = 1, .work = work, .degrees = {.tensor = tensor}};
        auto const found = predict_step(pair, step, on).seconds;
        double flops = 0;
        for (auto const& cost : omnibal::layer_costs(pair, work, step.degrees)) {
          flops += static_cast<double>(cost.flops());
        }
        double const counted = found.matmul * on.matmul_flops_per_second +
                               found.attention / 3.5 * 3 * on.attention_flops_per_second;
        INFO("tensor " << tensor << ", hidden " << hidden);
        CHECK(counted == Approx(flops).epsilon(1e-6));
      }
    }
  }
  pair.connector.source = omnibal::projector_source::clips;
  auto const text = test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(predict_step(pair, {.sequences = 1, .work = work}, on)); });
  CHECK(text.find("projector of clips") != std::string::npos);
}

// A micro-batch of its own must replace the sequences, and nothing else may be given with it.
TEST_CASE("a step has sequences or a micro-batch of its own") {
  auto step = small_step();
  auto const equal = predict_step(small_model(), step, eager_machine());
  step.work.documents = omnibal::equal_sequences({2, 2048});
  CHECK(error_of(step).find("step.sequences is 2, must be from 1 to 1") != std::string::npos);
  step.sequences = 1;
  CHECK(error_of(step).find("step.tokens is 2048, must be from 0 to 0") != std::string::npos);
  step.tokens = 0;
  CHECK(predict_step(small_model(), step, eager_machine()) == equal);
}

// A message must name the number that is wrong.
TEST_CASE("predict_step names what it refuses") {
  auto step = small_step();
  step.tokens = 0;
  CHECK(error_of(step).find("step.tokens is 0") != std::string::npos);
  step = small_step();
  step.document_tokens = 1000;
  CHECK(error_of(step).find("step.tokens is 2048, must be a multiple of step.document_tokens") !=
        std::string::npos);
  step = small_step();
  step.degrees.pipeline = 0;
  CHECK(error_of(step).find("step.degrees.pipeline is 0") != std::string::npos);
  step.degrees.pipeline = 19;
  CHECK(error_of(step).find("stages is 19") != std::string::npos);
  step = small_step();
  step.boundaries = {0, 5};
  CHECK(error_of(step).find("step.boundaries is from 0 to 5, must be from 0 to 18") !=
        std::string::npos);
  step.boundaries = {0, 5, 18};
  CHECK(error_of(step).find("step.boundaries has 3 values") != std::string::npos);
  step = small_step();
  step.state_ranks = 2;
  CHECK(error_of(step).find("step.state_ranks is 2") != std::string::npos);
  step = small_step();
  step.offload.share = 1.5;
  CHECK(error_of(step).find("step.offload.share is 1.5") != std::string::npos);
  step.offload.share = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_of(step).find("step.offload.share is nan") != std::string::npos);
  for (double const rate : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    step.offload = {0.5, rate};
    CHECK(error_of(step).find("step.offload.bytes_per_second is ") != std::string::npos);
  }
  machine on = eager_machine();
  on.node_bytes_per_second = 0;
  CHECK(error_of(small_step(), on).find("machine.node_bytes_per_second is 0") != std::string::npos);
  on = eager_machine();
  on.hop_seconds = -1;
  CHECK(error_of(small_step(), on).find("machine.hop_seconds is -1") != std::string::npos);
  auto model = small_model();
  model.layer.gate = omnibal::attention_gate::each_head;
  auto const text = test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(predict_step(model, small_step(), eager_machine())); });
  CHECK(text.find("a layer has a gate of attention, which has no time") != std::string::npos);
}
