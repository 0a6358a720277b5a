#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cut_vlm prints its table and draws it, replaces modeled times by measured ones, and where
# something is wrong says what, with an exit status that is not zero and no picture.
#
# usage: cut_vlm.sh PROGRAM
docs=$(realpath "$(dirname "$0")/../../docs")
# shellcheck source=support.sh
. "$(dirname "$0")/support.sh"

"$program" --svg pictures/cuts.svg >output 2>message || complain "default: it fails"
grep -q '^Picture: pictures/cuts.svg$' output || complain "default: the output names no picture"
[ "$(ls -A pictures)" = cuts.svg ] || complain "default: $(ls -A pictures) is left"
[ "$(grep -cE '^(4|5|6|7|8|9|1[0-6]) {3,}[0-9]' output)" -eq 26 ] ||
  complain "default: rows are missing"
"$program" --svg again.svg >again 2>message || complain "again: it fails"
cmp pictures/cuts.svg again.svg || complain "equal input gives another picture"
grep -q ' needs [0-9]' output || complain "default: 6+34B fits four stages"
if command -v xmllint >/dev/null; then
  xmllint --noout pictures/cuts.svg || complain "xmllint refuses the picture"
fi

"$program" --memory 1 --stages 8 8 >output 2>message || complain "too little memory: it fails"
[ "$(grep -c ' needs [0-9]' output)" -eq 2 ] || complain "too little memory: it does not say so"
grep -q 'layers of each stage' output && complain "too little memory: there are cuts"

# A tower that takes no time leaves its layers to the first stages.
printf 'layer,forward_ms,backward_ms\n0-46,0,0\n' >times.csv
"$program" --model 6+20B --stages 2 2 --recompute full --measured times.csv >output 2>message ||
  complain "measured: it fails"
grep -qE '^7[0-9] 2[0-9] +2 ' output || complain "measured: the cuts are others: $(cat output)"

# A model of one's own and a public configuration, on a machine of one's own.
echo '{"name": "mine", "vision": {"layers": 6, "hidden": 768, "heads": 12, "mlp": 3072,
  "image_size": 224}, "language": "config.json"}' >mine.json
echo '{"hidden_size": 1024, "intermediate_size": 4096, "model_type": "llama", "vocab_size": 32000,
  "num_attention_heads": 16, "num_hidden_layers": 10, "rms_norm_eps": 1e-6}' >config.json
echo '{"memory_gb": 16, "peak_teraflops": 125, "ranks": 32}' >machine.json
"$program" --model mine.json --machine machine.json --stages 4 4 >output 2>message ||
  complain "own model: it fails"
grep -q '^mine: layers 0 patch embedding, 1-6 vision layer, 7 projector, 8 embedding, 9-18' output ||
  complain "own model: other layers"
"$program" --model mine.json --machine machine.json --stages 4 4 --data 4 >again 2>message
cmp -s output again || complain "own machine: 32 ranks are not 4 stages, 2 and 4 ranks"
"$program" --model internvit-6b+config.json --stages 4 4 >output 2>message ||
  complain "tower and configuration: it fails"

# The files that docs/reference/models.md shows are what it says they are.
awk '/^```json/ { ++n; next } /^```/ { open = 0 } n != last { last = n; open = 1 }
  open { print > (n ".json") }' "$docs/reference/models.md"
"$program" --model ./1.json --machine ./4.json --stages 2 2 >output 2>message ||
  complain "the files of docs/reference/models.md: it fails"
grep -q '^mine: layers 0 patch embedding, 1-12 vision layer, 13 projector' output ||
  complain "the files of docs/reference/models.md: other layers"
"$program" --model ./2.json --stages 2 2 >output 2>message || complain "layers that differ: it fails"
grep -q '^mine-mixed: layers 0 embedding, 1-17 language layer, 18 head$' output ||
  complain "layers that differ: other layers"
"$program" --model ./3.json --stages 2 2 >output 2>message ||
  complain "cross-attention: it fails"
crossed='^mine-crossed: layers .*13-18 resampler layer, 19 projector, 20 embedding, '
crossed+='21 cross-attention layer, 22-25 language layer, 26 cross-attention layer, 27-30'
grep -qE "$crossed" output || complain "cross-attention: other layers"
for model in flamingo-3b flamingo-80b blip2-opt-2.7b blip2-opt-6.7b; do
  "$program" --model "$model" --stages 4 4 >output 2>message || complain "$model: it fails"
  grep -qE '^4 +[0-9.]+ +[0-9.]+ ' output || complain "$model: no cuts fit"
done

