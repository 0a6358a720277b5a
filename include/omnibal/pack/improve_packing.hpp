// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Local search on a packing.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/checked_gain.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/executor.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/improve_packing/annealing_fill.hpp>
#include <omnibal/pack/improve_packing/bin_elimination.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/pack/score.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws `std::invalid_argument` for a group whose load is `load` without the sample `index`,
/// because the demand of the sample exceeds the remaining room.
template <class Layout>
[[noreturn]] void reject_load(std::string_view function, measured<Layout> const& input,
                              std::size_t group, typename Layout::amounts_type const& load,
                              typename Layout::amounts_type const& demand, std::uint32_t index) {
  std::size_t kind = 0;
  while (kind + 1 < load.size() && load[kind] <= input.capacity[kind] - demand[kind]) ++kind;
  auto const text_of = [&](typename Layout::amounts_type const& amounts) {
    return to_text(input.in_user_units(amounts, input.units)[kind]);
  };
  throw_invalid(function, "start.groups[", group, "] takes ", text_of(load), " and ",
                text_of(demand), " of sample ", index, " in resource ", kind, ", must be at most ",
                text_of(input.capacity));
}

/// Returns the non-empty groups of `given`, with each index replaced by the number of the sample
/// among the samples that fit. Throws `std::invalid_argument` unless `given` is a packing of the
/// samples of `input`.
template <class Layout>
[[nodiscard]] grouping checked_numbers(std::string_view function, measured<Layout> const& input,
                                       packing const& given) {
  std::size_t const count = input.size() + input.oversized.size();
  if (given.oversized != input.oversized) {
    throw_invalid(function, "start lists ", given.oversized.size(), " oversized samples, not the ",
                  input.oversized.size(),
                  " that exceed this capacity, or lists others, or not in ascending order");
  }
  permutation_check named(function, "start", "samples", count);
  named.take(given.oversized);
  named.take(given.groups.items());
  named.finish();
  std::vector<std::uint32_t> number_of(count);
  fitting_indices indices(input.oversized);
  for (std::uint32_t k = 0; k != input.size(); ++k) number_of[indices.next()] = k;

  grouping result;
  result.reserve(given.groups.size(), input.size());
  for (std::size_t g = 0; g != given.groups.size(); ++g) {
    auto room = input.layout.empty_room();
    for (std::uint32_t const index : given.groups[g]) {
      std::uint32_t const number = number_of[index];
      if (!input.layout.fits(room, input.demands[number])) {
        reject_load(function, input, g, input.layout.load(room), input.amounts(number), index);
      }
      input.layout.take(room, input.demands[number]);
      result.push(number);
    }
    if (!given.groups[g].empty()) result.close();
  }
  return result;
}

