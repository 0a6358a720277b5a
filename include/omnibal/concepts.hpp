// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Requirements on the functors that a trainer passes to the algorithms.

#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>

namespace omnibal::inline v0 {

struct packing;
class grouping;

/// A range of samples: any sized random-access range. The library stores indices into the range and
/// never copies of its elements.
template <class Range>
concept sample_range =
    std::ranges::random_access_range<Range const> && std::ranges::sized_range<Range const>;

/// The type of one sample, as the functors receive it.
template <sample_range Samples>
using sample_reference = std::ranges::range_reference_t<Samples const>;

/// The type that a demand or cost functor returns for a sample.
template <class Function, class Sample>
using demand_result = std::remove_cvref_t<std::invoke_result_t<Function const&, Sample>>;

/// A functor from a sample to its demand: `resources`, or a number, which represents one resource.
/// The functor must return equal results for equal samples at any time and on any rank.
template <class Function, class Sample>
concept demand_function =
    std::regular_invocable<Function const&, Sample> && measure<demand_result<Function, Sample>>;

/// A functor from a sample to a number, the cost of the sample; a member pointer is such a functor.
/// The functor must return equal results for equal samples at any time and on any rank.
template <class Function, class Sample>
concept cost_function = std::regular_invocable<Function const&, Sample> &&
    scalar_measure<demand_result<Function, Sample>>;

/// An accumulator for the cost of a set of samples that is not a sum over the samples, such as the
/// cost of a padded batch, `count * longest`. A call of `add` never decreases `value`, and the
/// value does not depend on the order of the calls.
template <class Set, class Sample>
concept set_cost = std::copy_constructible<Set> &&
    requires(Set set, Set const& read, Sample&& sample) {
  set.add(static_cast<Sample&&>(sample));
  { read.value() } -> scalar_measure;
};

/// A range of capacities, such as one for each part or rank.
template <class Range>
concept capacity_range =
    sample_range<Range> && measure<std::remove_cvref_t<sample_reference<Range>>>;

/// A functor of (stage, first, last) that returns the cost of the layers [first, last) if they form
/// the stage with this index. Equal arguments must give equal results: measure costs once and store
/// them in a table.
template <class Function>
concept stage_cost =
    std::regular_invocable<Function const&, std::size_t, std::size_t, std::size_t> &&
    scalar_measure<std::remove_cvref_t<
        std::invoke_result_t<Function const&, std::size_t, std::size_t, std::size_t>>>;

/// A functor of (stage, first, last) that returns true if the layers [first, last) may form the
/// stage with this index. Equal arguments must give equal results.
template <class Function>
concept stage_predicate = std::predicate<Function const&, std::size_t, std::size_t, std::size_t>;

/// A predicate on the load of a group, which is true if the group is full enough to be kept.
template <class Rule, class Load>
concept keep_rule = std::predicate<Rule const&, Load const&>;

/// A functor that permutes indices in place. The order depends only on the number of indices, on
/// the round and on the seed of the functor.
template <class Shuffle>
concept shuffler = std::invocable<Shuffle const&, std::span<std::uint32_t>, std::uint64_t>;

/// A range of loads of groups, whose elements convert to `Load`.
template <class Range, class Load>
concept load_range = sample_range<Range> && std::convertible_to<sample_reference<Range>, Load>;

/// A type with the call operator of the algorithms of pack/.
template <class Packer, class Samples, class Demand, class Capacity>
concept packer = requires(Packer const& pack, Samples const& samples, Demand const& demand,
                          Capacity const& capacity) {
  { pack(samples, demand, capacity) } -> std::same_as<packing>;
};

/// A type with the call operator of the algorithms of balance/.
template <class Balancer, class Samples, class Cost>
concept balancer = requires(Balancer const& balance, Samples const& samples, std::size_t parts,
                            Cost const& cost) {
  { balance(samples, parts, cost) } -> std::same_as<grouping>;
};

namespace detail {

/// Returns the element at an index, without a check.
template <sample_range Range>
[[nodiscard]] constexpr decltype(auto) element_at(Range const& range, std::size_t index) {
  return std::ranges::begin(
      range)[static_cast<std::ranges::range_difference_t<Range const>>(index)];
}

/// Calls a functor like `std::invoke`. The function avoids the header of `std::invoke`, which is
/// slow to compile.
template <class Function, class Argument>
constexpr decltype(auto) call(Function const& function, Argument& argument) {
  return std::apply(function, std::tie(argument));
}

/// True if `Demand` measures the samples with the same number of kinds of resources as `Capacity`
/// has.
template <class Samples, class Demand, class Capacity>
concept measured_samples = sample_range<Samples> && measure<Capacity> &&
    demand_function<Demand, sample_reference<Samples>> &&
    same_kinds<demand_result<Demand, sample_reference<Samples>>, Capacity>;

/// The type of a capacity, or of the capacities of a range.
template <class Capacity>
struct capacity_of {
  using type = Capacity;
};
template <capacity_range Range>
struct capacity_of<Range> {
  using type = std::remove_cvref_t<sample_reference<Range>>;
};

/// The type of the weights in which measures of these samples are added up, and the type of the
/// sums of all kinds.
template <class Samples, class Measure>
using measured_weight = working_weight<demand_result<Measure, sample_reference<Samples>>>;
template <class Samples, class Measure>
using measured_amounts = resources<kinds_of<demand_result<Measure, sample_reference<Samples>>>,
                                   measured_weight<Samples, Measure>>;

/// The type in which these samples are packed: `std::int64_t`, or `double` if any amount is a
/// floating-point number.
template <class Samples, class Demand, class Capacity>
using working_weight_of =
    working_weight<demand_result<Demand, sample_reference<Samples>>, Capacity>;

}  // namespace detail

}  // namespace omnibal::inline v0
