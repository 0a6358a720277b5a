#include "vlm_exports.hpp"

#include "pipeline_picture.hpp"
#include "staged_files.hpp"
#include "table.hpp"

#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate.hpp>
#include <omnibal/pipeline/write_trace.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <vector>

namespace examples {

namespace {

using plan_type = omnibal::pipeline_plan<std::int64_t>;

plan_type const& last_plan(planned_scenario const& planned) {
  return planned.plan[omnibal::training_lever::memory].plan;
}

/// The number of layers before the language model.
std::uint32_t tower_layers(omnibal::vision_language_model const& model) {
  std::int64_t count = 0;
  auto const visit = [&](auto const&, std::int64_t layers) { count += layers; };
  model.vision.for_each_layer(visit);
  visit(model.connector, 1);
  return static_cast<std::uint32_t>(count);
}

/// The best plan with a stage that begins with the language model, whichever it is.
plan_type plan_with_border(planned_scenario const& planned, std::uint32_t border) {
  auto const layers = omnibal::shape_costs(planned.plan.balanced_data.batches,
                                           planned.machine.device, planned.cost);
  plan_type best;
  best.status = omnibal::solve_status::infeasible;
  for (std::uint32_t stage = 1; stage < planned.machine.stages; ++stage) {
    auto plan = omnibal::plan_pipeline(
        layers, planned.machine,
        {.micro_batches = planned.assumed.micro_batches,
         .constraints = {.pinned = {{border - 1, stage - 1}, {border, stage}}}});
    if (plan.status != omnibal::solve_status::solved) continue;
    bool const is_better =
        best.status != omnibal::solve_status::solved || plan.step_time < best.step_time;
    if (is_better) best = std::move(plan);
  }
  return best;
}

/// Precondition: a stage begins at the border.
std::string layout_of(plan_type const& plan, std::uint32_t border) {
  std::vector<std::uint32_t> boundaries;
  for (std::uint32_t const boundary : plan.boundaries) {
    if (boundary >= border) boundaries.push_back(boundary - border);
  }
  std::string layout;
  omnibal::write_megatron_layout(boundaries, omnibal::language_model_letters{boundaries.back()},
                                 std::back_inserter(layout));
  return layout;
}

std::size_t stage_of(plan_type const& plan, std::uint32_t layer) {
  auto const after = std::ranges::upper_bound(plan.boundaries, layer);
  return static_cast<std::size_t>(after - plan.boundaries.begin()) - 1;
}

std::string whose_stages(plan_type const& plan, std::uint32_t border) {
  std::size_t const count = stage_of(plan, border);
  return "the language model, on the stages from " + std::to_string(count) +
         " on; the vision tower is on those before";
}

/// The first step of the first rank, as it runs under the plan.
omnibal::simulation<std::int64_t> first_step(planned_scenario const& planned) {
  auto const& best = last_plan(planned);
  auto const& data = planned.plan.balanced_data;
  auto const& device = planned.machine.device;
  auto const batches = data.schedule(0, 0);
  std::vector<std::vector<omnibal::stage_time<>>> times(planned.machine.stages);
  for (std::uint32_t const batch : batches) {
    auto const layers = planned.cost(data.batches[batch]);
    for (std::size_t s = 0; s != times.size(); ++s) {
      auto& time = times[s].emplace_back();
      for (std::size_t l = best.boundaries[s]; l != best.boundaries[s + 1]; ++l) {
        auto const& extra = layers[l].choices[best.choices[l]].extra;
        time.forward += device(layers[l].forward);
        time.backward += device(layers[l].backward) + device(extra);
      }
    }
  }
  omnibal::one_f_one_b const schedule{.stages = times.size(), .micro_batches = batches.size()};
  return omnibal::simulate(schedule, times, std::int64_t{0}, std::int64_t{0},
                           {.timeline = omnibal::timeline_policy::recorded});
}

void write_lists(plan_type const& plan, std::ostream& out) {
  auto const full = static_cast<std::uint32_t>(omnibal::recompute_choice::full);
  auto const lists = omnibal::recompute_lists(plan, full);
  for (std::size_t s = 0; s != lists.size(); ++s) {
    out << "stage " << s << ':';
    for (std::uint32_t const layer : lists[s]) out << ' ' << layer;
    out << '\n';
  }
}

}  // namespace

megatron_export export_to_megatron(planned_scenario const& planned) {
  auto const& best = last_plan(planned);
  if (best.status != omnibal::solve_status::solved) return {"", "none, as no plan fits the memory"};
  std::uint32_t const border = tower_layers(planned.cost.model);
  std::size_t const stage = stage_of(best, border);
  if (best.boundaries[stage] == border)
    return {layout_of(best, border), whose_stages(best, border)};

  std::string const reason =
      "the last plan has none: its stage " + std::to_string(stage) + " has the layers " +
      std::to_string(best.boundaries[stage]) + " to " +
      std::to_string(best.boundaries[stage + 1] - 1) + ", of which those before " +
      std::to_string(border) +
      " belong to the vision tower, and the layout has letters for language models only";
  auto const cut = plan_with_border(planned, border);
  if (cut.status != omnibal::solve_status::solved) {
    return {"", reason + "; no plan with a cut there fits the memory"};
  }
  double const loss = static_cast<double>(cut.step_time) / static_cast<double>(best.step_time) - 1;
  return {layout_of(cut, border), reason + ". With a cut there a step takes " + percent(loss, 1) +
                                      " longer; this is " + whose_stages(cut, border)};
}

void write_plan_files(std::string const& name, planned_scenario const& planned,
                      megatron_export const& megatron, std::filesystem::path const& directory) {
  auto const& best = last_plan(planned);
  if (best.status != omnibal::solve_status::solved) return;
  auto const timeline = first_step(planned).timeline;
  staged_files files;
  auto const path = [&](std::string const& suffix) { return directory / (name + suffix); };
  files.write(path(".trace.json"), [&](std::ostream& out) {
    omnibal::write_trace(timeline, {.process = name}, std::ostreambuf_iterator<char>(out));
  });
  files.write(path(".svg"), [&](std::ostream& out) {
    write_pipeline_picture(scaled(timeline, 1e-9),
                           {"InternVL-Chat " + name + ", one step of a rank", "s"}, out);
  });
  files.write(path(".recompute.txt"), [&](std::ostream& out) { write_lists(best, out); });
  if (!megatron.layout.empty()) {
    files.write(path(".megatron.txt"), [&](std::ostream& out) { out << megatron.layout << '\n'; });
  }
  files.write(path(".plan.json"), [&](std::ostream& out) {
    omnibal::write_plan(best, std::ostreambuf_iterator<char>(out));
  });
  files.commit();
}

}  // namespace examples
