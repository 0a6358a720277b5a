// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"
#include "numbers.hpp"
#include "svg.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/place_oversized.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace train_vlm {

namespace {

/// How the samples of a global batch come to the ranks.
enum class dealing_kind { alone, padded, unpadded, packs, even_packs, moved };

struct dealing {
  std::string name;
  dealing_kind kind;
  weight_kind weight = weight_kind::step;
};

/// The first is what the others are compared with, the last is wrong on purpose.
std::array const dealings{dealing{"each sample alone", dealing_kind::alone},
                          dealing{"padded", dealing_kind::padded},
                          dealing{"unpadded", dealing_kind::unpadded},
                          dealing{"packs, dealt", dealing_kind::packs},
                          dealing{"packs, even", dealing_kind::even_packs},
                          dealing{"samples moved", dealing_kind::moved},
                          dealing{"mean of means", dealing_kind::unpadded, weight_kind::means}};

using sample_ids = std::vector<std::uint32_t>;

/// The packs of a global batch that this rank has.
std::vector<sample_ids> own_packs(trainer const& of, time_model const& cost, sample_ids const& ids,
                                  bool is_even) {
  auto const& samples = of.data().samples;
  auto const demand = [&](std::uint32_t id) {
    return omnibal::resources{samples[id].images, samples[id].tokens};
  };
  auto const packed = omnibal::place_oversized(
      omnibal::best_packing(ids, demand, of.data().capacity), omnibal::oversize_policy::own_group);
  std::vector<sample_ids> packs;
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    auto& pack = packs.emplace_back();
    for (std::uint32_t const index : packed.groups[g]) pack.push_back(ids[index]);
  }
  auto const [ranks, rank] = of.shard();
  std::vector<sample_ids> own;
  if (!is_even) {
    for (std::size_t p = rank; p < packs.size(); p += ranks) own.push_back(packs[p]);
    return own;
  }
  auto const seconds = [&](sample_ids const& pack) {
    return static_cast<std::int64_t>(1e9 * cost(features_of(samples, pack, form_kind::unpadded)));
  };
  auto const parts = omnibal::lpt(packs, ranks, seconds);
  for (std::uint32_t const p : parts[rank]) own.push_back(packs[p]);
  return own;
}

struct dealt_gradients {
  at::Tensor sum;
  double loss;
};

/// The gradients of a global batch, added up over the ranks, and its mean loss.
dealt_gradients gradients_of(trainer& of, time_model const& cost, dealing const& how,
                             sample_ids const& ids) {
  sample_ids mine;
  for (std::size_t i = of.shard().rank; i < ids.size(); i += of.shard().ranks) {
    mine.push_back(ids[i]);
  }
  std::vector<sample_ids> packs;
  if (how.kind == dealing_kind::alone) {
    for (std::uint32_t const id : mine) packs.push_back({id});
  } else if (how.kind == dealing_kind::packs || how.kind == dealing_kind::even_packs) {
    packs = own_packs(of, cost, ids, how.kind == dealing_kind::even_packs);
  } else {
    packs.push_back(mine);
  }
  form_kind const form =
      how.kind == dealing_kind::moved ? form_kind::post_balanced : form_kind::unpadded;
  std::vector<step_samples> batches;
  std::int64_t scored = 0;
  for (sample_ids const& pack : packs) {
    batches.push_back(of.gather(form, pack, cost));
    scored += loss_tokens(batches.back());
  }
  double const scale = of.scale_of(how.weight, scored);
  of.model().zero_grad();
  double loss = 0;
  for (step_samples const& batch : batches) {
    loss += of.add_gradients(
        batch, how.kind == dealing_kind::padded ? padding::to_longest : padding::none, scale);
  }
  at::Tensor row =
      at::cat({of.gradients(), torch::tensor({loss, static_cast<double>(scored)}, at::kFloat)});
  of.sum(row);
  std::int64_t const parameters = row.numel() - 2;
  return {row.narrow(0, 0, parameters),
          row[parameters].item<double>() / std::max(1.0, row[parameters + 1].item<double>())};
}