/// Inverts `checked_numbers`; empty groups are dropped too.
template <class Layout>
[[nodiscard]] grouping to_indices(grouping const& numbers, measured<Layout> const& input) {
  std::vector<std::uint32_t> items(numbers.items().begin(), numbers.items().end());
  number_to_index(items, input.oversized);
  std::vector<std::uint32_t> offsets(numbers.offsets().begin(), numbers.offsets().end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return grouping(std::move(offsets), std::move(items));
}

/// A search for packings with fewer groups, pass by pass. Passes exchange samples with a pool until
/// a pass gains little; for integers an `annealing_fill` follows.
template <class Layout>
class group_search {
 public:
  /// `input` must outlive this object.
  group_search(measured<Layout> const& input, std::uint64_t seed) : input_(input), seed_(seed) {
    by_exchanges_.emplace(input, seed);
  }

  /// Runs one pass over `groups`, which never increases the number of groups. No packing has fewer
  /// groups than `bound`. Precondition: `groups` has more than `bound` groups.
  void run(grouping& groups, std::size_t bound) {
    if (by_exchanges_) {
      by_exchanges_->run(groups);
      if (!can_walk || !by_exchanges_->has_stalled()) return;
      by_exchanges_.reset();
    } else if constexpr (can_walk) {
      if (!walk_) walk_.emplace(input_, seed_);
      walk_->run(groups, bound);
    }
  }

  /// Returns true once: when the annealing has done as much work as a thorough bound costs.
  [[nodiscard]] bool has_earned_bound() {
    if constexpr (can_walk) {
      if (!has_bound_ && walk_ && walk_->work() >= dual_feasible_bounds::max_steps) {
        has_bound_ = true;
        return true;
      }
    }
    return false;
  }

  /// Returns true if further passes would gain nothing.
  [[nodiscard]] bool is_exhausted() const {
    if (by_exchanges_) return by_exchanges_->is_exhausted();
    if constexpr (can_walk) return walk_ && walk_->is_exhausted();
    return false;
  }

 private:
  using amounts_type = typename Layout::amounts_type;
  static constexpr bool can_walk = std::integral<typename amounts_type::value_type>;

  measured<Layout> const& input_;
  std::uint64_t seed_;
  std::optional<group_reducer<Layout>> by_exchanges_;
  std::optional<std::conditional_t<can_walk, annealing_fill<Layout>, int>> walk_;
  bool has_bound_ = false;
};

/// A search that levels the loads of two groups. Exchanges of samples continue while they reduce
/// the sum, over the groups, of the squared shares of the capacity.
template <class Layout>
class pair_evener {
 public:
  using amounts_type = typename Layout::amounts_type;
  using share_type = capacity_shares<amounts_type::size(), typename amounts_type::value_type>;

  /// Both arguments must outlive this object.
  pair_evener(measured<Layout> const& input, share_type const& share)
      : input_(input), share_(share) {}

  /// Levels the loads of two different groups and appends both to `result`. Returns true if any
  /// sample moved.
  bool run(std::span<std::uint32_t const> larger, std::span<std::uint32_t const> smaller,
           grouping& result) {
    large_.assign(larger);
    small_.assign(smaller);
    large_.load = input_.load(large_.samples);
    small_.load = input_.load(small_.samples);
    bool const is_evener = exchange();
    append(result, large_.samples);
    append(result, small_.samples);
    return is_evener;
  }

  /// Appends a group to `result`.
  static void append(grouping& result, std::span<std::uint32_t const> samples) {
    for (std::uint32_t const sample : samples) result.push(sample);
    result.close();
  }

 private:
  static constexpr std::size_t kinds = amounts_type::size();

  struct group {
    std::vector<std::uint32_t> samples;
    amounts_type load;

    void assign(std::span<std::uint32_t const> from) { samples.assign(from.begin(), from.end()); }
  };

  /// Returns the sum of the squared shares of the capacity.
  [[nodiscard]] std::int64_t unevenness(amounts_type const& load) const {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r != kinds; ++r) {
      // All shares together are at most 2^30.
      std::uint64_t const share = share_(load[r], r) >> 33;
      sum += share * share;
    }
    return static_cast<std::int64_t>(sum);
  }

  /// Returns the gain if the groups have these loads afterwards: the decrease of the sum of the
  /// squared shares from `before`.
  [[nodiscard]] std::int64_t evaluate_exchange(amounts_type const& larger,
                                               amounts_type const& smaller,
                                               std::int64_t before) const {
    return before - unevenness(larger) - unevenness(smaller);
  }
  /// Returns the tolerance of a checked gain. Rounding changes a share, which is at most 2^30, by
  /// one unit.
  [[nodiscard]] static constexpr std::int64_t tolerance() {
    bool const is_exact = std::integral<typename amounts_type::value_type>;
    return is_exact ? 0 : static_cast<std::int64_t>(2 * kinds) << 31;
  }

  /// Exchanges samples of the two groups, at most one of each group at a time; returns true if any
  /// sample moved.
  bool exchange() {
    // Limits the exchanges of one pair of groups per pass.
    search_budget budget(4);
    while (!budget.is_spent() && exchange_once()) budget.spend();
    return budget.spent() != 0;
  }

  bool exchange_once() {
    std::size_t const from_large = candidates(large_);
    std::size_t const from_small = candidates(small_);
    std::int64_t const before = unevenness(large_.load) + unevenness(small_.load);
    std::int64_t best_gain = 0;
    std::size_t best[2] = {from_large, from_small};
    for (std::size_t i = 0; i <= from_large; ++i) {
      amounts_type const goes = candidate(large_, i);
      amounts_type const large_rest = large_.load - goes;
      for (std::size_t j = 0; j <= from_small; ++j) {
        amounts_type const comes = candidate(small_, j);
        amounts_type const small_rest = small_.load - comes;
        // Compares with a difference, because a sum may exceed the largest integer.
        if (!comes.fits(input_.capacity - large_rest)) continue;
        if (!goes.fits(input_.capacity - small_rest)) continue;
        std::int64_t const gain = evaluate_exchange(large_rest + comes, small_rest + goes, before);
        if (gain <= best_gain) continue;
        best_gain = gain;
        best[0] = i;
        best[1] = j;
      }
    }
    return best_gain != 0 && apply_exchange(best[0], best[1], best_gain);
  }

  /// The maximum number of samples of a group that an exchange considers.
  static constexpr std::size_t max_candidates = 16;

  /// Returns the number of candidates of a group: samples at even distances. Candidate
  /// `candidates(from)` means no sample.
  [[nodiscard]] static std::size_t candidates(group const& from) {
    return std::min(from.samples.size(), max_candidates);
  }
  [[nodiscard]] static std::size_t position(group const& from, std::size_t candidate) {
    return candidate * from.samples.size() / candidates(from);
  }
  [[nodiscard]] amounts_type candidate(group const& from, std::size_t k) const {
    return k == candidates(from) ? amounts_type{} : input_.amounts(from.samples[position(from, k)]);
  }

  /// Returns false and changes nothing if rounding makes a group exceed the capacity.
  bool apply_exchange(std::size_t goes, std::size_t comes, std::int64_t gain) {
    group larger = replaced(large_, goes, small_, comes);
    group smaller = replaced(small_, comes, large_, goes);
    if (!larger.load.fits(input_.capacity) || !smaller.load.fits(input_.capacity)) return false;
    auto const objective = [&] {
      return unevenness(input_.load(large_.samples)) + unevenness(input_.load(small_.samples));
    };
    auto const replace = [&] {
      large_ = std::move(larger);
      small_ = std::move(smaller);
    };
    apply_checked({"group_evener", "exchange"}, gain, objective, replace, tolerance());
    return true;
  }

  /// Returns `from` without one candidate and with one candidate of `other`.
  [[nodiscard]] group replaced(group const& from, std::size_t goes, group const& other,
                               std::size_t comes) const {
    group result{from.samples, {}};
    auto& samples = result.samples;
    if (goes != candidates(from)) {
      samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(position(from, goes)));
    }
    if (comes != candidates(other)) samples.push_back(other.samples[position(other, comes)]);
    result.load = input_.load(samples);
    return result;
  }

  measured<Layout> const& input_;
  share_type const& share_;
  group large_;
  group small_;
};

