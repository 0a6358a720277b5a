#pragma once

/// \file
/// How many layers of a kind take each point.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Layers in groups whose members have as many points, with bytes and gains that differ by an eighth
/// of the largest ones at most.
class layer_kinds {
 public:
  /// False where there are more than `most_kinds`.
  [[nodiscard]] bool find(layer_fronts const& fronts, std::span<std::uint32_t const> layers,
                          std::size_t most_kinds) {
    kinds_.resize(0);
    for (std::uint32_t const layer : layers) {
      std::size_t kind = 0;
      while (kind != kinds_.size() && !is_similar(fronts[kinds_[kind].front()], fronts[layer])) {
        ++kind;
      }
      if (kind == most_kinds) return false;
      if (kind == kinds_.size()) kinds_.emplace_back();
      kinds_[kind].push_back(layer);
    }
    return true;
  }

  [[nodiscard]] std::size_t size() const { return kinds_.size(); }
  [[nodiscard]] std::span<std::uint32_t const> operator[](std::size_t kind) const {
    return kinds_[kind];
  }

 private:
  [[nodiscard]] static bool is_near(std::int64_t left, std::int64_t right, std::int64_t largest) {
    std::int64_t const difference = left > right ? left - right : right - left;
    return difference <= largest / 8;
  }

  [[nodiscard]] static bool is_similar(std::span<front_point const> left,
                                       std::span<front_point const> right) {
    if (left.size() != right.size()) return false;
    for (std::size_t p = 1; p != left.size(); ++p) {
      if (!is_near(left[p].bytes, right[p].bytes, left.back().bytes) ||
          !is_near(left[p].gain, right[p].gain, left.back().gain)) {
        return false;
      }
    }
    return true;
  }

  std::vector<std::vector<std::uint32_t>> kinds_;
};

/// One number for each price.
using price_losses = std::array<std::int64_t, byte_prices::count>;

/// True where a loss is above the slack at some price.
[[nodiscard]] inline bool exceeds(price_losses const& losses, price_losses const& slack) {
  bool result = false;
  for (std::size_t m = 0; m != losses.size(); ++m) result |= losses[m] > slack[m];
  return result;
}

inline void add_losses(price_losses& sum, price_losses const& losses) {
  for (std::size_t m = 0; m != sum.size(); ++m) sum[m] += losses[m];
}

/// At any price, a solution gains the surplus of the best points plus the price of the budget at
/// most, less what its points lose against the best ones. So one that gains more than a known
/// solution loses no more than a slack, whatever the price; points that lose more alone are out.
/// Losses are rounded down and slacks up, in a unit that lets any sum of losses fit 64 bits.
class loss_table {
 public:
  struct fixed_layer {
    std::uint32_t layer;
    std::uint32_t point;
  };

