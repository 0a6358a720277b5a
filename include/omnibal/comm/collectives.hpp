#pragma once

/// \file
/// Collectives of values instead of bytes.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/padded_gather.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct all_gather_fn {
  /// The values of all ranks, by rank. `value` is a value that travels as its bytes, or an array of
  /// them that has as many on every rank; those of rank 0 come first then.
  ///
  /// A collective call: all ranks make it. Complexity: one collective. Allocates the result.
  /// Determinism: portable among equal ranks. Errors: those of the communicator, among them
  /// different numbers of values.
  template <communicator Comm, wire_value Value>
    requires(!wire_range<Value>)
  [[nodiscard]] std::vector<Value> operator()(Comm&& comm, Value const& value) const {
    return (*this)(comm, std::span<Value const>(&value, 1));
  }

  template <communicator Comm, wire_range Values>
  [[nodiscard]] auto operator()(Comm&& comm, Values const& values) const {
    auto const own = detail::values_of(values);
    std::vector<std::ranges::range_value_t<Values const>> result(own.size() *
                                                                 detail::rank_count(comm));
    comm.all_gather(std::as_bytes(own), std::as_writable_bytes(std::span(result)));
    return result;
  }
};

/// The values of all ranks; see `all_gather_fn`.
inline constexpr all_gather_fn all_gather{};

struct all_equal_fn {
  /// True on all ranks where all have equal values, such as the digest of a plan, and false on all
  /// ranks otherwise.
  ///
  /// A collective call. Complexity: one collective. Memory: a value per rank. Errors: those of the
  /// communicator.
  template <communicator Comm, wire_value Value>
    requires std::equality_comparable<Value>
  [[nodiscard]] bool operator()(Comm&& comm, Value const& value) const {
    Value const one[] = {value};
    std::vector<Value> const all = all_gather(comm, one);
    return std::all_of(all.begin(), all.end(), [&](Value const& other) { return other == all[0]; });
  }
};

/// Whether all ranks have equal values; see `all_equal_fn`.
inline constexpr all_equal_fn all_equal{};

struct all_gather_v_fn {
  /// The values of all ranks, a row for each. Ranks may give different numbers, also none.
  ///
  /// A collective call. Complexity: two collectives, the counts and then blocks that are padded to
  /// the largest count. Memory: the result and, where counts differ, those blocks. Determinism:
  /// portable among equal ranks. Errors: those of the communicator.
  template <communicator Comm, wire_range Values>
  [[nodiscard]] auto operator()(Comm&& comm, Values const& values) const {
    auto const own = detail::values_of(values);
    std::vector<std::uint64_t> const counts =
        all_gather(comm, static_cast<std::uint64_t>(own.size()));
    ragged<std::ranges::range_value_t<Values const>> result;
    detail::padded_gather().run(comm, own, counts, result);
    return result;
  }
};

/// The values of all ranks, a row for each; see `all_gather_v_fn`.
inline constexpr all_gather_v_fn all_gather_v{};

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
