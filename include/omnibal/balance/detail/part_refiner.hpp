// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchanges of samples between parts and the search for smaller largest loads.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_ranking.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The samples of each part as a linked list, in an order that the caller chooses. Later calls
/// reuse the memory.
class part_lists {
 public:
  /// Creates parts without samples; samples are numbers below `samples`.
  void clear(std::size_t parts, std::size_t samples) {
    first_.assign(parts, none);
    next_.resize(samples);
  }
  void push_front(std::size_t part, std::uint32_t sample) {
    next_[sample] = std::exchange(first_[part], sample);
  }

  /// Calls `body(sample)` for each sample of a part.
  template <class Body>
  void for_each(std::size_t part, Body const& body) const {
    for (std::uint32_t i = first_[part]; i != none; i = next_[i]) body(i);
  }

  /// Sets the samples of the part; `number` returns the number of a sample.
  template <class Samples, class Number>
  void assign(std::size_t part, Samples const& samples, Number const& number) {
    std::uint32_t* link = &first_[part];
    for (auto const& sample : samples) {
      *link = number(sample);
      link = &next_[*link];
    }
    *link = none;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> next_;
};

/// Returns the first index from `j` on for which the cost is at most `wanted`, or `count` if there
/// is none. The costs are descending. Callers pass descending values of `wanted`, so that all
/// searches together pass through a part once.
template <class Cost>
[[nodiscard]] std::size_t first_within(std::size_t j, std::size_t count, Cost const& cost,
                                       std::int64_t wanted) {
  while (j != count && cost(j) > wanted) ++j;
  return j;
}

/// Calls `body(i)` for at most 64 evenly spaced indices below `count`.
template <class Body>
void for_each_spaced(std::size_t count, Body const& body) {
  constexpr std::size_t most = 64;
  for (std::size_t i = 0; i < count; i += (count + most - 1) / most) body(i);
}

/// The value of `j` below if sample i moves and no sample is exchanged for it.
inline constexpr std::size_t no_sample = std::numeric_limits<std::size_t>::max();

/// Calls `body(i, j)` for exchanges of sample i of one part for sample j of another part, and
/// `body(i, no_sample)` if sample i only moves. Only samples for which `may_leave(i)` is true
/// leave. With one kind of cost, j are the two samples next to the cost that is `gap` less than the
/// cost of i. With several kinds, i and j are evenly spaced samples. `leaves(i)` and `comes(j)`
/// return costs, which are in descending order.
template <std::size_t R, class Leaves, class Comes, class Filter, class Body>
void for_each_exchange(std::size_t leaving, std::size_t coming, Leaves const& leaves,
                       Comes const& comes, std::int64_t gap, Filter const& may_leave,
                       Body const& body) {
  if constexpr (R == 1) {
    auto const cost = [&](std::size_t k) { return comes(k)[0]; };
    std::size_t j = 0;
    for (std::size_t i = 0; i != leaving; ++i) {
      if (!may_leave(i)) continue;
      body(i, no_sample);
      j = first_within(j, coming, cost, leaves(i)[0] - gap);
      if (j != coming) body(i, j);
      if (j != 0) body(i, j - 1);
    }
  } else {
    for_each_spaced(leaving, [&](std::size_t i) {
      if (!may_leave(i)) return;
      body(i, no_sample);
      for_each_spaced(coming, [&](std::size_t j) { body(i, j); });
    });
  }
}

/// Replaces `best` by `other` if `other` is better, so that the first of equal exchanges stays.
template <class Exchange>
void keep_better(Exchange& best, Exchange const& other) {
  if (other.is_better_than(best)) best = other;
}

/// A part whose samples can be exchanged: their places in the order of `largest_first`, ascending.
template <std::size_t R>
struct open_part {
  std::vector<std::uint32_t> places;
  resources<R> load;
  std::uint32_t part = 0;
};

/// The positions of a sample that leaves one part and of a sample, or `nothing`, that arrives
/// instead.
template <class Gain>
struct valued_exchange {
  static constexpr std::size_t nothing = no_sample;

  std::size_t leaves = nothing;
  std::size_t comes = nothing;
  /// The decrease of the larger load of the two parts, or of the larger time of a `timed_pair`.
  Gain gain = 0;

