// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"
#include "stopwatch.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/search_cuts.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/plan_pipeline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

namespace train_vlm {

namespace {

using cut_list = std::vector<std::uint32_t>;
using pass_seconds = omnibal::stage_time<double>;
/// By layer or stage, then by micro-batch.
using pass_table = std::vector<std::vector<pass_seconds>>;

/// The times of the layers of the chain for a batch, as stages run them: all forward, then all
/// backward.
std::vector<pass_seconds> time_layers(vlm& model, batch const& of) {
  std::size_t const count = model.chain_size();
  std::vector<pass_seconds> seconds(count);
  std::vector<at::Tensor> in(count), out(count);
  for (std::size_t layer = 0; layer != count; ++layer) {
    if (layer != 0 && out[layer - 1].defined())
      in[layer] = out[layer - 1].detach().requires_grad_();
    stopwatch const watch;
    out[layer] = model.run_chain(layer, layer + 1, in[layer], of);
    if (layer + 1 == count) out[layer] = vlm::loss_sum(out[layer], of);
    seconds[layer].forward = watch.processor_seconds();
  }
  at::Tensor gradient;
  for (std::size_t layer = count; layer-- != 0;) {
    if (!out[layer].defined()) break;
    stopwatch const watch;
    out[layer].backward(gradient);
    seconds[layer].backward = watch.processor_seconds();
    gradient = in[layer].defined() ? in[layer].grad() : at::Tensor();
  }
  return seconds;
}

/// What the layers of the chain take for batches, and what a transfer takes.
struct pipeline_costs {
  struct layer_model {
    time_model forward, backward;
  };
  std::vector<layer_model> layers;
  omnibal::affine_cost<1> link;
};

/// The mean of coefficients over the ranks.
std::vector<double> mean_of_ranks(trainer const& of, std::vector<double> const& own) {
  auto const all = omnibal::all_gather(of.comm(), own);
  std::vector<double> mean(own.size());
  for (std::size_t i = 0; i != all.size(); ++i) {
    mean[i % own.size()] += all[i] / static_cast<double>(of.shard().ranks);
  }
  return mean;
}

/// Fits the times of each layer to packs and halves of packs. All ranks measure at the same time,
/// as they compute at the same time in a step.
std::vector<pipeline_costs::layer_model> profile_layers(train_options const& options, trainer& of) {
  struct point {
    batch_features features;
    std::vector<pass_seconds> layers;
  };
  std::vector<point> points;
  auto const& packs = of.data().packs;
  std::size_t const count = std::min<std::size_t>(packs.size(), 16);
  constexpr std::size_t rounds = 3;
  for (std::size_t p = 0; p != 2 * count; ++p) {
    auto ids = packs[p / 2 * packs.size() / count];
    if (p % 2 == 1) ids = ids.first((ids.size() + 1) / 2);
    step_samples const samples = of.gather(form_kind::unpadded, ids, {});
    batch const batch = make_batch(options.model, samples.samples, padding::none);
    std::vector<std::vector<pass_seconds>> runs;
    for (std::size_t r = 0; r != rounds; ++r) runs.push_back(time_layers(of.model(), batch));
    point& middle = points.emplace_back(point{samples.features, runs[0]});
    for (std::size_t layer = 0; layer != middle.layers.size(); ++layer) {
      std::vector<double> forward, backward;
      for (auto const& run : runs) {
        forward.push_back(run[layer].forward);
        backward.push_back(run[layer].backward);
      }
      middle.layers[layer] = {median(forward), median(backward)};
    }
  }
  std::vector<pipeline_costs::layer_model> layers;
  for (std::size_t layer = 0; layer != of.model().chain_size(); ++layer) {
    auto const fit = [&](double pass_seconds::*pass) -> time_model {
      auto const seconds = [&](point const& one) { return one.layers[layer].*pass; };
      auto const own = omnibal::affine_fit(points, &point::features, seconds,
                                           {.signs = omnibal::fit_signs::not_negative});
      auto const mean = mean_of_ranks(
          of, {own.slopes[0], own.slopes[1], own.slopes[2], own.slopes[3], own.offset});
      return {.offset = mean[4], .slopes = {mean[0], mean[1], mean[2], mean[3]}};
    };
    layers.push_back({fit(&pass_seconds::forward), fit(&pass_seconds::backward)});
  }
  return layers;
}

/// Fits the time of a transfer to tensors that go to and fro between the first two ranks, to the
/// least of each size: a rank that waits for a core takes longer.
omnibal::affine_cost<1> profile_link(trainer& of) {
  struct point {
    omnibal::resources<1> bytes;
    double seconds;
  };
  std::vector<point> points;
  auto const rank = of.shard().rank;
  auto const group = of.comm().get();
  for (std::int64_t bytes = 1 << 12; rank < 2 && bytes <= 1 << 20; bytes *= 4) {
    std::vector<at::Tensor> sent{at::zeros({bytes / 4}, at::kFloat)}, received{sent[0].clone()};
    double least = HUGE_VAL;
    for (int round = 0; round != 16; ++round) {
      stopwatch const watch;
      auto const arrival = group->recv(received, rank == 0 ? 1 : 0, 0);
      if (rank == 1) arrival->wait();
      auto const sending = group->send(sent, rank == 0 ? 1 : 0, 0);
      if (rank == 0) arrival->wait();
      sending->wait();
      least = std::min(least, watch.seconds() / 2);
    }
    points.push_back({{bytes}, least});
  }
  std::vector<double> own(2);
  if (rank == 0 && of.shard().ranks > 1) {
    auto const fit = omnibal::affine_fit(points, &point::bytes, &point::seconds,
                                         {.signs = omnibal::fit_signs::not_negative});
    own = {fit.slopes[0], fit.offset};
  }
  auto const all = omnibal::all_gather(of.comm(), own);
  return {.offset = all[1], .slopes = {all[0]}};
}

/// A step of a pipeline: its micro-batches, and what is predicted of it.
class pipeline_step {
 public:
  pipeline_step(train_options const& options, trainer& of) : of_(&of) {
    auto const& packs = of.data().packs;
    std::size_t const count = options.micro_batches;
    std::int64_t scored = 0;
    for (std::size_t m = 0; m != count; ++m) {
      auto const ids = packs[(2 * m + 1) * packs.size() / (2 * count)];
      step_samples const samples = of.gather(form_kind::unpadded, ids, {});
      batches_.push_back(make_batch(options.model, samples.samples, padding::none));
      features_.push_back(samples.features);
      scored += loss_tokens(samples);
    }
    scale_ = 1.0 / static_cast<double>(std::max<std::int64_t>(1, scored));
  }

