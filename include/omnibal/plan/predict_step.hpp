// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time and memory of a training step from model, degrees, schedule and machine.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/predict_step/layer_shapes.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// The relation of communication to computation.
enum class communication {
  blocking,    ///< the device waits
  overlapped,  ///< other work runs meanwhile, as far as there is any
};

/// The configuration of a training step.
struct training_step {
  /// Sequences of a micro-batch, and the tokens of each.
  std::int64_t sequences = 1;
  std::int64_t tokens = 0;
  /// The tokens of a packed document; 0 means that a sequence is one document.
  std::int64_t document_tokens = 0;
  /// A micro-batch of any documents, tiles and images. If it is not empty, it replaces the three
  /// members before it, which then must have their defaults.
  micro_batch_work work{};
  /// Micro-batches of a data-parallel rank.
  std::int64_t micro_batches = 1;
  parallel_degrees degrees{};
  /// Chunks of the model on a stage; more than one are interleaved.
  std::int64_t chunks = 1;
  recompute_choice recomputed = recompute_choice::none;
  matmul_precision precision = matmul_precision::bf16;
  byte_sizes bytes{};
  /// Bytes of a gradient when ranks add it up, and of a parameter when they gather it.
  std::int64_t reduced_bytes = 2;
  std::int64_t gathered_bytes = 2;
  /// Data-parallel ranks that share the state; 0 means all of them.
  std::int64_t state_ranks = 0;
  /// Bytes that one call of a reduction carries.
  std::int64_t bucket_bytes = 500'000'000;
  /// Collectives of tensor parallelism in the backward pass, which can overlap the gradients of
  /// weights, and the transfers of an interleaved pipeline.
  communication layer_communication = communication::blocking;
  /// The reduction of gradients. If `degrees.sharding` is `parameters`, layers are always gathered
  /// while other layers compute.
  communication gradient_communication = communication::overlapped;
  /// The boundaries of virtual stages over embedding, layers and head, one more than `pipeline *
  /// chunks`; if empty, `even_boundaries` chooses them.
  std::vector<std::int64_t> boundaries{};
};

/// The seconds of the parts of a step. All of them are of the slowest stage; their sum is the step.
struct step_seconds {
  double matmul = 0;
  double attention = 0;
  double memory = 0;
  /// Exposed collectives of tensor, context and expert parallelism.
  double tensor = 0;
  double context = 0;
  double expert = 0;
  /// Exposed transfers between stages.
  double transfer = 0;
  /// The time in which the device waits for the host.
  double launch = 0;
  /// The time in which the slowest stage waits for other stages.
  double bubble = 0;
  /// Exposed reductions of gradients and gathers of parameters.
  double gradients = 0;
  double optimizer = 0;

  static constexpr std::array<double step_seconds::*, 11> parts() {
    return {&step_seconds::matmul,    &step_seconds::attention, &step_seconds::memory,
            &step_seconds::tensor,    &step_seconds::context,   &step_seconds::expert,
            &step_seconds::transfer,  &step_seconds::launch,    &step_seconds::bubble,
            &step_seconds::gradients, &step_seconds::optimizer};
  }

  [[nodiscard]] constexpr double total() const {
    double sum = 0;
    for (auto const part : parts()) sum += this->*part;
    return sum;
  }

  constexpr step_seconds& add(step_seconds const& other, double times = 1) {
    for (auto const part : parts()) this->*part += times * (other.*part);
    return *this;
  }

  [[nodiscard]] friend bool operator==(step_seconds const&, step_seconds const&) = default;
};

/// The result of `predict_step`.
struct step_prediction {
  step_seconds seconds{};
  /// The seconds of a micro-batch on each virtual stage, transfers included. `simulate_pipeline`
  /// with them returns the timeline of the passes; gradients and optimizer follow.
  std::vector<stage_time<double>> passes{};
  /// The most bytes that each stage has at once: state, kept and transient activations.
  std::vector<std::int64_t> peak_bytes{};

  [[nodiscard]] double total() const { return seconds.total(); }

  [[nodiscard]] friend bool operator==(step_prediction const&, step_prediction const&) = default;
};

