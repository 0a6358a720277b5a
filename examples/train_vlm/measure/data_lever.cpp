// SPDX-License-Identifier: Apache-2.0
#include "predicted_epoch.hpp"
#include "stopwatch.hpp"
#include "table.hpp"
#include "tasks.hpp"

#include <omnibal/comm/collectives.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <utility>

namespace train_vlm {

namespace {

/// What a run of an epoch gives, of all ranks.
struct epoch_figures {
  double seconds = 0;
  /// The sum of the slowest ranks' times, of the clock, of the processor and predicted.
  double slowest = 0;
  double slowest_processor = 0;
  double slowest_predicted = 0;
  /// The epoch as it was predicted before it ran.
  double predicted = 0;
  double planning = 0;
  /// For each rank.
  std::vector<double> waiting;
  /// Means of the relative differences of prediction and measurement.
  double pack_error = 0;
  double step_error = 0;
  std::int64_t tokens = 0;
  std::int64_t images = 0;
};

/// From the times of all ranks, those of a rank one after the other.
epoch_figures add_up(std::vector<step_times> const& times, std::size_t ranks) {
  epoch_figures figures;
  std::size_t const steps = times.size() / ranks;
  figures.waiting.assign(ranks, 0.0);
  std::size_t batches = 0;
  for (std::size_t step = 0; step != steps; ++step) {
    step_times slowest;
    slowest.reduction = times[step].reduction;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      step_times const& of = times[rank * steps + step];
      slowest.all = std::max(slowest.all, of.all);
      slowest.compute = std::max(slowest.compute, of.compute);
      slowest.processor = std::max(slowest.processor, of.processor);
      slowest.predicted = std::max(slowest.predicted, of.predicted);
      slowest.planning = std::max(slowest.planning, of.planning);
      slowest.reduction = std::min(slowest.reduction, of.reduction);
      figures.tokens += of.tokens;
      figures.images += of.images;
      if (of.tokens == 0) continue;
      ++batches;
      figures.pack_error += std::abs(of.predicted - of.processor) / of.processor;
    }
    // Who comes last to the sum of the gradients waits for nobody.
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      figures.waiting[rank] += times[rank * steps + step].reduction - slowest.reduction;
    }
    figures.seconds += slowest.all;
    figures.slowest += slowest.compute;
    figures.slowest_processor += slowest.processor;
    figures.slowest_predicted += slowest.predicted;
    figures.planning += slowest.planning;
    figures.step_error += std::abs(slowest.predicted - slowest.processor) / slowest.processor;
  }
  for (double& share : figures.waiting) share /= figures.seconds;
  figures.pack_error /= static_cast<double>(std::max<std::size_t>(batches, 1));
  figures.step_error /= static_cast<double>(std::max<std::size_t>(steps, 1));
  return figures;
}

/// Padding counts as neither tokens nor images that were trained on.
void count_samples(std::vector<examples::sample> const& samples, epoch_figures& figures) {
  figures.tokens = figures.images = 0;
  for (examples::sample const& sample : samples) {
    figures.tokens += sample.tokens;
    figures.images += sample.images;
  }
}

epoch_figures run_epoch(train_options const& options, trainer& of, batch_profile const& profile) {
  time_model const& cost = profile.cost;
  of.reset(options.seed);
  auto const run = [&](feed& steps) {
    auto const ids = steps.next();
    return of.step(options.form, ids, cost, {}, false).times;
  };
  feed warm(options, of.data(), cost, of.shard());
  static_cast<void>(run(warm));
  feed steps(options, of.data(), cost, of.shard());
  std::vector<step_times> times;
  while (!steps.done() && (options.steps == 0 || times.size() != options.steps)) {
    times.push_back(run(steps));
  }
  auto figures = add_up(omnibal::all_gather(of.comm(), times), of.shard().ranks);
  if (options.steps == 0) count_samples(of.data().samples, figures);
  figures.predicted = predicted_epoch(options, of.data(), profile, of.shard().ranks);
  return figures;
}

