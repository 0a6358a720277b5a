// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of the passes of each layer of a model.

#include <omnibal/check.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>
#include <omnibal/plan/detail/layer_shapes.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::detail {

/// A unit of a model (embedding, layer or head) with its cost and the times of the parts of its
/// passes.
struct timed_unit {
  layer_cost cost{};
  step_seconds forward{};
  step_seconds backward{};
  double expert_parameters = 0;
  /// The part of the kept bytes that is offloaded to the host.
  std::int64_t offloaded_bytes = 0;
};

/// Computes the times of the units of a model.
template <class Pieces>
class unit_timer {
 public:
  unit_timer(std::string_view function, training_step const& step, micro_batch_work const& batch,
             machine const& on, Pieces const& pieces)
      : function_(function), step_(step), batch_(batch), on_(on), pieces_(pieces) {}

  [[nodiscard]] timed_unit operator()(embedding const& layer) const {
    timed_unit unit = costed(layer);
    unit.forward.memory = moved(unit.cost.forward);
    unit.backward.memory = unit.forward.memory;
    return unit;
  }

  [[nodiscard]] timed_unit operator()(language_head const& head) const {
    timed_unit unit = costed(head);
    double const losses = 1 + static_cast<double>(head.predictions.count);
    double const product = losses * logits(head.vocabulary, head.hidden);
    unit.forward.matmul = product;
    unit.backward.matmul = backward_products(head.training) * product;
    unit.forward.memory = moved(unit.cost.forward);
    unit.backward.memory = unit.forward.memory;
    return unit;
  }

  [[nodiscard]] timed_unit operator()(prediction_layer const& given) const {
    timed_unit unit = (*this)(given.layer);
    unit.cost = given(batch_, step_.degrees, step_.bytes);
    auto const hidden = static_cast<double>(given.layer.hidden);
    double product = seconds_of({.rows = rows(), .columns = hidden, .depth = 2 * hidden});
    if (given.part == prediction_part::whole) {
      product += logits(given.vocabulary, given.layer.hidden);
    }
    unit.forward.matmul += product;
    unit.backward.matmul += backward_products(given.layer.training) * product;
    return unit;
  }

  [[nodiscard]] timed_unit operator()(transformer const& layer) const {
    return block(layer, layer, batch_);
  }

  /// Times the layer with the kernels of a language layer without a mask.
  [[nodiscard]] timed_unit operator()(vision_transformer const& layer) const {
    transformer const kernels{.hidden = layer.hidden,
                              .heads = layer.heads,
                              .head_size = layer.head_size,
                              .mlp = layer.mlp,
                              .feed_forward = layer.feed_forward,
                              .mask = attention_mask::full,
                              .kernel = layer.kernel,
                              .training = layer.training,
                              .span = layer.span};
    std::int64_t const in_tile = layer.image_size == 0 ? 0 : layer.tile_tokens();
    micro_batch_work const images{
        .documents = image_tokens(function_, batch_, in_tile, layer.tiles_of_image)};
    return block(layer, kernels, images);
  }

  [[nodiscard]] timed_unit operator()(patch_embedding const& layer) const {
    timed_unit unit = costed(layer);
    std::int64_t const pixels = layer.channels * layer.patch_size * layer.patch_size;
    std::int64_t const in_tile =
        layer.image_size == 0 ? 0 : tile_tokens(function_, layer.image_size, layer.patch_size, 0);
    auto const patches = image_tokens(function_, batch_, in_tile);
    return with_product(unit, seconds_of({.rows = in_sequence(patches.tokens),
                                          .columns = static_cast<double>(layer.hidden),
                                          .depth = static_cast<double>(pixels)}));
  }

  [[nodiscard]] timed_unit operator()(tower_norm const& layer) const {
    return with_product(costed(layer), 0);
  }

