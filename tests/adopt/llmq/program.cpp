// SPDX-License-Identifier: Apache-2.0
// The lines of docs/evidence/adopt_llmq.md, over a stand-in of the trainer's interface.

#include "choose_recompute.hpp"

#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

void check(bool holds, char const* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

std::string flags_of(LLamaOptions const& options) {
  if (options.RecomputeBlock) return "block";
  std::string flags;
  auto const add = [&](bool is_set, char const* name) {
    if (is_set) flags += (flags.empty() ? "" : " ") + std::string(name);
  };
  add(options.RecomputeRMSNorm, "norm");
  add(options.RecomputeSwiGLu && !options.RecomputeFFN, "swiglu");
  add(options.RecomputeFFN, "ffn");
  add(options.RecomputeQKV && !options.RecomputeAtt, "qkv");
  add(options.RecomputeAtt, "att");
  return flags.empty() ? "none" : flags;
}

/// The seconds of all layers, forward and backward.
double step_seconds(TransformerConfig const& config, micro_batch const& batch,
                    device_rates const& rates) {
  omnibal::transformer const layer{.hidden = config.HiddenSize,
                                   .heads = config.NumQueryHeads,
                                   .kv_heads = config.NumKeyValHeads,
                                   .mlp = config.IntermediateSize};
  omnibal::micro_batch_work const work{
      .documents = omnibal::equal_sequences({.count = batch.B, .length = batch.T})};
  return config.NumLayers * static_cast<double>(layer(work).flops()) / rates.flops;
}

/// The least time with one set of flags for all layers, by trying all of them.
double try_all(LLamaOptions const& options, TransformerConfig const& config,
               micro_batch const& batch, device_rates const& rates, std::int64_t budget) {
  double best = std::numeric_limits<double>::infinity();
  for (LLamaOptions const& setting : recompute_settings(options)) {
    auto const one = layer_choice(config, setting, batch, rates);
    if (one.bytes * config.NumLayers + one.transient_bytes > budget) continue;
    best = std::min(best, one.time * config.NumLayers);
  }
  return best;
}

/// What train.cpp does with its options.
void choose(LLamaOptions& Options, TransformerConfig const& config, std::int64_t B, std::int64_t T,
            device_rates const& rates, std::int64_t budget) {
  auto const chosen = choose_recompute(Options, config, {.B = B, .T = T}, rates, budget);
  if (chosen.status == omnibal::solve_status::infeasible) {
    throw std::runtime_error("activations need " + std::to_string(chosen.missing_bytes) +
                             " bytes more");
  }
}

}  // namespace

int main() {
  // Qwen2.5-7B in bf16, sequences of 2048 tokens, 12 GiB for activations of layers.
  TransformerConfig const config{.HiddenSize = 3584,
                                 .IntermediateSize = 18944,
                                 .VocabSize = 152064,
                                 .NumQueryHeads = 28,
                                 .NumKeyValHeads = 4,
                                 .NumLayers = 28};
  device_rates const rates{.flops = 150e12, .bytes = 800e9};
  auto const budget = static_cast<std::int64_t>(12 * gib);

  std::printf("batch  flags            GiB   made again  by layer\n");
  for (std::int64_t const B : {1, 2, 3, 4, 6, 8, 12, 16, 20, 32}) {
    micro_batch const batch{.B = B, .T = 2048};
    LLamaOptions options;
    auto const chosen = choose_recompute(options, config, batch, rates, budget);
    if (chosen.status != omnibal::solve_status::solved) {
      check(
          try_all(options, config, batch, rates, budget) == std::numeric_limits<double>::infinity(),
          "no flags fit");
      std::printf("%5lld  none fits, %.1f GiB are missing\n", static_cast<long long>(B),
                  static_cast<double>(chosen.missing_bytes) / gib);
      continue;
    }
    double const best = try_all(options, config, batch, rates, budget);
    check(chosen.proven && chosen.bytes <= budget && chosen.time <= best * (1 + 1e-12) &&
              chosen.time >= best * (1 - 1e-12),
          "the best flags");

    LLamaOptions again;
    choose(again, config, B, batch.T, rates, budget);
    check(flags_of(again) == flags_of(options), "the same flags");

    // What flags of its own for each layer would give.
    std::vector<omnibal::activation_option<double>> choices;
    for (LLamaOptions const& setting : recompute_settings({})) {
      choices.push_back(layer_choice(config, setting, batch, rates));
    }
    auto const count = static_cast<std::size_t>(config.NumLayers);
    std::vector const layers(count, choices);
    auto const by_layer = omnibal::select_recompute(layers, budget);
    check(by_layer.time <= chosen.time * (1 + 1e-12), "flags by layer are not worse");

    double const seconds = step_seconds(config, batch, rates);
    std::printf("%5lld  %-15s %4.1f  %9.1f%%  %7.1f%%\n", static_cast<long long>(B),
                flags_of(options).c_str(), static_cast<double>(chosen.bytes) / gib,
                100 * chosen.time / seconds, 100 * by_layer.time / seconds);
  }

  // The step that llmq's README measured.
  TransformerConfig const small{.HiddenSize = 896,
                                .IntermediateSize = 4864,
                                .VocabSize = 151936,
                                .NumQueryHeads = 14,
                                .NumKeyValHeads = 2,
                                .NumLayers = 24};
  LLamaOptions options{.MatmulType = ETensorDType::FP8_E4M3};
  auto const gib_with = [&](bool swiglu_only) {
    options.RecomputeSwiGLu = true;
    options.RecomputeFFN = options.RecomputeQKV = options.RecomputeAtt = !swiglu_only;
    auto const one = layer_choice(small, options, {.B = 8, .T = 1024}, rates);
    return static_cast<double>(one.bytes * small.NumLayers) / gib;
  };
  std::printf(
      "Qwen2.5-0.5B, fp8, 8 x 1024: %.1f GiB more with swiglu alone than with ffn and att\n",
      gib_with(true) - gib_with(false));
}
