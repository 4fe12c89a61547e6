// The pages that we write: their frame, their looks, and the pieces that all of them have. A page
// is one file without scripts that asks for nothing else. Internal: not installed.
#pragma once

#include <fenestra/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace fenestra::page {

inline constexpr std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2327; --soft: #5d6870; --line: #dfe3e6;
  --bar: #9dbfe3; --hit: #fff3c4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181b; --card: #1b2125; --ink: #e6eaed; --soft: #98a4ad; --line: #2d363c;
    --bar: #375f8c; --hit: #46401f;
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
a { color: inherit; text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
.tiles { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; padding: 0; }
.tile {
  flex: 1 1 9rem; padding: .7rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px;
}
.tile dt { color: var(--soft); font-size: .8rem; }
.tile dd { margin: 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile dd.note { color: var(--soft); font-size: .8rem; font-weight: 400; }
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
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  border-radius: 2px; vertical-align: -.08rem; }
svg { display: block; width: 100%; }
svg .grid { stroke: var(--line); }
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

/// A cell of a table; `content` is markup, `style` the names of classes.
inline std::string cell(const std::string& content, const std::string& style = "") {
  return "<td" + (style.empty() ? "" : " class=\"" + style + "\"") + ">" + content + "</td>";
}

/// A number that matters, in a frame; all three are markup.
inline std::string tile(const std::string& name,
                        const std::string& number,
                        const std::string& note) {
  return "<div class=\"tile\"><dt>" + name + "</dt><dd>" + number + "</dd>" +
         (note.empty() ? "" : "<dd class=\"note\">" + note + "</dd>") + "</div>\n";
}

/// A bar as long as `share` is of `most`.
inline std::string bar(double share, double most) {
  return "<i style=\"width:" + decimal(most > 0 ? 100 * share / most : 0, 1) + "%\"></i>";
}

/// A whole file: `style` goes after the common style sheet, `body` is markup.
inline std::string whole(std::string_view title, std::string_view style, const std::string& body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(kStyle) + std::string(style) +
         "</style>\n</head>\n<body>\n" + body + "</body>\n</html>\n";
}

}  // namespace fenestra::page