  [[nodiscard]] bool is_better_than(valued_exchange const& other) const {
    return gain > other.gain;
  }
};

/// An exchange between parts of equal speed.
using part_exchange = valued_exchange<std::int64_t>;

/// The type of the gains of exchanges between two parts.
template <class Pair>
using gain_of = decltype(std::declval<Pair>().larger(0, 0));

/// Returns the gain if `heavy` loses the amounts `moved` and `light` receives them: the decrease of
/// the larger load or time of the two parts. `before` is the larger load or time before the
/// exchange.
template <std::size_t R, class Pair = even_pair>
[[nodiscard]] constexpr gain_of<Pair> evaluate_exchange(open_part<R> const& heavy,
                                                        open_part<R> const& light,
                                                        resources<R> const& moved,
                                                        gain_of<Pair> before,
                                                        Pair const& pair = {}) {
  return before -
         pair.larger(largest_amount(heavy.load - moved), largest_amount(light.load + moved));
}

/// Returns the exchange between `heavy` and `light` with the largest gain, if there is a gain. If
/// `counts` is `free`, an exchange may have no arriving sample. `costs` contains the costs by
/// place.
template <std::size_t R, class Pair = even_pair>
[[nodiscard]] valued_exchange<gain_of<Pair>> best_exchange(open_part<R> const& heavy,
                                                           open_part<R> const& light,
                                                           integer_costs<R> const& costs,
                                                           part_counts counts,
                                                           Pair const& pair = {}) {
  valued_exchange<gain_of<Pair>> best;
  gain_of<Pair> const before = pair.larger(largest_amount(heavy.load), largest_amount(light.load));
  auto const leaves = [&](std::size_t i) -> auto const& { return costs[heavy.places[i]]; };
  auto const comes = [&](std::size_t j) -> auto const& { return costs[light.places[j]]; };
  // The arriving sample ideally costs less than the leaving sample by the part of the excess that
  // makes both loads, or times, equal.
  std::int64_t const gap = pair.gap(heavy.load[0], light.load[0]);
  for_each_exchange<R>(
      heavy.places.size(), light.places.size(), leaves, comes, gap,
      [](std::size_t) { return true; },
      [&](std::size_t i, std::size_t j) {
        if (j == part_exchange::nothing && counts == part_counts::kept) return;
        resources<R> moved = leaves(i);
        if (j != part_exchange::nothing) moved -= comes(j);
        keep_better(best, {i, j, evaluate_exchange(heavy, light, moved, before, pair)});
      });
  return best;
}

/// Parts and their loads. For exchanges, `open` copies the samples of a part, and `close` stores
/// them again.
template <std::size_t R>
class costed_parts {
 public:
  /// Creates the parts. `part_of` contains the part of each sample, and `order` is the order of
  /// `largest_first`.
  costed_parts(integer_costs<R> const& costs, std::span<std::uint32_t const> order,
               std::span<std::uint32_t const> part_of, std::size_t parts)
      : loads_(parts, resources<R>{}) {
    costs_.reserve(order.size());
    for (std::uint32_t const sample : order) costs_.push_back(costs[sample]);
    lists_.clear(parts, order.size());
    for (std::size_t place = order.size(); place-- != 0;) {
      std::uint32_t const part = part_of[order[place]];
      loads_[part] += costs_[place];
      lists_.push_front(part, static_cast<std::uint32_t>(place));
    }
  }

  /// Returns the number of parts.
  [[nodiscard]] std::size_t size() const { return loads_.size(); }
  [[nodiscard]] std::int64_t load(std::size_t part) const { return largest_amount(loads_[part]); }
  /// Returns the costs by place.
  [[nodiscard]] integer_costs<R> const& costs() const { return costs_; }

  /// Copies the samples of a part for exchanges.
  void open(std::uint32_t part, open_part<R>& result) const {
    result.places.clear();
    lists_.for_each(part, [&](std::uint32_t place) { result.places.push_back(place); });
    result.load = loads_[part];
    result.part = part;
  }
  /// Replaces the samples and the load of a part.
  void close(std::uint32_t part, open_part<R> const& from) {
    lists_.assign(part, from.places, std::identity{});
    loads_[part] = from.load;
  }

