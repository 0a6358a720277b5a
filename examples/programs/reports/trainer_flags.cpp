// SPDX-License-Identifier: Apache-2.0
#include "trainer_flags.hpp"

#include "pipeline_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::recompute_choice;
using omnibal::sharded_state;

/// The numbers that all trainers name.
struct trainer_numbers {
  std::int64_t sequence_length = 0;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;

  explicit trainer_numbers(omnibal::planned_configuration const& given)
      : sequence_length(given.token_capacity != 0 ? given.token_capacity : given.step.tokens),
        micro_batch(given.step.sequences),
        global_batch(given.step.sequences * given.step.micro_batches * given.step.degrees.data) {}
};

[[noreturn]] void refuse(std::string const& trainer_name, std::string const& what) {
  throw std::runtime_error("--flags: " + trainer_name + " cannot run " + what);
}

std::vector<std::uint32_t> boundaries_of(omnibal::planned_configuration const& given) {
  return {given.step.boundaries.begin(), given.step.boundaries.end()};
}

/// Returns the letters of the stages of Megatron-LM; empty if there is one stage.
std::string megatron_layout(model_description const& model,
                            omnibal::planned_configuration const& given) {
  if (given.step.degrees.pipeline == 1) return {};
  auto const boundaries = boundaries_of(given);
  if (model.vision) refuse("Megatron-LM", "the stages of a tower; use --pipeline 1");
  auto const devices = static_cast<std::size_t>(given.step.degrees.pipeline);
  auto const why = megatron_obstacle(model, boundaries, devices);
  if (!why.empty()) refuse("Megatron-LM", "these stages: " + why);
  return megatron_letters(model, boundaries).layout;
}

/// Returns the modules that Megatron-LM recomputes for a selective choice.
std::vector<std::string> recomputed_modules(model_description const& model) {
  auto const& runs = model.language->runs;
  bool const is_unfused = std::ranges::any_of(
      runs, [](auto const& run) { return run.layer.kernel == omnibal::attention_kernel::unfused; });
  if (is_unfused) return {"core_attn"};
  std::vector<std::string> result{"layernorm"};
  bool const has_experts =
      std::ranges::any_of(runs, [](auto const& run) { return run.layer.experts.routed != 0; });
  if (has_experts) result.emplace_back("moe_act");
  return result;
}

std::int64_t expert_tensor_of(omnibal::parallel_degrees const& degrees) {
  return degrees.expert_tensor == 0 ? degrees.tensor : degrees.expert_tensor;
}

void write_megatron(std::ostream& out, model_description const& model,
                    omnibal::planned_configuration const& given) {
  auto const& degrees = given.step.degrees;
  trainer_numbers const numbers(given);
  out << "--tensor-model-parallel-size " << degrees.tensor << '\n'
      << "--pipeline-model-parallel-size " << degrees.pipeline << '\n'
      << "--context-parallel-size " << degrees.sequence << '\n'
      << "--micro-batch-size " << numbers.micro_batch << '\n'
      << "--global-batch-size " << numbers.global_batch << '\n'
      << "--seq-length " << numbers.sequence_length << '\n';
  if (degrees.norms == omnibal::norm_regions::split) out << "--sequence-parallel\n";
  if (degrees.expert != 1 || degrees.expert_tensor != 0) {
    out << "--expert-model-parallel-size " << degrees.expert << '\n'
        << "--expert-tensor-parallel-size " << expert_tensor_of(degrees) << '\n';
  }
  if (auto const layout = megatron_layout(model, given); !layout.empty()) {
    out << "--pipeline-model-parallel-layout \"" << layout << "\"\n";
  }
  if (given.step.recomputed == recompute_choice::full) {
    out << "--recompute-granularity full\n--recompute-method uniform\n--recompute-num-layers 1\n";
  } else if (given.step.recomputed == recompute_choice::selective) {
    out << "--recompute-granularity selective\n--recompute-modules";
    for (std::string const& module : recomputed_modules(model)) out << ' ' << module;
    out << '\n';
  }
  if (degrees.sharding == sharded_state::gradients) refuse("Megatron-LM", "shared gradients");
  if (degrees.sharding == sharded_state::parameters) {
    out << "--use-megatron-fsdp\n--data-parallel-sharding-strategy optim_grads_params\n";
  }
  if (degrees.sharding != sharded_state::nothing) out << "--use-distributed-optimizer\n";
  if (given.step.gradient_communication == omnibal::communication::overlapped) {
    out << "--overlap-grad-reduce\n";
    if (degrees.sharding != sharded_state::nothing) out << "--overlap-param-gather\n";
  }
  if (given.step.reduced_bytes == 2) out << "--grad-reduce-in-bf16\n";
  if (degrees.tensor > 1 && given.step.layer_communication == omnibal::communication::overlapped) {
    out << "--tp-comm-overlap\n";
  }
  if (given.step.precision == omnibal::matmul_precision::fp8) out << "--fp8-format hybrid\n";
  out << "--bf16\n";
}

