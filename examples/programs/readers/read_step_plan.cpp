// SPDX-License-Identifier: Apache-2.0
#include "read_step_plan.hpp"

#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "progress.hpp"
#include "text_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

double seconds_of(json_fields const& given) {
  return given.number("seconds", 0, std::numeric_limits<double>::max());
}

/// Reads the steps of one file and sees that each rank and sample is there once.
class step_reader {
 public:
  explicit step_reader(std::uint32_t ranks) : ranks_(ranks) {}

  exported_step operator()(json_fields const& given) {
    exported_step step;
    if (given.has("level")) {
      step.level = static_cast<std::size_t>(given.integer("level", 0, largest_integer));
    }
    step.seconds = seconds_of(given);
    step.loss_normalizer = given.number("loss_normalizer", 0, std::numeric_limits<double>::max());
    if (!given.at("micro_steps").is_array()) given.refuse("micro_steps", "must be a list");
    for (auto const& list : given.at("micro_steps")) {
      if (!list.is_array()) fail({given.file()}, "a micro-step is no list of groups");
      auto& groups = step.micro_steps.emplace_back();
      std::vector<bool> busy(ranks_);
      for (auto const& one : list) {
        groups.push_back(group_of({given.file(), "micro_steps", one}, busy));
      }
    }
    return step;
  }

 private:
  exported_group group_of(json_fields const& given, std::vector<bool>& busy) {
    exported_group group;
    group.first_rank = static_cast<std::uint32_t>(given.integer("first_rank", 0, ranks_ - 1));
    std::int64_t const left = std::int64_t{ranks_} - group.first_rank;
    group.degree = static_cast<std::uint32_t>(given.integer("degree", 1, left));
    for (std::uint32_t k = 0; k != group.degree; ++k) {
      if (busy[group.first_rank + k]) {
        fail({given.file()},
             "rank " + std::to_string(group.first_rank + k) + " is in two groups of a micro-step");
      }
      busy[group.first_rank + k] = true;
    }
    group.seconds = seconds_of(given);
    group.tokens = given.integer("tokens", 0, largest_integer);
    group.weight = given.number("weight", 0, std::numeric_limits<double>::max());
    group.samples = given.integers<std::uint32_t>("samples");
    for (std::uint32_t const sample : group.samples) {
      if (sample >= seen_.size()) seen_.resize(sample + std::size_t{1});
      if (seen_[sample]) fail({given.file()}, "sample " + std::to_string(sample) + " runs twice");
      seen_[sample] = true;
    }
    return group;
  }

  std::uint32_t ranks_;
  std::vector<bool> seen_;
};

/// Precondition: the steps have a number of tokens that does not overflow.
double tokens_of(exported_step const& step) {
  double tokens = 0;
  for (auto const& groups : step.micro_steps) {
    for (exported_group const& group : groups) tokens += static_cast<double>(group.tokens);
  }
  return tokens;
}

/// Throws unless the weights of all groups are their shares of the tokens.
void check_weights(std::string const& file, exported_step_plan const& plan,
                   std::vector<exported_step> const& steps) {
  double mean = 0;
  for (exported_step const& step : steps) {
    mean += tokens_of(step) / static_cast<double>(steps.size());
  }
  auto const is_near = [](double one, double other) {
    return std::abs(one - other) <= 1e-9 * std::max(std::abs(one), std::abs(other));
  };
  for (std::size_t k = 0; k != steps.size(); ++k) {
    double const tokens = plan.weights == loss_weights::step ? tokens_of(steps[k]) : mean;
    position const where{file, 0, k + 1};
    double const scale = tokens == 0 ? 0 : plan.ranks / tokens;
    if (!is_near(steps[k].loss_normalizer, scale)) {
      fail(where, "field \"loss_normalizer\" is " +
                      nlohmann::json(steps[k].loss_normalizer).dump() + ", must be " +
                      nlohmann::json(scale).dump());
    }
    for (auto const& groups : steps[k].micro_steps) {
      for (exported_group const& group : groups) {
        double const weight = tokens == 0 ? 0 : static_cast<double>(group.tokens) / tokens;
        if (is_near(group.weight, weight)) continue;
        fail(where, "field \"weight\" is " + nlohmann::json(group.weight).dump() + ", must be " +
                        nlohmann::json(weight).dump());
      }
    }
  }
}

}  // namespace

exported_step_plan read_step_plan(std::filesystem::path const& path) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  auto const document = parse_json(text.name(), text.view());
  json_fields const given(text.name(), "", document);
  if (given.text("format") != "omnibal steps") {
    given.refuse("format", "must be \"omnibal steps\"");
  }
  static_cast<void>(given.integer("format_version", 1, 1));
  exported_step_plan plan;
  plan.ranks = static_cast<std::uint32_t>(given.integer("ranks", 1, std::int64_t{1} << 20));
  plan.weights = static_cast<loss_weights>(given.choice("weights", loss_weight_names));
  if (!given.at("plans").is_array()) given.refuse("plans", "must be a list");
  for (auto const& one : given.at("plans")) {
    json_fields const fields(text.name(), "plans", one);
    exported_steps made{fields.text("name"), {}};
    file_text const lines(path.parent_path() / fields.text("file"), hidden);
    step_reader read(plan.ranks);
    std::size_t number = 0;
    for (std::string_view const line : lines_of(lines.view())) {
      std::string const where = to_text(position{lines.name(), 0, ++number});
      auto const step = parse_json(where, line);
      made.steps.push_back(read({where, "", step}));
    }
    std::int64_t const steps = fields.integer("steps", 0, largest_integer);
    if (std::cmp_not_equal(made.steps.size(), steps)) {
      fail({lines.name()},
           "has " + std::to_string(made.steps.size()) + " steps of " + std::to_string(steps));
    }
    check_weights(lines.name(), plan, made.steps);
    plan.plans.push_back(std::move(made));
  }
  return plan;
}

}  // namespace examples
