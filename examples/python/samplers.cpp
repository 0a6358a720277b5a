// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "iterations.hpp"
#include "levels.hpp"
#include "results.hpp"
#include "states.hpp"

#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace samplers {

namespace py = pybind11;
using convert::count_of;

/// The arguments of both samplers in Python.
struct sampler_arguments {
  py::object loads;
  std::int64_t ranks;
  std::int64_t rank;
  std::uint64_t seed;
  std::uint64_t epoch;
  double max_dist_ratio;
  std::string remainder;
  std::int64_t groups_per_rank;
  bool even_positions;
};

/// A sampler for weights, or for two or three resources.
template <template <class...> class Sampler>
using any_sampler = std::variant<Sampler<std::int64_t, omnibal::schedule_steps_fn>,
                                 Sampler<omnibal::resources<2>, omnibal::schedule_steps_fn>,
                                 Sampler<omnibal::resources<3>, omnibal::schedule_steps_fn>>;

namespace {

omnibal::schedule_steps_options options_of(std::string const& name,
                                           sampler_arguments const& given) {
  auto const groups = count_of(name, "groups_per_rank", given.groups_per_rank);
  if (groups > UINT32_MAX) {
    convert::reject(name, "groups_per_rank is " + std::to_string(groups) + ", is too large");
  }
  omnibal::schedule_steps_options result;
  result.seed = given.seed;
  result.epoch = given.epoch;
  result.max_dist_ratio = given.max_dist_ratio;
  result.remainder = static_cast<omnibal::remainder_policy>(
      convert::word_of(name, "remainder", given.remainder, {"short_step", "repeat", "carry"}));
  result.groups_per_rank = static_cast<std::uint32_t>(groups);
  result.even_positions = given.even_positions;
  return result;
}

/// Makes a sampler of the loads: `made(loads, shard, state)`, with an empty state for a first
/// epoch.
template <template <class...> class Sampler, class Made>
any_sampler<Sampler> make(std::string const& name, sampler_arguments const& given,
                          std::optional<std::string> const& state, Made const& made) {
  convert::demand_list const rows(name, "loads", given.loads);
  omnibal::shard const place{.ranks = count_of(name, "ranks", given.ranks),
                             .rank = count_of(name, "rank", given.rank)};
  std::optional<omnibal::sampler_state> from;
  if (state) from = states::sampler_state_of(name, *state);
  return arrays::with_rows(
      name, rows.table(),
      [&](auto samples, auto const& demand, auto kinds) -> any_sampler<Sampler> {
        if constexpr (kinds() == 1) {
          return convert::released([&] { return made(samples, place, from); });
        } else {
          std::vector<omnibal::resources<kinds()>> list;
          list.reserve(samples.size());
          for (auto const& sample : samples) list.push_back(demand(sample));
          return convert::released([&] { return made(list, place, from); });
        }
      });
}

any_sampler<omnibal::step_sampler> make_steps(sampler_arguments const& given,
                                              std::optional<std::string> const& state) {
  std::string const name = "step_sampler";
  auto const options = options_of(name, given);
  return make<omnibal::step_sampler>(
      name, given, state, [&](auto const& loads, omnibal::shard const& place, auto const& from) {
        using load = std::remove_cvref_t<decltype(loads[0])>;
        if (from) return omnibal::step_sampler<load>(loads, place, options, *from);
        return omnibal::step_sampler<load>(loads, place, options);
      });
}

any_sampler<omnibal::level_sampler> make_levels(sampler_arguments const& given,
                                                omnibal::level_packing const& packed,
                                                std::uint64_t short_first_steps,
                                                std::optional<std::string> const& state) {
  std::string const name = "level_sampler";
  omnibal::level_sampler_options const options{.schedule = options_of(name, given),
                                               .short_first_steps = short_first_steps};
  return make<omnibal::level_sampler>(
      name, given, state, [&](auto const& loads, omnibal::shard const& place, auto const& from) {
        using load = std::remove_cvref_t<decltype(loads[0])>;
        if (from) return omnibal::level_sampler<load>(packed, loads, place, options, *from);
        return omnibal::level_sampler<load>(packed, loads, place, options);
      });
}

py::object to_python(std::span<std::uint32_t const> groups) {
  return convert::to_array(std::vector<std::uint32_t>(groups.begin(), groups.end()));
}

py::object to_python(omnibal::level_step const& step) {
  return py::make_tuple(step.level, to_python(step.groups));
}

/// The loads, which Python code may change later.
py::object copied(py::object const& loads) {
  if (py::isinstance<py::tuple>(loads)) {
    py::list result;
    auto const copy = py::module_::import("numpy").attr("array");
    for (py::handle const column : loads) {
      result.append(py::hasattr(column, "__len__") ? copy(column)
                                                   : py::reinterpret_borrow<py::object>(column));
    }
    return py::tuple(result);
  }
  return py::module_::import("numpy").attr("array")(loads);
}

}  // namespace

