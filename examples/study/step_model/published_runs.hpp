// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads a table of published training runs, one a line with a header line, separated by tabs.

#include <omnibal/omnibal.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace study {

/// A line of the table by the names of its columns.
class table_row {
 public:
  table_row(std::vector<std::string> const& names, std::vector<std::string> const& values) {
    for (std::size_t i = 0; i != names.size() && i != values.size(); ++i) {
      values_[names[i]] = values[i];
    }
  }

  [[nodiscard]] std::string text(std::string const& column) const {
    auto const found = values_.find(column);
    return found == values_.end() ? std::string() : found->second;
  }
  [[nodiscard]] double number(std::string const& column) const {
    auto const value = text(column);
    return value.empty() ? 0.0 : std::stod(value);
  }
  [[nodiscard]] std::int64_t whole(std::string const& column, std::int64_t otherwise = 0) const {
    auto const value = text(column);
    return value.empty() ? otherwise : std::stoll(value);
  }
  [[nodiscard]] bool starts(std::string const& column, std::string_view with) const {
    return text(column).starts_with(with);
  }

 private:
  std::map<std::string, std::string> values_;
};

inline std::vector<std::string> split(std::string const& line) {
  std::vector<std::string> result(1);
  for (char const letter : line) {
    if (letter == '\t') {
      result.emplace_back();
    } else if (letter != '\r') {
      result.back() += letter;
    }
  }
  return result;
}

inline std::vector<table_row> read_table(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string line;
  std::getline(file, line);
  auto const names = split(line);
  std::vector<table_row> result;
  while (std::getline(file, line)) {
    if (!line.empty()) result.emplace_back(names, split(line));
  }
  return result;
}

/// A run in the terms of the library.
struct published_run {
  std::string id;
  std::string source;
  std::string model_name;
  std::string machine_name;
  bool has_experts = false;
  bool is_fp8 = false;
  omnibal::mixed_language_model model{};
  omnibal::training_step step{};
  double seconds = 0;
  double peak_gib = 0;
  /// The network of a device, as the source states it, divided by the network of the machine whose
  /// constants are used.
  double network_ratio = 1;
};

/// The machine whose constants predict a run; empty if there is none.
inline std::string machine_of(table_row const& row) {
  auto const source = row.text("group");
  auto const device = row.text("machine");
  if (source == "bloom") return "a100_omnipath";
  if (source == "internevo") return "a100_roce";
  if (source == "mosaic" || source == "fms") {
    return device.starts_with("A100") ? "a100_fsdp" : "h100_fsdp";
  }
  if (source == "titan") return device.starts_with("H100") ? "h100_500w" : "";
  if (device.starts_with("A100")) return "a100_infiniband";
  if (device.starts_with("H100")) return "h100";
  if (device.starts_with("B200")) return "b200";
  if (device.starts_with("B300")) return "b300";
  if (device.starts_with("GB200")) return "gb200";
  if (device.starts_with("GB300")) return "gb300";
  return "";
}

inline omnibal::transformer layer_of(table_row const& row) {
  bool const is_gated = row.whole("gated") != 0;
  bool const is_unfused = row.text("attention") == "unfused";
  omnibal::transformer layer{
      .hidden = row.whole("hidden"),
      .heads = row.whole("heads"),
      .kv_heads = row.whole("kv_heads"),
      .head_size = row.whole("head_dim"),
      .feed_forward = is_gated ? omnibal::mlp_kind::gated : omnibal::mlp_kind::plain,
      .norm = is_gated ? omnibal::norm_kind::rms : omnibal::norm_kind::layer,
      .kernel = is_unfused ? omnibal::attention_kernel::unfused : omnibal::attention_kernel::flash,
      .qkv_bias = !is_gated,
      .output_bias = !is_gated,
      .mlp_bias = !is_gated,
      .dropout = is_unfused};
  if (row.whole("mla_kv_rank") == 0) return layer;
  layer.kv_heads = 0;
  layer.head_size -= row.whole("mla_rope");
  layer.latent = {.key_value_rank = row.whole("mla_kv_rank"),
                  .query_rank = row.whole("mla_q_rank"),
                  .rope_size = row.whole("mla_rope"),
                  .value_size = row.whole("mla_value")};
  return layer;
}

inline omnibal::mixed_language_model model_of(table_row const& row) {
  std::int64_t const layers = row.whole("layers");
  std::int64_t const experts = row.whole("experts");
  auto const vocabulary = row.whole("vocab");
  auto const hidden = row.whole("hidden");
  omnibal::transformer dense = layer_of(row);
  dense.mlp = row.whole("ffn");
  omnibal::mixed_language_model model;
  model.input = {.vocabulary = vocabulary, .hidden = hidden};
  model.output = {
      .vocabulary = vocabulary,
      .hidden = hidden,
      .norm = dense.norm,
      .weights = row.whole("tied") != 0 ? omnibal::head_weights::tied : omnibal::head_weights::own};
  if (experts == 0) {
    model.runs = {{layers, dense}};
    return model;
  }
  omnibal::transformer sparse = layer_of(row);
  sparse.experts = {.routed = experts,
                    .active = row.whole("active_experts"),
                    .shared = row.whole("shared_experts"),
                    .mlp = row.whole("expert_ffn")};
  std::int64_t const first = row.whole("dense_layers");
  if (first != 0) model.runs.push_back({first, dense});
  model.runs.push_back({layers - first, sparse});
  if (row.text("model").find("+mtp") != std::string::npos) {
    model.prediction_layers = 1;
    model.prediction = {.layer = sparse, .vocabulary = vocabulary};
    model.order = omnibal::prediction_order::before_head;
  }
  return model;
}

