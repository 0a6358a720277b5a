// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables and pictures of docs/evidence/study.md about balancing after the draw (OrchMLLM, arXiv
/// 2503.23830). The times of steps come from cost models; only the section `planning` measures.

#include "models/machine_file.hpp"
#include "models/model_file.hpp"
#include "pictures/chart.hpp"
#include "pictures/svg.hpp"
#include "plans/orchestrated_step.hpp"
#include "readers/modality_mix.hpp"
#include "reports/study_sections.hpp"
#include "reports/table.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace examples;

constexpr std::uint64_t seed = 1024;
constexpr std::size_t node = 8;
/// Steps that each figure is a mean of.
constexpr std::size_t steps = 2;

constexpr step_batching unpadded{batching::unpadded, batching::unpadded, batching::unpadded};
constexpr step_batching sound_padded{batching::unpadded, batching::unpadded, batching::padded};
constexpr step_batching padded{batching::padded, batching::padded, batching::padded};

machine_description const& machine() {
  static machine_description const found = find_machine("h100-80gb");
  return found;
}

/// So many samples on each of so many ranks, and the model that trains on them.
struct step_size {
  std::size_t ranks = 2560;
  std::size_t samples = 8;
  std::string model = "internvit-6b+llama3-70b";
};

void add_step(batch_measures& batch, step_size const& size, std::size_t step) {
  modality_costs const costs(find_model(size.model, model_parts::both));
  for (std::size_t rank = 0; rank != size.ranks; ++rank) {
    batch.add_rank(draw_samples({seed, step, rank, size.samples}), costs);
  }
}

std::vector<batch_measures> draw_steps(step_size const& size) {
  std::vector<batch_measures> result(steps);
  for (std::size_t step = 0; step != steps; ++step) add_step(result[step], size, step);
  return result;
}

/// Means over steps.
struct step_means {
  double seconds = 0;
  double mfu = 0;
  std::array<double, phase_count> waiting{};
};

/// Adds up steps that may have other samples each.
class step_clock {
 public:
  explicit step_clock(std::size_t ranks) : ranks_(static_cast<double>(ranks)) {}

  void run(step_time const& one) {
    ++count_;
    sums_.seconds += one.total();
    for (std::size_t phase = 0; phase != phase_count; ++phase) {
      sums_.waiting[phase] += one.waiting[phase];
    }
  }
  /// Work that the steps have done, in seconds of a rank.
  void add_work(double seconds) { work_ += seconds; }

  [[nodiscard]] step_means means() const {
    step_means result;
    double const reached =
        static_cast<double>(machine().flops) / static_cast<double>(machine().peak_flops);
    result.mfu = reached * work_ / ranks_ / sums_.seconds;
    result.seconds = sums_.seconds / count_;
    for (std::size_t phase = 0; phase != phase_count; ++phase) {
      result.waiting[phase] = sums_.waiting[phase] / count_;
    }
    return result;
  }

 private:
  double ranks_;
  double count_ = 0;
  double work_ = 0;
  step_means sums_;
};

/// The means of given steps that are arranged in some way.
template <class Arrange>
step_means run_steps(std::vector<batch_measures> const& batches, step_batching const& how,
                     Arrange const& arrange) {
  step_clock clock(batches.front().offsets.size() - 1);
  for (batch_measures const& batch : batches) {
    clock.run(time_of(batch, arrange(batch), how));
    clock.add_work(work_seconds(batch));
  }
  return clock.means();
}

step_means as_drawn(std::vector<batch_measures> const& batches, step_batching const& how) {
  return run_steps(batches, how, at_home);
}

step_means each_phase(std::vector<batch_measures> const& batches, step_batching const& how,
                      orchestration_rule rule) {
  return run_steps(batches, how, [&](batch_measures const& batch) {
    return arrangement_of(orchestrate_step(batch, how, rule, node));
  });
}

/// The time of each sample in all phases.
std::vector<std::int64_t> whole_times(batch_measures const& batch) {
  std::vector<std::int64_t> result = batch.times;
  for (batch_measures::encoder const& encoder : batch.encoders) {
    std::size_t piece = 0;
    for (std::size_t i = 0; i != result.size(); ++i) {
      for (std::uint32_t left = encoder.piece_counts[i]; left != 0; --left) {
        result[i] += encoder.times[piece++];
      }
    }
  }
  return result;
}

