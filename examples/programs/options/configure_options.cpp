// SPDX-License-Identifier: Apache-2.0
#include "configure_options.hpp"

#include "machine_options.hpp"
#include "option_checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

using omnibal::plan_configuration_options;
using omnibal::recompute_choice;
using omnibal::sharded_state;

std::map<std::string, recompute_choice> const recompute_words{
    {"none", recompute_choice::none},
    {"selective", recompute_choice::selective},
    {"full", recompute_choice::full}};

std::map<std::string, sharded_state> const sharding_words{
    {"nothing", sharded_state::nothing},
    {"optimizer", sharded_state::optimizer},
    {"gradients", sharded_state::gradients},
    {"parameters", sharded_state::parameters}};

std::map<std::string, trainer> const trainer_words{{"megatron", trainer::megatron},
                                                   {"bridge", trainer::bridge},
                                                   {"torchtitan", trainer::torchtitan},
                                                   {"deepspeed", trainer::deepspeed}};

/// What is typed, before it is checked.
struct configure_words {
  std::string model = "llama3-8b";
  std::string family;
  std::string machine = "h100";
  std::optional<std::int64_t> memory_gigabytes{};
  std::int64_t reserve_gigabytes = 8;
  std::optional<std::int64_t> teraflops{};
  std::optional<std::int64_t> network_gigabytes{};
  std::optional<std::int64_t> offload_gigabytes{};
  std::optional<std::int64_t> host_gigabytes{};
  std::string precision = "bf16";
  std::string communication = "overlapped";
  std::vector<std::string> recompute;
  std::vector<std::string> sharding;
  std::string flags;
  std::string compared;
  std::string svg;
};

void add_numbers(CLI::App& group, char const* name, std::vector<std::int64_t>& values,
                 std::string const& what) {
  group.add_option(name, values, what)
      ->type_name("NUMBERS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(integer_between<std::int64_t>(1, 1 << 20));
}

template <class Value>
void add_words(CLI::App& group, char const* name, std::vector<std::string>& values,
               std::map<std::string, Value> const& known, std::string const& what) {
  std::vector<std::string> names;
  for (auto const& word : known) names.push_back(word.first);
  group.add_option(name, values, what)
      ->type_name("NAMES")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(names));
}

template <class Value>
std::vector<Value> values_of(std::vector<std::string> const& words,
                             std::map<std::string, Value> const& known) {
  std::vector<Value> result;
  for (std::string const& word : words) result.push_back(known.at(word));
  return result;
}

void add_data(CLI::App& app, configure_options& options) {
  auto* const group = app.add_option_group("Data");
  auto* const files = add_length_options(*group, options.lengths, image_options::offered);
  files->description(
      "Pack the samples of these files; - is the standard input. The formats are the formats of "
      "pack_dataset, also compressed by gzip. Default: sequences of --tokens");
  group->add_option("--batch", options.batch, "Train this number of sequences or samples in a step")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 24))
      ->capture_default_str();
  group
      ->add_option("--tokens", options.tokens,
                   "Set the tokens of a sequence. Without length files only")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 24))
      ->capture_default_str()
      ->excludes(files);
  group
      ->add_option("--training-tokens", options.billion_tokens,
                   "Print the GPU days of a training with this number of tokens")
      ->type_name("BILLIONS")
      ->check(integer_between<std::int64_t>(1, 1'000'000))
      ->capture_default_str();
}

