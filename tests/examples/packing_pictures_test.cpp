// SPDX-License-Identifier: Apache-2.0
#include "packing_pictures.hpp"

#include "balance_report.hpp"
#include "measure_batches.hpp"
#include "pack_samples.hpp"
#include "schedule_groups.hpp"
#include "synthetic.hpp"
#include "well_formed.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using examples::dataset;
using examples::measured_batches;
using examples::pack_options;

/// A packing with its loads, its order and both measurements.
struct packed {
  explicit packed(dataset const& data, pack_options const& options)
      : result(examples::pack_samples(data, options)),
        loads(omnibal::group_loads(result.groups.view(), data.samples,
                                   examples::packed_demand(options))),
        order(examples::dealing_order(result.groups.size(), options.seed)),
        before(examples::measure_random(data, options, result)),
        after(examples::measure_packed(data, options, result, loads, order)),
        scheduled(examples::schedule_groups(options, loads)) {}

  omnibal::packing result;
  std::vector<omnibal::resources<2>> loads;
  std::vector<std::uint32_t> order;
  measured_batches before;
  measured_batches after;
  examples::measured_steps scheduled;
};

std::string picture(dataset const& data, pack_options const& options, packed const& one) {
  std::ostringstream out;
  examples::write_pictures(data, options, one.result.oversized.size(), one.before, one.after,
                           one.scheduled, out);
  return out.str();
}

std::string picture(dataset const& data, pack_options const& options) {
  return picture(data, options, packed(data, options));
}

dataset of_samples(std::vector<examples::sample> samples, std::string name = "test.csv") {
  dataset data;
  data.samples = std::move(samples);
  data.sources = {{std::move(name), data.samples.size()}};
  return data;
}

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// The cell of a printed table in the row that begins with `name`; columns are two spaces apart.
std::string cell(std::string const& report, std::string const& name, std::size_t column) {
  std::istringstream lines(report);
  std::string line;
  while (std::getline(lines, line) && !line.starts_with(name + "  ")) {
  }
  REQUIRE(lines);
  std::size_t at = name.size();
  for (std::size_t c = 0;; ++c) {
    at = line.find_first_not_of(' ', at);
    REQUIRE(at != std::string::npos);
    std::size_t const end = std::min(line.find("  ", at), line.size());
    if (c == column) return line.substr(at, end - at);
    at = end;
  }
}

double number_of(std::string const& element, std::string const& name) {
  std::string const begin = " " + name + "=\"";
  std::size_t const at = element.find(begin);
  REQUIRE(at != std::string::npos);
  return std::stod(element.substr(at + begin.size()));
}

struct label {
  /// The tag with its attributes.
  std::string tag;
  std::string words;
};

std::vector<label> labels_of(std::string const& svg) {
  std::vector<label> result;
  for (std::size_t at = svg.find("<text"); at != std::string::npos;
       at = svg.find("<text", at + 1)) {
    std::size_t const middle = svg.find('>', at);
    std::size_t const end = svg.find('<', middle);
    result.push_back({svg.substr(at, middle - at), svg.substr(middle + 1, end - middle - 1)});
  }
  return result;
}

/// No text leaves the picture: letters are about half as wide as they are high.
void check_text_inside(std::string const& svg) {
  double const width = number_of(svg, "width");
  double const height = number_of(svg, "height");
  for (auto const& [tag, words] : labels_of(svg)) {
    INFO(tag << words);
    double const y = number_of(tag, "y");
    CHECK((y > 0 && y < height));
    if (contains(tag, "rotate")) continue;
    double const length = 0.54 * number_of(tag, "font-size") * static_cast<double>(words.size());
    double const before = contains(tag, "\"middle\"") ? 0.5 : contains(tag, "\"end\"") ? 1 : 0;
    double const left = number_of(tag, "x") - before * length;
    CHECK(left >= 0);
    CHECK(left + length <= width);
  }
}

/// The percentages before " % of a step on average", in the labels that begin with `time`.
std::vector<double> waiting_labels(std::string const& svg, std::string const& time) {
  std::vector<double> result;
  for (label const& one : labels_of(svg)) {
    if (!one.words.starts_with(time) || !contains(one.words, "of a step on average")) continue;
    result.push_back(std::stod(one.words.substr(time.size())));
  }
  return result;
}

void check_picture(std::string const& svg) {
  CHECK(xml_complaint(svg) == "");
  CHECK(svg.size() < 100000);
  CHECK_FALSE(contains(svg, "nan"));
  CHECK_FALSE(contains(svg, "inf\""));
  check_text_inside(svg);
}

}  // namespace

TEST_CASE("the figures in the picture are those of the table") {
  auto const data = examples::synthetic_lengths(2000, 5);
  pack_options options;
  packed const one(data, options);
  std::string const svg = picture(data, options, one);
  check_picture(svg);

  std::ostringstream printed;
  examples::print_report(options, one.result, one.before.figures, one.after.figures, {}, printed);
  std::string const report = printed.str();
  std::array<std::string, 2> const times{"before: ", "after: "};
  for (std::size_t column = 0; column != 2; ++column) {
    auto const waiting = waiting_labels(svg, times[column]);
    REQUIRE(waiting.size() == 2);
    for (std::size_t kind = 0; kind != 2; ++kind) {
      std::string const name = kind == 0 ? "images" : "tokens";
      std::string const fill = cell(report, "fill of the capacity, " + name, column);
      CHECK(contains(svg, times[column] + fill + " full on average"));
      double const percent = std::stod(cell(report, "waiting in random steps, " + name, column));
      CHECK(waiting[kind] == Approx(percent).margin(1e-9));
    }
    CHECK(contains(svg, cell(report, "samples per group", column) + " samples"));
    CHECK(contains(svg, cell(report, "groups over capacity", column) + " of " +
                            cell(report, "groups", column)));
  }
  std::ostringstream printed_schedule;
  examples::print_schedule(options, examples::deal_at_random(options, one.loads), one.scheduled, {},
                           printed_schedule);
  auto const waiting = waiting_labels(svg, "scheduled: ");
  REQUIRE(waiting.size() == 2);
  for (std::size_t kind = 0; kind != 2; ++kind) {
    std::string const name = kind == 0 ? "waiting, images" : "waiting, tokens";
    double const random = std::stod(cell(printed_schedule.str(), name, 0));
    CHECK(random / 100 == Approx(one.after.figures.dist_ratio[kind]).margin(6e-5));
    double const scheduled = std::stod(cell(printed_schedule.str(), name, 1));
    CHECK(waiting[kind] == Approx(scheduled).margin(1e-9));
  }
  CHECK(contains(svg, ">2,000 samples of synthetic (seed 5), before and after packing<"));
}

