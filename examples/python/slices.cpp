// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/pipeline/slice_sequences.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace slices {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::reject;
using convert::released;
using results::index_array;

/// The parts of all slices in arrays; slice i has the parts offsets[i] to offsets[i + 1].
struct sequence_slices {
  index_array offsets;
  index_array sequences;
  convert::integer_array firsts;
  convert::integer_array lasts;
  index_array slice_counts;
  py::object largest;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(offsets.size()) - 1; }
};

}  // namespace slices

namespace pybind11::detail {
template <>
struct type_caster<slices::sequence_slices> : convert::value_caster<slices::sequence_slices> {};
}  // namespace pybind11::detail

namespace slices {

namespace {

/// The costs of the first tokens of a sequence, which a function of Python returned for all numbers
/// of tokens that the algorithm can ask for.
class prefix_costs {
 public:
  /// `lengths` are the lengths of the sequences. Lengths and blocks that are not positive are left
  /// for the algorithm to reject.
  prefix_costs(std::string const& function, py::object const& cost, arrays::integers lengths,
               std::int64_t block)
      : tokens_(points(function, lengths, block)),
        costs_(function, "the result of cost", called(function, cost)) {
    std::size_t const count = std::visit([](auto list) { return list.size(); }, costs_.list());
    if (count == tokens_.size()) return;
    reject(function, "cost returned " + std::to_string(count) + " values for " +
                         std::to_string(tokens_.size()) + " numbers of tokens");
  }

  /// Returns true if the costs are integers.
  [[nodiscard]] bool are_integers() const {
    return std::holds_alternative<arrays::integers>(costs_.list());
  }

  /// Calls `body` with a functor that returns the cost of the first n tokens as `T`.
  template <class T, class Body>
  auto visit(Body const& body) const {
    return std::visit(
        [&](auto list) {
          return body([this, list](std::int64_t tokens) {
            auto const found = std::lower_bound(tokens_.begin(), tokens_.end(), tokens);
            return static_cast<T>(list[static_cast<std::size_t>(found - tokens_.begin())]);
          });
        },
        costs_.list());
  }

