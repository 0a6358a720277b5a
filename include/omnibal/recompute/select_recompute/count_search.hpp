#pragma once

/// \file
/// The largest gain for a budget, by how many layers of a kind take each point.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/select_recompute/class_cardinalities.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Gives each point of a kind to the layers that lose least by it.
class counted_solution {
 public:
  void begin(layer_fronts const& fronts, byte_prices const& prices, int128 price,
             std::int64_t budget) {
    fronts_ = &fronts;
    prices_ = &prices;
    price_ = price;
    bound_ = price * budget;
    bytes_ = 0;
    points_.assign(fronts.size(), 0);
  }

  void take(std::uint32_t layer, std::uint32_t point) {
    front_point const& taken = (*fronts_)[layer][point];
    points_[layer] = point;
    bytes_ += taken.bytes;
    bound_ += prices_->surplus(taken, price_);
  }

  /// `numbers[p]` of these layers take point p. `ranked_points` are the main point, the second one
  /// and rare ones, as in `kind_counts`.
  void take_counted(std::span<std::uint32_t const> layers,
                    std::span<std::uint32_t const> ranked_points,
                    std::span<std::uint32_t const> numbers) {
    std::uint32_t const main = ranked_points[0];
    std::uint32_t const second = ranked_points[1];
    seconds_.clear();
    for (std::uint32_t const layer : layers) {
      int128 const surplus = surplus_of(layer, main);
      bound_ += surplus;
      seconds_.push_back({surplus - surplus_of(layer, second), layer});
    }
    std::sort(seconds_.begin(), seconds_.end());
    std::size_t const count = numbers[second];
    for (std::size_t i = 0; i != count; ++i) bound_ -= seconds_[i].loss;
    int128 const place = seconds_[std::min(count, layers.size() - 1)].loss;

    for (std::uint32_t const layer : layers) points_[layer] = main;
    for (std::uint32_t const rare : ranked_points.subspan(2)) {
      if (numbers[rare] != 0) take_rare(layers, ranked_points, rare, numbers[rare], place);
    }
    std::size_t left = count;
    for (layer_loss const& one : seconds_) {
      if (left == 0) break;
      if (points_[one.layer] != main) continue;
      points_[one.layer] = second;
      --left;
    }
    for (std::uint32_t const layer : layers) bytes_ += (*fronts_)[layer][points_[layer]].bytes;
  }

  /// No solution with these counts gains more.
  [[nodiscard]] int128 bound() const { return bound_; }
  [[nodiscard]] int128 bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  struct layer_loss {
    int128 loss;
    std::uint32_t layer;

    [[nodiscard]] friend bool operator<(layer_loss const& left, layer_loss const& right) {
      return left.loss != right.loss ? left.loss < right.loss : left.layer < right.layer;
    }
  };

  [[nodiscard]] int128 surplus_of(std::uint32_t layer, std::uint32_t point) const {
    return prices_->surplus((*fronts_)[layer][point], price_);
  }

  void take_rare(std::span<std::uint32_t const> layers,
                 std::span<std::uint32_t const> ranked_points, std::uint32_t rare,
                 std::uint32_t number, int128 place) {
    std::uint32_t const main = ranked_points[0];
    std::uint32_t const second = ranked_points[1];
    rare_.clear();
    for (std::uint32_t const layer : layers) {
      int128 const common = std::max(surplus_of(layer, main), surplus_of(layer, second) + place);
      rare_.push_back({common - surplus_of(layer, rare), layer});
    }
    std::sort(rare_.begin(), rare_.end());
    for (std::uint32_t i = 0; i != number; ++i) bound_ -= rare_[i].loss;
    for (layer_loss const& one : rare_) {
      if (number == 0) return;
      if (points_[one.layer] != main) continue;
      points_[one.layer] = rare;
      --number;
    }
  }

  layer_fronts const* fronts_ = nullptr;
  byte_prices const* prices_ = nullptr;
  int128 price_ = 0;
  int128 bound_ = 0;
  int128 bytes_ = 0;
  std::vector<std::uint32_t> points_;
  std::vector<layer_loss> seconds_;
  std::vector<layer_loss> rare_;
};

/// The linear relaxation takes parts of layers; of many layers that are nearly equal that is nearly
/// all that separates it from the best solution. So the numbers of layers of each kind that take
/// each point are decided first. Few of them can lead to a better solution than a known one, and
/// for each of these the best price of a byte gives a bound and a solution close to it.
class count_search {
 public:
  /// Looks for solutions that gain more than `known`. `broken` is the step of the linear relaxation
  /// that is taken in part. `offer(points)` gets solutions within the budget and returns the gain of
  /// the best one so far. The result is a gain that no solution exceeds, or the largest number where
  /// there are too many counts.
  template <class Offer>
  [[nodiscard]] std::int64_t run(layer_fronts const& fronts, std::int64_t budget,
                                 hull_step const& broken, std::int64_t known,
                                 std::size_t most_counts, Offer const& offer) {
    constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
    if (!prices_.set(broken, fronts.size(), budget, fronts.most_gain())) return nothing;
    if (!table_.fill(fronts, budget, prices_, known)) return known;
    if (!kinds_.find(fronts, table_.free_layers(), most_counts)) return nothing;
    if (!combine_kinds(most_counts)) return nothing;
    fronts_ = &fronts;
    budget_ = budget;
    rank_combinations();
    return price_combinations(known, offer);
  }

