#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# configure searches the configuration of a step, prints it on one screen, writes the options of four
# trainers by their names, compares a given configuration, and reads or refuses each option.
#
# usage: configure.sh PROGRAM
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

small=(--model llama3-8b --devices 32 --batch 256 --tokens 4096 --tensor 2 --pipeline 4 --virtual 2
  --context 1 --micro-batch 2 --recompute selective --sharding optimizer)

"$program" "${small[@]}" >output 2>message || complain "it fails: $(cat message)"
grep -qx 'llama3-8b on 32 x h100, 256 sequences of 4,096 tokens a step' output || complain "no title"
grep -qx 'Fastest of [0-9]* configurations: TP 2, PP 4 x 2, DP 4, micro-batch 2, recompute selective, share optimizer' \
  output || complain "another configuration: $(sed -n 2p output)"
grep -qx '  32 micro-batches of a rank' output || complain "no micro-batches"
grep -qE '^  MFU [0-9.]+ %, [0-9,]+ GPU days for 1,000 billion tokens$' output || complain "no MFU"
grep -qE '^  memory of the stages in GB, of 72\.0:( [0-9.]+){4}$' output || complain "no memory"
for change in 'twice the memory' 'twice the links within a node' 'twice the network between nodes'; do
  grep -q "^$change  *[0-9.]* " output || complain "no row for $change"
done
[ "$(wc -l <output)" -le 60 ] || complain "more than a screen"

# same TEXT ARGUMENT...: the program prints the text on its standard input.
same() {
  cat >expected
  "$program" "${@:2}" >output 2>message || complain "$1: it fails: $(cat message)"
  diff expected output >&2 || complain "$1: other options"
}

same megatron "${small[@]}" --flags megatron <<'TEXT'
--tensor-model-parallel-size 2
--pipeline-model-parallel-size 4
--context-parallel-size 1
--micro-batch-size 2
--global-batch-size 256
--seq-length 4096
--sequence-parallel
--pipeline-model-parallel-layout "Et*4|t*5|t*5|t*4|t*4|t*4|t*4|t*2L"
--recompute-granularity selective
--recompute-modules layernorm
--use-distributed-optimizer
--overlap-grad-reduce
--overlap-param-gather
--grad-reduce-in-bf16
--tp-comm-overlap
--bf16
TEXT
same bridge "${small[@]}" --flags bridge <<'TEXT'
model.tensor_model_parallel_size=2
model.pipeline_model_parallel_size=4
model.context_parallel_size=1
model.sequence_parallel=true
model.virtual_pipeline_model_parallel_size=2
model.pipeline_model_parallel_layout="Et*4|t*5|t*5|t*4|t*4|t*4|t*4|t*2L"
model.recompute_granularity=selective
model.recompute_modules=[layernorm]
train.micro_batch_size=2
train.global_batch_size=256
model.seq_length=4096
dataset.seq_length=4096
ddp.use_distributed_optimizer=true
optimizer.use_distributed_optimizer=true
ddp.overlap_grad_reduce=true
ddp.overlap_param_gather=true
ddp.grad_reduce_in_fp32=false
TEXT
sharded=(--model llama3-8b --devices 32 --batch 256 --tensor 2 --pipeline 2 --virtual 1 --context 2
  --micro-batch 1 --recompute full --sharding parameters)
"$program" "${sharded[@]}" --flags torchtitan >output 2>message || complain "torchtitan: it fails"
for line in 'local_batch_size = 64' 'global_batch_size = 256' 'seq_len = 4096' '\[parallelism\]' \
  'data_parallel_replicate_degree = 1' 'data_parallel_shard_degree = 4' 'tensor_parallel_degree = 2' \
  'context_parallel_degree = 2' 'pipeline_parallel_degree = 2' 'pipeline_parallel_schedule = "1F1B"' \
  'pipeline_parallel_microbatch_size = 1' 'module_fqns_per_model_part = \[' \
  '    \["tok_embeddings", "layers.0", .*\],' '    \["layers.*, "norm", "output"\],' \
  '\[activation_checkpoint\]' 'mode = "full"'; do
  grep -qx "$line" output || complain "torchtitan: no line $line"
