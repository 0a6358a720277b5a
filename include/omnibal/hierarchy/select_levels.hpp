// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Selection of lengths, sequence-parallel degrees and checkpoint settings of training.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/model_limits.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The value of `free_bytes` for a run that failed and did not report how much memory was missing.
inline constexpr std::int64_t unknown_shortage = std::numeric_limits<std::int64_t>::min();

/// A measurement or an estimate of one full pack, forward and backward.
struct level_reading {
  /// The free memory at the peak, on the rank with the least free memory; negative if memory is
  /// missing.
  std::int64_t free_bytes = 0;
  /// The time of the pack on the ranks that share it, which run at the same time. Ignored if memory
  /// is missing.
  std::int64_t nanoseconds = 0;

  [[nodiscard]] friend bool operator==(level_reading const&, level_reading const&) = default;
};

/// A functor from a `packing_level` to a `level_reading`.
template <class Profile>
concept level_profile = std::invocable<Profile const&, packing_level const&> &&
    std::same_as<std::invoke_result_t<Profile const&, packing_level const&>, level_reading>;

/// The search space of `select_levels`.
struct level_search {
  /// The number of layers that can be checkpointed.
  std::int64_t layers = 0;
  /// The lengths in tokens, ascending.
  std::vector<std::int64_t> lengths{8192, 16384, 32768, 65536, 131072};
  /// The sequence-parallel degrees, ascending.
  std::vector<std::int64_t> degrees{1, 2, 4, 8};
  std::int64_t min_checkpointed = 0;
  /// The memory that must stay free.
  std::int64_t reserve_bytes = 0;
  /// The number of ranks that train; 0 means the largest degree. This number determines how many
  /// packs run at the same time, and therefore the time of a level with few packs.
  std::int64_t ranks = 0;
};

/// A setting, and the time of one full pack with this setting.
struct timed_level {
  packing_level setting{};
  /// The time of one full pack.
  std::int64_t nanoseconds = 0;

  [[nodiscard]] friend bool operator==(timed_level const&, timed_level const&) = default;
};

/// The result of `select_levels`.
struct level_selection {
  /// The status: infeasible if no sufficient length fits with any degree, even if all layers are
  /// checkpointed. Without samples, only the longest length of the search is sufficient. With
  /// samples, a length is sufficient if it holds the longest sample that some length of the search
  /// can hold.
  solve_status status = solve_status::solved;
  /// The levels, the shortest first; empty if infeasible.
  std::vector<packing_level> levels{};
  /// The fastest setting of each length that fits, in ascending order of length.
  std::vector<timed_level> fastest{};
  /// If infeasible, the smallest number of bytes that the shortest sufficient length lacks, or
  /// `unknown_shortage` if no reading reported a number.
  std::int64_t missing_bytes = 0;
  /// The estimated time of an epoch; 0 if no samples were given.
  std::int64_t epoch_nanoseconds = 0;
  /// The number of samples that are longer than all lengths of the search; no level can hold them.
  std::uint64_t oversized = 0;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Throws `std::invalid_argument` unless there is at least one value and all values are positive,
/// ascending, and at most `most`.
inline void check_ascending(std::string_view function, std::string_view argument,
                            std::span<std::int64_t const> values, std::int64_t most) {
  if (values.empty()) throw_invalid(function, argument, " is empty");
  std::int64_t least = 1;
  for (std::size_t i = 0; i != values.size(); ++i) {
    check_between(function, joined_text(argument, "[", i, "]"), values[i], least, most);
    least = values[i] + 1;
  }
}

inline void check_search(std::string_view function, level_search const& search) {
  check_ascending(function, "search.lengths", search.lengths, longest_level);
  check_ascending(function, "search.degrees", search.degrees, max_level_degree);
  check_between(function, "search.layers", search.layers, 1, max_width);
  check_between(function, "search.min_checkpointed", search.min_checkpointed, 0, search.layers);
  check_between(function, "search.reserve_bytes", search.reserve_bytes, 0,
                std::numeric_limits<std::int64_t>::max());
  if (search.ranks == 0) return;
  check_between(function, "search.ranks", search.ranks, search.degrees.back(), max_level_degree);
}

/// Returns true if `left` requires less time of all its ranks for each token than `right`; false if
/// both times are equal.
[[nodiscard]] inline bool is_faster(timed_level const& left, timed_level const& right) {
  auto const rank_time = [](timed_level const& of, std::int64_t length) {
    // The factors are below 2^63, 2^20 and 2^32.
    return static_cast<uint128>(of.nanoseconds) * static_cast<uint128>(of.setting.sequence) *
           static_cast<uint128>(length);
  };
  return rank_time(left, right.setting.length) < rank_time(right, left.setting.length);
}

/// Reads a profile for the settings of one length.
template <level_profile Profile>
class level_probe {
 public:
  level_probe(std::string_view function, Profile const& profile, level_search const& search)
      : function_(function), profile_(profile), search_(search) {}

