// SPDX-License-Identifier: Apache-2.0
// What an optimizer sees of even steps: the gradients of steps against that of the epoch, and the
// loss after an epoch, for a linear model that is solved exactly. docs/evidence/even_steps.md has the table.

#include "dataset.hpp"
#include "small_options.hpp"
#include "synthetic.hpp"
#include "table.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/tune_capacity.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/loss_normalizer.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using examples::sample;
using omnibal::resources;

constexpr std::size_t ranks = 8;
/// The most groups of a rank in a step.
constexpr std::uint32_t max_groups = 4;
constexpr std::size_t features = 5;
constexpr std::int64_t tokens_per_image = 256;
constexpr std::size_t seeds = 16;
constexpr double learning_rate = 0.1;

constexpr auto demand = omnibal::demand_of(&sample::images, &sample::tokens);

using vector = std::array<double, features>;

[[nodiscard]] double norm(vector const& v) {
  double sum = 0;
  for (double const x : v) sum += x * x;
  return std::sqrt(sum);
}

/// The sum of the losses (x w - y)^2 / 2 of some tokens: w A w / 2 - b w + c, and their number.
struct tokens_loss {
  std::array<vector, features> a{};
  vector b{};
  double c = 0;
  std::int64_t tokens = 0;

  void add(vector const& x, double y, std::int64_t count) {
    auto const n = static_cast<double>(count);
    for (std::size_t i = 0; i != features; ++i) {
      for (std::size_t j = 0; j != features; ++j) a[i][j] += n * x[i] * x[j];
      b[i] += n * x[i] * y;
    }
    c += n * y * y / 2;
    tokens += count;
  }

  void add(tokens_loss const& other) {
    for (std::size_t i = 0; i != features; ++i) {
      for (std::size_t j = 0; j != features; ++j) a[i][j] += other.a[i][j];
      b[i] += other.b[i];
    }
    c += other.c;
    tokens += other.tokens;
  }

  [[nodiscard]] vector gradient(vector const& w) const {
    vector result{};
    for (std::size_t i = 0; i != features; ++i) {
      result[i] = std::inner_product(w.begin(), w.end(), a[i].begin(), -b[i]);
    }
    return result;
  }

  /// The mean of a token.
  [[nodiscard]] double loss(vector const& w) const {
    vector const of = gradient(w);
    double sum = c;
    for (std::size_t i = 0; i != features; ++i) sum += w[i] * (of[i] - b[i]) / 2;
    return sum / static_cast<double>(tokens);
  }

  /// The least loss, by Gauss's elimination.
  [[nodiscard]] vector solution() const {
    auto left = a;
    vector right = b;
    for (std::size_t i = 0; i != features; ++i) {
      for (std::size_t j = 0; j != features; ++j) {
        if (j == i) continue;
        double const times = left[j][i] / left[i][i];
        for (std::size_t k = 0; k != features; ++k) left[j][k] -= times * left[i][k];
        right[j] -= times * right[i];
      }
    }
    for (std::size_t i = 0; i != features; ++i) right[i] /= left[i][i];
    return right;
  }
};

/// The loss of a sample, all of whose text tokens have the same features. What text alone asks for
/// is not what questions about images ask for, so that a step needs both.
[[nodiscard]] tokens_loss loss_of(sample const& from, omnibal::rng::engine& random) {
  auto const uniform = [&] { return 2.0 * static_cast<double>(random() >> 11) * 0x1p-53 - 1.0; };
  auto const text = std::max<std::int64_t>(1, from.tokens - tokens_per_image * from.images);
  bool const has_image = from.images != 0;
  vector const x{1.0, has_image ? 1.0 : 0.0, std::log2(static_cast<double>(text)) / 4 - 2,
                 uniform(), uniform()};
  double const y = 1.0 + x[2] + (has_image ? 1.0 : -1.0) * x[3] + 0.5 * x[4] + uniform();
  tokens_loss result;
  result.add(x, y, text);
  return result;
}

/// Packed samples: the loads and the losses of the groups, but for some that fill no step.
struct packs {
  std::vector<resources<2>> loads;
  std::vector<tokens_loss> losses;
  tokens_loss epoch;
};

