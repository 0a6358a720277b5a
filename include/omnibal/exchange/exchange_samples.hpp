// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exchange of samples according to a plan.

#include <omnibal/balance/index_measure.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/ragged.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/exchange/exchange_plan.hpp>
#include <omnibal/exchange/exchange_samples/sample_mover.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

template <class Samples>
using sample_value = std::remove_cvref_t<sample_reference<Samples>>;

/// A sample that is an array of any length: a vector, a string, a span.
template <class Sample>
concept sized_payload = wire_range<Sample> &&
    (!std::is_trivially_copyable_v<Sample> || std::ranges::enable_borrowed_range<Sample>);

/// A sample that is sent as its own bytes.
template <class Sample>
concept fixed_payload =
    wire_value<Sample> && std::default_initializable<Sample> && !sized_payload<Sample>;

template <class Sample>
using payload_value = std::ranges::range_value_t<Sample const>;

/// A container constructible from a first and a last element: a vector or a string, not a view.
template <class Sample>
concept owning_payload =
    sized_payload<Sample> && !std::ranges::enable_borrowed_range<Sample> &&
    std::constructible_from<Sample, payload_value<Sample> const*, payload_value<Sample> const*>;

/// Samples whose elements refer to memory that is valid until the samples are sent.
template <class Samples>
concept lasting_elements = std::is_lvalue_reference_v<sample_reference<Samples>> ||
    std::ranges::enable_borrowed_range<sample_value<Samples>>;

}  // namespace detail

/// Samples that can be sent: values for a wire, or arrays of such values, of any length. Arrays are
/// elements of a range or views, not temporaries. `wire_value` lists the restrictions that a
/// compiler cannot check.
template <class Samples>
concept sendable_samples = sample_range<Samples> &&
    (detail::fixed_payload<detail::sample_value<Samples>> ||
     (detail::sized_payload<detail::sample_value<Samples>> && detail::lasting_elements<Samples>));

/// A field of arrays whose sizes every rank knows, which avoids the exchange of sizes. The argument
/// `sizes` is a functor of the index of a sample of all ranks, such as a functor that computes
/// numbers of elements from `plan.bytes()`. It may also be a range in the order before the
/// exchange, such as the result of `gather_lengths`; for an inverse plan, apply `permuted` of the
/// original plan to this range. The sizes are equal on all ranks. A `sized_field` is an argument of
/// `exchange_samples` and refers to both the samples and the sizes.
template <class Samples, class Sizes>
struct sized_field {
  using samples_type = Samples;

  Samples const& samples;
  Sizes const& sizes;
};
template <class Samples, class Sizes>
sized_field(Samples const&, Sizes const&) -> sized_field<Samples, Sizes>;

namespace detail {

/// Marks arrays whose sizes the ranks exchange.
struct told_sizes {};
inline constexpr told_sizes sizes_are_told{};

template <sendable_samples Samples>
[[nodiscard]] sized_field<Samples, told_sizes> as_field(Samples const& samples) {
  return {samples, sizes_are_told};
}
template <sendable_samples Samples, index_bytes Sizes>
  requires sized_payload<sample_value<Samples>>
[[nodiscard]] sized_field<Samples, Sizes> as_field(sized_field<Samples, Sizes> const& field) {
  return field;
}

}  // namespace detail

/// A field of `exchange_samples`: samples that can be sent, or a `sized_field` of arrays.
template <class Field>
concept sendable_field = sendable_samples<std::remove_cvref_t<Field>> ||
    requires(Field const& field) {
  detail::as_field(field);
};

