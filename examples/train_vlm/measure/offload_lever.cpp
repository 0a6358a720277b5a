// SPDX-License-Identifier: Apache-2.0
#include "activation_mover.hpp"
#include "recompute.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>

namespace train_vlm {

namespace {

using omnibal::activation_choice;

/// A choice for the input of each layer of the chain and for its other saved tensors.
using chain_choices = std::vector<std::vector<activation_choice>>;

/// The parts of a layer.
enum saved_part : std::size_t { layer_input, other_tensors };

/// The memory of a step, and what it computed.
struct memory_step {
  /// The largest bytes during the passes of each layer.
  std::vector<std::int64_t> forward;
  std::vector<std::int64_t> backward;
  std::int64_t peak = 0;
  std::vector<std::vector<saved_storage>> saved;
  at::Tensor gradients;
};

/// Steps of one batch, layer after layer.
class chain_steps {
 public:
  chain_steps(trainer& of, model_size const& size, std::span<std::uint32_t const> ids)
      : of_(&of),
        size_(size),
        samples_(of.gather(form_kind::unpadded, ids, {})),
        batch_(make_batch(size, samples_.samples, padding::none)) {
    if (batch_.pixels.size(0) == 0) {
      throw std::runtime_error("--offload needs a batch with images");
    }
  }

  [[nodiscard]] std::size_t layers() const { return of_->model().chain_size(); }
  /// Layers before the first transformer, between both and after the last one run once.
  [[nodiscard]] bool is_recomputable(std::size_t layer) const {
    auto const projector = static_cast<std::size_t>(size_.vision_layers) + 1;
    return layer != 0 && layer != projector && layer + 1 != layers();
  }
  /// The multiplications of a forward pass, as a measure of its time.
  [[nodiscard]] double forward_time(std::size_t layer) const {
    std::int64_t parameters = 0;
    for (at::Tensor const& one : of_->model().chain_parameters(layer)) parameters += one.numel();
    auto const shape = of_->model().chain_shape(std::min(layer + 1, layers() - 1), batch_);
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
    return static_cast<double>(rows) * static_cast<double>(parameters);
  }

  [[nodiscard]] memory_step run(chain_choices const& choices,
                                std::vector<link_bytes> const& link) const {
    vlm& model = of_->model();
    std::vector<activation_mover::moved_parts> moved;
    std::vector<bool> recomputed;
    for (std::size_t i = 0; i != layers(); ++i) {
      moved.push_back({choices[i][layer_input] == activation_choice::offload,
                       choices[i][other_tensors] == activation_choice::offload});
      if (is_recomputable(i)) {
        recomputed.push_back(choices[i][other_tensors] == activation_choice::recompute);
      }
    }
    model.recompute_layers(recomputed);
    activation_mover mover(link, moved, fixed_tensors());
    // Gradients that come into being in the backward pass would move the peak.
    model.zero_grad(false);
    std::vector<std::size_t> begins(2 * layers());
    auto const memory = measure_memory([&] { step(mover, begins); });
    model.recompute_layers({});

    memory_step result{{}, {}, memory.peak, mover.saved(), of_->gradients()};
    begins.push_back(memory.phases.size());
    for (std::size_t pass = 0; pass != 2 * layers(); ++pass) {
      auto const first = memory.phases.begin() + static_cast<std::ptrdiff_t>(begins[pass]);
      auto const last = memory.phases.begin() + static_cast<std::ptrdiff_t>(begins[pass + 1]);
      (pass < layers() ? result.forward : result.backward)
          .push_back(*std::max_element(first, last));
    }
    std::ranges::reverse(result.backward);
    return result;
  }

 private:
  /// Storages that autograd saves, but that are no activations.
  [[nodiscard]] std::vector<at::Tensor> fixed_tensors() const {
    std::vector<at::Tensor> result = of_->model().parameters();
    result.insert(result.end(), {batch_.pixels, batch_.text, batch_.text_at, batch_.images_at,
                                 batch_.positions, batch_.mask, batch_.scored_at, batch_.targets});
    return result;
  }

