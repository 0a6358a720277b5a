// SPDX-License-Identifier: Apache-2.0
#include "long_context_plans.hpp"

#include "packing_rivals.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/sample/level_sampler.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <numeric>

namespace examples {

namespace {

std::int64_t squared_tokens(sample const& one) { return one.tokens * one.tokens; }

/// The samples by rising length, as `packer` has packed them.
template <class Packer>
auto in_order_of_length(Packer const& packer) {
  return [packer](auto const& samples, auto const& demand, std::int64_t length) {
    std::vector<std::uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return demand(samples[i]); });
    auto const packed = packer(
        order, [&](std::uint32_t i) { return demand(samples[i]); }, length);
    omnibal::packing result{{}, {}, packed.report};
    for (std::size_t g = 0; g != packed.groups.size(); ++g) {
      for (std::uint32_t const place : packed.groups[g]) result.groups.push(order[place]);
      result.groups.close();
    }
    return result;
  };
}

omnibal::level_packing pack(level_rule const& rule, dataset const& data, std::uint64_t seed) {
  auto const pack_with = [&](auto const& packer) {
    return omnibal::pack_levels(data.samples, &sample::tokens, rule.levels, packer);
  };
  switch (rule.packs) {
    case pack_kind::as_drawn: return pack_with(omnibal::next_fit);
    case pack_kind::by_length: return pack_with(in_order_of_length(omnibal::next_fit));
    case pack_kind::best_fit: return pack_with(omnibal::best_fit_decreasing);
    case pack_kind::first_fit:
      return pack_with([seed](auto const& samples, auto const&, std::int64_t length) {
        return first_fit_shuffled(samples, length, seed);
      });
    case pack_kind::histogram:
      return pack_with([](auto const& samples, auto const&, std::int64_t length) {
        return shortest_pack_first(samples, length);
      });
    case pack_kind::random_groups: break;
  }
  return pack_with([seed](auto const& samples, auto const& demand, std::int64_t length) {
    omnibal::resources const capacity{length};
    return omnibal::isf(samples, demand, capacity, {}, omnibal::reaches_most(capacity),
                        omnibal::rng::fisher_yates{seed});
  });
}

/// Packs dealt at random, or so that ranks wait for about two thousandths of a step.
omnibal::schedule_steps_options schedule_options(level_rule const& rule, std::uint64_t seed) {
  return {.seed = seed, .max_dist_ratio = rule.order == step_order::random ? 1.0 : 0.002};
}

auto attention_loads(dataset const& data, omnibal::level_packing const& packed) {
  return omnibal::group_loads(packed.groups, data.samples, squared_tokens);
}

/// Adds the times and the waiting of the steps of the levels.
class level_clock {
 public:
  level_clock(dataset const& data, heard_profile const& profile, long_context_plan& plan)
      : data_(data),
        profile_(profile),
        plan_(plan),
        spans_(omnibal::attention_spans(profile.language.model)) {}

  void run(std::size_t level) {
    omnibal::packing_level const& setting = plan_.packed.levels[level].setting;
    omnibal::steps const& schedule = plan_.schedules[level];
    std::vector<std::int64_t> squares(schedule.ranks());
    double level_waiting = 0;
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      std::int64_t longest = 0;
      for (std::size_t pack = 0; pack != schedule.ranks(); ++pack) {
        squares[pack] = 0;
        for (std::uint32_t const group : schedule(step, pack)) {
          omnibal::sequences const documents = documents_of(data_, plan_.packed, group, spans_);
          squares[pack] += documents.squares;
          longest = std::max(longest, profile_.reading(setting, documents).nanoseconds);
        }
      }
      plan_.epoch_seconds += 1e-9 * static_cast<double>(longest);
      double const waiting = omnibal::dist_ratio(squares);
      // Of each of the ranks that share a pack.
      double const time = static_cast<double>(*std::max_element(squares.begin(), squares.end())) /
                          static_cast<double>(setting.sequence);
      attention_time_ += time;
      attention_waiting_ += waiting * time;
      level_waiting += waiting;
      plan_.waiting.push_back(waiting);
    }
    auto const steps = static_cast<double>(schedule.size());
    plan_.level_attention_balance.push_back(steps == 0 ? 0 : level_waiting / steps);
    plan_.step_count += schedule.size();
  }

  /// The share of all time of attention for which ranks wait.
  [[nodiscard]] double weighed_attention_balance() const {
    return attention_time_ == 0 ? 0 : attention_waiting_ / attention_time_;
  }

 private:
  dataset const& data_;
  heard_profile const& profile_;
  long_context_plan& plan_;
  std::array<omnibal::attention_span, omnibal::max_attention_spans> spans_;
  double attention_time_ = 0;
  double attention_waiting_ = 0;
};

}  // namespace

omnibal::language_profile sharded_profile(omnibal::mixed_language_model const& model,
                                          machine_description const& machine, std::int64_t ranks) {
  return {.model = model,
          .device = machine.device(),
          .memory_bytes = machine.memory_bytes,
          .ranks = ranks,
          .document = 4096,
          .logit_tokens = 4096,
          .link_bytes_per_second = machine.node_link_bytes,
          .pack_overhead_nanoseconds = 300'000'000};
}

omnibal::level_search level_search_of(omnibal::language_profile const& profile,
                                      machine_description const& machine) {
  return {.layers = profile.model.layers(),
          .reserve_bytes = machine.reserve_bytes,
          .ranks = profile.ranks};
}

long_context_plan make_plan(level_rule const& rule, dataset const& data,
                            heard_profile const& profile, std::uint64_t seed) {
  long_context_plan plan;
  plan.name = rule.name;
  auto const begin = std::chrono::steady_clock::now();
  plan.packed = pack(rule, data, seed);
  plan.scheduled = schedule_options(rule, seed);
  plan.schedules =
      omnibal::level_steps(plan.packed, attention_loads(data, plan.packed),
                           static_cast<std::size_t>(profile.language.ranks), plan.scheduled);
  std::chrono::duration<double> const passed = std::chrono::steady_clock::now() - begin;
  plan.planning_seconds = passed.count();

  plan.figures = omnibal::level_metrics(plan.packed, plan.schedules, data.samples, &sample::tokens);
  level_clock clock(data, profile, plan);
  for (std::size_t level = 0; level != rule.levels.size(); ++level) clock.run(level);
  plan.weighed_attention_balance = clock.weighed_attention_balance();
  return plan;
}

omnibal::sequences documents_of(dataset const& data, omnibal::level_packing const& packed,
                                std::uint32_t group,
                                std::span<omnibal::attention_span const> spans) {
  return omnibal::sequences_of(
      packed.groups[group], [&](std::uint32_t item) { return data.samples[item].tokens; }, spans);
}

std::vector<std::size_t> level_order(long_context_plan const& plan, dataset const& data,
                                     std::int64_t ranks, std::uint64_t short_first_steps) {
  omnibal::level_sampler sampler(plan.packed, attention_loads(data, plan.packed),
                                 {.ranks = static_cast<std::size_t>(ranks), .rank = 0},
                                 {plan.scheduled, short_first_steps});
  std::vector<std::size_t> result;
  result.reserve(plan.step_count);
  while (result.size() != plan.step_count) result.push_back(sampler.next().level);
  return result;
}

}  // namespace examples
