// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packing of some of the samples.

#include <omnibal/detail/measure.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/portfolio.hpp>
#include <omnibal/pack/detail/scalar_best_fit.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/score.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace omnibal::inline v0::detail {

/// Returns a packing with few groups. Precondition: each sample fits an empty group.
template <class Layout>
[[nodiscard]] grouping pack_afresh(measured<Layout>&& input) {
  using amounts_type = typename Layout::amounts_type;
  if constexpr (amounts_type::size() == 1 && std::integral<typename amounts_type::value_type>) {
    packing_report unused;
    auto sampled = pack_sampled(input, size_measure::sum_of_shares, unused);
    grouping groups = pack_scalars(std::move(input)).groups;
    return sampled && sampled->size() < groups.size() ? std::move(*sampled) : std::move(groups);
  } else {
    return pack_portfolio(std::move(input), size_measure::sum_of_shares, normal_portfolio).groups;
  }
}

/// Returns a packing of some of the samples, given by their numbers in `input`.
template <class Layout>
[[nodiscard]] grouping pack_afresh(measured<Layout> const& input,
                                   std::span<std::uint32_t const> samples) {
  measured<Layout> some{input.layout, input.capacity, input.units, {}, {}};
  some.demands.reserve(samples.size());
  for (std::uint32_t const k : samples) some.demands.push_back(input.demands[k]);
  grouping const packed = pack_afresh(std::move(some));
  grouping result;
  result.reserve(packed.size(), samples.size());
  for (std::size_t g = 0; g != packed.size(); ++g) {
    for (std::uint32_t const number : packed[g]) result.push(samples[number]);
    result.close();
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