namespace detail {

template <class Field>
using samples_of = typename decltype(as_field(std::declval<Field const&>()))::samples_type;

/// The type of received samples in reused memory.
template <class Field, class Sample = sample_value<samples_of<Field>>>
struct result_of_field {
  using value = Sample;
  using type = std::vector<Sample>;
};
template <class Field, sized_payload Sample>
struct result_of_field<Field, Sample> {
  using value = payload_value<Sample>;
  using type = ragged<value>;
};

/// Returns a description of a field for `sample_mover`: how to read the samples, and how to write
/// the received samples to `out`.
template <class Samples, class Sizes, class Out>
[[nodiscard]] sample_field make_field(sized_field<Samples, Sizes> const& given, Out& out) {
  using sample_type = sample_value<Samples>;
  using value = typename result_of_field<Samples>::value;
  auto const at = [first = std::ranges::begin(given.samples)](std::size_t i) -> decltype(auto) {
    return first[static_cast<std::ranges::range_difference_t<Samples const>>(i)];
  };
  sample_field field;
  field.count = std::ranges::size(given.samples);
  field.value_bytes = sizeof(value);
  if constexpr (sized_payload<sample_type>) {
    field.array = [at](std::uint32_t i) { return std::as_bytes(values_of(at(i))); };
    field.place = [&out](std::uint32_t i) { return std::as_writable_bytes(out[i]); };
    field.shape = [&out](std::span<std::uint64_t const> lengths, std::size_t) {
      out.shape(lengths);
      return static_cast<std::byte*>(nullptr);
    };
    field.kind = sample_field::sizes::told;
  } else {
    if constexpr (std::ranges::contiguous_range<Samples const&>) {
      field.values = reinterpret_cast<std::byte const*>(std::ranges::data(given.samples));
    } else {
      field.made.resize(field.count * sizeof(value));
      for (std::size_t i = 0; i != field.count; ++i) {
        value const made = at(i);
        std::memcpy(&field.made[i * sizeof(value)], &made, sizeof(value));
      }
      field.values = field.made.data();
    }
    field.shape = [&out](std::span<std::uint64_t const>, std::size_t count) {
      out.resize(count);
      return reinterpret_cast<std::byte*>(out.data());
    };
  }
  if constexpr (index_bytes<Sizes>) {
    field.size_of = [&sizes = given.sizes](std::uint32_t i, std::size_t samples) {
      constexpr std::string_view function = "exchange_samples";
      auto const size = amounts_by_index(function, "sizes", sizes, samples)(i);
      return static_cast<std::uint64_t>(checked_cost<std::int64_t>(function, "sizes", i, size));
    };
    field.kind = sample_field::sizes::known;
  }
  return field;
}

/// Converts `out` to the type that the caller receives: vectors or strings if the samples of the
/// caller are vectors or strings.
template <class Sample, class Out>
[[nodiscard]] auto as_returned(Out& out) {
  if constexpr (owning_payload<Sample>) {
    std::vector<Sample> result;
    result.reserve(out.size());
    for (auto const row : out) result.emplace_back(row.data(), row.data() + row.size());
    return result;
  } else {
    return std::move(out);
  }
}

}  // namespace detail

/// Marks a plan, for `exchange_samples`, as equal on all ranks. The caller knows this if
/// `plan_exchange`, `orchestrate` or `all_equal` has compared the plan, or the plan of which it is
/// the inverse. The ranks then do not compare the plan before the exchange: the comparison of the
/// other arguments is part of the first message. An error on one rank is still an error on all
/// ranks, except if plans differ in spite of this mark. Different plans then have the same effect
/// as calls of different collectives.
[[nodiscard]] inline detail::followed_plan agreed(exchange_plan const& plan) {
  detail::followed_plan result(plan);
  result.is_agreed = true;
  return result;
}
void agreed(exchange_plan const&& plan) = delete;

/// Memory of `exchange_samples`. Use the same workspace in all steps.
class exchange_samples_workspace {
 private:
  friend struct exchange_samples_fn;

  detail::sample_mover mover_;
};

