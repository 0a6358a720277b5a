// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The options of models, machines and ranks that several programs have. For the sources that parse
/// a command line.

#include "machine_file.hpp"
#include "model_file.hpp"
#include "model_report.hpp"
#include "option_checks.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

inline constexpr std::int64_t giga = 1'000'000'000;

/// A machine as typed: a name or a file, and what is another number than there.
struct machine_words {
  std::string name;
  std::optional<std::int64_t> memory_gigabytes{};
  std::optional<std::int64_t> teraflops{};
  std::optional<std::int64_t> link_gigabytes{};
};

template <class Named>
std::string names_of(std::vector<Named> const& known) {
  std::vector<std::string> names;
  for (auto const& one : known) names.push_back(one.name);
  return joined(names);
}

/// What a model may be; behind what becomes of the model.
inline std::string model_words() {
  return " A name, a file (docs/reference/models.md), the config.json of a public model or its "
         "folder, or TOWER+LANGUAGE, the towers of two of these. Names: " +
         names_of(known_models());
}

/// `what` is what becomes of the model, a sentence.
inline CLI::Option* add_model_option(CLI::App& group, std::string& model, std::string const& what) {
  return group.add_option("--model", model, what + model_words())
      ->type_name("NAME|FILE")
      ->capture_default_str();
}

inline CLI::Option* add_machine_option(CLI::App& group, machine_words& typed) {
  return group
      .add_option("--machine", typed.name,
                  "Compute times and memory for this machine. A name, or a file "
                  "(docs/reference/models.md). Names: " +
                      names_of(known_machines()))
      ->type_name("NAME|FILE")
      ->capture_default_str();
}

inline CLI::Option* add_teraflops_option(CLI::App& group, machine_words& typed) {
  return group
      .add_option("--teraflops", typed.teraflops,
                  "Assume that a device reaches this speed. Default: the speed of the machine")
      ->type_name("TFLOP/s")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
}

inline CLI::Option* add_memory_option(CLI::App& group, machine_words& typed) {
  return group
      .add_option("--memory", typed.memory_gigabytes,
                  "Assume this memory of a device. Default: the memory of the machine")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
}

inline CLI::Option* add_link_option(CLI::App& group, machine_words& typed) {
  return group
      .add_option("--link", typed.link_gigabytes,
                  "Assume this bandwidth between two stages. Default: the bandwidth of the machine")
      ->type_name("GB/s")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
}

/// The machine that was typed. Errors: those of `find_machine`, with the name of the option.
inline machine_description chosen_machine(machine_words const& typed) {
  machine_description machine;
  try {
    machine = find_machine(typed.name);
  } catch (std::exception const& error) {
    throw std::runtime_error("--machine: " + std::string(error.what()));
  }
  if (typed.memory_gigabytes) machine.memory_bytes = giga * *typed.memory_gigabytes;
  if (typed.teraflops) machine.flops = 1000 * giga * *typed.teraflops;
  if (typed.link_gigabytes) machine.link_bytes = giga * *typed.link_gigabytes;
  return machine;
}

/// Whose rules read public configurations.
inline CLI::Option* add_family_option(CLI::App& group, std::string& family) {
  return group
      .add_option("--as", family,
                  "Read public configurations by the rules of this family. Fields that these rules "
                  "do not have are refused. Default: the family of model_type "
                  "(docs/reference/models.md)")
      ->type_name("FAMILY");
}

inline CLI::Option* add_describe_option(CLI::App& group, bool& describes) {
  return group.add_flag("--describe-model", describes,
                        "Print the layers of the model as they were understood, and do nothing "
                        "else");
}

/// The model that was typed. Errors: those of `find_model`, with the name of the option.
inline model_description chosen_model(std::string const& typed, model_parts needed,
                                      std::string const& family) {
  try {
    return find_model(typed, needed, family);
  } catch (std::exception const& error) {
    throw std::runtime_error("--model: " + std::string(error.what()));
  }
}

/// Prints the layers of the models that were typed. Errors: as `chosen_model`.
inline void print_models(std::vector<std::string> const& typed, std::string const& family) {
  constexpr std::int64_t usual_length = 4096;
  for (std::string const& name : typed) {
    auto const model = chosen_model(name, model_parts::any, family);
    std::cout << model.name << '\n';
    print_layers(std::cout, model, usual_length);
  }
}

/// Ranks that work together, as typed.
struct rank_words {
  std::int64_t tensor = 2;
  std::int64_t data = 8;
  std::int64_t expert = 1;
};

inline void add_rank_options(CLI::App& group, rank_words& typed) {
  group.add_option("--tensor", typed.tensor, "Set the number of tensor-parallel ranks of a stage")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 10))
      ->capture_default_str();
  group
      .add_option("--data", typed.data,
                  "Set the number of data-parallel ranks, over which the optimizer is sharded")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
  group
      .add_option("--expert", typed.expert,
                  "Shard the experts over this number of the data-parallel ranks")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
}

/// Errors: `std::runtime_error` if the data-parallel ranks cannot share out experts, or if no model
/// has any.
inline void check_ranks(rank_words const& typed, std::vector<model_description> const& models) {
  if (typed.data % typed.expert != 0) {
    throw std::runtime_error("--expert: is " + std::to_string(typed.expert) +
                             ", must divide the data-parallel ranks, " +
                             std::to_string(typed.data));
  }
  bool const has_experts = std::ranges::any_of(models, [](model_description const& model) {
    return model.language && std::ranges::any_of(model.language->runs, [](auto const& run) {
             return run.layer.experts.routed != 0;
           });
  });
  if (typed.expert != 1 && !has_experts) {
    throw std::runtime_error("--expert: is " + std::to_string(typed.expert) +
                             ", but no model has experts");
  }
}

/// Without a number typed, as many data-parallel ranks as the machine has for such stages. Errors:
/// `std::runtime_error` where it has no whole number of them.
inline void fit_ranks(CLI::App const& app, machine_description const& machine, std::int64_t stages,
                      rank_words& typed) {
  if (machine.ranks != 0 && app.count("--data") == 0) {
    std::int64_t const of_replica = stages * typed.tensor;
    if (machine.ranks % of_replica != 0) {
      throw std::runtime_error("--machine: " + machine.name + " has " +
                               std::to_string(machine.ranks) + " ranks, no multiple of " +
                               std::to_string(stages) + " stages of " +
                               std::to_string(typed.tensor) + " ranks");
    }
    typed.data = machine.ranks / of_replica;
  }
}

}  // namespace examples