TEST_CASE("the curves hold every group and every step, and their means are the figures") {
  auto const data = examples::synthetic_lengths(4000, 11);
  pack_options options;
  options.ranks = 7;
  options.align_tokens = 64;
  packed const one(data, options);
  auto const charts = examples::draw_packing(options, one.before, one.after, one.scheduled);
  std::array<measured_batches const*, 2> const measured{&one.before, &one.after};
  for (std::size_t kind = 0; kind != 2; ++kind) {
    for (std::size_t when = 0; when != 2; ++when) {
      auto const& figures = measured[when]->figures;
      double total = 0;
      for (double const share : charts.loads[kind].curves[when].curve.heights) total += share;
      CHECK((total > 97 && total < 100.001));
      if (when == 1) CHECK(total == Approx(100));

      auto const area = [](examples::step_curve const& curve) {
        double sum = 0;
        for (std::size_t i = 0; i != curve.heights.size(); ++i) {
          sum += curve.heights[i] * (curve.edges[i + 1] - curve.edges[i]);
        }
        return sum;
      };
      auto const& fill = charts.fill[kind].curves[when].curve;
      CHECK(fill.edges.back() == Approx(100));
      CHECK(area(fill) / 100 == Approx(100 * figures.fill[kind]));
      CHECK(std::ranges::is_sorted(fill.heights, std::greater{}));
      auto const& waiting = charts.waiting[kind].curves[when].curve;
      auto const steps = static_cast<double>(measured[when]->waiting.size());
      CHECK(waiting.edges.back() == steps);
      CHECK(area(waiting) / steps == Approx(100 * figures.dist_ratio[kind]));
    }
  }
}

TEST_CASE("waiting per step has the dist ratio of the library as its mean") {
  auto const data = examples::synthetic_lengths(3000, 2);
  for (std::size_t const ranks : {1u, 3u, 8u, 5000u}) {
    pack_options options;
    options.ranks = ranks;
    packed const one(data, options);
    auto const schedule = omnibal::make_steps(one.order, ranks);
    CHECK(one.after.waiting.size() == schedule.size());
    CHECK(one.after.figures.dist_ratio == omnibal::dist_ratio(schedule, one.loads));
  }
}

TEST_CASE("a picture can be drawn of any packing") {
  pack_options options;
  SECTION("no samples") { check_picture(picture(of_samples({}), options)); }
  SECTION("no groups") { check_picture(picture(of_samples({{20, 100}}), options)); }
  SECTION("one group") {
    std::string const svg = picture(of_samples({{9, 4096}}), options);
    check_picture(svg);
    CHECK(contains(svg, ">before: 100.0 % full on average, 100 % at most<"));
    CHECK(contains(svg, "1 sample of test.csv"));
  }
  SECTION("nothing in the samples") {
    check_picture(picture(of_samples({{0, 0}, {0, 0}, {0, 0}}), options));
  }
  SECTION("the largest capacity") {
    std::int64_t const most = std::numeric_limits<std::int64_t>::max();
    options.capacity = {most, most};
    check_picture(picture(of_samples({{1, 300}, {2, 5000}, {0, 7}}), options));
    check_picture(picture(of_samples({{0, most / 4}, {1, most / 2}, {2, 1}}), options));
    options.ranks = std::size_t{1} << 20;
    options.packer = examples::packer_kind::isf;
    check_picture(picture(of_samples({{most / 2, most - 5}, {1, 1}, {2, 1}}), options));
  }
  SECTION("a name with everything in it") {
    std::string const name = "dir/<&>\"'\x01\xFF " + std::string(500, 'x') + "\xC3\xA4.json";
    std::string const svg = picture(of_samples({{1, 2}, {3, 4}}, name), options);
    check_picture(svg);
    CHECK(contains(svg, "x\xC3\xA4.json, before"));
    check_picture(picture(of_samples({{1, 2}, {3, 4}}, "<a> & \"b\".csv"), options));
  }
}

TEST_CASE("a picture of many groups and steps stays small", "[slow]") {
  measured_batches many;
  std::uint32_t random = 1;
  auto const share = [&random] {
    random = random * 1664525u + 1013904223u;
    return static_cast<double>(random >> 8) / (1 << 24);
  };
  for (int i = 0; i != 600000; ++i) {
    many.loads.push_back({std::floor(40 * share()), std::floor(13000 * share())});
    many.fill.push_back({2 * share(), 2 * share()});
    many.waiting.push_back({share(), share()});
  }
  many.figures.batches = many.loads.size();
  std::ostringstream out;
  examples::measured_steps scheduled{.steps = omnibal::steps(1), .waiting = many.waiting};
  examples::write_pictures(examples::synthetic_lengths(1000, 1), {}, 0, many, many, scheduled, out);
  check_picture(out.str());
}
