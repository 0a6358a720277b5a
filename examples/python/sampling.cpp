// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "states.hpp"

#include <omnibal/pack/online_packer.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/sample/mixture.hpp>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace sampling {

namespace py = pybind11;
using convert::count_of;
using convert::limit_list;
using convert::reject;
using states::append;
using states::take;

namespace {

struct online_result {
  py::array ids;
  py::object load;
  bool oversized;
};

/// An online packer of one to three resources.
class online {
 public:
  online(py::object const& capacity, std::int64_t buffer, std::optional<std::uint64_t> longest_wait,
         std::int64_t candidates)
      : packer_(make(capacity, options_of(buffer, longest_wait, candidates))) {}

  explicit online(std::string const& state) : packer_(restore(state)) {}

  online_result push(std::int64_t given, py::object const& demand) {
    std::uint64_t const id = count_of("online_packer", "id", given);
    limit_list const amounts("online_packer", "demand", demand);
    return std::visit(
        [&]<std::size_t R>(omnibal::online_packer<R>& packer) {
          return to_python(packer.push(id, to_resources<R>("demand", amounts.values())));
        },
        packer_);
  }

  online_result flush() {
    return std::visit([](auto& packer) { return to_python(packer.flush()); }, packer_);
  }

  [[nodiscard]] std::size_t size() const {
    return std::visit([](auto const& packer) { return packer.size(); }, packer_);
  }

  [[nodiscard]] std::string repr() const {
    return std::visit(
        []<std::size_t R>(omnibal::online_packer<R> const& packer) {
          auto const limits = packer.state().header.capacity;
          std::vector<std::int64_t> const capacity(limits.amounts, limits.amounts + R);
          return convert::repr_text(
              "OnlinePacker",
              {"capacity " + std::string(py::str(R == 1 ? py::object(py::cast(capacity.front()))
                                                        : py::object(py::cast(capacity)))),
               "waiting " + convert::count_text(packer.size(), "sample")});
        },
        packer_);
  }

  [[nodiscard]] py::bytes state() const {
    return std::visit(
        []<std::size_t R>(omnibal::online_packer<R> const& packer) {
          auto const state = packer.state();
          std::string bytes(1, static_cast<char>(R));
          append(bytes, state.header);
          for (auto const& sample : state.waiting) append(bytes, sample);
          return py::bytes(bytes);
        },
        packer_);
  }

 private:
  using any_packer =
      std::variant<omnibal::online_packer<1>, omnibal::online_packer<2>, omnibal::online_packer<3>>;

  static omnibal::online_packer_options options_of(std::int64_t buffer,
                                                   std::optional<std::uint64_t> longest_wait,
                                                   std::int64_t candidates) {
    omnibal::online_packer_options options;
    options.buffer = count_of("online_packer", "buffer", buffer);
    options.candidates = count_of("online_packer", "candidates", candidates);
    if (longest_wait) options.longest_wait = *longest_wait;
    return options;
  }

  template <std::size_t R>
  static omnibal::resources<R> to_resources(std::string const& name, arrays::integers values) {
    if (values.size() != R) {
      reject("online_packer", name + " has " + std::to_string(values.size()) +
                                  " numbers, must have " + std::to_string(R));
    }
    omnibal::resources<R> result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = values[r];
    return result;
  }

  static any_packer make(py::object const& capacity,
                         omnibal::online_packer_options const& options) {
    limit_list const limits("online_packer", "capacity", capacity);
    auto const values = limits.values();
    switch (values.size()) {
      case 1: return omnibal::online_packer<1>(to_resources<1>("capacity", values), options);
      case 2: return omnibal::online_packer<2>(to_resources<2>("capacity", values), options);
      case 3: return omnibal::online_packer<3>(to_resources<3>("capacity", values), options);
      default:
        reject("online_packer", "capacity has " + std::to_string(values.size()) +
                                    " numbers, must have 1 to " +
                                    std::to_string(arrays::max_kinds));
    }
  }

  template <std::size_t R>
  static any_packer restore_kinds(std::string const& bytes) {
    std::size_t place = 1;
    omnibal::online_state<R> state{
        take<omnibal::online_header<R, std::int64_t>>("online_packer", bytes, place), {}};
    while (place != bytes.size()) {
      state.waiting.push_back(
          take<omnibal::waiting_sample<R, std::int64_t>>("online_packer", bytes, place));
    }
    return omnibal::online_packer<R>(state);
  }

