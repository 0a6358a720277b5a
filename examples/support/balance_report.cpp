#include "balance_report.hpp"

#include "table.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace examples {

void print_report(pack_options const& options, omnibal::packing const& result,
                  batch_figures const& before, batch_figures const& after,
                  phase_seconds const& seconds, std::ostream& out) {
  std::string const none = "-";
  auto const& report = result.report;
  bool const has_keep_rule = options.packer == packer_kind::isf;
  auto const ratio = [](double value) { return fixed(value, 4); };
  auto const fill = [](double share) { return percent(share, 1); };

  table rows({"", "before", "after"});
  bool const is_improved = options.improvement == improvement_kind::exchanges;
  rows.add({"", "random batches", to_text(options.packer) + (is_improved ? ", improved" : "")});
  rows.add_rule();
  rows.add({"groups", counted(before.batches), counted(after.batches)});
  rows.add({"lower bound", none, counted(report.lower_bound)});
  rows.add(
      {"samples per group", fixed(before.samples_per_batch, 2), fixed(after.samples_per_batch, 2)});
  rows.add({"groups over capacity", counted(before.over_capacity), counted(after.over_capacity)});
  rows.add({"fill, images", fill(before.fill[0]), fill(after.fill[0])});
  rows.add({"fill, tokens", fill(before.fill[1]), fill(after.fill[1])});
  rows.add({"pad ratio", ratio(before.pad_ratio), ratio(after.pad_ratio)});
  rows.add({"dist ratio, images", ratio(before.dist_ratio[0]), ratio(after.dist_ratio[0])});
  rows.add({"dist ratio, tokens", ratio(before.dist_ratio[1]), ratio(after.dist_ratio[1])});
  rows.add_rule();
  rows.add({"oversized samples", none, counted(result.oversized.size())});
  rows.add({"groups below keep rule", none, has_keep_rule ? counted(report.below_keep) : none});
  rows.add({"rounds", none, counted(report.rounds)});
  rows.add({"seconds reading", none, fixed(seconds.reading, 3)});
  if (options.target_batch > 0) {
    rows.add({"seconds choosing", none, fixed(seconds.choosing, 3)});
  }
  rows.add({"seconds packing", none, fixed(seconds.packing, 3)});
  rows.add({"seconds writing", none, fixed(seconds.writing, 3)});
  rows.print(out);

  out << "\nCapacity: " << options.capacity[0] << " images and " << options.capacity[1]
      << " tokens per group. Ratios over steps of " << options.ranks << " ranks, 0 is best.\n"
      << "Before: the samples of the groups in random order, padded to the longest of a batch.\n";
}

void print_schedule(pack_options const& options, measured_steps const& random,
                    measured_steps const& scheduled, phase_seconds const& seconds,
                    std::ostream& out) {
  table rows({"steps", "random order", "scheduled"});
  auto const add = [&](std::string name, auto const& cell) {
    rows.add({std::move(name), cell(random), cell(scheduled)});
  };
  auto const waiting = [](std::size_t kind) {
    return [kind](measured_steps const& one) { return fixed(one.dist_ratio[kind], 4); };
  };
  auto const mix = [](std::size_t kind) {
    return [kind](measured_steps const& one) { return fixed(one.mix[kind], 2); };
  };
  rows.add_rule();
  add("number of steps", [](measured_steps const& one) { return counted(one.steps.size()); });
  add("waiting, images", waiting(0));
  add("waiting, tokens", waiting(1));
  add("mix of steps, images", mix(0));
  add("mix of steps, tokens", mix(1));
  add("overlap of epochs", [](measured_steps const& one) { return fixed(one.overlap, 2); });
  add("repeated groups", [](measured_steps const& one) { return counted(repeats(one.steps)); });
  add("left to next epoch", [](measured_steps const& one) { return counted(one.left_out.size()); });
  rows.add({"seconds scheduling", "-", fixed(seconds.scheduling, 3)});
  out << '\n';
  rows.print(out);
  out << "\nEpoch " << options.epoch
      << ", one group per rank and step. Waiting: the dist ratio of "
         "the packed groups.\nMix: how much the totals of steps vary; overlap: pairs of groups "
         "that "
         "share a step in the next epoch\ntoo; both over what random order gives.\n";
  if (std::max(scheduled.dist_ratio[0], scheduled.dist_ratio[1]) > options.tolerance) {
    out << "Ranks wait for more than the tolerance of " << options.tolerance
        << ": there are too few groups, too uneven ones, or ranks without a group in the last "
           "step.\n";
  }
}

}  // namespace examples