[[nodiscard]] packs packs_of(omnibal::packing const& packed, std::vector<sample> const& samples) {
  omnibal::rng::engine random(1);
  std::vector<tokens_loss> of_samples;
  for (sample const& from : samples) of_samples.push_back(loss_of(from, random));
  packs result;
  auto const loads = omnibal::group_loads(packed.groups, samples, demand);
  omnibal::rng::permutation const shuffled(loads.size(), 1);
  for (std::size_t k = 0; k != loads.size() - loads.size() % (max_groups * ranks); ++k) {
    auto const g = static_cast<std::size_t>(shuffled(k));
    tokens_loss sum;
    for (std::uint32_t const item : packed.groups[g]) sum.add(of_samples[item]);
    result.epoch.add(sum);
    result.losses.push_back(sum);
    result.loads.push_back(loads[g]);
  }
  return result;
}

/// Groups in the order of their tokens, in steps in random order.
[[nodiscard]] omnibal::steps sorted_steps(packs const& of, std::uint64_t seed) {
  std::vector<std::uint32_t> order(of.loads.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return of.loads[a][1] > of.loads[b][1]; });
  std::size_t const full = order.size() / ranks;
  omnibal::rng::permutation const shuffled(full, seed);
  std::vector<std::uint32_t> dealt(order);
  for (std::size_t place = 0; place != full * ranks; ++place) {
    dealt[place] = order[shuffled(place / ranks) * ranks + place % ranks];
  }
  return omnibal::make_steps(dealt, ranks);
}

/// What the sum of the losses of a rank's tokens is divided by.
enum class weights {
  tokens_of_rank,   ///< the mean of the ranks' means
  tokens_of_step,   ///< the mean number of a rank in this step: the mean of the step's tokens
  tokens_of_epoch,  ///< the mean number of a rank in a step of the epoch, the same in all steps
};

/// The gradient at `w` that the ranks' mean gives, scaled on each as trainers do.
[[nodiscard]] vector step_gradient(omnibal::steps const& schedule, std::size_t step,
                                   packs const& of, weights by, double epoch_scale,
                                   vector const& w) {
  std::array<tokens_loss, ranks> rank_losses{};
  std::array<std::int64_t, ranks> tokens{};
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::uint32_t const group : schedule(step, rank)) rank_losses[rank].add(of.losses[group]);
    tokens[rank] = rank_losses[rank].tokens;
  }
  double const step_scale =
      by == weights::tokens_of_step ? omnibal::loss_normalizer(tokens) : epoch_scale;
  vector result{};
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    double const scale = by != weights::tokens_of_rank ? step_scale
                         : tokens[rank] == 0           ? 0.0
                                                       : 1.0 / static_cast<double>(tokens[rank]);
    vector const gradient = rank_losses[rank].gradient(w);
    for (std::size_t i = 0; i != features; ++i) result[i] += scale * gradient[i] / ranks;
  }
  return result;
}

/// `loss_normalizer` of the tokens of every rank in every step: the same for all of them.
[[nodiscard]] double scale_of_epoch(omnibal::steps const& schedule, packs const& of) {
  std::vector<std::int64_t> tokens(schedule.size() * ranks, 0);
  for (std::size_t cell = 0; cell != tokens.size(); ++cell) {
    for (std::uint32_t const group : schedule(cell / ranks, cell % ranks)) {
      tokens[cell] += of.losses[group].tokens;
    }
  }
  return omnibal::loss_normalizer(tokens);
}

/// Of the gradients of the steps of an epoch, all at the same weights, over that of the epoch.
struct gradient_figures {
  double bias = 0;
  double spread = 0;
};

[[nodiscard]] gradient_figures gradients(omnibal::steps const& schedule, packs const& of,
                                         weights by) {
  vector const w{};
  vector epoch = of.epoch.gradient(w);
  for (double& x : epoch) x /= static_cast<double>(of.epoch.tokens);
  double const scale = scale_of_epoch(schedule, of);
  auto const steps = static_cast<double>(schedule.size());
  vector error{};
  double squares = 0;
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    vector const of_step = step_gradient(schedule, step, of, by, scale, w);
    for (std::size_t i = 0; i != features; ++i) {
      double const off = of_step[i] - epoch[i];
      error[i] += off / steps;
      squares += off * off / steps;
    }
  }
  return {norm(error) / norm(epoch), std::sqrt(squares) / norm(epoch)};
}

/// How far an epoch of SGD ends above the least loss.
[[nodiscard]] double excess_after_epoch(omnibal::steps const& schedule, packs const& of,
                                        weights by) {
  double const scale = scale_of_epoch(schedule, of);
  vector w{};
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    vector const of_step = step_gradient(schedule, step, of, by, scale, w);
    for (std::size_t i = 0; i != features; ++i) w[i] -= learning_rate * of_step[i];
  }
  return of.epoch.loss(w) - of.epoch.loss(of.epoch.solution());
}