  /// Runs a step; writes the phase of memory with which each pass begins, in order.
  void step(activation_mover& mover, std::vector<std::size_t>& begins) const {
    std::size_t const count = layers();
    at::Tensor tokens;
    for (std::size_t i = 0; i != count; ++i) {
      begins[i] = begin_memory_phase();
      mover.begin_forward(i, tokens);
      tokens = of_->model().run_chain(i, i + 1, tokens, batch_);
      if (i + 1 == count) tokens = vlm::loss_sum(tokens, batch_);
      mover.end_forward();
      tokens.register_hook([&mover, &begins, i, count](at::Tensor const&) {
        mover.begin_backward(i);
        begins[2 * count - 1 - i] = begin_memory_phase();
      });
    }
    tokens.backward();
  }

  trainer* of_;
  model_size size_;
  step_samples samples_;
  batch batch_;
};

/// The storages of offloaded parts in the order of the link. They move whole.
class storage_order {
 public:
  void push(std::int64_t bytes) { ends_.push_back(ends_.back() + bytes); }
  [[nodiscard]] std::int64_t bytes() const { return ends_.back(); }
  /// The bytes between the begin of a storage and this byte.
  [[nodiscard]] std::int64_t offset_in_storage(std::int64_t byte) const {
    return byte - *std::prev(std::ranges::upper_bound(ends_, byte));
  }

 private:
  std::vector<std::int64_t> ends_{0};
};

/// The layers of the chain for `measure_activations`, from a step that keeps everything and one
/// that recomputes all layers that can be.
class chain_model {
 public:
  explicit chain_model(chain_steps const& steps) : steps_(&steps) {
    std::size_t const count = steps.layers();
    for (std::size_t i = 0; i != count; ++i) {
      auto& layer = layers_.emplace_back();
      layer.forward_time = steps.forward_time(i);
      layer.backward_time = 2 * layer.forward_time;
    }
    std::vector<link_bytes> const no_link(count);
    // The first step allocates the gradients in its backward passes.
    static_cast<void>(steps.run(all(activation_choice::keep), no_link));
    auto const kept = steps.run(all(activation_choice::keep), no_link);
    gradients_ = kept.gradients;
    saved_ = kept.saved;
    for (std::size_t i = 0; i != count; ++i) {
      layers_[i].modules.resize(2);
      layers_[i].modules[other_tensors].recompute_time = layers_[i].forward_time;
      layers_[i].modules[layer_input].need = omnibal::module_need::required;
      if (!steps.is_recomputable(i)) {
        layers_[i].modules[other_tensors].need = omnibal::module_need::required;
      }
      for (saved_storage const& one : saved_[i]) {
        layers_[i].modules[part_of(one)].bytes += one.bytes;
        largest_ = std::max(largest_, one.bytes);
        saved_bytes_ += one.bytes;
      }
    }
    kept_transients_ = transients(kept, all(activation_choice::keep));
    auto const recomputed = all(activation_choice::recompute);
    recomputed_transients_ = transients(steps.run(recomputed, no_link), recomputed);
  }

  /// This choice for all parts, as far as it is possible.
  [[nodiscard]] chain_choices all(activation_choice choice) const {
    chain_choices result;
    for (std::size_t i = 0; i != layers_.size(); ++i) {
      bool const is_recompute = choice == activation_choice::recompute;
      auto const first = is_recompute ? activation_choice::keep : choice;
      result.push_back({first, steps_->is_recomputable(i) ? choice : first});
    }
    return result;
  }

  [[nodiscard]] std::int64_t saved_bytes() const { return saved_bytes_; }
  [[nodiscard]] at::Tensor const& gradients() const { return gradients_; }

