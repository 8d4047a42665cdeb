# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The colours and the layout of the page and of the picture, in the reader's light or dark style and on paper."""

from __future__ import annotations

# The colours of phases that look alike have one name. Phases that are not listed are "other".
_PHASES = {
    "wait": ("queued", "look", "canaries", "slot", "claim", "quorum"),
    "hold": ("hold", "window", "blocked"),
    "cordon": ("confirm", "cordon"),
    "drain": ("drain", "move", "delete"),
    "reboot": ("reboot", "fence", "power_on"),
    "taint": ("taint",),
    "ready": ("ready", "in_service"),
    "uncordon": ("uncordon",),
}
_COLOUR = {phase: colour for colour, phases in _PHASES.items() for phase in phases}
# What the legend says of each, and its colour in the light and in the dark style.
COLOURS = {
    "wait": ("waits for its turn", "#c9d1da", "#46525f"),
    "hold": ("hold, window or block", "#f0b429", "#dda520"),
    "cordon": ("cordon", "#93b4ea", "#587cc0"),
    "drain": ("drain", "#3f78d8", "#4a86e8"),
    "reboot": ("reboot", "#8556d4", "#a07bea"),
    "taint": ("taint", "#c2559d", "#d573b2"),
    "ready": ("ready", "#22a699", "#2bbcad"),
    "uncordon": ("uncordon", "#5cc46f", "#4fb765"),
    "other": ("other", "#a08b76", "#ab957f"),
}
# The words of a failover for the same colours, in the order of its steps.
FAILOVER = {
    "wait": "look and claim",
    "cordon": "cordon",
    "reboot": "fence or power on",
    "taint": "taint",
    "drain": "move",
    "ready": "ready, in service",
}
_PAGE = {
    "bg": ("#ffffff", "#10151b"),
    "card": ("#f5f7f9", "#181f27"),
    "fg": ("#1d2731", "#e3e8ee"),
    "muted": ("#5c6975", "#9aa7b4"),
    "line": ("#dfe4e9", "#2c3742"),
    "good": ("#17823f", "#46c46f"),
    "bad": ("#cf3030", "#ff7b72"),
}


def colour(phase: str) -> str:
    return _COLOUR.get(phase, "other")


def _variables(style: int) -> str:
    page = "".join(f"--{name}:{pair[style]};" for name, pair in _PAGE.items())
    return page + "".join(f"--{name}:{item[1 + style]};" for name, item in COLOURS.items())


_BARS = "".join(f".{name}{{fill:var(--{name})}}" for name in COLOURS) + (
    ".good{fill:var(--good)}.bad{fill:var(--bad)}.mark{stroke:var(--bg);stroke-width:1.5}"
    ".used{fill:var(--drain);fill-opacity:.35}"
    ".allowed{fill:none;stroke:var(--bad);stroke-dasharray:5 4}.grid{stroke:var(--line)}.track{fill:var(--card)}"
    "text{fill:var(--fg);font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}"
    "text.muted{fill:var(--muted)}text.title{font-size:15px;font-weight:600}text.in{fill:#fff;font-size:11px}"
)
PICTURE = (
    f":root{{{_variables(0)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}"
    f"{_BARS}.paper{{fill:var(--bg);stroke:var(--line)}}"
)
SHEET = (
    f":root{{color-scheme:light dark;{_variables(0)}}}"
    f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}"
    + _BARS
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
main{max-width:110rem;margin:auto;padding:1.5rem clamp(.8rem,3vw,3rem) 3rem}
h1{font-size:1.6rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
h3{font-size:1rem;margin:0 0 .3rem;overflow-wrap:anywhere}
p{margin:.3rem 0;overflow-wrap:anywhere}
.muted,dt,th{color:var(--muted)}
.tiles{display:flex;flex-wrap:wrap;gap:.6rem;margin:1.2rem 0 0;padding:0;list-style:none}
.tiles li{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.45rem .9rem;min-width:6.5rem}
.tiles b{display:block;font-size:1.45rem;line-height:1.3;font-variant-numeric:tabular-nums}
.tiles .bad b,.state.bad,.word.bad{color:var(--bad)}.tiles .good b,.state.good,.word.good{color:var(--good)}
.card{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--line);border-radius:6px;
padding:.8rem 1rem;
margin:.6rem 0}
.card.bad{border-left-color:var(--bad)}.card.good{border-left-color:var(--good)}
.text{white-space:pre-wrap;overflow-wrap:anywhere}
.todo::before{content:"What to do: ";font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.4rem 0 .8rem;padding:0;list-style:none;font-size:.87rem}
.legend svg{width:12px;height:12px;margin-right:.4rem;vertical-align:-1px}
.lane{display:grid;grid-template-columns:minmax(6.5rem,clamp(6.5rem,18%,17rem)) 1fr;gap:.8rem;
align-items:center;padding:0 1.1rem 0 0;
font-size:.87rem}
.lane>span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.lane svg{display:block;width:100%;overflow:visible}
.lane:not(.head):hover{background:var(--card)}
.head{position:sticky;top:0;background:var(--bg);z-index:1;border-bottom:1px solid var(--line);
padding-top:.3rem;margin-bottom:.3rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .9rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:500;white-space:nowrap}
td{overflow-wrap:anywhere;min-width:5.5rem}td.wide{min-width:14rem}
td.name{white-space:nowrap}
td.number{font-variant-numeric:tabular-nums;white-space:nowrap}
.state{font-weight:600;white-space:nowrap}
dl{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.15rem 1rem;margin:.4rem 0;font-size:.9rem}
dd{margin:0;overflow-wrap:anywhere}
.columns{columns:19rem;column-gap:2rem;margin:.4rem 0;padding:0;list-style:none;font-size:.9rem}
.columns li{break-inside:avoid;overflow-wrap:anywhere}
code{font:.92em ui-monospace,'DejaVu Sans Mono',monospace}
input{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:6px;
padding:.3rem .7rem;
width:min(100%,22rem)}
[hidden]{display:none!important}
@media (max-width:600px){.more{display:none}}
@media print{
main{max-width:none;padding:0}body{font-size:11px}.no-print{display:none}.head{position:static}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
.card,.lane,tr{break-inside:avoid}h2{break-after:avoid}
}
"""
)
# Shows the nodes whose name or result has the text.
SCRIPT = """
const box = document.getElementById("filter");
if (box) box.addEventListener("input", () => {
  const wanted = box.value.toLowerCase();
  for (const item of document.querySelectorAll("[data-node]")) item.hidden = !item.dataset.node.includes(wanted);
});
"""