# The stage with a tied head has a copy of the matrix, unless it is the only stage.
tied='"hidden_size": 1024, "intermediate_size": 4096, "model_type": "llama", "vocab_size": 32000,
  "num_attention_heads": 16, "num_hidden_layers": 10, "rms_norm_eps": 1e-6'
echo "{$tied, \"tie_word_embeddings\": true}" >tied.json
echo "{$tied, \"tie_word_embeddings\": false}" >own.json
for stages in 1 2 4; do
  for one in tied own; do
    "$program" --model ./$one.json --stages $stages $stages >$one 2>message ||
      complain "$one head: it fails"
    sed -i "s/^$one:/model:/" $one
  done
  if cmp -s tied own; then same=yes; else same=no; fi
  [ $stages -eq 1 ] && expected=no || expected=yes
  [ $same = $expected ] || complain "a tied head on $stages stages needs another memory"
done

# A layout for each number of stages, with towers, language model and all losses.
echo '{"name": "mixed", "vision": {"layers": 6, "hidden": 768, "heads": 12, "mlp": 3072,
  "image_size": 224}, "language": {"layers": 4, "hidden": 1024, "heads": 8, "mlp": 4096,
  "vocabulary": 32000, "prediction": {"layers": 1}}}' >mixed.json
"$program" --model mixed.json --stages 2 3 --output layouts >output 2>message ||
  complain "layouts: it fails: $(cat message)"
grep -q '^Layouts: 2 in layouts$' output || complain "layouts: another number"
for stages in 2 3; do
  layout=layouts/mixed.$stages.layout.json
  [ "$(grep -c '"device":' "$layout")" -eq $stages ] || complain "layouts: not $stages stages"
  [ "$(tr -d ' \n' <"$layout" | grep -o '"losses":\["main","prediction1"\]' | wc -l)" -eq 2 ] ||
    complain "layouts: the losses are not on one stage"
done
"$program" --model mixed.json --stages 2 2 --memory 1 --output none >output 2>message ||
  complain "layouts that do not fit: it fails"
grep -q '^Layouts: 0 in none$' output || complain "layouts that do not fit: one is written"

# Several chunks on each stage: all virtual stages are printed and written, and a V has its own.
for placement in looped v; do
  "$program" --model mixed.json --stages 2 2 --chunks 2 --placement $placement >$placement \
    2>message || complain "$placement chunks: it fails: $(cat message)"
  grep -qE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+ +2 +[0-9.]+ GB$' $placement ||
    complain "$placement chunks: not four virtual stages: $(cat $placement)"
  grep -q '^ms of a step, estimated' $placement || complain "$placement chunks: no steps"
done
cmp -s looped v && complain "a V has the figures of looped chunks"
"$program" --model mixed.json --stages 2 2 --chunks 2 --output chunked >output 2>message ||
  complain "layouts with chunks: it fails: $(cat message)"
layout=$(tr -d ' \n' <chunked/mixed.2.layout.json)
for part in '"devices":2' '"virtual_stages":2' '"device":1,"chunk":1'; do
  grep -qF "$part" <<<"$layout" || complain "layouts with chunks: no $part"
done

"$program" --model mixed.json --stages 8 8 --chunks 2 >output 2>message &&
  complain "more virtual stages than layers: exit status 0"
grep -qE -- '--stages: is 8 with --chunks 2, but mixed has 1[0-9] layers' message ||
  complain "more virtual stages than layers: $(cat message)"

# Clips: an audio tower costs what they need, and their tokens stand in the documents.
echo '{"name": "hearing", "vision": {"layers": 4, "hidden": 256, "heads": 4, "mlp": 512,
  "image_size": 224}, "audio": {"layers": 8, "hidden": 256, "heads": 4, "mlp": 1024,
  "convolutions": [{"inputs": 80, "outputs": 256, "stride": 2}]},
  "audio_projectors": [{"patches_per_token": 2}], "language": {"layers": 4, "hidden": 512,
  "heads": 8, "mlp": 2048, "vocabulary": 32000}}' >hearing.json
hearing=(--model hearing.json --stages 2 2)
"$program" "${hearing[@]}" >output 2>message || complain "clips: it fails: $(cat message)"
# Four clips become 750 tokens each, which leaves 1096 of 4096 to tiles of 64.
grep -q '^A micro-batch has 4 clips of 1500 tokens of the audio tower and 15 tiles$' output ||
  complain "clips: another micro-batch: $(grep clips output)"
"$program" "${hearing[@]}" --clips 5 >output 2>message || complain "five clips: it fails"
grep -q ' 5 clips of 1500 tokens of the audio tower and 5 tiles$' output ||
  complain "five clips: tiles have their tokens: $(grep clips output)"