  /// A link that transfers this share of all saved bytes in the forward passes.
  [[nodiscard]] omnibal::offload_link link(double share) const {
    double time = 0;
    for (auto const& layer : layers_) time += layer.forward_time;
    return {.bytes_per_time = share * static_cast<double>(saved_bytes_) / time};
  }
  [[nodiscard]] std::vector<link_bytes> transfers(omnibal::offload_link const& link) const {
    std::vector<link_bytes> result;
    for (auto const& layer : layers_) {
      result.push_back({static_cast<std::int64_t>(link.bytes_per_time * layer.forward_time),
                        static_cast<std::int64_t>(link.bytes_per_time * layer.backward_time)});
    }
    return result;
  }

  [[nodiscard]] std::int64_t predicted(chain_choices const& choices,
                                       omnibal::offload_link const& link) const {
    return omnibal::measure_activations(with_transients(choices, link), choices, link).peak_bytes;
  }

  /// The choices for a budget, with the largest transient bytes of all choices.
  [[nodiscard]] omnibal::activations_result<double> select(
      std::int64_t budget, omnibal::offload_link const& link) const {
    auto layers = layers_;
    auto const transferred = transfers(link);
    for (std::size_t i = 0; i != layers.size(); ++i) {
      auto const& kept = kept_transients_[i];
      auto const& recomputed = recomputed_transients_[i];
      layers[i].forward_transient_bytes =
          std::max(kept.forward, recomputed.forward) + transferred[i].forward + largest_;
      layers[i].backward_transient_bytes =
          std::max(kept.backward, recomputed.backward) + transferred[i].backward + largest_;
    }
    return omnibal::select_activations(layers, budget, link);
  }

 private:
  /// Additional bytes during the passes of a layer.
  struct pass_bytes {
    std::int64_t forward;
    std::int64_t backward;
  };

  [[nodiscard]] std::vector<pass_bytes> transients(memory_step const& step,
                                                   chain_choices const& choices) const {
    auto const usage = omnibal::measure_activations(layers_, choices, {});
    std::vector<pass_bytes> result;
    for (std::size_t i = 0; i != layers_.size(); ++i) {
      result.push_back({std::max<std::int64_t>(0, step.forward[i] - usage.forward_bytes[i]),
                        std::max<std::int64_t>(0, step.backward[i] - usage.backward_bytes[i])});
    }
    return result;
  }

  /// The layers with the transient bytes of these choices. Storages that the link sends or fetches
  /// in a pass are on the device for the whole pass, and storages move whole.
  [[nodiscard]] std::vector<omnibal::activation_layer<double>> with_transients(
      chain_choices const& choices, omnibal::offload_link const& link) const {
    auto result = layers_;
    auto const transferred = transfers(link);
    storage_order order;
    // After each number of layers: the offloaded bytes, the bytes to send when the forward passes
    // end, and the bytes to have fetched when the backward pass of the last layer begins.
    std::vector<std::int64_t> ends{0}, sending{0}, fetching{0};
    for (std::size_t i = 0; i != result.size(); ++i) {
      for (saved_storage const& one : saved_[i]) {
        if (choices[i][part_of(one)] == activation_choice::offload) order.push(one.bytes);
      }
      std::int64_t const bytes = order.bytes() - ends[i];
      std::int64_t const sent = std::min(transferred[i].forward, sending[i] + bytes);
      result[i].forward_transient_bytes =
          of_choice(choices[i], i).forward + sent + order.offset_in_storage(ends[i] - sending[i]);
      ends.push_back(order.bytes());
      sending.push_back(sending[i] + bytes - sent);
      fetching.push_back(bytes + std::max<std::int64_t>(0, fetching[i] - transferred[i].backward));
    }
    // The backward passes continue to send. Bytes not sent yet need not be fetched.
    std::int64_t sent = order.bytes() - sending.back();
    for (std::size_t i = result.size(); i-- != 0;) {
      std::int64_t const fetched = ends[i] - fetching[i];
      std::int64_t const here = std::min(fetched - order.offset_in_storage(fetched),
                                         sent - order.offset_in_storage(sent));
      std::int64_t const begin = std::min(ends[i + 1] - fetching[i + 1], sent);
      result[i].backward_transient_bytes =
          of_choice(choices[i], i).backward + std::max<std::int64_t>(0, begin - here);
      sent = std::min(order.bytes(), sent + transferred[i].backward);
    }
    return result;
  }

