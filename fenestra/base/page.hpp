// The pages that we write: their frame, their looks, and the pieces that all of them have. A page
// is one file without scripts that asks for nothing else. Internal: not installed.
#pragma once

#include <fenestra/base/text.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::page {

inline constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2327; --soft: #5d6870; --line: #dfe3e6;
  --bar: #9dbfe3; --hit: #fff3c4;
  --first: #2a6fb8; --second: #d9822b; --third: #3f8f5b; --fourth: #8a63b8; --faint: #8fb4dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181b; --card: #1b2125; --ink: #e6eaed; --soft: #98a4ad; --line: #2d363c;
    --bar: #375f8c; --hit: #46401f;
    --first: #6aaaf0; --second: #f0a35a; --third: #63b07f; --fourth: #b393dd; --faint: #3d5f86;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 96rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { margin: 0; font-size: 1.7rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 .25rem; font-size: 1.15rem; }
p { margin: .25rem 0 .75rem; max-width: 46rem; color: var(--soft); }
header p { margin-top: .4rem; }
header p b { color: var(--ink); font-weight: 600; }
a { color: inherit; text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; margin: 1.25rem 0 0; padding: 0;
  list-style: none; font-size: .9rem; }
nav a { color: var(--first); }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; padding: 0; }
.tile {
  flex: 1 1 9rem; padding: .7rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px;
}
.tile dt { color: var(--soft); font-size: .8rem; }
.tile dd { margin: 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile dd.note { color: var(--soft); font-size: .8rem; font-weight: 400; overflow-wrap: anywhere; }
.tile.main { border-color: var(--first); }
.tile.main dd:not(.note) { color: var(--first); }
.wide {
  overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
}
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { padding: .3rem .6rem; text-align: left; vertical-align: top; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
tr + tr > td, thead + tbody > tr:first-child > td { border-top: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td small { display: block; color: var(--soft); }
td.share { min-width: 8rem; }
.share i { display: block; height: .35rem; margin: .1rem 0 .2rem; border-radius: 2px;
  background: var(--bar); }
details > summary { margin: 2.5rem 0 .5rem; font-size: 1.15rem; font-weight: 700;
  cursor: pointer; }
details.numbers > summary { margin: .75rem 0 .5rem; color: var(--soft); font-size: .9rem;
  font-weight: 400; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  border-radius: 2px; vertical-align: -.08rem; }
svg { display: block; width: 100%; }
svg .grid { stroke: var(--line); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem;
  margin: .75rem 0 0; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .9rem 3rem; }
  .tile { flex-basis: 8rem; padding: .55rem .75rem; }
}
@media print { .wide { overflow: visible; } body { max-width: none; } }
)css";

/// Text of others, for between tags and in quotes. Control characters, which no page may hold, show
/// as the replacement character.
inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      case '\t':
      case '\n': result += c; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          result += "\xef\xbf\xbd";
        } else {
          result += c;
        }
    }
  }
  return result;
}

/// "11.1 G": for tiles; tables have all digits.
inline std::string short_count(std::int64_t number) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P"};
  auto size = static_cast<double>(number);
  std::size_t unit = 0;
  for (; size >= 999.5 && unit + 1 < std::size(kUnits); ++unit) {
    size /= 1000;
  }
  return decimal(size, unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2) + kUnits[unit];
}

/// "0.0123", "1.2e-07", with so many digits that count; a dash where nothing is known.
inline std::string number_text(double number, int digits = 4) {
  if (std::isnan(number)) {
    return "–";
  }
  if (std::isinf(number)) {
    return number > 0 ? "∞" : "−∞";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

/// "98.5 %", on one line
inline std::string percent_text(double part, int digits = 1) {
  return std::isfinite(part) ? decimal(100 * part, digits) + "\u00a0%" : number_text(part);
}

/// A cell of a table; `content` is markup, `style` the names of classes.
inline std::string cell(const std::string& content, const std::string& style = "") {
  return "<td" + (style.empty() ? "" : " class=\"" + style + "\"") + ">" + content + "</td>";
}

/// A number that matters, in a frame; all three are markup. The main one is what people look for.
inline std::string tile(const std::string& name,
                        const std::string& number,
                        const std::string& note,
                        bool is_main = false) {
  return "<div class=\"tile" + std::string(is_main ? " main" : "") + "\"><dt>" + name +
         "</dt><dd>" + number + "</dd>" +
         (note.empty() ? "" : "<dd class=\"note\">" + note + "</dd>") + "</div>\n";
}

/// A bar as long as `share` is of `most`.
inline std::string bar(double share, double most) {
  return "<i style=\"width:" + decimal(most > 0 ? 100 * share / most : 0, 1) + "%\"></i>";
}

/// A part of a page that can be jumped to; its markup begins with a heading that has the id.
struct Section {
  std::string id;
  std::string link;  ///< what the list of contents calls it
  std::string markup;
};

/// The list of contents and the sections, without those that are empty; `label` names the list for
/// those who do not see it. Empty where all of them are.
inline std::string with_contents(const std::vector<Section>& sections, std::string_view label) {
  std::string links;
  std::string parts;
  for (const Section& section : sections) {
    if (!section.markup.empty()) {
      links += "<li><a href=\"#" + section.id + "\">" + section.link + "</a></li>\n";
      parts += "<section>\n" + section.markup + "</section>\n";
    }
  }
  return parts.empty() ? ""
                       : "<nav aria-label=\"" + escaped(label) + "\"><ul>\n" + links +
                             "</ul></nav>\n<main>\n" + parts + "</main>\n";
}

/// A whole file: `style` goes after the common style sheet, `body` is markup.
inline std::string whole(std::string_view title, std::string_view style, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(kStyle) + std::string(style) +
         "</style>\n</head>\n<body>\n" + body + "</body>\n</html>\n";
}

}  // namespace fenestra::page
