// SPDX-License-Identifier: Apache-2.0
#include "vlm_training.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

namespace examples {

namespace {

constexpr auto images_and_tokens = omnibal::demand_of(&sample::images, &sample::tokens);

/// The complete steps of `wide`, in which each rank takes several neighboring cells.
omnibal::steps narrowed(omnibal::steps const& wide, std::size_t ranks, std::size_t micro_batches) {
  omnibal::steps result(ranks);
  for (std::size_t step = 0; step != wide.size(); ++step) {
    if (wide(step, wide.ranks() - 1).empty()) continue;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      for (std::size_t m = 0; m != micro_batches; ++m) {
        for (std::uint32_t const group : wide(step, rank * micro_batches + m)) result.push(group);
      }
      result.close();
    }
  }
  if (result.empty()) throw std::runtime_error("there are too few samples for one step");
  return result;
}

omnibal::sequences clips_of(vlm_samples const& given, std::int64_t count) {
  return omnibal::equal_sequences({.count = count, .length = given.clips.most.length});
}

}  // namespace

std::vector<omnibal::layer_cost> vlm_cost::operator()(vlm_batch const& batch) const {
  auto result = omnibal::layer_costs(model, batch.work, degrees);
  profile.correct(batch.work, result);
  return result;
}

std::int64_t sample_clips::operator()(sample const& one) const {
  if (document_tokens == 0) return most.count;
  std::int64_t const beside_tiles = one.tokens - one.images * tile_tokens;
  return std::clamp<std::int64_t>(beside_tiles / document_tokens, 0, most.count);
}

sample_clips clips_for(model_description const& model, omnibal::repeated_length const& most) {
  if (!model.audio) return {};
  return {.most = most,
          .document_tokens = model.audio->document_tokens(most.length),
          .tile_tokens = model.vision ? model.document_tokens_of_tile() : 0};
}

vlm_samples choose_samples(dataset const& data, vlm_assumptions const& given, std::uint64_t seed) {
  auto const pack = [](auto const& samples, auto const& demand, auto const& capacity) {
    return omnibal::best_packing(samples, demand, capacity);
  };
  auto const tuned = omnibal::tune_capacity(
      data.samples, images_and_tokens, static_cast<double>(given.batch_samples), pack,
      omnibal::published_rule<>{.ranks = given.data_ranks, .seed = seed},
      {.granularity = {1, 16}, .seed = seed});
  return fitting_samples(data, tuned.best.capacity);
}

vlm_samples fitting_samples(dataset const& data, omnibal::resources<2> const& capacity) {
  vlm_samples result{{}, {}, capacity, 0};
  for (std::size_t i = 0; i != data.samples.size(); ++i) {
    if (!images_and_tokens(data.samples[i]).fits(capacity)) continue;
    result.samples.push_back(data.samples[i]);
    result.numbers.push_back(static_cast<std::uint32_t>(i));
  }
  result.oversized = data.samples.size() - result.samples.size();
  return result;
}

vlm_data random_batches(vlm_samples const& given, vlm_assumptions const& assumed,
                        text_padding padding, std::uint64_t seed) {
  std::vector<std::uint32_t> order(given.samples.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{seed}(std::span(order), 0);
  vlm_data data;
  for (std::size_t first = 0; first + assumed.batch_samples <= order.size();
       first += assumed.batch_samples) {
    std::vector<std::int64_t> lengths;
    std::int64_t clips = 0;
    auto& batch = data.batches.emplace_back();
    for (std::size_t i = 0; i != assumed.batch_samples; ++i) {
      sample const& one = given.samples[order[first + i]];
      batch.work.tiles += one.images;
      clips += given.clips(one);
      lengths.push_back(one.tokens);
      batch.samples.push_back(order[first + i]);
    }
    if (padding == text_padding::to_longest) {
      std::ranges::fill(lengths, *std::ranges::max_element(lengths));
    }
    batch.work.clips = clips_of(given, clips);
    batch.work.documents = omnibal::sequences_of(lengths, {}, given.spans);
  }
  std::vector<std::uint32_t> all(data.batches.size());
  std::iota(all.begin(), all.end(), std::uint32_t{0});
  auto const wide = omnibal::make_steps(all, assumed.data_ranks * assumed.micro_batches);
  data.schedule = narrowed(wide, assumed.data_ranks, assumed.micro_batches);
  return data;
}

omnibal::grouping best_groups(vlm_samples const& given) {
  return omnibal::best_packing(given.samples, images_and_tokens, given.capacity).groups;
}

omnibal::steps even_steps(vlm_samples const& given, omnibal::grouping const& groups,
                          std::size_t cells, std::uint64_t seed) {
  auto const loads = omnibal::group_loads(groups.view(), given.samples, images_and_tokens);
  return omnibal::schedule_steps(loads, cells, {.seed = seed});
}

vlm_data grouped_batches(vlm_samples const& given, omnibal::grouping const& groups,
                         omnibal::steps const& wide, vlm_assumptions const& assumed) {
  vlm_data data;
  for (std::size_t g = 0; g != groups.size(); ++g) {
    auto& batch = data.batches.emplace_back();
    std::vector<std::int64_t> lengths;
    std::int64_t clips = 0;
    for (std::uint32_t const index : groups[g]) {
      batch.work.tiles += given.samples[index].images;
      clips += given.clips(given.samples[index]);
      lengths.push_back(given.samples[index].tokens);
      batch.samples.push_back(index);
    }
    batch.work.clips = clips_of(given, clips);
    batch.work.documents = omnibal::sequences_of(lengths, {}, given.spans);
  }
  data.schedule = narrowed(wide, assumed.data_ranks, assumed.micro_batches);
  return data;
}

vlm_data packed_batches(vlm_samples const& given, vlm_assumptions const& assumed,
                        std::uint64_t seed) {
  auto const groups = best_groups(given);
  auto const wide = even_steps(given, groups, assumed.data_ranks * assumed.micro_batches, seed);
  return grouped_batches(given, groups, wide, assumed);
}

std::size_t samples_of(vlm_data const& data) {
  std::size_t result = 0;
  for (std::uint32_t const batch : data.schedule.cells().items()) {
    result += data.batches[batch].samples.size();
  }
  return result;
}

double flops_of(vlm_data const& data, model_description const& model) {
  double result = 0;
  for (std::uint32_t const batch : data.schedule.cells().items()) {
    for (auto const& layer : omnibal::layer_costs(model, data.batches[batch].work)) {
      result += static_cast<double>(layer.flops());
    }
  }
  return result;
}

}  // namespace examples
