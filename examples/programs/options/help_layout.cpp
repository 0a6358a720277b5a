// SPDX-License-Identifier: Apache-2.0
#include "help_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string_view>

namespace examples {

namespace {

constexpr std::size_t max_width = 80;
/// Where the texts of options begin.
constexpr std::size_t text_column = 26;

/// One paragraph in lines that begin after `indent` spaces, but for the first, which is `used`
/// columns long already.
std::string wrapped(std::string const& paragraph, std::size_t indent, std::size_t used) {
  std::istringstream words(paragraph);
  std::string result;
  std::size_t at = used;
  for (std::string word; words >> word;) {
    bool const begins = at <= indent;
    if (!begins && at + 1 + word.size() > max_width) {
      result += '\n';
      at = 0;
    }
    bool const is_new_line = at <= indent;
    result += is_new_line ? std::string(indent - at, ' ') : " ";
    result += word;
    at = (is_new_line ? indent : at + 1) + word.size();
  }
  return result + '\n';
}

/// Paragraphs, one for each line of `text`. Lines that begin with a space stay as they are.
std::string paragraphs(std::string const& text, std::size_t indent, std::size_t used) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line); used = 0) {
    bool const is_fixed = line.empty() || line.front() == ' ';
    result += is_fixed ? line + '\n' : wrapped(line, indent, used);
  }
  return result;
}

/// The values of an option: `COUNT`, or `best|isf` if only these are accepted.
std::string values_of(CLI::Option const& option) {
  std::string type = option.get_type_name();
  if (auto const names = type.find(":{"); names != type.npos) {
    type = type.substr(names + 2, type.find('}') - names - 2);
    std::ranges::replace(type, ',', '|');
  }
  return type;
}

/// The arguments that are no options, in the form of a usage.
std::string positionals_of(CLI::App const& app) {
  std::string result;
  for (CLI::Option const* const option : app.get_options()) {
    if (!option->get_positional()) continue;
    bool const is_list = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
    result += " [" + option->get_name(true) + (is_list ? "...]" : "]");
  }
  return result;
}

/// The sentence that an option says of others, in the order of their names.
std::string others(std::string const& begin, std::set<CLI::Option*> const& options) {
  if (options.empty()) return {};
  std::vector<std::string> names;
  for (CLI::Option const* const one : options) names.push_back(one->get_name());
  std::ranges::sort(names);
  return ' ' + begin + ' ' + joined(names) + '.';
}

/// The text of an option, with what it says of others before its default.
std::string described(CLI::Option const& option) {
  std::string text = option.get_description() + '.';
  std::string fallback = option.get_default_str();
  if (option.get_type_size() != 0 && !fallback.empty()) {
    std::erase_if(fallback, [](char one) { return one == '[' || one == ']'; });
    text += " Default: " + fallback + '.';
  }
  std::string const rules =
      others("Only with", option.get_needs()) + others("Not with", option.get_excludes());
  return text.insert(std::min(text.find(" Default: "), text.size()), rules);
}

std::string make_option(CLI::Option const& option) {
  bool const is_positional = option.get_positional();
  std::string line = option.get_name(is_positional, !is_positional);
  if (auto const comma = line.find(','); comma != line.npos) line.insert(comma + 1, " ");
  line.insert(0, "  ");
  if (option.get_type_size() != 0) line += ' ' + values_of(option);
  bool const has_room = line.size() + 2 <= text_column;
  std::size_t const used = has_room ? line.size() : 0;
  return line + (has_room ? "" : "\n") + paragraphs(described(option), text_column, used);
}

/// The options for help and version, or all others.
std::vector<CLI::Option const*> options_of(CLI::App const& app, bool wants_help) {
  return app.get_options([&app, wants_help](CLI::Option const* option) {
    bool const is_help = option == app.get_help_ptr() || option == app.get_version_ptr();
    return is_help == wants_help;
  });
}

std::string make_group(std::string const& heading, std::vector<CLI::Option const*> const& options) {
  if (options.empty()) return {};
  std::string result = '\n' + paragraphs(heading + ':', 0, 0);
  for (CLI::Option const* const option : options) result += make_option(*option);
  return result;
}

}  // namespace

std::string help_layout::make_help(CLI::App const* app, std::string name,
                                   CLI::AppFormatMode /*mode*/) const {
  auto const groups = app->get_subcommands([](CLI::App const*) { return true; });
  std::string result = "Usage: " + name + " [OPTIONS]" + positionals_of(*app);
  for (CLI::App const* const group : groups) result += positionals_of(*group);
  result += "\n\n" + paragraphs(app->get_description(), 0, 0);
  result += make_group("Options", options_of(*app, false));
  for (CLI::App const* const group : groups) {
    result += make_group(group->get_group(), options_of(*group, false));
  }
  result += make_group("Help", options_of(*app, true));
  return result + '\n' + paragraphs(app->get_footer(), 0, 0);
}

std::string joined(std::vector<std::string> const& words) {
  std::string result;
  for (std::string const& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

std::string example_and_status(std::string const& command, std::string const& status) {
  return "Example:\n  " + command + "\n\nExit status: " + status;
}

}  // namespace examples