struct even_boundaries_fn {
  /// Returns boundaries of virtual stages over `layers + 2` units: embedding, layers, head. If the
  /// stages divide the layers, each has the same number, and embedding and head are additional.
  /// Otherwise the first stages after the embedding have one layer more. If the stages divide the
  /// units, embedding and head thus count as layers (Llama 3, DeepSeek-V3, BLOOM).
  ///
  /// Complexity: linear in the stages. Memory: the result. Determinism: portable. Errors:
  /// `std::invalid_argument` if a number is not positive or if there are more stages than units.
  [[nodiscard]] std::vector<std::int64_t> operator()(std::int64_t layers,
                                                     std::int64_t stages) const {
    detail::check_between(name, "layers", layers, 1, std::int64_t{1} << 20);
    detail::check_between(name, "stages", stages, 1, layers + 2);
    std::vector<std::int64_t> result{0};
    for (std::int64_t s = 1; s != stages; ++s) {
      result.push_back(1 + s * (layers / stages) + std::min(layers % stages, s - 1));
    }
    result.push_back(layers + 2);
    return result;
  }

 private:
  static constexpr std::string_view name = "even_boundaries";
};

/// Returns boundaries of virtual stages; see `even_boundaries_fn`.
inline constexpr even_boundaries_fn even_boundaries{};

namespace detail {

/// A unit of a model: embedding, layer or head, with its cost and the parts of its passes.
struct timed_unit {
  layer_cost cost{};
  step_seconds forward{};
  step_seconds backward{};
  double expert_parameters = 0;
};

/// Times the units of a model.
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

  /// The kernels are the kernels of a language layer without a mask.
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

  /// Tensor-parallel ranks share a hidden layer and add up its outputs.
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

  /// Other layers have no time.
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

  /// Times a layer of attention and a feed-forward part, whose kernels are the kernels of
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
    return unit;
  }

  /// Adds products and the other work of a layer; the backward pass has as many products as its
  /// FLOPs say.
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

  /// Logits are computed in bf16 whatever the precision of the layers.
  [[nodiscard]] double logits(std::int64_t vocabulary, std::int64_t hidden) const {
    double const columns =
        static_cast<double>(vocabulary) / static_cast<double>(step_.degrees.tensor);
    return pieces_.matmul(
        on_, {.rows = rows(), .columns = columns, .depth = static_cast<double>(hidden)},
        matmul_precision::bf16);
  }

  /// Scores of unfused attention belong to the time of attention.
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

  /// Adds the collectives of both passes: two all-reduces, or the same bytes gathered and
  /// scattered; the blocks of a ring; the ways of tokens to experts and back.
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
                                                   .stride = expert_tensor_of(degrees)});
      unit.forward.expert = 2 * way;
      unit.backward.expert = 2 * way;
    }
  }

  /// Adds the recomputation to the backward pass. A full one repeats the forward pass with its
  /// collectives. A selective one repeats unfused attention, or moves the bytes of norms and
  /// activations again.
  void recompute(attention_kernel kernel, pass_seconds const& core, timed_unit& unit) const {
    if (step_.recomputed == recompute_choice::full) unit.backward.add(unit.forward);
    if (step_.recomputed != recompute_choice::selective) return;
    if (kernel == attention_kernel::unfused) {
      unit.backward.attention += core.forward;
    } else {
      unit.backward.memory += moved(unit.cost[recompute_choice::selective].extra);
    }
  }

  std::string_view function_;
  training_step const& step_;
  micro_batch_work const& batch_;
  machine const& on_;
  Pieces const& pieces_;
};

/// The passes and the state of the units of a virtual stage.
struct virtual_stage_cost {
  step_seconds forward{};
  step_seconds backward{};
  double parameters = 0;
  double expert_parameters = 0;
  double optimizer_bytes = 0;
  double units = 0;
  double cut_bytes = 0;
  std::int64_t state_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t transient_bytes = 0;

