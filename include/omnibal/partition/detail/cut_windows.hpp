#pragma once

/// \file
/// Where each boundary can be.

#include <omnibal/partition/detail/stage_costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// For each boundary the range in which it lies in all stages of which none is over a limit.
struct cut_windows {
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> last;
  /// Where the cells of a boundary begin in an array of all.
  std::vector<std::size_t> offsets;

  /// False where there are no such stages.
  template <class Stages, class C>
  [[nodiscard]] bool narrow(Stages const& stages, C limit) {
    first = stages.rules().first_cut;
    last = stages.rules().last_cut;
    if (!narrow_by_bound(stages, limit)) return false;
    if (stages.bound().is_known() && limit != never<C> && !narrow_by_cost(stages, limit)) {
      return false;
    }
    offsets.resize(stages.stages() + 2);
    offsets[0] = 0;
    for (std::size_t s = 0; s <= stages.stages(); ++s) offsets[s + 1] = offsets[s] + size(s);
    return true;
  }

  [[nodiscard]] std::size_t size(std::size_t boundary) const {
    return std::size_t{last[boundary]} - first[boundary] + 1;
  }
  [[nodiscard]] bool contains(std::size_t boundary, std::size_t position) const {
    return first[boundary] <= position && position <= last[boundary];
  }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t position) const {
    return offsets[boundary] + (position - first[boundary]);
  }

 private:
  template <class Stages, class C>
  [[nodiscard]] bool narrow_by_bound(Stages const& stages, C limit) {
    std::size_t const count = stages.stages();
    for (std::size_t s = 0; s != count; ++s) {
      auto const end = stages.furthest(s, last[s], std::max(last[s], last[s + 1]), limit);
      last[s + 1] = std::min(last[s + 1], static_cast<std::uint32_t>(end));
      if (last[s + 1] < first[s + 1]) return false;
    }
    for (std::size_t s = count; s-- != 0;) {
      auto const begin = stages.nearest(s, std::min(first[s], first[s + 1]), first[s + 1], limit);
      first[s] = std::max(first[s], static_cast<std::uint32_t>(begin));
      if (last[s] < first[s]) return false;
    }
    return true;
  }

  /// Moves the ends of the windows to where some stage is possible. The bound leaves few stages to
  /// try there, and the windows often become many times smaller.
  template <class Stages, class C>
  [[nodiscard]] bool narrow_by_cost(Stages const& stages, C limit) {
    std::size_t const count = stages.stages();
    for (std::size_t s = 0; s + 1 != count; ++s) {
      while (!has_begin(stages, s, last[s + 1], limit)) {
        if (last[s + 1]-- == first[s + 1]) return false;
      }
    }
    for (std::size_t s = count; --s != 0;) {
      while (!has_end(stages, s, first[s], limit)) {
        if (first[s]++ == last[s]) return false;
      }
    }
    return true;
  }

  /// Whether a stage may end there.
  template <class Stages, class C>
  [[nodiscard]] bool has_begin(Stages const& stages, std::size_t s, std::size_t end,
                               C limit) const {
    auto const& rules = stages.rules();
    if (rules.may_cut[end] == 0) return false;
    if (rules.may_be_empty && contains(s, end)) return true;
    if (end < rules.shortest[s]) return false;
    std::size_t const most = std::min<std::size_t>(last[s], end - rules.shortest[s]);
    for (std::size_t i = most + 1; i-- > first[s];) {
      if (stages.is_over(s, i, end, limit)) return false;
      if (stages.is_within(s, i, end, limit)) return true;
    }
    return false;
  }

  /// Whether a stage may begin there.
  template <class Stages, class C>
  [[nodiscard]] bool has_end(Stages const& stages, std::size_t s, std::size_t begin,
                             C limit) const {
    auto const& rules = stages.rules();
    if (rules.may_cut[begin] == 0) return false;
    if (rules.may_be_empty && contains(s + 1, begin)) return true;
    auto const least = std::max<std::size_t>(first[s + 1], begin + rules.shortest[s]);
    for (std::size_t j = least; j <= last[s + 1]; ++j) {
      if (stages.is_over(s, begin, j, limit)) return false;
      if (stages.is_within(s, begin, j, limit)) return true;
    }
    return false;
  }
};

}  // namespace omnibal::inline v0::detail