  /// Returns the setting of a length with the least time of all its ranks. Among equal times, the
  /// lowest degree is selected. Returns no value if no degree fits.
  [[nodiscard]] std::optional<timed_level> fastest(std::int64_t length) {
    std::optional<timed_level> best;
    min_missing_ = unknown_shortage;
    for (std::int64_t const degree : search_.degrees) {
      if (degree > length) continue;
      auto const found = min_checkpointed(length, degree);
      if (found && (!best || is_faster(*found, *best))) best = found;
    }
    return best;
  }

  /// Returns the smallest number of bytes that the length of the last call lacked.
  [[nodiscard]] std::int64_t min_missing() const { return min_missing_; }

 private:
  struct probed {
    packing_level setting;
    level_reading reading;
  };

  [[nodiscard]] static std::string named(packing_level const& setting) {
    return joined_text("length ", setting.length, ", sequence ", setting.sequence, " and ",
                       setting.checkpointed_layers, " checkpointed layers");
  }

  [[nodiscard]] bool fits(level_reading const& reading) const {
    return reading.free_bytes >= search_.reserve_bytes;
  }

  [[nodiscard]] probed read(packing_level const& setting) const {
    level_reading const reading = std::invoke(profile_, setting);
    if (fits(reading) && reading.nanoseconds <= 0) {
      throw_invalid(function_, "the profile gives ", reading.nanoseconds, " nanoseconds for ",
                    named(setting), ", must be positive");
    }
    return {setting, reading};
  }

  /// Returns the setting with the fewest checkpointed layers that leaves the reserve free. A line
  /// through two readings predicts the setting, and one more reading confirms it.
  [[nodiscard]] std::optional<timed_level> min_checkpointed(std::int64_t length,
                                                            std::int64_t degree) {
    packing_level setting{length, degree, search_.min_checkpointed};
    probed few = read(setting);
    if (fits(few.reading)) return timed(few);
    setting.checkpointed_layers = search_.layers;
    probed many = search_.layers == search_.min_checkpointed ? few : read(setting);
    if (!fits(many.reading)) {
      check_gain(few, many);
      note_missing(many.reading);
      return std::nullopt;
    }
    // If a failed run does not report a shortage, bisect: a run with more checkpointed layers may
    // succeed.
    while (few.reading.free_bytes == unknown_shortage) {
      std::int64_t const between =
          few.setting.checkpointed_layers +
          (many.setting.checkpointed_layers - few.setting.checkpointed_layers) / 2;
      if (between == few.setting.checkpointed_layers) return timed(many);
      setting.checkpointed_layers = between;
      probed const middle = read(setting);
      (fits(middle.reading) ? many : few) = middle;
    }
    return confirmed(few, many);
  }

  /// Throws if a run with more checkpointed layers requires more memory.
  void check_gain(probed const& few, probed const& many) const {
    bool const is_known = many.reading.free_bytes != unknown_shortage;
    if (!is_known || many.reading.free_bytes >= few.reading.free_bytes) return;
    throw_invalid(function_, "the profile gives ", many.reading.free_bytes, " free bytes for ",
                  named(many.setting), ", less than ", few.reading.free_bytes, " for ",
                  few.setting.checkpointed_layers);
  }

  /// Returns the setting that the line through two readings predicts. Checkpoints more layers as
  /// long as a reading shows that the setting does not fit.
  [[nodiscard]] timed_level confirmed(probed const& few, probed const& many) const {
    auto const line = two_point_probe({few.setting.checkpointed_layers, few.reading.free_bytes},
                                      {many.setting.checkpointed_layers, many.reading.free_bytes});
    packing_level setting = many.setting;
    setting.checkpointed_layers =
        line.checkpointed_for(many.setting.checkpointed_layers, search_.reserve_bytes).layers;
    for (; setting.checkpointed_layers < many.setting.checkpointed_layers;
         ++setting.checkpointed_layers) {
      probed const tried = read(setting);
      if (fits(tried.reading)) return timed(tried);
    }
    return timed(many);
  }

  [[nodiscard]] static timed_level timed(probed const& run) {
    return {run.setting, run.reading.nanoseconds};
  }

