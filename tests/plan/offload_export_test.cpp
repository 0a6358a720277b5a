// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"
#include "error_text.hpp"

#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/write_offload.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>

namespace {

using enum omnibal::activation_choice;
using omnibal::activation_choice;
using test::number_between;

constexpr std::array<std::string_view, 3> megatron_names{"attn_norm", "core_attn", "mlp_norm"};

omnibal::offload_plan two_stages() {
  omnibal::offload_plan plan;
  plan.boundaries = {0, 2, 3};
  plan.choices = {{keep, recompute}, {offload, keep}, {keep, offload}};
  plan.stages = {{10, 20, 2, 5}, {7, 8, 1, 3}};
  plan.step_time = 37;
  plan.lower_bound = 36;
  return plan;
}

/// Layers with these names, and the bytes of their modules.
std::vector<omnibal::offload_layer> layers_of(omnibal::rng::engine& random, std::size_t count) {
  std::vector<omnibal::offload_layer> layers(count);
  for (auto& layer : layers) {
    for (std::size_t j = 0; j != megatron_names.size(); ++j) {
      layer.activations.modules.push_back({number_between(random, 0, 5), 1});
    }
  }
  return layers;
}

/// What Megatron-LM offloads with these flags, from its description: the last group of each name
/// stays, then first groups by the delta of the stage, then last groups by the fraction.
std::vector<std::vector<activation_choice>> run_flags(
    omnibal::megatron_offload const& flags, std::vector<omnibal::offload_layer> const& layers,
    std::vector<std::uint32_t> const& boundaries) {
  std::vector<std::vector<activation_choice>> result(
      layers.size(), std::vector<activation_choice>(megatron_names.size(), keep));
  for (std::size_t s = 0; s + 1 < boundaries.size(); ++s) {
    std::vector<std::pair<std::size_t, std::size_t>> groups;
    for (std::size_t j = 0; j != megatron_names.size(); ++j) {
      bool const is_named = std::count(flags.modules.begin(), flags.modules.end(),
                                       std::string(megatron_names[j])) != 0;
      std::size_t last = layers.size();
      for (std::size_t l = boundaries[s]; l != boundaries[s + 1]; ++l) {
        if (!is_named || layers[l].activations.modules[j].bytes == 0) continue;
        groups.emplace_back(l, j);
        last = l;
      }
      if (last != layers.size()) groups.pop_back();
    }
    std::sort(groups.begin(), groups.end());
    auto left = static_cast<std::int64_t>(s) * flags.delta_bytes;
    while (!groups.empty() && left > 0) {
      left -= layers[groups.front().first].activations.modules[groups.front().second].bytes;
      groups.erase(groups.begin());
    }
    auto const disabled =
        static_cast<std::size_t>(static_cast<double>(groups.size()) * (1 - flags.fraction));
    groups.resize(groups.size() - disabled);
    for (auto const& [l, j] : groups) result[l][j] = offload;
  }
  return result;
}

std::string flags_error(omnibal::offload_plan const& plan,
                        std::vector<omnibal::offload_layer> const& layers,
                        std::vector<std::string_view> const& names) {
  return test::error_text<std::invalid_argument>(
      [&] { return omnibal::megatron_offload_flags(plan, layers, names); });
}

/// One stage of layers whose modules have 5 bytes, with these choices.
struct one_stage {
  omnibal::offload_plan plan;
  std::vector<omnibal::offload_layer> layers;

  explicit one_stage(std::vector<std::vector<activation_choice>> const& choices) {
    plan.boundaries = {0, static_cast<std::uint32_t>(choices.size())};
    plan.choices = choices;
    for (auto const& row : choices) {
      layers.emplace_back().activations.modules.assign(row.size(), {5, 1});
    }
  }
};

}  // namespace

