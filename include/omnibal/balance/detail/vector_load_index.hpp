// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Search for the best part for a sample with costs of several kinds.

#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// An index of parts by their loads in several kinds. It finds the part whose largest amount is the
/// smallest after a sample is added, and is fast if the totals of the parts are similar. Parts with
/// similar differences between their kinds are in the same block. Each block stores a lower bound
/// on the loads of its parts, and each run of blocks stores a lower bound of its blocks. A search
/// therefore skips most blocks. Memory: 48 + 8R bytes per part.
template <std::size_t R>
class vector_load_index {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  explicit vector_load_index(std::size_t parts) { reset(parts); }

  /// Resets to `parts` parts without loads, in the same memory.
  void reset(std::size_t parts) {
    loads_.assign(parts, resources<R>{});
    key_of_.assign(parts, {});
    place_of_.resize(parts);
    half_ = parts > min_in_blocks ? half_block : std::max<std::size_t>(1, parts);
    std::size_t const made = (parts + half_ - 1) / half_;
    places_.resize(2 * made * 2 * half_);
    blocks_.reserve(2 * made);
    runs_.reserve(2 * made / run_blocks + 1);
    free_.reserve(2 * made);
    order_.resize(parts);
    for (std::uint32_t part = 0; part != parts; ++part) order_[part] = part;
    fill_blocks();
  }

  /// Returns the open part whose largest amount is smallest after the addition. Ties go to the part
  /// with the smallest sum of its amounts, and then to the lowest part.
  [[nodiscard]] std::uint32_t best(resources<R> const& cost) {
    return best_of(cost, [](std::uint32_t) { return true; });
  }

  /// Returns the best part among the parts that `has_room` accepts, or `none`.
  template <class HasRoom>
  [[nodiscard]] std::uint32_t best_of(resources<R> const& cost, HasRoom const& has_room) {
    choice chosen;
    // Successive samples are mostly similar, so the last block is likely to have a good part.
    block const* const last = &blocks_[std::min(last_, blocks_.size() - 1)];
    look_at(*last, cost, has_room, chosen);
    block const* const nearest = nearest_block(cost);
    if (nearest != last) look_at(*nearest, cost, has_room, chosen);
    for (std::size_t f = 0; f != runs_.size(); ++f) {
      if (!may_improve(runs_[f], cost, chosen)) continue;
      for (block const& own : blocks_of(f)) {
        if (&own == last || &own == nearest || !may_improve(own.least, cost, chosen)) continue;
        look_at(own, cost, has_room, chosen);
      }
    }
    return chosen.total.part;
  }

  void add(std::size_t part, resources<R> const& cost) {
    loads_[part] += cost;
    if (blocks_.size() == 1) return;
    if (++added_ == loads_.size()) return rebuild();
    update(static_cast<std::uint32_t>(part));
  }

  /// Closes a part, which gets no more samples.
  void close(std::size_t part) {
    for (std::int64_t& amount : loads_[part].amounts) amount = closed;
    if (blocks_.size() != 1) update(static_cast<std::uint32_t>(part));
  }

 private:
  /// The amount of a closed part: above all loads, and far from overflow in sums with other loads.
  static constexpr std::int64_t closed = std::int64_t{1} << 54;
  /// The number of parts of a new block; a full block has twice this number.
  static constexpr std::size_t half_block = 64;
  /// Fewer parts than this number are one block, which is searched completely.
  static constexpr std::size_t min_in_blocks = 256;
  /// The number of blocks in a run.
  static constexpr std::size_t run_blocks = 16;

  struct choice {
    std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    /// The part and the sum of its amounts.
    load_order<std::int64_t> total{std::numeric_limits<std::int64_t>::max(), none};

    [[nodiscard]] friend constexpr bool operator<(choice const& left, choice const& right) {
      return left.largest != right.largest ? left.largest < right.largest
                                           : left.total < right.total;
    }
  };
  /// Lower bounds over several parts: of the loads in each kind, of their sum, and of the number of
  /// the part.
  struct bounds {
    resources<R> loads{};
    std::int64_t sum = 0;
    std::uint32_t part = 0;