void write_bridge(std::ostream& out, model_description const& model,
                  omnibal::planned_configuration const& given) {
  auto const& degrees = given.step.degrees;
  trainer_numbers const numbers(given);
  out << "model.tensor_model_parallel_size=" << degrees.tensor << '\n'
      << "model.pipeline_model_parallel_size=" << degrees.pipeline << '\n'
      << "model.context_parallel_size=" << degrees.sequence << '\n'
      << "model.sequence_parallel="
      << (degrees.norms == omnibal::norm_regions::split ? "true" : "false") << '\n';
  if (degrees.expert != 1 || degrees.expert_tensor != 0) {
    out << "model.expert_model_parallel_size=" << degrees.expert << '\n'
        << "model.expert_tensor_parallel_size=" << expert_tensor_of(degrees) << '\n';
  }
  if (auto const layout = megatron_layout(model, given); !layout.empty()) {
    if (given.step.chunks > 1) {
      out << "model.virtual_pipeline_model_parallel_size=" << given.step.chunks << '\n';
    }
    out << "model.pipeline_model_parallel_layout=\"" << layout << "\"\n";
  }
  if (given.step.recomputed == recompute_choice::full) {
    out << "model.recompute_granularity=full\nmodel.recompute_method=uniform\n"
           "model.recompute_num_layers=1\n";
  } else if (given.step.recomputed == recompute_choice::selective) {
    std::string modules;
    for (std::string const& module : recomputed_modules(model)) {
      modules += (modules.empty() ? "" : ",") + module;
    }
    out << "model.recompute_granularity=selective\nmodel.recompute_modules=[" << modules << "]\n";
  }
  out << "train.micro_batch_size=" << numbers.micro_batch << '\n'
      << "train.global_batch_size=" << numbers.global_batch << '\n'
      << "model.seq_length=" << numbers.sequence_length << '\n'
      << "dataset.seq_length=" << numbers.sequence_length << '\n';
  if (degrees.sharding == sharded_state::gradients) refuse("Megatron-Bridge", "shared gradients");
  if (degrees.sharding == sharded_state::parameters) {
    out << "dist.use_megatron_fsdp=true\nddp.use_megatron_fsdp=true\n"
           "ddp.data_parallel_sharding_strategy=optim_grads_params\n";
  }
  char const* const shares = degrees.sharding == sharded_state::nothing ? "false" : "true";
  bool const overlaps = given.step.gradient_communication == omnibal::communication::overlapped;
  out << "ddp.use_distributed_optimizer=" << shares << '\n'
      << "optimizer.use_distributed_optimizer=" << shares << '\n'
      << "ddp.overlap_grad_reduce=" << (overlaps ? "true" : "false") << '\n'
      << "ddp.overlap_param_gather="
      << (overlaps && degrees.sharding != sharded_state::nothing ? "true" : "false") << '\n'
      << "ddp.grad_reduce_in_fp32=" << (given.step.reduced_bytes == 4 ? "true" : "false") << '\n';
}

/// Returns the modules of each virtual stage as torchtitan names them.
std::string module_names(omnibal::planned_configuration const& given) {
  auto const& boundaries = given.step.boundaries;
  std::string text;
  for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
    text += (s == 0 ? "    [" : "],\n    [");
    for (std::int64_t unit = boundaries[s]; unit != boundaries[s + 1]; ++unit) {
      if (unit != boundaries[s]) text += ", ";
      if (unit == 0) {
        text += "\"tok_embeddings\"";
      } else if (unit + 1 == boundaries.back()) {
        text += "\"norm\", \"output\"";
      } else {
        text += "\"layers." + std::to_string(unit - 1) + '"';
      }
    }
  }
  return text + "],\n";
}