  void note_missing(level_reading const& reading) {
    if (reading.free_bytes == unknown_shortage) return;
    auto const missing = checked_cast<std::int64_t>(
        function_, "the missing memory", int128{search_.reserve_bytes} - reading.free_bytes);
    min_missing_ = min_missing_ == unknown_shortage ? missing : std::min(min_missing_, missing);
  }

  std::string_view function_;
  Profile const& profile_;
  level_search const& search_;
  std::int64_t min_missing_ = unknown_shortage;
};

/// Counts the samples and their tokens up to each of some lengths, and up to half of each length.
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

  /// Returns the longest sample that is at most as long as the longest level.
  [[nodiscard]] std::int64_t longest() const { return longest_; }

  /// Returns the number of samples that are longer than the longest level.
  [[nodiscard]] std::uint64_t beyond() const { return static_cast<std::uint64_t>(counts_.back()); }

  /// Returns a lower bound of the number of packs for the samples in (`above`, `length`]. The packs
  /// must hold all tokens, and two samples of more than half of the length never share a pack.
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
  /// The sums up to each limit; the last entry of `counts_` is the number of samples beyond all
  /// limits.
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> tokens_;
  std::int64_t longest_ = 0;
};

/// The levels of an estimate, as indices into the given levels, and the estimated time of an epoch.
struct epoch_estimate {
  std::vector<std::size_t> chosen;
  int128 nanoseconds = 0;
};

