// SPDX-License-Identifier: Apache-2.0
#include "pack_options.hpp"

#include "option_checks.hpp"

#include <omnibal/check.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/version.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace examples {

namespace {

template <class Kind>
struct choice {
  std::string_view name;
  Kind kind;
};

constexpr choice<packer_kind> packers[]{{"best", packer_kind::best_packing},
                                        {"isf", packer_kind::isf},
                                        {"bfd", packer_kind::best_fit_decreasing},
                                        {"next-fit", packer_kind::next_fit}};
constexpr choice<shuffle_kind> shuffles[]{{"fisher-yates", shuffle_kind::fisher_yates},
                                          {"feistel", shuffle_kind::feistel},
                                          {"numpy", shuffle_kind::numpy}};
constexpr choice<keep_kind> keeps[]{{"reaches-any", keep_kind::reaches_any},
                                    {"reference", keep_kind::reference}};
constexpr choice<omnibal::remainder_policy> remainders[]{
    {"short-step", omnibal::remainder_policy::short_step},
    {"repeat", omnibal::remainder_policy::repeat},
    {"carry", omnibal::remainder_policy::carry}};

template <class Choices>
std::vector<std::string> names(Choices const& choices) {
  std::vector<std::string> result;
  for (auto const& one : choices) result.emplace_back(one.name);
  return result;
}

template <class Choices>
auto named(Choices const& choices, std::string_view name) {
  return std::ranges::find(choices, name, [](auto const& one) { return one.name; })->kind;
}

template <class Choices, class Kind>
std::string name_of(Choices const& choices, Kind kind) {
  return std::string(
      std::ranges::find(choices, kind, [](auto const& one) { return one.kind; })->name);
}

/// What is typed, before it is checked and becomes `pack_options`.
struct typed_options {
  std::string packer = "best";
  std::string shuffle = "fisher-yates";
  std::string remainder = "short-step";
  std::string output = "plan";
  std::string svg;
  std::pair<double, double> times;
};

constexpr std::int64_t max_amount = std::numeric_limits<std::int64_t>::max();

/// Accepts the numbers of an option of one or two. A file behind one number is taken for a second.
CLI::Validator amount_from(std::int64_t least) {
  auto const is_amount = integer_between<std::int64_t>(least, max_amount);
  auto const check = [is_amount](std::string const& text) -> std::string {
    std::string const problem = is_amount(text);
    if (problem.empty() || text.find_first_not_of("+-.0123456789") == text.npos) return problem;
    return problem + "; a file comes before the options, or after --";
  };
  return CLI::Validator(check, "");
}

void add_input_options(CLI::App& app, pack_options& options) {
  auto* const group = app.add_option_group("Input");
  auto* const files = add_length_options(*group, options.lengths, image_options::offered);
  add_synthetic_option(*group, options.synthetic_samples, 1, omnibal::max_index_count, files);
  group->add_flag("--describe")
      ->description(
          "Print statistics of the input, with the samples above --capacity if one is given, and "
          "exit");
}

void add_isf_options(CLI::App& group, pack_options& options, typed_options& typed) {
  group
      .add_option("--threshold", options.typed_threshold,
                  "isf: keep a group that reaches this number of images or of tokens. Default: "
                  "31/32 of --capacity, rounded up")
      ->type_name("[IMAGES] TOKENS")
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->check(amount_from(0));
  group.add_option("--rounds", options.rounds, "isf: run at most this number of rounds")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, 1000000))
      ->capture_default_str();
  auto* const shuffle =
      group.add_option("--shuffle", typed.shuffle, "isf: shuffle each round by this algorithm")
          ->type_name("NAME")
          ->check(CLI::IsMember(names(shuffles)))
          ->capture_default_str();
  group.add_flag("--reference-rule")
      ->description(
          "isf: make the groups of OmniBal's code: shuffle as NumPy, and keep a group whose images "
          "equal the threshold or whose tokens reach it")
      ->excludes(shuffle);
}