  /// The tensor-parallel ranks share the hidden layer, and an all-reduce adds up their outputs.
  [[nodiscard]] timed_unit operator()(projector const& layer) const {
    if (layer.source != projector_source::images) {
      throw_invalid(function_, "the model has a projector of clips, which has no time");
    }
    timed_unit unit = costed(layer);
    auto const input = static_cast<double>(layer.input);
    auto const output = static_cast<double>(layer.output);
    double const rows =
        in_sequence(batch_.tiles * layer.tile_tokens +
                    (batch_.images.tokens + layer.patches_per_token - 1) / layer.patches_per_token);
    if (layer.hidden == 0) {
      return with_product(unit, seconds_of({.rows = rows, .columns = output, .depth = input}));
    }
    double const width =
        static_cast<double>(layer.hidden) / static_cast<double>(step_.degrees.tensor);
    double const inputs = layer.feed_forward == mlp_kind::gated ? 2 : 1;
    double const products = seconds_of({.rows = rows, .columns = inputs * width, .depth = input}) +
                            seconds_of({.rows = rows, .columns = output, .depth = width});
    unit = with_product(unit, products);
    auto const bytes = static_cast<double>(step_.bytes.activation) * rows * output;
    double const reduced = pieces_.communicate(
        on_, {.kind = collective_kind::all_reduce, .bytes = bytes, .ranks = step_.degrees.tensor});
    unit.forward.tensor = reduced;
    if (unit.cost.backward.flops != 0) unit.backward.tensor = reduced;
    return unit;
  }

  /// Throws for any other kind of layer, because the predictor has no times for it.
  template <class Layer>
  [[nodiscard]] timed_unit operator()(Layer const& /*layer*/) const {
    throw_invalid(function_, "the model has a layer of a kind that has no time");
  }

 private:
  template <class Layer>
  [[nodiscard]] timed_unit costed(Layer const& layer) const {
    timed_unit unit;
    unit.cost = layer(batch_, step_.degrees, step_.bytes);
    return unit;
  }

  /// Times a layer that consists of attention and a feed-forward part, with the kernels of
  /// `kernels`.
  template <class Layer>
  [[nodiscard]] timed_unit block(Layer const& layer, transformer const& kernels,
                                 micro_batch_work const& batch) const {
    timed_unit unit = costed(layer);
    layer_shapes const shapes = shapes_of(function_, kernels, batch, step_.degrees, step_.bytes);
    unit.expert_parameters = shapes.expert_parameters;
    double products = 0;
    for (matmul_shape const& shape : shapes.products) products += seconds_of(shape);
    pass_seconds const core = pieces_.attention(on_, shapes.attention);
    double const memory = moved(work_without_scores(layer, unit.cost));
    communicate(shapes, core, products, unit);
    unit.forward.matmul = products;
    unit.forward.attention = core.forward;
    unit.forward.memory = memory;
    wait_for_launch(unit.forward);
    if (layer.training == training_mode::forward_only) {
      unit.backward = {};
      return unit;
    }
    unit.backward.matmul = backward_products(layer.training) * products;
    unit.backward.attention = core.backward;
    unit.backward.memory = memory;
    wait_for_launch(unit.backward);
    recompute(layer.kernel, core, unit);
    offload(unit);
    return unit;
  }

  /// Adds the time of products and the time of memory-bound work of a layer. The products of the
  /// backward pass take the time of the forward pass times the ratio of their FLOPs.
  [[nodiscard]] timed_unit with_product(timed_unit unit, double product) const {
    unit.forward.matmul = product;
    unit.forward.memory = moved(unit.cost.forward);
    if (unit.cost.forward.flops != 0) {
      unit.backward.matmul = product * static_cast<double>(unit.cost.backward.flops) /
                             static_cast<double>(unit.cost.forward.flops);
    }
    if (unit.cost.backward.moved_bytes != 0) unit.backward.memory = unit.forward.memory;
    return unit;
  }

  [[nodiscard]] double in_sequence(std::int64_t tokens) const {
    return static_cast<double>(tokens) / static_cast<double>(step_.degrees.sequence);
  }

  [[nodiscard]] double rows() const { return in_sequence(batch_.documents.tokens); }

  [[nodiscard]] double seconds_of(matmul_shape const& shape) const {
    return pieces_.matmul(on_, shape, step_.precision);
  }

  /// Returns the time of the product for the logits. It uses bf16 for any precision of the layers.
  [[nodiscard]] double logits(std::int64_t vocabulary, std::int64_t hidden) const {
    double const columns =
        static_cast<double>(vocabulary) / static_cast<double>(step_.degrees.tensor);
    return pieces_.matmul(
        on_, {.rows = rows(), .columns = columns, .depth = static_cast<double>(hidden)},
        matmul_precision::bf16);
  }

