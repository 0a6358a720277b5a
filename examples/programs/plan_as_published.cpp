// SPDX-License-Identifier: Apache-2.0
/// \file
/// Plans the training of models as OmniBal was published, beside this library's own levers:
/// `plan_as_published --help`. Its assumptions are those of plan_vlm.

#include "models/model_file.hpp"
#include "models/vlm_layers.hpp"
#include "options/vlm_options.hpp"
#include "plans/measure_command.hpp"
#include "plans/published_plan.hpp"
#include "plans/vlm_scenarios.hpp"
#include "readers/dataset.hpp"
#include "reports/staged_files.hpp"
#include "reports/table.hpp"
#include "reports/vlm_exports.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace examples;

/// The layers with which stages begin, but for the first.
std::string cuts_text(std::span<std::uint32_t const> boundaries) {
  std::string result;
  for (std::uint32_t const layer : boundaries.subspan(1, boundaries.size() - 2)) {
    result += (result.empty() ? "" : " ") + std::to_string(layer);
  }
  return result;
}

/// A row with what a micro-batch sends before its last cell.
void add_row(table& rows, std::string const& name, planned_scenario const& planned,
             std::size_t lever, lever_reference const& reference, layer_means const& means) {
  auto cells = lever_cells(name, planned, lever, reference);
  auto const& plan = planned.plan.levers[lever].plan;
  if (plan.status == omnibal::solve_status::solved) {
    auto const sent = static_cast<double>(sent_bytes(means, plan.boundaries));
    cells.insert(cells.end() - 1, fixed(sent * 1e-6, 1));
  }
  rows.add(std::move(cells));
}

void print_levers(model_description const& model, planned_scenario const& library,
                  published_plan const& published) {
  constexpr std::array levers{"+ data", "+ model", "+ memory"};
  auto const means_in = [&](vlm_data const& data) {
    return means_of(data, library.cost, library.machine.device);
  };
  std::vector<std::string> header{model.name};
  header.insert(header.end(), lever_columns.begin(), lever_columns.end());
  header.insert(header.end() - 1, "MB sent");
  table rows(header);
  auto const reference = reference_of(library, model);
  add_row(rows, "random, by parameters", library, 0, reference, means_in(library.plan.first_data));
  rows.add_rule();
  for (std::size_t lever = 1; lever <= levers.size(); ++lever) {
    add_row(rows, std::string("as published ") + levers[lever - 1], published.scenario, lever,
            reference, published.means);
  }
  rows.add_rule();
  auto const means = means_in(library.plan.balanced_data);
  for (std::size_t lever = 1; lever <= levers.size(); ++lever) {
    add_row(rows, std::string("this library ") + levers[lever - 1], library, lever, reference,
            means);
  }
  rows.print(std::cout);
}

void print_candidates(published_plan const& published) {
  auto const& search = published.search;
  std::cout << '\n'
            << counted(published.groups) << " groups by sampling and filtering, "
            << counted(published.below_keep) << " below the keep rule\n\n";
  table rows({"cuts by score", "score", "s/step", ""});
  for (std::size_t i = 0; i != search.candidates.size(); ++i) {
    auto const& one = search.candidates[i];
    std::string remark = one.boundaries == published.anchor ? "anchor" : "";
    if (i == search.best) remark += remark.empty() ? "fastest" : ", fastest";
    rows.add({cuts_text(one.boundaries), fixed(1e4 * one.score, 2) + "e-4", fixed(one.measured, 3),
              remark});
  }
  rows.print(std::cout);
}

void print_readings(published_plan const& published) {
  auto const& readings = published.readings;
  if (readings.kinds.empty()) return;
  auto const in_gigabytes = [](std::int64_t bytes) {
    return fixed(static_cast<double>(bytes) * 1e-9, 2);
  };
  auto const& plan = published.scenario.plan[omnibal::training_lever::memory].plan;
  auto const kinds = layer_kinds(published.scenario.cost.model);
  table rows({"stage", "GB left", "kind read", "GB left with one", "vision layers kept",
              "language layers kept"});
  for (std::size_t s = 0; s != readings.kinds.size(); ++s) {
    std::array<std::size_t, tower_kinds.size()> kept{};
    std::array<std::size_t, tower_kinds.size()> all{};
    for (std::size_t l = plan.boundaries[s]; l != plan.boundaries[s + 1]; ++l) {
      for (std::size_t kind = 0; kind != tower_kinds.size(); ++kind) {
        if (kinds[l] != tower_kinds[kind]) continue;
        ++all[kind];
        kept[kind] += plan.choices[l] == 0 ? 1u : 0u;
      }
    }
    auto const of = [&](std::size_t kind) {
      return std::to_string(kept[kind]) + " of " + std::to_string(all[kind]);
    };
    rows.add({std::to_string(s), in_gigabytes(readings.free_bytes[s]),
              std::string(tower_kinds[readings.kinds[s]]), in_gigabytes(readings.free_with_one[s]),
              of(0), of(1)});
  }
  std::cout << '\n';
  rows.print(std::cout);
  for (std::size_t kind = 0; kind != tower_kinds.size(); ++kind) {
    if (!readings.layer_bytes[kind]) continue;
    std::cout << "A " << tower_kinds[kind] << " that keeps everything takes "
              << fixed(static_cast<double>(*readings.layer_bytes[kind]) * 1e-6, 0)
              << " MB more for each micro-batch in flight\n";
  }
  if (readings.taken_back != 0) {
    std::cout << readings.taken_back
              << " layers recompute again, as the readings promised more than there is\n";
  }
}

void run(published_options const& options) {
  vlm_options const& given = options.common;
  dataset const data = lengths_of(given);
  staged_files files;
  cut_seconds measure;
  if (!options.command.empty()) {
    measure = [&](std::span<std::uint32_t const> boundaries) {
      return measure_by_command(options.command, boundaries);
    };
  }
  for (model_description const& model : given.models) {
    dataset const own = lengths_for(data, model);
    auto const library = plan_scenario(own, given.scenario, model, given.seed,
                                       profile_of(given, model, given.scenario));
    if (&model == &given.models.front()) {
      std::cout << heading_of(library, given.machine_name) << "\n";
    }
    std::cout << remark_on(data, own) << clips_text(library);
    auto const published = plan_as_published(library, options.method, given.seed, measure);
    print_levers(model, library, published);
    print_candidates(published);
    print_readings(published);
    std::cout << '\n';
    if (given.output.empty()) continue;
    write_plan_files(files, model.name + "-published", published.scenario, {}, {own, given.seed},
                     given.output);
  }
  if (!given.output.empty()) std::cout << "Plan: " << given.output.string() << '\n';
  std::cout.flush();
  if (!std::cout) throw std::runtime_error("cannot write to the standard output");
  files.commit();
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const given = parse_published(count, words);
    if (given) run(*given);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "plan_as_published: error: " << error.what() << '\n';
    return 1;
  }
}
