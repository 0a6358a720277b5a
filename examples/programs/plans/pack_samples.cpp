// SPDX-License-Identifier: Apache-2.0
#include "pack_samples.hpp"

#include "input_error.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

namespace {

/// Both keep rules as one type, so that the packer is compiled once per shuffler only.
struct chosen_keep_rule {
  keep_kind kind;
  omnibal::resources<2> threshold;

  bool operator()(omnibal::resources<2> const& load) const {
    bool const enough_images =
        kind == keep_kind::reference ? load[0] == threshold[0] : load[0] >= threshold[0];
    return enough_images || load[1] >= threshold[1];
  }
  bool operator()(omnibal::resources<1> const& load) const { return load[0] >= threshold[1]; }
};

/// The file and the record of a sample.
position origin(dataset const& data, std::size_t index) {
  for (source const& one : data.sources) {
    if (index < one.records) return {one.name, index + 1};
    index -= one.records;
  }
  return {};
}

[[noreturn]] void fail_sum(dataset const& data, pack_options const& options, std::size_t index,
                           std::size_t kind) {
  sample const& one = data.samples[index];
  bool const is_images = kind == 0;
  fail(origin(data, index),
       "field \"" + (is_images ? options.lengths.fields.images : options.lengths.fields.tokens) +
           "\" is " + std::to_string(is_images ? one.images : one.tokens) +
           ", which takes the sum of all records above 9223372036854775807");
}

/// All shufflers as one type, so that the packer is compiled once.
struct chosen_shuffle {
  shuffle_kind kind;
  std::uint64_t seed;

  void operator()(std::span<std::uint32_t> items, std::uint64_t round) const {
    switch (kind) {
      case shuffle_kind::feistel: return omnibal::rng::feistel{seed}(items, round);
      case shuffle_kind::numpy: return omnibal::rng::numpy_shuffle{seed}(items, round);
      default: return omnibal::rng::fisher_yates{seed}(items, round);
    }
  }
};

template <std::size_t R>
using demands = std::span<omnibal::resources<R> const>;

/// The packers are called with measured samples everywhere, so that each is compiled once.
template <std::size_t R>
omnibal::packing pack(demands<R> samples, omnibal::resources<R> const& capacity,
                      pack_options const& options) {
  constexpr std::identity demand;
  switch (options.packer) {
    case packer_kind::isf:
      return omnibal::isf(samples, demand, capacity, omnibal::isf_options{.rounds = options.rounds},
                          chosen_keep_rule{options.keep, options.threshold},
                          chosen_shuffle{options.shuffle, options.seed});
    case packer_kind::next_fit: return omnibal::next_fit(samples, demand, capacity);
    case packer_kind::best_fit_decreasing:
      return omnibal::best_fit_decreasing(samples, demand, capacity);
    default: return omnibal::best_packing(samples, demand, capacity);
  }
}

template <std::size_t R, class Demand>
std::vector<omnibal::resources<R>> measured(dataset const& data, Demand const& demand) {
  std::vector<omnibal::resources<R>> result;
  result.reserve(data.samples.size());
  for (sample const& one : data.samples) result.push_back({demand(one)});
  return result;
}

template <std::size_t R>
omnibal::packing pack_and_improve(demands<R> samples, omnibal::resources<R> const& capacity,
                                  pack_options const& options) {
  omnibal::packing const packed = pack(samples, capacity, options);
  if (options.improvement == improvement_kind::none) return packed;
  omnibal::improve_packing_options how;
  if (options.spare_groups != 0) {
    how.even_passes = 96;
    how.spare_groups = options.spare_groups;
  }
  return omnibal::improve_packing(samples, std::identity{}, capacity, packed, how);
}

/// The capacity of both resources, where there may be one.
omnibal::resources<2> of_both(omnibal::resources<2> const& capacity) { return capacity; }
omnibal::resources<2> of_both(omnibal::resources<1> const& capacity) { return {1, capacity[0]}; }

template <std::size_t R>
chosen_capacity tune(demands<R> samples, omnibal::resources<R> granularity,
                     pack_options const& options) {
  pack_options on_trial = options;
  auto const pack_under = [&on_trial](demands<R> part, std::identity,
                                      omnibal::resources<R> const& capacity) {
    set_capacity(on_trial, of_both(capacity));
    return pack(part, capacity, on_trial);
  };
  auto const choice = omnibal::tune_capacity(
      samples, std::identity{}, options.target_batch, pack_under,
      omnibal::published_rule<>{.ranks = options.ranks, .seed = options.seed},
      {.granularity = granularity, .seed = options.seed});
  return {choice.status, of_both(choice.best.capacity), choice.best.mean_group_size,
          choice.packings, choice.finalists.size()};
}

}  // namespace