void write_torchtitan(std::ostream& out, model_description const& model,
                      omnibal::planned_configuration const& given) {
  auto const& degrees = given.step.degrees;
  trainer_numbers const numbers(given);
  bool const shares = degrees.sharding == sharded_state::parameters;
  if (!shares && degrees.sharding != sharded_state::nothing) {
    refuse("torchtitan", "a shared optimizer without shared parameters");
  }
  bool const has_stages = degrees.pipeline > 1;
  if (has_stages && (model.vision || model.language->prediction_layers != 0)) {
    refuse("torchtitan", "the stages of a tower or of multi-token prediction; use --pipeline 1");
  }
  // Without stages a rank accumulates gradients; stages take their micro-batches from one batch.
  std::int64_t const local =
      has_stages ? numbers.micro_batch * given.step.micro_batches : numbers.micro_batch;
  out << "[training]\nlocal_batch_size = " << local
      << "\nglobal_batch_size = " << numbers.global_batch
      << "\nseq_len = " << numbers.sequence_length << "\n\n[parallelism]\n"
      << "data_parallel_replicate_degree = " << (shares ? 1 : degrees.data)
      << "\ndata_parallel_shard_degree = " << (shares ? degrees.data : 1)
      << "\ntensor_parallel_degree = " << degrees.tensor
      << "\ncontext_parallel_degree = " << degrees.sequence << '\n';
  if (degrees.expert != 1) {
    out << "expert_parallel_degree = " << degrees.expert
        << "\nexpert_tensor_parallel_degree = " << expert_tensor_of(degrees) << '\n';
  }
  out << "pipeline_parallel_degree = " << degrees.pipeline << '\n';
  if (has_stages) {
    out << "pipeline_parallel_schedule = \"" << (given.step.chunks > 1 ? "Interleaved1F1B" : "1F1B")
        << "\"\npipeline_parallel_microbatch_size = " << numbers.micro_batch
        << "\nmodule_fqns_per_model_part = [\n"
        << module_names(given) << "]\n";
  }
  char const* const mode = given.step.recomputed == recompute_choice::none        ? "none"
                           : given.step.recomputed == recompute_choice::selective ? "selective"
                                                                                  : "full";
  out << "\n[activation_checkpoint]\nmode = \"" << mode << "\"\n";
  if (given.step.recomputed == recompute_choice::selective) {
    out << "selective_ac_option = \"op\"\n";
  }
}

void write_deepspeed(std::ostream& out, omnibal::planned_configuration const& given) {
  auto const& degrees = given.step.degrees;
  trainer_numbers const numbers(given);
  if (degrees.pipeline != 1) refuse("DeepSpeed", "a pipeline by its JSON; use --pipeline 1");
  if (degrees.sequence != 1) refuse("DeepSpeed", "context parallelism by its JSON");
  if (degrees.expert != 1) refuse("DeepSpeed", "expert parallelism by its JSON");
  bool const overlaps = given.step.gradient_communication == omnibal::communication::overlapped;
  nlohmann::ordered_json result{
      {"train_batch_size", numbers.global_batch},
      {"train_micro_batch_size_per_gpu", numbers.micro_batch},
      {"gradient_accumulation_steps", given.step.micro_batches},
      {"bf16", {{"enabled", true}}},
      {"zero_optimization",
       {{"stage", static_cast<int>(degrees.sharding)},
        {"overlap_comm", overlaps},
        {"reduce_bucket_size", given.step.bucket_bytes / given.step.reduced_bytes}}}};
  if (degrees.tensor != 1) result["tensor_parallel"] = {{"autotp_size", degrees.tensor}};
  out << result.dump(2) << '\n';
}

}  // namespace

void write_trainer_flags(std::ostream& out, trainer to, model_description const& model,
                         omnibal::planned_configuration const& given) {
  switch (to) {
    case trainer::megatron: return write_megatron(out, model, given);
    case trainer::bridge: return write_bridge(out, model, given);
    case trainer::torchtitan: return write_torchtitan(out, model, given);
    case trainer::deepspeed: return write_deepspeed(out, given);
    case trainer::none: break;
  }
}

}  // namespace examples