/// A row for the steps that `schedule(seed)` makes.
template <class Schedule>
void add_row(examples::table& rows, std::string const& name, packs const& of,
             Schedule const& schedule) {
  using examples::fixed;
  omnibal::steps const first = schedule(0);
  auto const waiting = omnibal::dist_ratio(first, of.loads);
  auto const mix =
      omnibal::step_spread(first, [&](std::uint32_t group) { return of.losses[group].tokens; });
  std::vector<std::string> row{name, fixed(std::max(waiting[0], waiting[1]), 3),
                               fixed(mix.totals, 2), fixed(mix.variation, 2)};
  for (weights const by :
       {weights::tokens_of_rank, weights::tokens_of_step, weights::tokens_of_epoch}) {
    gradient_figures const figures = gradients(first, of, by);
    double sum = 0;
    double squares = 0;
    for (std::size_t seed = 0; seed != seeds; ++seed) {
      double const excess = excess_after_epoch(schedule(seed), of, by);
      sum += excess / seeds;
      squares += excess * excess / seeds;
    }
    row.push_back(fixed(figures.bias, 3));
    row.push_back(fixed(figures.spread, 2));
    row.push_back(fixed(1000 * sum, 2));
    row.push_back(fixed(1000 * std::sqrt(std::max(0.0, squares - sum * sum)), 2));
  }
  rows.add(std::move(row));
}

/// Rows for steps dealt at random and for those of `schedule_steps`, of so many groups on a rank.
void add_rows(examples::table& rows, std::string const& name, packs const& of,
              std::initializer_list<double> most, std::uint32_t groups = 1) {
  for (double const ratio : most) {
    bool const is_random = groups == 1 && ratio == 1;
    std::string const how = is_random ? "random" : "at most " + examples::fixed(ratio, 3);
    add_row(rows, name + ", " + how, of, [&](std::uint64_t seed) {
      return omnibal::schedule_steps(
          of.loads, ranks, {.seed = seed, .max_dist_ratio = ratio, .groups_per_rank = groups});
    });
  }
}

void print_table(std::vector<sample> const& samples) {
  resources<2> const usual{9, 4096};
  auto const capacity = omnibal::tune_capacity(samples, demand, 4.0, omnibal::best_fit_decreasing,
                                               {.granularity = {1, 16}})
                            .best.capacity;
  auto const tuned = omnibal::best_packing(samples, demand, capacity);
  auto const even = omnibal::improve_packing(samples, demand, capacity, tuned,
                                             {.even_passes = 96, .spare_groups = 0.0025});
  std::cout << "usual capacity " << usual[0] << "/" << usual[1] << ", tuned " << capacity[0] << "/"
            << capacity[1] << "; " << tuned.groups.size() << " groups, " << even.groups.size()
            << " even ones\n";

  std::vector<std::string> header{"groups and steps", "waits", "mix", "cv"};
  for (char const* by : {"means", "step", "epoch"}) {
    header.insert(header.end(), {std::string(by) + ": bias", "spread", "loss", "+-"});
  }
  examples::table rows(std::move(header));
  packs const of_usual = packs_of(omnibal::best_packing(samples, demand, usual), samples);
  add_rows(rows, "usual", of_usual, {1, 0.02, 0.005});
  add_row(rows, "usual, sorted", of_usual,
          [&](std::uint64_t seed) { return sorted_steps(of_usual, seed); });
  add_rows(rows, "usual, 4 groups a rank", of_usual, {1, 0.005}, max_groups);
  rows.add_rule();
  add_rows(rows, "tuned", packs_of(tuned, samples), {1, 0.005});
  add_rows(rows, "even", packs_of(even, samples), {1, 0.005});
  rows.print(std::cout);
}

}  // namespace

int main(int count, char** words) {
  try {
    auto const samples = examples::parse_number(
        {.name = "step_gradients",
         .description = "Compares the gradients of steps with the gradient of the epoch, and the "
                        "loss after an epoch, for several ways to balance steps and to divide "
                        "losses.",
         .example = "step_gradients 3000",
         .exit_status = "0 if the table is complete; otherwise 1."},
        {.usual = 60'000, .least = 1000}, count, words);
    if (samples) print_table(examples::synthetic_lengths(*samples, 1).samples);
    return 0;
  } catch (std::exception const& error) {
    std::cerr << "step_gradients: error: " << error.what() << '\n';
    return 1;
  }
}
