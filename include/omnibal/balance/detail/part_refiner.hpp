#pragma once

/// \file
/// Exchanges of samples between parts: lists, candidates, and the search that lowers the
/// largest load.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
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

/// The samples of each part as a list, in an order of the caller. Keeps its memory.
class part_lists {
 public:
  /// So many parts without samples, which are numbers below `samples`.
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

  /// Makes these the samples of the part; `number` gives that of one of them.
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

/// The first of `count` samples, whose costs fall, from `j` on that costs at most `wanted`, or
/// `count`. What should come falls with what leaves, so that all searches go through a part once.
template <class Cost>
[[nodiscard]] std::size_t first_within(std::size_t j, std::size_t count, Cost const& cost,
                                       std::int64_t wanted) {
  while (j != count && cost(j) > wanted) ++j;
  return j;
}

/// Calls `body(i)` for at most 64 of so many samples, evenly spaced.
template <class Body>
void for_each_spaced(std::size_t count, Body const& body) {
  // In 44 generated cases of two kinds of cost with over 64 samples on a part, parts end 1.0 to 5.2
  // times as far above the mean with 32, mostly 1.6, in 0.3 to 0.6 of the time; with 128 they end
  // 0.3 to 1.1 times as far, mostly 0.6, in 1.7 to 8 times the time.
  constexpr std::size_t most = 64;
  for (std::size_t i = 0; i < count; i += (count + most - 1) / most) body(i);
}

/// The position of a sample that does not come.
inline constexpr std::size_t no_sample = std::numeric_limits<std::size_t>::max();

/// Calls `body(i, j)` where sample i of `leaving` that `may_leave(i)` may be exchanged for sample j
/// of `coming`, or for none. With one kind of costs j is on either side of what costs `gap` less
/// than i; with several both are among evenly spaced ones. `leaves(i)` and `comes(j)` are costs,
/// which fall.
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

/// Keeps the best exchange, the first of equal ones.
template <class Exchange>
void keep_better(Exchange& best, Exchange const& other) {
  if (other.is_better_than(best)) best = other;
}

/// A part whose samples can be exchanged: their places in the order of `largest_first`, ascending.
template <std::size_t R>
struct open_part {
  std::vector<std::uint32_t> places;
  resources<R> load;
};

/// Positions of a sample that leaves one part and of one, or `nothing`, that comes for it.
struct part_exchange {
  static constexpr std::size_t nothing = no_sample;

  std::size_t leaves = nothing;
  std::size_t comes = nothing;
  /// The larger load of the two parts afterwards.
  std::int64_t largest = 0;

  [[nodiscard]] bool is_better_than(part_exchange const& other) const {
    return largest < other.largest;
  }
};

/// The exchange between `heavy` and `light` after which the larger of their loads is least, if that
/// is less than now; `may_move` allows that nothing comes. `costs` has the costs by place.
template <std::size_t R>
[[nodiscard]] part_exchange best_exchange(open_part<R> const& heavy, open_part<R> const& light,
                                          integer_costs<R> const& costs, bool may_move) {
  part_exchange best{.largest = std::max(largest_amount(heavy.load), largest_amount(light.load))};
  auto const leaves = [&](std::size_t i) -> auto const& { return costs[heavy.places[i]]; };
  auto const comes = [&](std::size_t j) -> auto const& { return costs[light.places[j]]; };
  // What comes should cost half of the excess less than what leaves.
  std::int64_t const gap = (heavy.load[0] - light.load[0]) / 2;
  for_each_exchange<R>(
      heavy.places.size(), light.places.size(), leaves, comes, gap,
      [](std::size_t) { return true; },
      [&](std::size_t i, std::size_t j) {
        if (j == part_exchange::nothing && !may_move) return;
        resources<R> moved = leaves(i);
        if (j != part_exchange::nothing) moved -= comes(j);
        keep_better(best, {i, j,
                           std::max(largest_amount(heavy.load - moved),
                                    largest_amount(light.load + moved))});
      });
  return best;
}

/// Parts and their loads, which `open_part` takes samples from and gives them to.
template <std::size_t R>
class costed_parts {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
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

  /// The number of parts.
  [[nodiscard]] std::size_t size() const { return loads_.size(); }
  [[nodiscard]] std::int64_t load(std::size_t part) const { return largest_amount(loads_[part]); }
  /// By place.
  [[nodiscard]] integer_costs<R> const& costs() const { return costs_; }