void add_machine(CLI::App& app, configure_words& words, configure_options& options) {
  auto* const group = app.add_option_group("Machine");
  group->add_option("--devices", options.space.devices, "Use this number of devices")
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
  group
      ->add_option(
          "--machine", words.machine,
          "Predict steps with the constants of this machine. Names: " + names_of(known_clusters()))
      ->type_name("NAME")
      ->capture_default_str();
  group
      ->add_option("--memory", words.memory_gigabytes,
                   "Assume this memory of a device. Default: the memory of the machine")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
  group
      ->add_option("--reserve", words.reserve_gigabytes,
                   "Reserve this part of the memory for the context of the device, buffers and the "
                   "allocator")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(0, 1'000'000))
      ->capture_default_str();
  group
      ->add_option("--network", words.network_gigabytes,
                   "Assume this bandwidth of a device between nodes. Default: the bandwidth of the "
                   "machine")
      ->type_name("GB/s")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
  auto* const link = group->add_option(
      "--offload", words.offload_gigabytes,
      "Offload activations over a link with this bandwidth of a device to its host and back. "
      "Default: nothing is offloaded");
  link->type_name("GB/s")->check(integer_between<std::int64_t>(1, 1'000'000));
  group
      ->add_option("--host-memory", words.host_gigabytes,
                   "Assume this memory of the host for each device. Default: no limit")
      ->type_name("GB")
      ->check(integer_between<std::int64_t>(1, 1'000'000))
      ->needs(link);
  group
      ->add_option("--offload-percent", options.space.offload_percent,
                   "Try these offloaded shares of the activations, with commas between them. "
                   "Default: 0,25,50,75,100")
      ->type_name("NUMBERS")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(integer_between<std::int64_t>(0, 100))
      ->needs(link);
  group
      ->add_option("--peak", words.teraflops,
                   "Compute the MFU with this peak of a device. Default: the peak of the machine "
                   "in bf16")
      ->type_name("TFLOP/s")
      ->check(integer_between<std::int64_t>(1, 1'000'000));
  group->add_option("--precision", words.precision, "Multiply matrices in bf16 or fp8")
      ->type_name("NAME")
      ->check(CLI::IsMember(std::vector<std::string>{"bf16", "fp8"}))
      ->capture_default_str();
  group
      ->add_option("--tensor-communication", words.communication,
                   "State whether collectives of tensor parallelism overlap the gradients of "
                   "weights, and transfers between chunks other work")
      ->type_name("NAME")
      ->check(CLI::IsMember(std::vector<std::string>{"overlapped", "blocking"}))
      ->capture_default_str();
}

void add_space(CLI::App& app, configure_words& words, plan_configuration_options& space) {
  auto* const group = app.add_option_group("Space");
  std::string const all = ", with commas between them. Default: all that devices and model allow";
  add_numbers(*group, "--tensor", space.tensor_parallel, "Try these tensor-parallel degrees" + all);
  add_numbers(*group, "--pipeline", space.pipeline_parallel, "Try these numbers of stages" + all);
  add_numbers(*group, "--virtual", space.virtual_pipeline, "Try these chunks of a stage" + all);
  add_numbers(*group, "--context", space.context_parallel,
              "Try these context-parallel degrees" + all);
  add_numbers(*group, "--expert", space.expert_parallel, "Try these expert-parallel degrees" + all);
  add_numbers(*group, "--micro-batch", space.micro_batch_sizes,
              "Try micro-batches of these numbers of sequences. Without length files only" + all);
  add_numbers(*group, "--capacity", space.token_capacities,
              "Pack samples of length files into micro-batches of these tokens. Default: from the "
              "longest sample to 64 times as many");
  add_words(*group, "--recompute", words.recompute, recompute_words,
            "Try these choices of recomputation. Default: all");
  add_words(*group, "--sharding", words.sharding, sharding_words,
            "Share these parts of the state among data-parallel ranks. Default: all choices except "
            "gradients");
}

void add_output(CLI::App& app, configure_words& words) {
  auto* const group = app.add_option_group("Output");
  std::vector<std::string> names;
  for (auto const& word : trainer_words) names.push_back(word.first);
  group
      ->add_option("--flags", words.flags,
                   "Search only configurations that this trainer can run, and print only its "
                   "options: flags of Megatron-LM, overrides of Megatron-Bridge, TOML of "
                   "torchtitan, JSON of DeepSpeed. Default: a report of the search")
      ->type_name("TRAINER")
      ->check(CLI::IsMember(names));
  group
      ->add_option(
          "--compare", words.compared,
          "Print how far this configuration is from the best one, for example "
          "tp=8,pp=4,vp=2,mbs=2,recompute=full. Further words are cp, ep, offload (percent), "
          "sharding and cuts (even or balanced). Missing numbers are 1, offload is 0, "
          "recompute is none, sharding is optimizer, and cuts are even. With length files "
          "capacity, in tokens, takes the "
          "place of mbs. Default: no comparison")
      ->type_name("CONFIGURATION");
  group
      ->add_option("--svg", words.svg,
                   "Draw the passes of the best step into this file. Default: no picture")
      ->type_name("FILE");
}

