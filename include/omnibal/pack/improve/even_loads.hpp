#pragma once

/// \file
/// Evener loads without more groups.

#include <omnibal/detail/capacity_shares.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Evens the loads of groups, pass by pass: the group with the largest load exchanges samples with
/// that with the smallest, the second largest with the second smallest, and so on, as long as the
/// sum of the squares of the shares of the capacity in all groups falls. Passes take the resources
/// in turn, and their sum, as the load.
template <class Layout>
class group_evener {
 public:
  /// `input` must outlive this object.
  explicit group_evener(measured<Layout> const& input) : input_(input), share_(input.capacity) {}

  /// One pass over `groups`.
  void run(grouping& groups) {
    std::vector<std::uint32_t> const order = largest_first(groups);
    std::size_t const count = order.size();
    grouping result;
    result.reserve(count, groups.item_count());
    bool is_evener = false;
    for (std::size_t i = 0; i != (count + 1) / 2; ++i) {
      std::uint32_t const last = order[count - 1 - i];
      large_.assign(groups[order[i]]);
      small_.assign(last == order[i] ? std::span<std::uint32_t const>{} : groups[last]);
      large_.load = input_.load(large_.samples);
      small_.load = input_.load(small_.samples);
      if (last != order[i]) is_evener = exchange() || is_evener;
      append(result, large_);
      if (last != order[i]) append(result, small_);
    }
    groups = std::move(result);
    ++pass_;
    idle_passes_ = is_evener ? 0 : idle_passes_ + 1;
  }

  /// True after a pass with every kind of load that changed nothing.
  [[nodiscard]] bool is_settled() const { return idle_passes_ == load_kinds; }

 private:
  using amounts_type = typename Layout::amounts_type;
  static constexpr std::size_t kinds = amounts_type::size();
  static constexpr std::size_t load_kinds = kinds == 1 ? 1 : kinds + 1;

  struct group {
    std::vector<std::uint32_t> samples;
    amounts_type load;

    void assign(std::span<std::uint32_t const> from) { samples.assign(from.begin(), from.end()); }
  };

  static void append(grouping& result, group const& from) {
    for (std::uint32_t const sample : from.samples) result.push(sample);
    result.close();
  }

  /// The share of the capacity, of one resource or of all.
  [[nodiscard]] std::uint64_t size(amounts_type const& load, std::size_t kind) const {
    return kind == kinds ? share_.sum(load) : share_(load[kind], kind);
  }

  [[nodiscard]] std::vector<std::uint32_t> largest_first(grouping const& groups) const {
    std::size_t const kind = pass_ % load_kinds;
    std::vector<std::uint64_t> keys(groups.size());
    for (std::size_t g = 0; g != keys.size(); ++g) keys[g] = size(input_.load(groups[g]), kind);
    return order_descending(keys.size(), [&keys](std::size_t g) { return keys[g]; });
  }

  /// The sum of the squares of the shares.
  [[nodiscard]] std::uint64_t unevenness(amounts_type const& load) const {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r != kinds; ++r) {
      std::uint64_t const share = share_(load[r], r) >> 33;
      sum += share * share;
    }
    return sum;
  }

  /// Exchanges samples of the two groups, one or none of each at a time; true where any was.
  bool exchange() {
    constexpr unsigned most_exchanges = 4;
    unsigned done = 0;
    while (done != most_exchanges && exchange_once()) ++done;
    return done != 0;
  }

  bool exchange_once() {
    std::size_t const from_large = candidates(large_);
    std::size_t const from_small = candidates(small_);
    std::uint64_t least = unevenness(large_.load) + unevenness(small_.load);
    std::size_t best[2] = {from_large, from_small};
    for (std::size_t i = 0; i <= from_large; ++i) {
      amounts_type const goes = candidate(large_, i);
      amounts_type const large_rest = large_.load - goes;
      for (std::size_t j = 0; j <= from_small; ++j) {
        amounts_type const comes = candidate(small_, j);
        amounts_type const small_rest = small_.load - comes;
        // Compared without a sum, which may exceed the largest integer.
        if (!comes.fits(input_.capacity - large_rest)) continue;
        if (!goes.fits(input_.capacity - small_rest)) continue;
        amounts_type const large = large_rest + comes;
        amounts_type const small = small_rest + goes;
        std::uint64_t const sum = unevenness(large) + unevenness(small);
        if (sum >= least) continue;
        least = sum;
        best[0] = i;
        best[1] = j;
      }
    }
    return (best[0] != from_large || best[1] != from_small) && carry_out(best[0], best[1]);
  }

  static constexpr std::size_t most_candidates = 16;

  /// How many samples of a group are looked at, evenly spaced; the candidate after the last is
  /// none.
  [[nodiscard]] static std::size_t candidates(group const& from) {
    return std::min(from.samples.size(), most_candidates);
  }
  [[nodiscard]] static std::size_t position(group const& from, std::size_t candidate) {
    return candidate * from.samples.size() / candidates(from);
  }
  [[nodiscard]] amounts_type candidate(group const& from, std::size_t k) const {
    return k == candidates(from) ? amounts_type{} : input_.amounts(from.samples[position(from, k)]);
  }

  /// False, and nothing changes, where rounding makes a group exceed the capacity.
  bool carry_out(std::size_t goes, std::size_t comes) {
    group large = replaced(large_, goes, small_, comes);
    group small = replaced(small_, comes, large_, goes);
    if (!large.load.fits(input_.capacity) || !small.load.fits(input_.capacity)) return false;
    large_ = std::move(large);
    small_ = std::move(small);
    return true;
  }

  /// `from` without one candidate and with one of `other`.
  [[nodiscard]] group replaced(group const& from, std::size_t goes, group const& other,
                               std::size_t comes) const {
    group result{from.samples, {}};
    auto& samples = result.samples;
    if (goes != candidates(from)) {
      samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(position(from, goes)));
    }
    if (comes != candidates(other)) samples.push_back(other.samples[position(other, comes)]);
    result.load = input_.load(samples);
    return result;
  }

  measured<Layout> const& input_;
  capacity_shares<kinds, typename amounts_type::value_type> share_;
  group large_;
  group small_;
  std::size_t pass_ = 0;
  std::size_t idle_passes_ = 0;
};

}  // namespace omnibal::inline v0::detail
