#pragma once

/// \file
/// Which lengths, sequence-parallel degrees and checkpoint settings to train with.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/check_numbers.hpp>
#include <omnibal/detail/checked_cast.hpp>
#include <omnibal/hierarchy/detail/level_members.hpp>
#include <omnibal/hierarchy/level_profile.hpp>
#include <omnibal/hierarchy/packing_level.hpp>
#include <omnibal/hierarchy/select_levels/epoch_estimate.hpp>
#include <omnibal/hierarchy/select_levels/level_probe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct select_levels_fn {
  /// The levels of the published rule. For each length and degree two readings of free memory give
  /// the fewest layers to checkpoint, and a reading with these its time; of each length the setting
  /// with the least time of all its ranks is kept. With l_best the length that takes the least of
  /// it for a token and l_max the longest, the levels are l_best / sp_best, l_best, l_max / sp_max
  /// and l_max, as far as they increase, each with the fastest setting of its length.
  ///
  /// `profile` maps a `packing_level` to a `level_reading`. Where it does not know how much memory
  /// a failed run lacks it says `unknown_shortage`, and more layers are tried by halving. What the
  /// line through two readings says is read as well and corrected upwards where it does not fit. Of
  /// equal times the lowest degree and the shortest length win.
  ///
  /// Complexity: three readings for each length and degree, one more for each layer by which memory
  /// is not linear. Memory: one element per length. Determinism: portable for a profile that is.
  /// Errors: `std::invalid_argument` for lengths or degrees that are not positive and ascending,
  /// for no layers, and for a profile with a time that is not positive or with less memory where
  /// more is checkpointed and none fits; whatever `profile` throws. Source: Yao et al.,
  /// "Hierarchical balance packing", NeurIPS 2025.
  template <level_profile Profile>
  [[nodiscard]] level_selection operator()(Profile const& profile,
                                           level_search const& search) const {
    detail::check_search(name, search);
    detail::level_probe probe(name, profile, search);
    level_selection result = probe_lengths(probe, search, search.lengths.back());
    if (result.status != solve_status::solved) return result;
    auto const by_speed = [](timed_level const& left, timed_level const& right) {
      return detail::is_faster(left, right);
    };
    packing_level const best =
        std::min_element(result.fastest.begin(), result.fastest.end(), by_speed)->setting;
    packing_level const longest = result.fastest.back().setting;
    for (std::int64_t const length : {best.length / best.sequence, best.length,
                                      longest.length / longest.sequence, longest.length}) {
      if (!result.levels.empty() && length <= result.levels.back().length) continue;
      auto const found = setting_of(probe, result.fastest, length);
      if (found) result.levels.push_back(*found);
    }
    return result;
  }

  /// The levels with the least estimated time of an epoch of these samples, of all subsets of
  /// `search.lengths`. A level takes the samples that are longer than the level before it; its
  /// packs are counted by their tokens and by the samples above half of its length, its steps by
  /// `search.ranks`, each with the time of a full pack. Samples that exceed all lengths only count
  /// in `oversized`. Of equal times the fewest levels win.
  ///
  /// The times are those of the profile's packs, whatever documents it packs: one that knows the
  /// data packs documents of the lengths that the level will see.
  ///
  /// Complexity: as above, linear in the samples and quadratic in the lengths. Memory: 8 bytes per
  /// sample. Determinism and errors: as above; `std::invalid_argument` for a negative length,
  /// `std::overflow_error` where the tokens or the time of an epoch exceed 2^63 - 1,
  /// `std::length_error` above 2^32 - 1 samples.
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
    auto const estimate = detail::least_epoch(result.fastest, census, ranks);
    for (std::size_t const place : estimate.chosen) {
      result.levels.push_back(result.fastest[place].setting);
    }
    result.epoch_nanoseconds =
        detail::checked_cast<std::int64_t>(name, "the time of an epoch", estimate.nanoseconds);
    return result;
  }

 private:
  static constexpr std::string_view name = "select_levels";

  /// The fastest setting of each length; infeasible where none is at least `needed` long.
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
        missing = probe.least_missing();
      }
    }
    bool const is_long_enough =
        !result.fastest.empty() && result.fastest.back().setting.length >= needed;
    if (is_long_enough) return result;
    result.status = solve_status::infeasible;
    result.missing_bytes = missing.value_or(unknown_shortage);
    return result;
  }

  /// The fastest setting of a length that may not be one of those that were tried.
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

/// Lengths, degrees and checkpoint settings; see `select_levels_fn`.
inline constexpr select_levels_fn select_levels{};

}  // namespace omnibal::inline v0