 private:
  /// Returns the lengths and the multiples of the block below the largest length, in ascending
  /// order.
  [[nodiscard]] static std::vector<std::int64_t> points(std::string const& function,
                                                        arrays::integers lengths,
                                                        std::int64_t block) {
    std::vector<std::int64_t> result;
    if (block <= 0) return result;
    for (std::int64_t const length : lengths) {
      if (length > 0) result.push_back(length);
    }
    if (result.empty()) return result;
    std::int64_t const longest = *std::max_element(result.begin(), result.end());
    if ((longest - 1) / block >= UINT32_MAX) {
      reject(function, "a length is " + std::to_string(longest) + ", must have fewer than 2**32 " +
                           "blocks of " + std::to_string(block) + " tokens");
    }
    for (std::int64_t tokens = block; tokens < longest; tokens += block) result.push_back(tokens);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  [[nodiscard]] py::object called(std::string const& function, py::object const& cost) const {
    if (!PyCallable_Check(cost.ptr())) {
      throw py::type_error("omnibal." + function + ": cost is a " +
                           std::string(py::str(py::type::of(cost).attr("__name__"))) +
                           ", must be a function of an array of numbers of tokens");
    }
    return cost(convert::to_array(std::vector<std::int64_t>(tokens_)));
  }

  std::vector<std::int64_t> tokens_;
  convert::cost_array costs_;
};

py::array slice_sequence(std::int64_t length, std::int64_t count, py::object const& cost,
                         std::int64_t block) {
  std::string const name = "slice_sequence";
  std::size_t const wanted = count_of(name, "slices", count);
  prefix_costs const costs(name, cost, std::span(&length, 1), block);
  auto const cut = [&](auto const& functor) {
    return released(
        [&] { return omnibal::slice_sequence(length, wanted, functor, {.block = block}); });
  };
  return convert::to_array(costs.are_integers() ? costs.visit<std::int64_t>(cut)
                                                : costs.visit<double>(cut));
}

template <class T>
sequence_slices to_arrays(omnibal::sequence_slices<T>&& given) {
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> sequences;
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> lasts;
  for (auto const& parts : given.slices) {
    for (omnibal::sequence_part const& part : parts) {
      sequences.push_back(part.sequence);
      firsts.push_back(part.first);
      lasts.push_back(part.last);
    }
    if (sequences.size() > UINT32_MAX) reject("slice_sequences", "there are 2**32 or more parts");
    offsets.push_back(static_cast<std::uint32_t>(sequences.size()));
  }
  return {convert::to_array(std::move(offsets)),
          convert::to_array(std::move(sequences)),
          convert::to_array(std::move(firsts)),
          convert::to_array(std::move(lasts)),
          convert::to_array(std::move(given.slice_counts)),
          py::cast(given.largest)};
}

sequence_slices slice_sequences(py::object const& lengths, py::object const& limit,
                                py::object const& cost, std::int64_t block) {
  std::string const name = "slice_sequences";
  integer_list const list(name, "lengths", lengths);
  prefix_costs const costs(name, cost, list.values(), block);
  py::array const number = convert::any_array(name, "limit", limit);
  if (number.ndim() != 0) reject(name, "limit must be a number");
  convert::cost_array const most(name, "limit", number.attr("reshape")(1));
  return std::visit(
      [&](auto limits) {
        auto const cut = [&](auto const& functor) {
          using value = decltype(functor(std::int64_t{1}));
          auto const wanted = static_cast<value>(limits.front());
          return to_arrays(released([&] {
            return omnibal::slice_sequences(list.values(), wanted, functor, {.block = block});
          }));
        };
        using given = std::remove_cv_t<typename decltype(limits)::element_type>;
        if (std::is_integral_v<given> && costs.are_integers()) {
          return costs.visit<std::int64_t>(cut);
        }
        return costs.visit<double>(cut);
      },
      most.list());
}

/// The parts of a slice as (sequence, first, last).
py::list parts_of(sequence_slices const& self, py::ssize_t slice) {
  auto const count = static_cast<py::ssize_t>(self.size());
  if (slice < 0) slice += count;
  if (slice < 0 || slice >= count) throw py::index_error("there is no such slice");
  py::list result;
  for (std::uint32_t k = self.offsets.at(slice); k != self.offsets.at(slice + 1); ++k) {
    result.append(py::make_tuple(self.sequences.at(k), self.firsts.at(k), self.lasts.at(k)));
  }
  return result;
}

}  // namespace

void define(py::module_& module) {
  py::class_<sequence_slices> type(module, "SequenceSlices", docstrings::SequenceSlices);
  type.def_readonly("offsets", &sequence_slices::offsets,
                    "Slice i has the parts offsets[i] to offsets[i + 1], uint32.")
      .def_readonly("sequences", &sequence_slices::sequences, "The sequence of each part, uint32.")
      .def_readonly("firsts", &sequence_slices::firsts, "The first token of each part, int64.")
      .def_readonly("lasts", &sequence_slices::lasts,
                    "The token after the last token of each part, int64.")
      .def_readonly("slice_counts", &sequence_slices::slice_counts,
                    "The number of slices of each long sequence, then a 1 for each slice of short "
                    "sequences, uint32.")
      .def_readonly("largest", &sequence_slices::largest, "The cost of the most expensive slice.")
      .def("__len__", &sequence_slices::size)
      .def("__getitem__", &parts_of, py::arg("slice"))
      .def("__getitem__", &convert::elements_at, py::arg("slice"))
      .def("__iter__", &convert::iterate)
      .def("__repr__", [](sequence_slices const& self) {
        auto const parts = static_cast<std::size_t>(self.sequences.size());
        return convert::repr_text(
            "SequenceSlices",
            {convert::count_text(self.size(), "slice"), convert::count_text(parts, "part"),
             "largest " + convert::number_text(self.largest)});
      });
  convert::add_pickle_of(type, &sequence_slices::offsets, &sequence_slices::sequences,
                         &sequence_slices::firsts, &sequence_slices::lasts,
                         &sequence_slices::slice_counts, &sequence_slices::largest);
  module.def("slice_sequence", &slice_sequence, docstrings::slice_sequence, py::arg("length"),
             py::arg("slices"), py::arg("cost"), py::kw_only(), py::arg("block") = 128);
  module.def("slice_sequences", &slice_sequences, docstrings::slice_sequences, py::arg("lengths"),
             py::arg("limit"), py::arg("cost"), py::kw_only(), py::arg("block") = 128);
}

}  // namespace slices
