// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "predicted_epoch.hpp"
#include "tasks.hpp"

#include <omnibal/sample/loss_normalizer.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>

namespace train_vlm {

namespace {

std::ofstream open_log(train_options const& options, std::size_t rank) {
  if (options.log.empty()) return {};
  std::filesystem::create_directories(options.log);
  auto const path = options.log / ("rank_" + std::to_string(rank));
  std::ofstream log(path);
  if (!log) throw std::runtime_error("cannot write " + path.string());
  return log;
}

void print_step(std::uint64_t epoch, std::uint64_t step, step_result const& result) {
  std::printf("epoch %llu step %llu loss %.4f\n", static_cast<unsigned long long>(epoch),
              static_cast<unsigned long long>(step), result.loss);
  if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
}

}  // namespace

loss_weight weight_of(train_options const& options, packed_data const& data, feed const& steps,
                      std::size_t ranks) {
  if (options.weight != weight_kind::epoch) return {options.weight};
  // Only the mean matters, not which rank has which sample in which step.
  std::vector<std::int64_t> tokens(steps.step_count() * ranks);
  for (std::size_t id = 0; id != data.samples.size(); ++id) {
    examples::sample const& sample = data.samples[id];
    std::int64_t const text = sample.tokens - sample.images * options.model.tile_tokens;
    tokens[id % tokens.size()] += sample.images == 0 ? text - 1 : text;
  }
  return {options.weight, omnibal::loss_normalizer(tokens)};
}

void train(train_options const& options, trainer& of) {
  bool const is_first = of.shard().rank == 0;
  time_model cost;
  std::optional<omnibal::sampler_state> state;
  if (options.resumes) {
    auto const [saved_cost, saved_state] = of.load(options.checkpoint);
    cost = saved_cost;
    state = saved_state;
  } else {
    batch_profile const profile = of.profile();
    cost = profile.cost;
    if (is_first) print_prediction(options, of.data(), profile, of.shard().ranks);
  }
  feed steps(options, of.data(), cost, of.shard(), state ? &*state : nullptr);
  if (state && is_first) {
    std::printf("goes on at epoch %llu step %llu\n", static_cast<unsigned long long>(steps.epoch()),
                static_cast<unsigned long long>(steps.step()));
  }
  auto const save = [&] {
    if (is_first && !options.checkpoint.empty()) of.save(options.checkpoint, cost, steps.state());
  };

  std::ofstream log = open_log(options, of.shard().rank);
  for (std::uint64_t run = 0; options.steps == 0 || run != options.steps; ++run) {
    if (steps.done() && steps.epoch() + 1 >= options.epochs) break;
    auto const ids = steps.next();
    auto const weight = weight_of(options, of.data(), steps, of.shard().ranks);
    std::uint64_t const step = steps.step() - 1;
    step_result const result = of.step(options.form, ids, cost, weight, is_asked_to_stop());
    log << steps.epoch() << ' ' << step;
    for (std::uint32_t const id : ids) log << ' ' << id;
    log << std::endl;
    if (is_first) print_step(steps.epoch(), step, result);
    if (result.stops) break;
    if (options.checkpoint_every != 0 && (step + 1) % options.checkpoint_every == 0) save();
  }
  save();
}

}  // namespace train_vlm