  /// False where no solution gains more than `known`.
  [[nodiscard]] bool fill(layer_fronts const& fronts, std::int64_t budget,
                          byte_prices const& prices, std::int64_t known) {
    find_best(fronts, budget, prices, known);
    if (*std::min_element(wide_slack_.begin(), wide_slack_.end()) < 0) return false;
    set_unit(fronts.size());
    starts_.clear();
    losses_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      starts_.push_back(losses_.size());
      for (std::size_t p = 0; p != fronts[layer].size(); ++p) {
        losses_.push_back(losses_of(best_[layer], surpluses_[losses_.size()]));
      }
    }
    starts_.push_back(losses_.size());
    return fix_layers();
  }

  /// Layers with several points that are not out yet.
  [[nodiscard]] std::span<std::uint32_t const> free_layers() const { return free_; }
  /// The other layers. What they lose is already taken from the slack.
  [[nodiscard]] std::span<fixed_layer const> fixed_layers() const { return fixed_; }
  [[nodiscard]] price_losses const& slack() const { return slack_; }
  /// Of the points of a layer.
  [[nodiscard]] std::span<price_losses const> operator[](std::uint32_t layer) const {
    return std::span(losses_).subspan(starts_[layer], starts_[layer + 1] - starts_[layer]);
  }
  /// No solution of which the points lose this much less than the slack gains more than the result
  /// beyond the known one.
  [[nodiscard]] int128 gain_of(std::int64_t unused_slack) const {
    return (static_cast<int128>(unused_slack) + 1) << unit_;
  }

 private:
  using wide_losses = std::array<int128, byte_prices::count>;

  void find_best(layer_fronts const& fronts, std::int64_t budget, byte_prices const& prices,
                 std::int64_t known) {
    best_.clear();
    wide_losses known_prices;
    for (std::size_t m = 0; m != byte_prices::count; ++m) {
      known_prices[m] = prices[m];
      wide_slack_[m] = known_prices[m] * budget - prices.scaled(known) - prices.scaled(1);
    }
    surpluses_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      wide_losses best{};
      for (front_point const& point : fronts[layer]) {
        int128 const gain = prices.scaled(point.gain);
        auto& surplus = surpluses_.emplace_back();
        for (std::size_t m = 0; m != byte_prices::count; ++m) {
          surplus[m] = gain - known_prices[m] * point.bytes;
          best[m] = std::max(best[m], surplus[m]);
        }
      }
      best_.push_back(best);
      for (std::size_t m = 0; m != byte_prices::count; ++m) wide_slack_[m] += best[m];
    }
  }

  void set_unit(std::size_t layers) {
    int128 const most = *std::max_element(wide_slack_.begin(), wide_slack_.end());
    int const room = 61 - static_cast<int>(std::bit_width(layers));
    unit_ = 0;
    while (most >> unit_ >> room != 0) ++unit_;
    above_ = static_cast<std::int64_t>(most >> unit_) + 1;
    for (std::size_t m = 0; m != slack_.size(); ++m) {
      slack_[m] = static_cast<std::int64_t>(wide_slack_[m] >> unit_);
    }
  }

  [[nodiscard]] price_losses losses_of(wide_losses const& best, wide_losses const& surplus) const {
    price_losses result;
    for (std::size_t m = 0; m != result.size(); ++m) {
      int128 const loss = (best[m] - surplus[m]) >> unit_;
      result[m] = loss < above_ ? static_cast<std::int64_t>(loss) : above_;
    }
    return result;
  }

  [[nodiscard]] bool fix_layers() {
    free_.clear();
    fixed_.clear();
    price_losses const slack = slack_;
    for (std::uint32_t layer = 0; layer + 1 != starts_.size(); ++layer) {
      std::size_t left = 0;
      std::uint32_t last = 0;
      for (std::uint32_t point = 0; point != (*this)[layer].size(); ++point) {
        if (exceeds((*this)[layer][point], slack)) continue;
        ++left;
        last = point;
      }
      if (left == 0) return false;
      if (left > 1) {
        free_.push_back(layer);
        continue;
      }
      fixed_.push_back({layer, last});
      for (std::size_t m = 0; m != slack_.size(); ++m) slack_[m] -= (*this)[layer][last][m];
    }
    return *std::min_element(slack_.begin(), slack_.end()) >= 0;
  }

  int unit_ = 0;
  std::int64_t above_ = 0;
  wide_losses wide_slack_{};
  price_losses slack_{};
  /// Of layers and of points.
  std::vector<wide_losses> best_;
  std::vector<wide_losses> surpluses_;
  std::vector<std::size_t> starts_;
  std::vector<price_losses> losses_;
  std::vector<std::uint32_t> free_;
  std::vector<fixed_layer> fixed_;
};

/// Numbers that are sorted when the first sum is asked for, from the order that they had before: the
/// same numbers after a small change are sorted in nearly linear time.
class smallest_sums {
 public:
  /// Takes the numbers `value(index)` for all indices below `count`.
  template <class Value>
  void assign(std::uint32_t count, Value const& value) {
    if (entries_.size() != count) {
      entries_.clear();
      for (std::uint32_t i = 0; i != count; ++i) entries_.push_back({0, i});
    }
    sums_.clear();
    least_ = 0;
    for (entry& one : entries_) {
      one.value = value(one.index);
      least_ += std::min<std::int64_t>(one.value, 0);
    }
  }