  [[nodiscard]] std::span<batch const> batches() const { return batches_; }
  [[nodiscard]] double scale() const { return scale_; }

  void set_costs(pipeline_costs const& costs) {
    link_ = costs.link;
    for (auto const& layer : costs.layers) {
      auto& row = layers_.emplace_back();
      for (auto const& features : features_) {
        row.push_back({layer.forward(features), layer.backward(features)});
      }
    }
  }

  /// The mean over the micro-batches of what a layer takes.
  [[nodiscard]] pass_seconds mean(std::size_t layer) const {
    pass_seconds sum;
    for (pass_seconds const& one : layers_[layer]) add(sum, one);
    auto const count = static_cast<double>(batches_.size());
    return {sum.forward / count, sum.backward / count};
  }

  /// The seconds of a step with these cuts.
  [[nodiscard]] double predict(std::span<std::uint32_t const> cuts) const {
    pass_table stages;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      auto& stage = stages.emplace_back(batches_.size());
      for (std::size_t layer = cuts[s]; layer != cuts[s + 1]; ++layer) {
        for (std::size_t m = 0; m != stage.size(); ++m) add(stage[m], layers_[layer][m]);
      }
    }
    return simulate(cuts, stages);
  }

  /// The same with what the stages take for each micro-batch.
  [[nodiscard]] double simulate(std::span<std::uint32_t const> cuts,
                                pass_table const& stages) const {
    auto const transfer = [&](std::size_t cut, std::size_t m) {
      auto const shape = of_->model().chain_shape(cuts[cut + 1], batches_[m]);
      std::int64_t const bytes = 4 * c10::multiply_integers(shape);
      return bytes == 0 ? 0.0 : link_(omnibal::resources<1>{bytes});
    };
    omnibal::one_f_one_b const schedule{stages.size(), batches_.size()};
    return omnibal::simulate_pipeline(schedule, stages, transfer).makespan;
  }

