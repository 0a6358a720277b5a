// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

#include "stopwatch.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/exchange/exchange_samples.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/sample/loss_normalizer.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/serialize.h>

namespace train_vlm {

namespace {

at::Tensor bytes_of(void const* data, std::size_t size) {
  return at::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(size)}, at::kByte)
      .clone();
}

}  // namespace

c10::intrusive_ptr<trainer::group> trainer::connect(train_options const& options,
                                                    place_in_world const& place) {
  auto settings = group::Options::create(std::chrono::seconds(options.timeout_seconds));
  settings->devices.push_back(group::createDeviceForHostname("127.0.0.1"));
  int const ranks = static_cast<int>(place.ranks);
  auto store = c10::make_intrusive<::c10d::FileStore>(place.meeting, ranks);
  return c10::make_intrusive<group>(store, static_cast<int>(place.rank), ranks, settings);
}

trainer::trainer(train_options const& options, place_in_world const& place)
    : options_(options), place_(place), comm_(connect(options, place)) {
  // A rank whose input is refused ends only after all others have met it, and so say the same.
  comm_.get()->barrier()->wait();
  reset(options.seed);
}

void trainer::reset(std::uint64_t seed) {
  torch::manual_seed(seed);
  model_ = std::make_shared<vlm>(options_.model);
  optimizer_ = std::make_unique<torch::optim::AdamW>(
      model_->parameters(), torch::optim::AdamWOptions(options_.learning_rate));
}

void trainer::fill(packed_data data) {
  data_ = std::move(data);
  contents_.clear();
  for (std::size_t id = 0; id != data_.samples.size(); ++id) {
    contents_.push_back(make_contents(options_.model, data_.samples[id], options_.seed, id));
  }
}

std::vector<profile_batch> trainer::profile_batches() const {
  std::vector<std::span<std::uint32_t const>> packs;
  std::size_t const count = std::min<std::size_t>(data_.packs.size(), 24);
  std::uint32_t longest = data_.packs[0].front();
  for (std::size_t p = 0; p != count; ++p) {
    packs.push_back(data_.packs[p * data_.packs.size() / count]);
    for (std::uint32_t const id : packs.back()) {
      if (data_.samples[id].tokens > data_.samples[longest].tokens) longest = id;
    }
  }
  std::vector<profile_batch> result;
  for (std::size_t p = 0; p != count; ++p) {
    result.push_back({{packs[p].begin(), packs[p].end()}});
    auto const half = packs[p].first((packs[p].size() + 1) / 2);
    result.push_back({{half.begin(), half.end()}});
    if (p % 2 != 0) continue;
    // Padding to the longest sample adds tokens without tiles.
    result.push_back({{half.begin(), half.end()}, form_kind::padded});
    if (std::ranges::find(half, longest) == half.end()) result.back().ids.push_back(longest);
  }
  return result;
}

batch_profile trainer::fitted(std::vector<profile_batch> const& batches,
                              std::vector<std::vector<double>> const& seconds) {
  double numbers[6] = {};
  if (place_.rank == 0) {
    std::vector<batch_features> features;
    for (auto const& [ids, form] : batches) {
      features.push_back(features_of(data_.samples, ids, form));
    }
    std::vector<std::size_t> points(batches.size());
    std::iota(points.begin(), points.end(), std::size_t{0});
    auto const fit = omnibal::affine_fit(
        points, [&](std::size_t p) { return features[p]; },
        [&](std::size_t p) { return median(seconds[p]); },
        {.signs = omnibal::fit_signs::not_negative});
    std::copy_n(&fit.slopes[0], 4, numbers);
    numbers[4] = fit.offset;
    double squares = 0;
    double count = 0;
    for (std::size_t const p : points) {
      for (double const measured : seconds[p]) {
        double const error = measured / fit(features[p]) - 1;
        squares += error * error;
        ++count;
      }
    }
    numbers[5] = std::sqrt(squares / count);
  }
  auto const all = omnibal::all_gather(comm_, numbers);
  return {.cost = {.offset = all[4], .slopes = {all[0], all[1], all[2], all[3]}}, .spread = all[5]};
}

