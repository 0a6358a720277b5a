#include "measured_layers.hpp"

#include "csv_records.hpp"
#include "file_text.hpp"
#include "input_error.hpp"
#include "progress.hpp"

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

std::int64_t parse_milliseconds(position const& where, std::string_view field,
                                std::string_view text) {
  constexpr double most = 1e9;
  double value = 0;
  char const* const last = text.data() + text.size();
  auto const [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last || !(value >= 0 && value <= most)) {
    fail_field(where, field, text, "a decimal number of milliseconds from 0 to 10^9");
  }
  return std::llround(value * 1e6);
}

}  // namespace

void use_measured_times(std::filesystem::path const& path, std::span<vlm_layer> layers) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  std::vector<vlm_layer> result(layers.begin(), layers.end());
  std::vector<bool> is_measured(layers.size());
  bool has_records = false;
  auto const take = [&](position const& where, std::array<char*, 3> const& values) {
    has_records = true;
    layer_run const run = parse_layers(where, values[0], layers.size());
    std::int64_t const time = parse_milliseconds(where, "forward_ms", values[1]) +
                              parse_milliseconds(where, "backward_ms", values[2]);
    for (std::size_t l = run.first; l <= run.last; ++l) {
      if (is_measured[l]) fail(where, "layer " + std::to_string(l) + " occurs twice");
      is_measured[l] = true;
      result[l].nanoseconds = time;
    }
  };
  for_each_csv_record(text, take, "layer", "forward_ms", "backward_ms");
  if (!has_records) fail({text.name()}, "has no records");
  if (std::ranges::all_of(result, [](vlm_layer const& one) { return one.nanoseconds == 0; })) {
    fail({text.name()}, "all layers take no time");
  }
  std::ranges::copy(result, layers.begin());
}

}  // namespace examples
