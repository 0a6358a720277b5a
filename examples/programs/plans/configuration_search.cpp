// SPDX-License-Identifier: Apache-2.0
#include "configuration_search.hpp"

#include "progress.hpp"
#include "table.hpp"

#include <omnibal/plan/plan_configuration.hpp>

#include <limits>
#include <stdexcept>
#include <utility>

namespace examples {

namespace {

/// The layers of all parts in the order of a pipeline, each as its part has it.
struct configured_model {
  model_description const& model;

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    model.for_each_part(visit);
  }
};

omnibal::configuration_plan planned(configure_options const& options,
                                    omnibal::step_data const& data, omnibal::machine const& on,
                                    omnibal::plan_configuration_options const& space) {
  return omnibal::plan_configuration(configured_model{options.model}, on, data, space);
}

std::string in_gigabytes(std::int64_t bytes) {
  return fixed(static_cast<double>(bytes) * 1e-9, 1) + " GB";
}

/// The best configurations on machines with more memory or faster links.
std::vector<changed_machine> changed_machines(configure_options const& options,
                                              omnibal::step_data const& data) {
  std::vector<changed_machine> result;
  auto const add = [&](char const* change, omnibal::machine const& on, std::int64_t memory) {
    auto space = options.space;
    space.memory_bytes = memory;
    space.runners_up = 0;
    result.push_back({change, planned(options, data, on, space)});
  };
  std::int64_t const memory = options.space.memory_bytes;
  add("twice the memory", options.machine.on, 2 * memory);
  auto faster = options.machine.on;
  faster.node_bytes_per_second *= 2;
  faster.exchange_bytes_per_second *= 2;
  add("twice the links within a node", faster, memory);
  faster = options.machine.on;
  faster.network_bytes_per_second *= 2;
  add("twice the network between nodes", faster, memory);
  return result;
}

}  // namespace

omnibal::step_data step_data_of(configure_options const& options) {
  omnibal::step_data data{.sequences = options.batch};
  bool const has_tower = options.model.vision.has_value();
  if (options.lengths.files.empty()) {
    if (has_tower) {
      throw std::runtime_error("--model: " + options.model.name +
                               " has a vision tower, which requires length files with images");
    }
    data.tokens = options.tokens;
    return data;
  }
  progress hidden(visibility::hidden);
  dataset const read = read_lengths(options.lengths, hidden);
  if (has_tower && read.kind == sample_kind::text) {
    throw std::runtime_error("the length files have no images for the vision tower of " +
                             options.model.name);
  }
  for (sample const& one : read.samples) {
    data.lengths.push_back(one.tokens);
    if (has_tower) data.tiles.push_back(one.images);
  }
  return data;
}

configuration_results search_configurations(configure_options const& options) {
  auto const data = step_data_of(options);
  configuration_results result;
  result.best = planned(options, data, options.machine.on, options.space);
  if (result.best.status != omnibal::solve_status::solved) {
    std::int64_t const room = options.space.memory_bytes - options.space.reserve_bytes;
    if (result.best.min_bytes <= room) {
      throw std::runtime_error("no configuration fits into " +
                               in_gigabytes(options.space.host_memory_bytes) +
                               " of the host for a device");
    }
    throw std::runtime_error("no configuration fits into " + in_gigabytes(room) +
                             " of a device; at least " + in_gigabytes(result.best.min_bytes) +
                             " are needed");
  }
  double tokens = static_cast<double>(data.tokens);
  if (!data.lengths.empty()) {
    tokens = 0;
    for (std::int64_t const length : data.lengths) tokens += static_cast<double>(length);
    tokens /= static_cast<double>(data.lengths.size());
  }
  result.tokens = tokens * static_cast<double>(options.batch);
  if (options.compared) {
    auto space = *options.compared;
    space.memory_bytes = std::numeric_limits<std::int64_t>::max();
    space.host_memory_bytes = space.memory_bytes;
    space.reserve_bytes = 0;
    result.compared = planned(options, data, options.machine.on, space);
  }
  if (options.flags_for == trainer::none) result.changes = changed_machines(options, data);
  return result;
}

}  // namespace examples
