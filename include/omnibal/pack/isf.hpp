#pragma once

/// \file
/// Iterative sampling and filtering, OmniBal's packer.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/release.hpp>
#include <omnibal/pack/detail/group_writer.hpp>
#include <omnibal/pack/detail/measure.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/pack/lower_bound.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/shuffler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct isf_options {
  /// The largest number of rounds; the last one keeps every group.
  std::size_t rounds = 50;
  /// A round that keeps a smaller share of its samples than this is followed by the last round.
  double min_gain = 0.0;
};

namespace detail {

/// A sample in the pool of `isf`.
template <class Demand>
struct record {
  Demand demand;
  std::uint32_t index;
};

/// The rounds of `isf`.
template <class Layout, class Keep>
class isf_rounds {
 public:
  using record_type = record<typename Layout::demand_type>;

  /// Moves the samples of `input` into the pool.
  isf_rounds(measured<Layout>& input, Keep const& keep)
      : layout_(input.layout),
        units_(input.units),
        keep_(keep),
        pool_(take_pool(input)),
        groups_(pool_.size()) {}

  template <class Shuffle>
  void run(isf_options const& options, Shuffle const& shuffle, packing_report& report) {
    bool gains = true;
    for (std::size_t round = 0; !pool_.empty() && round != options.rounds; ++round) {
      std::size_t const before = pool_.size();
      bool const last = round + 1 == options.rounds || !gains;
      shuffle_pool(shuffle, round);
      std::size_t const rejected = regroup(last, report);
      pool_.resize(rejected);
      report.item_rounds += before;
      ++report.rounds;
      gains =
          static_cast<double>(before - rejected) >= options.min_gain * static_cast<double>(before);
    }
  }

  [[nodiscard]] grouping take() && {
    release(pool_);
    release(spare_);
    return std::move(groups_).take();
  }

 private:
  using room_type = typename Layout::room_type;

  [[nodiscard]] static std::vector<record_type> take_pool(measured<Layout>& input) {
    std::vector<record_type> pool(input.size());
    fitting_indices indices(input.oversized);
    for (std::size_t k = 0; k != pool.size(); ++k) pool[k] = {input.demands[k], indices.next()};
    release(input.demands);
    return pool;
  }

  template <class Shuffle>
  void shuffle_pool(Shuffle const& shuffle, std::size_t round) {
    if constexpr (!rng::any_element_shuffler<Shuffle>) {
      std::vector<std::uint32_t> order(pool_.size());
      std::iota(order.begin(), order.end(), std::uint32_t{0});
      shuffle(std::span<std::uint32_t>(order), round);
      check_permutation(order, round);
      gather([&order](std::size_t i) { return order[i]; });
    } else if constexpr (rng::random_access_shuffler<Shuffle>) {
      auto const order = shuffle.order(pool_.size(), round);
      gather([&order](std::size_t i) { return static_cast<std::size_t>(order(i)); });
    } else {
      shuffle(std::span<record_type>(pool_), round);
    }
  }

  static void check_permutation(std::vector<std::uint32_t> const& order, std::size_t round) {
    std::vector<bool> seen(order.size());
    for (std::uint32_t const index : order) {
      if (index >= order.size() || seen[index]) {
        throw_invalid("isf", "shuffle gave index " + to_text(index) +
                                 (index < order.size() ? " twice" : ", which is out of range,") +
                                 " in round " + to_text(round));
      }
      seen[index] = true;
    }
  }

  template <class Order>
  void gather(Order const& order) {
    spare_.resize(pool_.size());
    for (std::size_t i = 0; i != spare_.size(); ++i) spare_[i] = pool_[order(i)];
    pool_.swap(spare_);
  }

  /// Next-fit over the pool: appends the kept groups to the result and moves the records of the
  /// others to the front of the pool; returns how many those are.
  ///
  /// Where a group ends and whether it is kept is unpredictable, so the loops over samples have no
  /// branches on either: a block of samples is cut into groups, the groups are judged, and each
  /// sample is written to both places, of which one advances.
  std::size_t regroup(bool last, packing_report& report) {
    constexpr std::size_t block = 1024;
    std::uint16_t ordinals[block];
    std::uint32_t ends[block];
    room_type rooms[block];
    std::uint8_t kept[block];

    // Copies that no write through a pointer can change, so that they stay in registers.
    Layout const layout = layout_;
    auto const units = units_;
    auto output = groups_.end();
    record_type* const pool = pool_.data();
    std::size_t const pool_size = pool_.size();
    std::size_t below_keep = 0;

    auto const judge = [&](room_type const& room, std::size_t size) {
      bool const full = keep_(measured<Layout>::in_user_units(layout.load(room), units));
      bool const keep = full | last;
      below_keep += static_cast<std::size_t>(keep & !full);
      output.close(size, static_cast<std::size_t>(keep));
      return static_cast<std::uint8_t>(keep);
    };
    std::size_t rejected = 0;
    auto const move = [&](std::size_t position, std::size_t keep) {
      record_type const next = pool[position];
      output.write(next.index, keep);
      pool[rejected] = next;
      rejected += 1 - keep;
    };

    std::size_t open_begin = 0;
    room_type room = layout.empty_room();
    for (std::size_t begin = 0; begin != pool_size;) {
      std::size_t const count = std::min(block, pool_size - begin);
      std::size_t closed = 0;
      for (std::size_t i = 0; i != count; ++i) {
        rooms[closed] = room;
        ends[closed] = static_cast<std::uint32_t>(begin + i);
        closed += 1 - static_cast<std::size_t>(layout.take_or_renew(room, pool[begin + i].demand));
        ordinals[i] = static_cast<std::uint16_t>(closed);
      }
      std::size_t group_begin = open_begin;
      for (std::size_t k = 0; k != closed; ++k) {
        kept[k] = judge(rooms[k], ends[k] - group_begin);
        group_begin = ends[k];
      }
      if (closed != 0) {
        for (std::size_t i = open_begin; i != begin; ++i) move(i, kept[0]);
        for (std::size_t i = 0; begin + i != group_begin; ++i) move(begin + i, kept[ordinals[i]]);
        open_begin = group_begin;
      }
      begin += count;
    }
    std::size_t const keep_last = judge(room, pool_size - open_begin);
    for (std::size_t i = open_begin; i != pool_size; ++i) move(i, keep_last);

    groups_.set_end(output);
    report.below_keep += below_keep;
    return rejected;
  }

