// SPDX-License-Identifier: Apache-2.0
#include <omnibal/omnibal.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace {

using omnibal::grouping;
using omnibal::packing;
using omnibal::resources;

struct sample {
  int images;
  int tokens;
  std::string name;
  bool video;
};

using samples = std::vector<sample>;

// Functors whose results alone matter.
template <class Result>
using returns = Result (*)(sample const&);
struct mutable_demand {
  int operator()(sample const&);
};

// Ranges of samples.
static_assert(omnibal::sample_range<samples> && omnibal::sample_range<std::deque<sample>>);
static_assert(omnibal::sample_range<std::array<int, 3>> && omnibal::sample_range<std::span<int>>);
static_assert(!omnibal::sample_range<std::list<sample>> && !omnibal::sample_range<std::set<int>>);
static_assert(!omnibal::sample_range<sample> && !omnibal::sample_range<int*>);

// Costs are weights, demands weights or resources.
template <class Function>
inline constexpr bool is_cost = omnibal::cost_function<Function, sample const&>;
template <class Function>
inline constexpr bool is_demand = omnibal::demand_function<Function, sample const&>;

static_assert(is_cost<int sample::*> && is_demand<int sample::*>);
static_assert(is_cost<returns<double>> && is_demand<returns<double>>);
static_assert(is_cost<returns<std::uint8_t const&>> && is_demand<returns<std::uint8_t const&>>);
static_assert(!is_cost<returns<resources<1>>> && is_demand<returns<resources<1>>>);
static_assert(!is_cost<returns<resources<2>>> && is_demand<returns<resources<2>>>);
static_assert(!is_cost<returns<bool>> && !is_demand<returns<bool>>);
static_assert(!is_cost<bool sample::*> && !is_demand<bool sample::*>);
static_assert(!is_cost<returns<void>> && !is_demand<returns<void>>);
static_assert(!is_cost<returns<int*>> && !is_demand<returns<int*>>);
static_assert(!is_cost<std::string sample::*> && !is_demand<std::string sample::*>);
static_assert(!is_cost<returns<std::array<int, 2>>> && !is_demand<returns<std::array<int, 2>>>);
static_assert(!is_cost<mutable_demand> && !is_demand<mutable_demand>);
static_assert(!is_cost<int (*)(int*)> && !is_demand<int (*)(int*)>);
static_assert(!is_cost<int> && !is_demand<int>);

// Costs of sets.
struct padded {
  void add(sample const&);
  [[nodiscard]] std::int64_t value() const;
};
struct padded_without_add {
  [[nodiscard]] std::int64_t value() const;
};
struct padded_with_bool {
  void add(sample const&);
  [[nodiscard]] bool value() const;
};
struct padded_with_mutable_value {
  void add(sample const&);
  [[nodiscard]] std::int64_t value();
};
struct padded_without_copies : padded {
  padded_without_copies(padded_without_copies const&) = delete;
};
static_assert(omnibal::set_cost<padded, sample const&>);
static_assert(!omnibal::set_cost<padded, int>);
static_assert(!omnibal::set_cost<padded_without_add, sample const&>);
static_assert(!omnibal::set_cost<padded_with_bool, sample const&>);
static_assert(!omnibal::set_cost<padded_with_mutable_value, sample const&>);
static_assert(!omnibal::set_cost<padded_without_copies, sample const&>);

// Stages.
template <class Result>
using of_stage = Result (*)(std::size_t, std::size_t, std::size_t);
static_assert(omnibal::stage_cost<of_stage<std::int64_t>> && omnibal::stage_cost<of_stage<float>>);
static_assert(!omnibal::stage_cost<of_stage<bool>> && !omnibal::stage_cost<of_stage<void>>);
static_assert(!omnibal::stage_cost<int (*)(std::size_t, std::size_t)>);
static_assert(omnibal::stage_predicate<of_stage<bool>>);
static_assert(!omnibal::stage_predicate<of_stage<std::string>>);

// Keep rules.
using load = resources<2>;
static_assert(omnibal::keep_rule<bool (*)(load const&), load>);
static_assert(omnibal::keep_rule<omnibal::reaches_any<load>, load>);
static_assert(!omnibal::keep_rule<void (*)(load const&), load>);
static_assert(!omnibal::keep_rule<omnibal::reaches_any<resources<1>>, load>);