void check_sums(dataset const& data, pack_options const& options) {
  auto const demand = packed_demand(options);
  omnibal::resources<2> sum{};
  for (std::size_t i = 0; i != data.samples.size(); ++i) {
    if (!true_demand(data.samples[i]).fits(options.capacity)) continue;
    omnibal::resources<2> amounts{};
    try {
      amounts = demand(data.samples[i]);
    } catch (std::overflow_error const&) {
      fail_sum(data, options, i, 1);
    }
    if (!amounts.fits(options.capacity)) continue;
    for (std::size_t r = 0; r != amounts.size(); ++r) {
      if (__builtin_add_overflow(sum[r], amounts[r], &sum[r])) fail_sum(data, options, i, r);
    }
  }
}

omnibal::packing pack_samples(dataset const& data, pack_options const& options) {
  if (options.kind == sample_kind::text) {
    auto const samples = measured<1>(data, packed_text_demand(options));
    return pack_and_improve<1>(samples, {options.capacity[1]}, options);
  }
  auto const samples = measured<2>(data, packed_demand(options));
  return pack_and_improve<2>(samples, options.capacity, options);
}

chosen_capacity choose_capacity(dataset const& data, pack_options const& options) {
  constexpr std::int64_t token_steps = 16;
  std::int64_t const granularity = options.align_tokens > 1 ? options.align_tokens : token_steps;
  if (options.kind == sample_kind::text) {
    return tune<1>(measured<1>(data, packed_text_demand(options)), {granularity}, options);
  }
  return tune<2>(measured<2>(data, packed_demand(options)), {1, granularity}, options);
}

omnibal::resources<2> usual_most(dataset const& data, pack_options const& options) {
  auto const most = [&](std::size_t kind) {
    std::vector<std::int64_t> values;
    values.reserve(data.samples.size());
    for (sample const& one : data.samples) values.push_back(true_demand(one)[kind]);
    std::size_t const above = values.size() / 1000;
    auto const place = values.end() - 1 - static_cast<std::ptrdiff_t>(above);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  std::int64_t const tokens = std::min(most(1), INT64_MAX - options.align_tokens);
  std::int64_t const rounded =
      (tokens + options.align_tokens - 1) / options.align_tokens * options.align_tokens;
  return {most(0), rounded};
}

std::int64_t context_length(dataset const& data, pack_options const& options) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 62;
  auto const most = static_cast<std::uint64_t>(usual_most(data, options)[1]);
  auto const power =
      static_cast<std::int64_t>(std::bit_ceil(std::clamp<std::uint64_t>(most, 1, largest)));
  // A capacity between two multiples would set samples aside that fit it.
  std::int64_t const over = power % options.align_tokens;
  return over == 0 ? power : power - over + options.align_tokens;
}

void check_oversized(dataset const& data, pack_options const& options,
                     omnibal::packing const& result) {
  std::size_t const count = data.samples.size();
  if (result.oversized.size() <= count / 2) return;
  auto const most = usual_most(data, options);
  auto const amounts = [&](omnibal::resources<2> const& of) {
    std::string const tokens = std::to_string(of[1]) + " tokens";
    if (options.kind == sample_kind::text) return tokens;
    return std::to_string(of[0]) + " images and " + tokens;
  };
  throw std::runtime_error(
      std::to_string(result.oversized.size()) + " of " + std::to_string(count) +
      " samples exceed the capacity of " + amounts(options.capacity) +
      " alone, so no plan is written; 999 of 1000 samples have at most " + amounts(most));
}

std::string left_out_text(dataset const& data, pack_options const& options,
                          omnibal::packing const& result) {
  if (result.oversized.empty()) return {};
  omnibal::resources<2> largest{};
  for (std::uint32_t const index : result.oversized) {
    auto const demand = true_demand(data.samples[index]);
    for (std::size_t r = 0; r != demand.size(); ++r) largest[r] = std::max(largest[r], demand[r]);
  }
  bool const is_text = options.kind == sample_kind::text;
  auto const amounts = [&](omnibal::resources<2> const& of) {
    return (is_text ? "" : std::to_string(of[0]) + " images or ") + std::to_string(of[1]) +
           " tokens";
  };
  std::size_t const count = result.oversized.size();
  return std::to_string(count) + " of " + std::to_string(data.samples.size()) +
         (count == 1 ? " samples exceeds" : " samples exceed") + " the capacity of " +
         amounts(options.capacity) + " and " + (count == 1 ? "is" : "are") +
         " in no group; the largest has " + amounts(largest);
}

std::vector<std::uint32_t> dealing_order(std::size_t groups, std::uint64_t seed,
                                         std::uint64_t epoch) {
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{seed}(std::span(order), epoch);
  return order;
}

}  // namespace examples