// A trainer that names layers needs the lists of each stage.
TEST_CASE("activation_lists lists the layers of each stage by choice") {
  auto const plan = two_stages();
  auto const list = [&](std::size_t module, activation_choice choice) {
    auto const lists = omnibal::activation_lists(plan, module, choice);
    std::vector<std::vector<std::uint32_t>> result;
    for (std::size_t s = 0; s != lists.size(); ++s) {
      result.emplace_back(lists[s].begin(), lists[s].end());
    }
    return result;
  };
  using lists = std::vector<std::vector<std::uint32_t>>;
  CHECK(list(0, keep) == lists{{0}, {2}});
  CHECK(list(0, offload) == lists{{1}, {}});
  CHECK(list(1, recompute) == lists{{0}, {}});
  CHECK(list(2, keep) == lists{{}, {}});
  CHECK(omnibal::activation_lists(omnibal::offload_plan{}, 0, keep).size() == 0);
  auto broken = plan;
  broken.boundaries = {0, 2, 4};
  CHECK(test::error_text<std::invalid_argument>([&] {
          return omnibal::activation_lists(broken, 0, keep);
        }) == "omnibal::activation_lists: the plan has 3 choices, its boundaries end with 4");
}

// The text is what other programs parse.
TEST_CASE("write_offload_plan writes JSON") {
  std::string text;
  omnibal::write_offload_plan(two_stages(), std::back_inserter(text));
  CHECK(text ==
        "{\"status\":\"ok\",\n\"boundaries\":[0,2,3],\n\"choices\":[\n[\"keep\",\"recompute\"],\n"
        "[\"offload\",\"keep\"],\n[\"keep\",\"offload\"]],\n\"stages\":[\n"
        "{\"time\":10,\"bytes\":20,\"in_flight\":2,\"offloaded_bytes\":5},\n"
        "{\"time\":7,\"bytes\":8,\"in_flight\":1,\"offloaded_bytes\":3}],\n"
        "\"step_time\":37,\"lower_bound\":36,\"proven\":false}\n");
  omnibal::offload_plan none;
  none.status = omnibal::solve_status::infeasible;
  none.stage = 1;
  none.missing_bytes = 12;
  text.clear();
  omnibal::write_offload_plan(none, std::back_inserter(text));
  CHECK(text == "{\"status\":\"infeasible\",\"stage\":1,\"missing_bytes\":12}\n");
}

// The names are the enumerators of PyTorch.
TEST_CASE("write_checkpoint_policies writes the policy of each module") {
  constexpr std::array<std::string_view, 2> names{"attention", "mlp"};
  std::string text;
  omnibal::write_checkpoint_policies(two_stages(), names, std::back_inserter(text));
  CHECK(text ==
        "{\"layers\":[\n{\"attention\":\"MUST_SAVE\",\"mlp\":\"MUST_RECOMPUTE\"},\n"
        "{\"attention\":\"MUST_CPU_OFFLOAD\",\"mlp\":\"MUST_SAVE\"},\n"
        "{\"attention\":\"MUST_SAVE\",\"mlp\":\"MUST_CPU_OFFLOAD\"}]}\n");
  auto const error = [&](std::vector<std::string_view> const& given) {
    return test::error_text<std::invalid_argument>([&] {
      return omnibal::write_checkpoint_policies(two_stages(), given, std::back_inserter(text));
    });
  };
  CHECK(error({"attention"}) ==
        "omnibal::write_checkpoint_policies: plan.choices[0] has 2 values for 1 names");
  CHECK(error({"attention", "m\"lp"}) ==
        "omnibal::write_checkpoint_policies: the name m\"lp has a quote, a backslash or a control "
        "character");
}