  [[nodiscard]] static virtual_stage_cost of(timed_unit const& unit, recompute_choice choice) {
    return {.forward = unit.forward,
            .backward = unit.backward,
            .parameters = static_cast<double>(unit.cost.parameters) - unit.expert_parameters,
            .expert_parameters = unit.expert_parameters,
            .optimizer_bytes = static_cast<double>(unit.cost.optimizer_bytes),
            .units = 1,
            .cut_bytes = static_cast<double>(unit.cost.cut_bytes),
            .state_bytes = unit.cost.state_bytes(),
            .kept_bytes = unit.cost[choice].kept_bytes,
            .transient_bytes = unit.cost[choice].transient_bytes};
  }

  void add(std::string_view function, virtual_stage_cost const& other) {
    forward.add(other.forward);
    backward.add(other.backward);
    parameters += other.parameters;
    expert_parameters += other.expert_parameters;
    optimizer_bytes += other.optimizer_bytes;
    units += other.units;
    cut_bytes = std::max(cut_bytes, other.cut_bytes);
    checked_add(function, "the state of a stage", state_bytes, other.state_bytes);
    checked_add(function, "the bytes of a stage", kept_bytes, other.kept_bytes);
    transient_bytes = std::max(transient_bytes, other.transient_bytes);
  }
};

/// A number of equal units in a row.
struct timed_run {
  virtual_stage_cost unit{};
  std::int64_t count = 0;
};

/// Returns the units of a model for a micro-batch.
template <layered_model Model, class Pieces>
[[nodiscard]] std::vector<timed_run> timed_runs(std::string_view function, Model const& model,
                                                training_step const& step,
                                                micro_batch_work const& batch, machine const& on,
                                                Pieces const& pieces) {
  unit_timer<Pieces> const timer(function, step, batch, on, pieces);
  std::vector<timed_run> result;
  for_each_layer(function, model, [&](auto const& layer, std::int64_t count) {
    if (count == 0) return;
    result.push_back({virtual_stage_cost::of(timer(layer), step.recomputed), count});
  });
  return result;
}

/// Times the communication between stages and between data-parallel ranks.
template <class Pieces>
class step_links {
 public:
  step_links(training_step const& step, machine const& on, Pieces const& pieces)
      : step_(step), on_(on), pieces_(pieces) {}

  /// Adds a transfer to each pass of each stage. Tensor-parallel ranks share the bytes.
  void add_transfers(std::vector<virtual_stage_cost>& parts) const {
    parallel_degrees const& degrees = step_.degrees;
    if (degrees.pipeline == 1) return;
    double bytes = 0;
    for (auto const& part : parts) bytes = std::max(bytes, part.cut_bytes);
    if (degrees.norms == norm_regions::replicated) bytes /= static_cast<double>(degrees.tensor);
    double const seconds =
        pieces_.communicate(on_, {.kind = collective_kind::transfer,
                                  .bytes = bytes,
                                  .ranks = 2,
                                  .stride = degrees.tensor * degrees.sequence * degrees.data});
    bool const overlaps =
        step_.layer_communication == communication::overlapped && step_.chunks > 1;
    for (auto& part : parts) {
      auto const exposed = [&](double work) {
        return overlaps ? pieces_.overlap(seconds, work) : seconds;
      };
      part.forward.transfer = exposed(part.forward.total());
      part.backward.transfer = exposed(part.backward.total());
    }
  }

  /// Adds the gathers of shared parameters to both passes of a stage, and the scatter of their
  /// gradients to the backward pass.
  void add_gathers(virtual_stage_cost& part) const {
    double const gather = over_ranks(part, step_.gathered_bytes, part.units);
    double const scatter = over_ranks(part, step_.reduced_bytes, part.units);
    part.forward.gradients = pieces_.overlap(gather, part.forward.total());
    part.backward.gradients = pieces_.overlap(gather + scatter, part.backward.total());
  }

  /// Returns the reduction of gradients and the optimizer of a stage whose micro-batch needs `work`
  /// seconds.
  [[nodiscard]] step_seconds after_backward(virtual_stage_cost const& stage, double work) const {
    step_seconds result;
    double const ranks = static_cast<double>(step_.degrees.data * step_.degrees.sequence);
    double const copies =
        step_.state_ranks == 0 ? 1.0 : ranks / static_cast<double>(step_.state_ranks);
    result.optimizer = pieces_.optimizer(on_, stage.optimizer_bytes * copies);
    if (step_.degrees.sharding == sharded_state::parameters) return result;
    double const seconds = reduction(stage);
    bool const reduces_only = step_.degrees.sharding == sharded_state::nothing;
    // Gathers of parameters overlap the forward pass, reductions the backward pass.
    double const covered = reduces_only ? work / 2 : work;
    result.gradients = step_.gradient_communication == communication::overlapped
                           ? pieces_.overlap(seconds, covered)
                           : seconds;
    return result;
  }

