// SPDX-License-Identifier: Apache-2.0
// What would refer to an object that is gone does not compile; what lives long enough does.

#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_layout.hpp>
#include <omnibal/context/context_pieces.hpp>
#include <omnibal/context/cut_pieces.hpp>
#include <omnibal/context/deferral_queue.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/pack/online_packer.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>
#include <omnibal/steps.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::context_layout;
using omnibal::exchange_plan;
using omnibal::grouping;
using omnibal::grouping_view;
using omnibal::steps;
using sampler = omnibal::step_sampler<int>;
using levels = omnibal::level_sampler<int>;
using offsets = omnibal::sequence_offsets;
using rows = omnibal::ragged<int>;
using online = omnibal::online_packer<1>;
using deferral = omnibal::deferral_queue;
using plan_of_pipeline = omnibal::pipeline_plan<std::int64_t>;

// `T` is a reference: `X&` an object that stays, `X` or `X const` a temporary.
template <class T>
concept indexable = requires(T&& object) {
  static_cast<T&&>(object)[0];
};
template <class T>
concept walkable = requires(T&& object) {
  static_cast<T&&>(object).begin();
};
template <class T>
concept ends = requires(T&& object) {
  static_cast<T&&>(object).end();
};
template <class T>
concept gives_offsets = requires(T&& object) {
  static_cast<T&&>(object).offsets();
};
template <class T>
concept gives_items = requires(T&& object) {
  static_cast<T&&>(object).items();
};
template <class T>
concept gives_open_group = requires(T&& object) {
  static_cast<T&&>(object).open_group();
};
template <class T>
concept gives_view = requires(T&& object) {
  static_cast<T&&>(object).view();
};
template <class T>
concept gives_values = requires(T&& object) {
  static_cast<T&&>(object).values();
};
template <class T>
concept gives_cells = requires(T&& object) {
  static_cast<T&&>(object).cells();
};
template <class T>
concept gives_begins = requires(T&& object) {
  static_cast<T&&>(object).begins();
};
template <class T>
concept gives_anchor = requires(T&& object) {
  static_cast<T&&>(object).anchor();
};
template <class T>
concept gives_result = requires(T&& object) {
  static_cast<T&&>(object).result();
};
template <class T>
concept gives_next = requires(T&& object) {
  static_cast<T&&>(object).next();
};
template <class T>
concept gives_step = requires(T&& object) {
  static_cast<T&&>(object)(std::uint64_t{0});
};
template <class T>
concept gives_cell = requires(T&& object) {
  static_cast<T&&>(object)(std::size_t{0}, std::size_t{0});
};
template <class T>
concept gives_arrivals = requires(T&& object) {
  static_cast<T&&>(object).arrivals();
};
template <class T>
concept gives_arrivals_of_rank = requires(T&& object) {
  static_cast<T&&>(object).arrivals(0);
};
template <class T>
concept gives_departures = requires(T&& object) {
  static_cast<T&&>(object).departures();
};
template <class T>
concept gives_home_offsets = requires(T&& object) {
  static_cast<T&&>(object).home_offsets();
};
template <class T>
concept gives_pieces = requires(T&& object) {
  static_cast<T&&>(object).pieces();
};
template <class T>
concept gives_piece_offsets = requires(T&& object) {
  static_cast<T&&>(object).piece_offsets();
};
template <class T>
concept gives_pieces_of_rank = requires(T&& object) {
  static_cast<T&&>(object).pieces_of(0, 0);
};
template <class T>
concept gives_cu_seqlens = requires(T&& object) {
  static_cast<T&&>(object).cu_seqlens(0, 0);
};
template <class T>
concept gives_sequences = requires(T&& object) {
  static_cast<T&&>(object).sequences();
};
template <class T>
concept gives_padded_sequences = requires(T&& object) {
  static_cast<T&&>(object).padded_sequences();
};
template <class T>
concept gives_choices = requires(T&& object) {
  static_cast<T&&>(object).choices_of(0);
};
template <class T>
concept takes_samples = requires(T&& object) {
  static_cast<T&&>(object).push(std::uint64_t{0}, 1);
};
template <class T>
concept takes_steps = requires(T&& object) {
  static_cast<T&&>(object).push(std::vector{1}, std::vector{1}, std::identity{});
};
template <class T>
concept flushes = requires(T&& object) {
  static_cast<T&&>(object).flush();
};