  static any_packer restore(std::string const& bytes) {
    switch (bytes.empty() ? 0 : bytes.front()) {
      case 1: return restore_kinds<1>(bytes);
      case 2: return restore_kinds<2>(bytes);
      case 3: return restore_kinds<3>(bytes);
      default: reject("online_packer", "this is no state of a packer");
    }
  }

  template <std::size_t R>
  static online_result to_python(omnibal::online_result<R> const& given) {
    std::vector<std::int64_t> load(given.load.amounts, given.load.amounts + R);
    py::object loads = R == 1 ? py::object(py::cast(load.front()))
                              : py::object(convert::to_array(std::move(load)));
    return {convert::to_array(std::vector<std::int64_t>(given.ids.begin(), given.ids.end())),
            std::move(loads), given.oversized};
  }

  any_packer packer_;
};

omnibal::remainder_policy to_remainder(std::string const& name) {
  if (name == "short_step") return omnibal::remainder_policy::short_step;
  if (name == "repeat") return omnibal::remainder_policy::repeat;
  if (name == "carry") return omnibal::remainder_policy::carry;
  reject("epoch_sampler", "remainder is '" + name + "', must be short_step, repeat or carry");
}

/// The arguments of an epoch sampler in Python.
struct sampler_arguments {
  std::int64_t samples;
  std::int64_t ranks;
  std::int64_t rank;
  std::int64_t batch;
  std::uint64_t seed;
  std::uint64_t epoch;
  bool shuffle;
  std::string remainder;
  std::uint64_t contents;
};

omnibal::epoch_sampler make_sampler(sampler_arguments const& arguments,
                                    std::optional<std::string> const& state) {
  std::string const name = "epoch_sampler";
  omnibal::shard const place{.ranks = count_of(name, "ranks", arguments.ranks),
                             .rank = count_of(name, "rank", arguments.rank)};
  omnibal::epoch_sampler_options options;
  options.batch = count_of(name, "batch", arguments.batch);
  options.seed = arguments.seed;
  options.epoch = arguments.epoch;
  options.order =
      arguments.shuffle ? omnibal::sample_order::shuffled : omnibal::sample_order::given;
  options.remainder = to_remainder(arguments.remainder);
  options.contents = arguments.contents;
  auto const count = count_of(name, "samples", arguments.samples);
  if (!state) return omnibal::epoch_sampler(count, place, options);
  return omnibal::epoch_sampler(count, place, options, states::sampler_state_of(name, *state));
}

py::array to_array(omnibal::sample_batch const& batch) {
  std::vector<std::int64_t> result(batch.size());
  for (std::size_t i = 0; i != result.size(); ++i) result[i] = static_cast<std::int64_t>(batch[i]);
  return convert::to_array(std::move(result));
}

/// An epoch sampler with its arguments, which a pickled one needs.
class sampler {
 public:
  sampler(sampler_arguments const& arguments, std::optional<std::string> const& state)
      : arguments_(arguments), walker_(make_sampler(arguments, state)) {}

  [[nodiscard]] sampler_arguments const& arguments() const { return arguments_; }
  [[nodiscard]] omnibal::epoch_sampler const& walker() const { return walker_; }
  [[nodiscard]] omnibal::epoch_sampler& walker() { return walker_; }

  [[nodiscard]] py::bytes state() const {
    std::string bytes;
    append(bytes, walker_.state());
    return py::bytes(bytes);
  }

  /// The number of steps that an iteration yields: the rest of the epoch, or the next epoch if this
  /// one is done.
  [[nodiscard]] std::uint64_t steps_left() const {
    if (arguments_.samples == 0) return 0;
    if (!walker_.done()) return walker_.step_count() - walker_.step();
    omnibal::epoch_sampler ahead = walker_;
    static_cast<void>(ahead.next());
    return ahead.step_count();
  }

  [[nodiscard]] py::dict state_dict(std::optional<std::uint64_t> consumed) const {
    sampler at = *this;
    if (consumed) at.walker_.seek(*consumed);
    py::dict result;
    result["state"] = at.state().attr("hex")();
    return result;
  }

