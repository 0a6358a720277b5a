// SPDX-License-Identifier: Apache-2.0
// Layers of public configurations that differ: windows, mixes, recurrent layers, predictions.
#include "input_error.hpp"
#include "model_file.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::json;
using omnibal::span_kind;
using omnibal::transformer;

omnibal::mixed_language_model read(char const* text) {
  return *examples::model_of("config.json", "", json::parse(text)).language;
}

/// A letter for each layer, as `letter(layer)` gives it.
template <class Letter>
std::string letters(omnibal::mixed_language_model const& model, Letter const& letter) {
  std::string result;
  for (omnibal::layer_run const& run : model.runs) {
    result.append(static_cast<std::size_t>(run.count), letter(run.layer));
  }
  return result;
}

char span_letter(transformer const& layer) {
  if (layer.span.kind == span_kind::whole) return 'G';
  return layer.span.kind == span_kind::window ? 'L' : 'C';
}
char expert_letter(transformer const& layer) { return layer.experts.routed == 0 ? 'd' : 'S'; }
char mixer_letter(transformer const& layer) {
  if (layer.delta.key_heads != 0) return 'D';
  if (layer.space.heads != 0) return layer.heads == 0 ? 'M' : 'H';
  if (layer.convolution.tokens != 0) return 'c';
  return layer.heads == 0 ? '-' : '*';
}

}  // namespace

TEST_CASE("windows and chunks are those of the families") {
  auto const spans = [](char const* text) { return letters(read(text), span_letter); };
  CHECK(spans(R"({"model_type": "gemma2", "num_hidden_layers": 5})") == "LGLGL");
  CHECK(spans(R"({"model_type": "gemma3_text", "num_hidden_layers": 7})") == "LLLLLGL");
  CHECK(spans(R"({"model_type": "gemma4_text", "num_hidden_layers": 7})") == "LLLLLGG");
  CHECK(spans(R"({"model_type": "gemma3n_text", "num_hidden_layers": 7,
                  "num_kv_shared_layers": 0})") == "LLLLGLL");
  CHECK(spans(R"({"model_type": "cohere2", "num_hidden_layers": 5})") == "LLLGL");
  CHECK(spans(R"({"model_type": "cohere2", "num_hidden_layers": 4,
                  "sliding_window_pattern": 2})") == "LGLG");
  CHECK(spans(R"({"model_type": "olmo3", "num_hidden_layers": 5})") == "LLLGL");
  CHECK(spans(R"({"model_type": "exaone4", "num_hidden_layers": 4,
                  "sliding_window_pattern": "LLLG"})") == "LLLG");
  CHECK(spans(R"({"model_type": "exaone4", "num_hidden_layers": 4, "sliding_window": null})") ==
        "GGGG");
  CHECK(spans(R"({"model_type": "gpt_oss", "num_hidden_layers": 4})") == "LGLG");
  CHECK(spans(R"({"model_type": "mistral", "num_hidden_layers": 2})") == "LL");
  CHECK(spans(R"({"model_type": "qwen2", "num_hidden_layers": 4, "sliding_window": 64})") ==
        "GGGG");
  CHECK(spans(R"({"model_type": "qwen2", "num_hidden_layers": 4, "sliding_window": 64,
                  "use_sliding_window": true, "max_window_layers": 2})") == "GGLL");
  CHECK(spans(R"({"model_type": "llama4_text", "num_hidden_layers": 5})") == "CCCGC");
  CHECK(spans(R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 7})") == "GLLLLGL");
  CHECK(read(R"({"model_type": "gemma2", "num_hidden_layers": 2,
                 "sliding_window": 77})")
            .runs.front()
            .layer.span.tokens == 77);
}