// Plans that follow from flags must lead to flags that offload the same groups.
TEST_CASE("megatron_offload_flags finds flags for every plan that flags can express") {
  omnibal::rng::engine random(5);
  int offloads = 0;
  for (int round = 0; round != 5000; ++round) {
    auto const count = static_cast<std::size_t>(number_between(random, 3, 12));
    auto const layers = layers_of(random, count);
    auto const middle =
        static_cast<std::uint32_t>(number_between(random, 1, static_cast<std::int64_t>(count) - 1));
    omnibal::megatron_offload drawn;
    for (auto const one : megatron_names) {
      if (number_between(random, 0, 1) == 1) drawn.modules.emplace_back(one);
    }
    drawn.fraction = static_cast<double>(number_between(random, 4, 10)) / 10;
    drawn.delta_bytes = number_between(random, 0, 20);
    omnibal::offload_plan plan;
    plan.boundaries = {0, middle, static_cast<std::uint32_t>(count)};
    plan.choices = run_flags(drawn, layers, plan.boundaries);
    omnibal::megatron_offload found;
    // Plans whose modules are not those of the flags have other groups: no layer offloads one.
    std::vector<std::string> seen;
    for (std::size_t j = 0; j != megatron_names.size(); ++j) {
      bool const is_seen = std::any_of(plan.choices.begin(), plan.choices.end(),
                                       [&](auto const& row) { return row[j] == offload; });
      if (is_seen) seen.emplace_back(megatron_names[j]);
    }
    if (seen != drawn.modules) continue;
    CAPTURE(round, drawn.fraction, drawn.delta_bytes);
    REQUIRE_NOTHROW(found = omnibal::megatron_offload_flags(plan, layers, megatron_names));
    REQUIRE(found.modules == drawn.modules);
    REQUIRE(run_flags(found, layers, plan.boundaries) == plan.choices);
    if (!seen.empty()) ++offloads;
  }
  CHECK(offloads > 1000);
}

// Flags for any plan either offload what the plan offloads, or there are none.
TEST_CASE("megatron_offload_flags never returns flags of another plan") {
  omnibal::rng::engine random(6);
  int expressed = 0;
  for (int round = 0; round != 20000; ++round) {
    auto const layers = layers_of(random, 4);
    omnibal::offload_plan plan;
    plan.boundaries = {0, 2, 4};
    for (std::size_t l = 0; l != 4; ++l) {
      auto& row = plan.choices.emplace_back();
      for (auto const& part : layers[l].activations.modules) {
        bool const is_offloaded = part.bytes != 0 && number_between(random, 0, 2) == 0;
        row.push_back(is_offloaded ? offload : keep);
      }
    }
    try {
      auto const found = omnibal::megatron_offload_flags(plan, layers, megatron_names);
      REQUIRE(run_flags(found, layers, plan.boundaries) == plan.choices);
      ++expressed;
    } catch (std::invalid_argument const&) {
    }
  }
  CHECK(expressed > 20);
}

// A user learns which layer or module makes a plan impossible in Megatron-LM.
TEST_CASE("megatron_offload_flags names what Megatron-LM cannot express") {
  std::string const name = "omnibal::megatron_offload_flags: ";
  auto const error = [&](one_stage const& given, std::vector<std::string_view> const& names) {
    return flags_error(given.plan, given.layers, names);
  };
  CHECK(error(one_stage({{offload}, {keep}}), {""}) ==
        name + "module 0 of layer 0 is offloaded, and Megatron-LM has no module for it");
  CHECK(error(one_stage({{offload}, {offload}}), {"core_attn"}) ==
        name +
            "layer 1 is the last of stage 0 with core_attn and offloads it, which Megatron-LM "
            "never does");
  CHECK(error(one_stage({{keep}, {offload}, {keep}}), {"core_attn"}) ==
        name +
            "stage 0 keeps core_attn of layer 0, its first group, which Megatron-LM offloads in "
            "stage 0");
  CHECK(error(one_stage({{offload}, {keep}, {offload}, {keep}}), {"core_attn"}) ==
        name +
            "stage 0 offloads core_attn of layer 2 behind core_attn of layer 1, which it keeps; "
            "Megatron-LM offloads groups in a row");
  CHECK(error(one_stage({{offload, recompute}, {keep, keep}}), {"layer_input", ""}) ==
        name + "module 1 of layer 1 is not recomputed, which Megatron-LM requires for layer_input");
  one_stage inputs({{offload, recompute}, {offload, recompute}, {keep, recompute}});
  std::vector<std::string_view> const names{"layer_input", ""};
  auto const flags = omnibal::megatron_offload_flags(inputs.plan, inputs.layers, names);
  CHECK(flags.arguments() ==
        "--fine-grained-activation-offloading --offload-modules layer_input "
        "--activation-offload-fraction 1 --delta-offload-bytes-across-pp-ranks 0");
  one_stage const kept({{keep}, {keep}});
  CHECK(omnibal::megatron_offload_flags(kept.plan, kept.layers, std::vector<std::string_view>{""})
            .arguments()
            .empty());
}