  void load_state_dict(py::object const& given) {
    py::object const bytes = py::type::of(py::bytes()).attr("fromhex")(given["state"]);
    *this = sampler(arguments_, bytes.cast<std::string>());
  }

  [[nodiscard]] std::string repr() const {
    auto const rank = "rank " + std::to_string(arguments_.rank) + " of ";
    return convert::repr_text(
        "EpochSampler",
        {convert::count_text(static_cast<std::size_t>(arguments_.samples), "sample"),
         rank + std::to_string(arguments_.ranks), "batch " + std::to_string(arguments_.batch),
         "epoch " + std::to_string(walker_.epoch()),
         "step " + std::to_string(walker_.step()) + " of " + std::to_string(walker_.step_count())});
  }

 private:
  sampler_arguments arguments_;
  omnibal::epoch_sampler walker_;
};

omnibal::mixture make_mixture(py::object const& sizes, py::object const& weights,
                              std::uint64_t seed, std::string const& end, std::int64_t window) {
  convert::integer_list const counts("mixture", "sizes", sizes);
  convert::cost_array const shares("mixture", "weights", weights);
  if (end != "restart" && end != "stop") {
    reject("mixture", "end is '" + end + "', must be restart or stop");
  }
  omnibal::mixture_options const options{
      .seed = seed,
      .end = end == "stop" ? omnibal::source_end::stop : omnibal::source_end::restart,
      .window = count_of("mixture", "window", window)};
  auto const given = counts.values();
  std::vector<std::size_t> sources(given.size());
  for (std::size_t i = 0; i != sources.size(); ++i) sources[i] = i;
  return std::visit(
      [&](auto list) {
        if (list.size() != sources.size()) {
          reject("mixture", "there are " + std::to_string(list.size()) + " weights, must be " +
                                std::to_string(sources.size()));
        }
        return omnibal::mixture(
            sources, [given](std::size_t i) { return given[i]; },
            [list](std::size_t i) { return list[i]; }, options);
      },
      shares.list());
}

/// A mixture with its arguments, which a pickled one needs.
struct mixed {
  py::array sizes;
  py::array weights;
  std::uint64_t seed;
  std::string end;
  std::int64_t window;
  omnibal::mixture of;

  [[nodiscard]] static mixed make(py::object const& sizes, py::object const& weights,
                                  std::uint64_t seed, std::string const& end, std::int64_t window) {
    auto mixture = make_mixture(sizes, weights, seed, end, window);
    auto const copied = py::module_::import("numpy").attr("array");
    return {copied(sizes), copied(weights), seed, end, window, std::move(mixture)};
  }

  [[nodiscard]] std::string repr() const {
    return convert::repr_text(
        "Mixture", {convert::count_text(static_cast<std::size_t>(sizes.size()), "source"),
                    end == "restart" ? "endless" : convert::count_text(of.size(), "draw")});
  }
};

/// The numbers of all ranks, or of all steps and ranks.
double loss_normalizer(py::object const& loss_tokens) {
  std::string const name = "loss_normalizer";
  py::array const given = convert::any_array(name, "loss_tokens", loss_tokens);
  convert::integer_array const counts = convert::as_integers(name, "loss_tokens", given);
  return omnibal::loss_normalizer(
      std::span(counts.data(), static_cast<std::size_t>(counts.size())));
}

py::tuple draws(omnibal::mixture const& from, std::uint64_t first, std::int64_t count) {
  auto const wanted = count_of("mixture", "count", count);
  std::vector<std::int64_t> sources(wanted);
  std::vector<std::int64_t> epochs(wanted);
  std::vector<std::int64_t> samples(wanted);
  {
    py::gil_scoped_release const release;
    for (std::size_t i = 0; i != wanted; ++i) {
      constexpr std::size_t between_signals = std::size_t{1} << 16;
      if (i != 0 && i % between_signals == 0) {
        py::gil_scoped_acquire const acquire;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      }
      auto const draw = from(first + i);
      sources[i] = draw.source;
      epochs[i] = static_cast<std::int64_t>(draw.epoch);
      samples[i] = static_cast<std::int64_t>(draw.sample);
    }
  }
  return py::make_tuple(convert::to_array(std::move(sources)), convert::to_array(std::move(epochs)),
                        convert::to_array(std::move(samples)));
}

}  // namespace

}  // namespace sampling

