// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "states.hpp"

#include <omnibal/pack/online_packer.hpp>
#include <omnibal/pack/online_padded_packer.hpp>
#include <omnibal/sample/batch_mixture.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/sample/mixture.hpp>

#include <optional>
#include <span>
#include <string>
#include <type_traits>
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

/// Packers by the sums of demands.
struct summed_groups {
  static constexpr char const* name = "online_packer";
  static constexpr char const* title = "OnlinePacker";
  using options = omnibal::online_packer_options;
  template <std::size_t R>
  using packer = omnibal::online_packer<R>;
  template <std::size_t R>
  using header = omnibal::online_header<R, std::int64_t>;

  template <std::size_t R>
  [[nodiscard]] static header<R> header_of(omnibal::online_state<R> const& state) {
    return state.header;
  }
  template <std::size_t R>
  [[nodiscard]] static omnibal::online_state<R> state_of(header<R> const& from) {
    return {from, {}};
  }
};

/// Packers by padded amounts.
struct padded_groups {
  static constexpr char const* name = "online_padded_packer";
  static constexpr char const* title = "OnlinePaddedPacker";
  using options = omnibal::online_padded_packer_options;
  template <std::size_t R>
  using packer = omnibal::online_padded_packer<R>;
  /// The members of a state that have a fixed size.
  template <std::size_t R>
  struct header {
    options of;
    omnibal::resources<R> capacity;
    std::uint64_t pushes;
  };

  template <std::size_t R>
  [[nodiscard]] static header<R> header_of(omnibal::online_padded_state<R> const& state) {
    return {state.options, state.capacity, state.pushes};
  }
  template <std::size_t R>
  [[nodiscard]] static omnibal::online_padded_state<R> state_of(header<R> const& from) {
    return {from.of, from.capacity, from.pushes, {}};
  }
};

/// An online packer of one to three resources.
template <class Kind>
class online {
 public:
  online(py::object const& capacity, typename Kind::options const& options)
      : packer_(make(capacity, options)) {}

  explicit online(std::string const& state) : packer_(restore(state)) {}

  online_result push(std::int64_t given, py::object const& demand) {
    std::uint64_t const id = count_of(Kind::name, "id", given);
    limit_list const amounts(Kind::name, "demand", demand);
    return std::visit(
        [&](auto& packer) {
          constexpr std::size_t kinds = std::remove_cvref_t<decltype(packer)>::amounts_type::size();
          return to_python(packer.push(id, to_resources<kinds>("demand", amounts.values())));
        },
        packer_);
  }

  online_result flush() {
    return std::visit([](auto& packer) { return to_python(packer.flush()); }, packer_);
  }

  [[nodiscard]] std::size_t size() const {
    return std::visit([](auto const& packer) { return packer.size(); }, packer_);
  }

  [[nodiscard]] py::array waiting() const {
    return std::visit(
        [](auto const& packer) {
          std::vector<std::int64_t> ids;
          for (auto const& sample : packer.state().waiting) {
            ids.push_back(static_cast<std::int64_t>(sample.id));
          }
          return convert::to_array(std::move(ids));
        },
        packer_);
  }

  [[nodiscard]] std::string repr() const {
    return std::visit(
        [](auto const& packer) {
          auto const limits = Kind::header_of(packer.state()).capacity;
          constexpr std::size_t kinds = limits.size();
          std::vector<std::int64_t> const capacity(limits.amounts, limits.amounts + kinds);
          return convert::repr_text(
              Kind::title,
              {"capacity " + std::string(py::str(kinds == 1 ? py::object(py::cast(capacity.front()))
                                                            : py::object(py::cast(capacity)))),
               "waiting " + convert::count_text(packer.size(), "sample")});
        },
        packer_);
  }

  [[nodiscard]] py::bytes state() const {
    return std::visit(
        [](auto const& packer) {
          auto const state = packer.state();
          auto const header = Kind::header_of(state);
          std::string bytes(1, static_cast<char>(header.capacity.size()));
          append(bytes, header);
          for (auto const& sample : state.waiting) append(bytes, sample);
          return py::bytes(bytes);
        },
        packer_);
  }

 private:
  template <std::size_t R>
  using packer_of = typename Kind::template packer<R>;
  using any_packer = std::variant<packer_of<1>, packer_of<2>, packer_of<3>>;

