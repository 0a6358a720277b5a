// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The copies of the experts of one layer, the loads of the copies and the loads of the ranks.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The sizes of a layer. Each node has the same number of consecutive ranks, and each group has the
/// same number of consecutive experts. All copies of a group are on one node.
struct expert_shape {
  std::size_t experts;
  std::size_t ranks;
  std::size_t slots;
  std::size_t groups;
  std::size_t nodes;

  [[nodiscard]] std::size_t node_ranks() const { return ranks / nodes; }
  [[nodiscard]] std::size_t node_experts() const { return experts / nodes; }
  [[nodiscard]] std::size_t node_groups() const { return groups / nodes; }
  [[nodiscard]] std::size_t group_experts() const { return experts / groups; }
};

/// Sets of ranks, one for each expert.
class rank_sets {
 public:
  rank_sets(std::size_t experts, std::size_t ranks)
      : words_((ranks + 63) / 64), bits_(experts * words_, 0) {}

  [[nodiscard]] bool has(std::size_t expert, std::size_t rank) const {
    return (bits_[expert * words_ + rank / 64] >> (rank % 64) & 1) != 0;
  }
  void insert(std::size_t expert, std::size_t rank) {
    bits_[expert * words_ + rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
  void erase(std::size_t expert, std::size_t rank) {
    bits_[expert * words_ + rank / 64] &= ~(std::uint64_t{1} << (rank % 64));
  }

  /// Returns true if a rank is in the sets of both experts.
  [[nodiscard]] bool have_common_rank(std::size_t one, std::size_t other) const {
    for (std::size_t w = 0; w != words_; ++w) {
      if ((bits_[one * words_ + w] & bits_[other * words_ + w]) != 0) return true;
    }
    return false;
  }

  template <class Visit>
  void for_each(std::size_t expert, Visit const& visit) const {
    for (std::size_t w = 0; w != words_; ++w) {
      for (std::uint64_t left = bits_[expert * words_ + w]; left != 0; left &= left - 1) {
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// The replacement of the expert of a slot by another expert.
struct slot_change {
  std::uint32_t slot;
  std::uint32_t from;
  std::uint32_t to;
};

/// The experts of all slots of a layer, and the loads of the ranks that follow from them. The load
/// of a copy, its share, is the load of the expert divided by the number of its copies, rounded
/// down.
class placed_layer {
 public:
  /// Preconditions: every expert has a slot, no rank has two copies of one expert, and the sum of
  /// the loads is below 2^60.
  placed_layer(expert_shape const& shape, std::vector<std::int64_t> loads,
               std::vector<std::uint32_t> slots)
      : shape_(shape),
        loads_(std::move(loads)),
        slots_(std::move(slots)),
        first_(slots_),
        copies_(shape.experts, 0),
        shares_(shape.experts),
        holders_(shape.experts, shape.ranks),
        old_holders_(shape.experts, shape.ranks),
        rank_loads_(shape.ranks, 0) {
    for (std::size_t s = 0; s != slots_.size(); ++s) {
      ++copies_[slots_[s]];
      holders_.insert(slots_[s], s / shape.slots);
    }
    old_holders_ = holders_;
    for (std::size_t e = 0; e != shape.experts; ++e) find_shares(e);
    for (std::size_t s = 0; s != slots_.size(); ++s) {
      rank_loads_[s / shape.slots] += share(slots_[s]);
    }
  }

  [[nodiscard]] expert_shape const& shape() const { return shape_; }
  [[nodiscard]] std::span<std::uint32_t const> slots() const { return slots_; }
  [[nodiscard]] std::span<std::uint32_t const> slots_of(std::size_t rank) const {
    return std::span(slots_).subspan(rank * shape_.slots, shape_.slots);
  }
  [[nodiscard]] std::span<std::int64_t const> rank_loads() const { return rank_loads_; }
  [[nodiscard]] std::uint32_t copies(std::size_t expert) const { return copies_[expert]; }
  [[nodiscard]] bool has(std::size_t rank, std::size_t expert) const {
    return holders_.has(expert, rank);
  }
  /// Returns true if a rank has copies of both experts.
  [[nodiscard]] bool have_common_rank(std::size_t one, std::size_t other) const {
    return holders_.have_common_rank(one, other);
  }
  /// Returns the load of a copy of an expert: now, with one copy less, or with one copy more.
  [[nodiscard]] std::int64_t share(std::size_t expert) const { return shares_[expert].now; }
  [[nodiscard]] std::int64_t share_with_less(std::size_t expert) const {
    return shares_[expert].less;
  }
  [[nodiscard]] std::int64_t share_with_more(std::size_t expert) const {
    return shares_[expert].more;
  }
  /// Calls `visit(rank)` for each rank with a copy of an expert.
  template <class Visit>
  void for_each_holder(std::size_t expert, Visit const& visit) const {
    holders_.for_each(expert, visit);
  }

  [[nodiscard]] std::size_t heaviest_rank() const {
    return static_cast<std::size_t>(std::max_element(rank_loads_.begin(), rank_loads_.end()) -
                                    rank_loads_.begin());
  }

  /// Returns the largest load of some ranks, computed again from the slots, to check the loads that
  /// moves update.
  [[nodiscard]] std::int64_t measured_load(std::span<std::size_t const> ranks) const {
    std::vector<std::int64_t> copies(shape_.experts, 0);
    for (std::uint32_t const expert : slots_) ++copies[expert];
    std::int64_t largest = 0;
    for (std::size_t const rank : ranks) {
      std::int64_t load = 0;
      for (std::uint32_t const expert : slots_of(rank)) load += loads_[expert] / copies[expert];
      largest = std::max(largest, load);
    }
    return largest;
  }

  /// Returns the change of the number of moved copies if a rank takes an expert, or gives it up.
  [[nodiscard]] std::ptrdiff_t cost_to_take(std::size_t rank, std::size_t expert) const {
    return old_holders_.has(expert, rank) ? 0 : 1;
  }
  [[nodiscard]] std::ptrdiff_t cost_to_give(std::size_t rank, std::size_t expert) const {
    return old_holders_.has(expert, rank) ? 0 : -1;
  }
  /// Returns the number of copies on ranks that did not have the expert at the beginning.
  [[nodiscard]] std::size_t moved() const { return static_cast<std::size_t>(moved_); }

  /// Replaces the expert of a slot. Precondition: the rank does not have the new expert.
  void replace(std::size_t slot, std::uint32_t expert) {
    std::uint32_t const before = slots_[slot];
    add_to_holders(before, -share(before));
    add_to_holders(expert, -share(expert));
    --copies_[before];
    ++copies_[expert];
    find_shares(before);
    find_shares(expert);
    set(slot, expert);
    add_to_holders(before, share(before));
    add_to_holders(expert, share(expert));
    changed_ranks_.push_back(slot / shape_.slots);
    auto const append = [&](std::size_t rank) { changed_ranks_.push_back(rank); };
    holders_.for_each(before, append);
    holders_.for_each(expert, append);
  }

  /// Exchanges the experts of two slots. Precondition: neither rank has the other expert.
  void swap(std::size_t one, std::size_t other) {
    std::uint32_t const from = slots_[one];
    std::uint32_t const to = slots_[other];
    std::int64_t const difference = share(from) - share(to);
    rank_loads_[one / shape_.slots] -= difference;
    rank_loads_[other / shape_.slots] += difference;
    set(one, to);
    set(other, from);
    changed_ranks_.insert(changed_ranks_.end(), {one / shape_.slots, other / shape_.slots});
  }

  /// Returns the ranks whose loads have changed since the last call of `forget_changed_ranks`, some
  /// of them repeatedly.
  [[nodiscard]] std::span<std::size_t const> changed_ranks() const { return changed_ranks_; }
  void forget_changed_ranks() { changed_ranks_.clear(); }

  [[nodiscard]] std::span<slot_change const> changes() const { return changes_; }
  /// Undoes all changes after the first `count` changes. An undo appends a change itself, so two
  /// entries are removed each time.
  void undo_to(std::size_t count) {
    while (changes_.size() > count) {
      slot_change const last = changes_.back();
      replace(last.slot, last.from);
      changes_.resize(changes_.size() - 2);
    }
  }
  /// Returns the experts of the slots after the first `count` changes.
  [[nodiscard]] std::vector<std::uint32_t> slots_after(std::size_t count) const {
    std::vector<std::uint32_t> result = first_;
    for (std::size_t i = 0; i != count; ++i) result[changes_[i].slot] = changes_[i].to;
    return result;
  }

 private:
  struct expert_shares {
    std::int64_t now = 0;
    std::int64_t less = 0;
    std::int64_t more = 0;
  };

  void find_shares(std::size_t expert) {
    std::int64_t const load = loads_[expert];
    auto const count = static_cast<std::int64_t>(copies_[expert]);
    shares_[expert] = {.now = count == 0   ? 0
                              : count == 1 ? load
                                           : load / count,
                       .less = count <= 1 ? load : load / (count - 1),
                       .more = load / (count + 1)};
  }

  void add_to_holders(std::size_t expert, std::int64_t load) {
    holders_.for_each(expert, [&](std::size_t rank) { rank_loads_[rank] += load; });
  }

  void set(std::size_t slot, std::uint32_t expert) {
    std::size_t const rank = slot / shape_.slots;
    std::uint32_t const before = slots_[slot];
    moved_ += cost_to_take(rank, expert) + cost_to_give(rank, before);
    holders_.erase(before, rank);
    holders_.insert(expert, rank);
    slots_[slot] = expert;
    changes_.push_back({static_cast<std::uint32_t>(slot), before, expert});
  }

  expert_shape shape_;
  std::vector<std::int64_t> loads_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> copies_;
  std::vector<expert_shares> shares_;
  rank_sets holders_;
  rank_sets old_holders_;
  std::vector<std::int64_t> rank_loads_;
  std::vector<std::size_t> changed_ranks_;
  std::ptrdiff_t moved_ = 0;
  std::vector<slot_change> changes_;
};

}  // namespace omnibal::inline v0::detail
