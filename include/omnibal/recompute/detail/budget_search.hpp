#pragma once

/// \file
/// The choices with the least time for a budget, over all limits on transient bytes.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/recompute/detail/choice_table.hpp>
#include <omnibal/recompute/detail/gain_search.hpp>
#include <omnibal/recompute/recompute_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest transient bytes count once, whichever layer has them. For each number that they may
/// be there is a problem without them: fewer choices and a smaller budget.
template <class Time>
class budget_search {
 public:
  budget_search(std::string_view function, choice_table<Time> const& table, std::int64_t budget,
                recompute_options const& options)
      : function_(function),
        table_(table),
        budget_(budget),
        options_(options),
        order_(table.ordered_layers()) {}

  [[nodiscard]] recompute_result<Time> run() {
    relax_all();
    if (problems_.empty()) return infeasible();

    std::vector<std::uint32_t> choices;
    std::int64_t best = 0;
    std::int64_t bound = 0;
    for (std::size_t p = 0; p != problems_.size(); ++p) {
      problem const& one = problems_[p];
      bool const is_first = p == 0;
      if (!is_first && one.least_time >= best) break;
      static_cast<void>(limit(one.transient_bytes));
      std::int64_t const known = is_first ? -1 : limited_.time - best;
      search_.run(limited_.fronts, one.room, options_.states, known);
      std::int64_t const least_time = limited_.time - search_.bound();
      bound = is_first ? least_time : std::min(bound, least_time);
      std::int64_t const time = limited_.time - search_.gain();
      if (!is_first && time >= best) continue;
      best = time;
      choices = choices_of_solution();
    }
    return feasible(std::move(choices), best - std::min(best, bound));
  }

 private:
  /// The layers with the choices whose transient bytes are at most these.
  struct problem {
    std::int64_t transient_bytes;
    /// For the bytes of one micro-batch beyond the fewest.
    std::int64_t room;
    std::int64_t least_time;
  };

  [[nodiscard]] bool limit(std::int64_t transient_bytes) {
    return limit_fronts(function_, table_, order_, transient_bytes, limited_);
  }

  /// Finds the problems that can be solved, those with the best relaxation first.
  void relax_all() {
    std::vector<std::int64_t> limits;
    for (auto const& way : table_.all()) limits.push_back(way.transient_bytes);
    if (limits.empty()) limits.push_back(0);
    std::sort(limits.begin(), limits.end());
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    for (std::int64_t const transient_bytes : limits) {
      if (!limit(transient_bytes)) continue;
      int128 const needed = taken(limited_.bytes, transient_bytes);
      least_bytes_ = std::min(least_bytes_, needed);
      if (needed > budget_) continue;
      auto const room = static_cast<std::int64_t>((budget_ - needed) / options_.in_flight);
      search_.relax(limited_.fronts, room);
      problems_.push_back({transient_bytes, room, limited_.time - search_.bound()});
    }
    std::sort(problems_.begin(), problems_.end(), [](problem const& left, problem const& right) {
      return left.least_time != right.least_time ? left.least_time < right.least_time
                                                 : left.transient_bytes < right.transient_bytes;
    });
  }

  /// What choices take of the budget.
  [[nodiscard]] int128 taken(std::int64_t kept_bytes, std::int64_t transient_bytes) const {
    return static_cast<int128>(options_.in_flight) * kept_bytes + transient_bytes +
           options_.reserve_bytes;
  }

  [[nodiscard]] std::int64_t to_bytes(int128 bytes) const {
    if (bytes > std::numeric_limits<std::int64_t>::max()) {
      throw_overflow(function_, "the sum of the fewest bytes");
    }
    return static_cast<std::int64_t>(bytes);
  }

  /// Equal layers get their choices in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> choices_of_solution() const {
    auto const points = search_.points();
    std::vector<std::uint32_t> taken(order_.size());
    for (std::size_t i = 0; i != taken.size(); ++i) {
      taken[i] = limited_.fronts[i][points[i]].index;
    }
    std::vector<std::uint32_t> result(order_.size());
    for (std::size_t first = 0; first != order_.size();) {
      std::size_t last = first + 1;
      while (last != order_.size() &&
             std::ranges::equal(table_[order_[first]], table_[order_[last]])) {
        ++last;
      }
      std::sort(taken.begin() + static_cast<std::ptrdiff_t>(first),
                taken.begin() + static_cast<std::ptrdiff_t>(last));
      for (; first != last; ++first) result[order_[first]] = taken[first];
    }
    return result;
  }

  [[nodiscard]] recompute_result<Time> feasible(std::vector<std::uint32_t> choices,
                                                std::int64_t gap) const {
    recompute_result<Time> result;
    std::int64_t kept_bytes = 0;
    std::int64_t transient_bytes = 0;
    for (std::size_t layer = 0; layer != choices.size(); ++layer) {
      auto const& way =
          *std::ranges::find(table_[layer], choices[layer], &numbered_choice<Time>::index);
      result.time += way.time;
      kept_bytes += way.bytes;
      transient_bytes = std::max(transient_bytes, way.transient_bytes);
    }
    result.choices = std::move(choices);
    result.bytes = to_bytes(taken(kept_bytes, transient_bytes));
    result.proven = gap == 0;
    result.lower_bound = std::max(Time{}, result.time - table_.from_whole(gap));
    return result;
  }

  [[nodiscard]] recompute_result<Time> infeasible() const {
    recompute_result<Time> result;
    result.status = recompute_status::infeasible;
    result.proven = true;
    result.bytes = to_bytes(least_bytes_);
    result.missing_bytes = to_bytes(least_bytes_ - budget_);
    return result;
  }

  std::string_view function_;
  choice_table<Time> const& table_;
  std::int64_t budget_;
  recompute_options const& options_;
  std::vector<std::uint32_t> order_;
  limited_fronts limited_;
  gain_search search_;
  std::vector<problem> problems_;
  int128 least_bytes_ = static_cast<int128>(1) << 126;
};

}  // namespace omnibal::inline v0::detail