"$program" "${hearing[@]}" --clips 0 --tiles 5 >none 2>message || complain "no clips: it fails"
"$program" "${hearing[@]}" --clips 5 --tiles 5 >five 2>message || complain "five clips: it fails"
bound() { awk '$1 == 2 && NF > 6 { print $2; exit }' "$1"; }
awk -v none="$(bound none)" -v five="$(bound five)" 'BEGIN { exit !(none > 0 && five > none) }' ||
  complain "five clips cost nothing: $(bound none), $(bound five)"
"$program" "${hearing[@]}" --clip-length 9000 >output 2>message &&
  complain "clips of more tokens than the documents have: exit status 0"
grep -qF -- '--clips: is 1, must be at most 0, because a clip becomes 4500 tokens of hearing' message ||
  complain "clips of more tokens than the documents have: $(cat message)"

# Measured bytes take the place of the modeled ones.
printf 'layer,forward_ms,backward_ms,kept_mb,state_mb\n0-18,1,2,10,1000\n' >bytes.csv
"$program" --model mine.json --stages 2 2 --measured bytes.csv >output 2>message ||
  complain "measured bytes: it fails"
grep -qE '^10 10 +2 +10.3 GB' output || complain "measured bytes: other stages"

# refuses NAME "PART|PART|..." ARGUMENT... : the program fails, its message has all parts, and no
# picture is left
refuses() {
  local name=$1 parts=$2 part
  shift 2
  "$program" "$@" --svg left/x.svg >output 2>message
  local status=$?
  [ "$status" -eq 1 ] || complain "$name: exit status $status"
  [ ! -s output ] || complain "$name: there is output"
  [ ! -e left ] || complain "$name: a picture is left"
  while IFS= read -r part; do
    grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
  done <<<"cut_vlm: error: ${parts:+$'\n'}${parts//|/$'\n'}"
}

refuses "unknown model" '--model: there is no model "7B"; the models are "6+20B"' --model 7B
refuses "a wrong letter" '--model: there is no model "llama3-9b"; did you mean "llama3-8b"?' \
  --model llama3-9b
refuses "a tower alone" '--model|"internvit-6b" is a vision tower alone|internvit-6b+llama3-8b' \
  --model internvit-6b
refuses "absent model" '--model: absent.json: cannot open' --model absent.json
echo '{"hidden_size": 64, "vocab_size": 100,' >cut.json
refuses "model that is cut off" '--model: cut.json: line 2: is no JSON, or is cut off' --model cut.json
echo '{"language": {"layers": 2, "hidden": 64, "heads": "four",
  "vocabulary": 9}}' >wrong.json
refuses "wrong field" '--model: wrong.json: field "language.heads" is "four", must be an integer' \
  --model wrong.json
echo '{"hidden_size": 1024, "intermediate_size": 4096, "vocab_size": 32000,
  "num_attention_heads": 16, "num_hidden_layers": 10, "rms_norm_eps": 1e-6}' >untyped.json
refuses "no family" '--model: untyped.json: no field "model_type"|"llama", |--as FAMILY' \
  --model untyped.json
refuses "another family" 'heads is 16, must be a multiple of kv_heads, which is 32' \
  --model untyped.json --as qwen2
refuses "unknown family" 'family "lama" is not known; the families are "llama"' \
  --model untyped.json --as lama
"$program" --model untyped.json --as llama --stages 2 2 >output 2>message ||
  complain "--as: it fails: $(cat message)"
sed 's/"hidden_size"/"full_attention_interval": 4, "hidden_size"/' untyped.json >interval.json
refuses "a field that is not understood" \
  'interval.json: field "full_attention_interval" of llama is not understood' \
  --model interval.json --as llama
echo '{"model_type": "zaya", "hidden_size": 64, "vocab_size": 9}' >zaya.json
refuses "a family that is not read" 'family "zaya" is not read because of' --model zaya.json
# Speech alone: an audio tower, and a decoder that attends to its tokens.
echo '{"model_type": "whisper", "d_model": 64, "encoder_attention_heads": 4,
  "decoder_attention_heads": 4}' >speech.json
"$program" --model speech.json --stages 2 2 >output 2>message ||
  complain "speech: it fails: $(cat message)"
grep -q '0 audio stem, 1-4 audio layer, 5 audio norm, 6 embedding' output ||
  complain "speech: the audio tower is not before the language model"
refuses "unknown machine" '--machine: there is no machine "a100"|"a100-80gb"' --machine a100
echo '{"memory_gb": 80, "peak_teraflop": 312}' >machine.json
refuses "wrong machine" 'machine.json: unknown field "peak_teraflop"; did you mean "peak_teraflops"?' \
  --machine machine.json
