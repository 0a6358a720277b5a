// SPDX-License-Identifier: Apache-2.0
#include "recompute.hpp"
#include "stopwatch.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/activation_option.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <iostream>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace train_vlm {

namespace {

using layer_choices = std::vector<omnibal::activation_option<std::int64_t>>;

/// Forward and backward passes of one batch.
class measured_batch {
 public:
  measured_batch(trainer& of, std::span<std::uint32_t const> ids)
      : of_(&of), samples_(of.gather(form_kind::unpadded, ids, {})) {}

  [[nodiscard]] memory_use memory() const {
    // Gradients that come into being in the backward pass would move the peak.
    of_->model().zero_grad(false);
    return measure_memory([&] { run(); });
  }

  [[nodiscard]] double seconds() const {
    double least = 1e30;
    for (int round = 0; round != 5; ++round) {
      stopwatch const watch;
      run();
      least = std::min(least, watch.processor_seconds());
    }
    return least;
  }

 private:
  void run() const { of_->add_gradients(samples_, padding::none, 0.0); }

  trainer* of_;
  step_samples samples_;
};

/// What there is to recompute: the layers of the encoder, then those of the language model.
class chosen_layers {
 public:
  /// The first of each kind. Recomputed late in the backward pass, they need memory when the
  /// activations of later layers are gone.
  chosen_layers(model_size const& size, std::int64_t vision, std::int64_t language)
      : vision_(vision), language_(language) {
    for (std::int64_t i = 0; i != size.vision_layers; ++i) flags_.push_back(i < vision);
    for (std::int64_t i = 0; i != size.layers; ++i) flags_.push_back(i < language);
  }
  /// As many of each kind as were chosen.
  chosen_layers(model_size const& size, std::span<std::uint32_t const> choices)
      : chosen_layers(size, std::ranges::count(choices.first(std::size_t(size.vision_layers)), 1u),
                      std::ranges::count(choices.subspan(std::size_t(size.vision_layers)), 1u)) {}

  [[nodiscard]] std::vector<bool> const& flags() const { return flags_; }
  [[nodiscard]] std::string text() const {
    return std::to_string(vision_) + " vision, " + std::to_string(language_) + " language";
  }

 private:
  std::int64_t vision_;
  std::int64_t language_;
  std::vector<bool> flags_;
};

/// What layers keep and need, read off a few runs.
class memory_model {
 public:
  memory_model(trainer& of, model_size const& size, measured_batch const& batch) {
    auto const phases = [&](chosen_layers const& layers) {
      of.model().recompute_layers(layers.flags());
      return batch.memory().phases;
    };
    struct reading {
      chosen_layers layers;
      std::int64_t peak;
    };
    std::vector<reading> readings;
    auto const peak = [&](std::int64_t vision, std::int64_t language) {
      chosen_layers const layers(size, vision, language);
      readings.push_back({layers, phases(layers)[0]});
      return readings.back().peak;
    };
    // In all readings the last layer is kept: what comes before and after the layers is the same.
    auto const add_kind = [&](std::int64_t count, auto const& peak_of, std::int64_t added) {
      std::int64_t const few = count > 2 ? 1 : 0;
      std::int64_t const many = count - 1;
      auto const line = omnibal::two_point_probe({few, -peak_of(few)}, {many, -peak_of(many)});
      auto const bytes = static_cast<std::int64_t>(line.bytes_per_layer());
      layer_choices const choices{{0, bytes}, {std::max<std::int64_t>(0, added), 0}};
      layers_.insert(layers_.end(), static_cast<std::size_t>(count), choices);
    };
    // In turns, as the first runs are slower.
    std::int64_t kept = max_time, vision = max_time, language = max_time;
    auto const note_time = [&](std::int64_t& least, chosen_layers const& layers) {
      of.model().recompute_layers(layers.flags());
      least = std::min(least, static_cast<std::int64_t>(1e9 * batch.seconds()));
    };
    for (int turn = 0; turn != 4; ++turn) {
      note_time(kept, chosen_layers(size, 0, 0));
      note_time(vision, chosen_layers(size, size.vision_layers, 0));
      note_time(language, chosen_layers(size, 0, size.layers));
    }
    peak(0, 0);
    add_kind(
        size.vision_layers, [&](std::int64_t n) { return peak(n, 0); },
        (vision - kept) / size.vision_layers);
    add_kind(
        size.layers, [&](std::int64_t n) { return peak(0, n); }, (language - kept) / size.layers);
    for (auto const& [layers, bytes] : readings) {
      turning_bytes_ =
          std::max(turning_bytes_, bytes - kept_before(layers.flags(), layers_.size()));
    }
    phases_ = phases(chosen_layers(size, size.vision_layers, size.layers));
    for (std::size_t i = 0; i != layers_.size(); ++i) {
      for (auto& choice : layers_[i]) {
        choice.transient_bytes =
            std::max<std::int64_t>(0, backward_bytes(i) - turning_bytes_ - choice.bytes);
      }
    }
    of.model().recompute_layers(chosen_layers(size, 0, 0).flags());
  }