  [[nodiscard]] pass_bytes of_choice(std::vector<activation_choice> const& choices,
                                     std::size_t layer) const {
    bool const is_recomputed = choices[other_tensors] == activation_choice::recompute;
    return is_recomputed ? recomputed_transients_[layer] : kept_transients_[layer];
  }

  [[nodiscard]] static std::size_t part_of(saved_storage const& one) {
    return one.is_input ? layer_input : other_tensors;
  }

  chain_steps const* steps_;
  std::vector<omnibal::activation_layer<double>> layers_;
  std::vector<std::vector<saved_storage>> saved_;
  std::int64_t largest_ = 0;
  std::vector<pass_bytes> kept_transients_;
  std::vector<pass_bytes> recomputed_transients_;
  std::int64_t saved_bytes_ = 0;
  at::Tensor gradients_;
};

std::string counts_of(chain_choices const& choices) {
  std::size_t counts[3] = {};
  for (auto const& layer : choices) {
    for (auto const choice : layer) ++counts[static_cast<std::size_t>(choice)];
  }
  return std::to_string(counts[0]) + "/" + std::to_string(counts[1]) + "/" +
         std::to_string(counts[2]);
}

}  // namespace

bool check_offloading(train_options const& options, trainer& of) {
  auto const& packs = of.data().packs;
  auto const longest = std::ranges::max_element(packs, {}, [&](auto const& ids) {
    auto const features = features_of(of.data().samples, ids, form_kind::unpadded);
    return features[0] * options.model.tile_tokens + features[1];
  });
  chain_steps const steps(of, options.model, *longest);
  chain_model const model(steps);
  struct named_choices {
    std::string name;
    chain_choices choices;
    omnibal::offload_link link;
    std::int64_t budget = std::numeric_limits<std::int64_t>::max();
  };
  auto const fast = model.link(0.75), slow = model.link(0.4);
  auto both = model.all(activation_choice::recompute);
  for (auto& layer : both) {
    for (auto& choice : layer) {
      if (choice == activation_choice::keep) choice = activation_choice::offload;
    }
  }
  std::vector<named_choices> rows{
      {"keep", model.all(activation_choice::keep), {}},
      {"recompute", model.all(activation_choice::recompute), {}},
      {"offload, fast link", model.all(activation_choice::offload), fast},
      {"offload, slow link", model.all(activation_choice::offload), slow},
      {"recompute, the rest offloaded", both, slow}};
  std::int64_t const most = model.predicted(rows[0].choices, {});
  std::int64_t const least = model.select(0, slow).peak_bytes;
  for (int percent : {75, 50, 25}) {
    std::int64_t const budget = least + (most - least) * percent / 100;
    rows.push_back({"mixed, budget at " + std::to_string(percent) + " %",
                    model.select(budget, slow).choices, slow, budget});
  }
  bool is_right = true;
  examples::table lines({"choices", "predicted KiB", "measured KiB", "below", "gradients",
                         "kept/recomputed/offloaded"});
  auto const kib = [](std::int64_t bytes) {
    return examples::counted(static_cast<std::uint64_t>(bytes / 1024));
  };
  for (auto const& [name, choices, link, budget] : rows) {
    std::int64_t const predicted = model.predicted(choices, link);
    auto const step = steps.run(choices, model.transfers(link));
    double const below = 1.0 - static_cast<double>(step.peak) /
                                   static_cast<double>(std::max<std::int64_t>(1, predicted));
    bool const is_equal = at::equal(step.gradients, model.gradients());
    is_right = is_right && is_equal && below >= 0.0 && below <= 0.05 && step.peak <= budget;
    lines.add({name, kib(predicted), kib(step.peak), examples::percent(below, 2),
               is_equal ? "equal" : "different", counts_of(choices)});
  }
  if (of.shard().rank == 0) lines.print(std::cout);
  return is_right;
}

}  // namespace train_vlm