/// From the longest sample to the shortest, to the ranks in turn, to and fro.
step_arrangement sorted_in_turn(batch_measures const& batch) {
  std::size_t const ranks = batch.offsets.size() - 1;
  std::vector<std::uint32_t> order(batch.times.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t i) { return batch.times[i]; });
  omnibal::grouping samples;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::size_t turn = 0; turn * ranks < order.size(); ++turn) {
      std::size_t const place = turn * ranks + (turn % 2 == 0 ? rank : ranks - 1 - rank);
      if (place < order.size()) samples.push(order[place]);
    }
    samples.close();
  }
  return with_their_pieces(batch, std::move(samples));
}

step_arrangement even_by(batch_measures const& batch, std::vector<std::int64_t> const& times) {
  return with_their_pieces(batch, omnibal::lpt(times, batch.offsets.size() - 1));
}

/// The samples of the ranks of a node move between these ranks alone.
step_arrangement even_in_nodes(batch_measures const& batch) {
  std::vector<std::int64_t> const times = whole_times(batch);
  omnibal::grouping samples;
  for (std::size_t rank = 0; rank + 1 < batch.offsets.size(); rank += node) {
    std::uint32_t const first = batch.offsets[rank];
    std::uint32_t const last = batch.offsets[rank + node];
    auto const parts = omnibal::lpt(std::span(times).subspan(first, last - first), node);
    for (auto const part : parts) {
      for (std::uint32_t const i : part) samples.push(first + i);
      samples.close();
    }
  }
  return with_their_pieces(batch, std::move(samples));
}

/// Groups of ISF that are even in all three phases, made of the samples of eight steps and then
/// dealt as they come.
step_means packed_before(step_size const& size) {
  constexpr std::size_t pool = 8;
  batch_measures batch;
  for (std::size_t step = 0; step != pool; ++step) add_step(batch, size, step);
  std::vector<omnibal::resources<phase_count>> times(batch.times.size());
  omnibal::resources<phase_count> sums{};
  for (std::size_t i = 0; i != times.size(); ++i) times[i][0] = batch.times[i];
  for (std::size_t m = 0; m != modality_count; ++m) {
    std::size_t piece = 0;
    for (std::size_t i = 0; i != times.size(); ++i) {
      for (std::uint32_t left = batch.encoders[m].piece_counts[i]; left != 0; --left) {
        times[i][m + 1] += batch.encoders[m].times[piece++];
      }
    }
  }
  for (auto const& one : times) sums += one;
  omnibal::resources<phase_count> capacity{};
  auto const groups_wanted = static_cast<std::int64_t>(pool * size.ranks);
  for (std::size_t phase = 0; phase != phase_count; ++phase) {
    // A tenth above the mean, or more where a sample is longer.
    std::int64_t longest = 0;
    for (auto const& one : times) longest = std::max(longest, one[phase]);
    capacity[phase] = std::max(longest, sums[phase] / groups_wanted * 11 / 10);
  }
  auto const packed = omnibal::isf(times, std::identity{}, capacity);
  step_clock clock(size.ranks);
  for (std::size_t first = 0; first < packed.groups.size(); first += size.ranks) {
    omnibal::grouping samples;
    for (std::size_t group = first; group != first + size.ranks; ++group) {
      if (group < packed.groups.size()) {
        for (std::uint32_t const i : packed.groups[group]) samples.push(i);
      }
      samples.close();
    }
    clock.run(time_of(batch, with_their_pieces(batch, std::move(samples)), unpadded));
  }
  clock.add_work(work_seconds(batch));
  return clock.means();
}

std::string times_text(double gain) { return fixed(gain, 2) + "x"; }