  template <std::size_t R>
  static omnibal::resources<R> to_resources(std::string const& name, arrays::integers values) {
    if (values.size() != R) {
      reject(Kind::name, name + " has " + std::to_string(values.size()) + " numbers, must have " +
                             std::to_string(R));
    }
    omnibal::resources<R> result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = values[r];
    return result;
  }

  static any_packer make(py::object const& capacity, typename Kind::options const& options) {
    limit_list const limits(Kind::name, "capacity", capacity);
    auto const values = limits.values();
    switch (values.size()) {
      case 1: return packer_of<1>(to_resources<1>("capacity", values), options);
      case 2: return packer_of<2>(to_resources<2>("capacity", values), options);
      case 3: return packer_of<3>(to_resources<3>("capacity", values), options);
      default:
        reject(Kind::name, "capacity has " + std::to_string(values.size()) +
                               " numbers, must have 1 to " + std::to_string(arrays::max_kinds));
    }
  }

  template <std::size_t R>
  static any_packer restore_kinds(std::string const& bytes) {
    std::size_t place = 1;
    auto state = Kind::template state_of<R>(
        take<typename Kind::template header<R>>(Kind::name, bytes, place));
    while (place != bytes.size()) {
      state.waiting.push_back(
          take<omnibal::waiting_sample<R, std::int64_t>>(Kind::name, bytes, place));
    }
    return packer_of<R>(state);
  }

