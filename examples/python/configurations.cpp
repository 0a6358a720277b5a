// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "fields.hpp"
#include "machines.hpp"
#include "models.hpp"
#include "results.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/plan_configuration.hpp>
#include <omnibal/plan/predict_step.hpp>
#include <omnibal/plan/training_step.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace configurations {

namespace py = pybind11;
using convert::reject;
using convert::released;
using fields::field;
using integers = std::vector<std::int64_t>;
using words = std::vector<std::string>;

/// The number, the tokens and the sum of the squares of the documents of a micro-batch. If the
/// model has a window, also its tokens and the sum of the squares within it.
using document_sums = integers;

/// A step as Python gives it. If it has `lengths`, the micro-batch has documents of these lengths;
/// their sums depend on the windows of a model.
struct training_step {
  omnibal::training_step of{};
  integers lengths{};
};

struct configuration {
  training_step step{};
  std::optional<document_sums> largest{};
  std::int64_t token_capacity = 0;
  std::int64_t offload_percent = 0;
  double padding = 0;
  omnibal::step_prediction prediction{};

  [[nodiscard]] std::int64_t micro_batch() const {
    return token_capacity == 0 ? step.of.sequences : token_capacity;
  }
};

struct family {
  std::string choice;
  py::object value;
  std::string reason;
  std::optional<configuration> best{};
  std::int64_t min_bytes = 0;
};

struct configuration_plan {
  std::string status;
  std::optional<configuration> best{};
  std::vector<configuration> runners_up{};
  std::vector<family> families{};
  double lower_bound = 0;
  bool proven = false;
  std::int64_t min_bytes = 0;
  std::int64_t configurations = 0;
  std::int64_t predictions = 0;
  double flops = 0;
  std::int64_t devices = 0;
};

}  // namespace configurations

namespace pybind11::detail {
template <>
struct type_caster<omnibal::step_prediction> : convert::value_caster<omnibal::step_prediction> {};
template <>
struct type_caster<configurations::training_step>
    : convert::value_caster<configurations::training_step> {};
template <>
struct type_caster<configurations::configuration>
    : convert::value_caster<configurations::configuration> {};
template <>
struct type_caster<configurations::family> : convert::value_caster<configurations::family> {};
template <>
struct type_caster<configurations::configuration_plan>
    : convert::value_caster<configurations::configuration_plan> {};
}  // namespace pybind11::detail