// Shufflers.
using indices_only = void (*)(std::span<std::uint32_t>, std::uint64_t);
using without_round = void (*)(std::span<std::uint32_t>);
using of_wide_indices = void (*)(std::span<std::uint64_t>, std::uint64_t);
static_assert(omnibal::shuffler<omnibal::rng::fisher_yates>);
static_assert(omnibal::shuffler<omnibal::rng::feistel>);
static_assert(omnibal::shuffler<omnibal::rng::numpy_shuffle>);
static_assert(omnibal::shuffler<indices_only>);
static_assert(!omnibal::shuffler<without_round> && !omnibal::shuffler<of_wide_indices>);

static_assert(omnibal::rng::any_element_shuffler<omnibal::rng::fisher_yates>);
static_assert(omnibal::rng::any_element_shuffler<omnibal::rng::numpy_shuffle>);
static_assert(!omnibal::rng::any_element_shuffler<indices_only>);
static_assert(omnibal::rng::random_access_shuffler<omnibal::rng::feistel>);
static_assert(!omnibal::rng::random_access_shuffler<omnibal::rng::fisher_yates>);
static_assert(!omnibal::rng::random_access_shuffler<indices_only>);

// Whatever is called like a packer or a balancer is one.
template <class Packer>
inline constexpr bool packs = omnibal::packer<Packer, samples, returns<resources<2>>, resources<2>>;
static_assert(packs<omnibal::isf_fn> && packs<omnibal::next_fit_fn>);
static_assert(packs<omnibal::best_fit_decreasing_fn> && packs<omnibal::best_packing_fn>);
static_assert(packs<packing (*)(samples const&, returns<resources<2>>, resources<2>)>);
static_assert(!packs<grouping (*)(samples const&, returns<resources<2>>, resources<2>)>);
static_assert(!packs<packing (*)(samples const&, returns<resources<2>>)>);
static_assert(omnibal::balancer<grouping (*)(samples const&, std::size_t, int sample::*), samples,
                                int sample::*>);
static_assert(!omnibal::balancer<packing (*)(samples const&, std::size_t, int sample::*), samples,
                                 int sample::*>);

// What the packers do not take.
template <class... Arguments>
inline constexpr bool all_take = std::invocable<decltype(omnibal::isf), Arguments...>&&
    std::invocable<decltype(omnibal::next_fit), Arguments...>&&
        std::invocable<decltype(omnibal::best_fit_decreasing), Arguments...>&&
            std::invocable<decltype(omnibal::packing_bound), Arguments...>;
template <class... Arguments>
inline constexpr bool none_takes =
    !std::invocable<decltype(omnibal::isf), Arguments...> &&
    !std::invocable<decltype(omnibal::next_fit), Arguments...> &&
    !std::invocable<decltype(omnibal::best_fit_decreasing), Arguments...> &&
    !std::invocable<decltype(omnibal::packing_bound), Arguments...>;

static_assert(all_take<samples, returns<resources<2>>, resources<2>>);
static_assert(all_take<samples, int sample::*, int>);
static_assert(all_take<samples, int sample::*, resources<1>>);
static_assert(all_take<samples, returns<resources<2>>, resources<2, double>>);
static_assert(all_take<std::deque<double>, std::identity, double>);
static_assert(none_takes<samples, returns<resources<2>>, resources<3>>);
static_assert(none_takes<samples, returns<resources<2>>, int>);
static_assert(none_takes<samples, int sample::*, resources<2>>);
static_assert(none_takes<samples, returns<bool>, int>);
static_assert(none_takes<samples, std::string sample::*, int>);
static_assert(none_takes<samples, int sample::*, bool>);
static_assert(none_takes<samples, int sample::*, std::string>);
static_assert(none_takes<samples, mutable_demand, int>);
static_assert(none_takes<std::list<sample>, int sample::*, int>);
static_assert(none_takes<samples, int sample::*>);

template <class... Functors>
inline constexpr bool isf_takes = std::invocable<decltype(omnibal::isf), samples, int sample::*,
                                                 int, omnibal::isf_options, Functors...>;
static_assert(isf_takes<> && isf_takes<omnibal::reaches_any<resources<1>>>);
static_assert(isf_takes<bool (*)(resources<1> const&), indices_only>);
static_assert(!isf_takes<omnibal::reaches_any<resources<2>>>);
static_assert(!isf_takes<omnibal::reaches_any<resources<1>>, without_round>);
static_assert(!isf_takes<sample>);

}  // namespace
