// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Hierarchical packing: long and short samples in packs of their own lengths.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/remaining_indices.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/pack/place_oversized.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A packer of lengths. It is called as `pack(lengths, std::identity{}, length)` with the length of
/// a level.
template <class Pack>
concept length_packer = packer<Pack, std::span<std::int64_t const>, std::identity, std::int64_t>;

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// A pool of samples that returns the longest sample that fits; among equal lengths, the sample
/// with the lowest index.
class donor_pool {
 public:
  static constexpr std::uint32_t no_sample = std::numeric_limits<std::uint32_t>::max();

  explicit donor_pool(std::span<std::int64_t const> lengths)
      : order_(order_descending(lengths.size(), [&](std::size_t i) { return lengths[i]; })),
        is_taken_(lengths.size(), 0) {
    falling_.reserve(order_.size());
    for (std::uint32_t const sample : order_) falling_.push_back(lengths[sample]);
    places_.reset(order_.size());
  }

  /// Removes and returns the longest remaining sample of length at most `room`. Returns `no_sample`
  /// if there is none.
  [[nodiscard]] std::uint32_t take(std::int64_t room) {
    auto const fits =
        std::lower_bound(falling_.begin(), falling_.end(), room, std::greater<std::int64_t>());
    std::uint32_t const place =
        places_.first_from(static_cast<std::uint32_t>(fits - falling_.begin()));
    if (place == order_.size()) return no_sample;
    places_.remove(place);
    is_taken_[order_[place]] = 1;
    return order_[place];
  }

  [[nodiscard]] bool is_taken(std::uint32_t sample) const { return is_taken_[sample] != 0; }

 private:
  /// The samples, in descending order of their lengths.
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> falling_;
  remaining_indices places_;
  std::vector<std::uint8_t> is_taken_;
};

/// Returns a packing of the samples `members`. Precondition: each sample is at most as long as
/// `capacity`. Throws unless `pack` returns each sample exactly once. Empty groups are dropped.
template <length_packer Pack>
[[nodiscard]] packing packed_members(std::string_view function, Pack const& pack,
                                     std::span<std::uint32_t const> members,
                                     std::span<std::int64_t const> lengths, std::int64_t capacity) {
  std::vector<std::int64_t> own;
  own.reserve(members.size());
  for (std::uint32_t const sample : members) own.push_back(lengths[sample]);
  packing const packed =
      std::invoke(pack, std::span<std::int64_t const>(own), std::identity{}, capacity);
  permutation_check named(function, "the packer", "samples", members.size());
  named.take(packed.groups.items());
  named.finish();
  packing result{{}, {}, packed.report};
  result.groups.reserve(packed.groups.size(), members.size());
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    for (std::uint32_t const item : packed.groups[g]) result.groups.push(members[item]);
    if (!packed.groups[g].empty()) result.groups.close();
  }
  return result;
}

/// Returns the groups without the taken samples. Omits groups that become empty.
[[nodiscard]] inline grouping without_taken(grouping const& groups, donor_pool const& donors) {
  grouping result;
  result.reserve(groups.size(), groups.item_count());
  for (std::size_t g = 0; g != groups.size(); ++g) {
    for (std::uint32_t const sample : groups[g]) {
      if (!donors.is_taken(sample)) result.push(sample);
    }
    if (!result.open_group().empty()) result.close();
  }
  return result;
}