  /// Returns the forward work without the scores of unfused attention, because the time of
  /// attention includes them.
  template <class Layer>
  [[nodiscard]] layer_work work_without_scores(Layer layer, layer_cost const& cost) const {
    if (layer.kernel == attention_kernel::flash) return cost.forward;
    layer.kernel = attention_kernel::flash;
    return layer(batch_, step_.degrees, step_.bytes).forward;
  }

  [[nodiscard]] double moved(layer_work const& work) const {
    return pieces_.memory(on_, static_cast<double>(work.moved_bytes));
  }

  [[nodiscard]] static double backward_products(training_mode training) {
    if (training == training_mode::forward_only) return 0;
    return training == training_mode::all ? 2 : 1;
  }

  void wait_for_launch(step_seconds& pass) const {
    pass.launch = std::max(0.0, on_.launch_seconds - pass.total());
  }

  /// Adds the times of the collectives to both passes. Tensor parallelism has two all-reduces, or
  /// gathers and scatters of the same bytes. Context parallelism passes blocks around a ring.
  /// Expert parallelism sends tokens to experts and back.
  void communicate(layer_shapes const& shapes, pass_seconds const& core, double products,
                   timed_unit& unit) const {
    parallel_degrees const& degrees = step_.degrees;
    double const reduced = 2 * pieces_.communicate(on_, {.kind = collective_kind::all_reduce,
                                                         .bytes = shapes.hidden_bytes,
                                                         .ranks = degrees.tensor});
    unit.forward.tensor = reduced;
    unit.backward.tensor = step_.layer_communication == communication::overlapped
                               ? pieces_.overlap(reduced, products)
                               : reduced;
    if (degrees.sequence > 1) {
      double const ring = pieces_.communicate(on_, {.kind = collective_kind::ring,
                                                    .bytes = shapes.key_bytes,
                                                    .ranks = degrees.sequence,
                                                    .stride = degrees.tensor});
      unit.forward.context = pieces_.overlap(ring, core.forward);
      unit.backward.context = pieces_.overlap(2 * ring, core.backward);
    }
    if (degrees.expert > 1 && shapes.routed_bytes > 0) {
      double const way = pieces_.communicate(on_, {.kind = collective_kind::exchange,
                                                   .bytes = shapes.routed_bytes,
                                                   .ranks = degrees.expert,
                                                   .stride = expert_tensor_of(degrees),
                                                   .copies = shapes.routed_copies});
      unit.forward.expert = 2 * way;
      unit.backward.expert = 2 * way;
    }
  }

  /// Adds the time of the recomputation to the backward pass. Full recomputation repeats the
  /// forward pass with its collectives. Selective recomputation repeats unfused attention, or moves
  /// the bytes of norms and activations again.
  void recompute(attention_kernel kernel, pass_seconds const& core, timed_unit& unit) const {
    if (step_.recomputed == recompute_choice::full) unit.backward.add(unit.forward);
    if (step_.recomputed != recompute_choice::selective) return;
    if (kernel == attention_kernel::unfused) {
      unit.backward.attention += core.forward;
    } else {
      unit.backward.memory += moved(unit.cost[recompute_choice::selective].extra);
    }
  }

  /// Adds the time of the way to the host to the forward pass, and the time of the way back to the
  /// backward pass. A pass and its transfer run at the same time.
  void offload(timed_unit& unit) const {
    double const share = step_.offload.share;
    if (share == 0) return;
    std::int64_t const kept = unit.cost[step_.recomputed].kept_bytes;
    unit.offloaded_bytes =
        share == 1 ? kept : static_cast<std::int64_t>(share * static_cast<double>(kept));
    double const seconds =
        static_cast<double>(unit.offloaded_bytes) / step_.offload.bytes_per_second;
    unit.forward.offload = pieces_.overlap(seconds, unit.forward.total());
    unit.backward.offload = pieces_.overlap(seconds, unit.backward.total());
  }

  std::string_view function_;
  training_step const& step_;
  micro_batch_work const& batch_;
  machine const& on_;
  Pieces const& pieces_;
};

}  // namespace omnibal::inline v0::detail