    void join(bounds const& other) {
      for (std::size_t r = 0; r != R; ++r) loads[r] = std::min(loads[r], other.loads[r]);
      sum = std::min(sum, other.sum);
      part = std::min(part, other.part);
    }
  };
  struct block {
    bounds least;
    /// The parts of the block are at the places [first, first + size).
    std::size_t first = 0;
    std::size_t size = 0;
    /// A lower bound on the keys of its parts, and an upper bound on the keys of all earlier
    /// blocks.
    std::uint64_t min_key = 0;
  };

  [[nodiscard]] static bool may_improve(bounds const& least, resources<R> const& cost,
                                        choice const& chosen) {
    std::int64_t const largest = largest_amount(least.loads + cost);
    return largest <= chosen.largest && choice{largest, {least.sum, least.part}} < chosen;
  }

  [[nodiscard]] std::span<block const> blocks_of(std::size_t run) const {
    std::size_t const first = run * run_blocks;
    return std::span(blocks_).subspan(first, std::min(run_blocks, blocks_.size() - first));
  }

  /// Returns the block with the smallest bound after the addition of `cost`, in the run with the
  /// smallest bound.
  [[nodiscard]] block const* nearest_block(resources<R> const& cost) const {
    auto const is_less = [&cost](bounds const& a, bounds const& b) {
      return largest_amount(a.loads + cost) < largest_amount(b.loads + cost);
    };
    auto const run = std::min_element(runs_.begin(), runs_.end(), is_less);
    auto const blocks = blocks_of(static_cast<std::size_t>(run - runs_.begin()));
    return &*std::min_element(
        blocks.begin(), blocks.end(),
        [&is_less](block const& a, block const& b) { return is_less(a.least, b.least); });
  }

  void measure_run(std::size_t run) {
    auto const blocks = blocks_of(run);
    runs_[run] = blocks.front().least;
    for (block const& own : blocks.subspan(1)) runs_[run].join(own.least);
  }

  void measure_runs() {
    runs_.resize((blocks_.size() + run_blocks - 1) / run_blocks);
    for (std::size_t f = 0; f != runs_.size(); ++f) measure_run(f);
  }

  template <class HasRoom>
  void look_at(block const& own, resources<R> const& cost, HasRoom const& has_room,
               choice& chosen) const {
    for (std::uint32_t const part : std::span(places_).subspan(own.first, own.size)) {
      resources<R> const& load = loads_[part];
      std::int64_t const largest = largest_amount(load + cost);
      if (largest > chosen.largest) continue;
      choice const here{largest, {sum_of(load), part}};
      if (here < chosen && has_room(part)) chosen = here;
    }
  }

  /// Returns a key that is similar for loads with similar differences between kinds: the
  /// differences to the first kind, with interleaved bits.
  [[nodiscard]] std::uint64_t key_of(resources<R> const& load) const {
    constexpr int bits = 62 / static_cast<int>(R - 1);
    constexpr std::int64_t middle = std::int64_t{1} << (bits - 1);
    std::uint64_t differences[R - 1];
    for (std::size_t r = 1; r != R; ++r) {
      std::int64_t const difference = (load[r] - load[0]) >> shift_;
      differences[r - 1] =
          static_cast<std::uint64_t>(std::clamp(difference, -middle, middle - 1) + middle);
    }
    if constexpr (R == 2) return differences[0];
    std::uint64_t key = 0;
    for (int bit = bits; bit-- != 0;) {
      for (std::uint64_t const difference : differences) key = key << 1 | (difference >> bit & 1);
    }
    return key;
  }