namespace pybind11::detail {
template <>
struct type_caster<sampling::online> : convert::value_caster<sampling::online> {};
template <>
struct type_caster<sampling::online_result> : convert::value_caster<sampling::online_result> {};
template <>
struct type_caster<sampling::sampler> : convert::value_caster<sampling::sampler> {};
template <>
struct type_caster<sampling::mixed> : convert::value_caster<sampling::mixed> {};
}  // namespace pybind11::detail

namespace sampling {

namespace {

/// An iteration over the steps of one epoch.
struct sampler_iteration {
  py::object of;
  bool has_begun = false;

  [[nodiscard]] py::array next() {
    auto& self = of.cast<sampler&>();
    if (self.arguments().samples == 0 || (has_begun && self.walker().done())) {
      throw py::stop_iteration();
    }
    has_begun = true;
    return to_array(self.walker().next());
  }
};

void define_online(py::module_& module) {
  py::class_<online_result> result(module, "OnlineResult", docstrings::OnlineResult);
  result.def_readonly("ids", &online_result::ids, "The samples of the group, int64.")
      .def_readonly("load", &online_result::load, "The sum of their demands.")
      .def_readonly("oversized", &online_result::oversized,
                    "The sample just pushed exceeds the capacity alone and is not taken.")
      .def("__bool__", [](online_result const& self) { return self.ids.size() != 0; })
      .def("__repr__", [](online_result const& self) {
        auto const count = static_cast<std::size_t>(self.ids.size());
        bool const is_array = py::hasattr(self.load, "tolist");
        std::string const load = py::str(is_array ? self.load.attr("tolist")() : self.load);
        return convert::repr_text(
            "OnlineResult", {convert::count_text(count, "sample"), count == 0 ? "" : "load " + load,
                             self.oversized ? "the pushed sample is oversized" : ""});
      });
  convert::add_pickle_of(result, &online_result::ids, &online_result::load,
                         &online_result::oversized);
  py::class_<online> type(module, "OnlinePacker", docstrings::OnlinePacker);
  type.def(py::init<py::object const&, std::int64_t, std::optional<std::uint64_t>, std::int64_t>(),
           py::arg("capacity"), py::kw_only(), py::arg("buffer") = 256,
           py::arg("longest_wait") = py::none(), py::arg("candidates") = 6,
           docstrings::OnlinePacker_init)
      .def("push", &online::push, py::arg("id"), py::arg("demand"), docstrings::OnlinePacker_push)
      .def("flush", &online::flush, docstrings::OnlinePacker_flush)
      .def("__len__", &online::size, "The number of samples that wait.")
      .def("__repr__", &online::repr)
      .def("state", &online::state, docstrings::OnlinePacker_state)
      .def_static(
          "restore", [](py::bytes const& state) { return online(std::string(state)); },
          py::arg("state"), docstrings::OnlinePacker_restore);
  convert::add_pickle(
      type, 1, [](online const& self) { return py::make_tuple(self.state()); },
      [](py::tuple const& state) { return online(std::string(state[0].cast<py::bytes>())); });
}

void define_sampler(py::module_& module) {
  // Only an iteration makes objects of this type, so that the module does not name it.
  py::class_<sampler_iteration>(py::handle(), "EpochSamplerIteration", py::module_local())
      .def("__iter__", [](py::object const& self) { return self; })
      .def("__next__", &sampler_iteration::next);
  py::class_<sampler> type(module, "EpochSampler", docstrings::EpochSampler);
  type.def(py::init([](std::int64_t samples, std::int64_t ranks, std::int64_t rank,
                       std::int64_t batch, std::uint64_t seed, std::uint64_t epoch, bool shuffle,
                       std::string const& remainder, std::uint64_t contents,
                       std::optional<std::string> const& state) {
             return sampler(
                 {samples, ranks, rank, batch, seed, epoch, shuffle, remainder, contents}, state);
           }),
           py::arg("samples"), py::kw_only(), py::arg("ranks") = 1, py::arg("rank") = 0,
           py::arg("batch") = 1, py::arg("seed") = 0, py::arg("epoch") = 0,
           py::arg("shuffle") = true, py::arg("remainder") = "short_step", py::arg("contents") = 0,
           py::arg("state") = py::none(), docstrings::EpochSampler_init)
      .def(
          "next", [](sampler& self) { return to_array(self.walker().next()); },
          docstrings::EpochSampler_next)
      .def(
          "__call__",
          [](sampler const& self, std::uint64_t step) { return to_array(self.walker()(step)); },
          py::arg("step"), "The samples of this rank in a step of the epoch.")
      .def("__len__", &sampler::steps_left,
           "The number of steps that an iteration yields: the rest of the epoch, or the next epoch "
           "if this one is done.")
      .def(
          "__iter__", [](py::object const& self) { return sampler_iteration{self}; },
          "Yields the rest of the epoch, or the next epoch if this one is done.")
      .def("__repr__", &sampler::repr)
      .def(
          "seek", [](sampler& self, std::uint64_t step) { self.walker().seek(step); },
          py::arg("step"), docstrings::EpochSampler_seek)
      .def_property_readonly(
          "done", [](sampler const& self) { return self.walker().done(); },
          "True where all steps of the epoch have run.")
      .def_property_readonly(
          "epoch", [](sampler const& self) { return self.walker().epoch(); },
          "The number of the epoch.")
      .def_property_readonly(
          "step", [](sampler const& self) { return self.walker().step(); },
          "How many steps of the epoch have run.")
      .def_property_readonly(
          "step_count", [](sampler const& self) { return self.walker().step_count(); },
          "The number of steps of the epoch.")
      .def_property_readonly(
          "left_over", [](sampler const& self) { return self.walker().left_over(); },
          "How many samples this epoch leaves to the next one.")
      .def("state", &sampler::state, docstrings::EpochSampler_state)
      .def("state_dict", &sampler::state_dict, py::arg("consumed") = py::none(),
           docstrings::EpochSampler_state_dict)
      .def("load_state_dict", &sampler::load_state_dict, py::arg("state"),
           docstrings::EpochSampler_load_state_dict);
  convert::add_pickle(
      type, 10,
      [](sampler const& self) {
        auto const& given = self.arguments();
        return py::make_tuple(given.samples, given.ranks, given.rank, given.batch, given.seed,
                              given.epoch, given.shuffle, given.remainder, given.contents,
                              self.state());
      },
      [](py::tuple const& state) {
        return sampler(
            {state[0].cast<std::int64_t>(), state[1].cast<std::int64_t>(),
             state[2].cast<std::int64_t>(), state[3].cast<std::int64_t>(),
             state[4].cast<std::uint64_t>(), state[5].cast<std::uint64_t>(), state[6].cast<bool>(),
             state[7].cast<std::string>(), state[8].cast<std::uint64_t>()},
            state[9].cast<std::string>());
      });
}

void define_mixture(py::module_& module) {
  py::class_<mixed> type(module, "Mixture", docstrings::Mixture);
  type.def(py::init(&mixed::make), py::arg("sizes"), py::arg("weights"), py::kw_only(),
           py::arg("seed") = 0, py::arg("end") = "restart", py::arg("window") = 1,
           docstrings::Mixture_init)
      .def(
          "draws",
          [](mixed const& self, std::uint64_t first, std::int64_t count) {
            return draws(self.of, first, count);
          },
          py::arg("first"), py::arg("count"), docstrings::Mixture_draws)
      .def(
          "__len__", [](mixed const& self) { return static_cast<std::size_t>(self.of.size()); },
          "The number of draws until the mixture ends; 2**63 - 1 with end='restart', the default.")
      .def("__repr__", &mixed::repr)
      .def_property_readonly(
          "period", [](mixed const& self) { return self.of.period(); },
          "In so many draws each source has exactly its weight, a whole number.")
      .def_property_readonly(
          "digest", [](mixed const& self) { return self.of.digest(); },
          "Identifies sizes, weights and options.");
  convert::add_pickle(
      type, 5,
      [](mixed const& self) {
        return py::make_tuple(self.sizes, self.weights, self.seed, self.end, self.window);
      },
      [](py::tuple const& state) {
        return mixed::make(state[0], state[1], state[2].cast<std::uint64_t>(),
                           state[3].cast<std::string>(), state[4].cast<std::int64_t>());
      });
}

}  // namespace

void define(py::module_& module) {
  define_online(module);
  define_sampler(module);
  define_mixture(module);
  module.def("loss_normalizer", &loss_normalizer, docstrings::loss_normalizer,
             py::arg("loss_tokens"));
}

}  // namespace sampling
