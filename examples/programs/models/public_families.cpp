// SPDX-License-Identifier: Apache-2.0
#include "public_families.hpp"

#include "audio_families.hpp"
#include "pair_families.hpp"
#include "text_families.hpp"
#include "tower_families.hpp"

#include <algorithm>
#include <array>

namespace examples {

std::vector<refused_family> const& refused_families() {
  static std::vector<refused_family> const families{
      {{"zaya"}, "convolutions within its attention (CCA) and routers of several layers"},
      {{"zamba2", "zamba"}, "layers that share their parameters"},
      {{"deepseek_v4"}, "attention to compressed tokens and several streams of hidden numbers"},
      {{"longcat_flash"}, "two attentions in each layer and experts without parameters"},
      {{"minimax_m3_vl_text"}, "sparse attention by blocks"},
      {{"recurrent_gemma", "rwkv", "xlstm"}, "recurrent layers of other kinds"},
      {{"got_ocr2", "deepseek_vl_hybrid"},
       "a tower with relative positions and convolutions behind it (SAM)"},
      {{"janus"}, "a codebook and a generator of images beside the language model"},
      {{"idefics2"}, "a resampler with grouped keys between the tower and the language model"},
      {{"nemotron-nas"}, "a shape of its own for each layer (block_configs)"},
      {{"dbrx", "jetmoe", "doge", "diffllama", "bitnet"},
       "layers that are like no layer of the cost models"},
      {{"gpt2", "opt", "bloom", "mpt", "gptj", "codegen", "gpt_bigcode"},
       "names of fields of older classes; a model file describes its layers"}};
  return families;
}

std::vector<std::string> names_of_families() {
  std::vector<std::string> result;
  auto const add = [&](auto const& families) {
    for (auto const& family : families) {
      result.insert(result.end(), family.names.begin(), family.names.end());
    }
  };
  add(text_families());
  add(pair_families());
  add(speech_families());
  add(audio_families());
  add(clip_families());
  add(tower_families());
  return result;
}

bool is_known_activation(std::string_view name) {
  constexpr std::array<std::string_view, 11> known{
      "silu", "swish", "gelu",         "gelu_new",   "gelu_fast", "gelu_pytorch_tanh",
      "relu", "relu2", "relu_squared", "quick_gelu", "sigmoid"};
  return std::ranges::find(known, name) != known.end();
}

}  // namespace examples
