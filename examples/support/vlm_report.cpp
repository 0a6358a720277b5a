#include "vlm_report.hpp"

#include "table.hpp"

#include <omnibal/cost/accelerator.hpp>

namespace examples {

std::array<double, 4> published_days(std::string const& model) {
  if (model == "6+20B") return {61.8, 51.9, 29.0, 21.3};
  if (model == "6+34B") return {75.4, 0, 0, 30.5};
  return {};
}

std::string times_or_dash(double first, double value) {
  return first > 0 && value > 0 ? fixed(first / value, 2) + "x" : "-";
}

std::string gigabytes(std::vector<std::int64_t> const& bytes) {
  std::string result;
  for (std::int64_t const value : bytes) {
    if (!result.empty()) result += ' ';
    result += fixed(static_cast<double>(value) * 1e-9, 0);
  }
  return result;
}

std::string heading_of(planned_scenario const& planned, std::string const& machine) {
  auto const& samples = planned.samples;
  auto const& assumed = planned.assumed;
  return counted(samples.samples.size()) + " samples under " + std::to_string(samples.capacity[0]) +
         " images and " + std::to_string(samples.capacity[1]) + " tokens, " +
         counted(samples.oversized) + " larger ones left out\n" + fixed(assumed.gpus(), 0) +
         " devices " + machine + ": " + std::to_string(assumed.stages) + " stages of " +
         std::to_string(assumed.tensor_ranks) + " tensor-parallel ranks, " +
         std::to_string(assumed.data_ranks) + " data-parallel ranks\n";
}

lever_reference reference_of(planned_scenario const& planned, model_description const& model) {
  return {
      .flops_per_sample = flops_of(planned.plan.balanced_data, model) / planned.samples_of_lever(1),
      .gpu_seconds = planned.gpu_seconds(0),
      .paper_days = published_days(model.name)};
}

std::vector<std::string> lever_cells(std::string const& name, planned_scenario const& planned,
                                     std::size_t lever, lever_reference const& reference) {
  auto const& [plan, estimate] = planned.plan.levers[lever];
  if (plan.status != omnibal::solve_status::solved) {
    return {name, "stage " + std::to_string(plan.stage) + " lacks " +
                      gigabytes({plan.missing_bytes}) + " GB"};
  }
  auto const& assumed = planned.assumed;
  double const seconds = static_cast<double>(estimate.nanoseconds) * 1e-9;
  double const per_sample = planned.gpu_seconds(lever);
  double const utilisation = omnibal::flops_utilisation(
      {.flops = reference.flops_per_sample * planned.samples_of_lever(lever),
       .seconds = seconds,
       .gpus = assumed.gpus(),
       .peak_flops_per_gpu_second = assumed.peak_flops});
  return {name,
          fixed(seconds / static_cast<double>(estimate.steps), 2),
          percent(utilisation, 1),
          percent(estimate.waiting_share, 1),
          fixed(per_sample, 2),
          fixed(planned.gpu_days(lever), 1),
          fixed(reference.gpu_seconds / per_sample, 2) + "x",
          times_or_dash(reference.paper_days[0], reference.paper_days[lever]),
          gigabytes(estimate.peak_bytes)};
}

}  // namespace examples
