// SPDX-License-Identifier: Apache-2.0
#include "measured_layers.hpp"

#include "csv_records.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "progress.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace examples {

namespace {

struct layer_run {
  std::size_t first;
  std::size_t last;
};

[[noreturn]] void fail_field(position const& where, std::string_view field, std::string_view text,
                             std::string_view rule) {
  fail(where, "field \"" + std::string(field) + "\" is \"" + std::string(text.substr(0, 60)) +
                  "\", must be " + std::string(rule));
}

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t value = 0;
  char const* const last = text.data() + text.size();
  auto const [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

layer_run parse_layers(position const& where, std::string_view text, std::size_t count) {
  std::size_t const dash = text.find('-');
  auto const first = whole_number(text.substr(0, dash));
  auto const last = dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= count) {
    fail_field(where, "layer", text,
               "a number from 0 to " + std::to_string(count - 1) + ", or a run such as 1-45");
  }
  return {*first, *last};
}

/// A decimal number of `unit`, such as "milliseconds", of which one is `parts`.
std::int64_t parse_decimal(position const& where, std::string_view field, std::string_view text,
                           std::string_view unit) {
  constexpr double most = 1e9;
  constexpr double parts = 1e6;
  double value = 0;
  char const* const last = text.data() + text.size();
  auto const [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || !(value >= 0 && value <= most)) {
    fail_field(where, field, text, "a decimal number of " + std::string(unit) + " from 0 to 10^9");
  }
  return std::llround(value * parts);
}

/// Reads a column of bytes where the file has it.
void read_bytes(file_text const& text, char const* column,
                std::optional<std::int64_t> measured_layer::*bytes, measured_layers& result) {
  auto const names = column_names(text, ',');
  if (std::ranges::find(names, column) == names.end()) return;
  auto const take = [&](position const& where, std::array<std::string_view, 2> const& values) {
    layer_run const run = parse_layers(where, values[0], result.size());
    std::int64_t const parsed = parse_decimal(where, column, values[1], "megabytes");
    for (std::size_t l = run.first; l <= run.last; ++l) (*result[l]).*bytes = parsed;
  };
  for_each_csv_record(text, ',', take, "layer", column);
}

std::int64_t scaled(std::int64_t value, double factor) {
  return factor == 1 ? value : std::llround(static_cast<double>(value) * factor);
}

void scale(omnibal::layer_work& given, double factor, double flops) {
  given.flops = scaled(given.flops, factor) + std::llround(flops);
  given.moved_bytes = scaled(given.moved_bytes, factor);
}

/// What `measured` is of `modeled`; the rest, where that is nothing, is `for_each` of `count`.
struct share {
  double factor = 1;
  double of_each = 0;
};
share share_of(std::int64_t measured, std::int64_t modeled, double flops, std::int64_t count) {
  if (modeled > 0) return {static_cast<double>(measured) / static_cast<double>(modeled), 0};
  double const all = static_cast<double>(measured) * 1e-9 * flops;
  return {1, all / static_cast<double>(std::max<std::int64_t>(count, 1))};
}

/// Refuses a column that would be ignored.
void check_columns(file_text const& text) {
  constexpr std::array<std::string_view, 5> known{"layer", "forward_ms", "backward_ms", "kept_mb",
                                                  "state_mb"};
  for (std::string const& name : column_names(text, ',')) {
    if (std::ranges::find(known, name) != known.end()) continue;
    fail({text.name()}, "field \"" + name.substr(0, 60) +
                            "\" is not understood; the fields are \"layer\", \"forward_ms\", "
                            "\"backward_ms\", \"kept_mb\", \"state_mb\"");
  }
}

}  // namespace

measured_layers read_measured_layers(std::filesystem::path const& path, std::size_t layers) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  measured_layers result(layers);
  bool has_records = false;
  auto const take = [&](position const& where, std::array<std::string_view, 3> const& values) {
    has_records = true;
    layer_run const run = parse_layers(where, values[0], layers);
    measured_layer const measured{
        .forward_nanoseconds = parse_decimal(where, "forward_ms", values[1], "milliseconds"),
        .backward_nanoseconds = parse_decimal(where, "backward_ms", values[2], "milliseconds")};
    for (std::size_t l = run.first; l <= run.last; ++l) {
      if (result[l]) fail(where, "layer " + std::to_string(l) + " occurs twice");
      result[l] = measured;
    }
  };
  for_each_csv_record(text, ',', take, "layer", "forward_ms", "backward_ms");
  if (!has_records) fail({text.name()}, "has no records");
  check_columns(text);
  read_bytes(text, "kept_mb", &measured_layer::kept_bytes, result);
  read_bytes(text, "state_mb", &measured_layer::state_bytes, result);
  bool const takes_nothing = std::ranges::all_of(result, [](auto const& one) {
    return one && one->forward_nanoseconds + one->backward_nanoseconds == 0;
  });
  if (takes_nothing) fail({text.name()}, "all layers take no time");
  return result;
}

