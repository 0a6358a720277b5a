// SPDX-License-Identifier: Apache-2.0
#include "packing_rivals.hpp"

#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace examples {

namespace {

/// The samples that fit, by their numbers. The others are oversized.
std::vector<std::uint32_t> fitting(std::span<std::int64_t const> lengths, std::int64_t capacity,
                                   omnibal::packing& result) {
  std::vector<std::uint32_t> fit;
  for (std::uint32_t i = 0; i != lengths.size(); ++i) {
    (lengths[i] <= capacity ? fit : result.oversized).push_back(i);
  }
  result.report = {.lower_bound = omnibal::packing_bound(lengths, std::identity{}, capacity),
                   .rounds = 1,
                   .item_rounds = fit.size()};
  return fit;
}

/// The rooms of packs, and the first that has enough: a tree of the larger of two.
class first_rooms {
 public:
  first_rooms(std::size_t packs, std::int64_t capacity) {
    while (leaves_ < packs) leaves_ *= 2;
    largest_.assign(2 * leaves_, capacity);
  }

  /// Precondition: some pack has room. Takes it away.
  std::size_t take(std::int64_t length) {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (largest_[node] < length) ++node;
    }
    std::size_t const pack = node - leaves_;
    largest_[node] -= length;
    while (node > 1) {
      node /= 2;
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
    }
    return pack;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::int64_t> largest_;
};

/// Packs with the same lengths.
struct equal_packs {
  std::size_t count = 0;
  std::vector<std::int64_t> lengths;
};

}  // namespace

omnibal::packing first_fit_shuffled(std::span<std::int64_t const> lengths, std::int64_t capacity,
                                    std::uint64_t seed) {
  omnibal::packing result;
  auto order = fitting(lengths, capacity, result);
  omnibal::rng::fisher_yates{seed}(std::span(order), 0);
  first_rooms rooms(order.size(), capacity);
  std::vector<std::vector<std::uint32_t>> packs;
  for (std::uint32_t const i : order) {
    std::size_t const pack = rooms.take(lengths[i]);
    if (pack == packs.size()) packs.emplace_back();
    packs[pack].push_back(i);
  }
  for (auto const& pack : packs) {
    for (std::uint32_t const i : pack) result.groups.push(i);
    result.groups.close();
  }
  return result;
}

omnibal::packing shortest_pack_first(std::span<std::int64_t const> lengths, std::int64_t capacity) {
  omnibal::packing result;
  std::map<std::int64_t, std::vector<std::uint32_t>, std::greater<>> samples_of;
  for (std::uint32_t const i : fitting(lengths, capacity, result)) {
    samples_of[lengths[i]].push_back(i);
  }
  std::map<std::int64_t, std::vector<equal_packs>, std::greater<>> by_room;
  for (auto const& [length, samples] : samples_of) {
    std::size_t left = samples.size();
    while (left != 0) {
      auto const widest = by_room.begin();
      bool const is_new = widest == by_room.end() || widest->first < length;
      equal_packs made{is_new ? left : std::min(left, widest->second.back().count), {}};
      std::int64_t const room = (is_new ? capacity : widest->first) - length;
      if (!is_new) {
        equal_packs& from = widest->second.back();
        from.count -= made.count;
        made.lengths = from.count == 0 ? std::move(from.lengths) : from.lengths;
        if (from.count == 0) widest->second.pop_back();
        if (widest->second.empty()) by_room.erase(widest);
      }
      made.lengths.push_back(length);
      left -= made.count;
      by_room[room].push_back(std::move(made));
    }
  }
  std::map<std::int64_t, std::size_t> used;
  for (auto const& [room, kinds] : by_room) {
    for (equal_packs const& kind : kinds) {
      for (std::size_t k = 0; k != kind.count; ++k) {
        for (std::int64_t const length : kind.lengths) {
          result.groups.push(samples_of[length][used[length]++]);
        }
        result.groups.close();
      }
    }
  }
  return result;
}

}  // namespace examples
