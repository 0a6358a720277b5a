#pragma once

/// \file
/// Any number of values from every rank to every rank.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/detail/agreement.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct all_to_all_v_fn {
  /// What the other ranks send to this one, a row for each. Of `values` the first `counts[0]` go to
  /// rank 0, the next `counts[1]` to rank 1 and so on; counts may be zero.
  ///
  /// A collective call. Complexity: two collectives, the counts and the values. Memory: the result
  /// and 24 bytes per rank. Determinism: portable among equal ranks. Errors: those of the
  /// communicator; `std::invalid_argument` where there is not a count for each rank or they do not
  /// add up to the number of values, before anything is sent.
  template <exchanging_communicator Comm, wire_range Values, wire_range Counts>
    requires std::integral<std::ranges::range_value_t<Counts const>>
  [[nodiscard]] auto operator()(Comm&& comm, Values const& values, Counts const& counts) const {
    using value_type = std::ranges::range_value_t<Values const>;
    std::size_t const ranks = detail::rank_count(comm);
    auto const own = detail::values_of(values);
    std::vector<std::uint64_t> sent(std::ranges::begin(counts), std::ranges::end(counts));
    detail::check_counts(name, "counts", sent, ranks, own.size());

    std::vector<std::uint64_t> received(ranks);
    std::vector<std::uint64_t> const one_count(ranks, sizeof(std::uint64_t));
    comm.all_to_all_v(std::as_bytes(std::span(sent)), one_count,
                      std::as_writable_bytes(std::span(received)), one_count);
    ragged<value_type> result;
    result.shape(received);
    for (std::uint64_t& count : sent) count *= sizeof(value_type);
    for (std::uint64_t& count : received) count *= sizeof(value_type);
    comm.all_to_all_v(std::as_bytes(own), sent, std::as_writable_bytes(result.values()), received);
    return result;
  }

 private:
  static constexpr std::string_view name = "all_to_all_v";
};

/// What the other ranks send to this one; see `all_to_all_v_fn`.
inline constexpr all_to_all_v_fn all_to_all_v{};

}  // namespace omnibal::inline v0
