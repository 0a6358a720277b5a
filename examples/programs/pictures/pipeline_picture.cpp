// SPDX-License-Identifier: Apache-2.0
#include "pipeline_picture.hpp"

#include "axis_ticks.hpp"
#include "svg.hpp"
#include "table.hpp"

#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

namespace {

constexpr double width = 1100;
constexpr double margin = 16;
constexpr double labels_width = 70;
constexpr double head = 62;
constexpr double foot = 48;
constexpr double text_height = 12;
/// A picture has at most this many boxes.
constexpr std::size_t max_boxes = 8000;

constexpr std::array<std::string_view, 3> kind_names{"forward", "backward", "weight gradients"};
/// The third one of Okabe and Ito too.
constexpr std::array<std::string_view, 3> kind_colors{colors::blue, colors::orange, "#009E73"};

std::size_t number_of(omnibal::operation_kind kind) { return static_cast<std::size_t>(kind); }

/// The rows of the stages and the scale of time.
struct rows_frame {
  std::size_t stages = 0;
  std::uint32_t chunks = 1;
  double makespan = 0;
  double busy = 0;
  std::array<bool, 3> has_kind{};
  /// The top of the first row, and the time at the right end of the rows.
  double top = head;
  double last_time = 0;

  explicit rows_frame(std::span<drawn_operation const> timeline) {
    for (drawn_operation const& one : timeline) {
      stages = std::max(stages, std::size_t{one.stage} + 1);
      chunks = std::max(chunks, one.chunk + 1);
      makespan = std::max(makespan, one.end);
      busy += one.end - one.begin;
      has_kind[number_of(one.kind)] = true;
    }
    last_time = makespan;
  }

  [[nodiscard]] double left() const { return margin + labels_width; }
  [[nodiscard]] double plot_width() const { return width - left() - margin; }
  [[nodiscard]] double row_height() const {
    return std::clamp(520.0 / static_cast<double>(std::max<std::size_t>(stages, 1)), 6.0, 30.0);
  }
  [[nodiscard]] double bottom() const { return top + row_height() * static_cast<double>(stages); }
  [[nodiscard]] double at(double time) const {
    return left() + (last_time > 0 ? plot_width() * time / last_time : 0.0);
  }
  [[nodiscard]] box row(std::size_t stage, double begin, double end) const {
    double const above = top + row_height() * static_cast<double>(stage);
    return {at(begin), above + 1, at(end) - at(begin), row_height() - 2};
  }
  [[nodiscard]] double bubble_share() const {
    double const all = makespan * static_cast<double>(stages);
    return all > 0 ? 1 - busy / all : 0;
  }
};

double opacity_of_chunk(rows_frame const& inside, std::uint32_t chunk) {
  return 1 - 0.55 * static_cast<double>(chunk) / static_cast<double>(inside.chunks);
}

void draw_operation(svg_drawing& drawing, rows_frame const& inside, drawn_operation const& one) {
  box const area = inside.row(one.stage, one.begin, one.end);
  drawing.rectangle(area, {.color = kind_colors[number_of(one.kind)],
                           .opacity = opacity_of_chunk(inside, one.chunk)});
  std::string const label = std::to_string(one.micro_batch);
  double const label_width = 0.62 * text_height * static_cast<double>(label.size());
  if (area.width < label_width + 4 || area.height < text_height + 2) return;
  drawing.text({area.left + area.width / 2, area.top + area.height / 2 + 4}, label,
               {.size = text_height, .color = colors::ground, .at = anchor::middle});
  drawing.line({area.right(), area.top}, {area.right(), area.bottom()},
               {.color = colors::ground, .width = 1});
}

/// How long each kind runs in each of the equal parts of a row.
class row_columns {
 public:
  row_columns(std::size_t count, double makespan)
      : length_(makespan / static_cast<double>(count)), times_(count) {}

  void clear() { std::ranges::fill(times_, std::array<double, 3>{}); }