/// A search that levels the loads of groups, pass by pass. The group with the largest load
/// exchanges samples with the group with the smallest load, the second largest with the second
/// smallest, and further pairs likewise. Passes use the resources in turn, and then their sum, as
/// the load. An executor runs parts of a pass: the pairs are independent.
template <class Layout, executor Executor>
class group_evener {
 public:
  /// Both arguments must outlive this object.
  group_evener(measured<Layout> const& input, Executor const& executor)
      : input_(input), executor_(executor), share_(input.capacity) {}

  /// Runs one pass over `groups`.
  void run(grouping& groups) {
    std::vector<std::uint32_t> const order = order_groups(groups);
    std::size_t const pairs = order.size() / 2;
    parts_.resize(part_count(pairs, min_part, max_parts));
    run_bodies(name, executor_, parts_.size(), [&](std::size_t k) {
      run_part(groups, order, pairs * k / parts_.size(), pairs * (k + 1) / parts_.size(),
               parts_[k]);
    });
    bool const is_evener = std::any_of(parts_.begin(), parts_.end(),
                                       [](pass_part const& part) { return part.is_evener; });
    if (order.size() % 2 != 0) {
      pair_evener<Layout>::append(parts_.back().groups, groups[order[pairs]]);
    }
    if (parts_.size() == 1) {
      std::swap(groups, parts_.front().groups);
    } else {
      groups = joined();
    }
    ++pass_;
    idle_passes_ = is_evener ? 0 : idle_passes_ + 1;
  }

  /// Returns true if the last pass for each kind of load changed nothing.
  [[nodiscard]] bool is_settled() const { return idle_passes_ == load_kinds; }

 private:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::size_t kinds = amounts_type::size();
  static constexpr std::size_t load_kinds = kinds == 1 ? 1 : kinds + 1;
  static constexpr std::string_view name = "improve_packing";
  /// The least number of groups or pairs in a part, and the largest number of parts. The serial
  /// executor has one part.
  static constexpr std::size_t min_part = 256;
  static constexpr std::size_t max_parts = std::same_as<Executor, serial_executor> ? 1 : 64;

  /// The groups of some pairs after a pass.
  struct pass_part {
    grouping groups;
    bool is_evener = false;
  };

