// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices with the least time for a budget, over all limits on transient bytes.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/recompute/select_recompute/knapsack.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The layers with the choices whose transient bytes are at most a limit.
struct limited_problem {
  std::int64_t transient_bytes;
  /// The bytes that one micro-batch may keep.
  std::int64_t kept_bytes;
  bool is_solved = false;
};

/// The search over limits on transient bytes, because the largest transient bytes count once for
/// all layers. For each limit there is a problem without transient bytes: fewer choices and a
/// smaller budget. Many limits are nearly equal. The search therefore bounds ranges of them
/// together, with the choices of the largest limit and the budget of the smallest one.
template <class Time>
class budget_search {
 public:
  budget_search(std::string_view function, choice_table<Time> const& table, std::int64_t budget,
                select_recompute_options const& options)
      : function_(function),
        table_(table),
        budget_(budget),
        options_(options),
        limits_{options.states.value_or(states_of(options.effort)), options.max_gap},
        order_(table.ordered_layers()) {
    for (std::size_t i = 0; i != order_.size(); ++i) {
      if (i == 0 || !table.are_equal(order_[i - 1], order_[i])) ++kinds_;
      kind_at_.push_back(kinds_);
    }
  }

  [[nodiscard]] recompute_result<Time> run() {
    find_problems();
    if (problems_.empty()) return infeasible();
    search_all();
    return feasible();
  }

 private:
  /// Problems with neighboring numbers of transient bytes.
  struct range {
    std::size_t first;
    std::size_t last;
    /// A lower bound on the time of the range's problems.
    std::int64_t min_time;

    [[nodiscard]] std::size_t size() const { return last - first; }
  };

  static constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::max();
  /// The kinds of layers, or the product of layers and problems, up to which a proof is sought.
  static constexpr std::size_t few_kinds = 4;
  static constexpr std::size_t little_work = 200;

  [[nodiscard]] static std::size_t states_of(effort effort) {
    constexpr std::size_t levels[]{32, 120, 1024};
    return levels[static_cast<std::size_t>(effort)];
  }

  /// Finds the problems that can be solved.
  void find_problems() {
    find_limits();
    if (problems_.empty()) return;
    limited_problem const last = problems_.back();
    std::int64_t const room = limit(last.transient_bytes, last.kept_bytes);
    // No other problem is better if every layer has its least time.
    if (search_.relax(limited_.fronts, room).gain() == limited_.max_gain) {
      problems_.assign(1, last);
    }
  }

  /// All choices by their transient bytes, each as its layer and its number there.
  [[nodiscard]] std::vector<sort_key> choices_by_transient() const {
    std::vector<sort_key> result;
    for (std::uint64_t layer = 0; layer != table_.size(); ++layer) {
      auto const choices = table_[layer];
      for (std::size_t k = 0; k != choices.size(); ++k) {
        result.push_back({choices[k].transient_bytes, layer << 32 | k});
      }
    }
    sort_keys(result);
    return result;
  }

  /// Finds all limits in ascending order. A larger limit admits a few more choices and leaves less
  /// of the budget for kept bytes. Therefore sums over the layers change little from one limit to
  /// the next. Errors: `std::overflow_error` if the fewest bytes of all layers add up to more than
  /// 2^63 - 1.
  void find_limits() {
    constexpr int128 largest = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t none = -1;
    auto const ways = choices_by_transient();
    int128 const room = static_cast<int128>(budget_) - options_.reserve_bytes;
    int128 least = static_cast<int128>(1) << 126;
    std::vector<std::int64_t> fewest(table_.size(), none);
    std::size_t missing = table_.size();
    int128 sum = 0;
    std::size_t next = 0;
    do {
      std::int64_t const limit = ways.empty() ? 0 : ways[next].number;
      for (; next != ways.size() && ways[next].number == limit; ++next) {
        std::size_t const layer = ways[next].place >> 32;
        std::int64_t const bytes = table_[layer][ways[next].place & max_index_count].bytes;
        if (fewest[layer] != none && fewest[layer] <= bytes) continue;
        if (fewest[layer] == none) --missing;
        sum += bytes - std::max<std::int64_t>(fewest[layer], 0);
        fewest[layer] = bytes;
      }
      if (missing != 0 || sum > largest) continue;
      int128 const needed = options_.in_flight * sum + limit;
      least = std::min(least, needed);
      if (needed > room) continue;
      problems_.push_back({limit, static_cast<std::int64_t>((room - limit) / options_.in_flight)});
    } while (next != ways.size());
    if (sum > largest) throw_overflow(function_, "the sum of the fewest bytes");
    min_bytes_ = least + options_.reserve_bytes;
  }

  /// Admits choices up to these transient bytes; returns the room for bytes beyond the fewest.
  std::int64_t limit(std::int64_t transient_bytes, std::int64_t kept_bytes) {
    limit_fronts(table_, order_, transient_bytes, limited_);
    std::int64_t const room = kept_bytes - limited_.bytes;
    limited_.fronts.drop_above(room);
    return room;
  }

  /// The gain that a solution must exceed to be better than the best solution.
  [[nodiscard]] std::int64_t known_gain() const {
    return choices_.empty() ? -1 : limited_.time - time_;
  }

  /// Solves a problem and keeps its solution if the solution is the best so far.
  void solve(std::size_t index) {
    limited_problem& one = problems_[index];
    std::int64_t const room = limit(one.transient_bytes, one.kept_bytes);
    std::int64_t const known = known_gain();
    search_.run(limited_.fronts, limited_.time, room, limits_, known);
    work_ += table_.size();
    solved_bound_ = std::min(solved_bound_, limited_.time - search_.bound());
    bound_ = std::min(bound_, solved_bound_);
    one.is_solved = true;
    if (search_.gain() <= known) return;
    time_ = limited_.time - search_.gain();
    choices_ = choices_of_solution();
  }

