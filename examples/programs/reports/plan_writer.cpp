// SPDX-License-Identifier: Apache-2.0
#include "plan_writer.hpp"

#include "npy.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <ostream>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using indices = std::span<std::uint32_t const>;

/// Of images and tokens, of text of tokens alone.
template <class Amounts>
nlohmann::ordered_json amounts_json(sample_kind kind, Amounts const& of) {
  if (kind == sample_kind::text) return {{"tokens", of[1]}};
  return {{"images", of[0]}, {"tokens", of[1]}};
}

nlohmann::ordered_json fields_json(pack_options const& options) {
  auto const& fields = options.lengths.fields;
  if (options.kind == sample_kind::text) return {{"tokens", fields.tokens}};
  if (options.lengths.size_fields.empty()) {
    return {{"images", fields.images}, {"tokens", fields.tokens}};
  }
  return {{"image_size", options.lengths.size_fields},
          {"tile_size", fields.tiles.size},
          {"max_tiles", fields.tiles.most},
          {"tokens_per_tile", fields.tokens_per_tile},
          {"tokens", fields.tokens}};
}

nlohmann::ordered_json schedule_json(pack_options const& options, measured_steps const& schedule) {
  return {{"epoch", options.epoch},
          {"seed", options.seed},
          {"max_dist_ratio", options.max_dist_ratio},
          {"remainder", to_text(options.remainder)},
          {"steps", schedule.steps.size()},
          {"repeats", repeats(schedule.steps)},
          {"dist_ratio", amounts_json(options.kind, schedule.dist_ratio)},
          {"step_overlap", schedule.overlap}};
}

/// Everything but the arrays.
nlohmann::ordered_json head_json(dataset const& data, pack_options const& options,
                                 omnibal::packing const& result, measured_steps const& schedule) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (source const& one : data.sources) {
    inputs.push_back({{"name", one.name}, {"records", one.records}});
  }
  nlohmann::ordered_json packer{{"name", to_text(options.packer)},
                                {"seed", options.seed},
                                {"improved", options.improvement == improvement_kind::exchanges}};
  if (options.spare_groups != 0) packer["spare_groups"] = options.spare_groups;
  if (options.packer == packer_kind::isf) {
    packer["rounds"] = options.rounds;
    packer["shuffle"] = to_text(options.shuffle);
    packer["keep"] = to_text(options.keep);
    packer["threshold"] = amounts_json(options.kind, options.threshold);
  }
  return {{"format", "omnibal plan"},
          {"format_version", 2},
          {"library_version", library_version()},
          {"inputs", std::move(inputs)},
          {"fields", fields_json(options)},
          {"packer", std::move(packer)},
          {"capacity", amounts_json(options.kind, options.capacity)},
          {"align_tokens", options.align_tokens},
          {"ranks", options.ranks},
          {"schedule", schedule_json(options, schedule)},
          {"report",
           {{"samples", data.samples.size()},
            {"groups", result.groups.size()},
            {"lower_bound", result.report.lower_bound},
            {"oversized", result.oversized.size()},
            {"rounds", result.report.rounds},
            {"item_rounds", result.report.item_rounds},
            {"below_keep", result.report.below_keep}}}};
}

/// A JSON list of numbers. The arrays are most of the plan, and a tree of them would cost many
/// times their size.
void write_list(std::ostream& out, indices values) {
  constexpr std::size_t block = std::size_t{1} << 16;
  constexpr std::size_t longest = 16;
  std::array<char, block> buffer;
  std::size_t used = 0;
  buffer[used++] = '[';
  bool first = true;
  for (std::uint32_t const value : values) {
    if (used + longest > block) {
      out.write(buffer.data(), static_cast<std::streamsize>(used));
      used = 0;
    }
    if (!first) buffer[used++] = ',';
    first = false;
    char* const end = std::to_chars(buffer.data() + used, buffer.data() + block, value).ptr;
    used = static_cast<std::size_t>(end - buffer.data());
  }
  out.write(buffer.data(), static_cast<std::streamsize>(used));
  out << ']';
}

void write_json(std::ostream& out, nlohmann::ordered_json const& head,
                omnibal::packing const& result, measured_steps const& schedule) {
  std::string text = head.dump(2);
  text.resize(text.rfind('}'));
  while (text.back() == '\n') text.pop_back();
  out << text << ",\n  \"groups\": {\n    \"offsets\": ";
  write_list(out, result.groups.offsets());
  out << ",\n    \"items\": ";
  write_list(out, result.groups.items());
  out << "\n  },\n  \"order\": ";
  write_list(out, schedule.steps.cells().items());
  out << ",\n  \"carried\": ";
  write_list(out, schedule.carried);
  out << ",\n  \"left_out\": ";
  write_list(out, schedule.left_out);
  out << ",\n  \"oversized\": ";
  write_list(out, result.oversized);
  out << "\n}\n";
}

void write_array(std::ostream& out, indices values) {
  write_npy(out, values, std::array{values.size()});
}

void write_loads(std::ostream& out, sample_kind kind,
                 std::span<omnibal::resources<2> const> loads) {
  std::size_t const kinds = kind == sample_kind::text ? 1 : 2;
  std::vector<std::int64_t> values;
  values.reserve(kinds * loads.size());
  for (auto const& load : loads) {
    if (kinds == 2) values.push_back(load[0]);
    values.push_back(load[1]);
  }
  write_npy(out, std::span<std::int64_t const>(values), std::array{loads.size(), kinds});
}

}  // namespace

std::vector<std::string> write_plan(staged_files& files, dataset const& data,
                                    pack_options const& options, omnibal::packing const& result,
                                    std::span<omnibal::resources<2> const> loads,
                                    measured_steps const& schedule) {
  std::vector<std::string> names;
  auto const write = [&](std::string const& name, auto const& body) {
    files.write(options.output / name, body);
    names.push_back(name);
  };
  write("offsets.npy", [&](std::ostream& out) { write_array(out, result.groups.offsets()); });
  write("items.npy", [&](std::ostream& out) { write_array(out, result.groups.items()); });
  write("order.npy", [&](std::ostream& out) { write_array(out, schedule.steps.cells().items()); });
  write("left_out.npy", [&](std::ostream& out) { write_array(out, schedule.left_out); });
  write("oversized.npy", [&](std::ostream& out) { write_array(out, result.oversized); });
  write("loads.npy", [&](std::ostream& out) { write_loads(out, options.kind, loads); });
  // The last one marks the plan as complete.
  write("plan.json", [&](std::ostream& out) {
    write_json(out, head_json(data, options, result, schedule), result, schedule);
  });
  return names;
}

}  // namespace examples
