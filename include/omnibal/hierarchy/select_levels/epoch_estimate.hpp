#pragma once

/// \file
/// The set of levels with the least estimated time of an epoch.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/hierarchy/level_profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// How many samples, and how many tokens in them, are at most as long as any of some lengths or
/// half of it.
class length_census {
 public:
  length_census(std::string_view function, std::span<std::int64_t const> sample_lengths,
                std::span<std::int64_t const> level_lengths) {
    for (std::int64_t const length : level_lengths) {
      limits_.push_back(length);
      limits_.push_back(length / 2);
    }
    std::sort(limits_.begin(), limits_.end());
    limits_.erase(std::unique(limits_.begin(), limits_.end()), limits_.end());
    counts_.resize(limits_.size() + 1, 0);
    tokens_.resize(limits_.size() + 1, 0);
    std::int64_t all_tokens = 0;
    for (std::int64_t const length : sample_lengths) {
      std::size_t const place = place_of(length);
      ++counts_[place];
      if (length > limits_.back()) continue;
      checked_add(function, "the sum of the lengths", all_tokens, length);
      tokens_[place] += length;
      longest_ = std::max(longest_, length);
    }
    for (std::size_t k = 1; k != limits_.size(); ++k) {
      counts_[k] += counts_[k - 1];
      tokens_[k] += tokens_[k - 1];
    }
  }

  /// The longest sample that is at most as long as the longest level.
  [[nodiscard]] std::int64_t longest() const { return longest_; }

  /// The number of samples that are longer than the longest level.
  [[nodiscard]] std::uint64_t beyond() const { return static_cast<std::uint64_t>(counts_.back()); }

  /// A number of packs that samples in (`above`, `length`] need at least: they have that many
  /// tokens, and two of more than half the length do not share a pack.
  [[nodiscard]] std::int64_t packs(std::int64_t above, std::int64_t length) const {
    std::int64_t const tokens = up_to(tokens_, length) - up_to(tokens_, above);
    std::int64_t const halves =
        up_to(counts_, length) - up_to(counts_, std::max(above, length / 2));
    return std::max(tokens / length + (tokens % length != 0 ? 1 : 0), halves);
  }

 private:
  [[nodiscard]] std::size_t place_of(std::int64_t length) const {
    return static_cast<std::size_t>(std::lower_bound(limits_.begin(), limits_.end(), length) -
                                    limits_.begin());
  }

  [[nodiscard]] std::int64_t up_to(std::vector<std::int64_t> const& sums,
                                   std::int64_t limit) const {
    return limit < limits_.front() ? 0 : sums[place_of(limit)];
  }

  std::vector<std::int64_t> limits_;
  /// Up to each limit, and in a last element those beyond all.
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> tokens_;
  std::int64_t longest_ = 0;
};

/// The levels of an estimate, as places among the given ones.
struct epoch_estimate {
  std::vector<std::size_t> chosen;
  int128 nanoseconds = 0;
};

/// The levels with the least time of an epoch in which each sample is in the first that is as long;
/// of equal ones the fewest. The time is a sum over neighbouring levels, so that the best set is a
/// shortest path. Precondition: the last level holds `census.longest()`.
[[nodiscard]] inline epoch_estimate least_epoch(std::span<timed_level const> levels,
                                                length_census const& census, std::int64_t ranks) {
  struct path {
    int128 nanoseconds = 0;
    std::size_t level_count = 0;
    std::size_t before = 0;

    [[nodiscard]] bool is_better(path const& other) const {
      if (nanoseconds != other.nanoseconds) return nanoseconds < other.nanoseconds;
      return level_count < other.level_count;
    }
  };
  std::vector<path> best(levels.size());
  auto const step_time = [&](std::int64_t above, timed_level const& level) {
    std::int64_t const at_once = std::max<std::int64_t>(1, ranks / level.setting.sequence);
    std::int64_t const packs = census.packs(above, level.setting.length);
    return int128{packs / at_once + (packs % at_once != 0 ? 1 : 0)} * level.nanoseconds;
  };
  std::size_t end = levels.size();
  for (std::size_t j = 0; j != levels.size(); ++j) {
    best[j] = {step_time(0, levels[j]), 1, j};
    for (std::size_t i = 0; i != j; ++i) {
      path const longer{best[i].nanoseconds + step_time(levels[i].setting.length, levels[j]),
                        best[i].level_count + 1, i};
      if (longer.is_better(best[j])) best[j] = longer;
    }
    bool const holds_all = levels[j].setting.length >= census.longest();
    if (holds_all && (end == levels.size() || best[j].is_better(best[end]))) end = j;
  }
  epoch_estimate result;
  result.nanoseconds = best[end].nanoseconds;
  for (std::size_t at = end;; at = best[at].before) {
    result.chosen.push_back(at);
    if (best[at].before == at) break;
  }
  std::reverse(result.chosen.begin(), result.chosen.end());
  return result;
}

}  // namespace omnibal::inline v0::detail