 private:
  static void add(pass_seconds& sum, pass_seconds const& one) {
    sum.forward += one.forward;
    sum.backward += one.backward;
  }

  trainer* of_;
  std::vector<batch> batches_;
  std::vector<batch_features> features_;
  double scale_ = 0;
  pass_table layers_;
  omnibal::affine_cost<1> link_{};
};

at::Tensor gradients_of(std::vector<at::Tensor> const& parameters) {
  std::vector<at::Tensor> rows;
  for (at::Tensor const& parameter : parameters) {
    at::Tensor const& gradient = parameter.grad();
    rows.push_back(gradient.defined() ? gradient.reshape(-1) : at::zeros({parameter.numel()}));
  }
  return at::cat(rows).to(at::kDouble);
}

struct measured_step {
  /// By the clock, and by the processor times of the operations.
  double clock = 0;
  double processor = 0;
  /// Of the processor time that the micro-batches take on one process, measured before each step:
  /// the speed of a machine with other work drifts.
  double share = 0;
};

/// Runs steps with given cuts. Every rank makes the same calls.
class step_runner {
 public:
  step_runner(train_options const& options, trainer& of, pipeline_step const& step)
      : runs_(options.runs), of_(&of), step_(&step) {
    loss_ = run_whole();
    for (std::size_t layer = 0; layer != of.model().chain_size(); ++layer) {
      whole_.push_back(gradients_of(of.model().chain_parameters(layer)));
    }
  }

  measured_step measure(std::span<std::uint32_t const> cuts) {
    pipeline_stage stage(of_->model(), cuts, of_->comm().get());
    std::vector<double> clock, processor, share;
    // The first one warms up, and shows the gradients.
    for (std::size_t run = 0; run <= runs_; ++run) {
      stopwatch const whole;
      run_whole();
      double const alone = mean_of_ranks(*of_, {whole.processor_seconds()})[0];
      of_->model().zero_grad();
      stopwatch const watch;
      double const loss = stage.run(step_->batches(), step_->scale());
      double const own = watch.seconds();
      if (run == 0) {
        compare(stage, cuts, loss);
        continue;
      }
      clock.push_back(std::ranges::max(omnibal::all_gather(of_->comm(), own)));
      processor.push_back(step_->simulate(cuts, passes_of(stage)));
      share.push_back(processor.back() / alone);
    }
    return known_[{cuts.begin(), cuts.end()}] = {median(clock), median(processor), median(share)};
  }

  /// All cuts that were measured.
  [[nodiscard]] std::map<cut_list, measured_step> const& known() const { return known_; }
  /// The largest relative difference of gradients, and of losses, from those without a pipeline.
  [[nodiscard]] double difference() const { return difference_; }

 private:
  /// The micro-batches without a pipeline; the sum of their losses.
  double run_whole() {
    of_->model().zero_grad();
    double sum = 0;
    for (batch const& one : step_->batches()) {
      at::Tensor const loss = of_->model().loss_sum(one);
      (loss * step_->scale()).backward();
      sum += loss.item<double>();
    }
    return sum;
  }

