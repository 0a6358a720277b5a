// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/comm/collectives.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace train_vlm {

namespace {

using group_numbers = std::vector<std::uint32_t>;

/// The groups of each rank in each step of an epoch: steps, then ranks.
using epoch_steps = std::vector<std::vector<group_numbers>>;

/// How texts are packed and dealt.
struct text_form {
  std::string name;
  omnibal::grouping packs;
  /// The epochs of so many ranks, by seed.
  std::function<epoch_steps(std::size_t ranks, std::uint64_t seed)> epoch;
};

std::span<std::uint32_t const> groups_of(omnibal::level_step const& step) { return step.groups; }
std::span<std::uint32_t const> groups_of(std::span<std::uint32_t const> groups) { return groups; }

/// What samplers of all ranks give in an epoch.
template <class MakeSampler>
epoch_steps collect(std::size_t ranks, MakeSampler const& make) {
  epoch_steps result;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    auto sampler = make(omnibal::shard{ranks, rank});
    for (std::size_t step = 0; !sampler.done(); ++step) {
      if (step == result.size()) result.emplace_back(ranks);
      auto const groups = groups_of(sampler.next());
      result[step][rank].assign(groups.begin(), groups.end());
    }
  }
  return result;
}

/// The texts of the data, packed in one length and in two.
class text_forms {
 public:
  text_forms(train_options const& options, packed_data const& data, time_model const& cost) {
    std::int64_t const longest = data.capacity[1];
    auto const measure = [](examples::sample const& sample) { return features_of(sample); };
    auto const loads = [&](omnibal::grouping const& packs) {
      std::vector<std::int64_t> nanoseconds;
      for (auto const& load : omnibal::group_loads(packs, data.samples, measure)) {
        nanoseconds.push_back(static_cast<std::int64_t>(1e9 * cost(load)));
      }
      return nanoseconds;
    };
    auto const add_one_length = [&](std::string const& name, double max_dist_ratio) {
      auto const nanoseconds = loads(data.packs);
      all_.push_back({name, data.packs, [=](std::size_t ranks, std::uint64_t seed) {
                        return collect(ranks, [&](omnibal::shard const& place) {
                          return omnibal::step_sampler(
                              nanoseconds, place, {.seed = seed, .max_dist_ratio = max_dist_ratio});
                        });
                      }});
    };
    add_one_length("one length, random", 1.0);
    add_one_length("one length, even", options.max_dist_ratio);

    std::vector<std::int64_t> const lengths{longest / 4, longest};
    auto const packed =
        omnibal::pack_levels(data.samples, &examples::sample::tokens, lengths,
                             {.oversized = options.oversized == oversized_kind::own_group
                                               ? omnibal::oversize_policy::own_group
                                               : omnibal::oversize_policy::reject});
    auto const nanoseconds = loads(packed.groups);
    auto const add_levels = [&](std::string const& name, double max_dist_ratio) {
      all_.push_back({name, packed.groups, [=](std::size_t ranks, std::uint64_t seed) {
                        return collect(ranks, [&](omnibal::shard const& place) {
                          return omnibal::level_sampler(
                              packed, nanoseconds, place,
                              {.schedule = {.seed = seed, .max_dist_ratio = max_dist_ratio}});
                        });
                      }});
    };
    add_levels("two lengths, random", 1.0);
    add_levels("two lengths, even", options.max_dist_ratio);
  }

  [[nodiscard]] std::vector<text_form> const& all() const { return all_; }

 private:
  std::vector<text_form> all_;
};

/// Only the texts of a data set, which may be longer than all others.
packed_data texts_of(train_options const& options, packed_data data) {
  std::erase_if(data.samples, [](examples::sample const& sample) { return sample.images != 0; });
  if (data.samples.empty()) throw std::runtime_error("--task long needs texts, the data have none");
  data.packs =
      omnibal::place_oversized(
          omnibal::best_packing(data.samples, &examples::sample::tokens, data.capacity[1]),
          options.oversized == oversized_kind::own_group ? omnibal::oversize_policy::own_group
                                                         : omnibal::oversize_policy::reject)
          .groups;
  return data;
}

class text_trainer {
 public:
  text_trainer(train_options const& options, trainer& of, time_model const& cost)
      : options_(&options), of_(&of), cost_(cost) {}

  struct figures {
    double seconds = 0;
    double waiting = 0;
    double loss = 0;
  };

  /// Trains an epoch; every token of it has the same weight.
  figures train(text_form const& form, std::uint64_t seed) {
    of_->reset(options_->seed);
    auto const [ranks, rank] = of_->shard();
    epoch_steps const steps = form.epoch(ranks, seed);
    loss_weight const weight{weight_kind::epoch, scale_of(form, steps)};
    figures result;
    for (auto const& step : steps) {
      auto const own =
          of_->step(form_kind::unpadded, ids_of(form, step[rank]), cost_, weight, false).times;
      double slowest = 0, min_reduction = own.reduction, reduction = 0;
      for (step_times const& times : omnibal::all_gather(of_->comm(), own)) {
        slowest = std::max(slowest, times.all);
        min_reduction = std::min(min_reduction, times.reduction);
        reduction += times.reduction / static_cast<double>(ranks);
      }
      result.seconds += slowest;
      result.waiting += reduction - min_reduction;
    }
    result.waiting /= result.seconds;
    result.loss = of_->evaluate();
    return result;
  }