  /// Copies the samples of a part, so that they can be exchanged.
  void open(std::uint32_t part, open_part<R>& result) const {
    result.places.clear();
    lists_.for_each(part, [&](std::uint32_t place) { result.places.push_back(place); });
    result.load = loads_[part];
  }
  /// Makes these the samples of the part.
  void close(std::uint32_t part, open_part<R> const& from) {
    lists_.assign(part, from.places, std::identity{});
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

/// Ends a search that gets no nearer to its target: one in which a number of steps has not halved
/// what the largest load has above it.
class halving_limit {
 public:
  halving_limit(std::int64_t target, std::size_t steps) : target_(target), steps_(steps) {}

  /// True where the search is to end before this step; `load` is the largest now, above the target.
  [[nodiscard]] bool ends(std::int64_t load, std::size_t step) {
    if (load <= goal_) {
      goal_ = target_ + (load - target_) / 2;
      last_ = step + std::min(steps_, std::numeric_limits<std::size_t>::max() - step);
    }
    return step >= last_;
  }

 private:
  std::int64_t target_;
  std::size_t steps_;
  std::int64_t goal_ = std::numeric_limits<std::int64_t>::max();
  std::size_t last_ = 0;
};

/// Any exchange of samples is legal.
struct free_exchanges {
  template <std::size_t R>
  [[nodiscard]] part_exchange operator()(open_part<R> const& heavy, open_part<R> const& light,
                                         integer_costs<R> const& costs, bool may_move) const {
    return best_exchange(heavy, light, costs, may_move);
  }

  /// Which of the subsets of candidates two parts may exchange: any.
  template <class Samples, class Candidates>
  [[nodiscard]] auto filter(Samples const&, Samples const&, Candidates const&) const {
    return [](std::uint32_t) { return true; };
  }
  template <class Samples>
  [[nodiscard]] bool holds(Samples const&, Samples const&) const {
    return true;
  }
};

/// Lowers the largest load by exchanges between the part that has it and another one. The largest
/// amount of its kinds is the load of a part. `Exchanges` finds the best exchange of two parts.
template <std::size_t R, class Exchanges = free_exchanges>
class part_refiner {
 public:
  /// `part_of` has the part of each sample, `order` is that of `largest_first`.
  part_refiner(integer_costs<R> const& costs, std::span<std::uint32_t const> order,
               std::span<std::uint32_t const> part_of, std::size_t parts, Exchanges exchanges = {})
      : exchanges_(std::move(exchanges)),
        parts_(costs, order, part_of, parts),
        rank_(parts),
        heaviest_nodes_(winner_tree<uint128>::nodes_for(parts)),
        lightest_nodes_(heaviest_nodes_.size()) {
    heaviest().fill(parts, [this](std::size_t part) { return inverse_word(part); });
    lightest().fill(parts, [this](std::size_t part) { return word(part); });
  }

  /// Exchanges until no load is above `target`, nothing helps or there were `exchanges`.
  void run(std::int64_t target, std::size_t exchanges, bool may_move) {
    left_ = exchanges;
    may_move_ = may_move;
    while (left_ != 0) {
      std::uint32_t const heavy = rank_.part(heaviest().least());
      if (parts_.load(heavy) <= target || !relieve(heavy)) return;
    }
  }

  /// The same with the lightest part alone, and only as long as that brings the largest load much
  /// nearer to the target. Returns how many exchanges are left.
  std::size_t run_with_lightest(std::int64_t target, std::size_t exchanges, bool may_move) {
    left_ = exchanges;
    may_move_ = may_move;
    // Each part that is above the target takes an exchange at least. Half and twice as many end at
    // the same loads in 18 generated families; without a limit 50,000 samples on 16 parts, of which
    // 320 have nearly all of the cost, take 1.3 times as long and end at a quarter of what is left.
    halving_limit limit(target, 64 + 4 * parts_.size());
    while (left_ != 0) {
      std::uint32_t const heavy = rank_.part(heaviest().least());
      std::int64_t const load = parts_.load(heavy);
      if (load <= target || limit.ends(load, exchanges - left_)) break;
      std::uint32_t const light = rank_.part(lightest().least());
      if (light == heavy || !even(heavy, light)) break;
    }
    return left_;
  }

  [[nodiscard]] std::int64_t largest_load() { return parts_.load(rank_.part(heaviest().least())); }

  /// Calls `body(place, part)` for each sample.
  template <class Body>
  void for_each_sample(Body const& body) const {
    parts_.for_each_sample(body);
  }

 private:
  [[nodiscard]] winner_tree<uint128> heaviest() { return winner_tree<uint128>(heaviest_nodes_); }
  [[nodiscard]] winner_tree<uint128> lightest() { return winner_tree<uint128>(lightest_nodes_); }
  [[nodiscard]] uint128 word(std::size_t part) const { return rank_(parts_.load(part), part); }
  [[nodiscard]] uint128 inverse_word(std::size_t part) const {
    return rank_(std::numeric_limits<std::int64_t>::max() - parts_.load(part), part);
  }

  /// Evens a part with the lightest one, or else the lightest other with which that is possible.
  bool relieve(std::uint32_t heavy) {
    std::uint32_t const light = rank_.part(lightest().least());
    if (light != heavy && even(heavy, light)) return true;
    others_.clear();
    for (std::size_t part = 0; part != parts_.size(); ++part) {
      if (part != light && parts_.load(part) < parts_.load(heavy)) others_.push_back(word(part));
    }
    std::sort(others_.begin(), others_.end());
    return std::any_of(others_.begin(), others_.end(),
                       [&](uint128 other) { return even(heavy, rank_.part(other)); });
  }

  /// Exchanges between two parts as long as the larger of their loads falls; true where it did.
  bool even(std::uint32_t heavy, std::uint32_t light) {
    parts_.open(heavy, heavy_);
    parts_.open(light, light_);
    bool has_changed = false;
    while (left_ != 0) {
      bool const is_turned = largest_amount(heavy_.load) < largest_amount(light_.load);
      open_part<R>& from = is_turned ? light_ : heavy_;
      open_part<R>& to = is_turned ? heavy_ : light_;
      part_exchange const exchange = exchanges_(from, to, parts_.costs(), may_move_);
      if (exchange.leaves == part_exchange::nothing) break;
      parts_.carry_out(exchange, from, to);
      --left_;
      has_changed = true;
    }
    if (!has_changed) return false;
    close(heavy, heavy_);
    close(light, light_);
    return true;
  }

  void close(std::uint32_t part, open_part<R> const& from) {
    parts_.close(part, from);
    heaviest().set(part, inverse_word(part));
    lightest().set(part, word(part));
  }

  Exchanges exchanges_;
  costed_parts<R> parts_;
  load_key<uint128> rank_;
  std::vector<uint128> heaviest_nodes_;
  std::vector<uint128> lightest_nodes_;
  std::size_t left_ = 0;
  bool may_move_ = true;
  open_part<R> heavy_;
  open_part<R> light_;
  std::vector<uint128> others_;
};

}  // namespace omnibal::inline v0::detail