  void add(drawn_operation const& one) {
    std::size_t const last = times_.size() - 1;
    auto const first = static_cast<std::size_t>(one.begin / length_);
    for (std::size_t c = std::min(first, last); c <= last; ++c) {
      double const from = std::max(one.begin, begin(c));
      double const to = std::min(one.end, begin(c + 1));
      if (from >= one.end) return;
      times_[c][number_of(one.kind)] += std::max(0.0, to - from);
    }
  }

  void draw(svg_drawing& drawing, rows_frame const& inside, std::size_t stage) const {
    for (std::size_t first = 0; first != times_.size();) {
      std::size_t last = first + 1;
      while (last != times_.size() && look(last) == look(first)) ++last;
      auto const [kind, eighths] = look(first);
      if (eighths != 0) {
        drawing.rectangle(inside.row(stage, begin(first), begin(last)),
                          {.color = kind_colors[kind], .opacity = 0.125 * eighths});
      }
      first = last;
    }
  }

 private:
  struct appearance {
    std::size_t kind;
    int eighths;
    friend bool operator==(appearance const&, appearance const&) = default;
  };

  [[nodiscard]] double begin(std::size_t column) const {
    return length_ * static_cast<double>(column);
  }
  /// The kind that takes most of a column, and the share of it in which anything runs.
  [[nodiscard]] appearance look(std::size_t column) const {
    auto const& times = times_[column];
    auto const most = std::ranges::max_element(times);
    double const busy = (times[0] + times[1] + times[2]) / length_;
    return {static_cast<std::size_t>(most - times.begin()),
            static_cast<int>(std::lround(8 * std::min(busy, 1.0)))};
  }

  double length_;
  std::vector<std::array<double, 3>> times_;
};

void draw_columns(svg_drawing& drawing, rows_frame const& inside,
                  std::span<drawn_operation const> timeline) {
  if (!(inside.makespan > 0)) return;
  std::size_t const count = std::clamp<std::size_t>(max_boxes / inside.stages, 1,
                                                    static_cast<std::size_t>(inside.plot_width()));
  row_columns columns(count, inside.makespan);
  for (auto first = timeline.begin(); first != timeline.end();) {
    columns.clear();
    auto const last = std::find_if(first, timeline.end(), [&](drawn_operation const& one) {
      return one.stage != first->stage;
    });
    std::for_each(first, last, [&](drawn_operation const& one) { columns.add(one); });
    columns.draw(drawing, inside, first->stage);
    first = last;
  }
}

void draw_rows(svg_drawing& drawing, rows_frame const& inside) {
  // Not every stage has a label where the rows are low.
  auto const every = static_cast<std::size_t>(std::ceil((text_height + 2) / inside.row_height()));
  for (std::size_t stage = 0; stage != inside.stages; ++stage) {
    box const area = inside.row(stage, 0, inside.last_time);
    drawing.rectangle({inside.left(), area.top, inside.plot_width(), area.height},
                      {.color = colors::pale, .opacity = 0.5});
    if (stage % every != 0) continue;
    drawing.text({inside.left() - 8, area.top + area.height / 2 + 4},
                 "stage " + std::to_string(stage), {.size = text_height, .at = anchor::end});
  }
}

void draw_axis(svg_drawing& drawing, rows_frame const& inside, std::string const& unit) {
  double const bottom = inside.bottom() + 2;
  drawing.line({inside.left(), bottom}, {width - margin, bottom}, {.color = colors::gray});
  if (inside.last_time > 0) {
    double const step = nice_step(inside.last_time, 8, number_kind::any);
    for (double const value : multiples(0, inside.last_time, step)) {
      double const x = inside.at(value);
      drawing.line({x, bottom}, {x, bottom + 5}, {.color = colors::gray});
      drawing.text({x, bottom + 19}, tick_text(value, step),
                   {.size = text_height, .color = colors::gray, .at = anchor::middle});
    }
  }
  drawing.text({inside.left() + inside.plot_width() / 2, bottom + 37}, "time, " + unit,
               {.size = text_height, .at = anchor::middle});
}

void draw_legend(svg_drawing& drawing, double left, std::array<bool, 3> const& has_kind) {
  double x = left;
  for (std::size_t kind = 0; kind != kind_names.size(); ++kind) {
    if (!has_kind[kind]) continue;
    drawing.rectangle({x, 38, 12, 12}, {.color = kind_colors[kind]});
    drawing.text({x + 18, 48}, kind_names[kind], {.size = text_height});
    x += 130;
  }
}

void draw_head(svg_drawing& drawing, rows_frame const& inside, std::string const& title) {
  drawing.text({margin, 24}, title, {.size = 16, .weight = boldness::bold});
  draw_legend(drawing, inside.left(), inside.has_kind);
  drawing.text({width - margin, 48}, "waiting: " + fixed(100 * inside.bubble_share(), 1) + " %",
               {.size = text_height, .at = anchor::end});
}

}  // namespace

