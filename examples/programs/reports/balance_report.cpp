// SPDX-License-Identifier: Apache-2.0
#include "balance_report.hpp"

#include "table.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace examples {

void print_summary(dataset const& data, pack_options const& options, omnibal::packing const& result,
                   std::ostream& out) {
  std::size_t const groups = result.groups.size();
  std::size_t const oversized = result.oversized.size();
  if (oversized != 0) out << counted(data.samples.size() - oversized) << " of ";
  out << counted(data.samples.size()) << " samples from ";
  if (data.sources.size() == 1) {
    out << data.sources.front().name;
  } else {
    out << data.sources.size() << " files";
  }
  out << " in " << counted(groups) << " micro-batches of at most\n";
  if (options.kind != sample_kind::text) out << options.capacity[0] << " images and ";
  out << options.capacity[1] << " tokens; no packing has fewer than "
      << counted(result.report.lower_bound) << ".\n";
  if (oversized != 0) {
    out << counted(oversized)
        << (oversized == 1 ? " sample exceeds these limits and is"
                           : " samples exceed these limits and are")
        << " in no micro-batch: oversized.npy.\n";
  }
  out << '\n';
}

void print_report(pack_options const& options, omnibal::packing const& result,
                  batch_figures const& before, batch_figures const& after,
                  phase_seconds const& seconds, std::ostream& out) {
  std::string const none = "-";
  auto const& report = result.report;
  bool const has_keep_rule = options.packer == packer_kind::isf;
  auto const fill = [](double share) { return percent(share, 1); };
  auto const waiting = [](double share) { return percent(share, 2); };

  table rows({"", "before", "after"});
  bool const is_improved = options.improvement == improvement_kind::exchanges;
  rows.add({"", "shuffled batches", to_text(options.packer) + (is_improved ? ", improved" : "")});
  rows.add_rule();
  rows.add({"groups", counted(before.batches), counted(after.batches)});
  rows.add({"lower bound", none, counted(report.lower_bound)});
  rows.add(
      {"samples per group", fixed(before.samples_per_batch, 2), fixed(after.samples_per_batch, 2)});
  rows.add({"groups over capacity", counted(before.over_capacity), counted(after.over_capacity)});
  bool const has_images = options.kind != sample_kind::text;
  auto const add_kinds = [&](std::string const& name, auto const& text, amounts const& first,
                             amounts const& second) {
    if (has_images) rows.add({name + ", images", text(first[0]), text(second[0])});
    rows.add({name + (has_images ? ", tokens" : ""), text(first[1]), text(second[1])});
  };
  add_kinds("fill of the capacity", fill, before.fill, after.fill);
  rows.add({"padding in the tokens", fill(before.pad_ratio), fill(after.pad_ratio)});
  add_kinds("waiting in random steps", waiting, before.dist_ratio, after.dist_ratio);
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

  out << "\nCapacity: ";
  if (has_images) out << options.capacity[0] << " images and ";
  out << options.capacity[1] << " tokens per group.\n"
      << "Waiting: average idle share of a step of " << options.ranks
      << " ranks; a rank without a group has\nzero load. Random steps: groups are dealt to the "
         "ranks at random.\n"
      << "Shuffled batches: the samples of the groups in shuffled order, padded to the\n"
         "longest sample of a batch.\n";
}

void print_schedule(pack_options const& options, measured_steps const& random,
                    measured_steps const& scheduled, phase_seconds const& seconds,
                    std::ostream& out) {
  table rows({"steps", "random", "scheduled"});
  auto const add = [&](std::string name, auto const& cell) {
    rows.add({std::move(name), cell(random), cell(scheduled)});
  };
  auto const waiting = [](std::size_t kind) {
    return [kind](measured_steps const& one) { return percent(one.dist_ratio[kind], 2); };
  };
  auto const mix = [](std::size_t kind) {
    return [kind](measured_steps const& one) { return fixed(one.mix[kind], 2); };
  };
  rows.add_rule();
  add("number of steps", [](measured_steps const& one) { return counted(one.steps.size()); });
  bool const has_images = options.kind != sample_kind::text;
  std::string const of_tokens = has_images ? ", tokens" : "";
  if (has_images) add("waiting, images", waiting(0));
  add("waiting" + of_tokens, waiting(1));
  if (has_images) add("steps vary, images", mix(0));
  add("steps vary" + of_tokens, mix(1));
  add("groups that meet again", [](measured_steps const& one) { return fixed(one.overlap, 2); });
  add("repeated groups", [](measured_steps const& one) { return counted(repeats(one.steps)); });
  add("left to next epoch", [](measured_steps const& one) { return counted(one.left_out.size()); });
  rows.add({"seconds scheduling", "-", fixed(seconds.scheduling, 3)});
  out << '\n';
  rows.print(out);
  out << "\nEpoch " << options.epoch
      << ", one group per rank and step. Relative to random steps:\n"
         "steps vary: the spread of the totals of steps (the mix);\n"
         "groups that meet again: pairs that also share a step in the next epoch (the\n"
         "overlap).\n";
  if (std::max(scheduled.dist_ratio[0], scheduled.dist_ratio[1]) > options.max_dist_ratio) {
    out << "Ranks wait for more than the tolerance of " << options.max_dist_ratio
        << ": there are too few\n"
           "groups, too uneven ones, or ranks without a group in the last step.\n";
  }
}

}  // namespace examples
