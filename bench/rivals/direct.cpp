// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library as a program in C++ calls it, and the synthetic data set, for compare.py: a shared
/// library, so that all calls run in one process. Only the call itself is timed.

#include "synthetic.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <vector>

namespace {

struct choice {
  std::int64_t time;
  std::int64_t bytes;
};

double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Groups in memory of the caller, who has room for so many as the call may give, and what the call
/// took. The layout of a class in compare.py.
struct timed_groups {
  double seconds;
  std::uint32_t groups;
  std::uint32_t* offsets;
  std::uint32_t* items;

  template <class Call>
  auto time(Call const& call) {
    double const begin = processor_seconds();
    auto result = call();
    seconds = processor_seconds() - begin;
    return result;
  }
  template <class Groups>
  void copy(Groups const& from) {
    groups = static_cast<std::uint32_t>(from.size());
    std::ranges::copy(from.offsets(), offsets);
    std::ranges::copy(from.items(), items);
  }
};

std::vector<omnibal::resources<2>> pairs(std::int64_t const* numbers, std::size_t count) {
  std::vector<omnibal::resources<2>> result(count);
  for (std::size_t i = 0; i != count; ++i) result[i] = {numbers[2 * i], numbers[2 * i + 1]};
  return result;
}

/// Layers with equally many modules, in the order of offload.py: the bytes and the times of the
/// modules, then for each layer the times of its passes, its transient bytes and its traffic.
struct given_layers {
  std::int64_t const* bytes;
  std::int64_t const* times;
  std::int64_t const* passes;
  std::int64_t const* transient;
  std::int64_t const* traffic;
  std::size_t count;
  std::size_t modules;
  /// Even traffic of the link in both directions, and the micro-batches in flight.
  std::int64_t forward_traffic;
  std::int64_t backward_traffic;
  std::int64_t in_flight;

  [[nodiscard]] std::vector<omnibal::activation_layer<>> layers() const {
    std::vector<omnibal::activation_layer<>> result(count);
    for (std::size_t i = 0; i != count; ++i) {
      for (std::size_t j = 0; j != modules; ++j) {
        result[i].modules.push_back({bytes[i * modules + j], times[i * modules + j]});
      }
      result[i].forward_time = passes[2 * i];
      result[i].backward_time = passes[2 * i + 1];
      result[i].forward_transient_bytes = transient[2 * i];
      result[i].backward_transient_bytes = transient[2 * i + 1];
      result[i].forward_traffic_bytes = traffic[2 * i];
      result[i].backward_traffic_bytes = traffic[2 * i + 1];
    }
    return result;
  }
  [[nodiscard]] omnibal::offload_link link(double bytes_per_time) const {
    if (bytes_per_time == 0) return {};
    return {bytes_per_time, forward_traffic, backward_traffic};
  }
};

/// The memory and the time of choices, and the seconds of the fastest of several calls.
struct timed_activations {
  double seconds;
  std::int64_t added_time;
  std::int64_t lower_bound;
  std::int64_t peak_bytes;
  std::int64_t offloaded_bytes;
};

}  // namespace