  void compare(pipeline_stage const& stage, std::span<std::uint32_t const> cuts, double loss) {
    auto const rank = of_->shard().rank;
    std::vector<at::Tensor> const rows(whole_.begin() + cuts[rank],
                                       whole_.begin() + cuts[rank + 1]);
    at::Tensor const expected = at::cat(rows);
    at::Tensor const missed = gradients_of(stage.parameters()) - expected;
    std::vector<double> const own{missed.square().sum().item<double>(),
                                  expected.square().sum().item<double>(), loss};
    auto const all = omnibal::all_gather(of_->comm(), own);
    double squares[3] = {};
    for (std::size_t i = 0; i != all.size(); ++i) squares[i % 3] += all[i];
    for (double const value :
         {std::sqrt(squares[0] / squares[1]), std::abs(squares[2] - loss_) / loss_}) {
      difference_ = std::max(difference_, std::isnan(value) ? HUGE_VAL : value);
    }
  }

  /// What the operations of all stages took.
  [[nodiscard]] pass_table passes_of(pipeline_stage const& stage) const {
    std::size_t const count = step_->batches().size();
    std::vector<pass_seconds> own(count);
    for (stage_operation const& one : stage.operations()) {
      bool const is_forward = one.kind == omnibal::operation_kind::forward;
      (is_forward ? own[one.micro_batch].forward : own[one.micro_batch].backward) = one.seconds;
    }
    auto const all = omnibal::all_gather(of_->comm(), own);
    pass_table stages;
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(count)) {
      stages.emplace_back(at, at + static_cast<std::ptrdiff_t>(count));
    }
    return stages;
  }

  std::size_t runs_;
  trainer* of_;
  pipeline_step const* step_;
  std::vector<at::Tensor> whole_;
  double loss_ = 0;
  double difference_ = 0;
  std::map<cut_list, measured_step> known_;
};

std::int64_t parameter_count(vlm const& model, std::size_t layer) {
  std::int64_t sum = 0;
  for (at::Tensor const& parameter : model.chain_parameters(layer)) sum += parameter.numel();
  return sum;
}

/// The cuts of each rule.
std::map<std::string, cut_list> cuts_of_rules(train_options const& options, vlm const& model,
                                              pipeline_step const& step) {
  std::size_t const stages = options.ranks;
  std::vector<std::int64_t> ones(model.chain_size(), 1), parameters;
  std::vector<omnibal::plan_layer<double>> layers;
  for (std::size_t layer = 0; layer != ones.size(); ++layer) {
    parameters.push_back(parameter_count(model, layer));
    pass_seconds const mean = step.mean(layer);
    layers.push_back({.choices = {{mean.forward + mean.backward}}});
  }
  auto const seconds = [&](std::size_t, std::size_t first, std::size_t last) {
    double sum = 0;
    for (std::size_t layer = first; layer != last; ++layer) sum += layers[layer].choices[0].time;
    return sum;
  };
  omnibal::pipeline_machine const machine{.stages = stages, .memory_bytes = std::int64_t{1} << 40};
  return {
      {"layers", omnibal::partition_minimax(ones, stages).boundaries},
      {"parameters", omnibal::partition_minimax(parameters, stages).boundaries},
      {"partition_layers", omnibal::partition_layers(layers, stages, seconds).boundaries},
      {"plan_pipeline",
       omnibal::plan_pipeline(layers, machine, {.micro_batches = options.micro_batches})
           .boundaries},
  };
}

std::string milliseconds(double seconds) { return examples::fixed(1e3 * seconds, 2); }