  [[nodiscard]] std::vector<layer_choices> const& layers() const { return layers_; }
  /// What there is between the forward and the backward pass where no layer keeps anything.
  [[nodiscard]] std::int64_t turning_bytes() const { return turning_bytes_; }

  /// The peak. Where the passes meet all that is kept is there, at a layer what those before it
  /// keep.
  [[nodiscard]] std::int64_t peak(std::vector<bool> const& recomputed) const {
    std::int64_t result = turning_bytes_ + kept_before(recomputed, layers_.size());
    for (std::size_t i = 0; i != layers_.size(); ++i) {
      std::int64_t const own =
          recomputed[i] ? std::max(phases_[0], backward_bytes(i)) : backward_bytes(i);
      result = std::max(result, own + kept_before(recomputed, i));
    }
    return result;
  }

 private:
  static constexpr std::int64_t max_time = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] std::int64_t kept_before(std::vector<bool> const& recomputed,
                                         std::size_t layer) const {
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i != layer; ++i) bytes += recomputed[i] ? 0 : layers_[i][0].bytes;
    return bytes;
  }
  /// The most bytes in the backward pass of a layer where none keeps anything. It begins with the
  /// last layer; phase 0 is the forward pass.
  [[nodiscard]] std::int64_t backward_bytes(std::size_t layer) const {
    return phases_[layers_.size() - layer];
  }

  std::vector<layer_choices> layers_;
  std::int64_t turning_bytes_ = 0;
  std::vector<std::int64_t> phases_;
};

struct selection {
  chosen_layers layers;
  std::int64_t bytes;
  double added_seconds;
};

/// The fastest choice under a budget, or nothing. `select_recompute` takes it that all layers keep
/// their activations while one is recomputed; by what that is off the reserve is mended, and the
/// choice made anew.
std::optional<selection> select(model_size const& size, memory_model const& model,
                                std::int64_t budget) {
  std::optional<selection> best;
  std::int64_t reserve = model.turning_bytes();
  for (int round = 0; round != 8; ++round) {
    auto const chosen =
        omnibal::select_recompute(model.layers(), budget, {.reserve_bytes = reserve});
    if (chosen.status == omnibal::solve_status::infeasible) return best;
    chosen_layers const layers(size, chosen.choices);
    std::int64_t const bytes = model.peak(layers.flags());
    double const added = 1e-9 * static_cast<double>(chosen.time);
    if (bytes <= budget && (!best || added < best->added_seconds)) best = {layers, bytes, added};
    if (bytes == chosen.bytes) return best;
    reserve = std::max<std::int64_t>(0, reserve + bytes - chosen.bytes);
  }
  return best;
}

}  // namespace

void select_memory(train_options const& options, trainer& of) {
  model_size const& size = options.model;
  if (size.vision_layers < 2 || size.layers < 2) {
    throw std::runtime_error("--task memory needs two layers of each kind");
  }
  auto const loads = [&](std::uint32_t pack) {
    return features_of(of.data().samples, of.data().packs[pack], form_kind::unpadded);
  };
  std::uint32_t largest = 0;
  for (std::uint32_t pack = 1; pack != of.data().packs.size(); ++pack) {
    auto const own = loads(pack), most = loads(largest);
    if (own[0] * size.tile_tokens + own[1] > most[0] * size.tile_tokens + most[1]) largest = pack;
  }
  measured_batch const batch(of, of.data().packs[largest]);
  memory_model const model(of, size, batch);
  double const time_kept = batch.seconds();
  std::int64_t const most = model.peak(chosen_layers(size, 0, 0).flags());
  std::int64_t const least =
      model.peak(chosen_layers(size, size.vision_layers, size.layers).flags());
  auto const kib = [](std::int64_t bytes) {
    return examples::counted(static_cast<std::uint64_t>(bytes / 1024));
  };
  examples::table rows({"budget KiB", "recomputed", "predicted KiB", "measured KiB", "off by",
                        "time of kept", "predicted"});
  for (int eighths = 8; eighths >= -1; --eighths) {
    std::int64_t const budget = least + (most - least) * eighths / 8;
    auto const chosen = select(size, model, budget);
    if (!chosen) {
      rows.add({kib(budget), "no choice fits", kib(least), "", "", "", ""});
      continue;
    }
    of.model().recompute_layers(chosen->layers.flags());
    std::int64_t const measured = batch.memory().peak;
    if (measured > budget) {
      throw std::runtime_error("the peak of " + std::to_string(measured) +
                               " bytes exceeds the budget of " + std::to_string(budget));
    }
    auto const share = [](double part, std::int64_t whole) {
      return part / static_cast<double>(whole);
    };
    rows.add({kib(budget), chosen->layers.text(), kib(chosen->bytes), kib(measured),
              examples::percent(share(static_cast<double>(measured - chosen->bytes), measured), 1),
              examples::fixed(batch.seconds() / time_kept, 2),
              examples::fixed(1 + chosen->added_seconds / time_kept, 2)});
  }
  of.model().recompute_layers(chosen_layers(size, 0, 0).flags());
  if (of.shard().rank == 0) rows.print(std::cout);
}

}  // namespace train_vlm
