// What the page that explains a plan looks like, besides what all pages have in common
// (base/page.hpp). Internal: not installed.
#pragma once

#include <string_view>

namespace fenestra::graph {

inline constexpr std::string_view kExplainStyle = R"css(
:root {
  --rail: #3f8f5b; --band: #3f8f5b1a; --result: #6c9fd2; --workspace: #e0a04a;
  --scratch: #a98bc9; --workers: #63ad7d; --live: #1d2327;
}
@media (prefers-color-scheme: dark) {
  :root {
    --rail: #63b07f; --band: #63b07f26; --result: #4c7fb5; --workspace: #b97f2e;
    --scratch: #8368a8; --workers: #4a8c62; --live: #e6eaed;
  }
}
td.reads { white-space: normal; min-width: 7rem; max-width: 16rem; }
td.operation { min-width: 17rem; }
td.operation small { max-width: 22rem; white-space: normal; overflow-wrap: anywhere; }
td.rest { white-space: normal; color: var(--soft); }
tr.group > td { border-left: 4px solid var(--rail); background: var(--band); font-weight: 600; }
tr.group span { position: sticky; left: .7rem; }
tr.member > td:first-child { border-left: 4px solid var(--rail); padding-left: 1.1rem; }
tr.step > td:first-child { border-left: 4px solid transparent; }
tr.step.member > td:first-child { border-left-color: var(--rail); }
tr:target > td { background: var(--hit); }
.legend i.band { outline: 1px solid var(--rail); outline-offset: -1px; }
.legend i.line { height: 0; border-top: 2px solid var(--live); border-radius: 0;
  vertical-align: .25rem; }
svg { min-width: 46rem; height: auto; }
svg text { fill: var(--soft); font-size: 11px; }
svg .name { fill: #0d1114; font-size: 10px; pointer-events: none; }
svg .live { fill: none; stroke: var(--live); stroke-width: 1.25;
  opacity: .8; pointer-events: none; }
svg rect.buffer { stroke: var(--card); stroke-width: .6; }
svg a:hover rect, svg a:focus rect { stroke: var(--ink); stroke-width: 1.5; }
.result { fill: var(--result); background: var(--result); }
.workspace { fill: var(--workspace); background: var(--workspace); }
.scratch { fill: var(--scratch); background: var(--scratch); }
.workers { fill: var(--workers); background: var(--workers); }
.band { fill: var(--band); background: var(--band); }
.cost { fill: var(--bar); background: var(--bar); }
)css";

}  // namespace fenestra::graph