void write_pipeline_picture(std::span<drawn_operation const> timeline,
                            pipeline_picture const& picture, std::ostream& out) {
  rows_frame const inside(timeline);
  svg_drawing drawing;
  draw_head(drawing, inside, picture.title);
  draw_rows(drawing, inside);
  if (timeline.size() <= max_boxes / 4) {
    for (drawn_operation const& one : timeline) draw_operation(drawing, inside, one);
  } else {
    draw_columns(drawing, inside, timeline);
  }
  draw_axis(drawing, inside, picture.unit);
  drawing.write(out, width, inside.bottom() + foot, picture.title,
                "What " + std::to_string(inside.stages) +
                    " stages of a pipeline run when; the step"
                    " takes " +
                    fixed(inside.makespan, 3) + " " + picture.unit + ", and stages wait " +
                    fixed(100 * inside.bubble_share(), 1) + " % of the time.");
}

void write_schedule_pictures(std::span<named_timeline const> timelines,
                             pipeline_picture const& picture, std::ostream& out) {
  constexpr double name_height = 26;
  std::vector<rows_frame> frames;
  rows_frame all({});
  double shortest = std::numeric_limits<double>::max();
  for (named_timeline const& one : timelines) {
    rows_frame const& inside = frames.emplace_back(one.timeline);
    all.last_time = std::max(all.last_time, inside.makespan);
    for (std::size_t k = 0; k != inside.has_kind.size(); ++k) {
      all.has_kind[k] = all.has_kind[k] || inside.has_kind[k];
    }
    shortest = std::min(shortest, inside.makespan);
  }
  svg_drawing drawing;
  drawing.text({margin, 24}, picture.title, {.size = 16, .weight = boldness::bold});
  draw_legend(drawing, all.left(), all.has_kind);
  std::string ends;
  double top = head;
  for (std::size_t i = 0; i != frames.size(); ++i) {
    rows_frame& inside = frames[i];
    inside.last_time = all.last_time;
    inside.top = top + name_height;
    std::string const end = fixed(inside.makespan, 2);
    drawing.text({inside.left(), top + name_height - 6}, timelines[i].name,
                 {.size = text_height, .weight = boldness::bold});
    drawing.text(
        {width - margin, top + name_height - 6},
        end + " " + picture.unit + ", waiting: " + fixed(100 * inside.bubble_share(), 1) + " %",
        {.size = text_height, .at = anchor::end});
    draw_rows(drawing, inside);
    for (drawn_operation const& one : timelines[i].timeline) draw_operation(drawing, inside, one);
    ends += (i == 0 ? "" : ", ") + timelines[i].name + " " + end;
    top = inside.bottom();
  }
  drawing.line({frames.front().at(shortest), head + name_height},
               {frames.front().at(shortest), top}, {.color = colors::gray, .width = 1});
  draw_axis(drawing, frames.back(), picture.unit);
  drawing.write(out, width, top + foot, picture.title,
                "Schedules at one scale; they end at: " + ends + " " + picture.unit + ".");
}

}  // namespace examples