/// Returns the levels with the least time of an epoch if each sample belongs to the first level
/// that is long enough. Among equal times, the fewest levels are selected. The time is a sum over
/// pairs of adjacent levels, so the best set of levels is a shortest path. Precondition: the last
/// level holds `census.longest()`.
[[nodiscard]] inline epoch_estimate min_epoch(std::span<timed_level const> levels,
                                              length_census const& census, std::int64_t ranks) {
  struct path {
    /// Paths are compared by nanoseconds, then by the number of levels.
    std::pair<int128, std::size_t> cost;
    std::size_t before = 0;
  };
  std::vector<path> best(levels.size());
  auto const step_time = [&](std::int64_t above, timed_level const& level) {
    std::int64_t const at_once = std::max<std::int64_t>(1, ranks / level.setting.sequence);
    std::int64_t const packs = census.packs(above, level.setting.length);
    return int128{packs / at_once + (packs % at_once != 0 ? 1 : 0)} * level.nanoseconds;
  };
  std::size_t end = levels.size();
  for (std::size_t j = 0; j != levels.size(); ++j) {
    best[j] = {{step_time(0, levels[j]), 1}, j};
    for (std::size_t i = 0; i != j; ++i) {
      auto const& [nanoseconds, count] = best[i].cost;
      std::pair const longer(nanoseconds + step_time(levels[i].setting.length, levels[j]),
                             count + 1);
      if (longer < best[j].cost) best[j] = {longer, i};
    }
    bool const holds_all = levels[j].setting.length >= census.longest();
    if (holds_all && (end == levels.size() || best[j].cost < best[end].cost)) end = j;
  }
  epoch_estimate result;
  result.nanoseconds = best[end].cost.first;
  for (std::size_t at = end;; at = best[at].before) {
    result.chosen.push_back(at);
    if (best[at].before == at) break;
  }
  std::reverse(result.chosen.begin(), result.chosen.end());
  return result;
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct select_levels_fn {
  /// Returns the levels of the published rule. For each length and degree, two readings of free
  /// memory determine the fewest layers to checkpoint, and one more reading has the time of this
  /// setting. For each length, the setting with the least time of all its ranks is selected. Let
  /// l_best be the length with the least time of ranks per token, l_max the longest length, and
  /// sp_best and sp_max their degrees. The levels are l_best / sp_best, l_best, l_max / sp_max and
  /// l_max; values that do not increase are left out. Each level has the fastest setting of its
  /// length.
  ///
  /// `profile` maps a `packing_level` to a `level_reading`. If a profile does not know how much
  /// memory a failed run lacks, it returns `unknown_shortage`, and the search bisects the number of
  /// layers. The search reads the predicted setting too, and checkpoints more layers if it does not
  /// fit. Among equal times, the lowest degree and the shortest length are selected.
  ///
  /// Complexity: three readings for each length and degree, and one more for each layer by which
  /// the prediction fails. Memory: one element for each length. Determinism: portable if the
  /// profile is portable. Errors: `std::invalid_argument` if lengths or degrees are not positive
  /// and ascending, if there are no layers, or if the profile returns a time that is not positive.
  /// It is also thrown if no run fits and the profile returns less memory for more checkpointed
  /// layers. Further errors: any exception of `profile`. Source: Yao et al., "Hierarchical balance
  /// packing", NeurIPS 2025.
  template <level_profile Profile>
  [[nodiscard]] level_selection operator()(Profile const& profile,
                                           level_search const& search) const {
    detail::check_search(name, search);
    detail::level_probe probe(name, profile, search);
    level_selection result = probe_lengths(probe, search, search.lengths.back());
    if (result.status != solve_status::solved) return result;
    packing_level const best =
        std::min_element(result.fastest.begin(), result.fastest.end(), detail::is_faster)->setting;
    packing_level const longest = result.fastest.back().setting;
    for (std::int64_t const length : {best.length / best.sequence, best.length,
                                      longest.length / longest.sequence, longest.length}) {
      if (!result.levels.empty() && length <= result.levels.back().length) continue;
      auto const found = setting_of(probe, result.fastest, length);
      if (found) result.levels.push_back(*found);
    }
    return result;
  }

  /// Returns the subset of `search.lengths` with the least estimated time of an epoch of the
  /// samples. A level holds the samples that are longer than the level before it. The number of
  /// packs follows from the tokens and from the samples above half of the length. The number of
  /// steps follows from `search.ranks`; each step costs the time of a full pack. Samples that
  /// exceed all lengths are only counted in `oversized`. Among equal times, the fewest levels are
  /// selected.
  ///
  /// The times are the times of the packs of the profile. For accurate times, the profile should
  /// pack documents of the lengths that each level will receive.
  ///
  /// Complexity: the readings of the overload without samples, and time linear in the samples and
  /// quadratic in the lengths. Memory: 8 bytes per sample. Determinism: portable if the profile is
  /// portable. Errors: the errors of the overload without samples, and `std::invalid_argument` if a
  /// length is negative. Further errors: `std::overflow_error` if the tokens or the time of an
  /// epoch exceed 2^63 - 1; `std::length_error` if there are more than 2^32 - 1 samples.
  template <level_profile Profile, class Samples, class Length = std::identity>
    requires detail::token_samples<Samples, Length>
  [[nodiscard]] level_selection operator()(Profile const& profile, level_search const& search,
                                           Samples const& samples,
                                           Length const& length = {}) const {
    detail::check_search(name, search);
    auto const lengths = detail::measured_lengths(name, samples, length);
    detail::length_census const census(name, lengths, search.lengths);
    detail::level_probe probe(name, profile, search);
    level_selection result = probe_lengths(probe, search, census.longest());
    result.oversized = census.beyond();
    if (result.status != solve_status::solved) return result;
    std::int64_t const ranks = search.ranks == 0 ? search.degrees.back() : search.ranks;
    auto const estimate = detail::min_epoch(result.fastest, census, ranks);
    for (std::size_t const place : estimate.chosen) {
      result.levels.push_back(result.fastest[place].setting);
    }
    result.epoch_nanoseconds =
        detail::checked_cast<std::int64_t>(name, "the time of an epoch", estimate.nanoseconds);
    return result;
  }

 private:
  static constexpr std::string_view name = "select_levels";

  /// Returns the fastest setting of each length; the status is infeasible if no length of at least
  /// `needed` fits.
  template <class Profile>
  [[nodiscard]] static level_selection probe_lengths(detail::level_probe<Profile>& probe,
                                                     level_search const& search,
                                                     std::int64_t needed) {
    level_selection result;
    std::optional<std::int64_t> missing;
    for (std::int64_t const length : search.lengths) {
      if (auto const found = probe.fastest(length)) {
        result.fastest.push_back(*found);
      } else if (length >= needed && !missing) {
        missing = probe.min_missing();
      }
    }
    bool const is_long_enough =
        !result.fastest.empty() && result.fastest.back().setting.length >= needed;
    if (is_long_enough) return result;
    result.status = solve_status::infeasible;
    result.missing_bytes = missing.value_or(unknown_shortage);
    return result;
  }

  /// Returns the fastest setting of a length, which may be a length that is not in the search.
  template <class Profile>
  [[nodiscard]] static std::optional<packing_level> setting_of(detail::level_probe<Profile>& probe,
                                                               std::span<timed_level const> fastest,
                                                               std::int64_t length) {
    for (timed_level const& known : fastest) {
      if (known.setting.length == length) return known.setting;
    }
    auto const found = probe.fastest(length);
    if (!found) return std::nullopt;
    return found->setting;
  }
};

/// Selects lengths, sequence-parallel degrees and checkpoint settings; see `select_levels_fn`.
inline constexpr select_levels_fn select_levels{};

}  // namespace omnibal::inline v0