 private:
  /// The ranks that have the same parameters, and their distance.
  struct rank_group {
    std::int64_t ranks = 1;
    std::int64_t stride = 1;
  };

  [[nodiscard]] rank_group dense_group() const {
    return {step_.degrees.data * step_.degrees.sequence, step_.degrees.tensor};
  }

  [[nodiscard]] rank_group expert_group() const {
    std::int64_t const shared = step_.degrees.expert * expert_tensor_of(step_.degrees);
    std::int64_t const all = step_.degrees.tensor * step_.degrees.data * step_.degrees.sequence;
    return {std::max<std::int64_t>(1, all / shared), shared};
  }

  [[nodiscard]] double calls(double bytes) const {
    return std::ceil(bytes / static_cast<double>(step_.bucket_bytes));
  }

  [[nodiscard]] double gathered(double bytes, rank_group group, double calls) const {
    return pieces_.communicate(on_, {.kind = collective_kind::gather,
                                     .bytes = bytes,
                                     .ranks = group.ranks,
                                     .stride = group.stride,
                                     .calls = calls});
  }

  [[nodiscard]] double over_ranks(virtual_stage_cost const& part, std::int64_t bytes,
                                  double calls) const {
    auto const number = static_cast<double>(bytes);
    return gathered(number * part.parameters, dense_group(), calls) +
           gathered(number * part.expert_parameters, expert_group(), calls);
  }

  [[nodiscard]] double reduced(double parameters, rank_group group) const {
    double const bytes = static_cast<double>(step_.reduced_bytes) * parameters;
    if (parameters <= 0) return 0;
    if (step_.degrees.sharding == sharded_state::nothing) {
      return pieces_.communicate(on_, {.kind = collective_kind::all_reduce,
                                       .bytes = bytes,
                                       .ranks = group.ranks,
                                       .stride = group.stride});
    }
    double const weights = static_cast<double>(step_.gathered_bytes) * parameters;
    std::int64_t const sharing =
        step_.state_ranks == 0 ? group.ranks : std::min(step_.state_ranks, group.ranks);
    rank_group const inner{sharing, group.stride};
    double const both =
        gathered(bytes, inner, calls(bytes)) + gathered(weights, inner, calls(weights));
    return both + pieces_.communicate(on_, {.kind = collective_kind::all_reduce,
                                            .bytes = bytes / static_cast<double>(sharing),
                                            .ranks = group.ranks / sharing,
                                            .stride = group.stride * sharing,
                                            .calls = calls(bytes)});
  }

  [[nodiscard]] double reduction(virtual_stage_cost const& stage) const {
    return reduced(stage.parameters, dense_group()) +
           reduced(stage.expert_parameters, expert_group());
  }

  training_step const& step_;
  machine const& on_;
  Pieces const& pieces_;
};

/// The virtual stages of a step, with their transfers and gathers, and its stages.
class staged_step {
 public:
  /// Precondition: the boundaries are ascending, from 0 to the number of units.
  template <class Pieces>
  staged_step(std::string_view function, training_step const& step, machine const& on,
              Pieces const& pieces, std::vector<timed_run> const& runs,
              std::vector<std::int64_t> const& boundaries)
      : function_(function), micro_batches_(step.micro_batches), parts_(boundaries.size() - 1) {
    add_units(runs, boundaries);
    step_links<Pieces> const links(step, on, pieces);
    links.add_transfers(parts_);
    if (step.degrees.sharding == sharded_state::parameters) {
      for (auto& part : parts_) links.add_gathers(part);
    }
    auto const stages = static_cast<std::size_t>(step.degrees.pipeline);
    for (std::size_t s = 0; s != stages; ++s) {
      virtual_stage_cost sum;
      for (std::size_t v = s; v < parts_.size(); v += stages) sum.add(function_, parts_[v]);
      step_seconds one = sum.forward;
      one.add(sum.backward);
      step_seconds const behind = links.after_backward(sum, one.total());
      if (one.total() > slowest_.total()) slowest_ = one;
      if (behind.total() > after_.total()) after_ = behind;
      checked_add(function_, "the bytes of a stage", sum.state_bytes, sum.transient_bytes);
      fixed_bytes_.push_back(sum.state_bytes);
      work_.push_back(one.total());
    }
  }