  Layout layout_;
  typename Layout::amounts_type units_;
  Keep const& keep_;
  std::vector<record_type> pool_;
  std::vector<record_type> spare_;
  group_writer groups_;
};

}  // namespace detail

struct isf_fn {
  /// Iterative sampling and filtering: shuffle the pool, pack it by next-fit, keep the groups that
  /// satisfy the keep rule, return the samples of the others to the pool in their order; repeat.
  /// The last round keeps every group, and the report counts those below the rule. Ends early when
  /// the pool is empty, and on request when a round gains too little.
  ///
  /// `demand` maps a sample to resources or to one weight, `capacity` has as many kinds.
  /// `keep(load)` defaults to `reaches_any` of 31/32 of the capacity. `shuffle(span, round)`
  /// defaults to `rng::fisher_yates{0}`; with `rng::numpy_shuffle` and the keep rule "images equal
  /// to the capacity or tokens at least the threshold" the groups and their order are those of the
  /// reference implementation, where no sample is oversized.
  ///
  /// Complexity: linear in `report.item_rounds`. Memory: at most 24 + 8R bytes per sample, result
  /// included; a record of 8 to 8R + 8 bytes more with `rng::feistel` and with a shuffler of
  /// indices. Determinism: portable for integers. Errors: `std::invalid_argument` for a capacity
  /// that is not positive, a threshold above it, no rounds, a gain that is not in [0, 1], a demand
  /// that is negative or not finite, a shuffler that does not permute; `std::length_error` above
  /// 2^32 - 1 samples. Source: Yao et al., OmniBal, ICML 2025.
  template <class Samples, class Demand, class Capacity, class Keep, class Shuffle>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        keep_rule<Keep, resources<detail::kinds_of<Capacity>,
                                  detail::working_weight_of<Samples, Demand, Capacity>>> &&
        shuffler<Shuffle>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, isf_options const& options,
                                   Keep const& keep, Shuffle const& shuffle) const {
    auto const limits = detail::checked_capacity<Samples, Demand, Capacity>("isf", capacity);
    if (options.rounds == 0) {
      detail::throw_invalid("isf", "options.rounds is 0, must be positive");
    }
    if (!(options.min_gain >= 0.0 && options.min_gain <= 1.0)) {
      detail::throw_invalid("isf", "options.min_gain is " + detail::to_text(options.min_gain) +
                                       ", must be in [0, 1]");
    }
    if constexpr (checked_keep_rule<Keep, decltype(limits)>) keep.check("isf", limits);

    return detail::with_measured("isf", samples, demand, capacity, [&](auto&& input) {
      packing result;
      result.report.lower_bound = detail::measured_bound(input);
      detail::isf_rounds rounds(input, keep);
      rounds.run(options, shuffle, result.report);
      result.groups = std::move(rounds).take();
      result.oversized = std::move(input.oversized);
      return result;
    });
  }

  /// The same with `rng::fisher_yates{0}`.
  template <class Samples, class Demand, class Capacity, class Keep>
    requires detail::measured_samples<Samples, Demand, Capacity> &&
        keep_rule<Keep, resources<detail::kinds_of<Capacity>,
                                  detail::working_weight_of<Samples, Demand, Capacity>>>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity, isf_options const& options,
                                   Keep const& keep) const {
    return (*this)(samples, demand, capacity, options, keep, rng::fisher_yates{});
  }

  /// The same with the default keep rule and `rng::fisher_yates{0}`.
  template <class Samples, class Demand, class Capacity>
    requires detail::measured_samples<Samples, Demand, Capacity>
  [[nodiscard]] packing operator()(Samples const& samples, Demand const& demand,
                                   Capacity const& capacity,
                                   isf_options const& options = {}) const {
    auto const limits = detail::checked_capacity<Samples, Demand, Capacity>("isf", capacity);
    return (*this)(samples, demand, capacity, options, reaches_most(limits), rng::fisher_yates{});
  }
};

/// Iterative sampling and filtering; see `isf_fn`.
inline constexpr isf_fn isf{};

}  // namespace omnibal::inline v0