done
[ "$(grep -o '"layers\.[0-9]*"' output | sort -u | wc -l)" = 32 ] || complain "torchtitan: not 32 layers"
"$program" "${sharded[@]}" --flags megatron >output 2>message || complain "FSDP of Megatron-LM: it fails"
for line in --use-megatron-fsdp '--data-parallel-sharding-strategy optim_grads_params' \
  '--recompute-granularity full' '--recompute-method uniform' '--recompute-num-layers 1'; do
  grep -qx -- "$line" output || complain "megatron: no line $line"
done
same deepspeed --model llama3-8b --devices 16 --batch 64 --tensor 2 --micro-batch 2 --sharding gradients \
  --flags deepspeed <<'TEXT'
{
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "bf16": {
    "enabled": true
  },
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true,
    "reduce_bucket_size": 250000000
  },
  "tensor_parallel": {
    "autotp_size": 2
  }
}
TEXT
# Experts have flags of their own, and a machine with fp8 too.
"$program" --model deepseek-v2 --devices 256 --batch 1024 --tensor 2 --pipeline 8 --virtual 1 --context 1 \
  --expert 16 --micro-batch 1 --precision fp8 --machine b200 --flags megatron >output 2>message ||
  complain "experts: it fails: $(cat message)"
for line in '--expert-model-parallel-size 16' '--expert-tensor-parallel-size [12]' '--fp8-format hybrid'; do
  grep -qx -- "$line" output || complain "experts: no line $line"
done

# The picture has all passes of the step: 4 stages, 32 micro-batches, 2 chunks, forward and backward.
"$program" "${small[@]}" --svg step.svg >output 2>message || complain "svg: it fails: $(cat message)"
grep -q 'TP 2, PP 4 x 2, .*: passes [0-9.]* s, then gradients and optimizer [0-9.]* s' step.svg ||
  complain "svg: no title"
[ "$(grep -c '<rect' step.svg)" -ge 512 ] || complain "svg: fewer boxes than passes"

"$program" "${small[@]}" --compare tp=4,pp=2,mbs=2,recompute=full,cuts=balanced >output 2>message ||
  complain "compare: it fails: $(cat message)"
grep -qx 'Compared: TP 4, PP 2, DP 4, micro-batch 2, recompute full, share optimizer' output ||
  complain "compare: another configuration"
grep -qE '^  step [0-9.]+ s, \+[0-9.]+ %, [0-9,]+ more GPU days$' output || complain "compare: no step"
grep -qE 'GB below the limit$' output || complain "compare: no memory"
"$program" --model llama3-8b --devices 8 --batch 64 --tokens 8192 --compare mbs=8 >output 2>message ||
  complain "compare: a configuration that does not fit fails"
grep -qE 'GB too much$' output || complain "compare: no missing memory"

# refused TEXT ARGUMENT...: the program fails with the text.
refused() {
  if "$program" "${@:2}" >output 2>message; then complain "${*:2}: it does not fail"; fi
  grep -qF -- "$1" message || complain "${*:2}: $(cat message)"
}

# A link to the host makes room on a device, up to the memory of the host.
short=(--model llama3-8b --devices 8 --batch 64 --tokens 65536 --tensor 1 --pipeline 1 --context 8
  --recompute selective --memory 48)
refused 'no configuration fits into 40.0 GB of a device' "${short[@]}"
"$program" "${short[@]}" --offload 50 --compare cp=8,mbs=1,recompute=full,offload=100,sharding=parameters \
  >output 2>message || complain "offload: it fails: $(cat message)"