TEST_CASE("dense and sparse layers are mixed as the families say") {
  auto const mixes = [](char const* text) { return letters(read(text), expert_letter); };
  CHECK(mixes(R"({"model_type": "qwen3_moe", "num_hidden_layers": 4, "decoder_sparse_step": 2,
                  "mlp_only_layers": [3]})") == "dSdd");
  CHECK(mixes(R"({"model_type": "deepseek_v3", "num_hidden_layers": 4,
                  "first_k_dense_replace": 1})") == "dSSS");
  CHECK(mixes(R"({"model_type": "deepseek_v3", "num_hidden_layers": 5, "moe_layer_freq": 2,
                  "first_k_dense_replace": 1})") == "ddSdS");
  CHECK(mixes(R"({"model_type": "glm4_moe", "num_hidden_layers": 3,
                  "first_k_dense_replace": 2})") == "ddS");
  CHECK(mixes(R"({"model_type": "llama4_text", "num_hidden_layers": 4,
                  "interleave_moe_layer_step": 2})") == "dSdS");
  CHECK(mixes(R"({"model_type": "ernie4_5_moe", "num_hidden_layers": 4,
                  "moe_layer_end_index": 2})") == "dSSd");
  CHECK(mixes(R"({"model_type": "jamba", "num_hidden_layers": 4})") == "dSdS");
  CHECK(mixes(R"({"model_type": "hy_v3", "num_hidden_layers": 3})") == "dSS");
  CHECK(mixes(R"({"model_type": "step3p5", "num_hidden_layers": 4, "sliding_window": 512,
                  "moe_layers_enum": "1,3"})") == "dSdS");
  CHECK(mixes(R"({"model_type": "afmoe", "num_hidden_layers": 4,
                  "num_dense_layers": 2})") == "ddSS");
}

TEST_CASE("recurrent layers stand where the families have them") {
  auto const mixers = [](char const* text) { return letters(read(text), mixer_letter); };
  CHECK(mixers(R"({"model_type": "qwen3_next", "num_hidden_layers": 5})") == "DDD*D");
  CHECK(mixers(R"({"model_type": "qwen3_5_text", "num_hidden_layers": 4,
                   "full_attention_interval": 2})") == "D*D*");
  CHECK(mixers(R"({"model_type": "kimi_linear", "num_hidden_layers": 3, "linear_attn_config":
                   {"full_attn_layers": [2], "kda_layers": [1, 3], "head_dim": 128,
                    "num_heads": 32, "short_conv_kernel_size": 4}})") == "D*D");
  CHECK(mixers(R"({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*EM"})") == "M-*-M");
  CHECK(mixers(R"({"model_type": "jamba", "num_hidden_layers": 6})") == "MMMM*M");
  CHECK(mixers(R"({"model_type": "bamba", "num_hidden_layers": 3,
                   "attn_layer_indices": [1]})") == "M*M");
  CHECK(mixers(R"({"model_type": "falcon_h1", "num_hidden_layers": 2})") == "HH");
  CHECK(mixers(R"({"model_type": "lfm2", "num_hidden_layers": 3,
                   "layer_types": ["conv", "full_attention", "conv"]})") == "c*c");
  CHECK(mixers(R"({"model_type": "granitemoehybrid", "num_hidden_layers": 2,
                   "layer_types": ["mamba", "attention"]})") == "M*");
  CHECK(mixers(R"({"model_type": "minimax", "num_hidden_layers": 3})") == "*D*");
}

TEST_CASE("indexers choose the tokens of later layers, too") {
  auto const model = read(R"({"model_type": "glm_moe_dsa", "num_hidden_layers": 4,
                              "indexer_types": ["full", "shared", "shared", "full"]})");
  auto const indexer = [](transformer const& layer) {
    return layer.indexer.heads != 0 ? 'I' : 's';
  };
  CHECK(letters(model, indexer) == "IssI");
  CHECK(letters(model, span_letter) == "LLLL");
}