  static any_packer restore(std::string const& bytes) {
    switch (bytes.empty() ? 0 : bytes.front()) {
      case 1: return restore_kinds<1>(bytes);
      case 2: return restore_kinds<2>(bytes);
      case 3: return restore_kinds<3>(bytes);
      default: reject(Kind::name, "this is no state of a packer");
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

using summed = online<summed_groups>;
using padded = online<padded_groups>;

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

omnibal::source_end to_end(std::string const& end) {
  return static_cast<omnibal::source_end>(
      convert::word_of("mixture", "end", end, {"restart", "stop", "stop_after_all", "drop_out"}));
}

/// Calls `body` with the numbers of the sources and a functor to the weight of each.
template <class Body>
auto with_weights(py::object const& weights, std::size_t count, Body const& body) {
  convert::cost_array const shares("mixture", "weights", weights);
  std::vector<std::size_t> sources(count);
  for (std::size_t i = 0; i != count; ++i) sources[i] = i;
  return std::visit(
      [&](auto list) {
        if (list.size() != count) {
          reject("mixture", "there are " + std::to_string(list.size()) + " weights, must be " +
                                std::to_string(count));
        }
        return body(sources, [list](std::size_t i) { return list[i]; });
      },
      shares.list());
}

std::vector<std::uint64_t> to_draws(py::object const& given) {
  convert::integer_list const list("mixture", "drawn", given);
  std::vector<std::uint64_t> draws;
  for (std::int64_t const count : list.values()) {
    draws.push_back(count_of("mixture", "an element of drawn", count));
  }
  return draws;
}

/// A mixture with its arguments, which a pickled one needs.
struct mixed {
  py::array sizes;
  py::array weights;
  std::uint64_t seed;
  std::string end;
  std::int64_t window;
  py::object given;
  /// The positions of new weights, and these weights.
  py::list changes;
  omnibal::mixture of;

  [[nodiscard]] static mixed make(py::object const& sizes, py::object const& weights,
                                  std::uint64_t seed, std::string const& end, std::int64_t window,
                                  py::object const& drawn) {
    convert::integer_list const counts("mixture", "sizes", sizes);
    omnibal::mixture_options const options{
        .seed = seed,
        .end = to_end(end),
        .window = count_of("mixture", "window", window),
        .drawn = drawn.is_none() ? std::vector<std::uint64_t>() : to_draws(drawn)};
    auto const values = counts.values();
    auto mixture =
        with_weights(weights, values.size(), [&](auto const& sources, auto const& weight) {
          return omnibal::mixture(
              sources, [values](std::size_t i) { return values[i]; }, weight, options);
        });
    auto const copied = py::module_::import("numpy").attr("array");
    return {copied(sizes), copied(weights),
            seed,          end,
            window,        drawn.is_none() ? drawn : py::object(copied(drawn)),
            py::list(),    std::move(mixture)};
  }

  [[nodiscard]] mixed reweighted(std::uint64_t position, py::object const& given_weights) const {
    auto mixture = with_weights(given_weights, static_cast<std::size_t>(sizes.size()),
                                [&](auto const& sources, auto const& weight) {
                                  return of.reweighted(position, sources, weight);
                                });
    py::list all(changes);
    all.append(py::make_tuple(position, py::module_::import("numpy").attr("array")(given_weights)));
    return {sizes, weights, seed, end, window, given, all, std::move(mixture)};
  }

  [[nodiscard]] py::array drawn(std::uint64_t position) const {
    auto const counts = of.drawn(position);
    return convert::to_array(std::vector<std::int64_t>(counts.begin(), counts.end()));
  }

  [[nodiscard]] std::string repr() const {
    return convert::repr_text(
        "Mixture", {convert::count_text(static_cast<std::size_t>(sizes.size()), "source"),
                    end == "restart" ? "endless" : convert::count_text(of.size(), "draw")});
  }
};

/// A mixture of batches with its arguments, which a pickled one needs.
struct mixed_batches {
  py::array sizes;
  py::array weights;
  std::int64_t batch;
  std::uint64_t seed;
  std::string end;
  std::int64_t window;
  omnibal::batch_mixture of;

  [[nodiscard]] static mixed_batches make(py::object const& sizes, py::object const& weights,
                                          std::int64_t batch, std::uint64_t seed,
                                          std::string const& end, std::int64_t window) {
    convert::integer_list const counts("batch_mixture", "sizes", sizes);
    omnibal::mixture_options const options{
        .seed = seed, .end = to_end(end), .window = count_of("batch_mixture", "window", window)};
    auto const values = counts.values();
    auto const wanted = count_of("batch_mixture", "batch", batch);
    auto mixture =
        with_weights(weights, values.size(), [&](auto const& sources, auto const& weight) {
          return omnibal::batch_mixture(
              sources, [values](std::size_t i) { return values[i]; }, weight, wanted, options);
        });
    auto const copied = py::module_::import("numpy").attr("array");
    return {copied(sizes), copied(weights), batch, seed, end, window, std::move(mixture)};
  }

  [[nodiscard]] py::tuple draw(std::uint64_t position) const {
    auto const drawn = of(position);
    return py::make_tuple(
        drawn.source, drawn.epoch,
        convert::to_array(std::vector<std::int64_t>(drawn.samples.begin(), drawn.samples.end())));
  }

  [[nodiscard]] std::string repr() const {
    return convert::repr_text(
        "BatchMixture", {convert::count_text(static_cast<std::size_t>(sizes.size()), "source"),
                         "batch " + std::to_string(batch),
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
struct type_caster<sampling::summed> : convert::value_caster<sampling::summed> {};
template <>
struct type_caster<sampling::padded> : convert::value_caster<sampling::padded> {};
template <>
struct type_caster<sampling::online_result> : convert::value_caster<sampling::online_result> {};
template <>
struct type_caster<sampling::sampler> : convert::value_caster<sampling::sampler> {};
template <>
struct type_caster<sampling::mixed> : convert::value_caster<sampling::mixed> {};
template <>
struct type_caster<sampling::mixed_batches> : convert::value_caster<sampling::mixed_batches> {};
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

template <class Online>
void define_packer(py::class_<Online>& type, char const* push, char const* flush, char const* state,
                   char const* restore) {
  type.def("push", &Online::push, py::arg("id"), py::arg("demand"), push)
      .def("flush", &Online::flush, flush)
      .def("__len__", &Online::size, "The number of samples that wait.")
      .def_property_readonly("waiting", &Online::waiting,
                             "The samples that wait, in the order of their pushes, int64.")
      .def("__repr__", &Online::repr)
      .def("state", &Online::state, state)
      .def_static(
          "restore", [](py::bytes const& bytes) { return Online(std::string(bytes)); },
          py::arg("state"), restore);
  convert::add_pickle(
      type, 1, [](Online const& self) { return py::make_tuple(self.state()); },
      [](py::tuple const& bytes) { return Online(std::string(bytes[0].cast<py::bytes>())); });
}

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
  py::class_<summed> type(module, "OnlinePacker", docstrings::OnlinePacker);
  type.def(py::init([](py::object const& capacity, std::int64_t buffer,
                       std::optional<std::uint64_t> longest_wait, std::int64_t candidates) {
             return summed(capacity,
                           {.buffer = count_of("online_packer", "buffer", buffer),
                            .longest_wait = longest_wait.value_or(UINT64_MAX),
                            .candidates = count_of("online_packer", "candidates", candidates)});
           }),
           py::arg("capacity"), py::kw_only(), py::arg("buffer") = 256,
           py::arg("longest_wait") = py::none(), py::arg("candidates") = 6,
           docstrings::OnlinePacker_init);
  define_packer(type, docstrings::OnlinePacker_push, docstrings::OnlinePacker_flush,
                docstrings::OnlinePacker_state, docstrings::OnlinePacker_restore);
  py::class_<padded> padded_type(module, "OnlinePaddedPacker", docstrings::OnlinePaddedPacker);
  padded_type.def(py::init([](py::object const& capacity, std::int64_t buffer,
                              std::optional<std::uint64_t> longest_wait) {
                    return padded(capacity,
                                  {.buffer = count_of("online_padded_packer", "buffer", buffer),
                                   .longest_wait = longest_wait.value_or(UINT64_MAX)});
                  }),
                  py::arg("capacity"), py::kw_only(), py::arg("buffer") = 256,
                  py::arg("longest_wait") = py::none(), docstrings::OnlinePaddedPacker_init);
  define_packer(padded_type, docstrings::OnlinePaddedPacker_push,
                docstrings::OnlinePaddedPacker_flush, docstrings::OnlinePaddedPacker_state,
                docstrings::OnlinePaddedPacker_restore);
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
           py::arg("drawn") = py::none(), docstrings::Mixture_init)
      .def(
          "draws",
          [](mixed const& self, std::uint64_t first, std::int64_t count) {
            return draws(self.of, first, count);
          },
          py::arg("first"), py::arg("count"), docstrings::Mixture_draws)
      .def("reweighted", &mixed::reweighted, py::arg("position"), py::arg("weights"),
           docstrings::Mixture_reweighted)
      .def("drawn", &mixed::drawn, py::arg("position"), docstrings::Mixture_drawn)
      .def(
          "seek",
          [](mixed const& self, py::object const& counts) {
            return self.of.seek(to_draws(counts));
          },
          py::arg("drawn"), docstrings::Mixture_seek)
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
      type, 7,
      [](mixed const& self) {
        return py::make_tuple(self.sizes, self.weights, self.seed, self.end, self.window,
                              self.given, self.changes);
      },
      [](py::tuple const& state) {
        auto result =
            mixed::make(state[0], state[1], state[2].cast<std::uint64_t>(),
                        state[3].cast<std::string>(), state[4].cast<std::int64_t>(), state[5]);
        for (py::handle const change : state[6]) {
          auto const pair = change.cast<py::tuple>();
          result = result.reweighted(pair[0].cast<std::uint64_t>(), pair[1]);
        }
        return result;
      });
}

void define_batches(py::module_& module) {
  py::class_<mixed_batches> type(module, "BatchMixture", docstrings::BatchMixture);
  type.def(py::init(&mixed_batches::make), py::arg("sizes"), py::arg("weights"), py::arg("batch"),
           py::kw_only(), py::arg("seed") = 0, py::arg("end") = "restart", py::arg("window") = 1,
           docstrings::BatchMixture_init)
      .def("draw", &mixed_batches::draw, py::arg("position"), docstrings::BatchMixture_draw)
      .def(
          "__len__",
          [](mixed_batches const& self) { return static_cast<std::size_t>(self.of.size()); },
          "The number of batches until the mixture ends; 2**63 - 1 with end='restart'.")
      .def("__repr__", &mixed_batches::repr)
      .def_property_readonly(
          "skipped",
          [](mixed_batches const& self) {
            auto const& skipped = self.of.skipped();
            return convert::to_array(std::vector<std::int64_t>(skipped.begin(), skipped.end()));
          },
          "The sources that have a weight but fewer samples than a batch, int64.")
      .def_property_readonly(
          "digest", [](mixed_batches const& self) { return self.of.digest(); },
          "Identifies sizes, weights and options.");
  convert::add_pickle(
      type, 6,
      [](mixed_batches const& self) {
        return py::make_tuple(self.sizes, self.weights, self.batch, self.seed, self.end,
                              self.window);
      },
      [](py::tuple const& state) {
        return mixed_batches::make(state[0], state[1], state[2].cast<std::int64_t>(),
                                   state[3].cast<std::uint64_t>(), state[4].cast<std::string>(),
                                   state[5].cast<std::int64_t>());
      });
}

}  // namespace

void define(py::module_& module) {
  define_online(module);
  define_sampler(module);
  define_mixture(module);
  define_batches(module);
  module.def("loss_normalizer", &loss_normalizer, docstrings::loss_normalizer,
             py::arg("loss_tokens"));
}

}  // namespace sampling