  /// Returns the prediction of a step with 1F1B or its interleaved form.
  [[nodiscard]] step_prediction prediction() const {
    std::size_t const stages = fixed_bytes_.size();
    interleaved_1f1b const schedule{.stages = stages,
                                    .micro_batches = static_cast<std::size_t>(micro_batches_),
                                    .chunks = parts_.size() / stages};
    step_prediction result;
    for (auto const& part : parts_) {
      result.passes.push_back({part.forward.total(), part.backward.total()});
    }
    auto const time = [&](std::size_t part, std::size_t) { return result.passes[part]; };
    auto const kept = [&](std::size_t part, std::size_t) { return parts_[part].kept_bytes; };
    auto const simulated = simulate_pipeline(schedule, time, 0.0, kept);
    for (std::size_t s = 0; s != stages; ++s) {
      std::int64_t peak = simulated.peak_bytes[s];
      checked_add(function_, "the bytes of a stage", peak, fixed_bytes_[s]);
      result.peak_bytes.push_back(peak);
    }
    result.seconds.add(slowest_, static_cast<double>(micro_batches_));
    result.seconds.bubble = std::max(0.0, simulated.makespan - result.seconds.total());
    result.seconds.add(after_);
    if (std::isfinite(result.seconds.total())) return result;
    throw_overflow(function_, "the seconds of the step");
  }

  /// Returns a lower bound of the seconds, exact in real numbers for equal stages. A stage waits
  /// for the first forward passes before it, runs all of its passes, and the last backward passes
  /// before it follow. Each micro-batch passes through all virtual stages.
  [[nodiscard]] double least_seconds() const {
    double before = 0;
    double least = 0;
    for (std::size_t s = 0; s != parts_.size(); ++s) {
      if (s < work_.size()) {
        least = std::max(least, before + static_cast<double>(micro_batches_) * work_[s]);
      }
      before += parts_[s].forward.total() + parts_[s].backward.total();
    }
    return std::max(least, before) + after_.total();
  }

 private:
  void add_units(std::vector<timed_run> const& runs, std::vector<std::int64_t> const& boundaries) {
    std::int64_t unit = 0;
    std::size_t part = 0;
    for (timed_run const& run : runs) {
      for (std::int64_t i = 0; i != run.count; ++i, ++unit) {
        while (unit == boundaries[part + 1]) ++part;
        parts_[part].add(function_, run.unit);
      }
    }
  }

  std::string_view function_;
  std::int64_t micro_batches_;
  std::vector<virtual_stage_cost> parts_;
  step_seconds slowest_{};
  step_seconds after_{};
  /// State and transient bytes, and the seconds of a micro-batch, of each stage.
  std::vector<std::int64_t> fixed_bytes_{};
  std::vector<double> work_{};
};

}  // namespace detail