void add_packing_options(CLI::App& app, pack_options& options, typed_options& typed) {
  auto* const group = app.add_option_group("Packing");
  group
      ->add_option("--capacity", options.typed_capacity,
                   "Limit the images and the tokens of a group; text has tokens only. Default: as "
                   "with --target-batch 4; for text, the smallest power of two that 99.9 % of the "
                   "samples fit")
      ->type_name("[IMAGES] TOKENS")
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->check(amount_from(1));
  group
      ->add_option("--target-batch", options.target_batch,
                   "Choose the capacity at which groups have this number of samples on average, or "
                   "up to one more, and ranks idle least. Default: 4 if samples have images")
      ->type_name("SAMPLES")
      ->check(number_that_is("above 0", [](double value) { return value > 0; }))
      ->excludes("--capacity");
  group
      ->add_option("--packer", typed.packer,
                   "Pack by this method. best: several methods, of which the fewest groups are "
                   "kept; bfd: best-fit decreasing; isf: iterative sampling and filtering, the "
                   "random groups of OmniBal; next-fit: in the order of the input")
      ->type_name("NAME")
      ->check(CLI::IsMember(names(packers)))
      ->capture_default_str();
  group->add_flag("--improve")
      ->description(
          "Exchange samples between groups afterwards, for fewer groups or more balanced loads; "
          "costs seconds");
  group
      ->add_option("--spare-groups", options.spare_groups,
                   "Add this share of groups, such as 0.0025, to balance the loads further. "
                   "Default: 0")
      ->type_name("SHARE")
      ->check(number_that_is("in [0, 1]", [](double value) { return value >= 0 && value <= 1; }))
      ->needs("--improve");
  group
      ->add_option("--align", options.align_tokens,
                   "Round the tokens of each sample up to a multiple of this number, of which "
                   "--capacity must be a multiple, too")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(1, max_amount))
      ->capture_default_str();
  add_seed_option(*group, options.seed);
  add_isf_options(*group, options, typed);
}

void add_schedule_options(CLI::App& app, pack_options& options, typed_options& typed) {
  auto* const group = app.add_option_group("Schedule");
  group
      ->add_option("--ranks", options.ranks,
                   "Assign the groups to this number of data-parallel ranks")
      ->type_name("COUNT")
      ->check(integer_between<std::size_t>(1, std::size_t{1} << 20))
      ->capture_default_str();
  group
      ->add_option("--max-dist-ratio", options.max_dist_ratio,
                   "Limit the average idle share of a step, for images and for tokens: 0 is most "
                   "balanced, 1 gives random steps")
      ->type_name("SHARE")
      ->check(number_that_is("in [0, 1]", [](double value) { return value >= 0 && value <= 1; }))
      ->capture_default_str();
  group
      ->add_option("--epoch", options.epoch,
                   "Schedule this epoch; each epoch combines groups differently")
      ->type_name("NUMBER")
      ->check(integer_between<std::uint64_t>(0, 1000000000))
      ->capture_default_str();
  group
      ->add_option("--remainder", typed.remainder,
                   "Treat the groups that do not fill a step in this way. short-step: some ranks "
                   "have no group in the last step; repeat: these ranks repeat groups; carry: the "
                   "next epoch runs the groups, so that all epochs up to --epoch are scheduled")
      ->type_name("NAME")
      ->check(CLI::IsMember(names(remainders)))
      ->capture_default_str();
  group
      ->add_option("--rank-ms", typed.times,
                   "Estimate the time of an epoch from the milliseconds that a rank needs for an "
                   "image tile and for a token. Default: 11.8 0.308, a vision encoder of 0.3 and a "
                   "language model of 8 billion parameters at 156 TFLOP/s")
      ->type_name("TILE TOKEN")
      ->check(number_that_is("from 0 on", [](double value) { return value >= 0; }));
}

