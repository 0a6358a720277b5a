// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Functors from a sample to its demand.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

namespace detail {

template <class Sample, class... Measures>
concept measured_by_all = (cost_function<Measures, Sample> && ...);

template <class... Measures>
class demand_functor {
 public:
  constexpr explicit demand_functor(Measures... measures) : measures_(std::move(measures)...) {}

  template <class Sample>
    requires measured_by_all<Sample const&, Measures...>
  [[nodiscard]] constexpr auto operator()(Sample const& sample) const {
    using working = working_weight<
        std::remove_cvref_t<std::invoke_result_t<Measures const&, Sample const&>>...>;
    return std::apply(
        [&](auto const&... measure) {
          std::size_t kind = 0;
          return resources<sizeof...(Measures), working>{to_working<working>(
              {"demand_of", "amount", kind++}, detail::call(measure, sample))...};
        },
        measures_);
  }

 private:
  std::tuple<Measures...> measures_;
};

}  // namespace detail

/// Returns a demand functor with one resource per argument, a member pointer or any callable.
///
/// `demand_of(&sample::images, &sample::tokens)(s)` is `resources<2>{s.images, s.tokens}`. The
/// amounts are `std::int64_t`, or `double` if any argument returns a floating-point number. Errors:
/// `std::invalid_argument` for an unsigned value above 2^63 - 1. Determinism: portable.
template <class First, class... Others>
[[nodiscard]] constexpr auto demand_of(First first, Others... others) {
  return detail::demand_functor<First, Others...>(std::move(first), std::move(others)...);
}

/// A demand functor that rounds another demand up to multiples. For example, with `aligned{demand,
/// resources{1, 128}}` every sample occupies whole blocks of 128 tokens. Tensor, sequence and
/// context parallel layouts and blocked attention kernels need such blocks. If loads are measured
/// with this functor, they include the tokens that rounding adds.
///
/// `multiple` has one value per resource, or is a single weight if there is one resource. Errors:
/// `std::invalid_argument` for a multiple below one, `std::overflow_error` if the rounded demand
/// exceeds its type. Negative demands are returned unchanged, so that the algorithm can report
/// them.
template <class Demand, class Multiple>
  requires integral_measure<Multiple>
class aligned {
 public:
  constexpr aligned(Demand demand, Multiple multiple)
      : demand_(std::move(demand)),
        multiple_(detail::to_resources<std::int64_t>({"aligned", "multiple"}, multiple)) {
    for (std::size_t r = 0; r != kinds; ++r) {
      detail::check_positive("aligned", "multiple", r, multiple_[r]);
    }
  }

  template <class Sample>
    requires demand_function<Demand, Sample const&> &&
        detail::same_kinds<demand_result<Demand, Sample const&>, Multiple> &&
        integral_measure<demand_result<Demand, Sample const&>>
  [[nodiscard]] constexpr resources<detail::kinds_of<Multiple>> operator()(
      Sample const& sample) const {
    auto result =
        detail::to_resources<std::int64_t>({"aligned", "demand"}, detail::call(demand_, sample));
    for (std::size_t r = 0; r != kinds; ++r) {
      if (std::int64_t const rest = result[r] % multiple_[r]; rest > 0) {
        detail::checked_add("aligned", "a rounded demand", result[r], multiple_[r] - rest);
      }
    }
    return result;
  }

 private:
  static constexpr std::size_t kinds = detail::kinds_of<Multiple>;

  Demand demand_;
  resources<kinds> multiple_;
};

}  // namespace omnibal::inline v0
