// SPDX-License-Identifier: Apache-2.0
#include "feed.hpp"

#include "table.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace train_vlm {

batch_features features_of(examples::sample const& sample) {
  return {sample.images, sample.tokens, sample.tokens * sample.tokens, 1};
}

batch_features features_of(std::span<examples::sample const> samples,
                           std::span<std::uint32_t const> ids, form_kind form) {
  std::int64_t longest = 0;
  for (std::uint32_t const id : ids) longest = std::max(longest, samples[id].tokens);
  batch_features sum{};
  for (std::uint32_t const id : ids) {
    examples::sample sample = samples[id];
    if (form == form_kind::padded) sample.tokens = longest;
    batch_features const own = features_of(sample);
    for (std::size_t r = 0; r != own.size(); ++r) sum[r] += own[r];
  }
  return sum;
}

namespace {

/// The capacity with the best steps at the wanted mean number of samples in a pack.
template <std::size_t Kinds, class Demand>
omnibal::resources<Kinds> tuned_capacity(train_options const& options,
                                         std::span<examples::sample const> samples,
                                         Demand const& demand) {
  omnibal::tune_capacity_options<Kinds> settings{.seed = options.seed};
  if (options.oversized == oversized_kind::error) settings.max_oversized = 0.0;
  auto const found = omnibal::tune_capacity(
      samples, demand, options.target_batch, omnibal::best_packing,
      omnibal::published_rule<>{.ranks = options.ranks, .seed = options.seed}, settings);
  if (found.status == omnibal::solve_status::not_found) {
    throw std::runtime_error(
        "--target-batch is " + examples::fixed(options.target_batch, 1) +
        ", but no capacity has such packs: take another number, a capacity, or " +
        "--oversized own-group");
  }
  return found.best.capacity;
}

omnibal::resources<2> chosen_capacity(train_options const& options,
                                      std::span<examples::sample const> samples) {
  using examples::sample;
  bool const has_images =
      std::ranges::any_of(samples, [](sample const& of) { return of.images != 0; });
  if (has_images) {
    return tuned_capacity<2>(options, samples,
                             omnibal::demand_of(&sample::images, &sample::tokens));
  }
  return {1, tuned_capacity<1>(options, samples, omnibal::demand_of(&sample::tokens))[0]};
}

}  // namespace

packed_data pack_data(train_options const& options) {
  packed_data data;
  data.samples = load_lengths(options).samples;
  for (examples::sample const& sample : data.samples) {
    data.digest = omnibal::rng::mix(data.digest + static_cast<std::uint64_t>(sample.images));
    data.digest = omnibal::rng::mix(data.digest + static_cast<std::uint64_t>(sample.tokens));
  }

  auto const demand = omnibal::demand_of(&examples::sample::images, &examples::sample::tokens);
  omnibal::resources<2> const capacity =
      options.target_batch > 0 ? chosen_capacity(options, data.samples)
                               : omnibal::resources<2>{options.capacity_images,
                                                       options.capacity_tokens / options.shrink};
  auto packed = omnibal::best_packing(data.samples, demand, capacity);
  data.capacity = capacity;
  if (!packed.oversized.empty() && options.oversized == oversized_kind::error) {
    examples::sample const& sample = data.samples[packed.oversized.front()];
    throw std::runtime_error("sample " + std::to_string(packed.oversized.front()) + " has " +
                             std::to_string(sample.images) + " tiles and " +
                             std::to_string(sample.tokens) + " tokens, a pack holds " +
                             std::to_string(capacity[0]) + " and " + std::to_string(capacity[1]) +
                             ": take --oversized own-group or another capacity");
  }
  data.packs =
      omnibal::place_oversized(std::move(packed), omnibal::oversize_policy::own_group).groups;
  data.batch = options.batch;
  if (data.batch == 0)
    data.batch = std::max<std::size_t>(1, data.samples.size() / data.packs.size());
  return data;
}

feed::sampler feed::make(train_options const& options, packed_data const& data,
                         time_model const& cost, omnibal::shard const& place,
                         omnibal::sampler_state const* state) {
  if (options.form == form_kind::random_packs || options.form == form_kind::even_packs) {
    std::vector<std::int64_t> nanoseconds;
    auto const measure = [](examples::sample const& sample) { return features_of(sample); };
    for (auto const& load : omnibal::group_loads(data.packs, data.samples, measure)) {
      nanoseconds.push_back(static_cast<std::int64_t>(1e9 * cost(load)));
    }
    omnibal::schedule_steps_options steps{.seed = options.seed};
    steps.max_dist_ratio = options.form == form_kind::even_packs ? options.max_dist_ratio : 1.0;
    return state == nullptr ? pack_sampler(nanoseconds, place, steps)
                            : pack_sampler(nanoseconds, place, steps, *state);
  }
  omnibal::epoch_sampler_options const samples{
      .seed = options.seed, .batch = data.batch, .contents = data.digest};
  return state == nullptr ? omnibal::epoch_sampler(data.samples.size(), place, samples)
                          : omnibal::epoch_sampler(data.samples.size(), place, samples, *state);
}

feed::feed(train_options const& options, packed_data const& data, time_model const& cost,
           omnibal::shard const& place, omnibal::sampler_state const* state)
    : data_(&data), sampler_(make(options, data, cost, place, state)) {}

std::vector<std::uint32_t> feed::next() {
  std::vector<std::uint32_t> ids;
  if (auto* const packs = std::get_if<pack_sampler>(&sampler_)) {
    for (std::uint32_t const pack : packs->next()) {
      ids.insert(ids.end(), data_->packs[pack].begin(), data_->packs[pack].end());
    }
    return ids;
  }
  auto const batch = std::get<omnibal::epoch_sampler>(sampler_).next();
  for (std::uint64_t const id : batch) ids.push_back(static_cast<std::uint32_t>(id));
  return ids;
}

bool feed::done() const {
  return std::visit([](auto const& of) { return of.done(); }, sampler_);
}
std::uint64_t feed::epoch() const {
  return std::visit([](auto const& of) { return of.epoch(); }, sampler_);
}
std::uint64_t feed::step() const {
  return std::visit([](auto const& of) { return of.step(); }, sampler_);
}
std::uint64_t feed::step_count() const {
  return std::visit([](auto const& of) { return of.step_count(); }, sampler_);
}
omnibal::sampler_state feed::state() const {
  return std::visit([](auto const& of) { return of.state(); }, sampler_);
}

}  // namespace train_vlm
