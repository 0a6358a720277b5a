#pragma once

/// \file
/// The fastest setting of one length.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/cost/workload.hpp>
#include <omnibal/detail/check_numbers.hpp>
#include <omnibal/detail/checked_cast.hpp>
#include <omnibal/hierarchy/level_profile.hpp>
#include <omnibal/hierarchy/packing_level.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Throws unless values are positive, at most `most`, and increase.
inline void check_ascending(std::string_view function, std::string_view argument,
                            std::span<std::int64_t const> values, std::int64_t most) {
  if (values.empty()) throw_invalid(function, std::string(argument) + " is empty");
  std::int64_t least = 1;
  for (std::size_t i = 0; i != values.size(); ++i) {
    if (values[i] < least || values[i] > most) {
      throw_invalid(function, std::string(argument) + "[" + to_text(i) + "] is " +
                                  to_text(values[i]) + ", must be from " + to_text(least) + " to " +
                                  to_text(most));
    }
    least = values[i] + 1;
  }
}

inline void check_search(std::string_view function, level_search const& search) {
  check_ascending(function, "search.lengths", search.lengths, longest_level);
  check_ascending(function, "search.degrees", search.degrees, most_level_degree);
  check_between(function, "search.layers", search.layers, 1, most_width);
  check_between(function, "search.fewest_checkpointed", search.fewest_checkpointed, 0,
                search.layers);
  check_between(function, "search.reserve_bytes", search.reserve_bytes, 0,
                std::numeric_limits<std::int64_t>::max());
  if (search.ranks == 0) return;
  check_between(function, "search.ranks", search.ranks, search.degrees.back(), most_level_degree);
}

/// True where `left` takes less time of ranks for each token; equal ones are not.
[[nodiscard]] inline bool is_faster(timed_level const& left, timed_level const& right) {
  auto const rank_time = [](timed_level const& of, std::int64_t length) {
    // Below 2^63, 2^20 and 2^32.
    return static_cast<uint128>(of.nanoseconds) * static_cast<uint128>(of.setting.sequence) *
           static_cast<uint128>(length);
  };
  return rank_time(left, right.setting.length) < rank_time(right, left.setting.length);
}

/// Asks a profile for the settings of one length.
template <level_profile Profile>
class level_probe {
 public:
  level_probe(std::string_view function, Profile const& profile, level_search const& search)
      : function_(function), profile_(profile), search_(search) {}

  /// The setting with the least time of all its ranks, of equal ones the one with the lowest
  /// degree; none where no degree fits.
  [[nodiscard]] std::optional<timed_level> fastest(std::int64_t length) {
    std::optional<timed_level> best;
    least_missing_ = unknown_shortage;
    for (std::int64_t const degree : search_.degrees) {
      if (degree > length) continue;
      auto const found = fewest_checkpointed(length, degree);
      if (found && (!best || is_faster(*found, *best))) best = found;
    }
    return best;
  }

  /// What the length of the last call lacked at least.
  [[nodiscard]] std::int64_t least_missing() const { return least_missing_; }

 private:
  struct probed {
    packing_level setting;
    level_reading reading;
  };

  [[nodiscard]] static std::string named(packing_level const& setting) {
    return "length " + to_text(setting.length) + ", sequence " + to_text(setting.sequence) +
           " and " + to_text(setting.checkpointed_layers) + " checkpointed layers";
  }

  [[nodiscard]] bool fits(level_reading const& reading) const {
    return reading.free_bytes >= search_.reserve_bytes;
  }

  [[nodiscard]] probed read(packing_level const& setting) const {
    level_reading const reading = std::invoke(profile_, setting);
    if (fits(reading) && reading.nanoseconds <= 0) {
      throw_invalid(function_, "the profile gives " + to_text(reading.nanoseconds) +
                                   " nanoseconds for " + named(setting) + ", must be positive");
    }
    return {setting, reading};
  }

  /// The setting with the fewest checkpointed layers that leaves the reserve free, by a line
  /// through two readings and a reading of what it says.
  [[nodiscard]] std::optional<timed_level> fewest_checkpointed(std::int64_t length,
                                                               std::int64_t degree) {
    packing_level setting{length, degree, search_.fewest_checkpointed};
    probed few = read(setting);
    if (fits(few.reading)) return timed(few);
    setting.checkpointed_layers = search_.layers;
    probed many = search_.layers == search_.fewest_checkpointed ? few : read(setting);
    if (!fits(many.reading)) {
      check_gain(few, many);
      note_missing(many.reading);
      return std::nullopt;
    }
    // Where a failed run does not say what it lacks, one with more checkpointed layers may run.
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

  /// Throws where checkpointing takes memory instead of giving some.
  void check_gain(probed const& few, probed const& many) const {
    bool const is_known = many.reading.free_bytes != unknown_shortage;
    if (!is_known || many.reading.free_bytes >= few.reading.free_bytes) return;
    throw_invalid(function_, "the profile gives " + to_text(many.reading.free_bytes) +
                                 " free bytes for " + named(many.setting) + ", less than " +
                                 to_text(few.reading.free_bytes) + " for " +
                                 to_text(few.setting.checkpointed_layers));
  }

  /// What the line through two readings says, with more layers where a reading denies it.
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
    std::int64_t missing = search_.reserve_bytes;
    if (__builtin_sub_overflow(missing, reading.free_bytes, &missing)) {
      throw_overflow(function_, "the missing memory");
    }
    least_missing_ =
        least_missing_ == unknown_shortage ? missing : std::min(least_missing_, missing);
  }

  std::string_view function_;
  Profile const& profile_;
  level_search const& search_;
  std::int64_t least_missing_ = unknown_shortage;
};

}  // namespace omnibal::inline v0::detail
