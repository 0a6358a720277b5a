// SPDX-License-Identifier: Apache-2.0
#include "machine_file.hpp"

#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "progress.hpp"

#include <cmath>
#include <filesystem>

namespace examples {

namespace {

constexpr double giga = 1e9;
constexpr double tera = 1e12;

/// A number of a unit, as a whole number.
std::int64_t in_unit(json_fields const& given, char const* name, double unit, double least) {
  return std::llround(given.number(name, least, 1e6) * unit);
}

/// A rate that takes no time where it is left out.
std::int64_t rate(json_fields const& given, char const* name) {
  return given.has(name) ? in_unit(given, name, giga, 1e-6) : machine_description::no_time;
}

machine_description read_machine_file(std::string const& path) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  auto const document = parse_json(text.name(), text.view());
  json_fields const given(path, "", document);
  given.allow({"name", "memory_gb", "reserve_gb", "peak_teraflops", "teraflops",
               "memory_gb_per_second", "node_link_gb_per_second", "link_gb_per_second", "ranks",
               "ranks_per_node"});
  constexpr std::int64_t max_ranks = std::int64_t{1} << 20;
  machine_description machine;
  machine.name =
      given.has("name") ? given.text("name") : std::filesystem::path(path).stem().string();
  machine.memory_bytes = in_unit(given, "memory_gb", giga, 1e-3);
  machine.reserve_bytes =
      given.has("reserve_gb") ? in_unit(given, "reserve_gb", giga, 0) : std::int64_t{4'000'000'000};
  if (machine.reserve_bytes >= machine.memory_bytes) {
    fail({path}, "the reserve of " + std::to_string(machine.reserve_bytes) +
                     " bytes leaves nothing of the memory of " +
                     std::to_string(machine.memory_bytes));
  }
  machine.peak_flops = in_unit(given, "peak_teraflops", tera, 1e-3);
  machine.flops =
      given.has("teraflops") ? in_unit(given, "teraflops", tera, 1e-3) : machine.peak_flops / 2;
  if (machine.flops > machine.peak_flops) {
    given.refuse("teraflops", "must be at most \"peak_teraflops\"");
  }
  machine.bytes = rate(given, "memory_gb_per_second");
  machine.node_link_bytes = rate(given, "node_link_gb_per_second");
  machine.link_bytes = rate(given, "link_gb_per_second");
  machine.ranks = given.integer_or("ranks", 0, 1, max_ranks);
  machine.ranks_per_node = given.integer_or("ranks_per_node", 8, 1, max_ranks);
  return machine;
}

}  // namespace

std::vector<machine_description> const& known_machines() {
  // What products reach and links give is taken to be that, not measured.
  static std::vector<machine_description> const machines = [] {
    machine_description const a100{.name = "a100-80gb",
                                   .memory_bytes = 80'000'000'000,
                                   .reserve_bytes = 4'000'000'000,
                                   .peak_flops = 312'000'000'000'000,
                                   .flops = 156'000'000'000'000,
                                   .bytes = 1'500'000'000'000,
                                   .node_link_bytes = 100'000'000'000,
                                   .link_bytes = 25'000'000'000};
    machine_description small = a100;
    small.name = "a100-40gb";
    small.memory_bytes = 40'000'000'000;
    machine_description products = a100;
    products.name = "a100-80gb-products";
    products.bytes = machine_description::no_time;
    products.node_link_bytes = machine_description::no_time;
    products.link_bytes = machine_description::no_time;
    machine_description const h100{.name = "h100-80gb",
                                   .memory_bytes = 80'000'000'000,
                                   .reserve_bytes = 4'000'000'000,
                                   .peak_flops = 989'000'000'000'000,
                                   .flops = 400'000'000'000'000,
                                   .bytes = 3'350'000'000'000,
                                   .node_link_bytes = 200'000'000'000,
                                   .link_bytes = 50'000'000'000};
    return std::vector{a100, small, products, h100};
  }();
  return machines;
}

machine_description find_machine(std::string const& given) {
  std::vector<std::string> names;
  for (machine_description const& machine : known_machines()) {
    if (machine.name == given) return machine;
    names.push_back(machine.name);
  }
  if (given.ends_with(".json") || given.find('/') != std::string::npos) {
    return read_machine_file(given);
  }
  throw input_error("there is no machine \"" + given + "\"" + hint_at(given, names, "machines"));
}

}  // namespace examples