batch_profile trainer::profile() {
  auto const batches = profile_batches();
  std::vector<std::vector<double>> seconds(batches.size());
  std::vector<double> rests;
  for (std::size_t round = 0; round != 3; ++round) {
    for (std::size_t b = 0; b != batches.size(); ++b) {
      auto const times = step(batches[b].form, batches[b].ids, {}, {}, false).times;
      seconds[b].push_back(times.processor);
      rests.push_back(times.all - times.processor);
    }
  }
  reset(options_.seed);
  batch_profile result = fitted(batches, seconds);

  std::vector<double> exchanges;
  for (std::size_t b = 0; b != batches.size(); ++b) {
    auto const& ids = batches[(b + place_.rank) % batches.size()].ids;
    stopwatch const exchanging;
    static_cast<void>(gather(form_kind::post_balanced, ids, result.cost));
    exchanges.push_back(exchanging.seconds());
  }
  // All ranks predict the same.
  double const own[] = {median(rests), median(exchanges)};
  auto const all = omnibal::all_gather(comm_, own);
  result.step_seconds = all[0];
  result.exchange_seconds = all[1];
  return result;
}

step_samples trainer::gather(form_kind form, std::span<std::uint32_t const> ids,
                             time_model const& cost) {
  step_samples result;
  result.features = features_of(data_.samples, ids, form);
  for (std::uint32_t const id : ids) result.samples.push_back(&contents_[id]);
  if (form != form_kind::post_balanced) return result;

  time_model const of_sample = cost.per_sample();
  auto const nanoseconds = [&](std::uint32_t id) {
    return static_cast<std::int64_t>(1e9 * of_sample(features_of(data_.samples[id])));
  };
  auto const bytes = [&](std::uint32_t id) {
    return contents_[id].pixels.size() * sizeof(float) + contents_[id].text.size() * 4;
  };
  auto const plan = omnibal::plan_exchange(comm_, ids, nanoseconds, bytes);
  std::vector<std::vector<float>> pixels;
  std::vector<std::vector<std::int32_t>> text;
  std::vector<examples::sample> lengths;
  for (std::uint32_t const id : ids) {
    pixels.push_back(contents_[id].pixels);
    text.push_back(contents_[id].text);
    lengths.push_back(data_.samples[id]);
  }
  auto received = omnibal::exchange_samples(comm_, omnibal::agreed(plan), pixels, text, lengths);

  result = {};
  auto& [new_pixels, new_text, new_lengths] = received;
  result.received.resize(new_text.size());
  for (std::size_t s = 0; s != new_text.size(); ++s) {
    result.received[s] = {std::move(new_pixels[s]), std::move(new_text[s])};
    result.samples.push_back(&result.received[s]);
    batch_features const own = features_of(new_lengths[s]);
    for (std::size_t r = 0; r != own.size(); ++r) result.features[r] += own[r];
  }
  return result;
}

std::int64_t loss_tokens(step_samples const& of) {
  std::int64_t sum = 0;
  for (sample_contents const* sample : of.samples) {
    sum += static_cast<std::int64_t>(sample->text.size()) - (sample->pixels.empty() ? 1 : 0);
  }
  return sum;
}

double trainer::add_gradients(step_samples const& of, padding padded, double scale) {
  if (of.samples.empty()) return 0.0;
  at::Tensor const loss = model_->loss_sum(make_batch(options_.model, of.samples, padded));
  (loss * scale).backward();
  return loss.item<double>();
}

double trainer::evaluate() {
  at::NoGradGuard const guard;
  double loss = 0, scored = 0;
  for (std::size_t p = place_.rank; p < data_.packs.size(); p += place_.ranks) {
    step_samples const of = gather(form_kind::unpadded, data_.packs[p], {});
    loss += model_->loss_sum(make_batch(options_.model, of.samples, padding::none)).item<double>();
    scored += static_cast<double>(loss_tokens(of));
  }
  at::Tensor row = torch::tensor({loss, scored}, at::kDouble);
  sum(row);
  return row[0].item<double>() / row[1].item<double>();
}

at::Tensor trainer::gradients() {
  std::vector<at::Tensor> rows;
  for (at::Tensor const& parameter : model_->parameters()) {
    at::Tensor const& gradient = parameter.grad();
    rows.push_back(gradient.defined() ? gradient.reshape(-1)
                                      : at::zeros({parameter.numel()}, at::kFloat));
  }
  return at::cat(rows);
}

