// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"
#include "docstrings.hpp"

#include <omnibal/pack/online_packer.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/mixture.hpp>

#include <cstring>
#include <optional>
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

namespace {

/// The bytes of something trivially copyable, and back.
template <class T>
void append(std::string& bytes, T const& value) {
  bytes.append(reinterpret_cast<char const*>(&value), sizeof(T));
}

template <class T>
T take(std::string const& function, std::string const& bytes, std::size_t& place) {
  T value;
  if (bytes.size() - place < sizeof(T)) reject(function, "the state is cut short");
  std::memcpy(&value, bytes.data() + place, sizeof(T));
  place += sizeof(T);
  return value;
}

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

omnibal::epoch_sampler make_sampler(std::int64_t samples, std::int64_t ranks, std::int64_t rank,
                                    std::int64_t batch, std::uint64_t seed, std::uint64_t epoch,
                                    bool shuffle, std::string const& remainder,
                                    std::uint64_t contents,
                                    std::optional<std::string> const& state) {
  std::string const name = "epoch_sampler";
  omnibal::shard const place{.ranks = count_of(name, "ranks", ranks),
                             .rank = count_of(name, "rank", rank)};
  omnibal::epoch_sampler_options options;
  options.batch = count_of(name, "batch", batch);
  options.seed = seed;
  options.epoch = epoch;
  options.order = shuffle ? omnibal::sample_order::shuffled : omnibal::sample_order::given;
  options.remainder = to_remainder(remainder);
  options.contents = contents;
  auto const count = count_of(name, "samples", samples);
  if (!state) return omnibal::epoch_sampler(count, place, options);
  if (state->size() != sizeof(omnibal::sampler_state)) {
    reject(name, "the state has " + std::to_string(state->size()) + " bytes, must have " +
                     std::to_string(sizeof(omnibal::sampler_state)));
  }
  std::size_t start = 0;
  return omnibal::epoch_sampler(count, place, options,
                                take<omnibal::sampler_state>(name, *state, start));
}

py::array to_array(omnibal::sample_batch const& batch) {
  std::vector<std::int64_t> result(batch.size());
  for (std::size_t i = 0; i != result.size(); ++i) result[i] = static_cast<std::int64_t>(batch[i]);
  return convert::to_array(std::move(result));
}

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

py::tuple draws(omnibal::mixture const& from, std::uint64_t first, std::int64_t count) {
  auto const wanted = count_of("mixture", "count", count);
  std::vector<std::int64_t> sources(wanted);
  std::vector<std::int64_t> epochs(wanted);
  std::vector<std::int64_t> samples(wanted);
  {
    py::gil_scoped_release const release;
    for (std::size_t i = 0; i != wanted; ++i) {
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
struct type_caster<omnibal::epoch_sampler> : convert::value_caster<omnibal::epoch_sampler> {};
template <>
struct type_caster<omnibal::mixture> : convert::value_caster<omnibal::mixture> {};
}  // namespace pybind11::detail

namespace sampling {

namespace {

void define_online(py::module_& module) {
  py::class_<online_result> result(module, "OnlineResult",
                                   "What a packer hands out; true if a group leaves.");
  result.def_readonly("ids", &online_result::ids, "The samples of the group, int64.")
      .def_readonly("load", &online_result::load, "The sum of their demands.")
      .def_readonly("oversized", &online_result::oversized,
                    "The sample just pushed exceeds the capacity alone and is not taken.")
      .def("__bool__", [](online_result const& self) { return self.ids.size() != 0; });
  convert::add_pickle_of(result, &online_result::ids, &online_result::load,
                         &online_result::oversized);
  py::class_<online> type(module, "OnlinePacker", docstrings::online_packer);
  type.def(py::init<py::object const&, std::int64_t, std::optional<std::uint64_t>, std::int64_t>(),
           py::arg("capacity"), py::kw_only(), py::arg("buffer") = 256,
           py::arg("longest_wait") = py::none(), py::arg("candidates") = 6)
      .def("push", &online::push, py::arg("id"), py::arg("demand"),
           "Takes a sample and hands out at most one group.")
      .def("flush", &online::flush, "Hands out a group of what waits, none where nothing does.")
      .def("__len__", &online::size, "The number of samples that wait.")
      .def("state", &online::state, "What a checkpoint must hold, as bytes.")
      .def_static(
          "restore", [](py::bytes const& state) { return online(std::string(state)); },
          py::arg("state"), "The packer whose state this is.");
  convert::add_pickle(
      type, 1, [](online const& self) { return py::make_tuple(self.state()); },
      [](py::tuple const& state) { return online(std::string(state[0].cast<py::bytes>())); });
}

void define_samplers(py::module_& module) {
  using sampler = omnibal::epoch_sampler;
  py::class_<sampler>(module, "EpochSampler", docstrings::epoch_sampler)
      .def(py::init(&make_sampler), py::arg("samples"), py::kw_only(), py::arg("ranks") = 1,
           py::arg("rank") = 0, py::arg("batch") = 1, py::arg("seed") = 0, py::arg("epoch") = 0,
           py::arg("shuffle") = true, py::arg("remainder") = "short_step", py::arg("contents") = 0,
           py::arg("state") = py::none())
      .def(
          "next", [](sampler& self) { return to_array(self.next()); },
          "The samples of this rank in the next step, int64; after an epoch those of the next.")
      .def(
          "__call__", [](sampler const& self, std::uint64_t step) { return to_array(self(step)); },
          py::arg("step"), "The samples of this rank in a step of the epoch.")
      .def("seek", &sampler::seek, py::arg("step"), "The next call of next() gives this step.")
      .def_property_readonly("done", &sampler::done, "True where all steps of the epoch have run.")
      .def_property_readonly("epoch", &sampler::epoch, "The number of the epoch.")
      .def_property_readonly("step", &sampler::step, "How many steps of the epoch have run.")
      .def_property_readonly("step_count", &sampler::step_count,
                             "The number of steps of the epoch.")
      .def_property_readonly("left_over", &sampler::left_over,
                             "How many samples this epoch leaves to the next one.")
      .def(
          "state",
          [](sampler const& self) {
            std::string bytes;
            append(bytes, self.state());
            return py::bytes(bytes);
          },
          "What a checkpoint must hold, as bytes.");
  py::class_<omnibal::mixture>(module, "Mixture", docstrings::mixture)
      .def(py::init(&make_mixture), py::arg("sizes"), py::arg("weights"), py::kw_only(),
           py::arg("seed") = 0, py::arg("end") = "restart", py::arg("window") = 1)
      .def("draws", &draws, py::arg("first"), py::arg("count"),
           "The draws at `count` positions from `first` on: sources, epochs and samples, int64.")
      .def(
          "__len__",
          [](omnibal::mixture const& self) { return static_cast<std::size_t>(self.size()); },
          "The number of draws until the mixture ends; 2**63 - 1 with end='restart', the default.")
      .def_property_readonly("period", &omnibal::mixture::period,
                             "In so many draws each source has exactly its weight, a whole number.")
      .def_property_readonly("digest", &omnibal::mixture::digest,
                             "Identifies sizes, weights and options.");
}

}  // namespace

void define(py::module_& module) {
  define_online(module);
  define_samplers(module);
}

}  // namespace sampling
