// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "iterations.hpp"
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
    typename padded_groups::options options;
    omnibal::resources<R> capacity;
    std::uint64_t pushes;
  };

  template <std::size_t R>
  [[nodiscard]] static header<R> header_of(omnibal::online_padded_state<R> const& state) {
    return {state.options, state.capacity, state.pushes};
  }
  template <std::size_t R>
  [[nodiscard]] static omnibal::online_padded_state<R> state_of(header<R> const& from) {
    return {from.options, from.capacity, from.pushes, {}};
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

  void load_state_dict(py::object const& given) {
    online other(states::bytes_of(given));
    bool const is_same = std::visit(
        [](auto const& one, auto const& two) {
          if constexpr (!std::is_same_v<decltype(one), decltype(two)>) {
            return false;
          } else {
            auto const first = Kind::header_of(one.state());
            auto const second = Kind::header_of(two.state());
            return first.capacity == second.capacity && first.options == second.options;
          }
        },
        packer_, other.packer_);
    if (!is_same) {
      reject(Kind::name, "the state is of a packer with another capacity or other options");
    }
    *this = std::move(other);
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
  [[nodiscard]] bool done() const { return walker_.done(); }
  [[nodiscard]] py::object next() { return to_array(walker_.next()); }

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
    return states::to_dict(at.state());
  }

  void load_state_dict(py::object const& given) {
    *this = sampler(arguments_, states::bytes_of(given));
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

/// The place of the next draw in a stream, and the members that an iteration calls.
template <class Mixed>
struct walking {
  std::uint64_t position = 0;

  [[nodiscard]] bool done() const { return position == size(); }
  [[nodiscard]] std::uint64_t steps_left() const { return done() ? size() : size() - position; }

  /// Returns the next draw, the first one after the last.
  [[nodiscard]] py::object next() {
    if (done()) position = 0;
    return static_cast<Mixed const&>(*this).draw(position++);
  }

  void move_to(std::uint64_t given) {
    if (given > size()) {
      reject(Mixed::name, "position is " + std::to_string(given) + ", must be at most " +
                              std::to_string(size()) + ", the number of draws");
    }
    position = given;
  }

  [[nodiscard]] py::dict state_dict(std::optional<std::uint64_t> consumed) const {
    Mixed at = static_cast<Mixed const&>(*this);
    if (consumed) at.move_to(*consumed);
    py::dict result;
    result["position"] = at.position;
    result["digest"] = at.of.digest();
    return result;
  }

  /// Moves to the position of a state of the same draws.
  void move_to_state(py::object const& given) {
    if (given["digest"].cast<std::uint64_t>() != static_cast<Mixed const&>(*this).of.digest()) {
      reject(Mixed::name, "the state is of other sizes, weights or options");
    }
    move_to(given["position"].cast<std::uint64_t>());
  }

 private:
  [[nodiscard]] std::uint64_t size() const { return static_cast<Mixed const&>(*this).of.size(); }
};

/// A mixture with its arguments, which a pickled one needs.
struct mixed : walking<mixed> {
  static constexpr char const* name = "mixture";
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
    return {{},
            copied(sizes),
            copied(weights),
            seed,
            end,
            window,
            drawn.is_none() ? drawn : py::object(copied(drawn)),
            py::list(),
            std::move(mixture)};
  }

  [[nodiscard]] py::object draw(std::uint64_t at) const {
    auto const drawn = of(at);
    return py::make_tuple(drawn.source, drawn.epoch, drawn.sample);
  }

  [[nodiscard]] mixed reweighted(std::uint64_t at, py::object const& given_weights) const {
    auto mixture = with_weights(given_weights, static_cast<std::size_t>(sizes.size()),
                                [&](auto const& sources, auto const& weight) {
                                  return of.reweighted(at, sources, weight);
                                });
    py::list all(changes);
    all.append(py::make_tuple(at, py::module_::import("numpy").attr("array")(given_weights)));
    return {*this, sizes, weights, seed, end, window, given, all, std::move(mixture)};
  }

  /// The arguments of all calls of `reweighted`, in which other weights follow.
  [[nodiscard]] mixed with_changes(py::object const& list) const {
    mixed result = make(sizes, weights, seed, end, window, given);
    for (py::handle const change : list) {
      auto const pair = py::reinterpret_borrow<py::object>(change);
      result = result.reweighted(pair[py::int_(0)].cast<std::uint64_t>(), pair[py::int_(1)]);
    }
    return result;
  }

  [[nodiscard]] py::dict state_dict(std::optional<std::uint64_t> consumed) const {
    py::dict result = walking<mixed>::state_dict(consumed);
    py::list list;
    for (py::handle const change : changes) {
      auto const pair = change.cast<py::tuple>();
      list.append(py::make_tuple(pair[0], pair[1].attr("tolist")()));
    }
    result["changes"] = list;
    return result;
  }

  void load_state_dict(py::object const& state) {
    mixed result = with_changes(state["changes"]);
    result.move_to_state(state);
    *this = std::move(result);
  }

  [[nodiscard]] py::array drawn(std::uint64_t at) const {
    auto const counts = of.drawn(at);
    return convert::to_array(std::vector<std::int64_t>(counts.begin(), counts.end()));
  }

  [[nodiscard]] std::string repr() const {
    return convert::repr_text(
        "Mixture", {convert::count_text(static_cast<std::size_t>(sizes.size()), "source"),
                    end == "restart" ? "endless" : convert::count_text(of.size(), "draw")});
  }
};

/// A mixture of batches with its arguments, which a pickled one needs.
struct mixed_batches : walking<mixed_batches> {
  static constexpr char const* name = "batch_mixture";
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
    return {{}, copied(sizes), copied(weights), batch, seed, end, window, std::move(mixture)};
  }

  void load_state_dict(py::object const& state) { move_to_state(state); }

  [[nodiscard]] py::object draw(std::uint64_t at) const {
    auto const drawn = of(at);
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

/// The docstrings of the members that both packers have.
struct packer_texts {
  char const* push;
  char const* flush;
  char const* state;
  char const* restore;
  char const* state_dict;
  char const* load_state_dict;
};

template <class Online>
void define_packer(py::class_<Online>& type, packer_texts const& texts) {
  type.def("push", &Online::push, py::arg("id"), py::arg("demand"), texts.push)
      .def("flush", &Online::flush, texts.flush)
      .def("__len__", &Online::size, "The number of samples that wait.")
      .def_property_readonly("waiting", &Online::waiting,
                             "The samples that wait, in the order of their pushes, int64.")
      .def("__repr__", &Online::repr)
      .def("state", &Online::state, texts.state)
      .def_static(
          "restore", [](py::bytes const& bytes) { return Online(std::string(bytes)); },
          py::arg("state"), texts.restore)
      .def(
          "state_dict", [](Online const& self) { return states::to_dict(self.state()); },
          texts.state_dict)
      .def("load_state_dict", &Online::load_state_dict, py::arg("state"), texts.load_state_dict);
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
  define_packer(type,
                {docstrings::OnlinePacker_push, docstrings::OnlinePacker_flush,
                 docstrings::OnlinePacker_state, docstrings::OnlinePacker_restore,
                 docstrings::OnlinePacker_state_dict, docstrings::OnlinePacker_load_state_dict});
  py::class_<padded> padded_type(module, "OnlinePaddedPacker", docstrings::OnlinePaddedPacker);
  padded_type.def(py::init([](py::object const& capacity, std::int64_t buffer,
                              std::optional<std::uint64_t> longest_wait) {
                    return padded(capacity,
                                  {.buffer = count_of("online_padded_packer", "buffer", buffer),
                                   .longest_wait = longest_wait.value_or(UINT64_MAX)});
                  }),
                  py::arg("capacity"), py::kw_only(), py::arg("buffer") = 256,
                  py::arg("longest_wait") = py::none(), docstrings::OnlinePaddedPacker_init);
  define_packer(
      padded_type,
      {docstrings::OnlinePaddedPacker_push, docstrings::OnlinePaddedPacker_flush,
       docstrings::OnlinePaddedPacker_state, docstrings::OnlinePaddedPacker_restore,
       docstrings::OnlinePaddedPacker_state_dict, docstrings::OnlinePaddedPacker_load_state_dict});
}

void define_sampler(py::module_& module) {
  py::class_<sampler> type(module, "EpochSampler", docstrings::EpochSampler);
  iterations::define(type, "EpochSamplerIteration", iterations::epoch_text,
                     iterations::epoch_length_text);
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
          "next", [](sampler& self) { return self.next(); }, docstrings::EpochSampler_next)
      .def(
          "__call__",
          [](sampler const& self, std::uint64_t step) { return to_array(self.walker()(step)); },
          py::arg("step"), "The samples of this rank in a step of the epoch.")
      .def("__repr__", &sampler::repr)
      .def(
          "seek", [](sampler& self, std::uint64_t step) { self.walker().seek(step); },
          py::arg("step"), docstrings::EpochSampler_seek)
      .def_property_readonly(
          "done", [](sampler const& self) { return self.done(); },
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

/// The docstrings of the members that both mixtures have.
struct mixture_texts {
  char const* state_dict;
  char const* load_state_dict;
};

template <class Mixed>
void define_walking(py::class_<Mixed>& type, char const* iteration, mixture_texts const& texts) {
  iterations::define(type, iteration,
                     "Yields the draws from the position on, or all draws after the last one.",
                     "The number of draws that an iteration yields: the draws until the mixture "
                     "ends. 2**63 - 1 at position 0 with end='restart', the default.");
  type.def("state_dict", &Mixed::state_dict, py::arg("consumed") = py::none(), texts.state_dict)
      .def("load_state_dict", &Mixed::load_state_dict, py::arg("state"), texts.load_state_dict)
      .def_property(
          "position", [](Mixed const& self) { return self.position; },
          [](Mixed& self, std::uint64_t position) { self.move_to(position); },
          "The position of the next draw of an iteration.");
}

void define_mixture(py::module_& module) {
  py::class_<mixed> type(module, "Mixture", docstrings::Mixture);
  define_walking(type, "MixtureIteration",
                 {docstrings::Mixture_state_dict, docstrings::Mixture_load_state_dict});
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
      .def("__repr__", &mixed::repr)
      .def_property_readonly(
          "period", [](mixed const& self) { return self.of.period(); },
          "In so many draws each source has exactly its weight, a whole number.")
      .def_property_readonly(
          "digest", [](mixed const& self) { return self.of.digest(); },
          "Identifies sizes, weights and options.");
  convert::add_pickle(
      type, 8,
      [](mixed const& self) {
        return py::make_tuple(self.sizes, self.weights, self.seed, self.end, self.window,
                              self.given, self.changes, self.position);
      },
      [](py::tuple const& state) {
        auto result =
            mixed::make(state[0], state[1], state[2].cast<std::uint64_t>(),
                        state[3].cast<std::string>(), state[4].cast<std::int64_t>(), state[5]);
        result = result.with_changes(state[6]);
        result.move_to(state[7].cast<std::uint64_t>());
        return result;
      });
}

void define_batches(py::module_& module) {
  py::class_<mixed_batches> type(module, "BatchMixture", docstrings::BatchMixture);
  define_walking(type, "BatchMixtureIteration",
                 {docstrings::BatchMixture_state_dict, docstrings::BatchMixture_load_state_dict});
  type.def(py::init(&mixed_batches::make), py::arg("sizes"), py::arg("weights"), py::arg("batch"),
           py::kw_only(), py::arg("seed") = 0, py::arg("end") = "restart", py::arg("window") = 1,
           docstrings::BatchMixture_init)
      .def("draw", &mixed_batches::draw, py::arg("position"), docstrings::BatchMixture_draw)
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
      type, 7,
      [](mixed_batches const& self) {
        return py::make_tuple(self.sizes, self.weights, self.batch, self.seed, self.end,
                              self.window, self.position);
      },
      [](py::tuple const& state) {
        auto result = mixed_batches::make(
            state[0], state[1], state[2].cast<std::int64_t>(), state[3].cast<std::uint64_t>(),
            state[4].cast<std::string>(), state[5].cast<std::int64_t>());
        result.move_to(state[6].cast<std::uint64_t>());
        return result;
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
