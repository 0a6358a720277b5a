#pragma once

/// \file
/// The samples of parts, as lists that exchange samples.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/part_exchange.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The samples of each part as a list by ascending place in the order of `largest_first`.
template <std::size_t R>
class part_lists {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
  part_lists(whole_costs<R> const& costs, std::span<std::uint32_t const> order,
             std::span<std::uint32_t const> part_of, std::size_t parts)
      : loads_(parts, resources<R>{}), first_(parts, none), next_(order.size()) {
    costs_.reserve(order.size());
    for (std::uint32_t const sample : order) costs_.push_back(costs[sample]);
    for (std::size_t place = order.size(); place-- != 0;) {
      std::uint32_t const part = part_of[order[place]];
      loads_[part] += costs_[place];
      next_[place] = first_[part];
      first_[part] = static_cast<std::uint32_t>(place);
    }
  }

  /// The number of parts.
  [[nodiscard]] std::size_t size() const { return loads_.size(); }
  [[nodiscard]] std::int64_t load(std::size_t part) const { return largest_amount(loads_[part]); }
  /// By place.
  [[nodiscard]] whole_costs<R> const& costs() const { return costs_; }

  /// Copies the samples of a part, so that they can be exchanged.
  void open(std::uint32_t part, open_part<R>& result) const {
    result.places.clear();
    for (std::uint32_t i = first_[part]; i != none; i = next_[i]) result.places.push_back(i);
    result.load = loads_[part];
  }
  /// Makes these the samples of the part.
  void close(std::uint32_t part, open_part<R> const& from) {
    std::uint32_t* link = &first_[part];
    for (std::uint32_t const place : from.places) {
      *link = place;
      link = &next_[place];
    }
    *link = none;
    loads_[part] = from.load;
  }

  /// Lets a sample leave `from` for `to`, and maybe one come for it.
  void carry_out(part_exchange const& exchange, open_part<R>& from, open_part<R>& to) const {
    std::uint32_t const leaves = from.places[exchange.leaves];
    erase(from, exchange.leaves);
    if (exchange.comes != part_exchange::nothing) {
      std::uint32_t const comes = to.places[exchange.comes];
      erase(to, exchange.comes);
      insert(from, comes);
    }
    insert(to, leaves);
  }

  /// Calls `body(place, part)` for each sample.
  template <class Body>
  void for_each_sample(Body const& body) const {
    for (std::uint32_t part = 0; part != first_.size(); ++part) {
      for (std::uint32_t i = first_[part]; i != none; i = next_[i]) body(i, part);
    }
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  void erase(open_part<R>& part, std::size_t position) const {
    part.load -= costs_[part.places[position]];
    part.places.erase(part.places.begin() + static_cast<std::ptrdiff_t>(position));
  }
  void insert(open_part<R>& part, std::uint32_t place) const {
    part.load += costs_[place];
    part.places.insert(std::lower_bound(part.places.begin(), part.places.end(), place), place);
  }

  whole_costs<R> costs_;
  std::vector<resources<R>> loads_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> next_;
};

}  // namespace omnibal::inline v0::detail