  /// The least sum of any of the numbers, or of none.
  [[nodiscard]] std::int64_t least() const { return least_; }

  /// Of the `count` smallest numbers. Precondition: there are as many.
  [[nodiscard]] std::int64_t sum(std::size_t count) {
    if (sums_.empty()) sort();
    return sums_[count];
  }

 private:
  struct entry {
    std::int64_t value;
    std::uint32_t index;
  };

  void sort() {
    if (!insert_all()) {
      std::sort(entries_.begin(), entries_.end(),
                [](entry const& left, entry const& right) { return left.value < right.value; });
    }
    sums_.push_back(0);
    for (entry const& one : entries_) sums_.push_back(sums_.back() + one.value);
  }

  /// Sorts by insertion; false where that takes too many moves.
  [[nodiscard]] bool insert_all() {
    std::size_t moves = 4 * entries_.size();
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      entry const one = entries_[i];
      std::size_t place = i;
      for (; place != 0 && entries_[place - 1].value > one.value; --place) {
        entries_[place] = entries_[place - 1];
      }
      entries_[place] = one;
      if (i - place > moves) return false;
      moves -= i - place;
    }
    return true;
  }

  std::vector<entry> entries_;
  /// Empty until they are asked for.
  std::vector<std::int64_t> sums_;
  std::int64_t least_ = 0;
};

/// Numbers of layers for each point, with no more than what these lose together at each price.
struct layer_counts {
  price_losses losses;
  /// The place of the first number in `kind_counts::numbers`.
  std::size_t first;
};

/// All counts that lose no more than a slack.
///
/// Two points compete for most layers: the main one and the second one, those that lose least in
/// all. With `c` layers at the second point and the others at the main one, the least loss is known
/// from the sorted differences of the two. The other points are rare: the loss of a layer there, as
/// if one more or one less layer at the second point cost the difference at place `c`, is a bound
/// for any number of them.
class kind_counts {
 public:
  /// False where there are more than `most`.
  [[nodiscard]] bool list(loss_table const& table, std::span<std::uint32_t const> layers,
                          std::size_t most) {
    size_ = layers.size();
    load(table, layers);
    rank_points();
    counts_.clear();
    numbers_.clear();
    tries_ = 8 * most;
    range const seconds = find_seconds(table.slack());
    for (std::size_t c = seconds.first; c < seconds.last; ++c) {
      std::size_t const begin = counts_.size();
      push_seconds(c);
      price_losses left = table.slack();
      for (std::size_t r = 2; r < ranked_.size(); ++r) begin_extra(r, c, left);
      for (std::size_t r = 2; r < ranked_.size(); ++r) {
        if (!push_rare(r, begin, left, most)) return false;
      }
      auto const first = counts_.begin() + static_cast<std::ptrdiff_t>(begin);
      auto const is_out = [&](layer_counts const& one) {
        return exceeds(one.losses, table.slack());
      };
      counts_.erase(std::remove_if(first, counts_.end(), is_out), counts_.end());
      if (counts_.size() > most) return false;
    }
    return true;
  }

  [[nodiscard]] std::span<layer_counts const> counts() const { return counts_; }
  /// One for each point.
  [[nodiscard]] std::span<std::uint32_t const> numbers(layer_counts const& one) const {
    return std::span(numbers_).subspan(one.first, ranked_.size());
  }
  /// The points: main, second, the rare ones.
  [[nodiscard]] std::span<std::uint32_t const> ranked_points() const { return ranked_; }

 private:
  static constexpr std::size_t prices = byte_prices::count;

  struct range {
    std::size_t first;
    std::size_t last;
  };

  /// One for each price.
  struct rare_losses {
    std::array<bool, prices> is_found;
    std::array<smallest_sums, prices> sums;
  };

