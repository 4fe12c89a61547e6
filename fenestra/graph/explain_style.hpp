// The style sheet of the page that explains a plan. Internal: not installed.
#pragma once

#include <string_view>

namespace fenestra::graph {

inline constexpr std::string_view kExplainStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2327; --soft: #5d6870; --line: #dfe3e6;
  --bar: #9dbfe3; --rail: #3f8f5b; --band: #3f8f5b1a; --hit: #fff3c4;
  --result: #6c9fd2; --workspace: #e0a04a; --scratch: #a98bc9; --lanes: #63ad7d; --live: #1d2327;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181b; --card: #1b2125; --ink: #e6eaed; --soft: #98a4ad; --line: #2d363c;
    --bar: #375f8c; --rail: #63b07f; --band: #63b07f26; --hit: #46401f;
    --result: #4c7fb5; --workspace: #b97f2e; --scratch: #8368a8; --lanes: #4a8c62; --live: #e6eaed;
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
td.reads { white-space: normal; min-width: 7rem; max-width: 16rem; }
td.operation { min-width: 17rem; }
td.operation small { max-width: 22rem; white-space: normal; overflow-wrap: anywhere; }
td.rest { white-space: normal; color: var(--soft); }
td.share { min-width: 8rem; }
.share i { display: block; height: .35rem; margin: .1rem 0 .2rem; border-radius: 2px;
  background: var(--bar); }
tr.group > td { border-left: 4px solid var(--rail); background: var(--band); font-weight: 600; }
tr.group span { position: sticky; left: .7rem; }
tr.member > td:first-child { border-left: 4px solid var(--rail); padding-left: 1.1rem; }
tr.step > td:first-child { border-left: 4px solid transparent; }
tr.step.member > td:first-child { border-left-color: var(--rail); }
tr:target > td { background: var(--hit); }
details > summary { margin: 2.5rem 0 .5rem; font-size: 1.15rem; font-weight: 700;
  cursor: pointer; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .5rem 0; padding: 0;
  list-style: none; color: var(--soft); font-size: .85rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem;
  border-radius: 2px; vertical-align: -.08rem; }
.legend i.band { outline: 1px solid var(--rail); outline-offset: -1px; }
.legend i.line { height: 0; border-top: 2px solid var(--live); border-radius: 0;
  vertical-align: .25rem; }
svg { display: block; width: 100%; min-width: 46rem; height: auto; }
svg text { fill: var(--soft); font-size: 11px; }
svg .name { fill: #0d1114; font-size: 10px; pointer-events: none; }
svg .grid { stroke: var(--line); }
svg .live { fill: none; stroke: var(--live); stroke-width: 1.25;
  opacity: .8; pointer-events: none; }
svg rect.buffer { stroke: var(--card); stroke-width: .6; }
svg a:hover rect, svg a:focus rect { stroke: var(--ink); stroke-width: 1.5; }
.result { fill: var(--result); background: var(--result); }
.workspace { fill: var(--workspace); background: var(--workspace); }
.scratch { fill: var(--scratch); background: var(--scratch); }
.lanes { fill: var(--lanes); background: var(--lanes); }
.band { fill: var(--band); background: var(--band); }
.cost { fill: var(--bar); background: var(--bar); }
@media print { .wide { overflow: visible; } body { max-width: none; } }
)css";

}  // namespace fenestra::graph