void use_measured_layers(std::filesystem::path const& path, std::span<vlm_layer> layers) {
  auto const measured = read_measured_layers(path, layers.size());
  for (std::size_t l = 0; l != layers.size(); ++l) {
    if (!measured[l]) continue;
    layers[l].nanoseconds = measured[l]->forward_nanoseconds + measured[l]->backward_nanoseconds;
    layers[l].kept_bytes = measured[l]->kept_bytes.value_or(layers[l].kept_bytes);
    layers[l].state_bytes = measured[l]->state_bytes.value_or(layers[l].state_bytes);
  }
}

std::int64_t reached_flops(std::filesystem::path const& path, model_description const& model,
                           measured_part part, omnibal::micro_batch_work const& batch) {
  auto const costs = omnibal::layer_costs(model, batch);
  auto const measured = read_measured_layers(path, costs.size());
  auto const kinds = layer_kinds(model);
  std::size_t const border = first_language_layer(kinds);
  bool const is_tower = part == measured_part::tower;
  double flops = 0;
  double seconds = 0;
  for (std::size_t l = is_tower ? 0 : border; l != (is_tower ? border : costs.size()); ++l) {
    if (!measured[l]) continue;
    flops += static_cast<double>(costs[l].flops());
    seconds += 1e-9 * static_cast<double>(measured[l]->forward_nanoseconds +
                                          measured[l]->backward_nanoseconds);
  }
  if (flops == 0 || seconds == 0) {
    fail({path.string()}, std::string("has no times of layers of the ") +
                              (is_tower ? "vision tower" : "language model") + ", which are " +
                              std::to_string(is_tower ? 0 : border) + " to " +
                              std::to_string((is_tower ? border : costs.size()) - 1));
  }
  return std::llround(flops / seconds);
}

layer_profile::layer_profile(measured_layers measured, omnibal::micro_batch_work const& batch,
                             std::span<omnibal::layer_cost const> modeled,
                             omnibal::device_model const& device)
    : measured_(std::move(measured)), batch_(batch), corrections_(modeled.size()) {
  auto const flops = static_cast<double>(device.flops_per_second);
  std::int64_t const tokens = batch.documents.tokens;
  for (std::size_t l = 0; l != modeled.size(); ++l) {
    if (!measured_[l]) continue;
    measured_layer const& one = *measured_[l];
    auto const forward =
        share_of(one.forward_nanoseconds, device(modeled[l].forward), flops, tokens);
    auto const backward =
        share_of(one.backward_nanoseconds, device(modeled[l].backward), flops, tokens);
    std::int64_t const kept = modeled[l].choices[0].kept_bytes;
    corrections_[l] = {.forward = forward.factor,
                       .backward = backward.factor,
                       .forward_of_token = forward.of_each,
                       .backward_of_token = backward.of_each,
                       .kept = one.kept_bytes && kept > 0 ? static_cast<double>(*one.kept_bytes) /
                                                                static_cast<double>(kept)
                                                          : 1};
  }
}

void layer_profile::correct(omnibal::micro_batch_work const& batch,
                            std::span<omnibal::layer_cost> costs) const {
  auto const tokens = static_cast<double>(batch.documents.tokens);
  for (std::size_t l = 0; l != corrections_.size(); ++l) {
    if (!measured_[l]) continue;
    correction const& by = corrections_[l];
    omnibal::layer_cost& cost = costs[l];
    scale(cost.forward, by.forward, by.forward_of_token * tokens);
    scale(cost.backward, by.backward, by.backward_of_token * tokens);
    for (auto const choice : {omnibal::recompute_choice::none, omnibal::recompute_choice::selective,
                              omnibal::recompute_choice::full}) {
      auto& chosen = cost.choices[static_cast<std::size_t>(choice)];
      scale(chosen.extra, by.forward, 0);
      if (choice != omnibal::recompute_choice::full) {
        chosen.kept_bytes = scaled(chosen.kept_bytes, by.kept);
      }
    }
    if (!measured_[l]->state_bytes) continue;
    cost.parameter_bytes = *measured_[l]->state_bytes;
    cost.gradient_bytes = 0;
    cost.optimizer_bytes = 0;
  }
}

}  // namespace examples