void print_baselines(std::ostream& out, step_size const& size, std::string const& title) {
  auto const batches = draw_steps(size);
  table rows(
      {title, "vision waits", "audio waits", "language waits", "step, s", "MFU", "throughput"});
  step_means const drawn = as_drawn(batches, unpadded);
  auto const add = [&](std::string const& name, step_means const& one) {
    rows.add({name, percent(one.waiting[1], 1), percent(one.waiting[2], 1),
              percent(one.waiting[0], 1), fixed(one.seconds, 2), percent(one.mfu, 1),
              times_text(one.mfu / drawn.mfu)});
  };
  add("random, dealt in order", drawn);
  add("sorted by length, dealt in turn", run_steps(batches, unpadded, sorted_in_turn));
  add("device groups: even within nodes", run_steps(batches, unpadded, even_in_nodes));
  add("groups of ISF, made before the draw", packed_before(size));
  add("language model even", run_steps(batches, unpadded, [](batch_measures const& batch) {
        return even_by(batch, batch.times);
      }));
  add("sum of the phases even", run_steps(batches, unpadded, [](batch_measures const& batch) {
        return even_by(batch, whole_times(batch));
      }));
  add("each phase by itself: as published", each_phase(batches, unpadded, orchestration_rule::lpt));
  add("the same, samples kept at home",
      each_phase(batches, unpadded, orchestration_rule::rebalance));
  rows.print_markdown(out);
}

void print_baselines_70b(std::ostream& out) {
  print_baselines(out, {}, "Llama 3 70B, 2,560 ranks, 8 samples each");
}
void print_baselines_8b(std::ostream& out) {
  print_baselines(out, {.model = "internvit-6b+llama3-8b"},
                  "Llama 3 8B, 2,560 ranks, 8 samples each");
}

/// Random and even steps of these sizes.
void print_sizes(std::ostream& out, std::vector<step_size> const& sizes) {
  table rows({"ranks", "samples of a rank", "random: step, s", "MFU", "as published: step, s",
              "MFU", "throughput", "language waits: random", "as published", "audio waits"});
  for (step_size const& size : sizes) {
    auto const batches = draw_steps(size);
    step_means const drawn = as_drawn(batches, unpadded);
    step_means const even = each_phase(batches, unpadded, orchestration_rule::lpt);
    rows.add({counted(size.ranks), counted(size.samples), fixed(drawn.seconds, 2),
              percent(drawn.mfu, 1), fixed(even.seconds, 2), percent(even.mfu, 1),
              times_text(drawn.seconds / even.seconds), percent(drawn.waiting[0], 1),
              percent(even.waiting[0], 1), percent(even.waiting[2], 1)});
  }
  rows.print_markdown(out);
}

void print_ranks(std::ostream& out) {
  constexpr std::array<std::size_t, 5> rank_counts{8, 64, 256, 1024, 2560};
  std::vector<step_size> sizes;
  for (std::size_t const samples : {std::size_t{8}, std::size_t{32}}) {
    for (std::size_t const ranks : rank_counts) {
      sizes.push_back({.ranks = ranks, .samples = samples});
    }
  }
  print_sizes(out, sizes);
}

void print_samples(std::ostream& out) {
  std::vector<step_size> sizes;
  for (std::size_t samples = 1; samples <= 64; samples *= 2) sizes.push_back({.samples = samples});
  print_sizes(out, sizes);
}

/// As if there were no other phase.
step_time audio_alone(step_time time) {
  time.seconds[0] = 0;
  time.seconds[1] = 0;
  return time;
}

void print_padding(std::ostream& out) {
  table rows({"256 ranks, 16 samples each", "random: step, s", "MFU", "as published: step, s",
              "MFU", "throughput", "over random with padding"});
  auto const batches = draw_steps({.ranks = 256, .samples = 16});
  double const worst = as_drawn(batches, padded).seconds;
  auto const add = [&](std::string const& name, step_batching const& how) {
    step_means const drawn = as_drawn(batches, how);
    step_means const even = each_phase(batches, how, orchestration_rule::lpt);
    rows.add({name, fixed(drawn.seconds, 2), percent(drawn.mfu, 1), fixed(even.seconds, 2),
              percent(even.mfu, 1), times_text(drawn.seconds / even.seconds),
              times_text(worst / even.seconds)});
  };
  add("no phase padded", unpadded);
  add("sound padded", sound_padded);
  add("all phases padded", padded);
  rows.print_markdown(out);
}