double trainer::scale_of(weight_kind weight, std::int64_t own_loss_tokens) {
  if (weight == weight_kind::means) {
    return own_loss_tokens == 0 ? 0.0 : 1.0 / static_cast<double>(own_loss_tokens);
  }
  return omnibal::loss_normalizer(omnibal::all_gather(comm_, own_loss_tokens));
}

void trainer::sum(at::Tensor& values) {
  std::vector<at::Tensor> tensors{values};
  comm_.get()->allreduce(tensors, ::c10d::AllreduceOptions())->wait();
}

void trainer::update(at::Tensor const& sum) {
  at::Tensor const mean = sum / static_cast<double>(place_.ranks);
  std::int64_t at = 0;
  for (at::Tensor& parameter : model_->parameters()) {
    parameter.mutable_grad() = mean.narrow(0, at, parameter.numel()).view_as(parameter);
    at += parameter.numel();
  }
  optimizer_->step();
}

step_result trainer::step(form_kind form, std::span<std::uint32_t const> ids,
                          time_model const& cost, loss_weight const& weight, bool stops) {
  step_result result;
  stopwatch const all;
  step_samples const of = gather(form, ids, cost);
  std::int64_t const scored = loss_tokens(of);
  double const scale =
      weight.kind == weight_kind::epoch ? weight.scale : scale_of(weight.kind, scored);
  result.times.planning = all.seconds();

  stopwatch const computing;
  model_->zero_grad();
  double const loss =
      add_gradients(of, form == form_kind::padded ? padding::to_longest : padding::none, scale);
  at::Tensor row =
      at::cat({gradients(),
               torch::tensor({loss, static_cast<double>(scored), stops ? 1.0 : 0.0}, at::kFloat)});
  result.times.compute = computing.seconds();
  result.times.processor = computing.processor_seconds();

  stopwatch const reducing;
  sum(row);
  result.times.reduction = reducing.seconds();

  std::int64_t const parameters = row.numel() - 3;
  update(row.narrow(0, 0, parameters));
  result.loss = row[parameters].item<double>() / std::max(1.0, row[parameters + 1].item<double>());
  result.stops = row[parameters + 2].item<double>() > 0.0;
  result.times.all = all.seconds();
  result.times.predicted = of.samples.empty() ? 0.0 : cost(of.features);
  result.times.images = of.features[0];
  result.times.tokens = of.features[1];
  return result;
}

void trainer::save(std::string const& path, time_model const& cost,
                   omnibal::sampler_state const& state) {
  torch::serialize::OutputArchive archive, model, optimizer;
  model_->save(model);
  optimizer_->save(optimizer);
  archive.write("model", model);
  archive.write("optimizer", optimizer);
  std::string const text = lasting_options(options_);
  archive.write("options", bytes_of(text.data(), text.size()));
  double const coefficients[] = {cost.slopes[0], cost.slopes[1], cost.slopes[2], cost.slopes[3],
                                 cost.offset};
  archive.write("cost", bytes_of(coefficients, sizeof coefficients));
  archive.write("sampler", bytes_of(&state, sizeof state));
  // Whoever reads sees the old file or the new one, whole.
  archive.save_to(path + ".new");
  std::filesystem::rename(path + ".new", path);
}

std::pair<time_model, omnibal::sampler_state> trainer::load(std::string const& path) {
  torch::serialize::InputArchive archive, model, optimizer;
  at::Tensor text, coefficients, sampler;
  try {
    archive.load_from(path);
    archive.read("options", text);
    archive.read("cost", coefficients);
    archive.read("sampler", sampler);
    archive.read("model", model);
    archive.read("optimizer", optimizer);
  } catch (std::exception const&) {
    throw std::runtime_error(path + " is no checkpoint of this program");
  }
  std::string const saved(static_cast<char const*>(text.data_ptr()),
                          static_cast<std::size_t>(text.numel()));
  if (saved != lasting_options(options_)) {
    throw std::runtime_error(path + " is of other options: it has " + saved + ", the run has " +
                             lasting_options(options_));
  }
  model_->load(model);
  optimizer_->load(optimizer);
  double c[5];
  omnibal::sampler_state state;
  std::memcpy(c, coefficients.data_ptr(), sizeof c);
  std::memcpy(&state, sampler.data_ptr(), sizeof state);
  return {{.offset = c[4], .slopes = {c[0], c[1], c[2], c[3]}}, state};
}

}  // namespace train_vlm
