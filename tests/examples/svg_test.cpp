// SPDX-License-Identifier: Apache-2.0
#include "svg.hpp"

#include "axis_ticks.hpp"
#include "chart.hpp"
#include "step_curves.hpp"
#include "well_formed.hpp"
#include "xml_text.hpp"

#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <catch.hpp>

using examples::number_kind;

TEST_CASE("any bytes become text that XML allows") {
  CHECK(examples::xml_text("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&apos;");
  CHECK(examples::xml_text("Gr\xC3\xB6\xC3\x9F"
                           "e \xE2\x82\xAC \xF0\x9F\x98\x80\t\n") ==
        "Gr\xC3\xB6\xC3\x9F"
        "e \xE2\x82\xAC \xF0\x9F\x98\x80\t\n");
  std::string const bad = "\xEF\xBF\xBD";
  CHECK(examples::xml_text(std::string("\0\x1b\r", 3)) == bad + bad + bad);
  CHECK(examples::xml_text("\xFF") == bad);
  CHECK(examples::xml_text("\xC3") == bad);
  CHECK(examples::xml_text("\xC0\xAF") == bad + bad);
  CHECK(examples::xml_text("\xED\xA0\x80") == bad + bad + bad);
  CHECK(examples::xml_text("\xEF\xBF\xBF") == bad + bad + bad);
  CHECK(examples::xml_text("\xF4\x90\x80\x80") == bad + bad + bad + bad);
  CHECK(examples::xml_text("") == "");
}

TEST_CASE("the checker of the tests finds what is not well-formed") {
  CHECK(xml_complaint("<a b=\"1>2\"><c/>x &amp; y</a>\n").empty());
  for (std::string const text : {"", "x", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a b=\"&\"/>",
                                 "<a", "<a>></a>", "<a b=\"<\"/>"}) {
    CHECK_FALSE(xml_complaint(text).empty());
  }
}

TEST_CASE("ticks are round numbers") {
  CHECK(examples::nice_step(100, 6, number_kind::any) == Approx(20));
  CHECK(examples::nice_step(12000, 6, number_kind::whole) == Approx(2000));
  CHECK(examples::nice_step(0.3, 6, number_kind::any) == Approx(0.05));
  CHECK(examples::nice_step(3, 6, number_kind::whole) == 1);
  CHECK(examples::nice_step(0, 6, number_kind::whole) == 1);
  CHECK(examples::nice_step(9.3e18, 6, number_kind::whole) == Approx(2e18));
  CHECK(examples::multiples(-0.5, 10.5, 5) == std::vector<double>{0, 5, 10});
  CHECK(examples::multiples(0, 0.3, 0.1).size() == 4);

  CHECK(examples::tick_text(1500, 500) == "1,500");
  CHECK(examples::tick_text(0.25, 0.05) == "0.25");
  CHECK(examples::tick_text(0, 0.05) == "0.00");
  CHECK(examples::tick_text(2.5e6, 5e5) == "2.5 M");
  CHECK(examples::tick_text(4e18, 2e18) == "4 E");
}

TEST_CASE(
    "a histogram has what reaches the capacity on its left and what exceeds it on its right") {
  auto const bins = examples::bins_up_to(3 * 4096, 4096);
  CHECK(bins.width == 200);
  auto const curve = examples::histogram(std::vector<double>{0, 4096, 4097, 4096, 1e6}, bins);
  REQUIRE(curve.edges.size() == curve.heights.size() + 1);
  double left = 0;
  double right = 0;
  for (std::size_t i = 0; i != curve.heights.size(); ++i) {
    CHECK(curve.edges[i] < curve.edges[i + 1]);
    (curve.edges[i + 1] <= 4096.5 ? left : right) += curve.heights[i];
  }
  CHECK(left == Approx(60));
  CHECK(right == Approx(20));
  CHECK(curve.edges.front() == -0.5);
  CHECK(curve.edges.back() == bins.end());

  auto const unit =
      examples::histogram(std::vector<double>{0, 3, 3, 9}, examples::bins_up_to(9, 9));
  CHECK(unit.heights == std::vector<double>{25, 0, 0, 50, 0, 0, 0, 0, 0, 25});
  auto const zeros = examples::histogram(std::vector<double>{0, 0}, examples::bins_up_to(0, 0));
  CHECK(zeros == examples::step_curve{{-0.5, 0.5}, {100}});
}

TEST_CASE("a summary keeps the mean, whatever the number of values") {
  CHECK(examples::summarized({}).means.heights.empty());
  for (std::size_t const count : {1u, 7u, 100u, 101u, 1234u}) {
    std::vector<double> numbers(count);
    for (std::size_t i = 0; i != count; ++i) numbers[i] = static_cast<double>(i * i % 37);
    auto const shown = examples::summarized(numbers);
    auto const& [edges, heights] = shown.means;
    REQUIRE(edges.size() == heights.size() + 1);
    CHECK(heights.size() <= 100);
    double area = 0;
    for (std::size_t i = 0; i != heights.size(); ++i) {
      area += heights[i] * (edges[i + 1] - edges[i]);
    }
    CHECK(area == Approx(std::accumulate(numbers.begin(), numbers.end(), 0.0)));
    CHECK(shown.lows.size() == (count > 100 ? heights.size() : 0));
    CHECK(shown.highs.size() == shown.lows.size());
    for (std::size_t i = 0; i != shown.lows.size(); ++i) CHECK(shown.lows[i] <= shown.highs[i]);
    if (count <= 100) CHECK(heights == numbers);
  }
}

TEST_CASE("a drawing is well-formed, with escaped labels and curves cut at the axes") {
  examples::svg_drawing drawing;
  examples::chart const content{.title = "a < b & \"c\"",
                                .x = {.title = "x > 1", .most = 2},
                                .y = {.title = "y", .most = 10},
                                .curves = {{.label = "<script>",
                                            .color = examples::colors::blue,
                                            .curve = {.edges = {0, 1, 5}, .heights = {4, 1e9}}}},
                                .at_x = examples::mark{1, "'mark'"}};
  draw(drawing, {0, 0, 300, 200}, content);
  std::ostringstream out;
  drawing.write(out, 300, 200, "t & t", "d < d");
  std::string const text = out.str();
  CHECK(xml_complaint(text).empty());
  CHECK(text.find("<script>") == std::string::npos);
  CHECK(text.find(">&lt;script&gt;</text>") != std::string::npos);
  CHECK(text.find("<title>t &amp; t</title>") != std::string::npos);
  CHECK(text.find("e+") == std::string::npos);
  CHECK(text.find("nan") == std::string::npos);
}
