// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The connectors of models of several parts: what stands between a tower and a language model, by
/// the class of the whole model.

#include "pair_families.hpp"

namespace examples {

void connect_internvl_class(pair_draft& draft);
void connect_internvl_chat(pair_draft& draft);
void connect_llava(pair_draft& draft);
void connect_llava_next(pair_draft& draft);
void connect_llava_onevision(pair_draft& draft);
void connect_mistral3(pair_draft& draft);
void connect_vipllava(pair_draft& draft);
void connect_aya(pair_draft& draft);
void connect_cohere2(pair_draft& draft);
void connect_lighton(pair_draft& draft);
void connect_gemma3(pair_draft& draft);
void connect_paligemma(pair_draft& draft);
void connect_idefics(pair_draft& draft);
void connect_lfm2(pair_draft& draft);
void connect_ovis2(pair_draft& draft);
void connect_llama4(pair_draft& draft);
void connect_mllama(pair_draft& draft);
void connect_step(pair_draft& draft);
void connect_kimi(pair_draft& draft);
void connect_minimax(pair_draft& draft);
void connect_qwen2(pair_draft& draft);
void connect_granite_speech(json_fields const& given, std::int64_t width, audio_part& audio);

}  // namespace examples
