// SPDX-License-Identifier: Apache-2.0
#include "predicted_epoch.hpp"

#include "table.hpp"

#include <omnibal/exchange/make_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace train_vlm {

rank_samples post_balanced(packed_data const& data, time_model const& cost,
                           rank_samples const& drawn) {
  std::vector<std::uint32_t> all;
  std::vector<std::size_t> offsets{0};
  for (auto const& ids : drawn) {
    all.insert(all.end(), ids.begin(), ids.end());
    offsets.push_back(all.size());
  }
  time_model const of_sample = cost.per_sample();
  auto const nanoseconds = [&](std::uint32_t index) {
    return static_cast<std::int64_t>(1e9 * of_sample(features_of(data.samples[all[index]])));
  };
  auto const bytes = [&](std::uint32_t index) { return data.samples[all[index]].tokens; };
  auto const plan = omnibal::make_plan(offsets, nanoseconds, bytes);
  rank_samples result(drawn.size());
  for (std::size_t rank = 0; rank != drawn.size(); ++rank) {
    for (std::uint32_t const index : plan.arrivals(rank)) result[rank].push_back(all[index]);
  }
  return result;
}

double expected_largest(std::span<double const> predicted, double spread) {
  double largest = 0;
  for (double const seconds : predicted) largest = std::max(largest, seconds);
  if (!(spread > 0) || !(largest > 0)) return largest;
  // The mean of a positive number is the integral of the probability that it is larger.
  constexpr int intervals = 128;
  double const first = largest * std::max(0.0, 1 - 4 * spread);
  double const width = (largest * (1 + 5 * spread) - first) / intervals;
  double sum = first;
  for (int i = 0; i != intervals; ++i) {
    double const at = first + (i + 0.5) * width;
    double none_larger = 1;
    for (double const seconds : predicted) {
      if (!(seconds > 0)) continue;
      double const distance = (at / seconds - 1) / spread;
      none_larger *= 0.5 * std::erfc(-distance / std::sqrt(2.0));
    }
    sum += width * (1 - none_larger);
  }
  return sum;
}

double predicted_epoch(train_options const& options, packed_data const& data,
                       batch_profile const& profile, std::size_t ranks) {
  std::vector<feed> feeds;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    feeds.emplace_back(options, data, profile.cost, omnibal::shard{ranks, rank});
  }
  double const rest = options.form == form_kind::post_balanced
                          ? profile.step_seconds + profile.exchange_seconds
                          : profile.step_seconds;
  double sum = 0;
  while (!feeds[0].done()) {
    rank_samples ids;
    for (feed& steps : feeds) ids.push_back(steps.next());
    if (options.form == form_kind::post_balanced) ids = post_balanced(data, profile.cost, ids);
    std::vector<double> predicted;
    for (auto const& of_rank : ids) {
      if (of_rank.empty()) continue;
      predicted.push_back(profile.cost(features_of(data.samples, of_rank, options.form)));
    }
    sum += expected_largest(predicted, profile.spread) + rest;
  }
  return sum;
}

void print_prediction(train_options const& options, packed_data const& data,
                      batch_profile const& profile, std::size_t ranks) {
  // A difference below this is within the error of the prediction.
  constexpr double least_gain = 0.03;
  train_options random = options;
  random.form = form_kind::unpadded;
  double const before = predicted_epoch(random, data, profile, ranks);
  double const after = predicted_epoch(options, data, profile, ranks);
  std::string text = "predicted epoch: " + examples::fixed(after, 2) + " s in " +
                     to_text(options.form) + ", " + examples::fixed(before, 2) +
                     " s in unpadded random batches";
  if (options.form != form_kind::unpadded && after > before * (1 - least_gain)) {
    text += "; " + to_text(options.form) + " saves nothing on this data";
  }
  std::printf("%s\n", text.c_str());
}

}  // namespace train_vlm