  void run_part(grouping const& groups, std::span<std::uint32_t const> order, std::size_t first,
                std::size_t last, pass_part& part) const {
    std::size_t items = 0;
    for (std::size_t i = first; i != last; ++i) {
      items += groups[order[i]].size() + groups[order[order.size() - 1 - i]].size();
    }
    part.groups.clear();
    part.is_evener = false;
    part.groups.reserve(2 * (last - first) + 1, items);
    pair_evener<Layout> evener(input_, share_);
    for (std::size_t i = first; i != last; ++i) {
      bool const has_moved =
          evener.run(groups[order[i]], groups[order[order.size() - 1 - i]], part.groups);
      part.is_evener = has_moved || part.is_evener;
    }
  }

  /// Returns the groups of all parts.
  [[nodiscard]] grouping joined() const {
    std::vector<std::uint32_t> offsets{0};
    std::vector<std::uint32_t> items;
    std::size_t groups = 0;
    std::size_t count = 0;
    for (pass_part const& part : parts_) {
      groups += part.groups.size();
      count += part.groups.item_count();
    }
    offsets.reserve(groups + 1);
    items.reserve(count);
    for (pass_part const& part : parts_) {
      auto const before = static_cast<std::uint32_t>(items.size());
      for (std::uint32_t const end : part.groups.offsets().subspan(1)) {
        offsets.push_back(before + end);
      }
      items.insert(items.end(), part.groups.items().begin(), part.groups.items().end());
    }
    return grouping(std::move(offsets), std::move(items));
  }

  /// Returns the share of the capacity that the load uses of one resource, or summed over all
  /// resources.
  [[nodiscard]] std::uint64_t size(amounts_type const& load, std::size_t kind) const {
    return kind == kinds ? share_.sum(load) : share_(load[kind], kind);
  }

  /// Returns the groups by descending load.
  [[nodiscard]] std::vector<std::uint32_t> order_groups(grouping const& groups) const {
    std::size_t const kind = pass_ % load_kinds;
    std::vector<std::uint64_t> keys(groups.size());
    std::size_t const parts = part_count(keys.size(), min_part, max_parts);
    run_bodies(name, executor_, parts, [&](std::size_t k) {
      std::size_t const last = keys.size() * (k + 1) / parts;
      for (std::size_t g = keys.size() * k / parts; g != last; ++g) {
        keys[g] = size(input_.load(groups[g]), kind);
      }
    });
    return order_descending(keys.size(), [&keys](std::size_t g) { return keys[g]; });
  }