/// The samples of all ranks together in each step.
omnibal::epoch_sampler global_batches(train_options const& options, trainer const& of) {
  return {of.data().samples.size(),
          {.ranks = 1, .rank = 0},
          {.seed = options.seed, .batch = of.data().batch * of.shard().ranks}};
}

sample_ids next_of(omnibal::epoch_sampler& batches) {
  sample_ids ids;
  auto const batch = batches.next();
  for (std::uint64_t const id : batch) ids.push_back(static_cast<std::uint32_t>(id));
  return ids;
}

struct learning_form {
  form_kind form;
  weight_kind weight;
  std::string name;
};

/// The first is what the others are compared with.
std::array const learning_forms{
    learning_form{form_kind::random_packs, weight_kind::epoch, "random packs, tokens of the epoch"},
    learning_form{form_kind::random_packs, weight_kind::step, "random packs, tokens of the step"},
    learning_form{form_kind::even_packs, weight_kind::epoch, "even packs, tokens of the epoch"},
    learning_form{form_kind::even_packs, weight_kind::step, "even packs, tokens of the step"},
    learning_form{form_kind::unpadded, weight_kind::step, "random samples, tokens of the step"},
    learning_form{form_kind::post_balanced, weight_kind::step, "post-balanced, tokens of the step"},
    learning_form{form_kind::post_balanced, weight_kind::means, "post-balanced, mean of means"},
    learning_form{form_kind::random_packs, weight_kind::means, "random packs, mean of means"}};

/// The losses of all data after each quarter of the epochs.
std::array<double, 4> learn(train_options const& options, trainer& of, time_model const& cost) {
  of.reset(options.seed);
  feed steps(options, of.data(), cost, of.shard());
  std::uint64_t const all = steps.step_count() * options.epochs;
  std::array<double, 4> losses{};
  for (std::uint64_t run = 1; run <= all; ++run) {
    auto const ids = steps.next();
    auto const weight = weight_of(options, of.data(), steps, of.shard().ranks);
    static_cast<void>(of.step(options.form, ids, cost, weight, false));
    for (std::uint64_t quarter = 1; quarter <= 4; ++quarter) {
      if (run == all * quarter / 4) losses[quarter - 1] = of.evaluate();
    }
  }
  return losses;
}

}  // namespace