void add_output_options(CLI::App& app, typed_options& typed) {
  auto* const group = app.add_option_group("Output");
  group
      ->add_option("--output", typed.output,
                   "Write the plan into this directory, which is created if it does not exist")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  auto* const details =
      group->add_flag("--details")
          ->description("Print all figures of groups and steps after the summary");
  auto* const quiet =
      group->add_flag("--quiet")
          ->description(
              "Print no table and no progress line. Samples above the capacity are still reported "
              "on the standard error")
          ->excludes(details);
  group->add_flag("--progress")
      ->description("Print the progress line even if the standard error is no terminal")
      ->excludes(quiet);
  auto* const picture =
      group
          ->add_option("--svg", typed.svg,
                       "Draw loads and fill of the groups, and idle time of the ranks, before and "
                       "after packing into this file. Default: balance.svg in the directory of "
                       "the plan")
          ->type_name("FILE");
  group->add_flag("--no-picture")->description("Draw no picture")->excludes(picture);
}

bool is_given(CLI::App const& app, std::string const& option) { return app.count(option) != 0; }

pack_options checked(CLI::App const& app, pack_options options, typed_options const& typed) {
  if (is_given(app, "--describe")) options.task = task_kind::describe;

  options.packer = named(packers, typed.packer);
  if (is_given(app, "--improve")) options.improvement = improvement_kind::exchanges;
  options.shuffle = named(shuffles, typed.shuffle);
  if (is_given(app, "--reference-rule")) {
    options.keep = keep_kind::reference;
    options.shuffle = shuffle_kind::numpy;
  }

  options.remainder = named(remainders, typed.remainder);
  if (is_given(app, "--rank-ms")) options.times = {typed.times.first, typed.times.second, true};

  options.output = typed.output;
  options.svg =
      is_given(app, "--svg") ? std::filesystem::path(typed.svg) : options.output / "balance.svg";
  if (is_given(app, "--no-picture") || options.task == task_kind::describe) options.svg.clear();
  if (is_given(app, "--svg") && typed.svg.empty()) {
    throw usage_error("--svg is empty, must be the name of a file");
  }
  if (is_given(app, "--svg") && options.task == task_kind::describe) {
    throw usage_error("--svg draws a packing, and --describe makes none");
  }
  bool const quiet = is_given(app, "--quiet");
  options.output_text = quiet                        ? output_kind::quiet
                        : is_given(app, "--details") ? output_kind::details
                                                     : output_kind::summary;
  options.progress_line = is_given(app, "--progress") ? visibility::shown
                          : quiet                     ? visibility::hidden
                                                      : shown_on_terminal();

  if (is_given(app, "--target-batch") && options.task == task_kind::describe) {
    throw usage_error("--target-batch chooses a capacity to pack, and --describe packs nothing");
  }
  for (char const* const option :
       {"--packer", "--improve", "--align", "--threshold", "--rounds", "--shuffle",
        "--reference-rule", "--ranks", "--max-dist-ratio", "--rank-ms", "--epoch", "--remainder",
        "--no-picture", "--quiet", "--details", "--output"}) {
    if (is_given(app, option) && options.task == task_kind::describe) {
      throw usage_error(std::string(option) + " is for a plan, and --describe makes none");
    }
  }
  for (char const* const option : {"--threshold", "--rounds", "--shuffle", "--reference-rule"}) {
    if (is_given(app, option) && options.packer != packer_kind::isf) {
      throw usage_error(std::string(option) + " needs --packer isf, not " + typed.packer);
    }
  }
  if (is_given(app, "--threshold") && !is_given(app, "--capacity")) {
    throw usage_error("--threshold needs a --capacity that is given, not one that is chosen");
  }
  return options;
}