struct exchange_samples_fn {
  /// Moves samples as `plan` says. `local` contains the samples of this rank before the exchange.
  /// The result contains its samples after the exchange, in the order of `plan.arrivals(rank)`.
  /// With `plan.inverse()` the result is exactly `local` again.
  ///
  /// Samples are trivially copyable, or arrays of trivially copyable values. Arrays may have
  /// different sizes, or be empty: vectors, strings, spans, the rows of a `ragged`. The result is a
  /// `std::vector` of the sample type of `local`, or a `ragged` if samples are views such as spans.
  /// Samples that stay on their rank are copied once. Samples that leave are also copied once if
  /// the communicator accepts messages in pieces of memory, as `thread_communicator` does. Other
  /// communicators, and values below 64 bytes, require that samples are collected, sent and put
  /// into their place. Larger samples that are already contiguous, such as all samples from one
  /// rank, need no such copies.
  ///
  /// A collective call: one collective for the agreement of all ranks, one for the sizes of arrays
  /// unless each is a `sized_field`, and one for the samples. With an `agreed` plan, the first
  /// collective is part of the next. Complexity for S samples on this rank and P ranks: linear in
  /// the bytes, plus S log(P) time; a `sized_field` also costs linear time in the samples of all
  /// ranks. Memory: the result, the bytes that leave and arrive if they are collected, 40 bytes per
  /// sample of this rank and 40 for each of its fields, and 72 per rank. Determinism: portable
  /// among equal ranks. Errors on all ranks: `std::invalid_argument` if plans, types or known sizes
  /// differ, and if known sizes are negative or not one for each sample. All ranks throw
  /// `std::overflow_error` if the known sizes add up to more than 2^64 - 1 bytes. On one rank the
  /// plan may be for another number of ranks, or samples may differ from the plan in number or
  /// size. That rank then throws `std::invalid_argument`, and the others throw
  /// `communication_error`. Further errors: the errors of the communicator.
  ///
  /// Several fields of the same samples, such as tokens, labels and pixels, are exchanged in one
  /// call with the number of collectives of one field. Each field has its own type. The result is a
  /// tuple of the results of each single field; the function also accepts such a tuple.
  template <exchanging_communicator Comm, sendable_field... Fields>
    requires(sizeof...(Fields) != 0)
  [[nodiscard]] auto operator()(Comm&& comm, detail::followed_plan const& plan,
                                Fields const&... local) const {
    auto results = (*this)(comm, plan, std::tie(local...));
    if constexpr (sizeof...(Fields) == 1) {
      return std::move(std::get<0>(results));
    } else {
      return results;
    }
  }
  template <exchanging_communicator Comm, sendable_field... Fields>
  [[nodiscard]] auto operator()(Comm&& comm, detail::followed_plan const& plan,
                                std::tuple<Fields...> const& fields) const {
    exchange_samples_workspace workspace;
    std::tuple<typename detail::result_of_field<Fields>::type...> results;
    std::apply([&](auto&... outs) { move(comm, plan, fields, std::tie(outs...), workspace); },
               results);
    return std::apply(
        [](auto&... outs) {
          return std::tuple(
              detail::as_returned<detail::sample_value<detail::samples_of<Fields>>>(outs)...);
        },
        results);
  }

  /// Moves samples into `out` and reuses its memory, for a training loop. A call allocates nothing
  /// if an earlier call with `out` and the workspace was at least as large, except for samples that
  /// are temporaries. The output `out` is a `std::vector` of trivially copyable samples, or a
  /// `ragged` of values. `local` must not refer to `out`. Several fields, and their outputs, are
  /// passed as tuples, such as the result of `std::tie`.
  template <exchanging_communicator Comm, sendable_field Samples, class Out>
    requires std::same_as<Out, typename detail::result_of_field<Samples>::type>
  void operator()(Comm&& comm, detail::followed_plan const& plan, Samples const& local, Out& out,
                  exchange_samples_workspace& workspace) const {
    move(comm, plan, std::tie(local), std::tie(out), workspace);
  }
  template <exchanging_communicator Comm, sendable_field... Fields, class... Outs>
    requires(std::same_as<Outs, typename detail::result_of_field<Fields>::type>&&...)
  void operator()(Comm&& comm, detail::followed_plan const& plan,
                  std::tuple<Fields...> const& fields, std::tuple<Outs&...> const& outs,
                  exchange_samples_workspace& workspace) const {
    move(comm, plan, fields, outs, workspace);
  }

 private:
  template <class Comm, class... Fields, class Outs>
  static void move(Comm& comm, detail::followed_plan const& plan,
                   std::tuple<Fields...> const& fields, Outs const& outs,
                   exchange_samples_workspace& workspace) {
    auto const with = [&]<std::size_t... F>(std::index_sequence<F...>) {
      detail::sample_field const all[] = {
          detail::make_field(detail::as_field(std::get<F>(fields)), std::get<F>(outs))...};
      workspace.mover_.move(comm, plan, all);
    };
    with(std::index_sequence_for<Fields...>());
  }
};

/// Moves samples between ranks as a plan says; see `exchange_samples_fn`.
inline constexpr exchange_samples_fn exchange_samples{};

}  // namespace omnibal::inline v0