std::int64_t whole_number(std::string const& key, std::string const& text) {
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value > 0) return value;
  throw std::runtime_error("--compare: " + key + " is " + text + ", must be a positive integer");
}

std::int64_t offloaded_percent(std::string const& text, double bytes_per_second) {
  if (text == "0") return 0;
  std::int64_t const percent = whole_number("offload", text);
  if (percent > 100) {
    throw std::runtime_error("--compare: offload is " + text + ", must be at most 100");
  }
  if (bytes_per_second > 0) return percent;
  throw std::runtime_error("--compare: offload is " + text + ", which requires --offload");
}

template <class Value>
Value named(std::string const& key, std::string const& text,
            std::map<std::string, Value> const& known) {
  auto const found = known.find(text);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (auto const& word : known) names.push_back(word.first);
  throw std::runtime_error("--compare: " + key + " is " + text + ", must be one of " +
                           joined(names));
}

/// Returns the space of one configuration, with the software of another space.
plan_configuration_options compared_space(std::string const& text,
                                          plan_configuration_options result, bool is_packed) {
  using omnibal::stage_cuts;
  static std::map<std::string, stage_cuts> const cut_words{{"even", stage_cuts::even},
                                                           {"balanced", stage_cuts::balanced}};
  std::map<std::string, std::vector<std::int64_t>*> const numbers{
      {"tp", &result.tensor_parallel},
      {"pp", &result.pipeline_parallel},
      {"vp", &result.virtual_pipeline},
      {"cp", &result.context_parallel},
      {"ep", &result.expert_parallel},
      {is_packed ? "capacity" : "mbs",
       is_packed ? &result.token_capacities : &result.micro_batch_sizes}};
  for (auto const& number : numbers) *number.second = {1};
  if (is_packed) result.token_capacities = {};
  result.recompute = {recompute_choice::none};
  result.offload_percent = {0};
  result.sharding = {sharded_state::optimizer};
  result.cuts = {stage_cuts::even};
  for (std::string const& part : CLI::detail::split(text, ',')) {
    auto const place = part.find('=');
    std::string const key = part.substr(0, place);
    std::string const value = place == std::string::npos ? "" : part.substr(place + 1);
    if (auto const found = numbers.find(key); found != numbers.end()) {
      *found->second = {whole_number(key, value)};
    } else if (key == "offload") {
      result.offload_percent = {offloaded_percent(value, result.offload_bytes_per_second)};
    } else if (key == "recompute") {
      result.recompute = {named(key, value, recompute_words)};
    } else if (key == "sharding") {
      result.sharding = {named(key, value, sharding_words)};
    } else if (key == "cuts") {
      result.cuts = {named(key, value, cut_words)};
    } else {
      throw std::runtime_error("--compare: " + part + " is unknown");
    }
  }
  if (is_packed && result.token_capacities.empty()) {
    throw std::runtime_error("--compare: capacity is missing, which length files require");
  }
  return result;
}

cluster chosen_cluster(configure_words const& words) {
  auto const& known = known_clusters();
  auto const found = std::ranges::find(known, words.machine, &cluster::name);
  if (found == known.end()) {
    throw std::runtime_error("--machine: " + words.machine +
                             " is unknown; names: " + names_of(known));
  }
  cluster result = *found;
  if (words.memory_gigabytes) result.memory_bytes = giga * *words.memory_gigabytes;
  if (words.teraflops) result.peak_flops = 1e12 * static_cast<double>(*words.teraflops);
  if (words.network_gigabytes) {
    result.on.network_bytes_per_second = 1e9 * static_cast<double>(*words.network_gigabytes);
  }
  return result;
}

/// Restricts a list to a value; refuses another list.
template <class Value>
void restrict_to(char const* option, std::string const& name, std::vector<Value> const& allowed,
                 std::vector<Value>& list) {
  if (list.empty()) {
    list = allowed;
    return;
  }
  for (Value const& value : list) {
    if (std::ranges::find(allowed, value) != allowed.end()) continue;
    throw std::runtime_error(std::string(option) + " has a value that " + name + " cannot run");
  }
}

