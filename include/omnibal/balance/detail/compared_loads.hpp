#pragma once

/// \file
/// Which of many parts takes a sample with costs of several kinds best.

#include <omnibal/detail/integer_costs.hpp>
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

/// Loads of several kinds, whose totals are alike. Parts whose kinds differ alike are together in
/// blocks, each of which knows what none of its parts is below; so most blocks need no look. A
/// change takes the time of a block and of a look at the list of blocks. Memory: 48 + 8R bytes per
/// part.
template <std::size_t R>
class compared_loads {
 public:
  explicit compared_loads(std::size_t parts) { reset(parts); }

  /// So many parts without loads, in the same memory.
  void reset(std::size_t parts) {
    loads_.assign(parts, resources<R>{});
    key_of_.assign(parts, {});
    place_of_.resize(parts);
    half_ = parts > fewest_in_blocks ? half_block : std::max<std::size_t>(1, parts);
    std::size_t const made = (parts + half_ - 1) / half_;
    places_.resize(2 * made * 2 * half_);
    blocks_.reserve(2 * made);
    free_.reserve(2 * made);
    order_.resize(parts);
    for (std::uint32_t part = 0; part != parts; ++part) order_[part] = part;
    fill_blocks();
  }

  /// The open part whose largest amount is least after the addition; of such parts the one with the
  /// least sum of its amounts, and of these the lowest.
  [[nodiscard]] std::uint32_t best(resources<R> const& cost) {
    std::size_t nearest = 0;
    for (std::size_t b = 0; b != blocks_.size(); ++b) {
      blocks_[b].largest = largest_amount(blocks_[b].least + cost);
      if (blocks_[b].largest < blocks_[nearest].largest) nearest = b;
    }
    choice chosen;
    look_at(blocks_[nearest], cost, chosen);
    for (block const& other : blocks_) {
      if (&other == &blocks_[nearest]) continue;
      if (choice{other.largest, other.least_sum, other.lowest} < chosen) {
        look_at(other, cost, chosen);
      }
    }
    return chosen.part;
  }

  void add(std::size_t part, resources<R> const& cost) {
    loads_[part] += cost;
    if (blocks_.size() == 1) return;
    if (++added_ == loads_.size()) return rebuild();
    update(static_cast<std::uint32_t>(part));
  }

  /// The part gets no more samples.
  void close(std::size_t part) {
    for (std::int64_t& amount : loads_[part].amounts) amount = closed;
    if (blocks_.size() != 1) update(static_cast<std::uint32_t>(part));
  }

 private:
  /// Above all loads, and far from overflow with what is compared with it.
  static constexpr std::int64_t closed = std::int64_t{1} << 54;
  /// The parts of a block that is new; one that is full has twice as many.
  static constexpr std::size_t half_block = 64;
  /// Fewer parts than these are one block, which is looked at whole.
  static constexpr std::size_t fewest_in_blocks = 256;

  struct choice {
    std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    std::int64_t sum = std::numeric_limits<std::int64_t>::max();
    std::uint32_t part = ~std::uint32_t{0};

    [[nodiscard]] friend constexpr bool operator<(choice const& left, choice const& right) {
      if (left.largest != right.largest) return left.largest < right.largest;
      return left.sum != right.sum ? left.sum < right.sum : left.part < right.part;
    }
  };
  struct block {
    resources<R> least{};
    std::int64_t least_sum = 0;
    std::uint32_t lowest = 0;
    /// Its parts are at the places [first, first + size).
    std::size_t first = 0;
    std::size_t size = 0;
    /// No key of a part in it is below, and none of a part in an earlier block above.
    std::uint64_t least_key = 0;
    /// The largest amount after the addition that is looked for, or less.
    std::int64_t largest = 0;
  };

