#pragma once

/// \file
/// The loads and counts of parts to which samples are added, and the part that takes the next best.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/winner_tree.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Words with the load above the number of the part: the least names the lowest of the least loads.
template <class Word>
class load_key {
 public:
  /// True where loads up to `total` fit, and no word has all bits set.
  [[nodiscard]] static constexpr bool can_hold(std::int64_t total, std::size_t parts) {
    auto const load_bits =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(total)));
    return load_bits + static_cast<std::size_t>(std::bit_width(parts)) < 8 * sizeof(Word);
  }

  explicit constexpr load_key(std::size_t parts)
      : part_bits_(static_cast<int>(std::bit_width(parts))) {}

  [[nodiscard]] constexpr Word operator()(std::int64_t load, std::size_t part) const {
    return static_cast<Word>(load) << part_bits_ | static_cast<Word>(part);
  }
  [[nodiscard]] constexpr std::int64_t load(Word word) const {
    return static_cast<std::int64_t>(word >> part_bits_);
  }
  [[nodiscard]] constexpr std::uint32_t part(Word word) const {
    return static_cast<std::uint32_t>(word & ((Word{1} << part_bits_) - 1));
  }

 private:
  int part_bits_;
};

/// Loads of one kind.
template <class Word>
class ranked_loads {
 public:
  explicit ranked_loads(std::size_t parts) : rank_(parts) { reset(parts); }

  /// So many parts without loads, in the same memory.
  void reset(std::size_t parts) {
    rank_ = load_key<Word>(parts);
    nodes_.resize(winner_tree<Word>::nodes_for(parts));
    tree().fill(parts, [this](std::size_t part) { return rank_(0, part); });
  }

  /// The open part with the least load, whatever is added.
  [[nodiscard]] std::uint32_t best(resources<1> const&) { return rank_.part(tree().least()); }
  void add(std::size_t part, resources<1> const& cost) {
    tree().set(part, tree()[part] + rank_(cost[0], 0));
  }
  /// The part gets no more samples.
  void close(std::size_t part) { tree().set(part, winner_tree<Word>::none); }

 private:
  [[nodiscard]] winner_tree<Word> tree() { return winner_tree<Word>(nodes_); }

  load_key<Word> rank_;
  std::vector<Word> nodes_;
};

/// Loads of several kinds, whose totals are alike.
template <std::size_t R>
class compared_loads {
 public:
  explicit compared_loads(std::size_t parts) { reset(parts); }

  /// So many parts without loads, in the same memory.
  void reset(std::size_t parts) { loads_.assign(parts, resources<R>{}); }

  /// The open part whose largest amount is least after the addition; of such parts the one with the
  /// least sum of its amounts, and of these the lowest.
  [[nodiscard]] std::uint32_t best(resources<R> const& cost) const {
    std::size_t result = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t least_sum = 0;
    for (std::size_t part = 0; part != loads_.size(); ++part) {
      std::int64_t largest = 0;
      std::int64_t sum = 0;
      for (std::size_t r = 0; r != R; ++r) {
        largest = std::max(largest, loads_[part][r] + cost[r]);
        sum += loads_[part][r];
      }
      if (largest > least || (largest == least && sum >= least_sum)) continue;
      least = largest;
      least_sum = sum;
      result = part;
    }
    return static_cast<std::uint32_t>(result);
  }
  void add(std::size_t part, resources<R> const& cost) { loads_[part] += cost; }
  /// The part gets no more samples.
  void close(std::size_t part) {
    for (std::int64_t& amount : loads_[part].amounts) amount = closed;
  }

 private:
  /// Above all loads, and far from overflow with what is compared with it.
  static constexpr std::int64_t closed = std::int64_t{1} << 54;

  std::vector<resources<R>> loads_;
};

/// Counts the samples of each part under a policy. As long as each sample is put into a part with
/// room there is room for all.
class count_limits {
 public:
  /// Without limits.
  explicit count_limits(std::size_t parts)
      : counts_(parts, 0), floor_(std::numeric_limits<std::size_t>::max()) {}

  /// Throws `std::invalid_argument` where the policy asks for equal counts that cannot be.
  count_limits(std::string_view function, count_policy policy, std::size_t samples,
               std::size_t parts)
      : count_limits(parts) {
    if (policy == count_policy::any) return;
    floor_ = samples / parts;
    extra_ = samples % parts;
    if (policy == count_policy::equal && extra_ != 0) {
      throw_invalid(function, to_text(samples) + " samples do not give " + to_text(parts) +
                                  " parts with equal counts");
    }
  }

  [[nodiscard]] std::size_t parts() const { return counts_.size(); }
  /// The number of samples in a part.
  [[nodiscard]] std::size_t operator[](std::size_t part) const { return counts_[part]; }
  [[nodiscard]] bool is_full(std::size_t part) const {
    return counts_[part] >= floor_ + (extra_ != 0 ? 1 : 0);
  }

  /// One more sample in a part with room. True, once at most, where that fills other parts too.
  bool add(std::size_t part) { return ++counts_[part] > floor_ && --extra_ == 0; }

  /// Takes an `add` back.
  void remove(std::size_t part) {
    if (counts_[part]-- > floor_) ++extra_;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::size_t floor_;
  /// How many more parts may have one sample above the floor.
  std::size_t extra_ = 0;
};

}  // namespace omnibal::inline v0::detail