/// The members that an iteration calls.
template <class Walker>
struct walking {
  [[nodiscard]] bool done() const {
    return std::visit([](auto const& sampler) { return sampler.done(); }, self().of);
  }

  [[nodiscard]] std::uint64_t steps_left() const {
    if (self().group_count() == 0) return 0;
    return std::visit(
        [](auto const& sampler) -> std::uint64_t {
          if (!sampler.done()) return sampler.step_count() - sampler.step();
          auto ahead = sampler;
          static_cast<void>(ahead.next());
          return ahead.step_count();
        },
        self().of);
  }

  [[nodiscard]] py::object next() {
    return std::visit([](auto& sampler) { return to_python(sampler.next()); },
                      static_cast<Walker&>(*this).of);
  }

 private:
  [[nodiscard]] Walker const& self() const { return static_cast<Walker const&>(*this); }
};

/// A step sampler with its arguments, which a pickled one needs.
struct step_walker : walking<step_walker> {
  static constexpr char const* name = "StepSampler";
  sampler_arguments arguments;
  any_sampler<omnibal::step_sampler> of;

  step_walker(sampler_arguments given, std::optional<std::string> const& state)
      : arguments(std::move(given)), of(make_steps(arguments, state)) {}

  [[nodiscard]] step_walker from(std::string const& state) const { return {arguments, state}; }
  [[nodiscard]] std::size_t group_count() const { return py::len(arguments.loads); }
};

/// A level sampler with its arguments, which a pickled one needs.
struct level_walker : walking<level_walker> {
  static constexpr char const* name = "LevelSampler";
  levels::level_packing packed;
  sampler_arguments arguments;
  std::uint64_t short_first_steps;
  any_sampler<omnibal::level_sampler> of;

  level_walker(levels::level_packing const& given, sampler_arguments options, std::uint64_t first,
               std::optional<std::string> const& state)
      : packed(given),
        arguments(std::move(options)),
        short_first_steps(first),
        of(make_levels(arguments, levels::to_packed("level_sampler", packed), first, state)) {}

  [[nodiscard]] level_walker from(std::string const& state) const {
    return {packed, arguments, short_first_steps, state};
  }
  [[nodiscard]] std::size_t group_count() const { return packed.of.size(); }
};

}  // namespace samplers

namespace pybind11::detail {
template <>
struct type_caster<samplers::step_walker> : convert::value_caster<samplers::step_walker> {};
template <>
struct type_caster<samplers::level_walker> : convert::value_caster<samplers::level_walker> {};
}  // namespace pybind11::detail