  /// Solves or bounds the problems that may have better solutions.
  void search_all() {
    std::vector<range> left{{0, problems_.size(), 0}};
    while (!left.empty()) {
      range one = left.back();
      left.pop_back();
      trim(one);
      if (one.size() == 0 || !is_worth(one.min_time)) continue;
      if (one.size() == 1) {
        solve(one.first);
        continue;
      }
      raise(one);
      if (!is_worth(one.min_time)) continue;
      std::size_t const middle = one.first + one.size() / 2;
      left.push_back({one.first, middle, one.min_time});
      left.push_back({middle, one.last, one.min_time});
    }
  }

  /// Drops the problems at both ends that are solved.
  void trim(range& given) const {
    while (given.size() != 0 && problems_[given.first].is_solved) ++given.first;
    while (given.size() != 0 && problems_[given.last - 1].is_solved) --given.last;
  }

  /// Bounds the problems of a range together. Solves the problem whose solution is most similar to
  /// the bound.
  void raise(range& given) {
    std::int64_t const room =
        limit(problems_[given.last - 1].transient_bytes, problems_[given.first].kept_bytes);
    std::int64_t const known = known_gain();
    search_.run(limited_.fronts, limited_.time, room, limits_, known, true);
    work_ += table_.size();
    given.min_time = std::max(given.min_time, limited_.time - search_.bound());
    if (search_.gain() <= known) return;
    std::int64_t const transient_bytes = largest_transient(choices_of_solution());
    auto const like = std::lower_bound(
        problems_.begin(), problems_.end(), transient_bytes,
        [](limited_problem const& one, std::int64_t bytes) { return one.transient_bytes < bytes; });
    if (!like->is_solved) solve(static_cast<std::size_t>(like - problems_.begin()));
  }

  /// False if problems with this least time have no better solution, or no better solution is
  /// sought.
  [[nodiscard]] bool is_worth(std::int64_t min_time) {
    return min_time < time_ && !is_good_enough(min_time);
  }

  /// True if no proof is sought for problems with this least time, which then is the bound. The
  /// bound leaves a small gap, or a gap hardly larger than the gap of solved problems.
  [[nodiscard]] bool is_good_enough(std::int64_t min_time) {
    if (kinds_ <= few_kinds || work_ < little_work) return false;
    double const small =
        std::max(options_.max_gap * static_cast<double>(time_),
                 1.25 * static_cast<double>(time_ - std::min(time_, solved_bound_)));
    if (static_cast<double>(time_ - min_time) > small) return false;
    bound_ = std::min(bound_, min_time);
    return true;
  }

  [[nodiscard]] std::int64_t largest_transient(std::vector<std::uint32_t> const& choices) const {
    std::int64_t result = 0;
    for (std::size_t layer = 0; layer != choices.size(); ++layer) {
      result = std::max(result, table_.choice(layer, choices[layer]).transient_bytes);
    }
    return result;
  }

  [[nodiscard]] int128 taken(std::int64_t kept_bytes, std::int64_t transient_bytes) const {
    return static_cast<int128>(options_.in_flight) * kept_bytes + transient_bytes +
           options_.reserve_bytes;
  }

  [[nodiscard]] std::int64_t to_bytes(int128 bytes) const {
    return checked_cast<std::int64_t>(function_, "the sum of the fewest bytes", bytes);
  }

  /// Equal layers have their choices in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> choices_of_solution() const {
    auto const points = search_.points();
    std::vector<sort_key> taken;
    for (std::size_t i = 0; i != order_.size(); ++i) {
      taken.push_back({kind_at_[i], limited_.fronts[i][points[i]].index});
    }
    sort_keys(taken);
    std::vector<std::uint32_t> result(order_.size());
    for (std::size_t i = 0; i != order_.size(); ++i) {
      result[order_[i]] = static_cast<std::uint32_t>(taken[i].place);
    }
    return result;
  }

  [[nodiscard]] recompute_result<Time> feasible() {
    recompute_result<Time> result;
    std::int64_t const gap = time_ - std::min(time_, bound_);
    std::int64_t kept_bytes = 0;
    for (std::size_t layer = 0; layer != choices_.size(); ++layer) {
      auto const& way = table_.choice(layer, choices_[layer]);
      result.time += way.time;
      kept_bytes += way.bytes;
    }
    result.bytes = to_bytes(taken(kept_bytes, largest_transient(choices_)));
    result.choices = std::move(choices_);
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.time - table_.from_whole(gap));
    return result;
  }

  [[nodiscard]] recompute_result<Time> infeasible() const {
    recompute_result<Time> result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.bytes = to_bytes(min_bytes_);
    result.missing_bytes = to_bytes(min_bytes_ - budget_);
    return result;
  }

  std::string_view function_;
  choice_table<Time> const& table_;
  std::int64_t budget_;
  select_recompute_options const& options_;
  gain_limits limits_;
  std::vector<std::uint32_t> order_;
  /// The number of different layers, and for each place in the order the number of different layers
  /// up to that place.
  std::uint32_t kinds_ = 0;
  std::vector<std::uint32_t> kind_at_;
  limited_fronts limited_;
  knapsack search_;
  /// The problems by ascending transient bytes.
  std::vector<limited_problem> problems_;
  int128 min_bytes_ = 0;
  std::vector<std::uint32_t> choices_;
  std::int64_t time_ = no_time;
  std::int64_t bound_ = no_time;
  /// The bound of the problems that were solved separately.
  std::int64_t solved_bound_ = no_time;
  std::size_t work_ = 0;
};

}  // namespace omnibal::inline v0::detail