  /// The mean gradient of the steps of an epoch, before training.
  at::Tensor epoch_gradient(text_form const& form) {
    of_->reset(options_->seed);
    auto const [ranks, rank] = of_->shard();
    epoch_steps const steps = form.epoch(ranks, options_->seed);
    double const scale = scale_of(form, steps);
    of_->model().zero_grad();
    for (auto const& step : steps) {
      of_->add_gradients(of_->gather(form_kind::unpadded, ids_of(form, step[rank]), cost_),
                         padding::none, scale);
    }
    at::Tensor sum = of_->gradients();
    of_->sum(sum);
    return sum / static_cast<double>(steps.size() * ranks);
  }

  /// An epoch of more ranks, whose packs are measured one after the other.
  figures replay(text_form const& form, std::vector<double> const& pack_seconds,
                 std::size_t ranks) const {
    figures result;
    double busy = 0;
    for (auto const& step : form.epoch(ranks, options_->seed)) {
      double slowest = 0;
      for (auto const& groups : step) {
        double seconds = 0;
        for (std::uint32_t const pack : groups) seconds += pack_seconds[pack];
        busy += seconds / static_cast<double>(ranks);
        slowest = std::max(slowest, seconds);
      }
      result.seconds += slowest;
    }
    result.waiting = 1 - busy / result.seconds;
    return result;
  }

  /// The processor time of each pack, the median of some steps.
  std::vector<double> measure(text_form const& form) {
    std::vector<double> seconds;
    for (std::uint32_t pack = 0; pack != form.packs.size(); ++pack) {
      std::vector<double> all;
      for (std::size_t run = 0; run != options_->runs; ++run) {
        all.push_back(
            of_->step(form_kind::unpadded, form.packs[pack], {}, {}, false).times.processor);
      }
      std::ranges::sort(all);
      seconds.push_back(all[all.size() / 2]);
    }
    return seconds;
  }

 private:
  [[nodiscard]] static group_numbers ids_of(text_form const& form, group_numbers const& packs) {
    group_numbers ids;
    for (std::uint32_t const pack : packs) {
      ids.insert(ids.end(), form.packs[pack].begin(), form.packs[pack].end());
    }
    return ids;
  }

  [[nodiscard]] double scale_of(text_form const& form, epoch_steps const& steps) const {
    std::vector<std::int64_t> tokens;
    for (auto const& step : steps) {
      for (auto const& groups : step) {
        std::int64_t scored = 0;
        for (std::uint32_t const id : ids_of(form, groups)) {
          scored += of_->data().samples[id].tokens - 1;
        }
        tokens.push_back(scored);
      }
    }
    return omnibal::loss_normalizer(tokens);
  }

  train_options const* options_;
  trainer* of_;
  time_model cost_;
};

}  // namespace

bool compare_long_contexts(train_options const& options, trainer& of) {
  time_model const cost = of.profile().cost;
  of.fill(texts_of(options, of.data()));
  text_forms const forms(options, of.data(), cost);
  text_trainer run(options, of, cost);
  std::vector<std::string> header{"texts", "packs",      "steps",       "epoch s",
                                  "waits", "loss after", "gradient off"};
  for (std::size_t const ranks : options.replayed_ranks) {
    header.push_back(std::to_string(ranks) + " ranks");
    header.push_back("wait");
  }
  examples::table rows(header);
  bool is_good = true;
  at::Tensor reference;
  for (text_form const& form : forms.all()) {
    std::vector<double> seconds, waiting, losses;
    for (std::size_t r = 0; r != options.runs; ++r) {
      auto const figures = run.train(form, options.seed + r);
      seconds.push_back(figures.seconds);
      waiting.push_back(figures.waiting);
      losses.push_back(figures.loss);
    }
    at::Tensor const gradient = run.epoch_gradient(form);
    if (!reference.defined()) reference = gradient;
    double const difference = ((gradient - reference).norm() / reference.norm()).item<double>();
    if (difference > 1e-5) is_good = false;
    std::ranges::sort(seconds);
    std::ranges::sort(waiting);
    std::vector<std::string> row{
        form.name,
        examples::counted(form.packs.size()),
        examples::counted(form.epoch(of.shard().ranks, options.seed).size()),
        examples::fixed(seconds[seconds.size() / 2], 2),
        examples::percent(waiting[waiting.size() / 2], 1),
        mean_and_spread(losses),
        scientific(difference)};
    auto const pack_seconds = run.measure(form);
    for (std::size_t const ranks : options.replayed_ranks) {
      auto const replayed = run.replay(form, pack_seconds, ranks);
      row.push_back(examples::fixed(replayed.seconds, 2));
      row.push_back(examples::percent(replayed.waiting, 1));
    }
    rows.add(row);
  }
  if (of.shard().rank == 0) {
    std::cout << examples::counted(of.data().samples.size()) << " texts, packs of at most "
              << of.data().capacity[1] << " tokens, short ones of a quarter\n\n";
    rows.print(std::cout);
  }
  return is_good;
}

}  // namespace train_vlm