namespace configurations {

namespace {

words const recompute_words{"none", "selective", "full"};
words const sharding_words{"nothing", "optimizer", "gradients", "parameters"};
words const norm_words{"replicated", "split"};
words const precision_words{"bf16", "fp8"};
words const communication_words{"blocking", "overlapped"};
words const cut_words{"even", "balanced"};
words const schedule_words{"1f1b", "interleaved"};
words const choice_words{"tensor_parallel", "pipeline_parallel", "context_parallel",
                         "expert_parallel", "schedule",          "micro_batch",
                         "recompute",       "sharding",          "offload"};
words const reason_words{"memory", "computation", "bubble", "links", "padding"};
/// The parts of a step in the order of `step_seconds::parts`.
words const part_words{"matmul",   "attention", "memory", "tensor", "context",   "expert",
                       "transfer", "offload",   "launch", "bubble", "gradients", "optimizer"};

template <class Value>
[[nodiscard]] std::string const& word(words const& list, Value value) {
  return list[static_cast<std::size_t>(value)];
}

/// Returns a text with the names of Python in the place of the names of C++.
[[nodiscard]] std::string in_python(std::string text) {
  constexpr std::array<std::array<char const*, 2>, 10> names{{
      {"step.degrees.sequence", "step.context"},
      {"step.degrees.", "step."},
      {"step.offload.", "step.offload_"},
      {"data * sequence", "data * context"},
      {": sequence ", ": context "},
      {"data.", ""},
      {"options allow", "the arguments allow"},
      {"options.", ""},
      {"work.documents", "documents"},
      {"; pass attention_spans(model) to sequences_of",
       "; TrainingStep requires lengths, or the window and its squares in documents"},
  }};
  for (auto const& [from, to] : names) {
    std::string const old = from;
    std::string const wanted = to;
    for (auto at = text.find(old); at != std::string::npos;
         at = text.find(old, at + wanted.size())) {
      text.replace(at, old.size(), wanted);
    }
  }
  return text;
}

/// Runs `body` while other threads of Python run; its errors have the names of Python.
template <class Body>
auto with_names(Body const& body) {
  try {
    return released(body);
  } catch (std::logic_error const& error) {
    throw std::invalid_argument(in_python(error.what()));
  } catch (std::overflow_error const& error) {
    throw std::overflow_error(in_python(error.what()));
  }
}

using byte_sizes = omnibal::byte_sizes;

[[nodiscard]] std::vector<field<byte_sizes>> const& byte_members() {
  static std::vector<field<byte_sizes>> const result{
      fields::integer_field<byte_sizes>("activation", &byte_sizes::activation),
      fields::integer_field<byte_sizes>("parameter", &byte_sizes::parameter),
      fields::integer_field<byte_sizes>("gradient", &byte_sizes::gradient),
      fields::integer_field<byte_sizes>("optimizer", &byte_sizes::optimizer),
      fields::integer_field<byte_sizes>("matrix_input", &byte_sizes::matrix_input),
      fields::integer_field<byte_sizes>("matrix_copy", &byte_sizes::matrix_copy),
      fields::integer_field<byte_sizes>("scale_block", &byte_sizes::scale_block)};
  return result;
}

/// Returns the sizes that a word or a dict of Python has.
[[nodiscard]] byte_sizes to_byte_sizes(std::string const& function, py::handle given) {
  if (py::isinstance<py::str>(given)) {
    constexpr std::array<byte_sizes, 3> presets{byte_sizes{}, omnibal::fp8_bytes,
                                                omnibal::mxfp8_bytes};
    return presets[fields::to_word<std::size_t>(function, "bytes", given,
                                                {"bf16", "fp8", "mxfp8"})];
  }
  if (!py::isinstance<py::dict>(given)) {
    fields::reject_type(function, "bytes", given, "a str or a dict");
  }
  byte_sizes result;
  for (auto const& [key, value] : py::reinterpret_borrow<py::dict>(given)) {
    auto const name = py::str(key).cast<std::string>();
    auto const member = std::ranges::find(byte_members(), name, &field<byte_sizes>::name);
    if (member == byte_members().end())
      reject(function, "bytes has the unknown key '" + name + "'");
    std::int64_t const size = fields::to_integer(function, "bytes['" + name + "']", value);
    member->set(function, result, py::int_(size));
  }
  return result;
}

[[nodiscard]] std::optional<document_sums> sums_of(omnibal::micro_batch_work const& work) {
  if (work == omnibal::micro_batch_work{}) return std::nullopt;
  document_sums result{work.documents.count, work.documents.tokens, work.documents.squares};
  // A model of Python has one window at most.
  auto const& [span, squares] = work.documents.spans.front();
  if (span.kind == omnibal::span_kind::window) result.insert(result.end(), {span.tokens, squares});
  return result;
}

[[nodiscard]] field<training_step> documents_field() {
  return {
      .name = "documents",
      .get = [](training_step const& self) { return py::object(py::cast(sums_of(self.of.work))); },
      .set =
          [](std::string const& function, training_step& self, py::handle given) {
            self.of.work = {};
            if (given.is_none()) return;
            auto const sums = fields::to_integers(function, "documents", given);
            if (sums.size() != 3 && sums.size() != 5) {
              reject(function, "documents has " + std::to_string(sums.size()) +
                                   " numbers, must have 3: the number, the tokens and the sum "
                                   "of the squares of the lengths; or 5: also a window and the "
                                   "squares within it");
            }
            self.of.work.documents = {.count = sums[0], .tokens = sums[1], .squares = sums[2]};
            if (sums.size() == 3) return;
            self.of.work.documents.spans.front() = {{omnibal::span_kind::window, sums[3]}, sums[4]};
          }};
}

/// A list of integers that may be absent; `None` if it is empty.
template <class Member>
[[nodiscard]] field<training_step> list_field(std::string const& name, std::int64_t least,
                                              Member const& member) {
  return {.name = name,
          .get = [=](training_step const& self) -> py::object {
            integers values = std::invoke(member, self);
            if (values.empty()) return py::none();
            return convert::to_array(std::move(values));
          },
          .set =
              [=](std::string const& function, training_step& self, py::handle given) {
                auto values = fields::to_integers(function, name, given);
                for (std::size_t i = 0; i != values.size(); ++i) {
                  if (values[i] >= least) continue;
                  reject(function, name + "[" + std::to_string(i) + "] is " +
                                       std::to_string(values[i]) + ", must be at least " +
                                       std::to_string(least));
                }
                std::invoke(member, self) = std::move(values);
              }};
}

/// Returns a functor from a step to a member of its offload.
[[nodiscard]] auto of_offload(double omnibal::activation_offload::*member) {
  return [member](auto& self) -> auto& { return self.of.offload.*member; };
}

/// Returns a functor from a step to a member of the step of the library.
template <class Value>
[[nodiscard]] auto of_step(Value omnibal::training_step::*member) {
  return [member](auto& self) -> auto& { return self.of.*member; };
}
template <class Value>
[[nodiscard]] auto of_degrees(Value omnibal::parallel_degrees::*member) {
  return [member](auto& self) -> auto& { return self.of.degrees.*member; };
}

[[nodiscard]] std::vector<field<training_step>> const& step_members() {
  using step = omnibal::training_step;
  using degrees = omnibal::parallel_degrees;
  auto const number = [](char const* name, auto const& member) {
    return fields::integer_field<training_step>(name, member);
  };
  auto const choice = [](char const* name, auto const& member, words const& list) {
    return fields::word_field<training_step>(name, member, list);
  };
  static std::vector<field<training_step>> const result{
      number("tokens", of_step(&step::tokens)),
      number("sequences", of_step(&step::sequences)),
      number("document_tokens", of_step(&step::document_tokens)),
      list_field(
          "lengths", 1, [](auto& self) -> auto& { return self.lengths; }),
      documents_field(),
      number("micro_batches", of_step(&step::micro_batches)),
      number("tensor", of_degrees(&degrees::tensor)),
      number("pipeline", of_degrees(&degrees::pipeline)),
      number("context", of_degrees(&degrees::sequence)),
      number("expert", of_degrees(&degrees::expert)),
      number("data", of_degrees(&degrees::data)),
      number("expert_tensor", of_degrees(&degrees::expert_tensor)),
      number("chunks", of_step(&step::chunks)),
      list_field("boundaries", 0, of_step(&step::boundaries)),
      choice("recompute", of_step(&step::recomputed), recompute_words),
      fields::number_field<training_step>("offload_share",
                                          of_offload(&omnibal::activation_offload::share)),
      fields::number_field<training_step>(
          "offload_bytes_per_second", of_offload(&omnibal::activation_offload::bytes_per_second)),
      choice("sharding", of_degrees(&degrees::sharding), sharding_words),
      choice("norms", of_degrees(&degrees::norms), norm_words),
      choice("precision", of_step(&step::precision), precision_words),
      {.name = "bytes",
       .get = [](training_step const& self) -> py::object {
         return fields::to_dict(byte_members(), self.of.bytes);
       },
       .set = [](std::string const& function, training_step& self,
                 py::handle given) { self.of.bytes = to_byte_sizes(function, given); }},
      number("reduced_bytes", of_step(&step::reduced_bytes)),
      number("gathered_bytes", of_step(&step::gathered_bytes)),
      number("state_ranks", of_step(&step::state_ranks)),
      number("bucket_bytes", of_step(&step::bucket_bytes)),
      choice("layer_communication", of_step(&step::layer_communication), communication_words),
      choice("gradient_communication", of_step(&step::gradient_communication),
             communication_words)};
  return result;
}

/// Throws unless a step has exactly one kind of micro-batch.
void check_micro_batch(training_step const& step) {
  std::string const name = "TrainingStep";
  bool const has_documents = step.of.work != omnibal::micro_batch_work{};
  int const kinds =
      (step.of.tokens != 0 ? 1 : 0) + (step.lengths.empty() ? 0 : 1) + (has_documents ? 1 : 0);
  if (kinds == 0) {
    reject(name, "tokens is 0, must be positive unless lengths or documents are given");
  }
  if (kinds > 1) reject(name, "tokens, lengths and documents exclude each other");
  if (step.of.tokens != 0) return;
  if (step.of.sequences != 1) {
    reject(name, "sequences is " + std::to_string(step.of.sequences) +
                     ", must be 1 if lengths or documents are given");
  }
  if (step.of.document_tokens != 0) {
    reject(name, "document_tokens is " + std::to_string(step.of.document_tokens) +
                     ", must be 0 if lengths or documents are given");
  }
}

[[nodiscard]] training_step make_step(py::kwargs const& given) {
  training_step result;
  fields::set_all("TrainingStep", step_members(), result, given);
  check_micro_batch(result);
  return result;
}

/// Returns a step with other members. A new kind of micro-batch replaces the old kind.
[[nodiscard]] training_step replaced(training_step result, py::kwargs const& changes) {
  bool const is_packed = changes.contains("lengths") || changes.contains("documents");
  if (is_packed || changes.contains("tokens")) {
    result.lengths.clear();
    result.of.work = {};
  }
  if (is_packed) {
    result.of.sequences = 1;
    result.of.tokens = 0;
    result.of.document_tokens = 0;
  }
  fields::set_all("TrainingStep.replace", step_members(), result, changes);
  check_micro_batch(result);
  return result;
}

[[nodiscard]] py::dict to_dict(training_step const& self) {
  return fields::to_dict(step_members(), self);
}

[[nodiscard]] std::string to_repr(training_step const& self) {
  constexpr std::size_t most = 16;
  training_step shown = self;
  shown.lengths.clear();
  std::string text = fields::to_repr("TrainingStep", step_members(), shown, training_step{});
  if (self.lengths.empty()) return text;
  std::string list;
  for (std::size_t i = 0; i != std::min(most, self.lengths.size()); ++i) {
    list += (i == 0 ? "" : ", ") + std::to_string(self.lengths[i]);
  }
  if (self.lengths.size() > most) list += ", ...";
  std::size_t const start = text.find('(') + 1;
  return text.insert(start, "lengths=[" + list + "]" + (text[start] == ')' ? "" : ", "));
}

/// Throws for degrees that have no effect because the model has no experts.
void check_experts(std::string const& function, models::model const& model,
                   training_step const& step) {
  if (model.experts) return;
  auto const& degrees = step.of.degrees;
  if (degrees.expert > 1) {
    reject(function, "step.expert is " + std::to_string(degrees.expert) +
                         ", must be 1 because the model has no experts");
  }
  if (degrees.expert_tensor > 0) {
    reject(function, "step.expert_tensor is " + std::to_string(degrees.expert_tensor) +
                         ", must be 0 because the model has no experts");
  }
}

[[nodiscard]] omnibal::step_prediction predict_step(models::model const& model,
                                                    training_step const& step,
                                                    omnibal::machine const& machine) {
  check_experts("predict_step", model, step);
  return with_names([&] {
    auto const of = model.of();
    omnibal::training_step given = step.of;
    if (!step.lengths.empty()) {
      given.work.documents =
          omnibal::sequences_of(step.lengths, std::identity{}, omnibal::attention_spans(of));
    }
    return omnibal::predict_step(of, given, machine);
  });
}

[[nodiscard]] configuration to_configuration(omnibal::planned_configuration const& given) {
  return {.step = {.of = given.step, .lengths = {}},
          .largest = given.token_capacity == 0 ? std::nullopt : sums_of(given.largest),
          .token_capacity = given.token_capacity,
          .offload_percent = given.offload_percent,
          .padding = given.padding,
          .prediction = given.prediction};
}

/// Returns the value of a family: a degree, or a word.
[[nodiscard]] py::object value_of(omnibal::configuration_family const& given) {
  using omnibal::configuration_choice;
  switch (given.choice) {
    case configuration_choice::schedule: return py::str(word(schedule_words, given.value - 1));
    case configuration_choice::recompute: return py::str(word(recompute_words, given.value));
    case configuration_choice::sharding: return py::str(word(sharding_words, given.value));
    default: return py::int_(given.value);
  }
}

[[nodiscard]] configuration_plan to_plan(omnibal::configuration_plan const& given,
                                         std::int64_t devices) {
  configuration_plan result{.status = convert::to_text(given.status),
                            .lower_bound = given.lower_bound,
                            .proven = given.proven,
                            .min_bytes = given.min_bytes,
                            .configurations = given.configurations,
                            .predictions = given.predictions,
                            .flops = given.flops,
                            .devices = devices};
  if (given.status == omnibal::solve_status::solved) result.best = to_configuration(given.best);
  for (auto const& one : given.runners_up) result.runners_up.push_back(to_configuration(one));
  for (auto const& one : given.families) {
    family next{.choice = word(choice_words, one.choice),
                .value = value_of(one),
                .reason = word(reason_words, one.reason),
                .min_bytes = one.min_bytes};
    if (one.reason != omnibal::loss_reason::memory) next.best = to_configuration(one.best);
    result.families.push_back(std::move(next));
  }
  return result;
}

configuration_plan plan_configuration(
    models::model const& model, omnibal::machine const& machine, std::int64_t sequences,
    std::int64_t tokens, std::int64_t document_tokens, py::object const& lengths,
    std::int64_t devices, std::int64_t memory_bytes, std::int64_t reserve_bytes,
    py::object const& tensor_parallel, py::object const& pipeline_parallel,
    py::object const& virtual_pipeline, py::object const& context_parallel,
    py::object const& expert_parallel, py::object const& micro_batch_sizes,
    py::object const& token_capacities, py::object const& recompute,
    double offload_bytes_per_second, std::optional<std::int64_t> host_memory_bytes,
    py::object const& offload_percent, py::object const& sharding, py::object const& norms,
    py::object const& cuts, std::string const& precision, py::object const& bytes,
    std::int64_t reduced_bytes, std::int64_t gathered_bytes, std::int64_t bucket_bytes,
    std::string const& layer_communication, std::string const& gradient_communication,
    std::int64_t runners_up, std::int64_t predictions) {
  std::string const name = "plan_configuration";
  auto const numbers = [&](char const* argument, py::object const& given) {
    return fields::to_integers(name, argument, given);
  };
  omnibal::step_data data{
      .sequences = sequences, .tokens = tokens, .document_tokens = document_tokens};
  if (!lengths.is_none()) {
    if (tokens != 0) {
      reject(name, "tokens is " + std::to_string(tokens) + ", must be 0 if lengths are given");
    }
    convert::integer_list const list(name, "lengths", lengths);
    auto const values = list.values();
    if (values.empty()) reject(name, "lengths is empty, must be None or have a value");
    data.lengths.assign(values.begin(), values.end());
  }
  omnibal::plan_configuration_options const options{
      .devices = devices,
      .memory_bytes = memory_bytes,
      .reserve_bytes = reserve_bytes,
      .tensor_parallel = numbers("tensor_parallel", tensor_parallel),
      .pipeline_parallel = numbers("pipeline_parallel", pipeline_parallel),
      .virtual_pipeline = numbers("virtual_pipeline", virtual_pipeline),
      .context_parallel = numbers("context_parallel", context_parallel),
      .expert_parallel = numbers("expert_parallel", expert_parallel),
      .micro_batch_sizes = numbers("micro_batch_sizes", micro_batch_sizes),
      .token_capacities = numbers("token_capacities", token_capacities),
      .recompute = fields::to_words<omnibal::recompute_choice>(name, "recompute", recompute,
                                                               recompute_words),
      .offload_bytes_per_second = offload_bytes_per_second,
      .host_memory_bytes = host_memory_bytes.value_or(std::numeric_limits<std::int64_t>::max()),
      .offload_percent = numbers("offload_percent", offload_percent),
      .sharding =
          fields::to_words<omnibal::sharded_state>(name, "sharding", sharding, sharding_words),
      .norms = fields::to_words<omnibal::norm_regions>(name, "norms", norms, norm_words),
      .cuts = fields::to_words<omnibal::stage_cuts>(name, "cuts", cuts, cut_words),
      .precision = static_cast<omnibal::matmul_precision>(
          convert::word_of(name, "precision", precision, precision_words)),
      .bytes = to_byte_sizes(name, bytes),
      .reduced_bytes = reduced_bytes,
      .gathered_bytes = gathered_bytes,
      .bucket_bytes = bucket_bytes,
      .layer_communication = static_cast<omnibal::communication>(
          convert::word_of(name, "layer_communication", layer_communication, communication_words)),
      .gradient_communication = static_cast<omnibal::communication>(convert::word_of(
          name, "gradient_communication", gradient_communication, communication_words)),
      .runners_up = convert::count_of(name, "runners_up", runners_up),
      .predictions = predictions};
  for (std::int64_t const expert : options.expert_parallel) {
    if (model.experts || expert == 1) continue;
    reject(name, "expert_parallel has " + std::to_string(expert) +
                     ", must be 1 because the model has no experts");
  }
  auto const found =
      with_names([&] { return omnibal::plan_configuration(model.of(), machine, data, options); });
  return to_plan(found, devices);
}

/// The seconds of the parts of a step by their names.
[[nodiscard]] py::dict parts_of(omnibal::step_prediction const& self) {
  py::dict result;
  auto const parts = omnibal::step_seconds::parts();
  for (std::size_t i = 0; i != parts.size(); ++i) {
    result[part_words[i].c_str()] = self.seconds.*parts[i];
  }
  return result;
}

/// The seconds of one kind of pass on each virtual stage.
template <class Member>
[[nodiscard]] py::array pass_seconds(omnibal::step_prediction const& self, Member const& member) {
  std::vector<double> result;
  for (auto const& pass : self.passes) result.push_back(std::invoke(member, pass));
  return convert::to_array(std::move(result));
}

[[nodiscard]] py::array peak_bytes_of(omnibal::step_prediction const& self) {
  return convert::to_array(integers(self.peak_bytes));
}
[[nodiscard]] py::array host_bytes_of(omnibal::step_prediction const& self) {
  return convert::to_array(integers(self.host_bytes));
}

[[nodiscard]] py::dict to_dict(omnibal::step_prediction const& self) {
  py::dict result;
  result["seconds"] = self.total();
  result["parts"] = parts_of(self);
  result["forward_seconds"] =
      pass_seconds(self, &omnibal::stage_time<double>::forward).attr("tolist")();
  result["backward_seconds"] =
      pass_seconds(self, &omnibal::stage_time<double>::backward).attr("tolist")();
  result["peak_bytes"] = self.peak_bytes;
  result["host_bytes"] = self.host_bytes;
  return result;
}

[[nodiscard]] py::dict to_dict(configuration const& self) {
  auto const& step = self.step.of;
  auto const& degrees = step.degrees;
  py::dict result;
  result["tensor"] = degrees.tensor;
  result["pipeline"] = degrees.pipeline;
  result["context"] = degrees.sequence;
  result["expert"] = degrees.expert;
  result["expert_tensor"] = degrees.expert_tensor;
  result["data"] = degrees.data;
  result["micro_batch"] = self.micro_batch();
  result["micro_batches"] = step.micro_batches;
  result["token_capacity"] = self.token_capacity;
  result["padding"] = self.padding;
  result["chunks"] = step.chunks;
  result["boundaries"] = step.boundaries;
  result["recompute"] = word(recompute_words, step.recomputed);
  result["offload_percent"] = self.offload_percent;
  result["sharding"] = word(sharding_words, degrees.sharding);
  result["norms"] = word(norm_words, degrees.norms);
  result["seconds"] = self.prediction.total();
  result["parts"] = parts_of(self.prediction);
  result["peak_bytes"] = self.prediction.peak_bytes;
  result["host_bytes"] = self.prediction.host_bytes;
  return result;
}

[[nodiscard]] py::object to_dict(std::optional<configuration> const& self) {
  return self ? py::object(to_dict(*self)) : py::object(py::none());
}

[[nodiscard]] py::dict to_dict(family const& self) {
  py::dict result;
  result["choice"] = self.choice;
  result["value"] = self.value;
  result["reason"] = self.reason;
  result["best"] = to_dict(self.best);
  result["min_bytes"] = self.min_bytes;
  return result;
}

template <class T>
[[nodiscard]] py::list to_dicts(std::vector<T> const& list) {
  py::list result;
  for (T const& one : list) result.append(to_dict(one));
  return result;
}

[[nodiscard]] py::dict to_dict(configuration_plan const& self) {
  py::dict result;
  result["status"] = self.status;
  result["best"] = to_dict(self.best);
  result["runners_up"] = to_dicts(self.runners_up);
  result["families"] = to_dicts(self.families);
  result["lower_bound"] = self.lower_bound;
  result["proven"] = self.proven;
  result["min_bytes"] = self.min_bytes;
  result["configurations"] = self.configurations;
  result["predictions"] = self.predictions;
  result["flops"] = self.flops;
  result["devices"] = self.devices;
  return result;
}

[[nodiscard]] double flops_utilization(configuration_plan const& self,
                                       double peak_flops_per_gpu_second) {
  if (!self.best) {
    reject("ConfigurationPlan.flops_utilization", "the plan is " + self.status + ", has no step");
  }
  return omnibal::flops_utilization({.flops = self.flops,
                                     .seconds = self.best->prediction.total(),
                                     .gpus = static_cast<double>(self.devices),
                                     .peak_flops_per_gpu_second = peak_flops_per_gpu_second});
}

[[nodiscard]] std::string seconds_text(double seconds) {
  return convert::number_text(py::float_(seconds)) + " s";
}

/// The choices of a configuration, without degrees of one.
[[nodiscard]] std::vector<std::string> facts_of(configuration const& self) {
  auto const& step = self.step.of;
  std::vector<std::string> result;
  auto const add = [&](char const* name, std::int64_t value) {
    if (value != 1) result.push_back(name + std::to_string(value));
  };
  add("tensor ", step.degrees.tensor);
  add("pipeline ", step.degrees.pipeline);
  add("chunks ", step.chunks);
  add("context ", step.degrees.sequence);
  add("expert ", step.degrees.expert);
  add("data ", step.degrees.data);
  result.push_back("micro-batch " + std::to_string(self.micro_batch()));
  result.push_back("recompute " + word(recompute_words, step.recomputed));
  if (self.offload_percent != 0) {
    result.push_back("offload " + std::to_string(self.offload_percent) + " %");
  }
  result.push_back("sharding " + word(sharding_words, step.degrees.sharding));
  return result;
}

[[nodiscard]] std::string to_repr(configuration const& self) {
  auto facts = facts_of(self);
  facts.push_back(seconds_text(self.prediction.total()));
  return convert::repr_text("PlannedConfiguration", facts);
}

[[nodiscard]] std::string to_repr(family const& self) {
  return convert::repr_text(
      "ConfigurationFamily",
      {self.choice + " " + std::string(py::str(self.value)),
       self.best ? seconds_text(self.best->prediction.total()) : "", "loses by " + self.reason,
       self.best ? "" : "at least " + std::to_string(self.min_bytes) + " bytes"});
}

[[nodiscard]] std::string to_repr(configuration_plan const& self) {
  std::vector<std::string> facts{self.status};
  if (self.best) {
    for (std::string const& fact : facts_of(*self.best)) facts.push_back(fact);
    facts.push_back(seconds_text(self.best->prediction.total()));
    facts.push_back(self.proven ? "proven" : "at least " + seconds_text(self.lower_bound));
  } else if (self.status == "infeasible") {
    facts.push_back("at least " + std::to_string(self.min_bytes) + " bytes");
  }
  return convert::repr_text("ConfigurationPlan", facts);
}

[[nodiscard]] std::string to_repr(omnibal::step_prediction const& self) {
  std::int64_t const most = self.peak_bytes.empty() ? 0 : std::ranges::max(self.peak_bytes);
  return convert::repr_text("StepPrediction", {seconds_text(self.total()),
                                               convert::count_text(self.peak_bytes.size(), "stage"),
                                               "at most " + std::to_string(most) + " bytes"});
}

void define_step(py::module_& module) {
  py::class_<training_step> type(module, "TrainingStep", docstrings::TrainingStep);
  type.def(py::init(&make_step), docstrings::TrainingStep_init);
  for (field<training_step> const& member : step_members()) {
    type.def_property_readonly(
        member.name.c_str(), [get = member.get](training_step const& self) { return get(self); },
        "The argument of the same name.");
  }
  type.def("replace", &replaced, docstrings::TrainingStep_replace)
      .def(
          "to_dict", [](training_step const& self) { return to_dict(self); },
          docstrings::TrainingStep_to_dict)
      .def("__eq__",
           [](training_step const& self, py::object const& other) {
             return py::isinstance<training_step>(other) &&
                    to_dict(self).equal(to_dict(other.cast<training_step const&>()));
           })
      .def("__repr__", [](training_step const& self) { return to_repr(self); });
  convert::add_pickle(
      type, step_members().size(),
      [](training_step const& self) { return fields::to_tuple(step_members(), self); },
      [](py::tuple const& state) {
        auto result = fields::from_tuple("TrainingStep", step_members(), state);
        check_micro_batch(result);
        return result;
      });
}

void define_prediction(py::module_& module) {
  using omnibal::step_prediction;
  using pass = omnibal::stage_time<double>;
  py::class_<step_prediction> type(module, "StepPrediction", docstrings::StepPrediction);
  type.def_property_readonly("seconds", &step_prediction::total, "The seconds of the step.")
      .def_property_readonly("parts", &parts_of,
                             "The seconds of each part on the slowest stage; their sum is seconds.")
      .def_property_readonly(
          "forward_seconds",
          [](step_prediction const& self) { return pass_seconds(self, &pass::forward); },
          "The seconds of a forward pass on each virtual stage, with transfers, float64.")
      .def_property_readonly(
          "backward_seconds",
          [](step_prediction const& self) { return pass_seconds(self, &pass::backward); },
          "The seconds of a backward pass on each virtual stage, with transfers, float64.")
      .def_property_readonly("peak_bytes", &peak_bytes_of,
                             "The most bytes that a device of each stage needs, int64.")
      .def_property_readonly("host_bytes", &host_bytes_of,
                             "The most bytes that a device of each stage offloads, int64.")
      .def(
          "to_dict", [](step_prediction const& self) { return to_dict(self); },
          docstrings::StepPrediction_to_dict)
      .def("__eq__",
           [](step_prediction const& self, py::object const& other) {
             return py::isinstance<step_prediction>(other) &&
                    self == other.cast<step_prediction const&>();
           })
      .def("__repr__", [](step_prediction const& self) { return to_repr(self); });
  convert::add_pickle(
      type, 5,
      [](step_prediction const& self) {
        std::vector<double> parts;
        for (auto const part : omnibal::step_seconds::parts()) {
          parts.push_back(self.seconds.*part);
        }
        return py::make_tuple(parts, pass_seconds(self, &pass::forward),
                              pass_seconds(self, &pass::backward), self.peak_bytes,
                              self.host_bytes);
      },
      [](py::tuple const& state) {
        step_prediction result;
        auto const parts = state[0].cast<std::vector<double>>();
        auto const forward = state[1].cast<std::vector<double>>();
        auto const backward = state[2].cast<std::vector<double>>();
        auto const names = omnibal::step_seconds::parts();
        if (parts.size() != names.size() || forward.size() != backward.size()) {
          reject("pickle", "the state has another number of elements");
        }
        for (std::size_t i = 0; i != names.size(); ++i) result.seconds.*names[i] = parts[i];
        for (std::size_t i = 0; i != forward.size(); ++i) {
          result.passes.push_back({forward[i], backward[i], 0.0});
        }
        result.peak_bytes = state[3].cast<integers>();
        result.host_bytes = state[4].cast<integers>();
        return result;
      });
}

void define_configuration(py::module_& module) {
  py::class_<configuration> type(module, "PlannedConfiguration", docstrings::PlannedConfiguration);
  auto const add = [&](char const* name, char const* text, auto const& get) {
    type.def_property_readonly(name, get, text);
  };
  using self_type = configuration const&;
  add("tensor", "The degree of tensor parallelism.",
      [](self_type self) { return self.step.of.degrees.tensor; });
  add("pipeline", "The number of stages.",
      [](self_type self) { return self.step.of.degrees.pipeline; });
  add("context", "The degree of context parallelism.",
      [](self_type self) { return self.step.of.degrees.sequence; });
  add("expert", "The degree of expert parallelism.",
      [](self_type self) { return self.step.of.degrees.expert; });
  add("expert_tensor", "The ranks that share the matrices of an expert; 0 means tensor.",
      [](self_type self) { return self.step.of.degrees.expert_tensor; });
  add("data", "The degree of data parallelism.",
      [](self_type self) { return self.step.of.degrees.data; });
  add("micro_batch", "The sequences of a micro-batch, or its capacity in tokens if packed.",
      [](self_type self) { return self.micro_batch(); });
  add("micro_batches", "The number of micro-batches of a data-parallel rank.",
      [](self_type self) { return self.step.of.micro_batches; });
  add("chunks", "The chunks of the model on a stage; 1 is 1F1B, more are interleaved.",
      [](self_type self) { return self.step.of.chunks; });
  add("boundaries",
      "The boundaries of virtual stages over embedding, layers and head, int64; the cuts.",
      [](self_type self) { return convert::to_array(integers(self.step.of.boundaries)); });
  add("recompute", "'none', 'selective' or 'full'.",
      [](self_type self) { return word(recompute_words, self.step.of.recomputed); });
  add("sharding", "'nothing', 'optimizer', 'gradients' or 'parameters'.",
      [](self_type self) { return word(sharding_words, self.step.of.degrees.sharding); });
  add("norms", "'replicated' or 'split'.",
      [](self_type self) { return word(norm_words, self.step.of.degrees.norms); });
  add("seconds", "The predicted seconds of the step.",
      [](self_type self) { return self.prediction.total(); });
  add("peak_bytes", "The most bytes that a device of each stage needs, int64.",
      [](self_type self) { return peak_bytes_of(self.prediction); });
  add("host_bytes", "The most bytes that a device of each stage offloads, int64.",
      [](self_type self) { return host_bytes_of(self.prediction); });
  type.def_readonly("step", &configuration::step, "The TrainingStep, for predict_step.")
      .def_readonly("prediction", &configuration::prediction, "The StepPrediction.")
      .def_readonly("largest", &configuration::largest,
                    "If packed, the documents of the largest micro-batch, which determines "
                    "peak_bytes, as TrainingStep has them; otherwise None.")
      .def_readonly("token_capacity", &configuration::token_capacity,
                    "The capacity of packed micro-batches in tokens; 0 without packing.")
      .def_readonly("offload_percent", &configuration::offload_percent,
                    "The offloaded share of the kept activations in percent.")
      .def_readonly("padding", &configuration::padding,
                    "The share of the FLOPs of the step that are spent on padding.")
      .def(
          "to_dict", [](configuration const& self) { return to_dict(self); },
          docstrings::PlannedConfiguration_to_dict)
      .def("__repr__", [](configuration const& self) { return to_repr(self); });
  convert::add_pickle_of(type, &configuration::step, &configuration::largest,
                         &configuration::token_capacity, &configuration::offload_percent,
                         &configuration::padding, &configuration::prediction);
}

void define_plan(py::module_& module) {
  py::class_<family> family_type(module, "ConfigurationFamily", docstrings::ConfigurationFamily);
  family_type.def_readonly("choice", &family::choice, "The choice whose value is fixed.")
      .def_readonly("value", &family::value, "The value: a number, or a word.")
      .def_readonly("reason", &family::reason,
                    "'memory', or the part of the step that exceeds the best one by the most.")
      .def_readonly("best", &family::best,
                    "The best configuration with this value; None if none fits into the memory.")
      .def_readonly("min_bytes", &family::min_bytes,
                    "If the reason is 'memory', at least these bytes of a device are needed.")
      .def(
          "to_dict", [](family const& self) { return to_dict(self); },
          docstrings::ConfigurationFamily_to_dict)
      .def("__repr__", [](family const& self) { return to_repr(self); });
  convert::add_pickle_of(family_type, &family::choice, &family::value, &family::reason,
                         &family::best, &family::min_bytes);
  using plan = configuration_plan;
  py::class_<plan> type(module, "ConfigurationPlan", docstrings::ConfigurationPlan);
  type.def_readonly("status", &plan::status, "'solved', 'infeasible' or 'not_found'.")
      .def_readonly("best", &plan::best, "The fastest configuration; None unless solved.")
      .def_readonly("runners_up", &plan::runners_up,
                    "The best configurations with other degrees, the fastest first.")
      .def_readonly("families", &plan::families,
                    "For each other value of a choice its best configuration and why it loses.")
      .def_readonly("lower_bound", &plan::lower_bound,
                    "No configuration that fits has fewer seconds.")
      .def_readonly("proven", &plan::proven,
                    "True if best, runners_up and families are proven to be optimal.")
      .def_readonly("min_bytes", &plan::min_bytes,
                    "If infeasible, at least these bytes of a device are needed.")
      .def_readonly("configurations", &plan::configurations,
                    "The number of configurations of the space.")
      .def_readonly("predictions", &plan::predictions, "The number of steps that were simulated.")
      .def_readonly("flops", &plan::flops, "The FLOPs of a step without recomputation and padding.")
      .def_readonly("devices", &plan::devices, "The number of devices.")
      .def("flops_utilization", &flops_utilization, py::arg("peak_flops_per_gpu_second"),
           docstrings::ConfigurationPlan_flops_utilization)
      .def(
          "to_dict", [](plan const& self) { return to_dict(self); },
          docstrings::ConfigurationPlan_to_dict)
      .def("__repr__", [](plan const& self) { return to_repr(self); });
  convert::add_pickle_of(type, &plan::status, &plan::best, &plan::runners_up, &plan::families,
                         &plan::lower_bound, &plan::proven, &plan::min_bytes, &plan::configurations,
                         &plan::predictions, &plan::flops, &plan::devices);
}

}  // namespace

void define(py::module_& module) {
  define_step(module);
  define_prediction(module);
  define_configuration(module);
  define_plan(module);
  module.def("predict_step", &predict_step, docstrings::predict_step, py::arg("model"),
             py::arg("step"), py::arg("machine"));
  module.def("plan_configuration", &plan_configuration, docstrings::plan_configuration,
             py::arg("model"), py::arg("machine"), py::kw_only(), py::arg("sequences"),
             py::arg("tokens") = 0, py::arg("document_tokens") = 0, py::arg("lengths") = py::none(),
             py::arg("devices"), py::arg("memory_bytes"), py::arg("reserve_bytes") = 0,
             py::arg("tensor_parallel") = py::none(), py::arg("pipeline_parallel") = py::none(),
             py::arg("virtual_pipeline") = py::none(), py::arg("context_parallel") = py::none(),
             py::arg("expert_parallel") = py::none(), py::arg("micro_batch_sizes") = py::none(),
             py::arg("token_capacities") = py::none(), py::arg("recompute") = py::none(),
             py::arg("offload_bytes_per_second") = 0.0, py::arg("host_memory_bytes") = py::none(),
             py::arg("offload_percent") = py::none(), py::arg("sharding") = py::none(),
             py::arg("norms") = py::none(), py::arg("cuts") = py::none(),
             py::arg("precision") = "bf16", py::arg("bytes") = "bf16", py::arg("reduced_bytes") = 2,
             py::arg("gathered_bytes") = 2, py::arg("bucket_bytes") = 500'000'000,
             py::arg("layer_communication") = "blocking",
             py::arg("gradient_communication") = "overlapped", py::arg("runners_up") = 4,
             py::arg("predictions") = 1'000'000);
}

}  // namespace configurations