/// Of each figure the median of the runs, which have the same tokens and images.
epoch_figures medians_of(std::vector<epoch_figures> const& runs) {
  epoch_figures result = runs.front();
  auto const median = [&](auto const& figure) {
    std::vector<double> all;
    for (epoch_figures const& run : runs) all.push_back(figure(run));
    return train_vlm::median(all);
  };
  for (double epoch_figures::*const figure :
       {&epoch_figures::seconds, &epoch_figures::slowest, &epoch_figures::slowest_processor,
        &epoch_figures::slowest_predicted, &epoch_figures::predicted, &epoch_figures::planning,
        &epoch_figures::pack_error, &epoch_figures::step_error}) {
    result.*figure = median([&](epoch_figures const& run) { return run.*figure; });
  }
  for (std::size_t rank = 0; rank != result.waiting.size(); ++rank) {
    result.waiting[rank] = median([&](epoch_figures const& run) { return run.waiting[rank]; });
  }
  return result;
}

/// The processor times of batches on this machine, each the median of several steps. All are
/// measured once, then all once more: the speed of a machine drifts.
class batch_times {
 public:
  explicit batch_times(trainer& of) : of_(&of) {}

  /// 0 for a batch that was not yet asked for when all were measured.
  double seconds(std::vector<std::uint32_t> const& ids, form_kind form) {
    if (ids.empty()) return 0.0;
    auto& all = seconds_[{form == form_kind::padded, ids}];
    return all.empty() ? 0.0 : all[all.size() / 2];
  }

  void measure(std::size_t runs) {
    for (std::size_t run = 0; run != runs; ++run) {
      for (auto& [batch, all] : seconds_) {
        form_kind const form = batch.first ? form_kind::padded : form_kind::unpadded;
        all.push_back(of_->step(form, batch.second, {}, {}, false).times.processor);
      }
    }
    for (auto& [batch, all] : seconds_) std::ranges::sort(all);
  }

 private:
  trainer* of_;
  std::map<std::pair<bool, std::vector<std::uint32_t>>, std::vector<double>> seconds_;
};

/// An epoch of so many ranks, their batches measured one after the other.
epoch_figures replay(train_options const& options, trainer& of, time_model const& cost,
                     batch_profile const& again, std::size_t ranks, batch_times& measured) {
  std::vector<feed> feeds;
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    feeds.emplace_back(options, of.data(), cost, omnibal::shard{ranks, rank});
  }
  std::vector<std::vector<step_times>> times(ranks);
  double predicted_seconds = 0;
  while (!feeds[0].done()) {
    rank_samples ids;
    for (feed& steps : feeds) ids.push_back(steps.next());
    if (options.form == form_kind::post_balanced) ids = post_balanced(of.data(), cost, ids);
    double slowest = 0;
    std::vector<double> predicted;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      auto const features = features_of(of.data().samples, ids[rank], options.form);
      double const seconds = measured.seconds(ids[rank], options.form);
      slowest = std::max(slowest, seconds);
      times[rank].push_back({.compute = seconds,
                             .processor = seconds,
                             .predicted = ids[rank].empty() ? 0.0 : again.cost(features),
                             .tokens = features[1],
                             .images = features[0]});
    }
    for (auto const& of_rank : times) predicted.push_back(of_rank.back().predicted);
    predicted_seconds += expected_largest(predicted, again.spread);
    for (auto& of_rank : times) {
      of_rank.back().all = slowest;
      of_rank.back().reduction = slowest - of_rank.back().compute;
    }
  }
  std::vector<step_times> all;
  for (auto const& of_rank : times) all.insert(all.end(), of_rank.begin(), of_rank.end());
  auto figures = add_up(all, ranks);
  figures.predicted = predicted_seconds;
  count_samples(of.data().samples, figures);
  return figures;
}

std::string shares_of(std::vector<double> const& waiting) {
  if (waiting.size() > 4) {
    double sum = 0;
    for (double const share : waiting) sum += share;
    return examples::percent(sum / static_cast<double>(waiting.size()), 1);
  }
  std::string text;
  for (double const share : waiting) {
    text += (text.empty() ? "" : ", ") + examples::fixed(100 * share, 1);
  }
  return text + " %";
}

void add_row(examples::table& rows, std::string const& name, epoch_figures const& of) {
  auto const rate = [&](std::int64_t count) {
    return examples::counted(static_cast<std::uint64_t>(static_cast<double>(count) / of.seconds));
  };
  rows.add({name, examples::fixed(of.seconds, 2), shares_of(of.waiting), rate(of.tokens),
            rate(of.images), examples::fixed(of.planning, 2), examples::fixed(of.slowest, 2),
            examples::fixed(of.slowest_processor, 2), examples::fixed(of.slowest_predicted, 2),
            examples::percent(of.pack_error, 1), examples::percent(of.step_error, 1)});
}