  /// Returns the load of a part, computed from its samples.
  [[nodiscard]] std::int64_t measured_load(open_part<R> const& part) const {
    resources<R> load{};
    for (std::uint32_t const place : part.places) load += costs_[place];
    return largest_amount(load);
  }

  /// Moves a sample from `from` to `to`, and possibly another sample back.
  template <class Gain>
  void apply_exchange(valued_exchange<Gain> const& exchange, open_part<R>& from,
                      open_part<R>& to) const {
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
    for (std::uint32_t part = 0; part != loads_.size(); ++part) {
      lists_.for_each(part, [&](std::uint32_t place) { body(place, part); });
    }
  }

 private:
  void erase(open_part<R>& part, std::size_t position) const {
    part.load -= costs_[part.places[position]];
    part.places.erase(part.places.begin() + static_cast<std::ptrdiff_t>(position));
  }
  void insert(open_part<R>& part, std::uint32_t place) const {
    part.load += costs_[place];
    part.places.insert(std::lower_bound(part.places.begin(), part.places.end(), place), place);
  }

  part_lists lists_;
  integer_costs<R> costs_;
  std::vector<resources<R>> loads_;
};

/// Returns a load as a number, so that `halving_limit` can halve it.
[[nodiscard]] constexpr std::int64_t level_of(std::int64_t load) { return load; }
/// Returns a time as a number, so that `halving_limit` can halve it.
[[nodiscard]] constexpr double level_of(part_time const& time) { return time.value(); }

/// Ends a search if `steps` steps have not halved the excess of the largest load or time above the
/// target.
template <class Time>
class halving_limit {
 public:
  halving_limit(Time const& target, std::size_t steps) : target_(level_of(target)), steps_(steps) {}

  /// Returns whether the search ends before this step; `largest` is the largest load or time now,
  /// above the target.
  [[nodiscard]] bool ends(Time const& largest, std::size_t step) {
    level const now = level_of(largest);
    if (now <= goal_) {
      goal_ = target_ + (now - target_) / 2;
      last_ = step + std::min(steps_, std::numeric_limits<std::size_t>::max() - step);
    }
    return step >= last_;
  }

 private:
  using level = decltype(level_of(std::declval<Time>()));

  level target_;
  std::size_t steps_;
  level goal_ = std::numeric_limits<level>::max();
  std::size_t last_ = 0;
};

/// Accepts any exchange of samples.
struct free_exchanges {
  template <std::size_t R, class Pair>
  [[nodiscard]] auto operator()(open_part<R> const& heavy, open_part<R> const& light,
                                integer_costs<R> const& costs, part_counts counts,
                                Pair const& pair) const {
    return best_exchange(heavy, light, costs, counts, pair);
  }

  /// Accepts any subset of candidates for an exchange between two parts.
  template <class Part, class Candidates>
  [[nodiscard]] auto filter(Part const&, Part const&, Candidates const&) const {
    return [](std::uint32_t) { return true; };
  }
  template <class Part>
  [[nodiscard]] bool holds(Part const&, Part const&) const {
    return true;
  }
};

/// Lowers the largest load by exchanges between the part with this load and other parts. The load
/// of a part is the largest amount of its kinds, divided by the speed of the part if speeds differ.
/// `Exchanges` finds the best exchange of two parts.
template <std::size_t R, class Exchanges = free_exchanges, class Speeds = equal_speeds>
class part_refiner {
 public:
  /// The time of a part: its load, or its load over its speed if speeds differ.
  using time = typename Speeds::time;

  /// Creates the search. `part_of` contains the part of each sample, and `order` is the order of
  /// `largest_first`.
  part_refiner(integer_costs<R> const& costs, std::span<std::uint32_t const> order,
               std::span<std::uint32_t const> part_of, std::size_t parts, Exchanges exchanges = {},
               Speeds speeds = {})
      : exchanges_(std::move(exchanges)),
        speeds_(std::move(speeds)),
        parts_(costs, order, part_of, parts),
        ranking_(speeds_, parts, [this](std::size_t part) { return parts_.load(part); }) {}

