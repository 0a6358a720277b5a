// SPDX-License-Identifier: Apache-2.0
#include "configuration_report.hpp"

#include "table.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/device_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace examples {

namespace {

using omnibal::configuration_choice;
using omnibal::loss_reason;
using omnibal::planned_configuration;

constexpr std::array<std::string_view, 4> sharding_names{"nothing", "optimizer", "gradients",
                                                         "parameters"};
constexpr std::array<std::string_view, 5> reason_names{"memory", "computation", "bubble", "links",
                                                       "padding"};

/// Prints what is common to all lines: seconds, differences and GPU days.
class report {
 public:
  report(std::ostream& out, configure_options const& options, configuration_results const& results)
      : out_(out), options_(options), results_(results) {}

  void print() const {
    print_best();
    print_memory();
    print_next();
    print_families();
    print_changes();
    if (results_.compared) print_compared();
  }

 private:
  [[nodiscard]] planned_configuration const& best() const { return results_.best.best; }
  [[nodiscard]] double seconds() const { return best().prediction.total(); }

  [[nodiscard]] double days(double step_seconds) const {
    double const steps = 1e9 * static_cast<double>(options_.billion_tokens) / results_.tokens;
    return omnibal::gpu_days({.steps = std::ceil(steps),
                              .seconds_per_step = step_seconds,
                              .gpus = static_cast<double>(options_.space.devices)});
  }

  [[nodiscard]] static std::string rounded(double value) {
    return counted(static_cast<std::uint64_t>(std::llround(value)));
  }

  [[nodiscard]] std::string longer(double step_seconds) const {
    double const share = step_seconds / seconds() - 1;
    return (share < 0 ? "" : "+") + percent(share, 1);
  }

  void print_best() const {
    auto const& plan = results_.best;
    out_ << options_.model.name << " on "
         << counted(static_cast<std::uint64_t>(options_.space.devices)) << " x "
         << options_.machine.name << ", " << counted(static_cast<std::uint64_t>(options_.batch))
         << (best().token_capacity == 0
                 ? " sequences of " + counted(static_cast<std::uint64_t>(options_.tokens)) +
                       " tokens"
                 : std::string(" samples"))
         << " a step\n";
    if (options_.padded_heads != 0) {
      out_ << "The " << options_.padded_heads << " heads of the vision tower are padded to "
           << options_.model.vision->tower.layer().heads << "; --tensor limits this.\n";
    }
    out_ << "Fastest of " << counted(static_cast<std::uint64_t>(plan.configurations))
         << " configurations" << (plan.proven ? "" : ", not proven") << ": " << choices_text(best())
         << '\n';
    auto const& parts = best().prediction.seconds;
    double const work = parts.matmul + parts.attention + parts.memory + parts.launch;
    double const links = parts.tensor + parts.context + parts.expert + parts.transfer +
                         parts.gradients + parts.offload;
    out_ << "  " << best().step.micro_batches << " micro-batches of a rank";
    if (best().token_capacity != 0) {
      out_ << ", capacity " << best().token_capacity << " tokens";
      if (best().tile_capacity != 0) out_ << " and " << best().tile_capacity << " tiles";
      out_ << ", padding " << percent(best().padding, 1);
    }
    out_ << '\n';
    out_ << "  step " << fixed(seconds(), 2) << " s: computation " << fixed(work, 2) << ", links "
         << fixed(links, 2) << ", bubble " << fixed(parts.bubble, 2) << ", optimizer "
         << fixed(parts.optimizer, 2) << '\n';
    double const utilization =
        omnibal::flops_utilization({.flops = plan.flops,
                                    .seconds = seconds(),
                                    .gpus = static_cast<double>(options_.space.devices),
                                    .peak_flops_per_gpu_second = options_.machine.peak_flops});
    out_ << "  MFU " << percent(utilization, 1) << ", " << rounded(days(seconds()))
         << " GPU days for " << counted(static_cast<std::uint64_t>(options_.billion_tokens))
         << " billion tokens\n";
  }

  void print_memory() const {
    auto const& peaks = best().prediction.peak_bytes;
    out_ << "  memory of the stages in GB, of "
         << fixed(static_cast<double>(options_.space.memory_bytes - options_.space.reserve_bytes) *
                      1e-9,
                  1)
         << ':';
    constexpr std::size_t shown = 8;
    for (std::size_t s = 0; s != peaks.size(); ++s) {
      if (peaks.size() > shown && s == shown - 2) out_ << " ...";
      if (peaks.size() > shown && s >= shown - 2 && s + 2 < peaks.size()) continue;
      out_ << ' ' << fixed(static_cast<double>(peaks[s]) * 1e-9, 1);
    }
    out_ << '\n';
    if (best().offload_percent != 0) {
      std::int64_t const on_host = std::ranges::max(best().prediction.host_bytes);
      out_ << "  up to " << fixed(static_cast<double>(on_host) * 1e-9, 1)
           << " GB of the host for a device\n";
    }
    out_ << '\n';
  }

