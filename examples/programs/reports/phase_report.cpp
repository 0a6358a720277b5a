// SPDX-License-Identifier: Apache-2.0
#include "phase_report.hpp"

#include "table.hpp"

#include <omnibal/metrics.hpp>

#include <algorithm>
#include <functional>
#include <span>
#include <string>

namespace examples {

namespace {

/// The times of all ranks with the items that lie on them, or that the plan brings there.
std::vector<std::int64_t> loads_of(omnibal::groups_argument items,
                                   std::span<std::int64_t const> times) {
  std::vector<std::int64_t> loads(items.size(), 0);
  for (std::size_t rank = 0; rank != items.size(); ++rank) {
    for (std::uint32_t const item : items[rank]) loads[rank] += times[item];
  }
  return loads;
}

std::vector<std::int64_t> loads_before(omnibal::exchange_plan const& plan,
                                       std::span<std::int64_t const> times) {
  std::vector<std::int64_t> loads(plan.ranks(), 0);
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    for (auto i = plan.home_offsets()[rank]; i != plan.home_offsets()[rank + 1]; ++i) {
      loads[rank] += times[i];
    }
  }
  return loads;
}

double largest_of(std::vector<std::int64_t> const& loads) {
  return static_cast<double>(*std::max_element(loads.begin(), loads.end()));
}

void add_times(omnibal::exchange_plan const& plan, std::span<std::int64_t const> times,
               phase_sums& sums) {
  auto const before = loads_before(plan, times);
  auto const after = loads_of(plan.arrivals(), times);
  sums.waiting_before += omnibal::dist_ratio(before);
  sums.waiting_after += omnibal::dist_ratio(after);
  sums.slowest_before += largest_of(before);
  sums.slowest_after += largest_of(after);
}

/// The plan itself counts nodes as it was told; `bytes_of` takes what it names.
template <class BytesOf>
void add_moved(omnibal::exchange_plan const& plan, std::size_t ranks_per_node,
               BytesOf const& bytes_of, moved_bytes& sum) {
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    for (std::uint32_t const item : plan.arrivals(rank)) {
      std::size_t const from = plan.home_of(item);
      auto const bytes = static_cast<double>(bytes_of(item));
      if (from != rank) sum.across_ranks += bytes;
      if (from / ranks_per_node != rank / ranks_per_node) sum.across_nodes += bytes;
    }
  }
}

std::vector<std::string> row_of(std::string const& name, std::array<moved_bytes, 2> const& moved,
                                double steps) {
  auto const megabytes = [&](double bytes) { return fixed(bytes / steps / 1e6, 2); };
  return {name,
          "",
          "",
          megabytes(moved[0].across_ranks),
          megabytes(moved[0].across_nodes),
          megabytes(moved[1].across_ranks),
          megabytes(moved[1].across_nodes)};
}

}  // namespace

void phase_report::add(batch_measures const& batch, omnibal::orchestration const& blind,
                       omnibal::orchestration const& aware) {
  ++steps_;
  add_times(aware.samples, batch.times, phases_[0]);
  for (std::size_t m = 0; m != modality_count; ++m) {
    add_times(aware.encoders[m].inputs, batch.encoders[m].times, phases_[m + 1]);
  }
  std::size_t placement = 0;
  for (omnibal::orchestration const& plans : {std::cref(blind), std::cref(aware)}) {
    add_moved(
        plans.samples, ranks_per_node_, [&](std::uint32_t i) { return batch.bytes[i]; },
        phases_[0].inputs[placement]);
    for (std::size_t m = 0; m != modality_count; ++m) {
      auto const& encoder = batch.encoders[m];
      auto const& routes = plans.encoders[m];
      add_moved(
          routes.inputs, ranks_per_node_, [&](std::uint32_t i) { return encoder.bytes[i]; },
          phases_[m + 1].inputs[placement]);
      add_moved(
          routes.outputs, ranks_per_node_,
          [&](std::uint32_t slot) {
            return encoder.output_bytes[routes.inputs.arrivals().item(slot)];
          },
          phases_[m + 1].outputs[placement]);
    }
    ++placement;
  }
}

void phase_report::print(std::ostream& out) const {
  auto const steps = static_cast<double>(std::max<std::size_t>(steps_, 1));
  table shown({"phase", "waiting before", "after", "MB moved", "across nodes",
               "node-aware: MB moved", "across nodes"});
  auto const add_phase = [&](std::string const& name, phase_sums const& sums) {
    auto row = row_of(name, sums.inputs, steps);
    row[1] = percent(sums.waiting_before / steps, 1);
    row[2] = percent(sums.waiting_after / steps, 1);
    shown.add(std::move(row));
  };
  for (std::size_t m = 0; m != modality_count; ++m) {
    add_phase(std::string(encoder_names[m]), phases_[m + 1]);
    shown.add(row_of("  its outputs", phases_[m + 1].outputs, steps));
  }
  add_phase("language model", phases_[0]);
  std::array<moved_bytes, 2> total{};
  for (phase_sums const& sums : phases_) {
    for (std::size_t p = 0; p != total.size(); ++p) {
      total[p].across_ranks += sums.inputs[p].across_ranks + sums.outputs[p].across_ranks;
      total[p].across_nodes += sums.inputs[p].across_nodes + sums.outputs[p].across_nodes;
    }
  }
  shown.add_rule();
  shown.add(row_of("all", total, steps));
  shown.print(out);
}

double phase_report::forward_seconds_before() const {
  double nanoseconds = 0;
  for (phase_sums const& sums : phases_) nanoseconds += sums.slowest_before;
  return nanoseconds / 3e9 / static_cast<double>(steps_);
}

double phase_report::forward_seconds_after() const {
  double nanoseconds = 0;
  for (phase_sums const& sums : phases_) nanoseconds += sums.slowest_after;
  return nanoseconds / 3e9 / static_cast<double>(steps_);
}

void print_overhead(phase_report const& report, planning_time const& planning, std::ostream& out) {
  auto const milliseconds = [](double seconds) { return fixed(1e3 * seconds, 2) + " ms"; };
  double const forward = report.forward_seconds_after();
  out << "forward pass of the slowest ranks: " << fixed(report.forward_seconds_before(), 2)
      << " s before, " << fixed(forward, 2) << " s after (modeled)\n";
  out << "planning: " << milliseconds(planning.seconds) << " of a processor for all phases";
  if (planning.collective_seconds > 0) {
    out << ",\n" << milliseconds(planning.collective_seconds) << " with gathering and agreeing";
  }
  double const whole = std::max(planning.collective_seconds, planning.seconds);
  out << ": " << percent(whole / forward, 4) << " of the forward pass\n";
}

}  // namespace examples