examples::table new_table(std::string const& first) {
  return examples::table({first, "epoch s", "waits", "tokens/s", "images/s", "plans s", "slowest s",
                          "processor", "predicted", "batch off", "step off"});
}

/// Epochs of all forms against unpadded random batches, as predicted and as measured.
class gain_table {
 public:
  explicit gain_table(std::string const& first)
      : rows_({first, "predicted s", "measured s", "predicted saving", "measured saving"}) {}

  void add(std::string const& name, std::map<form_kind, epoch_figures> const& figures) {
    epoch_figures const& random = figures.at(form_kind::unpadded);
    auto const saving = [](double seconds, double before) {
      return examples::percent(1 - seconds / before, 1);
    };
    for (form_kind const form : all_forms) {
      epoch_figures const& of = figures.at(form);
      rows_.add({name + to_text(form), examples::fixed(of.predicted, 2),
                 examples::fixed(of.seconds, 2), saving(of.predicted, random.predicted),
                 saving(of.seconds, random.seconds)});
    }
  }

  void print() const {
    std::cout << "\nSavings compared with unpadded random batches:\n\n";
    rows_.print(std::cout);
  }

 private:
  examples::table rows_;
};

void print_data(train_options const& options, packed_data const& data) {
  std::cout << examples::counted(data.samples.size()) << " samples, "
            << examples::counted(data.packs.size()) << " packs of at most " << data.capacity[0]
            << " tiles and " << data.capacity[1] * options.shrink << " tokens, " << data.batch
            << " samples in a batch without packs\n\n";
}

}  // namespace

void compare_forms(train_options const& options, trainer& of) {
  // In turns, each with a profile of its own: the speed of a machine drifts.
  std::map<form_kind, std::vector<epoch_figures>> runs;
  for (std::size_t run = 0; run != options.runs; ++run) {
    for (form_kind const form : all_forms) {
      train_options own = options;
      own.form = form;
      runs[form].push_back(run_epoch(own, of, of.profile()));
    }
  }
  if (of.shard().rank != 0) return;
  std::map<form_kind, epoch_figures> medians;
  auto rows = new_table("form");
  for (form_kind const form : all_forms) {
    medians[form] = medians_of(runs[form]);
    add_row(rows, to_text(form), medians[form]);
  }
  print_data(options, of.data());
  rows.print(std::cout);
  if (options.steps != 0) return;
  gain_table gains("form");
  gains.add("", medians);
  gains.print();
}

void replay_ranks(train_options const& options, trainer& of) {
  time_model const cost = of.profile().cost;
  batch_times measured(of);
  auto const points = of.profile_batches();
  auto const times_of_points = [&] {
    std::vector<std::vector<double>> result;
    for (auto const& [ids, form] : points) result.push_back({measured.seconds(ids, form)});
    return result;
  };
  auto const replay_all = [&](batch_profile const& again) {
    std::map<std::size_t, std::map<form_kind, epoch_figures>> result;
    for (std::size_t const ranks : options.replayed_ranks) {
      for (form_kind const form : all_forms) {
        train_options own = options;
        own.form = form;
        result[ranks][form] = replay(own, of, cost, again, ranks, measured);
      }
    }
    return result;
  };
  // The batches are those of the functor that was fitted first. Predictions use a functor that is
  // fitted to the same measurements as the replayed times.
  static_cast<void>(times_of_points());
  static_cast<void>(replay_all({.cost = cost}));
  measured.measure(options.runs);
  auto const replayed = replay_all(of.fitted(points, times_of_points()));
  auto rows = new_table("ranks, form");
  gain_table gains("ranks, form");
  for (auto const& [ranks, figures] : replayed) {
    for (form_kind const form : all_forms) {
      add_row(rows, std::to_string(ranks) + ", " + to_text(form), figures.at(form));
    }
    gains.add(std::to_string(ranks) + ", ", figures);
  }
  print_data(options, of.data());
  std::cout << "Replayed: batches of all ranks measured one after the other; a step lasts as long\n"
               "as its slowest rank, and ranks talk in no time.\n\n";
  rows.print(std::cout);
  gains.print();
}

}  // namespace train_vlm