inline omnibal::sharded_state sharding_of(table_row const& row) {
  if (row.starts("sharding", "fsdp") || row.starts("sharding", "zero2-like")) {
    return omnibal::sharded_state::parameters;
  }
  bool const shares_nothing = row.text("sharding") == "ddp" || row.text("sharding") == "none";
  return shares_nothing ? omnibal::sharded_state::nothing : omnibal::sharded_state::optimizer;
}

inline omnibal::training_step step_of(table_row const& row) {
  auto const source = row.text("group");
  omnibal::training_step step;
  auto const positive = [&](char const* column) {
    return std::max<std::int64_t>(1, row.whole(column, 1));
  };
  step.degrees = {.tensor = positive("tp"),
                  .sequence = positive("cp"),
                  .data = positive("dp"),
                  .norms = row.whole("seq_parallel") != 0 ? omnibal::norm_regions::split
                                                          : omnibal::norm_regions::replicated,
                  .sharding = sharding_of(row),
                  .pipeline = positive("pp")};
  if (row.whole("experts") != 0) {
    step.degrees.expert = positive("ep");
    // A dash in the tables of Automodel: `ep_size` is the number of devices.
    if (source == "automodel" && row.text("notes").find("EP ") != std::string::npos) {
      step.degrees.expert = row.whole("gpus");
    }
    // Grok keeps the tensor degree within its experts.
    step.degrees.expert_tensor = row.starts("model", "grok") ? 4 : 1;
  }
  if (source == "longseq") {
    // The published degrees lack data-parallel ranks.
    step.degrees.data =
        row.whole("gpus") / (step.degrees.tensor * step.degrees.sequence * step.degrees.pipeline);
  }
  step.chunks = positive("vpp");
  step.sequences = positive("mbs");
  step.tokens = row.whole("seq_len");
  step.micro_batches = row.whole("micro_batches");
  if (step.micro_batches == 0 || source == "longseq") {
    step.micro_batches = row.whole("gbs") / (step.degrees.data * step.sequences);
  }
  if (row.starts("recompute", "full")) step.recomputed = omnibal::recompute_choice::full;
  if (row.starts("recompute", "selective")) {
    step.recomputed = omnibal::recompute_choice::selective;
  }
  if (row.text("precision") != "BF16" && row.text("precision") != "FP16") {
    step.precision = omnibal::matmul_precision::fp8;
  }
  // Samples of supervised fine-tuning are short and packed.
  constexpr std::int64_t short_document = 256;
  if (row.text("task") == "sft") step.document_tokens = short_document;
  bool const is_early = source == "vtrain" || source == "vtrain1" || source == "sc21" ||
                        source == "seqsel" || source == "bloom" || source == "internevo";
  if (!is_early) step.layer_communication = omnibal::communication::overlapped;
  bool const overlaps_gradients =
      step.degrees.sharding == omnibal::sharded_state::nothing
          ? row.text("notes").find("DDP-impl torch") != std::string::npos
          : source != "bloom";
  if (!overlaps_gradients) step.gradient_communication = omnibal::communication::blocking;
  if (row.starts("sharding", "zero1-")) step.state_ranks = 8 / step.degrees.tensor;
  if (row.text("notes").find("amp, fp32 master") != std::string::npos) step.reduced_bytes = 4;
  return step;
}

/// Returns the reason why a run cannot be predicted; empty if it can.
inline std::string refusal(table_row const& row) {
  if (row.whole("layers") == 0 || row.whole("hidden") == 0) return "widths unknown";
  if (row.text("precision") == "NVFP4") return "NVFP4";
  if (row.text("task") == "lora") return "LoRA";
  if (machine_of(row).empty()) return "no machine";
  if (row.whole("gbs") < row.whole("dp", 1)) return "degrees exceed the batch";
  if (row.text("group") == "titan" && row.whole("mbs") == 0) return "micro-batch unknown";
  if (row.text("group") == "llama3") return "micro-batch unknown";
  if (row.text("group") == "longseq" && step_of(row).micro_batches < 1) {
    return "degrees exceed the batch";
  }
  return "";
}

inline published_run run_of(table_row const& row) {
  published_run run{.id = row.text("id"),
                    .source = row.text("group"),
                    .model_name = row.text("model"),
                    .machine_name = machine_of(row),
                    .has_experts = row.whole("experts") != 0,
                    .model = model_of(row),
                    .step = step_of(row),
                    .seconds = row.number("step_s_used"),
                    .peak_gib = row.number("peak_mem_gib")};
  run.is_fp8 = run.step.precision == omnibal::matmul_precision::fp8;
  if (row.text("notes").find("MaxText") != std::string::npos) run.source = "maxtext";
  // 1600 Gb/s a node instead of 800.
  if (run.source == "sc21" || run.source == "seqsel") run.network_ratio = 2;
  return run;
}

}  // namespace study