/// Restricts the space to configurations that a trainer can run.
void restrict_space(std::string const& name, trainer to, plan_configuration_options& space) {
  std::vector<std::int64_t> const one{1};
  switch (to) {
    case trainer::torchtitan:
      restrict_to("--sharding", name, {sharded_state::nothing, sharded_state::parameters},
                  space.sharding);
      break;
    case trainer::deepspeed:
      restrict_to("--pipeline", name, one, space.pipeline_parallel);
      restrict_to("--virtual", name, one, space.virtual_pipeline);
      restrict_to("--context", name, one, space.context_parallel);
      restrict_to("--expert", name, one, space.expert_parallel);
      restrict_to("--recompute", name, {recompute_choice::none, recompute_choice::full},
                  space.recompute);
      break;
    case trainer::megatron:
    case trainer::bridge:
      restrict_to("--sharding", name,
                  {sharded_state::nothing, sharded_state::optimizer, sharded_state::parameters},
                  space.sharding);
      break;
    case trainer::none: break;
  }
}

/// Pads the heads of a tower, so that all tensor degrees of the search divide them.
void pad_heads(configure_options& options) {
  if (!options.model.vision || options.model.vision->tower.runs.empty()) return;
  auto const& listed = options.space.tensor_parallel;
  std::int64_t const most =
      listed.empty() ? std::min(options.space.devices, options.machine.on.devices_per_node)
                     : std::ranges::max(listed);
  std::int64_t const heads = options.model.vision->tower.layer().heads;
  if (heads % most == 0) return;
  options.model = padded(std::move(options.model), most);
  options.padded_heads = heads;
}

}  // namespace

std::optional<configure_options> parse_configure_options(int count, char const* const* words) {
  configure_words typed;
  configure_options options;
  CLI::App app(
      "Searches the configuration of a training step: degrees of tensor, pipeline, context, expert "
      "and data parallelism, micro-batch, chunks, recomputation and sharding. Times and memory are "
      "predictions (docs/evidence/step_model.md), not measurements.",
      "configure");
  app.footer(example_and_status("configure --model llama3-8b --devices 64 --tokens 8192",
                                "0 if a configuration was found; otherwise 1."));
  add_data(app, options);
  auto* const model = app.add_option_group("Model");
  add_model_option(*model, typed.model, "Configure this model.");
  add_family_option(*model, typed.family);
  add_machine(app, typed, options);
  add_space(app, typed, options.space);
  add_output(app, typed);
  if (!parse_words(app, count, words)) return std::nullopt;
  options.machine = chosen_cluster(typed);
  options.model = chosen_model(typed.model, model_parts::language, typed.family);
  if (options.model.name.empty()) options.model.name = typed.model;
  bool const is_packed = !options.lengths.files.empty();
  auto& space = options.space;
  space.memory_bytes = options.machine.memory_bytes;
  space.reserve_bytes = giga * typed.reserve_gigabytes;
  if (space.reserve_bytes >= space.memory_bytes) {
    throw std::runtime_error("--reserve: is " + std::to_string(typed.reserve_gigabytes) +
                             ", must be less than the memory");
  }
  if (typed.precision == "fp8") {
    space.precision = omnibal::matmul_precision::fp8;
    space.bytes = omnibal::fp8_bytes;
  }
  if (typed.communication == "overlapped") {
    space.layer_communication = omnibal::communication::overlapped;
  }
  space.offload_bytes_per_second = 1e9 * static_cast<double>(typed.offload_gigabytes.value_or(0));
  if (typed.host_gigabytes) space.host_memory_bytes = giga * *typed.host_gigabytes;
  space.recompute = values_of(typed.recompute, recompute_words);
  space.sharding = values_of(typed.sharding, sharding_words);
  if (is_packed && !space.micro_batch_sizes.empty()) {
    throw std::runtime_error("--micro-batch: is for sequences, but samples of files are packed");
  }
  if (!is_packed && !space.token_capacities.empty()) {
    throw std::runtime_error("--capacity: is for packing, but there are no length files");
  }
  if (!typed.compared.empty()) options.compared = compared_space(typed.compared, space, is_packed);
  if (!typed.flags.empty()) {
    options.flags_for = trainer_words.at(typed.flags);
    restrict_space(typed.flags, options.flags_for, space);
    if (options.compared) throw std::runtime_error("--compare excludes --flags");
    if (typed.offload_gigabytes) {
      throw std::runtime_error("--offload excludes --flags: no trainer offloads equal shares");
    }
  }
  options.svg = typed.svg;
  pad_heads(options);
  return options;
}

}  // namespace examples