namespace {

/// The losses of a form after each quarter, one for each seed.
using quarter_losses = std::array<std::vector<double>, 4>;

/// Mean and band of the first form and of those that a reader asks for.
void write_learning_curves(std::filesystem::path const& file,
                           std::vector<quarter_losses> const& losses) {
  struct drawn_form {
    std::size_t number;
    std::string_view color;
  };
  examples::chart content{.title = "loss of all data, mean and range over seeds",
                          .x = {.title = "epochs' samples seen", .most = 100, .unit = " %"},
                          .y = {.title = "loss", .least = 1e30, .most = 0},
                          .curves = {}};
  for (auto const& [number, color] :
       {drawn_form{0, examples::colors::ink}, drawn_form{2, examples::colors::blue},
        drawn_form{6, examples::colors::orange}}) {
    examples::series curve{.label = learning_forms[number].name, .color = color};
    curve.curve.edges = {0};
    for (std::size_t q = 0; q != 4; ++q) {
      std::vector<double> const& of = losses[number][q];
      auto const [low, high] = std::ranges::minmax(of);
      curve.curve.edges.push_back(25.0 * static_cast<double>(q + 1));
      curve.curve.heights.push_back(std::reduce(of.begin(), of.end()) /
                                    static_cast<double>(of.size()));
      curve.lows.push_back(low);
      curve.highs.push_back(high);
      content.y.least = std::min(content.y.least, 0.98 * low);
      content.y.most = std::max(content.y.most, 1.02 * high);
    }
    content.curves.push_back(std::move(curve));
  }
  constexpr double width = 760, height = 420, margin = 24;
  examples::svg_drawing drawing;
  draw(drawing, {margin, margin, width - 2 * margin, height - 2 * margin}, content);
  std::ofstream out(file);
  drawing.write(
      out, width, height, content.title,
      "Random packs, even packs and a mean of means, after each quarter of the training.");
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

void compare_learning(train_options const& options, trainer& of) {
  time_model const cost = of.profile().cost;
  examples::table rows({"loss of all data after", "1/4", "1/2", "3/4", "the whole"});
  std::vector<quarter_losses> of_forms;
  for (learning_form const& form : learning_forms) {
    train_options own = options;
    own.form = form.form;
    own.weight = form.weight;
    quarter_losses& losses = of_forms.emplace_back();
    for (std::size_t run = 0; run != options.runs; ++run) {
      own.seed = options.seed + run;
      auto const quarters = learn(own, of, cost);
      for (std::size_t q = 0; q != 4; ++q) losses[q].push_back(quarters[q]);
    }
    rows.add({form.name, mean_and_spread(losses[0]), mean_and_spread(losses[1]),
              mean_and_spread(losses[2]), mean_and_spread(losses[3])});
  }
  if (of.shard().rank != 0) return;
  rows.print(std::cout);
  if (!options.svg.empty()) write_learning_curves(options.svg, of_forms);
}

bool compare_gradients(train_options const& options, trainer& of) {
  time_model const cost = of.profile().cost;
  auto batches = global_batches(options, of);
  sample_ids const ids = next_of(batches);
  examples::table rows({"one global batch", "loss", "gradients differ by"});
  at::Tensor reference;
  bool is_good = true;
  for (dealing const& how : dealings) {
    dealt_gradients const dealt = gradients_of(of, cost, how, ids);
    if (!reference.defined()) reference = dealt.sum;
    double const difference = ((dealt.sum - reference).norm() / reference.norm()).item<double>();
    bool const is_wrong = how.weight == weight_kind::means;
    if (is_wrong ? of.shard().ranks > 1 && difference < 1e-3 : difference > 1e-5) is_good = false;
    rows.add({how.name, examples::fixed(dealt.loss, 6), scientific(difference)});
  }
  if (of.shard().rank == 0) rows.print(std::cout);
  return is_good;
}

bool compare_curves(train_options const& options, trainer& of) {
  time_model const cost = of.profile().cost;
  std::uint64_t const steps = options.steps == 0 ? 200 : options.steps;
  std::vector<std::string> header{"loss at step"};
  constexpr std::uint64_t shown = 5;
  for (std::uint64_t k = 1; k <= shown; ++k) header.push_back(std::to_string(steps * k / shown));
  header.push_back("largest difference");
  examples::table rows(header);
  std::vector<double> reference;
  bool is_good = true;
  for (dealing const& how : dealings) {
    of.reset(options.seed);
    auto batches = global_batches(options, of);
    std::vector<double> losses;
    for (std::uint64_t step = 0; step != steps; ++step) {
      dealt_gradients const dealt = gradients_of(of, cost, how, next_of(batches));
      of.update(dealt.sum);
      losses.push_back(dealt.loss);
    }
    if (reference.empty()) reference = losses;
    double largest = 0;
    for (std::size_t s = 0; s != losses.size(); ++s) {
      largest = std::max(largest, std::abs(losses[s] - reference[s]) / reference[s]);
    }
    bool const is_wrong = how.weight == weight_kind::means;
    if (!is_wrong && largest > 0.01) is_good = false;
    std::vector<std::string> row{how.name};
    for (std::uint64_t k = 1; k <= shown; ++k) {
      row.push_back(examples::fixed(losses[steps * k / shown - 1], 4));
    }
    row.push_back(scientific(largest));
    rows.add(row);
  }
  if (of.shard().rank == 0) rows.print(std::cout);
  return is_good;
}

}  // namespace train_vlm