  void print_next() const {
    if (results_.best.runners_up.empty()) return;
    table rows({"next best", "s", "", "more GPU days"});
    for (auto const& next : results_.best.runners_up) {
      double const total = next.prediction.total();
      rows.add({choices_text(next), fixed(total, 2), longer(total),
                rounded(days(total) - days(seconds()))});
    }
    rows.print(out_);
    out_ << '\n';
  }

  [[nodiscard]] static std::string family_name(omnibal::configuration_family const& family) {
    std::string const value = std::to_string(family.value);
    auto const index = static_cast<std::size_t>(family.value);
    switch (family.choice) {
      case configuration_choice::tensor_parallel: return "TP " + value;
      case configuration_choice::pipeline_parallel: return "PP " + value;
      case configuration_choice::context_parallel: return "CP " + value;
      case configuration_choice::expert_parallel: return "EP " + value;
      case configuration_choice::schedule: return family.value == 1 ? "one chunk" : "chunks";
      case configuration_choice::micro_batch: return "micro-batch " + value;
      case configuration_choice::recompute:
        return "recompute " + std::string(recompute_names[index]);
      case configuration_choice::offload: return "offload " + value + " %";
      case configuration_choice::sharding: break;
    }
    return "share " + std::string(sharding_names[index]);
  }

  /// The families within twice the step, and those that do not fit.
  void print_families() const {
    table rows({"with", "s", "", "loses by"});
    std::string too_large;
    std::size_t slower = 0;
    for (auto const& family : results_.best.families) {
      if (family.reason == loss_reason::memory) {
        too_large += (too_large.empty() ? "" : ", ") + family_name(family);
        continue;
      }
      double const total = family.best.prediction.total();
      if (total > 1.5 * seconds()) {
        ++slower;
        continue;
      }
      rows.add({family_name(family), fixed(total, 2), longer(total),
                std::string(reason_names[static_cast<std::size_t>(family.reason)])});
    }
    rows.print(out_);
    if (slower != 0) out_ << slower << " other values are more than 50 % slower.\n";
    if (!too_large.empty()) out_ << "Never fit into the memory: " << too_large << '\n';
    out_ << '\n';
  }

  void print_changes() const {
    if (results_.changes.empty()) return;
    table rows({"a machine with", "s", "", "configuration"});
    for (auto const& change : results_.changes) {
      double const total = change.plan.best.prediction.total();
      rows.add({change.change, fixed(total, 2), longer(total), choices_text(change.plan.best)});
    }
    rows.print(out_);
  }

  void print_compared() const {
    auto const& theirs = results_.compared->best;
    double const total = theirs.prediction.total();
    out_ << "\nCompared: " << choices_text(theirs) << '\n'
         << "  step " << fixed(total, 2) << " s, " << longer(total) << ", "
         << rounded(days(total) - days(seconds())) << " more GPU days\n";
    std::int64_t const peak = std::ranges::max(theirs.prediction.peak_bytes);
    std::int64_t const room = options_.space.memory_bytes - options_.space.reserve_bytes;
    out_ << "  " << fixed(static_cast<double>(peak) * 1e-9, 1) << " GB on the fullest stage, "
         << fixed(std::abs(static_cast<double>(room - peak)) * 1e-9, 1)
         << (peak > room ? " GB too much\n" : " GB below the limit\n");
  }

  std::ostream& out_;
  configure_options const& options_;
  configuration_results const& results_;
};

}  // namespace

std::string choices_text(planned_configuration const& given) {
  auto const& degrees = given.step.degrees;
  std::string text;
  auto const add = [&](char const* name, std::int64_t value) {
    if (value != 1) text += name + std::to_string(value) + ", ";
  };
  add("TP ", degrees.tensor);
  if (degrees.pipeline != 1) {
    text += "PP " + std::to_string(degrees.pipeline);
    if (given.step.chunks != 1) text += " x " + std::to_string(given.step.chunks);
    text += ", ";
  }
  add("CP ", degrees.sequence);
  add("EP ", degrees.expert);
  add("DP ", degrees.data);
  std::int64_t const batch =
      given.token_capacity != 0 ? given.token_capacity : given.step.sequences;
  text += "micro-batch " + std::to_string(batch) + ", recompute " +
          std::string(recompute_names[static_cast<std::size_t>(given.step.recomputed)]);
  if (given.offload_percent != 0) {
    text += ", offload " + std::to_string(given.offload_percent) + " %";
  }
  text += ", share " + std::string(sharding_names[static_cast<std::size_t>(degrees.sharding)]);
  return text;
}

void print_configurations(std::ostream& out, configure_options const& options,
                          configuration_results const& results) {
  report(out, options, results).print();
}

}  // namespace examples
