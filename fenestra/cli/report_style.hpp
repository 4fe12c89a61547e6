// What the report of a training looks like, besides what all pages have in common
// (base/page.hpp).
#pragma once

#include <string_view>

namespace fenestra::cli {

inline constexpr std::string_view kReportStyle = R"css(
:root {
  --first: #2a6fb8; --second: #d9822b; --third: #3f8f5b; --faint: #8fb4dc;
  --right: 42 111 184; --wrong: 214 92 46; --frame: #00000014;
}
@media (prefers-color-scheme: dark) {
  :root {
    --first: #6aaaf0; --second: #f0a35a; --third: #63b07f; --faint: #3d5f86;
    --right: 84 152 224; --wrong: 230 112 66; --frame: #ffffff1f;
  }
}
html { scroll-behavior: smooth; }
h2 { scroll-margin-top: 1rem; font-size: 1.3rem; }
h3 { margin: 1.5rem 0 .5rem; font-size: 1rem; overflow-wrap: anywhere; }
header p { margin-top: .4rem; }
header p b { color: var(--ink); font-weight: 600; }
.tile.main { border-color: var(--first); }
.tile.main dd:not(.note) { color: var(--first); }
.tile dd.note { overflow-wrap: anywhere; }
pre {
  margin: 1rem 0 0; padding: .7rem 1rem; overflow-x: auto; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere;
  font: .85rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
}
pre span { display: inline-block; max-width: 100%; }
pre::before { content: "$ "; color: var(--soft); }
nav ul { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; margin: 1.25rem 0 0; padding: 0;
  list-style: none; font-size: .9rem; }
nav a { color: var(--first); }
td.layer { font-weight: 600; }
td.layer small { font-weight: 400; }
tfoot td { border-top: 2px solid var(--line); font-weight: 600; }
details.numbers > summary { margin: .75rem 0 .5rem; color: var(--soft); font-size: .9rem;
  font-weight: 400; }

.charts { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: .75rem; }
.chart { flex: 1 1 20rem; margin: 0; padding: .9rem 1.1rem .7rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; min-width: 0; }
.chart.main { flex-basis: 100%; }
.chart figcaption { font-weight: 600; }
.chart figcaption small { color: var(--soft); font-weight: 400; }
.chart .axis { margin: 1.55rem 0 0; max-width: none; text-align: center; font-size: .8rem; }
.plot { position: relative; height: 11rem; margin: 1rem .6rem 0 3.1rem; }
.chart.main .plot { height: clamp(13rem, 24vw, 22rem); }
.plot svg { position: absolute; inset: 0; height: 100%; overflow: visible; }
.plot span { position: absolute; color: var(--soft); font-size: .75rem; line-height: 1;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
.plot span.y { right: calc(100% + .5rem); transform: translateY(-50%); }
.plot span.x { top: calc(100% + .5rem); transform: translateX(-50%); }
.plot path, .signal path { fill: none; vector-effect: non-scaling-stroke; }
.curve { stroke-width: 2; stroke-linejoin: round; }
.dots { stroke-width: 7; stroke-linecap: round; }
.curve.faint { stroke-width: 1.25; }
.first { stroke: var(--first); } .second { stroke: var(--second); }
.third { stroke: var(--third); } .faint { stroke: var(--faint); }
i.first { background: var(--first); } i.second { background: var(--second); }
i.third { background: var(--third); } i.faint { background: var(--faint); }
.strip { fill: var(--ink); opacity: 0; }
.strip:hover { opacity: .07; }

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
.signal path { stroke-width: 1.3; stroke: var(--first); }
.signal path.line1 { stroke: var(--second); } .signal path.line2 { stroke: var(--third); }
.signal path.line3 { stroke: var(--soft); }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem;
  margin: .75rem 0 0; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: 1.25rem .9rem 3rem; }
  .tile { flex-basis: 8rem; padding: .55rem .75rem; }
  .gallery { grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: .6rem; }
  .confusion { margin: .25rem; font-size: .75rem; }
  .confusion th { padding: .25rem .3rem; }
  .confusion td { min-width: 1.6rem; padding: .25rem .1rem; }
  .confusion td.sum { font-size: .65rem; }
  .chart { padding: .75rem .8rem .6rem; }
}
@media print { pre, .chart, .card { break-inside: avoid; } }
)css";

}  // namespace fenestra::cli