  [[nodiscard]] std::span<std::int64_t> losses(std::size_t price, std::size_t point) {
    return std::span(losses_).subspan((price * ranked_.size() + point) * size_, size_);
  }

  void load(loss_table const& table, std::span<std::uint32_t const> layers) {
    ranked_.resize(table[layers[0]].size());
    losses_.resize(prices * ranked_.size() * size_);
    for (std::size_t i = 0; i != size_; ++i) {
      auto const points = table[layers[i]];
      for (std::size_t p = 0; p != points.size(); ++p) {
        for (std::size_t m = 0; m != prices; ++m) losses(m, p)[i] = points[p][m];
      }
    }
  }

  void rank_points() {
    std::iota(ranked_.begin(), ranked_.end(), 0u);
    totals_.clear();
    for (std::uint32_t const point : ranked_) {
      auto const all = losses(byte_prices::middle, point);
      totals_.push_back(std::accumulate(all.begin(), all.end(), std::int64_t{0}));
    }
    std::sort(ranked_.begin(), ranked_.end(), [&](std::uint32_t left, std::uint32_t right) {
      return totals_[left] != totals_[right] ? totals_[left] < totals_[right] : left < right;
    });
  }

  /// The numbers of layers at the second point that are within the slack, whatever the others do.
  /// Leaves the sorted differences between the second and the main point, and their sums.
  [[nodiscard]] range find_seconds(price_losses const& slack) {
    range result{0, size_ + 1};
    for (std::size_t m = 0; m != prices; ++m) {
      auto const main = losses(m, ranked_[0]);
      auto const second = losses(m, ranked_[1]);
      others_.assign(main.begin(), main.end());
      sort_differences(second, others_, differences_[m], sums_[m]);
      if (ranked_.size() == 2) {
        shrink(sums_[m], slack[m], result);
        continue;
      }
      for (std::size_t r = 2; r != ranked_.size(); ++r) {
        auto const rare = losses(m, ranked_[r]);
        for (std::size_t i = 0; i != size_; ++i) others_[i] = std::min(others_[i], rare[i]);
      }
      sort_differences(second, others_, scratch_, scratch_sums_);
      shrink(scratch_sums_, slack[m], result);
    }
    return result;
  }

  /// `sums[c]` is the least loss with `c` layers on the left side and the others on the right one.
  static void sort_differences(std::span<std::int64_t const> left,
                               std::span<std::int64_t const> right,
                               std::vector<std::int64_t>& differences,
                               std::vector<std::int64_t>& sums) {
    differences.clear();
    for (std::size_t i = 0; i != left.size(); ++i) differences.push_back(left[i] - right[i]);
    std::sort(differences.begin(), differences.end());
    sums.assign(1, std::accumulate(right.begin(), right.end(), std::int64_t{0}));
    for (std::int64_t const one : differences) sums.push_back(sums.back() + one);
  }

  /// The sums are convex: those within the slack are neighbours.
  static void shrink(std::vector<std::int64_t> const& sums, std::int64_t slack, range& result) {
    while (result.first < result.last && sums[result.first] > slack) ++result.first;
    while (result.first < result.last && sums[result.last - 1] > slack) --result.last;
  }

  void push_seconds(std::size_t seconds) {
    layer_counts made{{}, numbers_.size()};
    for (std::size_t m = 0; m != prices; ++m) made.losses[m] = sums_[m][seconds];
    numbers_.resize(numbers_.size() + ranked_.size(), 0);
    numbers_[made.first + ranked_[0]] = static_cast<std::uint32_t>(size_ - seconds);
    numbers_[made.first + ranked_[1]] = static_cast<std::uint32_t>(seconds);
    counts_.push_back(made);
  }

  /// Adds to `left` what layers at a rare point can save at most. Of the first rare point nothing is
  /// added: it is the first to be decided about.
  void begin_extra(std::size_t rank, std::size_t seconds, price_losses& left) {
    seconds_ = seconds;
    extra_.resize(std::max(extra_.size(), rank + 1));
    extra_[rank].is_found.fill(false);
    if (rank == 2) return;
    for (std::size_t m = 0; m != prices; ++m) left[m] -= extra(rank, m).least();
  }