void print_layers(train_options const& options, vlm const& model, pipeline_step const& step) {
  examples::table rows({"layer", "forward ms", "backward ms", "parameters"});
  auto const vision = static_cast<std::size_t>(options.model.vision_layers);
  for (std::size_t layer = 0; layer != model.chain_size(); ++layer) {
    std::string name = layer == 0 ? "patches" : "vision " + std::to_string(layer);
    if (layer > vision) name = "language " + std::to_string(layer - vision - 1);
    if (layer == vision + 1) name = "projector";
    if (layer + 1 == model.chain_size()) name = "head";
    pass_seconds const mean = step.mean(layer);
    auto const count = static_cast<std::uint64_t>(parameter_count(model, layer));
    rows.add(
        {name, milliseconds(mean.forward), milliseconds(mean.backward), examples::counted(count)});
  }
  rows.print(std::cout);
}

/// How far predictions are off: of steps, and of their shares of what one process takes.
void print_errors(step_runner const& runner, pipeline_step const& step, double whole) {
  auto const count = static_cast<double>(runner.known().size());
  double mean[2] = {}, largest[2] = {};
  for (auto const& [cuts, seconds] : runner.known()) {
    double const predicted = step.predict(cuts);
    double const errors[] = {std::abs(predicted / seconds.processor - 1),
                             std::abs(predicted / whole / seconds.share - 1)};
    for (std::size_t i = 0; i != 2; ++i) {
      mean[i] += errors[i] / count;
      largest[i] = std::max(largest[i], errors[i]);
    }
  }
  auto const print = [&](std::string const& of, std::size_t i) {
    std::cout << of << examples::percent(mean[i], 1) << " in the mean, "
              << examples::percent(largest[i], 1) << " at most\n";
  };
  print("\nsteps predicted within ", 0);
  print("shares predicted within ", 1);
}

}  // namespace

bool compare_cuts(train_options const& options, trainer& of) {
  vlm& model = of.model();
  if (options.ranks > model.chain_size()) {
    throw std::runtime_error("--ranks is " + std::to_string(options.ranks) + ", the model has " +
                             std::to_string(model.chain_size()) + " layers for the stages");
  }
  pipeline_step step(options, of);
  step.set_costs({profile_layers(options, of), profile_link(of)});
  step_runner runner(options, of, step);

  auto rules = cuts_of_rules(options, model, step);
  constexpr std::size_t radius = 3, max_candidates = 8;
  auto const candidates = omnibal::neighbors(rules["partition_layers"], radius);
  auto const score = [&](std::span<std::uint32_t const> cuts) { return step.predict(cuts); };
  auto const measure = [&](std::span<std::uint32_t const> cuts) {
    return runner.measure(cuts).share;
  };
  auto const found = omnibal::search_cuts(candidates, score, max_candidates, measure);
  rules["search_cuts"] = found.candidates[found.best].boundaries;
  for (auto const& [name, cuts] : rules) {
    if (!runner.known().contains(cuts)) measure(cuts);
  }

  examples::table rows(
      {"layers", "predicted ms", "processor ms", "clock ms", "predicted share", "share", "cut by"});
  double const whole = step.predict(cut_list{0, static_cast<std::uint32_t>(model.chain_size())});
  for (auto const& [cuts, seconds] : runner.known()) {
    std::string layers, names;
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
      layers += (s == 0 ? "" : ", ") + std::to_string(cuts[s + 1] - cuts[s]);
    }
    for (auto const& [name, of_rule] : rules) {
      if (of_rule == cuts) names += (names.empty() ? "" : ", ") + name;
    }
    double const predicted = step.predict(cuts);
    rows.add({layers, milliseconds(predicted), milliseconds(seconds.processor),
              milliseconds(seconds.clock), examples::percent(predicted / whole, 1),
              examples::percent(seconds.share, 1), names});
  }
  if (of.shard().rank == 0) {
    print_layers(options, model, step);
    std::cout << '\n';
    rows.print(std::cout);
    print_errors(runner, step, whole);
    std::printf("gradients and losses differ from those without a pipeline by %.1e\n",
                runner.difference());
  }
  return runner.difference() <= 1e-5;
}

}  // namespace train_vlm