  /// Sorts the parts and distributes them to half-full blocks.
  void rebuild() {
    if constexpr (R > 2) {
      std::int64_t widest = 1;
      for (resources<R> const& load : loads_) {
        if (load[0] == closed) continue;
        for (std::size_t r = 1; r != R; ++r) widest = std::max(widest, std::abs(load[r] - load[0]));
      }
      constexpr int bits = 62 / static_cast<int>(R - 1);
      auto const needed = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(widest))) + 1;
      shift_ = std::max(0, needed - bits);
    }
    for (std::size_t part = 0; part != loads_.size(); ++part) key_of_[part] = key_of(loads_[part]);
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t left, std::uint32_t right) {
      return std::pair(key_of_[left], left) < std::pair(key_of_[right], right);
    });
    fill_blocks();
  }

  void fill_blocks() {
    added_ = 0;
    blocks_.clear();
    free_.clear();
    std::size_t const parts = order_.size();
    for (std::size_t i = 0; i < parts; i += half_) {
      block own{.least = {}, .first = 2 * i, .size = 0, .min_key = i == 0 ? 0 : key_of_[order_[i]]};
      for (std::size_t k = i; k != std::min(i + half_, parts); ++k) append(own, order_[k]);
      blocks_.push_back(own);
    }
    measure_runs();
    std::size_t const made = blocks_.size();
    for (std::size_t b = 2 * made; b-- != made;) free_.push_back(2 * half_ * b);
  }

  void append(block& own, std::uint32_t part) {
    place_of_[part] = own.first + own.size;
    places_[place_of_[part]] = part;
    bounds const alone{loads_[part], sum_of(loads_[part]), part};
    if (own.size++ == 0) {
      own.least = alone;
    } else {
      own.least.join(alone);
    }
  }

  /// Rebuilds a block of `size` parts from the place `first` on.
  void refill(block& own, std::size_t first, std::size_t size) {
    own.size = 0;
    for (std::size_t k = 0; k != size; ++k) append(own, places_[first + k]);
  }

  /// Updates the blocks after the load of a part has changed.
  void update(std::uint32_t part) {
    key_of_[part] = key_of(loads_[part]);
    std::size_t const first = place_of_[part] / (2 * half_) * (2 * half_);
    auto const own = std::find_if(blocks_.begin(), blocks_.end(),
                                  [first](block const& b) { return b.first == first; });
    auto const next = own + 1;
    bool const stays =
        own->min_key <= key_of_[part] && (next == blocks_.end() || key_of_[part] <= next->min_key);
    auto const place = static_cast<std::size_t>(own - blocks_.begin());
    last_ = place;
    if (stays) {
      refill(*own, own->first, own->size);
      return measure_run(place / run_blocks);
    }
    std::uint32_t const last = places_[own->first + own->size - 1];
    places_[place_of_[part]] = last;
    refill(*own, own->first, own->size - 1);
    if (own->size == 0 && own != blocks_.begin()) {
      free_.push_back(own->first);
      blocks_.erase(own);
      measure_runs();
    } else {
      measure_run(place / run_blocks);
    }
    insert(part);
  }

  void insert(std::uint32_t part) {
    auto own = block_for(key_of_[part]);
    if (own->size == 2 * half_) {
      if (free_.empty()) return rebuild();
      split(own);
      own = block_for(key_of_[part]);
    }
    append(*own, part);
    measure_run(static_cast<std::size_t>(own - blocks_.begin()) / run_blocks);
  }

  [[nodiscard]] typename std::vector<block>::iterator block_for(std::uint64_t key) {
    return std::upper_bound(blocks_.begin() + 1, blocks_.end(), key,
                            [](std::uint64_t k, block const& b) { return k < b.min_key; }) -
           1;
  }

  /// Moves the upper half of a full block into a new block.
  void split(typename std::vector<block>::iterator full) {
    std::uint32_t* const begin = places_.data() + full->first;
    std::nth_element(begin, begin + half_, begin + 2 * half_,
                     [this](std::uint32_t left, std::uint32_t right) {
                       return std::pair(key_of_[left], left) < std::pair(key_of_[right], right);
                     });
    block upper{.least = {}, .first = free_.back(), .size = 0, .min_key = key_of_[begin[half_]]};
    free_.pop_back();
    refill(upper, full->first + half_, half_);
    refill(*full, full->first, half_);
    blocks_.insert(full + 1, upper);
    measure_runs();
  }

  std::vector<resources<R>> loads_;
  std::vector<std::uint64_t> key_of_;
  /// The place of each part, and the part at each place of a block.
  std::vector<std::size_t> place_of_;
  std::vector<std::uint32_t> places_;
  std::vector<block> blocks_;
  /// The bounds of runs of `run_blocks` blocks.
  std::vector<bounds> runs_;
  /// The first places of the blocks that are not in use.
  std::vector<std::size_t> free_;
  /// All parts, sorted by their keys at the time of the last rebuild.
  std::vector<std::uint32_t> order_;
  /// The number of parts of a new block.
  std::size_t half_ = 0;
  /// The index of the block of the part whose load changed last.
  std::size_t last_ = 0;
  /// The number of samples added since the last rebuild.
  std::size_t added_ = 0;
  int shift_ = 0;
};

}  // namespace omnibal::inline v0::detail
