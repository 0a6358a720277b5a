// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which samples a rank trains on in each step: what the trainer asks omnibal for.

#include "contents.hpp"
#include "options.hpp"

#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

namespace train_vlm {

/// What the time of a batch depends on: image tiles, tokens, pairs of tokens of a sample, samples.
using batch_features = omnibal::resources<4>;
using time_model = omnibal::affine_cost<4>;

[[nodiscard]] batch_features features_of(examples::sample const& sample);

/// The features of a batch, where it is padded with what padding adds.
[[nodiscard]] batch_features features_of(std::span<examples::sample const> samples,
                                         std::span<std::uint32_t const> ids, form_kind form);

/// A data set, packed, with all that does not change between steps. Equal on all ranks.
struct packed_data {
  std::vector<examples::sample> samples;
  omnibal::grouping packs;
  /// The tiles and tokens that a pack holds.
  omnibal::resources<2> capacity{};
  /// Samples of a rank in a step where they are not packed.
  std::size_t batch = 1;
  /// Identifies the lengths.
  std::uint64_t digest = 0;
};

/// Packs the data under the capacity of the options, or under one that is chosen for the data.
/// Errors: `std::runtime_error` for a sample above the capacity, unless the options let it be a
/// pack alone, and if no capacity has the wanted mean number of samples.
[[nodiscard]] packed_data pack_data(train_options const& options);

/// The steps of one rank.
class feed {
 public:
  feed(train_options const& options, packed_data const& data, time_model const& cost,
       omnibal::shard const& place, omnibal::sampler_state const* state = nullptr);

  /// The samples of the next step; none where this rank is idle.
  [[nodiscard]] std::vector<std::uint32_t> next();
  [[nodiscard]] bool done() const;
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] std::uint64_t step() const;
  [[nodiscard]] std::uint64_t step_count() const;
  [[nodiscard]] omnibal::sampler_state state() const;

 private:
  using pack_sampler = omnibal::step_sampler<std::int64_t>;
  using sampler = std::variant<omnibal::epoch_sampler, pack_sampler>;

  [[nodiscard]] static sampler make(train_options const& options, packed_data const& data,
                                    time_model const& cost, omnibal::shard const& place,
                                    omnibal::sampler_state const* state);

  packed_data const* data_;
  sampler sampler_;
};

}  // namespace train_vlm
