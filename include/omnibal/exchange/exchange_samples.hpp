#pragma once

/// \file
/// Moving samples as a plan says.

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

}  // namespace detail

/// Samples that can be sent: values for a wire, or arrays of such values, of any length, that are
/// elements of a range or views, not made on the way. See `wire_value` for what a compiler cannot
/// see.
template <class Samples>
concept sendable_samples = sample_range<Samples> &&
    (detail::fixed_payload<detail::sample_value<Samples>> ||
     (detail::sized_payload<detail::sample_value<Samples>> && detail::lasting_elements<Samples>));

/// A field of arrays whose sizes every rank knows, so that they need not be sent: `sizes` is a
/// functor of the index of a sample of all ranks, such as one that makes numbers of elements of
/// `plan.bytes()`, or a range in the order before the exchange, such as what `gather_lengths` has
/// given; for an inverse, `permuted` by its plan. Equal on all ranks. An argument of
/// `exchange_samples`; refers to both.
template <class Samples, class Sizes>
struct sized_field {
  using samples_type = Samples;

  Samples const& samples;
  Sizes const& sizes;
};
template <class Samples, class Sizes>
sized_field(Samples const&, Sizes const&) -> sized_field<Samples, Sizes>;

namespace detail {

/// The sizes of arrays that ranks tell each other.
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

/// What is received where its memory is kept.
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

/// Samples on their way to `out`.
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

/// What `out` is for a caller: vectors and strings where the samples were.
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

/// For `exchange_samples`: all ranks have this plan, as the caller knows because `plan_exchange`,
/// `orchestrate` or `all_equal` has compared it, or the plan of which it is the inverse. The ranks
/// then compare it no more before the exchange: what they have to say to each other goes along with
/// the first message. An error on one rank is still one on all, but for a plan that differs after
/// all: that is as if ranks called different collectives.
[[nodiscard]] inline detail::followed_plan agreed(exchange_plan const& plan) {
  return {plan, true};
}
void agreed(exchange_plan const&& plan) = delete;

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
  /// is copied once. So is what leaves where the communicator takes pieces of memory, as threads
  /// do; elsewhere, and of values below 64 bytes, it is collected, sent and put into its place,
  /// unless it lies in a row there already, as what comes from one rank alone does.
  ///
  /// A collective call: one collective by which all ranks agree to go on, one for the sizes of
  /// arrays unless each is a `sized_field`, and one for the samples. Of an `agreed` plan the first
  /// goes along with the next. Complexity: linear in the bytes and, but for a logarithm of the
  /// ranks, in the samples of this rank; of all ranks for a `sized_field`. Memory: the result, the
  /// bytes that leave and come where they are collected, 40 bytes per sample of this rank and as
  /// many for each of its fields, and 72 per rank. Determinism: portable among equal ranks. Errors
  /// on all ranks: `std::invalid_argument` where plans, types or known sizes differ, and for known
  /// sizes that are negative or not one for each sample, `std::overflow_error` where they add up to
  /// more than 2^64 - 1 bytes; where on one rank the plan is for another number of ranks, or
  /// samples are not as many or as large as planned, `std::invalid_argument` there and
  /// `communication_error` elsewhere; those of the communicator.
  ///
  /// Several fields of the same samples, such as tokens, labels and pixels, go at once: in as many
  /// collectives as one of them, each of its own type. The result is a tuple of what each field
  /// alone would give, and such a tuple is taken too.
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

  /// The same into memory that is kept, for a training loop: once `out` and the workspace have seen
  /// the largest exchange, nothing is allocated, but for samples made on the way. `out` is a
  /// `std::vector` of trivially copyable samples, or a `ragged` of values. `local` is not in `out`.
  /// Several fields are tuples, as of `std::tie`.
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

/// Moves samples as a plan says; see `exchange_samples_fn`.
inline constexpr exchange_samples_fn exchange_samples{};

}  // namespace omnibal::inline v0