/// The audio encoder of the same steps by itself: convolutions, whose time is linear in the frames,
/// and attention, which is quadratic.
void print_sound(std::ostream& out) {
  table rows({"audio encoder, 256 ranks, 16 samples each", "as drawn, s", "waiting",
              "even as if unpadded, s", "waiting", "even as it runs, s", "waiting", "gain"});
  auto const batches = draw_steps({.ranks = 256, .samples = 16});
  constexpr std::size_t audio = 2;
  auto const add = [&](std::string const& name, batching of_audio) {
    step_batching how = unpadded;
    how[audio] = of_audio;
    auto const lpt = [](batch_measures const& batch) {
      return arrangement_of(orchestrate_step(batch, unpadded, orchestration_rule::lpt, node));
    };
    step_clock drawn(256);
    step_clock blind(256);
    step_clock even(256);
    for (batch_measures const& batch : batches) {
      drawn.run(audio_alone(time_of(batch, at_home(batch), how)));
      blind.run(audio_alone(time_of(batch, lpt(batch), how)));
      auto const plans = orchestrate_step(batch, how, orchestration_rule::lpt, node);
      even.run(audio_alone(time_of(batch, arrangement_of(plans), how)));
    }
    std::vector<std::string> row{name};
    for (step_clock const* one : {&drawn, &blind, &even}) {
      step_means const means = one->means();
      row.push_back(fixed(means.seconds, 3));
      row.push_back(percent(means.waiting[audio], 1));
    }
    row.push_back(times_text(drawn.means().seconds / even.means().seconds));
    rows.add(std::move(row));
  };
  add("attention alone, not padded", batching::unpadded);
  add("convolution padded, attention not", batching::convolved);
  add("both padded", batching::padded_all);
  rows.print_markdown(out);
}

struct placed_rule {
  std::string_view name;
  orchestration_rule rule;
  std::size_t ranks_per_node;
};
constexpr std::array placed_rules{
    placed_rule{"as published, nodes not looked at", orchestration_rule::lpt, 1},
    placed_rule{"as published", orchestration_rule::lpt, node},
    placed_rule{"samples kept at home", orchestration_rule::rebalance, node}};

void print_exchange(std::ostream& out) {
  table rows({"2,560 ranks", "samples of a rank", "inputs, GB", "outputs and gradients, GB",
              "across nodes, GB", "on the wire, ms", "of the step", "of its forward pass"});
  for (std::size_t const samples : {std::size_t{8}, std::size_t{32}}) {
    auto const batches = draw_steps({.samples = samples});
    for (placed_rule const& placed : placed_rules) {
      wire_time sums;
      double step = 0;
      for (batch_measures const& batch : batches) {
        auto const plans = orchestrate_step(batch, unpadded, placed.rule, placed.ranks_per_node);
        wire_time const one = wire_time_of(batch, plans, machine());
        sums.input_bytes += one.input_bytes / steps;
        sums.output_bytes += one.output_bytes / steps;
        sums.across_nodes += one.across_nodes / steps;
        sums.seconds += one.seconds / steps;
        step += time_of(batch, arrangement_of(plans), unpadded).total() / steps;
      }
      // A third of a step is forward.
      rows.add({std::string(placed.name), counted(samples), fixed(1e-9 * sums.input_bytes, 1),
                fixed(1e-9 * sums.output_bytes, 1), fixed(1e-9 * sums.across_nodes, 1),
                fixed(1e3 * sums.seconds, 2), percent(sums.seconds / step, 3),
                percent(3 * sums.seconds / step, 3)});
    }
  }
  rows.print_markdown(out);
}

