#pragma once

/// \file
/// The packs of one level by any packer.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/each_once.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Samples out of which the longest that fits is taken, of equal ones the one with the lowest
/// index.
class donor_pool {
 public:
  static constexpr std::uint32_t no_sample = std::numeric_limits<std::uint32_t>::max();

  explicit donor_pool(std::span<std::int64_t const> lengths)
      : order_(order_descending(lengths.size(), [&](std::size_t i) { return lengths[i]; })),
        next_(lengths.size() + 1),
        is_taken_(lengths.size(), 0) {
    falling_.reserve(order_.size());
    for (std::uint32_t const sample : order_) falling_.push_back(lengths[sample]);
    std::iota(next_.begin(), next_.end(), std::uint32_t{0});
  }

  /// Takes the longest sample of at most `room` that is still there, or `no_sample`.
  [[nodiscard]] std::uint32_t take(std::int64_t room) {
    auto const fits =
        std::lower_bound(falling_.begin(), falling_.end(), room, std::greater<std::int64_t>());
    std::uint32_t const place = first_free(static_cast<std::uint32_t>(fits - falling_.begin()));
    if (place == order_.size()) return no_sample;
    next_[place] = place + 1;
    is_taken_[order_[place]] = 1;
    return order_[place];
  }

  [[nodiscard]] bool is_taken(std::uint32_t sample) const { return is_taken_[sample] != 0; }

 private:
  /// The first place from this one on whose sample is still there; halves the paths it walks.
  [[nodiscard]] std::uint32_t first_free(std::uint32_t place) {
    while (next_[place] != place) {
      next_[place] = next_[next_[place]];
      place = next_[place];
    }
    return place;
  }

  /// The samples by falling length.
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> falling_;
  /// A place at or behind this one, itself where the sample is still there.
  std::vector<std::uint32_t> next_;
  std::vector<std::uint8_t> is_taken_;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// A packer of lengths: `pack(lengths, std::identity{}, length of the level)`.
template <class Pack>
concept length_packer = packer<Pack, std::span<std::int64_t const>, std::identity, std::int64_t>;

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

struct member_packing {
  grouping groups;
  /// No packing of these samples has fewer groups.
  std::size_t lower_bound = 0;
};

/// The groups of some samples under a capacity that holds each of them; throws unless `pack` has
/// each of them in one group. Empty groups are dropped.
template <length_packer Pack>
[[nodiscard]] member_packing packed_members(std::string_view function, Pack const& pack,
                                            std::span<std::uint32_t const> members,
                                            std::span<std::int64_t const> lengths,
                                            std::int64_t capacity) {
  std::vector<std::int64_t> own;
  own.reserve(members.size());
  for (std::uint32_t const sample : members) own.push_back(lengths[sample]);
  packing const packed =
      std::invoke(pack, std::span<std::int64_t const>(own), std::identity{}, capacity);
  each_once named(function, "the packer", "samples", members.size());
  named.take(packed.groups.items());
  named.finish();
  member_packing result{{}, packed.report.lower_bound};
  result.groups.reserve(packed.groups.size(), members.size());
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    for (std::uint32_t const item : packed.groups[g]) result.groups.push(members[item]);
    if (!packed.groups[g].empty()) result.groups.close();
  }
  return result;
}

/// The same groups without the samples that are taken, and without those that are empty then.
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

/// The groups of the members that no longer level has taken. Never more than those of all members,
/// although a packer may need more groups for fewer samples.
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
      rest.size() == members.size() || of_rest.groups.size() <= of_rest.lower_bound;
  if (is_best) return std::move(of_rest.groups);
  auto const of_all = packed_members(function, pack, members, lengths, capacity);
  grouping of_all_but_taken = without_taken(of_all.groups, donors);
  if (of_all_but_taken.size() < of_rest.groups.size()) return of_all_but_taken;
  return std::move(of_rest.groups);
}

}  // namespace omnibal::inline v0::detail