/// What was typed for samples of this kind.
omnibal::resources<2> amounts_of(std::string const& option, std::vector<std::int64_t> const& typed,
                                 sample_kind kind) {
  if (kind == sample_kind::text) {
    if (typed.size() == 1) return {1, typed[0]};
    throw usage_error(option +
                      " has images and tokens, but the samples are text: give tokens alone");
  }
  if (typed.size() == 2) return {typed[0], typed[1]};
  throw usage_error(option + " is " + std::to_string(typed[0]) +
                    ", but the samples have images: give images and tokens, or --text");
}

/// Samples are rounded up, so what a capacity has beyond a multiple holds nothing, and a sample
/// that fits it may be set aside.
void check_alignment(pack_options const& options) {
  std::int64_t const tokens = options.capacity[1];
  std::int64_t const over = tokens % options.align_tokens;
  if (over == 0) return;
  std::int64_t const below = tokens - over;
  std::string nearest = below == 0 ? "" : std::to_string(below);
  if (below <= max_amount - options.align_tokens) {
    nearest += (below == 0 ? "" : " and ") + std::to_string(below + options.align_tokens);
  }
  throw usage_error("--capacity is " + std::to_string(tokens) +
                    " tokens, must be a multiple of the " + std::to_string(options.align_tokens) +
                    " of --align, to which tokens are rounded up; the nearest: " + nearest);
}

void check_threshold(pack_options const& options) {
  constexpr std::array kinds{"images", "tokens"};
  for (std::size_t r = 0; r != kinds.size(); ++r) {
    if (options.threshold[r] <= options.capacity[r]) continue;
    throw usage_error(std::string("--threshold: ") + kinds[r] + " is " +
                      std::to_string(options.threshold[r]) + ", must be at most the capacity of " +
                      std::to_string(options.capacity[r]));
  }
}

}  // namespace

void set_capacity(pack_options& options, omnibal::resources<2> const& capacity) {
  options.capacity = capacity;
  options.threshold = omnibal::reaches_most(capacity).threshold;
}

void settle(pack_options& options, sample_kind kind) {
  constexpr double usual_batch = 4;
  options.kind = kind;
  if (options.typed_capacity.empty()) {
    if (options.target_batch == 0 && kind != sample_kind::text) options.target_batch = usual_batch;
    return;
  }
  set_capacity(options, amounts_of("--capacity", options.typed_capacity, kind));
  check_alignment(options);
  if (options.typed_threshold.empty()) return;
  options.threshold = amounts_of("--threshold", options.typed_threshold, kind);
  check_threshold(options);
}

std::optional<pack_options> parse_command_line(int count, char const* const* words) {
  pack_options options;
  typed_options typed;
  CLI::App app(
      "Packs the samples of a data set, images with text or text only, into groups under a "
      "capacity, assigns the groups to data-parallel ranks, and writes the plan as JSON and NumPy "
      "arrays. A group is the micro-batch of a rank. A sample has a number of image tiles and a "
      "number of tokens, which includes the tokens of its images.",
      "pack_dataset");
  app.footer(example_and_status("pack_dataset lengths.jsonl --text --token-field length --ranks 16",
                                "0 if the plan is complete; otherwise 1, and no plan is written."));
  app.set_version_flag("--version", library_version(), "Print the version and exit");
  add_input_options(app, options);
  add_packing_options(app, options, typed);
  add_schedule_options(app, options, typed);
  add_output_options(app, typed);
  if (!parse_words<usage_error>(app, count, words)) return std::nullopt;
  return checked(app, std::move(options), typed);
}

std::string library_version() {
  return std::to_string(OMNIBAL_VERSION_MAJOR) + "." + std::to_string(OMNIBAL_VERSION_MINOR) + "." +
         std::to_string(OMNIBAL_VERSION_PATCH);
}

std::string to_text(packer_kind kind) { return name_of(packers, kind); }
std::string to_text(shuffle_kind kind) { return name_of(shuffles, kind); }
std::string to_text(keep_kind kind) { return name_of(keeps, kind); }
std::string to_text(omnibal::remainder_policy policy) { return name_of(remainders, policy); }

}  // namespace examples