grep -qE '^Fastest of .*, offload [0-9]+ %, share' output || complain "offload: nothing is offloaded"
grep -qE '^  up to [0-9.]+ GB of the host for a device$' output || complain "offload: no bytes of the host"
grep -q '^Never fit into the memory: .*offload 0 %' output || complain "offload: no reason"
grep -q '^Compared: .*, offload 100 %, share parameters$' output || complain "offload: compare"
"$program" "${short[@]}" --offload 50 --offload-percent 90 >output 2>message || complain "offload: 90 percent fail"
grep -qE '^Fastest of .*, offload 90 %, share' output || complain "offload: another share"
refused 'no configuration fits into 1.0 GB of the host for a device' "${short[@]}" --offload 50 --host-memory 1

# Lengths are packed, with tiles for a tower.
for i in $(seq 1 200); do echo "{\"vit_num\": $((1 + i % 5)), \"token_num\": $((300 + i * 37 % 1500))}"; done >lengths.jsonl
"$program" --model 6+20B --machine a100_infiniband --devices 64 --batch 100 --capacity 4096,8192 --tensor 2 \
  lengths.jsonl >output 2>message || complain "lengths: it fails: $(cat message)"
grep -q '^6+20B on 64 x a100_infiniband, 100 samples a step$' output || complain "lengths: no title"
grep -qE '^  [0-9]+ micro-batches of a rank, capacity (4096|8192) tokens and [0-9]+ tiles, padding [0-9.]+ %$' \
  output || complain "lengths: no capacity"
grep -q '^The 25 heads of the vision tower are padded to 26' output || complain "lengths: no word of heads"
"$program" --model 6+20B --machine a100_infiniband --devices 64 --batch 100 --capacity 8192 --tensor 2 \
  --compare tp=2,pp=4,capacity=4096 lengths.jsonl >output 2>message || complain "lengths: compare fails"

refused '--devices: is 0, must be an integer from 1' --devices 0
refused 'must be a multiple of options.tensor_parallel, which is 3' --devices 8 --tensor 3
refused '--machine: h200 is unknown' --devices 8 --machine h200
refused '--reserve: is 80, must be less than the memory' --devices 8 --reserve 80
refused 'no configuration fits into 2.0 GB of a device; at least' --devices 1 --batch 1 --memory 10
refused '6+20B has a vision tower, which requires length files' --model 6+20B --devices 8
refused '--micro-batch: is for sequences' --devices 8 --micro-batch 2 lengths.jsonl
refused '--capacity: is for packing' --devices 8 --capacity 4096
refused '--pipeline has a value that deepspeed cannot run' --devices 8 --pipeline 2 --flags deepspeed
refused '--sharding has a value that torchtitan cannot run' --devices 8 --sharding optimizer --flags torchtitan
refused '--compare excludes --flags' --devices 8 --compare tp=2 --flags megatron
refused '--offload excludes --flags' --devices 8 --offload 50 --flags megatron
refused '--compare: offload is 50, which requires --offload' --devices 8 --compare offload=50
refused '--compare: offload is 101, must be at most 100' --devices 8 --offload 50 --compare offload=101
refused '--host-memory requires --offload' --devices 8 --host-memory 50
refused '--compare: tp is x, must be a positive integer' --devices 8 --compare tp=x
refused '--compare: recompute is all, must be one of' --devices 8 --compare recompute=all
refused '--compare: dp=2 is unknown' --devices 8 --compare dp=2
refused '--compare: capacity is missing' --devices 8 --compare tp=2 lengths.jsonl
refused "Megatron-LM cannot run the stages of a tower" --model 6+20B --machine a100_infiniband --devices 64 \
  --batch 100 --capacity 4096 --tensor 2 --pipeline 4 --flags megatron lengths.jsonl

# The other numbers of the machine change what is printed.
figures() { "$program" "${small[@]}" "$@" 2>message | sed -n 4,6p; }
plain=$(figures)
for change in "--network 5" "--peak 500" "--memory 60" "--reserve 20" "--training-tokens 500" \
  "--precision fp8" "--tensor-communication blocking" "--machine h100_fsdp"; do
  # shellcheck disable=SC2086
  [ "$(figures $change)" != "$plain" ] || complain "$change changes nothing"
done
exit "$((failures != 0))"
