#pragma once

/// \file
/// Moving samples as a plan says.

#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples/sample_mover.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

template <class Samples>
using sample_value = std::remove_cvref_t<sample_reference<Samples>>;

/// A sample that is an array of any length: a vector, a string, a span.
template <class Sample>
concept sized_payload = wire_range<Sample> &&
    (!std::is_trivially_copyable_v<Sample> || std::ranges::enable_borrowed_range<Sample>);

/// A sample that travels as its own bytes.
template <class Sample>
concept fixed_payload =
    wire_value<Sample> && std::default_initializable<Sample> && !sized_payload<Sample>;

template <class Sample>
using payload_value = std::ranges::range_value_t<Sample const>;

/// Made from a first and a last element: a vector or a string, not a view of either.
template <class Sample>
concept owning_payload =
    sized_payload<Sample> && !std::ranges::enable_borrowed_range<Sample> &&
    std::constructible_from<Sample, payload_value<Sample> const*, payload_value<Sample> const*>;

/// What an element refers to is there until the samples have left.
template <class Samples>
concept lasting_elements = std::is_lvalue_reference_v<sample_reference<Samples>> ||
    std::ranges::enable_borrowed_range<sample_value<Samples>>;

template <class Sample>
struct result_of_payload {
  using type = std::vector<Sample>;
};
template <sized_payload Sample>
struct result_of_payload<Sample> {
  using type = ragged<payload_value<Sample>>;
};

/// What samples are received into where its memory is kept.
template <class Out, class Samples>
concept result_of_samples =
    std::same_as<Out, typename result_of_payload<sample_value<Samples>>::type>;

}  // namespace detail

/// Samples that can be sent: values for a wire, or arrays of such values, of any length, that are
/// elements of a range or views, not made on the way. See `wire_value` for what a compiler cannot
/// see.
template <class Samples>
concept sendable_samples = sample_range<Samples> &&
    (detail::fixed_payload<detail::sample_value<Samples>> ||
     (detail::sized_payload<detail::sample_value<Samples>> && detail::lasting_elements<Samples>));

/// Memory of `exchange_samples`, to be kept from step to step.
class exchange_samples_workspace {
 private:
  friend struct exchange_samples_fn;

  detail::sample_mover mover_;
};

struct exchange_samples_fn {
  /// Moves samples as `plan` says: `local` are those that this rank has before, the result those
  /// that it has afterwards, in the order of `plan.arrivals(rank)`. With `plan.inverse()` the
  /// result is exactly `local` again.
  ///
  /// Samples are trivially copyable, or arrays of trivially copyable values that may have different
  /// sizes, also none: vectors, strings, spans, the rows of a `ragged`. The result is a
  /// `std::vector` of what `local` has, for views such as spans a `ragged`. What stays on its rank
  /// is copied once. So is what leaves where the communicator takes pieces of memory, as threads do
  /// for samples of 64 bytes or more; elsewhere it is collected, sent and put into its place.
  ///
  /// A collective call: one collective by which all ranks agree to go on, one for the samples and,
  /// where these have different sizes, one for the sizes. Complexity: linear in the bytes and, but
  /// for a logarithm of the ranks, in the samples of this rank. Memory: the result, the bytes that
  /// leave and come where they are collected, and 60 bytes per sample of this rank and 72 per rank.
  /// Determinism: portable among equal ranks. Errors
  /// on all ranks: `std::invalid_argument` where plans or types differ; where on one rank the plan is for
  /// another number of ranks or of samples, `std::invalid_argument` there and `communication_error`
  /// elsewhere; those of the communicator.
  template <exchanging_communicator Comm, sendable_samples Samples>
  [[nodiscard]] auto operator()(Comm&& comm, exchange_plan const& plan,
                                Samples const& local) const {
    using sample_type = detail::sample_value<Samples>;
    exchange_samples_workspace workspace;
    if constexpr (detail::fixed_payload<sample_type>) {
      std::vector<sample_type> result;
      (*this)(comm, plan, local, result, workspace);
      return result;
    } else {
      ragged<detail::payload_value<sample_type>> rows;
      (*this)(comm, plan, local, rows, workspace);
      if constexpr (detail::owning_payload<sample_type>) {
        std::vector<sample_type> result;
        result.reserve(rows.size());
        for (auto const row : rows) result.emplace_back(row.data(), row.data() + row.size());
        return result;
      } else {
        return rows;
      }
    }
  }

  /// The same into memory that is kept, for a training loop: once `out` and the workspace have seen
  /// the largest exchange, nothing is allocated. `out` is a `std::vector` of trivially copyable
  /// samples, or a `ragged` of values. `local` is not in `out`.
  template <exchanging_communicator Comm, sendable_samples Samples, class Out>
    requires detail::result_of_samples<Out, Samples>
  void operator()(Comm&& comm, exchange_plan const& plan, Samples const& local, Out& out,
                  exchange_samples_workspace& workspace) const {
    using sample_type = detail::sample_value<Samples>;
    auto const first = std::ranges::begin(local);
    auto const sample_at = [&](std::uint32_t i) -> decltype(auto) {
      return first[static_cast<std::ranges::range_difference_t<Samples const>>(i)];
    };
    std::size_t const count = std::ranges::size(local);
    if constexpr (detail::fixed_payload<sample_type>) {
      workspace.mover_.move_fixed(comm, plan, count, sample_at, out);
    } else {
      auto const values_at = [&](std::uint32_t i) { return detail::values_of(sample_at(i)); };
      workspace.mover_.move_sized(comm, plan, count, values_at, out);
    }
  }
};

/// Moves samples as a plan says; see `exchange_samples_fn`.
inline constexpr exchange_samples_fn exchange_samples{};

}  // namespace omnibal::inline v0
