// What the report of a training looks like, besides what all pages have in common
// (base/page.hpp) and charts (base/chart.hpp).
#pragma once

#include <string_view>

namespace fenestra::cli {

inline constexpr std::string_view kReportStyle = R"css(
:root {
  --right: 42 111 184; --wrong: 214 92 46; --frame: #00000014;
}
@media (prefers-color-scheme: dark) {
  :root {
    --right: 84 152 224; --wrong: 230 112 66; --frame: #ffffff1f;
  }
}
html { scroll-behavior: smooth; }
h2 { scroll-margin-top: 1rem; font-size: 1.3rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; overflow-wrap: anywhere; }
pre {
  margin: 1rem 0 0; padding: .7rem 1rem; overflow-x: auto; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere;
  font: .85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
pre span { display: inline-block; max-width: 100%; }
pre::before { content: "$ "; color: var(--soft); }
td.layer { font-weight: 600; }
td.layer small { font-weight: 400; }
td.words { white-space: normal; }
table.step td.layer { white-space: normal; overflow-wrap: anywhere; }
table.step td.share { width: 30%; }
@media (max-width: 40rem) {
  table.step th, table.step td { padding-left: .35rem; padding-right: .35rem; }
  table.step td.share { width: auto; min-width: 3.4rem; }
}
tfoot td small { font-weight: 400; }
tfoot td { border-top: 2px solid var(--line); font-weight: 600; }

.beside { display: flex; flex-wrap: wrap; gap: 0 2.5rem; align-items: flex-start; }
.beside > * { min-width: 0; max-width: 100%; }
.beside ul { margin: 0; padding-left: 1.1rem; color: var(--soft); font-size: .9rem; }
.beside li b { color: var(--ink); }
.beside h3 { margin-top: .5rem; }
.confusion { width: auto; margin: .5rem; font-variant-numeric: tabular-nums; }
.confusion th { font-weight: 400; max-width: 9rem; overflow: hidden; text-overflow: ellipsis; }
.confusion thead th { text-align: center; vertical-align: bottom; max-width: 6rem; }
.confusion thead th:first-child { max-width: none; text-align: right; }
.confusion tbody th { text-align: right; position: sticky; left: 0; background: var(--card); }
.confusion td { min-width: 2.6rem; text-align: center; border: 2px solid var(--card);
  border-radius: 5px; padding: .3rem .4rem; }
.confusion td.none { color: var(--line); }
.confusion td.sum { color: var(--soft); font-size: .75rem; vertical-align: middle; }
.confusion td.right { background: rgb(var(--right) / var(--part)); }
.confusion td.wrong { background: rgb(var(--wrong) / var(--part)); }
.confusion td.strong { color: #fff; }
.matrix { flex: 0 1 34rem; margin: .75rem 0; }
.matrix img, .shown img { display: block; width: 100%; height: auto; border-radius: 6px; }

.gallery { display: grid; gap: .9rem; margin: .75rem 0 0; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); }
.gallery.signals { grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); }
.card { margin: 0; padding: .6rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; min-width: 0; }
.card figcaption { margin-top: .45rem; font-size: .82rem; line-height: 1.35; color: var(--soft);
  overflow-wrap: anywhere; }
.card figcaption b { color: var(--ink); font-weight: 600; }
.card .share i { background: rgb(var(--wrong)); }
.small { display: grid; gap: .35rem; margin: .5rem 0 0; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(3.6rem, 1fr)); max-width: 74rem; }
.small.signals { grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); }
.rows { display: grid; gap: 1rem; margin-top: .75rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
.row { display: grid; gap: .5rem; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); }
.row.signals { grid-auto-flow: row; }
.row small { display: block; margin-bottom: .2rem; color: var(--soft); font-size: .75rem; }
.sample { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; }
.sample .shown { flex: 0 0 7.5rem; }
.sample .shown.signals { flex: 1 1 17rem; max-width: 34rem; }
img { display: block; width: 100%; height: auto; border-radius: 4px;
  box-shadow: 0 0 0 1px var(--frame); }
img.sharp { image-rendering: pixelated; }
img.strip { height: 1.1rem; opacity: 1; image-rendering: pixelated; }
.signal { height: 4.5rem; }
.small .signal { height: 3rem; }
.signal path { fill: none; vector-effect: non-scaling-stroke; stroke-width: 1.3; stroke: var(--first); }
.signal path.line1 { stroke: var(--second); } .signal path.line2 { stroke: var(--third); }
.signal path.line3 { stroke: var(--soft); }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) {
  .gallery { grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: .6rem; }
  .confusion { margin: .25rem; font-size: .75rem; }
  .confusion th { padding: .25rem .3rem; }
  .confusion td { min-width: 1.6rem; padding: .25rem .1rem; }
  .confusion td.sum { font-size: .65rem; }
}
@media print { pre, .card { break-inside: avoid; } }
)css";

}  // namespace fenestra::cli