 private:
  /// Counts for some kinds: those for all but the last, and those for the last.
  struct combination {
    std::uint32_t before;
    std::uint32_t counts;
  };

  /// Of all kinds.
  struct candidate {
    std::int64_t unused_slack;
    std::uint32_t combination;
    /// The price at which least slack is unused.
    std::uint32_t price;
  };

  static constexpr std::size_t most_priced = 8;
  static constexpr int most_rounds = 10;

  [[nodiscard]] bool combine_kinds(std::size_t most_counts) {
    counts_.resize(std::max(counts_.size(), kinds_.size()));
    levels_.resize(std::max(levels_.size(), kinds_.size() + 1));
    levels_[0].assign(1, {0, 0});
    losses_.assign(1, {});
    for (std::size_t k = 0; k != kinds_.size(); ++k) {
      if (!counts_[k].list(table_, kinds_[k], most_counts)) return false;
      auto const counts = counts_[k].counts();
      auto& made = levels_[k + 1];
      made.clear();
      next_losses_.clear();
      for (std::uint32_t b = 0; b != losses_.size(); ++b) {
        for (std::uint32_t c = 0; c != counts.size(); ++c) {
          price_losses next = losses_[b];
          add_losses(next, counts[c].losses);
          if (exceeds(next, table_.slack())) continue;
          if (made.size() == most_counts) return false;
          made.push_back({b, c});
          next_losses_.push_back(next);
        }
      }
      losses_.swap(next_losses_);
    }
    return true;
  }

  /// The most promising ones first.
  void rank_combinations() {
    candidates_.clear();
    for (std::uint32_t i = 0; i != losses_.size(); ++i) {
      candidate made{std::numeric_limits<std::int64_t>::max(), i, 0};
      for (std::uint32_t m = 0; m != byte_prices::count; ++m) {
        std::int64_t const unused = table_.slack()[m] - losses_[i][m];
        if (unused >= made.unused_slack) continue;
        made.unused_slack = unused;
        made.price = m;
      }
      candidates_.push_back(made);
    }
    std::sort(
        candidates_.begin(), candidates_.end(), [](candidate const& left, candidate const& right) {
          return left.unused_slack != right.unused_slack ? left.unused_slack > right.unused_slack
                                                         : left.combination < right.combination;
        });
  }

  template <class Offer>
  [[nodiscard]] std::int64_t price_combinations(std::int64_t known, Offer const& offer) {
    std::int64_t best = known;
    std::int64_t bound = known;
    for (std::size_t i = 0; i != candidates_.size(); ++i) {
      candidate const& one = candidates_[i];
      int128 least = prices_.scaled(known) + prices_.scaled(1) + table_.gain_of(one.unused_slack);
      std::int64_t const unpriced = prices_.whole_gain(least);
      if (unpriced <= std::max(best, bound)) break;
      if (i == most_priced) {
        bound = unpriced;
        break;
      }
      if (find_price(one, best, least)) best = std::max(best, offer(points_));
      bound = std::max(bound, prices_.whole_gain(least));
    }
    return std::max(best, bound);
  }

  /// Lowers `least` to what no solution with these counts exceeds, by bisection over the price.
  /// False where no solution within the budget was met on the way, else `points_` is the last one.
  [[nodiscard]] bool find_price(candidate const& one, std::int64_t best, int128& least) {
    bool is_found = false;
    auto const fits_at = [&](int128 price) {
      solve(one.combination, price);
      least = std::min(least, solution_.bound());
      if (solution_.bytes() > budget_) return false;
      auto const points = solution_.points();
      points_.assign(points.begin(), points.end());
      is_found = true;
      return true;
    };
    auto const is_done = [&] { return prices_.whole_gain(least) <= best; };

    std::size_t const last = byte_prices::count - 1;
    int128 low = prices_[one.price];
    int128 high = low;
    if (fits_at(high)) {
      low = prices_[std::max<std::size_t>(one.price, 1) - 1];
      if (one.price <= 1 && !is_done() && fits_at(low)) high = low;
    } else {
      high = one.price != last ? prices_[one.price + 1] : prices_.extreme();
      if (one.price == last && !is_done()) static_cast<void>(fits_at(high));
    }
    for (int round = 0; round != most_rounds && high - low > 1 && !is_done(); ++round) {
      int128 const middle = low + (high - low) / 2;
      (fits_at(middle) ? high : low) = middle;
    }
    return is_found;
  }

  void solve(std::uint32_t combined, int128 price) {
    solution_.begin(*fronts_, prices_, price, budget_);
    for (auto const& fixed : table_.fixed_layers()) solution_.take(fixed.layer, fixed.point);
    for (std::size_t k = kinds_.size(); k-- != 0;) {
      combination const& one = levels_[k + 1][combined];
      kind_counts const& counts = counts_[k];
      solution_.take_counted(kinds_[k], counts.ranked_points(),
                             counts.numbers(counts.counts()[one.counts]));
      combined = one.before;
    }
  }

  layer_fronts const* fronts_ = nullptr;
  std::int64_t budget_ = 0;
  byte_prices prices_;
  loss_table table_;
  layer_kinds kinds_;
  std::vector<kind_counts> counts_;
  /// The combinations for each number of kinds.
  std::vector<std::vector<combination>> levels_;
  /// Of the combinations for all kinds so far.
  std::vector<price_losses> losses_;
  std::vector<price_losses> next_losses_;
  std::vector<candidate> candidates_;
  counted_solution solution_;
  std::vector<std::uint32_t> points_;
};

}  // namespace omnibal::inline v0::detail
