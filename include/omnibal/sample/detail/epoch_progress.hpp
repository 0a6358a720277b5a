#pragma once

/// \file
/// Which steps of an epoch have run, and with how many ranks.

#include <omnibal/check.hpp>
#include <omnibal/sample/sampler_state.hpp>
#include <omnibal/sample/shard.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// What the ranks take together in a step of this segment.
[[nodiscard]] constexpr std::uint64_t taken_per_step(sampler_segment const& segment) {
  return std::uint64_t{segment.ranks} * segment.batch;
}

/// A segment without steps for these ranks; throws where the arguments make no sense.
[[nodiscard]] inline sampler_segment segment_of(std::string_view function, shard const& place,
                                                std::uint64_t batch) {
  check_positive(function, "shard.ranks", place.ranks);
  if (place.rank >= place.ranks) {
    throw_invalid(function, "shard.rank is " + to_text(place.rank) + ", but there are " +
                                to_text(place.ranks) + " ranks");
  }
  check_positive(function, "options.batch", batch);
  if (place.ranks > most_ranks) {
    throw_invalid(function, "shard.ranks is " + to_text(place.ranks) + ", must be at most " +
                                to_text(most_ranks));
  }
  check_index_count(function, "a step of one rank", batch);
  check_index_count(function, "a step", place.ranks * batch);
  return {static_cast<std::uint32_t>(place.ranks), static_cast<std::uint32_t>(batch), 0};
}

/// Throws where `state` is one of other data; `sources` are what the digest is made of.
inline void check_digest(std::string_view function, sampler_state const& state,
                         std::uint64_t digest, std::string_view sources) {
  if (state.digest == digest) return;
  throw_invalid(function, "state.digest is " + to_text(state.digest) + ", must be " +
                              to_text(digest) + ", that of " + std::string(sources) +
                              ": one of these is another than where the state was taken");
}

/// Throws where an epoch of so many samples or groups could not have left over `state.carried`.
inline void check_carried(std::string_view function, sampler_state const& state,
                          std::uint64_t count) {
  std::uint64_t const most = state.epoch == 0 || count == 0 ? 0 : count - 1;
  if (state.carried <= most) return;
  throw_invalid(function, "state.carried is " + to_text(state.carried) + " in epoch " +
                              to_text(state.epoch) + " of " + to_text(count) + ", at most " +
                              to_text(most) + " can be left over");
}

/// The segments of the epoch that runs: those that have ended, and the one of the present ranks.
class epoch_progress {
 public:
  /// Goes on where `state` stops; `present` has no steps yet. Throws for segments that no sampler
  /// could write.
  epoch_progress(std::string_view function, sampler_state const& state,
                 sampler_segment const& present)
      : ended_(state), ended_count_(count_segments(function, state)), present_(present) {
    if (ended_count_ == 0) return;
    sampler_segment& last = ended_.segments[ended_count_ - 1];
    if (!same_ranks(last, present)) return;
    present_.step_count = last.step_count;
    last = {};
    --ended_count_;
  }

  [[nodiscard]] std::uint64_t seed() const { return ended_.seed; }
  [[nodiscard]] std::uint64_t epoch() const { return ended_.epoch; }
  [[nodiscard]] std::uint64_t carried() const { return ended_.carried; }

  /// The segments of other ranks, oldest first.
  [[nodiscard]] std::span<sampler_segment const> ended() const {
    return {ended_.segments, ended_count_};
  }
  /// The segment of the present ranks.
  [[nodiscard]] sampler_segment const& present() const { return present_; }

  /// The number of steps before those of the present ranks.
  [[nodiscard]] std::uint64_t first_step() const {
    std::uint64_t result = 0;
    for (sampler_segment const& segment : ended()) result += segment.step_count;
    return result;
  }
  [[nodiscard]] std::uint64_t step() const { return first_step() + present_.step_count; }

  [[nodiscard]] sampler_state state() const {
    sampler_state result = ended_;
    if (present_.step_count != 0) result.segments[ended_count_] = present_;
    return result;
  }

  void set_present_steps(std::uint64_t step_count) { present_.step_count = step_count; }

  void start_next_epoch(std::uint64_t carried) {
    ended_ = {.seed = ended_.seed,
              .epoch = ended_.epoch + 1,
              .digest = ended_.digest,
              .carried = carried};
    ended_count_ = 0;
    present_.step_count = 0;
  }

  /// Throws where a step of the present ranks would have no place in a state.
  void check_room(std::string_view function) const {
    if (ended_count_ <= most_rank_changes) return;
    throw_invalid(function, "the ranks of epoch " + to_text(ended_.epoch) +
                                " changed for the time number " + to_text(ended_count_) +
                                ", a state holds " + to_text(most_rank_changes) + " changes");
  }

 private:
  [[nodiscard]] static bool same_ranks(sampler_segment const& left, sampler_segment const& right) {
    return left.ranks == right.ranks && left.batch == right.batch;
  }

  /// The number of segments; throws where they cannot be those of an epoch.
  [[nodiscard]] static std::size_t count_segments(std::string_view function,
                                                  sampler_state const& state) {
    std::size_t count = 0;
    for (std::size_t i = 0; i != most_rank_changes + 1; ++i) {
      sampler_segment const& segment = state.segments[i];
      if (segment == sampler_segment{}) continue;
      if (i != count) throw_segment(function, i, "follows an empty segment");
      if (segment.step_count == 0 || taken_per_step(segment) == 0 || segment.ranks > most_ranks) {
        throw_segment(function, i,
                      "has " + to_text(segment.ranks) + " ranks, batch " + to_text(segment.batch) +
                          " and " + to_text(segment.step_count) +
                          " steps, must be positive and at most " + to_text(most_ranks) + " ranks");
      }
      if (i != 0 && same_ranks(segment, state.segments[i - 1])) {
        throw_segment(function, i, "has the ranks of the segment before it");
      }
      ++count;
    }
    return count;
  }

  [[noreturn]] static void throw_segment(std::string_view function, std::size_t index,
                                         std::string const& text) {
    throw_invalid(function, "state.segments[" + to_text(index) + "] " + text);
  }

  sampler_state ended_;
  std::size_t ended_count_;
  sampler_segment present_;
};

}  // namespace omnibal::inline v0::detail