  void look_at(block const& own, resources<R> const& cost, choice& chosen) const {
    for (std::uint32_t const part : std::span(places_).subspan(own.first, own.size)) {
      resources<R> const& load = loads_[part];
      std::int64_t const largest = largest_amount(load + cost);
      if (largest > chosen.largest) continue;
      std::int64_t const sum = sum_of(load);
      if (choice const here{largest, sum, part}; here < chosen) chosen = here;
    }
  }

  /// Near for loads whose kinds differ alike: the differences to the first kind, their bits
  /// interleaved.
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

  /// Puts the parts in order and into half-full blocks.
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
      block own{.first = 2 * i, .least_key = i == 0 ? 0 : key_of_[order_[i]]};
      for (std::size_t k = i; k != std::min(i + half_, parts); ++k) append(own, order_[k]);
      blocks_.push_back(own);
    }
    std::size_t const made = blocks_.size();
    for (std::size_t b = 2 * made; b-- != made;) free_.push_back(2 * half_ * b);
  }

  void append(block& own, std::uint32_t part) {
    place_of_[part] = own.first + own.size;
    places_[place_of_[part]] = part;
    resources<R> const& load = loads_[part];
    if (own.size++ == 0) {
      own.least = load;
      own.least_sum = sum_of(load);
      own.lowest = part;
      return;
    }
    for (std::size_t r = 0; r != R; ++r) own.least[r] = std::min(own.least[r], load[r]);
    own.least_sum = std::min(own.least_sum, sum_of(load));
    own.lowest = std::min(own.lowest, part);
  }

  /// Makes the block of so many parts from a place on.
  void refill(block& own, std::size_t first, std::size_t size) {
    own.size = 0;
    for (std::size_t k = 0; k != size; ++k) append(own, places_[first + k]);
  }

  /// After the load of a part has changed.
  void update(std::uint32_t part) {
    key_of_[part] = key_of(loads_[part]);
    std::size_t const first = place_of_[part] / (2 * half_) * (2 * half_);
    auto const own = std::find_if(blocks_.begin(), blocks_.end(),
                                  [first](block const& b) { return b.first == first; });
    auto const next = own + 1;
    bool const stays = own->least_key <= key_of_[part] &&
                       (next == blocks_.end() || key_of_[part] <= next->least_key);
    if (stays) return refill(*own, own->first, own->size);
    std::uint32_t const last = places_[own->first + own->size - 1];
    places_[place_of_[part]] = last;
    refill(*own, own->first, own->size - 1);
    if (own->size == 0 && own != blocks_.begin()) {
      free_.push_back(own->first);
      blocks_.erase(own);
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
  }

  [[nodiscard]] typename std::vector<block>::iterator block_for(std::uint64_t key) {
    return std::upper_bound(blocks_.begin() + 1, blocks_.end(), key,
                            [](std::uint64_t k, block const& b) { return k < b.least_key; }) -
           1;
  }

  /// Moves the upper half of a full block into one of its own.
  void split(typename std::vector<block>::iterator full) {
    std::uint32_t* const begin = places_.data() + full->first;
    std::nth_element(begin, begin + half_, begin + 2 * half_,
                     [this](std::uint32_t left, std::uint32_t right) {
                       return std::pair(key_of_[left], left) < std::pair(key_of_[right], right);
                     });
    block upper{.first = free_.back(), .least_key = key_of_[begin[half_]]};
    free_.pop_back();
    refill(upper, full->first + half_, half_);
    refill(*full, full->first, half_);
    blocks_.insert(full + 1, upper);
  }

  std::vector<resources<R>> loads_;
  std::vector<std::uint64_t> key_of_;
  /// The place of each part, and the part at each place of a block.
  std::vector<std::size_t> place_of_;
  std::vector<std::uint32_t> places_;
  std::vector<block> blocks_;
  /// The first places of blocks that may be made.
  std::vector<std::size_t> free_;
  /// All parts, by key when blocks were made last.
  std::vector<std::uint32_t> order_;
  std::size_t half_ = 0;
  std::size_t added_ = 0;
  int shift_ = 0;
};

}  // namespace omnibal::inline v0::detail