  measured<Layout> const& input_;
  Executor const& executor_;
  typename pair_evener<Layout>::share_type share_;
  /// The parts of a pass, whose memory the next pass uses again.
  std::vector<pass_part> parts_;
  std::size_t pass_ = 0;
  std::size_t idle_passes_ = 0;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct improve_packing_options {
  /// The maximum number of passes that search for fewer groups.
  std::size_t passes = 64;
  /// The maximum number of passes that level the loads after this search.
  std::size_t even_passes = 16;
  /// The maximum number of empty groups that are added before the passes that level the loads, as a
  /// share of the groups that were found. With this additional room, loads can become as equal as
  /// whole samples permit, which requires about 64 passes.
  double spare_groups = 0.0;
  /// The seed of the search; other seeds find other packings.
  std::uint64_t seed = 0;
};

/// The progress of `improve_packing` after a pass.
struct improve_packing_progress {
  std::size_t passes;       ///< the number of passes so far
  std::size_t groups;       ///< the number of groups of the packing so far
  std::size_t lower_bound;  ///< a lower bound on the groups of any packing
};

/// A functor that `improve_packing` calls after each pass; it returns whether `improve_packing`
/// continues.
template <class Function>
concept progress_predicate = std::predicate<Function&, improve_packing_progress const&>;

namespace detail {

/// A predicate that always continues.
struct never_ends {
  [[nodiscard]] constexpr bool operator()(improve_packing_progress const&) const { return true; }
};

}  // namespace detail

struct improve_packing_fn {
  /// Improves a packing: returns a packing of the same samples with fewer groups or more equal
  /// loads. The result never has more groups than `start`, unless `options.spare_groups` requests
  /// more groups. The number of groups that the passes found then increases by at most that share.
  /// With an equal number of groups, the sum of the squared loads, as shares of the capacity, is
  /// never larger.
  ///
  /// Each pass dissolves some groups into a pool. It exchanges up to two samples of every other
  /// group for one or two samples of the pool that fill the group better, and packs the rest of the
  /// pool again. A pass that increases the number of groups is undone.
  ///
  /// For integers, simulated annealing follows when passes with pools of all sizes have run. Its
  /// pool has the samples of a few groups. A step forces a sample of the pool into a group and
  /// fills the rest of that group as full as possible. Several resources are filled by a
  /// depth-first search. For one resource, subset sums alternate with this search, in which samples
  /// that are hard to place have larger values. The temperature falls over one pass, then over two,
  /// four and more, until the pool requires fewer groups.
  ///
  /// The passes end at the lower bound or at `options.passes`. With floating-point numbers they
  /// also end when passes of all sizes have gained nothing. `go_on` may end the passes earlier, for
  /// example at a time limit. More passes continue from the point at which fewer passes ended. The
  /// bound is the bound of `packing_bound`, with `effort::thorough` as soon as the annealing has
  /// run as long as this bound takes.
  ///
  /// An executor runs parts of the passes that level the loads. The passes before them run on the
  /// thread of the caller, because each exchange depends on the pool that the exchange before it
  /// left.
  ///
  /// The order of the groups is unspecified. `start` may come from any packer, with the same
  /// samples, demand and capacity; empty groups are dropped. The report counts the passes as rounds
  /// and has no keep rule.
  ///
  /// Complexity: a pass is linear in the samples, except for the lookups of groups. Lookups cost
  /// the same as in `best_fit_decreasing`, and less if most groups are full. Memory: about 56 + 16R
  /// bytes per sample. Determinism: portable for integers. Errors: the errors of
  /// `best_fit_decreasing` for capacity and demands; `std::invalid_argument` if `start` contains an
  /// index twice or not at all, or if it contains an index that is not a sample. It is also thrown
  /// if `start` lists an oversized sample in a group or a fitting sample as oversized, if a group
  /// exceeds the capacity, or if `options.spare_groups` is outside [0, 1].
  template <class Samples, class Demand, class Capacity, class GoOn = detail::never_ends,
            executor Executor = serial_executor>
    requires detail::measured_samples<Samples, Demand, Capacity> && progress_predicate<GoOn>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, packing const& start,
                                   improve_packing_options const& options = {}, GoOn go_on = {},
                                   Executor const& run = {}) const {
    detail::check_share(name, "options.spare_groups", options.spare_groups);
    return detail::with_measured(name, samples, demand, capacity, [&](auto&& input) {
      using layout_type = decltype(input.layout);
      grouping const given = detail::checked_numbers(name, input, start);
      packing result;
      packing_report& report = result.report;
      report = start.report;
      report.below_keep = 0;
      // The start may have been packed under a smaller capacity, so that its bound does not hold
      // here.
      report.lower_bound = detail::measured_bound(input);
      auto const count_pass = [&] {
        ++report.rounds;
        report.item_rounds += input.size();
      };

      grouping groups = given;
      detail::group_search<layout_type> search(input, options.seed);
      for (std::size_t pass = 0; pass != options.passes; ++pass) {
        if (search.has_earned_bound()) {
          report.lower_bound = std::max(report.lower_bound, detail::thorough_bound(input));
        }
        if (groups.size() <= report.lower_bound || search.is_exhausted()) break;
        search.run(groups, report.lower_bound);
        count_pass();
        if (!go_on(improve_packing_progress{pass + 1, groups.size(), report.lower_bound})) break;
      }
      // If the number of groups is unchanged, the given groups are used, because fuller groups are
      // useful only to reduce their number.
      if (groups.size() == given.size()) groups = given;
      add_spare_groups(groups, options);
      detail::group_evener<layout_type, Executor> evener(input, run);
      for (std::size_t pass = 0; pass != options.even_passes && !evener.is_settled(); ++pass) {
        evener.run(groups);
        count_pass();
      }
      result.groups = detail::to_indices(groups, input);
      result.oversized = std::move(input.oversized);
      return result;
    });
  }

  /// Improves a packing with an executor and without a functor that ends the passes.
  template <class Samples, class Demand, class Capacity, executor Executor>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, packing const& start,
                                   improve_packing_options const& options,
                                   Executor const& run) const {
    return (*this)(samples, demand, capacity, start, options, detail::never_ends{}, run);
  }

 private:
  static constexpr std::string_view name = "improve_packing";

  static void add_spare_groups(grouping& groups, improve_packing_options const& options) {
    double const spare = static_cast<double>(groups.size()) * options.spare_groups;
    for (auto left = static_cast<std::size_t>(spare); left != 0; --left) groups.close();
  }
};

/// Improves a packing by local search; see `improve_packing_fn`.
inline constexpr improve_packing_fn improve_packing{};

}  // namespace omnibal::inline v0