// What throws ends the program: compare.py asks for nothing that is an error.
extern "C" {

void rivals_synthetic(std::size_t count, std::uint64_t seed, std::int64_t* demands) noexcept {
  for (examples::sample const& one : examples::synthetic_lengths(count, seed).samples) {
    *demands++ = one.images;
    *demands++ = one.tokens;
  }
}

void rivals_best_fit_decreasing(std::int64_t const* lengths, std::size_t count,
                                std::int64_t capacity, timed_groups* out) noexcept {
  std::span const samples(lengths, count);
  out->copy(
      out->time([&] { return omnibal::best_fit_decreasing(samples, std::identity{}, capacity); })
          .groups);
}

void rivals_lpt(std::int64_t const* costs, std::size_t count, std::size_t parts, bool equal,
                timed_groups* out) noexcept {
  std::span const samples(costs, count);
  omnibal::lpt_options const options{equal ? omnibal::count_policy::equal
                                           : omnibal::count_policy::any};
  out->copy(out->time([&] { return omnibal::lpt(samples, parts, std::identity{}, options); }));
}

void rivals_isf(std::int64_t const* demands, std::size_t count, std::int64_t const* limits,
                std::int64_t const* threshold, std::size_t rounds, std::uint64_t seed,
                timed_groups* out) noexcept {
  auto const samples = pairs(demands, count);
  omnibal::resources<2> const capacity{limits[0], limits[1]};
  omnibal::reaches_any const keep{omnibal::resources<2>{threshold[0], threshold[1]}};
  omnibal::rng::numpy_shuffle const shuffle{seed};
  out->copy(out->time([&] {
                 return omnibal::isf(samples, std::identity{}, capacity,
                                     omnibal::isf_options{.rounds = rounds}, keep, shuffle);
               })
                .groups);
}

/// `demands` are costs and tokens in turn.
void rivals_micro_batches(std::int64_t const* demands, std::size_t count, std::size_t ranks,
                          std::int64_t capacity, timed_groups* out) noexcept {
  auto const samples = pairs(demands, count);
  auto const cost = [](omnibal::resources<2> const& of) { return of[0]; };
  auto const tokens = [](omnibal::resources<2> const& of) { return of[1]; };
  auto const batches =
      out->time([&] { return omnibal::micro_batches(samples, ranks, cost, tokens, capacity); });
  out->copy(batches.cells());
}

/// Three choices for each layer; one group has the number of the choice of each.
void rivals_select_recompute(std::int64_t const* times, std::int64_t const* bytes,
                             std::size_t layers, std::int64_t budget, timed_groups* out) noexcept {
  std::vector<std::vector<choice>> choices(layers);
  for (std::size_t i = 0; i != 3 * layers; ++i) choices[i / 3].push_back({times[i], bytes[i]});
  auto const found = out->time([&] { return omnibal::select_recompute(choices, budget); });
  omnibal::grouping chosen;
  for (std::uint32_t const number : found.choices) chosen.push(number);
  chosen.close();
  out->copy(chosen);
}

/// The choices of all modules, layer after layer, as numbers of `activation_choice`.
void rivals_select_activations(given_layers const* given, std::int64_t budget,
                               double bytes_per_time, int effort, int runs,
                               timed_activations* out, std::uint8_t* choices) noexcept {
  auto const layers = given->layers();
  auto const link = given->link(bytes_per_time);
  out->seconds = 1e9;
  for (int run = 0; run != runs; ++run) {
    double const begin = processor_seconds();
    auto const found = omnibal::select_activations(
        layers, budget, link,
        {.in_flight = given->in_flight, .effort = static_cast<omnibal::effort>(effort)});
    out->seconds = std::min(out->seconds, processor_seconds() - begin);
    out->added_time = found.added_time;
    out->lower_bound = found.lower_bound;
    out->peak_bytes = found.peak_bytes;
    out->offloaded_bytes = found.offloaded_bytes;
    std::uint8_t* next = choices;
    for (auto const& layer : found.choices) {
      for (auto const choice : layer) *next++ = static_cast<std::uint8_t>(choice);
    }
  }
}

void rivals_measure_activations(given_layers const* given, double bytes_per_time,
                                std::uint8_t const* choices, timed_activations* out) noexcept {
  std::vector<std::vector<omnibal::activation_choice>> rows(given->count);
  for (std::size_t k = 0; k != given->count * given->modules; ++k) {
    rows[k / given->modules].push_back(static_cast<omnibal::activation_choice>(choices[k]));
  }
  auto const usage = omnibal::measure_activations(
      given->layers(), rows, given->link(bytes_per_time), {.in_flight = given->in_flight});
  *out = {0, usage.added_time, usage.added_time, usage.peak_bytes, usage.offloaded_bytes};
}

}  // extern "C"