/// Measured: the least processor time of some runs, in memory that is kept.
double planning_seconds(batch_measures const& batch, orchestration_rule rule) {
  omnibal::make_orchestration_workspace workspace;
  double least = 0;
  for (int run = 0; run != 5; ++run) {
    std::clock_t const begin = std::clock();
    orchestrate_step(batch, unpadded, rule, node, workspace);
    double const seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    least = run == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

void print_planning(std::ostream& out) {
  constexpr std::array<std::size_t, 3> rank_counts{64, 512, 2560};
  constexpr std::array<std::size_t, 3> sample_counts{1, 8, 32};
  table rows({"samples kept at home", "samples of a rank", "plans, ms", "on the wire, ms",
              "forward pass, s", "both, of the forward pass"});
  for (std::size_t const ranks : rank_counts) {
    for (std::size_t const samples : sample_counts) {
      batch_measures batch;
      add_step(batch, {.ranks = ranks, .samples = samples}, 0);
      constexpr auto rule = orchestration_rule::rebalance;
      auto const plans = orchestrate_step(batch, unpadded, rule, node);
      double const wire = wire_time_of(batch, plans, machine()).seconds;
      double const planning = planning_seconds(batch, rule);
      double const forward = time_of(batch, arrangement_of(plans), unpadded).total() / 3;
      rows.add({counted(ranks) + " ranks", counted(samples), fixed(1e3 * planning, 2),
                fixed(1e3 * wire, 2), fixed(forward, 2), percent((planning + wire) / forward, 3)});
    }
  }
  rows.print_markdown(out);
}

/// The seconds of all ranks in a phase.
std::vector<double> loads_of(batch_measures const& batch, step_arrangement const& where,
                             std::size_t phase) {
  std::vector<double> result;
  auto const& times = phase == 0 ? batch.times : batch.encoders[phase - 1].times;
  for (auto const items : where[phase]) {
    std::int64_t sum = 0;
    for (std::uint32_t const item : items) sum += times[item];
    result.push_back(1e-9 * static_cast<double>(sum));
  }
  return result;
}

void draw_ranks(std::ostream& out) {
  constexpr double width = 1100;
  constexpr double height = 400;
  constexpr double margin = 24;
  constexpr double third = (width - 2 * margin) / phase_count;
  step_size const size{.ranks = 64};
  batch_measures batch;
  add_step(batch, size, 0);
  step_arrangement const before = at_home(batch);
  step_arrangement const after =
      arrangement_of(orchestrate_step(batch, unpadded, orchestration_rule::rebalance, node));
  step_curve ranks;
  for (std::size_t rank = 0; rank <= size.ranks; ++rank) {
    ranks.edges.push_back(static_cast<double>(rank));
  }
  svg_drawing drawing;
  drawing.text({margin, 36}, "A step of 64 ranks with 8 samples each, as drawn and balanced",
               {.size = 20, .weight = boldness::bold});
  double left = margin;
  for (std::size_t const phase : {std::size_t{1}, std::size_t{2}, std::size_t{0}}) {
    chart content{
        .title = std::string(phase_names[phase]),
        .x = {.title = "rank", .most = static_cast<double>(size.ranks), .kind = number_kind::whole},
        .y = {.title = "forward and backward", .unit = " s"},
        .curves = {{.label = "as drawn",
                    .color = colors::orange,
                    .style = curve_style::area,
                    .curve = ranks},
                   {.label = "balanced", .color = colors::blue, .curve = ranks}}};
    content.curves[0].curve.heights = loads_of(batch, before, phase);
    content.curves[1].curve.heights = loads_of(batch, after, phase);
    content.y.most = 1.05 * std::ranges::max(content.curves[0].curve.heights);
    draw(drawing, {left, 52, third, height - 60}, content);
    left += third;
  }
  drawing.write(out, width, height, "A step before and after balancing",
                "Seconds of each of 64 ranks in the vision encoder, the audio encoder and the "
                "language model, as drawn and balanced.");
}

constexpr study_section sections[]{{"llama3-70b", print_baselines_70b},
                                   {"llama3-8b", print_baselines_8b},
                                   {"ranks", print_ranks},
                                   {"samples", print_samples},
                                   {"padding", print_padding},
                                   {"sound", print_sound},
                                   {"exchange", print_exchange},
                                   {"planning", print_planning},
                                   {"before-and-after", draw_ranks}};

}  // namespace

int main(int count, char** words) {
  return print_section("study_orchmllm", sections, count, words);
}