  /// What the layers lose more at a rare point. Found where it is asked for: most numbers of layers
  /// at the second point are out after one or two prices.
  [[nodiscard]] smallest_sums& extra(std::size_t rank, std::size_t price) {
    rare_losses& all = extra_[rank];
    smallest_sums& result = all.sums[price];
    if (all.is_found[price]) return result;
    all.is_found[price] = true;
    std::int64_t const place = differences_[price][std::min(seconds_, size_ - 1)];
    auto const main = losses(price, ranked_[0]);
    auto const second = losses(price, ranked_[1]);
    auto const rare = losses(price, ranked_[rank]);
    result.assign(static_cast<std::uint32_t>(size_),
                  [&](std::uint32_t i) { return rare[i] - std::min(main[i], second[i] - place); });
    return result;
  }

  /// Adds to each of the counts from `begin` on those with layers at a rare point instead of the
  /// main one. `left` is the slack with what this and the following rare points can save.
  [[nodiscard]] bool push_rare(std::size_t rank, std::size_t begin, price_losses& left,
                               std::size_t most) {
    if (rank != 2) {
      for (std::size_t m = 0; m != prices; ++m) left[m] += extra(rank, m).least();
    }
    std::uint32_t const point = ranked_[rank];
    std::size_t const end = counts_.size();
    for (std::size_t from = begin; from != end; ++from) {
      std::uint32_t const mains = numbers_[counts_[from].first + ranked_[0]];
      for (std::uint32_t number = 1; number <= mains; ++number) {
        if (tries_-- == 0) return false;
        verdict const found = judge(rank, counts_[from].losses, number, left);
        if (found == verdict::last) break;
        if (found == verdict::out) continue;
        layer_counts made = counts_[from];
        for (std::size_t m = 0; m != prices; ++m) made.losses[m] += extra(rank, m).sum(number);
        if (counts_.size() > 2 * most) return false;
        made.first = numbers_.size();
        for (std::size_t p = 0; p != ranked_.size(); ++p) {
          numbers_.push_back(numbers_[counts_[from].first + p]);
        }
        numbers_[made.first + point] = number;
        numbers_[made.first + ranked_[0]] -= number;
        counts_.push_back(made);
      }
    }
    return true;
  }

  /// What is to say about a number of layers at a rare point.
  enum class verdict {
    in,
    out,  ///< they lose more than is left
    last  ///< and so do all larger numbers
  };

  /// Sums are convex in the number. The price that was too high last is tried first.
  [[nodiscard]] verdict judge(std::size_t rank, price_losses const& before, std::uint32_t number,
                              price_losses const& left) {
    for (std::size_t turn = 0; turn != prices; ++turn) {
      std::size_t const m = (strict_ + turn) % prices;
      smallest_sums& all = extra(rank, m);
      std::int64_t const sum = all.sum(number);
      if (before[m] + sum <= left[m]) continue;
      strict_ = m;
      return sum >= all.sum(number - 1) ? verdict::last : verdict::out;
    }
    return verdict::in;
  }

  std::size_t size_ = 0;
  /// How many more numbers at rare points may be tried.
  std::size_t tries_ = 0;
  std::size_t strict_ = 0;
  std::vector<std::uint32_t> ranked_;
  std::vector<std::int64_t> losses_;
  std::vector<std::int64_t> totals_;
  std::vector<std::int64_t> others_;
  std::array<std::vector<std::int64_t>, prices> differences_;
  std::array<std::vector<std::int64_t>, prices> sums_;
  std::vector<std::int64_t> scratch_;
  std::vector<std::int64_t> scratch_sums_;
  std::size_t seconds_ = 0;
  /// By rank.
  std::vector<rare_losses> extra_;
  std::vector<layer_counts> counts_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace omnibal::inline v0::detail