// Groups.
static_assert(indexable<grouping&> && indexable<grouping const&>);
static_assert(!indexable<grouping> && !indexable<grouping const>);
static_assert(walkable<grouping&> && ends<grouping const&>);
static_assert(!walkable<grouping> && !walkable<grouping const> && !ends<grouping>);
static_assert(gives_offsets<grouping const&> && !gives_offsets<grouping>);
static_assert(gives_items<grouping const&> && !gives_items<grouping>);
static_assert(gives_open_group<grouping const&> && !gives_open_group<grouping>);
static_assert(gives_view<grouping const&> && !gives_view<grouping>);
static_assert(std::convertible_to<grouping const&, grouping_view>);
static_assert(std::convertible_to<grouping&, grouping_view>);
static_assert(!std::convertible_to<grouping, grouping_view>);
static_assert(!std::convertible_to<grouping const, grouping_view>);
static_assert(!std::constructible_from<grouping_view, grouping>);
// They stay a range, and a view stays one that may be copied out of a temporary.
static_assert(std::ranges::random_access_range<grouping const>);
static_assert(std::ranges::sized_range<grouping>);
static_assert(indexable<grouping_view> && walkable<grouping_view>);

// Arguments of a call may be temporary.
static_assert(std::invocable<omnibal::group_loads_fn const&, grouping, std::vector<int> const&,
                             std::identity>);
static_assert(std::invocable<omnibal::group_loads_fn const&, grouping_view, std::vector<int> const&,
                             std::identity>);
static_assert(std::invocable<omnibal::pad_ratio_fn const&, grouping, std::vector<int> const&>);

// Steps.
static_assert(gives_cells<steps const&> && !gives_cells<steps> && !gives_cells<steps const>);
static_assert(gives_cell<steps const&> && !gives_cell<steps>);

// Samplers.
static_assert(gives_next<sampler&> && !gives_next<sampler>);
static_assert(gives_step<sampler const&> && !gives_step<sampler>);
static_assert(gives_next<levels&> && !gives_next<levels>);
static_assert(gives_step<levels const&> && !gives_step<levels>);
// A batch computes its indices and depends on no sampler; its iterators depend on it.
static_assert(gives_next<omnibal::epoch_sampler>);
static_assert(walkable<omnibal::sample_batch&> && !walkable<omnibal::sample_batch>);
static_assert(indexable<omnibal::sample_batch>);

// Rows and offsets.
static_assert(indexable<rows&> && !indexable<rows> && !indexable<rows const>);
static_assert(walkable<rows&> && !walkable<rows> && !ends<rows>);
static_assert(gives_offsets<rows const&> && !gives_offsets<rows>);
static_assert(gives_values<rows&> && gives_values<rows const&>);
static_assert(!gives_values<rows> && !gives_values<rows const>);
static_assert(indexable<offsets const&> && !indexable<offsets>);
static_assert(gives_offsets<offsets const&> && !gives_offsets<offsets>);
static_assert(gives_begins<offsets const&> && !gives_begins<offsets>);
static_assert(gives_values<omnibal::weight_list<int>&> && !gives_values<omnibal::weight_list<int>>);

// Plans and neighbors.
static_assert(gives_arrivals<exchange_plan const&> && !gives_arrivals<exchange_plan>);
static_assert(gives_arrivals_of_rank<exchange_plan&> && !gives_arrivals_of_rank<exchange_plan>);
static_assert(gives_departures<exchange_plan const&> && !gives_departures<exchange_plan>);
static_assert(gives_home_offsets<exchange_plan const&> && !gives_home_offsets<exchange_plan>);
static_assert(gives_choices<plan_of_pipeline const&> && !gives_choices<plan_of_pipeline>);
static_assert(walkable<omnibal::neighborhood&> && !walkable<omnibal::neighborhood>);
static_assert(gives_anchor<omnibal::neighborhood&> && !gives_anchor<omnibal::neighborhood>);
static_assert(!std::is_reference_v<decltype(*std::declval<omnibal::neighborhood&>().begin())>);

// Layouts of pieces, and views of samples.
static_assert(gives_pieces<context_layout const&> && !gives_pieces<context_layout>);
static_assert(gives_piece_offsets<context_layout const&> && !gives_piece_offsets<context_layout>);
static_assert(gives_cells<context_layout const&> && !gives_cells<context_layout>);
static_assert(gives_pieces_of_rank<context_layout const&> && !gives_pieces_of_rank<context_layout>);
static_assert(gives_cu_seqlens<context_layout const&> && !gives_cu_seqlens<context_layout>);
static_assert(gives_sequences<context_layout const&> && !gives_sequences<context_layout>);
static_assert(gives_padded_sequences<context_layout const&> &&
              !gives_padded_sequences<context_layout>);