  /// Runs exchanges until no load is above `target`, no exchange helps, or the budget is spent.
  void run(time target, search_budget budget, part_counts counts) {
    counts_ = counts;
    while (!budget.is_spent()) {
      std::uint32_t const heavy = ranking_.heaviest();
      if (time_of(heavy) <= target || !relieve(heavy, budget)) return;
    }
  }

  /// Runs exchanges of the heaviest part with the lightest part. Ends if no load is above `target`,
  /// no exchange helps, the exchanges no longer halve the excess, or the budget is spent.
  void run_with_lightest(time target, search_budget& budget, part_counts counts) {
    counts_ = counts;
    // Each part above the target requires at least one exchange.
    halving_limit<time> limit(target, 64 + 4 * parts_.size());
    while (!budget.is_spent()) {
      std::uint32_t const heavy = ranking_.heaviest();
      time const largest = time_of(heavy);
      if (largest <= target || limit.ends(largest, budget.spent())) break;
      std::uint32_t const light = ranking_.lightest();
      if (light == heavy || !even(heavy, light, budget)) break;
    }
  }

  [[nodiscard]] time largest_load() { return time_of(ranking_.heaviest()); }

  /// Calls `body(place, part)` for each sample.
  template <class Body>
  void for_each_sample(Body const& body) const {
    parts_.for_each_sample(body);
  }

 private:
  [[nodiscard]] time time_of(std::size_t part) const {
    return speeds_.time_of(part, parts_.load(part));
  }

  /// Exchanges samples of `heavy` with the lightest part, or else with the lightest other part for
  /// which an exchange helps. Returns false if no exchange helps.
  bool relieve(std::uint32_t heavy, search_budget& budget) {
    std::uint32_t const light = ranking_.lightest();
    if (light != heavy && even(heavy, light, budget)) return true;
    order_partners(heavy, light);
    return std::any_of(others_.begin(), others_.end(), [&](load_order<time> const& other) {
      return even(heavy, other.part, budget);
    });
  }

  /// Lists the parts other than `light` that are lighter than `heavy`, from the lightest on.
  void order_partners(std::uint32_t heavy, std::uint32_t light) {
    others_.clear();
    for (std::uint32_t part = 0; part != parts_.size(); ++part) {
      if (part != light && time_of(part) < time_of(heavy)) {
        others_.push_back({time_of(part), part});
      }
    }
    std::sort(others_.begin(), others_.end());
  }

  /// Exchanges samples between two parts as long as the larger of their loads decreases; returns
  /// whether it decreased.
  bool even(std::uint32_t heavy, std::uint32_t light, search_budget& budget) {
    parts_.open(heavy, heavy_);
    parts_.open(light, light_);
    bool has_changed = false;
    while (!budget.is_spent()) {
      bool const is_turned = speeds_.time_of(heavy, largest_amount(heavy_.load)) <
                             speeds_.time_of(light, largest_amount(light_.load));
      open_part<R>& from = is_turned ? light_ : heavy_;
      open_part<R>& to = is_turned ? heavy_ : light_;
      auto const pair = is_turned ? speeds_.pair(light, heavy) : speeds_.pair(heavy, light);
      auto const exchange = exchanges_(from, to, parts_.costs(), counts_, pair);
      if (exchange.leaves == part_exchange::nothing) break;
      apply_checked(
          {"part_refiner", "exchange"}, exchange.gain,
          [&] { return pair.larger(parts_.measured_load(from), parts_.measured_load(to)); },
          [&] { parts_.apply_exchange(exchange, from, to); });
      budget.spend();
      has_changed = true;
    }
    if (!has_changed) return false;
    close(heavy, heavy_);
    close(light, light_);
    return true;
  }

  void close(std::uint32_t part, open_part<R> const& from) {
    parts_.close(part, from);
    ranking_.set(part, parts_.load(part));
  }

  Exchanges exchanges_;
  Speeds speeds_;
  costed_parts<R> parts_;
  ranking_for<Speeds> ranking_;
  part_counts counts_ = part_counts::free;
  open_part<R> heavy_;
  open_part<R> light_;
  std::vector<load_order<time>> others_;
};

}  // namespace omnibal::inline v0::detail
