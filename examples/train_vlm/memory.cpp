#include "recompute.hpp"
#include "stopwatch.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/choice.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace train_vlm {

namespace {

using layer_choices = std::vector<omnibal::choice<std::int64_t>>;

/// Forward and backward passes of one batch.
class measured_batch {
 public:
  measured_batch(trainer& of, train_options const& options, std::span<std::uint32_t const> ids)
      : of_(&of), options_(&options), samples_(of.gather(form_kind::unpadded, ids, {})) {}

  /// With the last `vision` layers of the encoder and `language` of the language model recomputed.
  void recompute_last(std::int64_t vision, std::int64_t language) {
    model_size const& size = options_->model;
    std::vector<bool> chosen;
    for (std::int64_t i = 0; i != size.vision_layers; ++i) {
      chosen.push_back(i >= size.vision_layers - vision);
    }
    for (std::int64_t i = 0; i != size.layers; ++i) chosen.push_back(i >= size.layers - language);
    of_->model().recompute_layers(chosen);
  }

  [[nodiscard]] std::int64_t bytes() const {
    // Gradients that come into being in the backward pass would move the peak.
    of_->model().zero_grad(false);
    return peak_bytes([&] { run(); });
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
  train_options const* options_;
  step_samples samples_;
};

struct layer_kind {
  std::int64_t vision = 0;
  std::int64_t language = 0;
};

/// Kept or recomputed, of a kind of layers of which there are `count`.
layer_choices probe(measured_batch& batch, layer_kind one, std::int64_t count) {
  auto const read = [&](std::int64_t layers) {
    batch.recompute_last(one.vision * layers, one.language * layers);
    return omnibal::memory_reading{layers, -batch.bytes()};
  };
  batch.recompute_last(0, 0);
  std::int64_t const kept = batch.bytes();
  double const seconds = batch.seconds();
  auto const with_one = read(1);
  auto const with_all = read(count);
  double const added = (batch.seconds() - seconds) / static_cast<double>(count);
  // What exists while a layer is recomputed is in both readings, and not in that without any.
  auto const freed =
      static_cast<std::int64_t>(omnibal::two_point_probe(with_one, with_all).bytes_per_layer());
  std::int64_t const transient = std::max<std::int64_t>(0, freed - with_one.free_bytes - kept);
  return {{0, freed, 0},
          {std::max<std::int64_t>(0, static_cast<std::int64_t>(1e9 * added)), 0, transient}};
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
  measured_batch batch(of, options, of.data().packs[largest]);
  auto const vision = probe(batch, {.vision = 1}, size.vision_layers);
  auto const language = probe(batch, {.language = 1}, size.layers);
  std::vector<layer_choices> layers(static_cast<std::size_t>(size.vision_layers), vision);
  layers.insert(layers.end(), static_cast<std::size_t>(size.layers), language);

  batch.recompute_last(0, 0);
  std::int64_t const all_kept = batch.bytes();
  double const time_kept = batch.seconds();
  std::int64_t const choosable =
      size.vision_layers * vision[0].bytes + size.layers * language[0].bytes;
  std::int64_t const fixed = all_kept - choosable;
  examples::table rows(
      {"budget KiB", "recomputed", "predicted KiB", "measured KiB", "time of kept", "predicted"});
  for (int eighths = 8; eighths >= 0; --eighths) {
    std::int64_t const budget = fixed + choosable * eighths / 8;
    auto const chosen = omnibal::select_recompute(layers, budget, {.reserve_bytes = fixed});
    auto const kib = [](std::int64_t bytes) {
      return examples::counted(static_cast<std::uint64_t>(bytes / 1024));
    };
    if (chosen.status == omnibal::solve_status::infeasible) {
      rows.add({kib(budget), "no choice fits", kib(chosen.bytes), "", "", ""});
      continue;
    }
    std::vector<bool> flags;
    for (std::uint32_t const choice : chosen.choices) flags.push_back(choice == 1);
    of.model().recompute_layers(flags);
    std::int64_t const measured = batch.bytes();
    if (measured > budget) {
      throw std::runtime_error("the peak of " + std::to_string(measured) +
                               " bytes exceeds the budget of " + std::to_string(budget));
    }
    auto const count = [&](auto first, auto last) {
      return std::to_string(std::count(first, last, true));
    };
    auto const middle = flags.begin() + static_cast<std::ptrdiff_t>(size.vision_layers);
    rows.add({kib(budget),
              count(flags.begin(), middle) + " vision, " + count(middle, flags.end()) + " language",
              kib(chosen.bytes), kib(measured), examples::fixed(batch.seconds() / time_kept, 2),
              examples::fixed(1 + 1e-9 * static_cast<double>(chosen.time) / time_kept, 2)});
  }
  of.model().recompute_layers(std::vector<bool>(layers.size(), false));
  if (of.shard().rank == 0) rows.print(std::cout);
}

}  // namespace train_vlm
