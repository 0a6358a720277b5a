// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/sample/bundles.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace parts {

namespace py = pybind11;
using convert::cost_array;
using convert::cost_table;
using convert::count_of;
using convert::integer_list;
using convert::released;
using convert::speed_array;
using convert::word_of;
using results::groups;

/// The result of an exact search for even parts.
struct balanced {
  std::string status;
  groups of;
  py::object largest_load;
  py::object lower_bound;
  bool proven = false;
};

}  // namespace parts

namespace pybind11::detail {
template <>
struct type_caster<parts::balanced> : convert::value_caster<parts::balanced> {};
}  // namespace pybind11::detail

namespace parts {

namespace {

groups rebalance(groups const& home, py::object const& costs, py::object const& bytes,
                 double max_overload, std::int64_t ranks_per_node, py::object const& node_of,
                 std::string const& counts, std::optional<std::int64_t> max_moved_bytes,
                 py::object const& speeds) {
  std::string const name = "rebalance";
  cost_table const list(name, "costs", costs);
  integer_list const sizes(name, "bytes", bytes);
  auto const nodes = convert::to_indices(name, "node_of",
                                         convert::optional_list(name, "node_of", node_of).values());
  speed_array const given(name, speeds);
  auto const values = given.list();
  omnibal::rebalance_options options{
      .max_overload = max_overload,
      .ranks_per_node = count_of(name, "ranks_per_node", ranks_per_node),
      .node_of = nodes,
      .counts = static_cast<omnibal::rank_counts>(
          word_of(name, "counts", counts, {"any", "kept", "equal", "at_most_one_apart"})),
      .speeds = values};
  if (max_moved_bytes) options.max_moved_bytes = *max_moved_bytes;
  auto const before = results::to_grouping(home);
  return results::to_groups(released([&] {
    return list.visit([&](auto const& amounts) {
      return omnibal::rebalance(before, amounts, sizes.values(), options);
    });
  }));
}

balanced balance_optimally(py::object const& costs, std::int64_t count, std::string const& rule,
                           std::int64_t nodes, py::object const& speeds) {
  std::string const name = "balance_optimally";
  cost_table const list(name, "costs", costs);
  speed_array const given(name, speeds);
  auto const values = given.list();
  omnibal::balance_optimally_options const options{
      .count = static_cast<omnibal::count_policy>(
          word_of(name, "count", rule, {"any", "equal", "at_most_one_apart"})),
      .nodes = count_of(name, "nodes", nodes),
      .speeds = values};
  auto const wanted = count_of(name, "parts", count);
  return list.visit([&](auto const& amounts) -> balanced {
    auto found = released(
        [&] { return omnibal::balance_optimally(amounts, wanted, std::identity{}, options); });
    return {convert::to_text(found.status), results::to_groups(std::move(found.parts)),
            py::cast(found.largest_load), py::cast(found.lower_bound), found.proven};
  });
}

/// The weights of a set cost in the type of its value.
template <class T>
[[nodiscard]] omnibal::pack_weights<T> weights_of(py::object const& linear,
                                                  py::object const& quadratic) {
  return {.linear = linear.cast<T>(), .quadratic = quadratic.cast<T>()};
}

template <class T, class Lengths>
groups cut_runs(std::size_t kind, Lengths const& lengths, std::size_t count,
                omnibal::pack_weights<T> const& weights,
                omnibal::balance_set_cost_options const& options) {
  auto const cut = [&](auto const& empty) {
    return results::to_groups(
        released([&] { return omnibal::balance_set_cost(lengths, count, empty, options); }));
  };
  using length = std::identity;
  if (kind == 0) return cut(omnibal::padded_batch<length, T>());
  if (kind == 1) return cut(omnibal::padded_attention<length, T>(length(), weights));
  return cut(omnibal::unmasked_pack<length, T>(length(), weights));
}

groups balance_set_cost(py::object const& lengths, std::int64_t count, std::string const& cost,
                        py::object const& linear, py::object const& quadratic,
                        std::string const& order) {
  std::string const name = "balance_set_cost";
  cost_array const list(name, "lengths", lengths);
  std::size_t const kind =
      word_of(name, "cost", cost, {"padded_batch", "padded_attention", "unmasked_pack"});
  bool const has_weights = !linear.equal(py::int_(0)) || !quadratic.equal(py::int_(1));
  if (kind == 0 && has_weights) {
    convert::reject(name, "linear is " + std::string(py::str(linear)) + " and quadratic is " +
                              std::string(py::str(quadratic)) +
                              ", but a padded_batch has no weights");
  }
  omnibal::balance_set_cost_options const options{
      .order = static_cast<omnibal::run_order>(
          word_of(name, "order", order, {"largest_first", "given"}))};
  auto const wanted = count_of(name, "parts", count);
  bool const is_whole = py::isinstance<py::int_>(linear) && py::isinstance<py::int_>(quadratic);
  return std::visit(
      [&](auto given) {
        using number = std::remove_cv_t<typename decltype(given)::element_type>;
        if (std::is_integral_v<number> && is_whole) {
          if constexpr (std::is_integral_v<number>) {
            return cut_runs(kind, given, wanted, weights_of<std::int64_t>(linear, quadratic),
                            options);
          }
        }
        return cut_runs(kind, given, wanted, weights_of<double>(linear, quadratic), options);
      },
      list.list());
}

groups bundle_by(py::object const& keys) {
  convert::key_list const list("bundle_by", keys);
  return results::to_groups(
      released([&] { return omnibal::bundle_by(list.values(), std::identity{}); }));
}

py::object bundle_loads(groups const& bundles, py::object const& demands) {
  std::string const name = "bundle_loads";
  convert::demand_list const rows(name, "demands", demands);
  auto const given = results::to_grouping(bundles);
  auto flat = released([&] {
    return arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
      std::vector<std::int64_t> result;
      for (auto const& load : omnibal::bundle_loads(given, samples, demand)) {
        result.insert(result.end(), load.amounts, load.amounts + kinds());
      }
      return result;
    });
  });
  py::array const loads = convert::to_array(std::move(flat));
  if (rows.kinds() == 1) return loads;
  return loads.attr("reshape")(-1, rows.kinds());
}