/// Packs the members that are not taken by longer levels. The result never has more groups than a
/// packing of all members, although a packer may return more groups for fewer samples.
template <length_packer Pack>
[[nodiscard]] grouping packed_rest(std::string_view function, Pack const& pack,
                                   std::span<std::uint32_t const> members,
                                   std::span<std::int64_t const> lengths, std::int64_t capacity,
                                   donor_pool const& donors) {
  std::vector<std::uint32_t> rest;
  rest.reserve(members.size());
  for (std::uint32_t const sample : members) {
    if (!donors.is_taken(sample)) rest.push_back(sample);
  }
  std::span<std::uint32_t const> const waiting(rest);
  auto of_rest = packed_members(function, pack, waiting, lengths, capacity);
  bool const is_best =
      rest.size() == members.size() || of_rest.groups.size() <= of_rest.report.lower_bound;
  if (is_best) return std::move(of_rest.groups);
  auto const of_all = packed_members(function, pack, members, lengths, capacity);
  grouping of_all_but_taken = without_taken(of_all.groups, donors);
  if (of_all_but_taken.size() < of_rest.groups.size()) return of_all_but_taken;
  return std::move(of_rest.groups);
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The use of the remaining room in the packs of a level.
enum class level_fill {
  greedy,  ///< adds samples of shorter levels, the longest fitting sample first
  none,
};

/// The order of the packs inside a level.
enum class pack_order {
  by_attention,  ///< by descending sum of the squares of their samples' lengths
  as_packed,
};

struct pack_levels_options {
  level_fill fill = level_fill::greedy;
  pack_order order = pack_order::by_attention;
  /// The treatment of samples that are longer than the last level; `own_group` puts each into its
  /// own pack in that level.
  oversize_policy oversized = oversize_policy::list;
};

struct pack_levels_fn {
  /// Packs samples into packs of several lengths. A sample belongs to the first level that is at
  /// least as long as the sample, and `pack` packs each level. Samples of shorter levels fill the
  /// remaining room of the packs (GreedyFill). Levels are packed from the longest to the shortest,
  /// so samples that fill longer levels are not packed in their own level. No level has more packs
  /// than without filling.
  ///
  /// The packs of a level are sorted by the sum of the squares of their samples' lengths, the work
  /// of attention. Therefore consecutive packs have similar work and can form a global batch;
  /// `level_steps` and `level_sampler` create steps from them. The option `options.oversized`
  /// selects the treatment of samples that are longer than the last level; by default they are
  /// listed in the result.
  ///
  /// `demand` returns the tokens of a sample, as integers. `levels` are `packing_level`s or
  /// lengths, ascending. `pack` is called as `pack(lengths, std::identity{}, length)` and may be
  /// any packer.
  ///
  /// Complexity: calls of the packer with at most two times the samples, and a binary search for
  /// each sample that fills another level. Memory: 48 bytes for each sample including the result,
  /// and the memory of the packer. Determinism: portable if the packer is portable. Errors:
  /// `std::invalid_argument` if there are no levels, or if lengths are not positive, not increasing
  /// or above `longest_level`. It is also thrown if a demand is negative, above the last level with
  /// `reject` or above `longest_level` with `own_group`. It is thrown as well if the packer loses
  /// or duplicates samples or exceeds a length. Further errors: `std::length_error` if there are
  /// more than 2^32 - 1 samples; the errors of the packer. Source: Yao et al., "Hierarchical
  /// balance packing", NeurIPS 2025.
  template <class Samples, class Demand, level_range Levels,
            length_packer Pack = best_fit_decreasing_fn>
    requires detail::token_samples<Samples, Demand>
  [[nodiscard]] level_packing operator()(Samples const& samples, Demand const& demand,
                                         Levels const& levels, Pack const& pack = {},
                                         pack_levels_options const& options = {}) const {
    auto const settings = detail::checked_levels(name, levels);
    auto const lengths = detail::measured_lengths(name, samples, demand);
    grouping const members = detail::level_members(settings, lengths);
    auto const longer = members[settings.size()];
    check_longer(longer, lengths, settings.back().length, options.oversized);
    bool const fills = options.fill == level_fill::greedy && settings.size() > 1;
    detail::donor_pool donors(fills ? std::span(lengths) : std::span<std::int64_t const>());

    // In this loop, the packs of the last level come first.
    level_packs made;
    made.packs.reserve(0, lengths.size());
    std::vector<packed_level> packed(settings.size());
    for (std::size_t level = settings.size(); level-- != 0;) {
      packed[level].setting = settings[level];
      packed[level].first_group = static_cast<std::uint32_t>(made.packs.size());
      bool const takes_longer =
          options.oversized == oversize_policy::own_group && level + 1 == settings.size();
      if (takes_longer) add_own_packs(longer, lengths, made);
      std::int64_t const length = settings[level].length;
      grouping const own =
          fills ? detail::packed_rest(name, pack, members[level], lengths, length, donors)
                : detail::packed_members(name, pack, members[level], lengths, length).groups;
      std::int64_t const longest_donor = fills && level != 0 ? settings[level - 1].length : -1;
      packed[level].filled_in = add_packs(own, length, longest_donor, donors, lengths, made);
      packed[level].group_count =
          static_cast<std::uint32_t>(made.packs.size()) - packed[level].first_group;
    }

    level_packing result;
    if (options.oversized == oversize_policy::list) {
      result.oversized.assign(longer.begin(), longer.end());
    }
    result.groups.reserve(made.packs.size(), made.packs.item_count());
    result.levels = std::move(packed);
    for (packed_level& level : result.levels) {
      append_ordered(made, level, options.order, result.groups);
    }
    return result;
  }

  /// Packs samples by `best_fit_decreasing` with the given options.
  template <class Samples, class Demand, level_range Levels>
    requires detail::token_samples<Samples, Demand>
  [[nodiscard]] level_packing operator()(Samples const& samples, Demand const& demand,
                                         Levels const& levels,
                                         pack_levels_options const& options) const {
    return (*this)(samples, demand, levels, best_fit_decreasing_fn{}, options);
  }

 private:
  static constexpr std::string_view name = "pack_levels";

  /// Throws if the policy rejects the samples above the last level, or if a sample is so long that
  /// its square is not a 64-bit integer.
  static void check_longer(std::span<std::uint32_t const> longer,
                           std::span<std::int64_t const> lengths, std::int64_t last,
                           oversize_policy policy) {
    if (policy == oversize_policy::list) return;
    bool const is_rejecting = policy == oversize_policy::reject;
    std::int64_t const most = is_rejecting ? last : longest_level;
    for (std::uint32_t const sample : longer) {
      if (lengths[sample] <= most) continue;
      detail::throw_number(name, detail::joined_text("demand[", sample, "]"), lengths[sample],
                           "must be at most ", is_rejecting ? "the length of the last level, " : "",
                           most);
    }
  }

  /// The packs of all levels, and the sum of the squares of the lengths of each pack.
  struct level_packs {
    grouping packs;
    std::vector<std::int64_t> attention;

    void close(std::int64_t attention_of_pack) {
      packs.close();
      attention.push_back(attention_of_pack);
    }
  };

  /// Adds a pack of its own for each sample.
  static void add_own_packs(std::span<std::uint32_t const> samples,
                            std::span<std::int64_t const> lengths, level_packs& made) {
    for (std::uint32_t const sample : samples) {
      made.packs.push(sample);
      made.close(lengths[sample] * lengths[sample]);
    }
  }

  /// Adds the packs of a level, with samples of shorter levels in their remaining room. Returns the
  /// number of these samples. Throws if a pack exceeds the length of the level.
  [[nodiscard]] static std::uint32_t add_packs(grouping const& own, std::int64_t length,
                                               std::int64_t longest_donor,
                                               detail::donor_pool& donors,
                                               std::span<std::int64_t const> lengths,
                                               level_packs& made) {
    std::uint32_t filled_in = 0;
    for (std::size_t g = 0; g != own.size(); ++g) {
      open_pack open{length};
      for (std::uint32_t const sample : own[g]) {
        if (lengths[sample] > open.room) {
          detail::throw_invalid(name, "the packer exceeds the capacity ", length, " in group ", g);
        }
        open.add(lengths[sample]);
        made.packs.push(sample);
      }
      filled_in += fill(made.packs, open, longest_donor, donors, lengths);
      made.close(open.attention);
    }
    return filled_in;
  }

  /// The remaining room of a pack, and the sum of the squares of the lengths of its samples.
  struct open_pack {
    std::int64_t room;
    std::int64_t attention = 0;

    void add(std::int64_t length) {
      room -= length;
      attention += length * length;
    }
  };

  /// Adds samples of shorter levels to a pack as long as one fits. Returns the number of added
  /// samples.
  [[nodiscard]] static std::uint32_t fill(grouping& packs, open_pack& open,
                                          std::int64_t longest_donor, detail::donor_pool& donors,
                                          std::span<std::int64_t const> lengths) {
    std::uint32_t count = 0;
    while (longest_donor >= 0) {
      std::uint32_t const sample = donors.take(std::min(open.room, longest_donor));
      if (sample == detail::donor_pool::no_sample) break;
      packs.push(sample);
      open.add(lengths[sample]);
      ++count;
    }
    return count;
  }

  /// Appends the packs of a level in the order `order`, and updates the first group of the level.
  static void append_ordered(level_packs const& made, packed_level& level, pack_order order,
                             grouping& result) {
    std::vector<std::uint32_t> places(level.group_count);
    std::iota(places.begin(), places.end(), std::uint32_t{0});
    auto const own = std::span(made.attention).subspan(level.first_group, level.group_count);
    if (order == pack_order::by_attention) {
      places = detail::order_descending(own.size(), [&](std::size_t g) { return own[g]; });
    }
    std::uint32_t const old_first = level.first_group;
    level.first_group = static_cast<std::uint32_t>(result.size());
    for (std::uint32_t const place : places) {
      for (std::uint32_t const sample : made.packs[old_first + place]) result.push(sample);
      result.close();
    }
  }
};

/// Packs samples into packs of several lengths, level by level; see `pack_levels_fn`.
inline constexpr pack_levels_fn pack_levels{};

}  // namespace omnibal::inline v0