TEST_CASE("layers of multi-token prediction count only where they are asked for") {
  auto const model = examples::model_of("config.json", "", json::parse(R"({
    "model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 128, "moe_intermediate_size": 32, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "num_hidden_layers": 3, "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1})"));
  CHECK(model.language->prediction_layers == 1);
  auto const total = [](auto const& counted) { return omnibal::count_parameters(counted).total; };
  std::int64_t const layer = total(model.language->runs.back().layer);
  // Two norms of the inputs, their matrix and a norm before the logits.
  CHECK(total(model) - total(model.without_prediction()) == layer + 3 * 64 + 2 * 64 * 64);
  auto const next = read(R"({"model_type": "qwen3_next", "num_hidden_layers": 5,
                             "mtp_num_hidden_layers": 1})");
  CHECK(next.prediction.layer.heads == 16);
  CHECK(next.prediction.layer.experts.routed == 512);
  CHECK(read(R"({"model_type": "qwen3_next", "num_hidden_layers": 5})").prediction_layers == 0);
}

TEST_CASE("layers of a model file follow a pattern of named kinds") {
  auto const model = examples::model_of("config.json", "", json::parse(R"({"language": {
    "vocabulary": 1000, "hidden": 256, "heads": 8, "kv_heads": 2, "mlp": 512, "loss_chunk": 1024,
    "layer_kinds": {
      "linear": {"heads": 0, "delta_net": {"key_heads": 4, "key_size": 32}},
      "local": {"window": 128, "sinks": true},
      "global": {"gate": "each_number", "head_norm": "each_head"},
      "sparse": {"mlp": 0, "experts": {"routed": 8, "active": 2, "shared": 1, "mlp": 64,
                                       "shared_mlp": 96, "latent_width": 128}}},
    "pattern": ["local", {"repeat": 2, "pattern": ["linear", {"repeat": 2, "pattern": ["local"]},
                                                   "global"]}, "sparse"],
    "prediction": {"layers": 1, "layer": {"window": 64}}}})"));
  auto const& language = *model.language;
  CHECK(letters(language, mixer_letter) == "*D***D****");
  CHECK(letters(language, span_letter) == "LGLLGGLLGG");
  CHECK(language.layers() == 10);
  CHECK(language.output.loss_chunk == 1024);
  CHECK(language.prediction.layer.experts.latent_width == 128);
  CHECK(language.prediction.layer.span.tokens == 64);
  auto const written = examples::model_json(model);
  auto const again = examples::model_of("x.json", "", json::parse(written.dump()));
  CHECK(examples::model_json(again) == written);
  CHECK(again.language->runs.size() == language.runs.size());
  for (std::size_t r = 0; r != language.runs.size(); ++r) {
    CHECK(again.language->runs[r].layer == language.runs[r].layer);
  }
}

TEST_CASE("a pattern of layers that cannot be is refused by name") {
  auto const refusal = [](char const* fields) {
    std::string const text =
        std::string(R"({"language": {"vocabulary": 10, "hidden": 64, "heads": 4, "mlp": 64, )") +
        fields + "}}";
    try {
      static_cast<void>(examples::model_of("mine.json", "", json::parse(text)));
    } catch (examples::input_error const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  auto const contains = [](std::string const& text, char const* part) {
    INFO(text << " lacks " << part);
    CHECK(text.find(part) != std::string::npos);
  };
  contains(refusal(R"("layer_kinds": {"a": {}}, "pattern": ["b"])"),
           "field \"language.pattern\" has \"b\"");
  contains(refusal(R"("layer_kinds": {"a": {}}, "pattern": [])"), "must be a list of names");
  contains(refusal(R"("layer_kinds": {"a": {"head": 3}}, "pattern": ["a"])"),
           "unknown field \"language.layer_kinds.a.head\"; did you mean \"heads\"?");
  contains(refusal(R"("layer_kinds": {"a": {}}, "pattern": ["a"], "layers": 2)"),
           "but the pattern has 1 layers");
  contains(refusal(R"("layer_kinds": {"a": {"heads": 0}}, "pattern": ["a"])"),
           "field \"language.layer_kinds.a.heads\" is 0, must be an integer from 1");
  contains(refusal(R"("layer_kinds": {"a": {}}, "pattern": [{"repeat": 1048577,
                      "pattern": ["a"]}])"),
           "field \"language.pattern.repeat\" is 1048577");
  contains(refusal(R"("layers": 1, "chunk": 5, "window": 5)"), "but the layer has a window");
}