struct predict_step_fn {
  /// Predicts the seconds and bytes of a training step. The passes of each layer are timed by
  /// `pieces` on the machine: matrix products by their shapes, attention, memory-bound bytes of
  /// `layer_cost`, collectives, and at least `launch_seconds`. A 1F1B or interleaved schedule runs
  /// them (`simulate_pipeline`). The reduction of gradients and the optimizer follow. Ranks have
  /// consecutive numbers in the order tensor, sequence, data, pipeline. Norms, activations and sums
  /// of the backward pass move as many bytes as in the forward pass.
  ///
  /// A model visits an `embedding`, `transformer` layers, `prediction_layer`s, a `language_head`
  /// and the parts of a vision tower: `patch_embedding`, `vision_transformer`, `tower_norm` and
  /// `projector`. `even_boundaries` expects a model without a tower, so that a model with a tower
  /// needs `boundaries`. The prediction describes even work: equal ranks, no stragglers, no loading
  /// of data, no checkpoints. docs/evidence/step_model.md has its errors.
  ///
  /// Complexity: a few steps for each unit of the model and each operation of the schedule. Memory:
  /// as `simulate_pipeline`. Determinism: portable if the compiler does not contract operations.
  /// Errors: `std::invalid_argument` that names the number, for a machine without positive rates,
  /// for boundaries that do not fit, and for layers that have no time; the errors of the layers and
  /// of `simulate_pipeline`.
  template <layered_model Model, class Pieces = step_pieces<>>
  [[nodiscard]] step_prediction operator()(Model const& model, training_step const& step,
                                           machine const& on, Pieces const& pieces = {}) const {
    detail::check_machine(name, on);
    check(step);
    micro_batch_work const batch = work_of(step);
    auto const runs = detail::timed_runs(name, model, step, batch, on, pieces);
    detail::staged_step const staged(name, step, on, pieces, runs, boundaries_of(step, runs));
    return staged.prediction();
  }

 private:
  static constexpr std::string_view name = "predict_step";

  static void check(training_step const& step) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    parallel_degrees const& degrees = step.degrees;
    bool const is_given = step.work != micro_batch_work{};
    detail::check_between(name, "step.sequences", step.sequences, 1, is_given ? 1 : most);
    detail::check_between(name, "step.tokens", step.tokens, is_given ? 0 : 1, is_given ? 0 : most);
    detail::check_between(name, "step.document_tokens", step.document_tokens, 0, step.tokens);
    detail::check_between(name, "step.micro_batches", step.micro_batches, 1, most);
    detail::check_between(name, "step.chunks", step.chunks, 1, most);
    detail::check_between(name, "step.reduced_bytes", step.reduced_bytes, 1, 64);
    detail::check_between(name, "step.gathered_bytes", step.gathered_bytes, 1, 64);
    detail::check_between(name, "step.bucket_bytes", step.bucket_bytes, 1, std::int64_t{1} << 50);
    detail::check_between(name, "step.degrees.pipeline", degrees.pipeline, 1, most);
    detail::check_between(name, "step.degrees.tensor", degrees.tensor, 1, most);
    detail::check_between(name, "step.degrees.sequence", degrees.sequence, 1, most);
    detail::check_between(name, "step.degrees.data", degrees.data, 1, most);
    detail::check_between(name, "step.degrees.expert", degrees.expert, 1, most);
    detail::check_between(name, "step.state_ranks", step.state_ranks, 0,
                          degrees.data * degrees.sequence);
  }

  [[nodiscard]] static micro_batch_work work_of(training_step const& step) {
    if (step.work != micro_batch_work{}) return step.work;
    std::int64_t const length = step.document_tokens == 0 ? step.tokens : step.document_tokens;
    detail::check_multiple(name, "step.tokens", step.tokens, "step.document_tokens", length);
    return {.documents = equal_sequences(
                {.count = step.sequences * (step.tokens / length), .length = length})};
  }

  [[nodiscard]] static std::vector<std::int64_t> boundaries_of(
      training_step const& step, std::vector<detail::timed_run> const& runs) {
    std::int64_t count = 0;
    for (auto const& run : runs) count += run.count;
    detail::check_between(name, "the layers of the model", count, 3, std::int64_t{1} << 20);
    std::int64_t const stages = step.degrees.pipeline * step.chunks;
    auto result = step.boundaries.empty() ? even_boundaries(count - 2, stages) : step.boundaries;
    detail::check_size(name, "step.boundaries", result.size(), static_cast<std::size_t>(stages + 1),
                       "virtual stages and the end");
    if (result.front() != 0 || result.back() != count) {
      detail::throw_invalid(name, "step.boundaries is from ", result.front(), " to ", result.back(),
                            ", must be from 0 to ", count);
    }
    for (std::size_t s = 1; s != result.size(); ++s) {
      detail::check_between(name, "step.boundaries", result[s], result[s - 1], count);
    }
    return result;
  }
};

/// Predicts the seconds and bytes of a training step; see `predict_step_fn`.
inline constexpr predict_step_fn predict_step{};

}  // namespace omnibal::inline v0
