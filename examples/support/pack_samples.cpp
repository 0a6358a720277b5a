#include "pack_samples.hpp"

#include "input_error.hpp"

#include <omnibal/omnibal.hpp>

#include <numeric>
#include <span>
#include <stdexcept>
#include <string>

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
  fail(origin(data, index), "field \"" +
                                (is_images ? options.fields.images : options.fields.tokens) +
                                "\" is " + std::to_string(is_images ? one.images : one.tokens) +
                                ", which takes the sum of all records above 9223372036854775807");
}

template <class Samples, class Demand>
omnibal::packing pack_isf(Samples const& samples, Demand const& demand,
                          pack_options const& options) {
  auto const run = [&](auto const& shuffle) {
    return omnibal::isf(samples, demand, options.capacity,
                        omnibal::isf_options{.rounds = options.rounds},
                        chosen_keep_rule{options.keep, options.threshold}, shuffle);
  };
  switch (options.shuffle) {
    case shuffle_kind::feistel: return run(omnibal::rng::feistel{options.seed});
    case shuffle_kind::numpy: return run(omnibal::rng::numpy_shuffle{options.seed});
    default: return run(omnibal::rng::fisher_yates{options.seed});
  }
}

template <class Samples, class Demand>
omnibal::packing pack(Samples const& samples, Demand const& demand, pack_options const& options) {
  switch (options.packer) {
    case packer_kind::isf: return pack_isf(samples, demand, options);
    case packer_kind::next_fit: return omnibal::next_fit(samples, demand, options.capacity);
    case packer_kind::best_fit_decreasing:
      return omnibal::best_fit_decreasing(samples, demand, options.capacity);
    default: return omnibal::best_packing(samples, demand, options.capacity);
  }
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
  auto const demand = packed_demand(options);
  omnibal::packing const packed = pack(data.samples, demand, options);
  if (options.improvement == improvement_kind::none) return packed;
  if (options.spare_groups == 0) {
    return omnibal::improve(data.samples, demand, options.capacity, packed);
  }
  return omnibal::improve(data.samples, demand, options.capacity, packed,
                          {.even_passes = 96, .spare_groups = options.spare_groups});
}

omnibal::tuned<2> choose_capacity(dataset const& data, pack_options const& options) {
  pack_options on_trial = options;
  auto const pack_under = [&on_trial](auto const& samples, auto const& demand,
                                      omnibal::resources<2> const& capacity) {
    set_capacity(on_trial, capacity);
    return pack(samples, demand, on_trial);
  };
  constexpr std::int64_t token_steps = 16;
  std::int64_t const granularity = options.align_tokens > 1 ? options.align_tokens : token_steps;
  return omnibal::tune_capacity(
      data.samples, packed_demand(options), options.target_batch, pack_under,
      omnibal::published_rule<>{.ranks = options.ranks, .seed = options.seed},
      {.granularity = {1, granularity}, .seed = options.seed});
}

std::vector<std::uint32_t> dealing_order(std::size_t groups, std::uint64_t seed,
                                         std::uint64_t epoch) {
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{seed}(std::span(order), epoch);
  return order;
}

}  // namespace examples
