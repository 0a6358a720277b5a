// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The open patterns of best-fit decreasing, by their room.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/unset_array.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/demand_traits.hpp>
#include <omnibal/pack/detail/open_bin_index.hpp>
#include <omnibal/pack/detail/sorted_open_bins.hpp>
#include <omnibal/pack/pack_histogram/pattern_chains.hpp>
#include <omnibal/pack/score.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The rooms of patterns of one resource, each of which is a run of its own.
template <class Room>
class pattern_rooms {
 public:
  using room_type = Room;

  explicit pattern_rooms(std::size_t patterns) : runs_(patterns) {}

  void set(group_run target, room_type room) { runs_[target.first].room = room; }
  [[nodiscard]] room_type room(std::uint32_t target) const { return runs_[target].room; }
  [[nodiscard]] static std::uint32_t last(std::uint32_t target) { return target; }
  [[nodiscard]] std::uint32_t& next(std::uint32_t target) { return runs_[target].next; }

 private:
  struct linked_run {
    room_type room;
    std::uint32_t next;
  };

  unset_array<linked_run> runs_;
};

/// The open patterns of one integer resource. Samples must start in descending order of size.
template <class Layout>
class line_patterns {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Precondition: `input`, whose samples ascend by size, has samples and outlives this object.
  explicit line_patterns(measured<Layout> const& input)
      : input_(input),
        capacity_(static_cast<room_type>(input.capacity[0])),
        smallest_(size_of(0)),
        rooms_(pattern_chains::max_patterns(input.size())),
        bins_(rooms_, capacity_, pattern_chains::max_patterns(input.size())) {}
  line_patterns(line_patterns const&) = delete;
  line_patterns& operator=(line_patterns const&) = delete;

  void start(std::uint32_t sample) {
    size_ = size_of(sample);
    bins_.fall_to(size_);
  }

  [[nodiscard]] std::uint32_t take() { return bins_.empty() ? none : bins_.take(1).first; }

  [[nodiscard]] std::uint64_t count_in(std::uint32_t target, std::uint64_t left) const {
    room_type const room = target == none ? capacity_ : rooms_.room(target);
    return size_ == 0 ? left : std::min(left, std::uint64_t{room / size_});
  }

  void renew(std::uint32_t target) { rooms_.set({target, target}, capacity_); }
  void copy_room(std::uint32_t from, std::uint32_t to) { rooms_.set({to, to}, rooms_.room(from)); }
  void put_back(std::uint32_t target) { bins_.push({target, target}, rooms_.room(target), size_); }
  void put(std::uint32_t target, std::uint64_t count) {
    auto const room = static_cast<room_type>(rooms_.room(target) - count * size_);
    if (room >= smallest_) bins_.push({target, target}, room, size_);
  }

 private:
  /// Capacities of layouts with words of 32 bits have at most 32 bits.
  using room_type =
      std::conditional_t<sizeof(typename Layout::demand_type) <= sizeof(std::uint32_t),
                         std::uint32_t, std::uint64_t>;
  using rooms_type = pattern_rooms<room_type>;

  [[nodiscard]] room_type size_of(std::size_t sample) const {
    return static_cast<room_type>(input_.layout.amount(input_.demands[sample], 0));
  }

  measured<Layout> const& input_;
  room_type capacity_;
  room_type smallest_;
  room_type size_ = 0;
  rooms_type rooms_;
  sorted_open_bins<rooms_type> bins_;
};

/// The open patterns of several resources; the best fit has the least slack.
template <class Layout>
class vector_patterns {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// `counts[k]` samples have demand k. Preconditions: there are samples; `input` outlives this
  /// object.
  vector_patterns(measured<Layout> const& input, std::span<std::uint64_t const> counts)
      : vector_patterns(input, traits_of(input.layout, input.demands, input.capacity,
                                         [counts](std::size_t k) { return counts[k]; })) {}

  void start(std::uint32_t sample) { demand_ = input_.demands[sample]; }

  [[nodiscard]] std::uint32_t take() {
    return index_.take(group_rooms<Layout>{input_.layout, rooms_.data()}, demand_, score_);
  }

  [[nodiscard]] std::uint64_t count_in(std::uint32_t target, std::uint64_t left) const {
    auto const room =
        input_.layout.left(target == none ? input_.layout.empty_room() : rooms_[target]);
    auto const amounts = input_.layout.amounts(demand_);
    for (std::size_t r = 0; r != amounts.size(); ++r) {
      if (amounts[r] != 0) left = std::min(left, static_cast<std::uint64_t>(room[r] / amounts[r]));
    }
    return left;
  }

  void renew(std::uint32_t target) { rooms_[target] = input_.layout.empty_room(); }
  void copy_room(std::uint32_t from, std::uint32_t to) { rooms_[to] = rooms_[from]; }
  void put_back(std::uint32_t target) { index_.push(target, input_.layout.left(rooms_[target])); }
  void put(std::uint32_t target, std::uint64_t count) {
    auto amounts = input_.layout.amounts(demand_);
    for (auto& amount : amounts.amounts) {
      if (amount != 0) amount *= static_cast<std::int64_t>(count);
    }
    input_.layout.take(rooms_[target], input_.layout.encode(amounts));
    if (input_.layout.fits(rooms_[target], smallest_)) put_back(target);
  }

 private:
  using amounts_type = typename Layout::amounts_type;
  using traits_type = demand_traits<amounts_type::size(), std::int64_t>;
  using index_type = open_bin_index<amounts_type::size(), std::int64_t>;

  /// The index has levels as for at least this number of samples: one for each room of common
  /// capacities.
  static constexpr std::size_t min_indexed = std::size_t{1} << 17;

  vector_patterns(measured<Layout> const& input, traits_type const& traits)
      : input_(input),
        smallest_(input.layout.encode(traits.smallest)),
        rooms_(pattern_chains::max_patterns(input.size())),
        index_(input.capacity, traits, std::max(min_indexed, rooms_.size())),
        score_(input.capacity) {}

  measured<Layout> const& input_;
  typename Layout::demand_type demand_{};
  typename Layout::demand_type smallest_;
  std::vector<typename Layout::room_type> rooms_;
  index_type index_;
  min_slack<amounts_type::size(), std::int64_t> score_;
};

}  // namespace omnibal::inline v0::detail