refuses "no stages" '--stages|is 0' --stages 0 4
refuses "octal stages" '--stages|is 010' --stages 4 010
refuses "stages the wrong way round" '--stages: 5 is above 4' --stages 5 4
refuses "a picture of chunks" '--svg: the picture has stages with one chunk, but --chunks is 2' \
  --chunks 2
refuses "a layout of a V" '--placement: is v, but the layouts of --output have looped chunks only' \
  --chunks 2 --placement v --output none
refuses "a placement of one chunk" '--placement requires --chunks' --placement v
refuses "a V of three chunks" '--placement: is v, which needs --chunks 2, but --chunks is 3' \
  --chunks 3 --placement v
refuses "an unknown placement" '--placement|zigzag' --chunks 2 --placement zigzag
refuses "no chunks" '--chunks|is 0' --chunks 0
refuses "more stages than layers" '--stages: is 98|6+20B has 97 layers' --stages 4 98
refuses "ranks that do not divide" 'multiple of tensor, which is 3' --tensor 3
refuses "experts that do not divide" '--expert: is 3, must divide the data-parallel ranks, 8' \
  --expert 3
refuses "experts of a dense model" '--expert: is 8|no model has experts' --model llama3-8b --expert 8
refuses "tiles without a tower" '--tiles: is 4|no model has a vision tower' --model llama3-8b --tiles 4
refuses "tiles of more tokens than the documents have" \
  '--tiles: is 17, must be at most 16|256 tokens of 6+20B|4096' --model 6+20B --tiles 17
refuses "clips without a tower" '--clips: is 4, but no model has an audio tower' --clips 4
refuses "a length of clips without a tower" '--clip-length: is 9, but no model has an audio' \
  --clip-length 9
refuses "clips of more tokens than the documents have" \
  '--clips: is 6, must be at most 5|750 tokens of hearing|4096' "${hearing[@]}" --clips 6
refuses "tiles that clips leave no room for" '--tiles: is 6, must be at most 5|346 beside the clips' \
  "${hearing[@]}" --clips 5 --tiles 6
refuses "no memory" '--memory|is 0' --memory 0
refuses "no link" '--link|is -1' --link -1
refuses "memory that is no integer" '--memory|is 80.5' --memory 80.5
refuses "no documents" '--documents|is 0' --documents 0
refuses "too much work" 'exceeds the largest value' --documents 1024 --length 1048576
refuses "measured times of two models" '--measured|--model' --measured times.csv
refuses "layouts without a directory" '--output is empty' --output ''
refuses "measured times without a name" '--measured is empty' --model 6+20B --measured ''
refuses "absent file" 'absent.csv: cannot open' --model 6+20B --measured absent.csv
printf 'layer,forward_ms,backward_ms\n1-45,3,4\n96,1,x\n' >bad.csv
refuses "bad file" 'bad.csv: record 2 (line 3)|"backward_ms" is "x"' \
  --model 6+20B --measured bad.csv
printf 'layer,forward_ms,backward_ms\n0-96,0,0\n' >zeros.csv
refuses "no time at all" 'zeros.csv|all layers take no time' --model 6+20B --measured zeros.csv

# Outputs that must not be replaced, or cannot be written.
refuses_output() {
  local name=$1 part=$2
  shift 2
  "$program" --model 6+20B --measured times.csv --svg "$1" >output 2>message &&
    complain "$name: exit status 0"
  [ ! -s output ] || complain "$name: there is output"
  grep -qF -- "$part" message || complain "$name: '$part' is not in the message"
}
cp times.csv kept.csv
refuses_output "picture in place of the input" 'is an input' ./times.csv
cmp times.csv kept.csv || complain "the input changed"
mkdir -p folder.svg
refuses_output "picture in place of a directory" 'not a regular file' folder.svg
refuses_output "picture below a file" 'cannot write' times.csv/below/x.svg
refuses_output "picture without a name" '--svg is empty' ''

"$program" --stages 4 5 --svg left/x.svg >/dev/full 2>message &&
  complain "full output: exit status 0"
[ ! -e left ] || complain "full output: a picture is left"
grep -qF 'cannot write to the standard output' message || complain "full output: no message"

# A reader that has gone.
{ sleep 1; "$program" --stages 4 5 --svg left/x.svg 2>message; } | true
[ ! -e left ] || complain "closed pipe: a picture is left"
grep -qF 'cannot write to the standard output' message || complain "closed pipe: no message"

[ "$failures" -eq 0 ] && echo "all right"
exit "$((failures != 0))"