py::object unbundle(py::object const& given, groups const& bundles) {
  auto const of = results::to_grouping(bundles);
  if (py::isinstance<results::packing>(given)) {
    auto const packed = results::to_packed(given.cast<results::packing const&>());
    return py::cast(results::to_packing(released([&] { return omnibal::unbundle(packed, of); })));
  }
  if (!py::isinstance<groups>(given)) {
    throw py::type_error("omnibal.unbundle: groups is a " +
                         std::string(py::str(py::type::of(given).attr("__name__"))) +
                         ", must be Groups or a Packing");
  }
  auto const before = results::to_grouping(given.cast<groups const&>());
  return py::cast(results::to_groups(released([&] { return omnibal::unbundle(before, of); })));
}

std::string to_repr(balanced const& self) {
  return convert::repr_text(
      "BalanceResult",
      {self.status, convert::count_text(self.of.size(), "part"),
       convert::bounded_text("largest load", self.largest_load, self.lower_bound, self.proven)});
}

}  // namespace

void define(py::module_& module) {
  py::class_<balanced> type(module, "BalanceResult", docstrings::BalanceResult);
  type.def_readonly("status", &balanced::status, "'solved'.")
      .def_readonly("parts", &balanced::of, "The samples of each part.")
      .def_readonly("largest_load", &balanced::largest_load, "The largest load of a part.")
      .def_readonly("lower_bound", &balanced::lower_bound, "No parts have a smaller largest load.")
      .def_readonly("proven", &balanced::proven,
                    "True if no other parts have a smaller largest load.")
      .def("__repr__", [](balanced const& self) { return to_repr(self); });
  convert::add_pickle_of(type, &balanced::status, &balanced::of, &balanced::largest_load,
                         &balanced::lower_bound, &balanced::proven);
  module.def("rebalance", &rebalance, docstrings::rebalance, py::arg("home"), py::arg("costs"),
             py::arg("bytes"), py::kw_only(), py::arg("max_overload") = 0.01,
             py::arg("ranks_per_node") = 1, py::arg("node_of") = py::none(),
             py::arg("counts") = "any", py::arg("max_moved_bytes") = py::none(),
             py::arg("speeds") = py::none());
  module.def("balance_optimally", &balance_optimally, docstrings::balance_optimally,
             py::arg("costs"), py::arg("parts"), py::kw_only(), py::arg("count") = "any",
             py::arg("nodes") = 10'000'000, py::arg("speeds") = py::none());
  module.def("balance_set_cost", &balance_set_cost, docstrings::balance_set_cost,
             py::arg("lengths"), py::arg("parts"), py::kw_only(), py::arg("cost") = "padded_batch",
             py::arg("linear") = 0, py::arg("quadratic") = 1, py::arg("order") = "largest_first");
  module.def("bundle_by", &bundle_by, docstrings::bundle_by, py::arg("keys"));
  module.def("bundle_loads", &bundle_loads, docstrings::bundle_loads, py::arg("bundles"),
             py::arg("demands"));
  module.def("unbundle", &unbundle, docstrings::unbundle, py::arg("groups"), py::arg("bundles"));
}

}  // namespace parts