using home_list = std::vector<std::uint32_t> const&;
using sample_list = std::vector<std::vector<int>>;
static_assert(std::invocable<omnibal::cut_pieces_fn const&, context_layout const&, home_list, int,
                             sample_list const&>);
static_assert(!std::invocable<omnibal::cut_pieces_fn const&, context_layout const&, home_list, int,
                              sample_list>);
static_assert(!std::invocable<omnibal::cut_pieces_fn const&, context_layout const&, home_list, int,
                              std::vector<int> const&>);
static_assert(std::invocable<omnibal::join_pieces_fn const&, context_layout const&, home_list, int,
                             rows const&>);
static_assert(
    !std::invocable<omnibal::join_pieces_fn const&, context_layout const&, home_list, int, rows>);
using view_list = std::vector<std::span<int const>>&;
static_assert(std::invocable<omnibal::cut_pieces_fn const&, context_layout const&, home_list, int,
                             sample_list const&, view_list>);
static_assert(!std::invocable<omnibal::cut_pieces_fn const&, context_layout const&, home_list, int,
                              sample_list, view_list>);
static_assert(std::invocable<omnibal::join_pieces_fn const&, context_layout const&, home_list, int,
                             rows const&, view_list>);
static_assert(!std::invocable<omnibal::join_pieces_fn const&, context_layout const&, home_list, int,
                              rows, view_list>);

// Workspaces, packers and queues.
static_assert(gives_result<omnibal::make_plan_workspace<1>&>);
static_assert(!gives_result<omnibal::make_plan_workspace<1>>);
static_assert(!gives_result<omnibal::rebalance_workspace<1>>);
static_assert(gives_result<omnibal::context_groups_workspace&>);
static_assert(!gives_result<omnibal::context_groups_workspace>);
static_assert(gives_result<omnibal::context_pieces_workspace&>);
static_assert(!gives_result<omnibal::context_pieces_workspace>);
static_assert(gives_result<omnibal::context_exchange_workspace&>);
static_assert(!gives_result<omnibal::context_exchange_workspace>);
static_assert(takes_samples<online&> && !takes_samples<online>);
static_assert(flushes<online&> && !flushes<online>);
static_assert(takes_steps<deferral&> && !takes_steps<deferral>);
static_assert(flushes<deferral&> && !flushes<deferral>);

// Phases own what they are given, but views.
using phase_of_arrays = decltype(omnibal::language_phase{std::vector<std::int64_t>{},
                                                         std::vector<std::int64_t>{}});
static_assert(std::same_as<decltype(phase_of_arrays::cost), std::vector<std::int64_t>>);

// Options own what they carry.
static_assert(std::same_as<decltype(omnibal::write_trace_options::process), std::string>);
static_assert(
    std::same_as<decltype(omnibal::schedule_steps_options::carried), std::vector<std::uint32_t>>);

}  // namespace

TEST_CASE("a range-for over a temporary keeps it alive") {
  std::vector<int> const costs{5, 4, 3, 2, 1, 9, 9};
  std::size_t items = 0;
  for (auto const part : omnibal::lpt(costs, 2)) items += part.size();
  for (auto const group : omnibal::best_fit_decreasing(costs, std::identity{}, 10).groups) {
    items += group.size();
  }
  CHECK(items == 2 * costs.size());

  std::vector<std::vector<std::uint32_t>> candidates;
  for (auto const& cuts : omnibal::neighbors(std::vector<std::uint32_t>{0, 2, 4}, 1)) {
    candidates.push_back(cuts);
  }
  CHECK(candidates.size() == 3);
}

TEST_CASE("a temporary grouping is an argument") {
  std::vector<int> const costs{5, 4, 3};
  auto const loads = omnibal::group_loads(omnibal::lpt(costs, 2), costs, std::identity{});
  REQUIRE(loads.size() == 2);
  CHECK(loads[0][0] == 5);
  CHECK(loads[1][0] == 7);
}

TEST_CASE("options keep the groups that an epoch leaves out") {
  std::vector<long> loads;
  for (int i = 0; i != 103; ++i) loads.push_back(100 + i);
  omnibal::schedule_steps_options const this_epoch{.remainder = omnibal::remainder_policy::carry};
  auto const schedule = omnibal::schedule_steps(loads, 8, this_epoch);
  omnibal::schedule_steps_options next = this_epoch;
  next.epoch = 1;
  next.carried = omnibal::unscheduled_groups(schedule, loads.size(), this_epoch.carried);
  CHECK(next.carried.size() == 7);
  CHECK(omnibal::schedule_steps(loads, 8, next).size() == 13);
}
