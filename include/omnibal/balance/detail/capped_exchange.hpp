#pragma once

/// \file
/// Exchanges between parts that must stay within a capacity.

#include <omnibal/balance/detail/part_exchange.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Finds the best exchange of two parts after which both fit the capacity: for each sample that
/// may leave, among the samples on either side of the one that would even the costs best.
template <class Layout>
class capped_exchanges {
 public:
  /// `order[place]` is the sample at each place. Both arguments must outlive this object.
  capped_exchanges(measured<Layout> const& input, std::span<std::uint32_t const> order)
      : input_(&input), order_(order) {}

  [[nodiscard]] part_exchange operator()(open_part<1> const& heavy, open_part<1> const& light,
                                         whole_costs<1> const& costs, bool may_move) const {
    constexpr std::size_t most_on_a_side = 8;
    part_exchange best{.largest = heavy.load[0]};
    std::int64_t const excess = heavy.load[0] - light.load[0];
    amounts_type const heavy_demand = demand_of_part(heavy);
    amounts_type const light_demand = demand_of_part(light);
    auto const consider = [&](std::size_t i, std::size_t j) {
      bool const comes_any = j != part_exchange::nothing;
      std::int64_t const moved =
          costs[heavy.places[i]][0] - (comes_any ? costs[light.places[j]][0] : 0);
      std::int64_t const largest = std::max(heavy.load[0] - moved, light.load[0] + moved);
      if (largest >= best.largest) return;
      amounts_type const goes = demand_at(heavy.places[i]);
      amounts_type const comes = comes_any ? demand_at(light.places[j]) : amounts_type{};
      // Compared without a sum, which may exceed the largest integer.
      if (!comes.fits(input_->capacity - (heavy_demand - goes))) return;
      if (!goes.fits(input_->capacity - (light_demand - comes))) return;
      best = {i, j, largest};
    };
    std::size_t middle = 0;
    for (std::size_t i = 0; i != heavy.places.size(); ++i) {
      if (may_move) consider(i, part_exchange::nothing);
      std::int64_t const wanted = costs[heavy.places[i]][0] - excess / 2;
      while (middle != light.places.size() && costs[light.places[middle]][0] > wanted) ++middle;
      std::size_t const first = middle - std::min(middle, most_on_a_side);
      std::size_t const last = std::min(light.places.size(), middle + most_on_a_side);
      for (std::size_t j = first; j != last; ++j) consider(i, j);
    }
    return holds(best, heavy, light) ? best : part_exchange{.largest = heavy.load[0]};
  }

 private:
  using amounts_type = typename Layout::amounts_type;

  [[nodiscard]] amounts_type demand_at(std::uint32_t place) const {
    return input_->amounts(order_[place]);
  }
  [[nodiscard]] amounts_type demand_of_part(open_part<1> const& part) const {
    amounts_type sum{};
    for (std::uint32_t const place : part.places) sum += demand_at(place);
    return sum;
  }

  /// False where rounding makes a part exceed the capacity.
  [[nodiscard]] bool holds(part_exchange const& chosen, open_part<1> const& heavy,
                           open_part<1> const& light) const {
    if constexpr (std::integral<typename amounts_type::value_type>) {
      return true;
    } else {
      if (chosen.leaves == part_exchange::nothing) return true;
      return fits_exchanged(heavy, chosen.leaves, light, chosen.comes) &&
             fits_exchanged(light, chosen.comes, heavy, chosen.leaves);
    }
  }

  /// True where a part fits without one of its samples and with one of another, summed by index.
  [[nodiscard]] bool fits_exchanged(open_part<1> const& part, std::size_t goes,
                                    open_part<1> const& other, std::size_t comes) const {
    std::vector<std::uint32_t> samples;
    for (std::size_t i = 0; i != part.places.size(); ++i) {
      if (i != goes) samples.push_back(order_[part.places[i]]);
    }
    if (comes != part_exchange::nothing) samples.push_back(order_[other.places[comes]]);
    std::sort(samples.begin(), samples.end());
    return input_->load(samples).fits(input_->capacity);
  }

  measured<Layout> const* input_;
  std::span<std::uint32_t const> order_;
};

}  // namespace omnibal::inline v0::detail