namespace samplers {

namespace {

template <class Walker>
py::bytes state_of(Walker const& self) {
  std::string bytes;
  std::visit([&](auto const& sampler) { states::append(bytes, sampler.state()); }, self.of);
  return py::bytes(bytes);
}

/// The rest of the epoch as a list of steps, or the next epoch if this one is done.
template <class Walker>
py::list steps_of(Walker& self) {
  py::list result;
  if (self.group_count() == 0) return result;
  std::visit(
      [&](auto& sampler) {
        do {
          result.append(to_python(sampler.next()));
        } while (!sampler.done());
      },
      self.of);
  return result;
}

template <class Walker>
std::string to_repr(Walker const& self) {
  return std::visit(
      [&](auto const& sampler) {
        return convert::repr_text(Walker::name, {convert::count_text(self.group_count(), "group"),
                                                 "rank " + std::to_string(self.arguments.rank) +
                                                     " of " + std::to_string(self.arguments.ranks),
                                                 "epoch " + std::to_string(sampler.epoch()),
                                                 "step " + std::to_string(sampler.step()) + " of " +
                                                     std::to_string(sampler.step_count())});
      },
      self.of);
}

/// The docstrings of the members that both samplers have.
struct member_texts {
  char const* next;
  char const* epoch_steps;
  char const* state;
  char const* state_dict;
  char const* load_state_dict;
};

/// The members that both samplers have.
template <class Walker>
void define_members(py::class_<Walker>& type, member_texts const& texts) {
  auto const number = [](auto const& member) {
    return [member](Walker const& self) {
      return std::visit([&](auto const& sampler) { return member(sampler); }, self.of);
    };
  };
  iterations::define(type, (std::string(Walker::name) + "Iteration").c_str(),
                     iterations::epoch_text, iterations::epoch_length_text);
  type.def(
          "next", [](Walker& self) { return self.next(); }, texts.next)
      .def("epoch_steps", &steps_of<Walker>, texts.epoch_steps)
      .def("state", &state_of<Walker>, texts.state)
      .def(
          "state_dict", [](Walker const& self) { return states::to_dict(state_of(self)); },
          texts.state_dict)
      .def(
          "load_state_dict",
          [](Walker& self, py::object const& given) { self = self.from(states::bytes_of(given)); },
          py::arg("state"), texts.load_state_dict)
      .def_property_readonly("done", number([](auto const& sampler) { return sampler.done(); }),
                             "True if all steps of the epoch have run.")
      .def_property_readonly("epoch", number([](auto const& sampler) { return sampler.epoch(); }),
                             "The number of the epoch.")
      .def_property_readonly("step", number([](auto const& sampler) { return sampler.step(); }),
                             "The number of steps of the epoch that have run.")
      .def_property_readonly("step_count",
                             number([](auto const& sampler) { return sampler.step_count(); }),
                             "The number of steps of the epoch.")
      .def_property_readonly("left_over",
                             number([](auto const& sampler) { return sampler.left_over(); }),
                             "The number of groups that this epoch leaves to the next one.")
      .def_property_readonly("rank_changes_left", number([](auto const& sampler) {
                               return sampler.rank_changes_left();
                             }),
                             "How often the number of ranks may still change within the epoch.")
      .def("__repr__", &to_repr<Walker>);
}

py::tuple to_tuple(sampler_arguments const& given) {
  return py::make_tuple(given.loads, given.ranks, given.rank, given.seed, given.epoch,
                        given.max_dist_ratio, given.remainder, given.groups_per_rank,
                        given.even_positions);
}

sampler_arguments to_arguments(py::tuple const& state) {
  if (state.size() != 9) convert::reject("pickle", "the state has another number of elements");
  return {state[0],
          state[1].cast<std::int64_t>(),
          state[2].cast<std::int64_t>(),
          state[3].cast<std::uint64_t>(),
          state[4].cast<std::uint64_t>(),
          state[5].cast<double>(),
          state[6].cast<std::string>(),
          state[7].cast<std::int64_t>(),
          state[8].cast<bool>()};
}

void define_steps(py::module_& module) {
  py::class_<step_walker> type(module, "StepSampler", docstrings::StepSampler);
  type.def(py::init([](py::object const& loads, std::int64_t ranks, std::int64_t rank,
                       std::uint64_t seed, std::uint64_t epoch, double max_dist_ratio,
                       std::string const& remainder, std::int64_t groups_per_rank,
                       bool even_positions, std::optional<std::string> const& state) {
             return step_walker({copied(loads), ranks, rank, seed, epoch, max_dist_ratio, remainder,
                                 groups_per_rank, even_positions},
                                state);
           }),
           py::arg("loads"), py::kw_only(), py::arg("ranks") = 1, py::arg("rank") = 0,
           py::arg("seed") = 0, py::arg("epoch") = 0, py::arg("max_dist_ratio") = 0.005,
           py::arg("remainder") = "short_step", py::arg("groups_per_rank") = 1,
           py::arg("even_positions") = false, py::arg("state") = py::none(),
           docstrings::StepSampler_init);
  define_members(type, {docstrings::StepSampler_next, docstrings::StepSampler_epoch_steps,
                        docstrings::StepSampler_state, docstrings::StepSampler_state_dict,
                        docstrings::StepSampler_load_state_dict});
  convert::add_pickle(
      type, 2,
      [](step_walker const& self) {
        return py::make_tuple(to_tuple(self.arguments), state_of(self));
      },
      [](py::tuple const& state) {
        return step_walker(to_arguments(state[0].cast<py::tuple>()), state[1].cast<std::string>());
      });
}

void define_levels(py::module_& module) {
  py::class_<level_walker> type(module, "LevelSampler", docstrings::LevelSampler);
  type.def(
      py::init([](levels::level_packing const& packed, py::object const& loads, std::int64_t ranks,
                  std::int64_t rank, std::uint64_t seed, std::uint64_t epoch, double max_dist_ratio,
                  std::string const& remainder, std::int64_t groups_per_rank,
                  std::int64_t short_first_steps, std::optional<std::string> const& state) {
        return level_walker(packed,
                            {copied(loads), ranks, rank, seed, epoch, max_dist_ratio, remainder,
                             groups_per_rank, false},
                            count_of("level_sampler", "short_first_steps", short_first_steps),
                            state);
      }),
      py::arg("packed"), py::arg("loads"), py::kw_only(), py::arg("ranks") = 1, py::arg("rank") = 0,
      py::arg("seed") = 0, py::arg("epoch") = 0, py::arg("max_dist_ratio") = 0.005,
      py::arg("remainder") = "short_step", py::arg("groups_per_rank") = 1,
      py::arg("short_first_steps") = 0, py::arg("state") = py::none(),
      docstrings::LevelSampler_init);
  define_members(type, {docstrings::LevelSampler_next, docstrings::LevelSampler_epoch_steps,
                        docstrings::LevelSampler_state, docstrings::LevelSampler_state_dict,
                        docstrings::LevelSampler_load_state_dict});
  convert::add_pickle(
      type, 4,
      [](level_walker const& self) {
        return py::make_tuple(self.packed, to_tuple(self.arguments), self.short_first_steps,
                              state_of(self));
      },
      [](py::tuple const& state) {
        return level_walker(state[0].cast<levels::level_packing>(),
                            to_arguments(state[1].cast<py::tuple>()),
                            state[2].cast<std::uint64_t>(), state[3].cast<std::string>());
      });
}

}  // namespace

void define(py::module_& module) {
  define_steps(module);
  define_levels(module);
}

}  // namespace samplers
