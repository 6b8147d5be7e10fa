"""Figures 4 to 9 of the paper, each with ours beside."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from side_by_side import paper, postgresql, postmark, source_build, web
from side_by_side.results import Results
from side_by_side.settings import ASYNCHRONOUS, BARRIERS, EAGER, MEMORY, SYNCHRONOUS, XSYNC

_SHOWN = (ASYNCHRONOUS, XSYNC, SYNCHRONOUS, BARRIERS, MEMORY)
_PAPER = "the paper"
_OURS = "ours"
_COLORS = {_PAPER: "#b0b0b0", _OURS: "#1f77b4", "ours, POSTs only": "#7fb8dd"}

Groups = Mapping[str, Sequence[float | None]]


def bars(panel: Axes, labels: Sequence[str], groups: Groups, colors: Sequence[str] | None = None) -> None:
    """Groups of bars: for each label one bar of each group. Where a group has None, there is no bar."""
    width = 0.8 / len(groups)
    for number, (name, heights) in enumerate(groups.items()):
        there = [(place, height) for place, height in enumerate(heights) if height is not None]
        places = [place + (number - (len(groups) - 1) / 2) * width for place, _ in there]
        color = colors[number] if colors else _COLORS[name]
        drawn = panel.bar(places, [height for _, height in there], width, label=name, color=color)
        panel.bar_label(drawn, fmt="%.3g", fontsize=6)
    panel.set_xticks(range(len(labels)), labels, rotation=25, ha="right", fontsize=8)
    panel.legend(frameon=False, fontsize=7)


def against_asynchronous(panel: Axes, results: Results, figure: str, **more: str) -> None:
    """Bars for each setting, as multiples of the asynchronous file system. `more` has other figures of ours."""
    groups = {_PAPER: [paper.RATIOS[figure].get(setting) for setting in _SHOWN]}
    for name, own in {_OURS: figure, **more}.items():
        groups[name] = [results.ratio(own, setting.name) for setting in _SHOWN]
    bars(panel, [setting.name for setting in _SHOWN], groups)


def by_clients(panel: Axes, results: Results) -> None:
    """Lines: orders a minute over clients, as multiples of the asynchronous file system."""
    panel.plot(
        *zip(*paper.BY_CLIENTS.items(), strict=True), marker="s", color="black", label="the paper: xsyncfs, MySQL"
    )
    for setting in _SHOWN[1:]:
        ratios = {
            clients: results.ratio(postgresql.per_minute(clients), setting.name) for clients in postgresql.CLIENTS
        }
        there = [(clients, ratio) for clients, ratio in ratios.items() if ratio is not None]
        panel.plot(*zip(*there, strict=True), marker="o", label=f"ours: {setting.name}")
    panel.axhline(1, color="grey", linestyle=":")
    panel.set(xlabel="clients", yscale="log")
    panel.yaxis.set_major_formatter(ScalarFormatter())
    panel.yaxis.set_minor_formatter(NullFormatter())
    panel.legend(frameon=False, fontsize=7)


def latencies(panel: Axes, results: Results) -> None:
    """Seconds of a request for each class of files."""
    groups: dict[str, list[float | None]] = {}
    for setting, spent in paper.REQUEST_SECONDS.items():
        groups[f"{_PAPER}: {setting.name}"] = [spent[size] for size in web.CLASSES]
    for setting in (ASYNCHRONOUS, XSYNC):
        ours = [results.median(web.seconds_of(size), setting.name) for size in web.CLASSES]
        groups[f"{_OURS}: {setting.name}"] = ours
    bars(panel, web.CLASSES, groups, ("#d0d0d0", "#808080", "#7fb8dd", "#1f77b4"))


def over_eager(panel: Axes, results: Results) -> None:
    """How many times as fast commits are that outputs trigger. Seconds are better when they are fewer."""
    ours = []
    for figure in paper.OVER_EAGER:
        eager = results.ratio(figure, EAGER.name, base=XSYNC.name)
        is_time = figure.endswith(", s")
        ours.append(eager if is_time or eager is None else 1 / eager)
    labels = ["PostMark", "build", "database, 1", "database, 20", "web mix"]
    bars(panel, labels, {_PAPER: list(paper.OVER_EAGER.values()), _OURS: ours})
    panel.axhline(1, color="grey", linestyle=":")


def plot(results: Results, file: Path) -> None:
    """All six panels."""
    pyplot.rcParams["svg.hashsalt"] = "postcrash"  # the same figures give the same file
    drawn, panels = pyplot.subplots(2, 3, figsize=(14, 8), layout="constrained")
    four, five, six, seven, eight, nine = panels.flat
    against_asynchronous(four, results, postmark.SECONDS)
    four.set(title="Figure 4: PostMark, time (asynchronous = 1)", yscale="log")
    against_asynchronous(five, results, source_build.SECONDS)
    five.set(title="Figure 5: build, time (asynchronous = 1)", yscale="log")
    by_clients(six, results)
    six.set_title("Figure 6: database, orders a minute (asynchronous = 1)")
    against_asynchronous(seven, results, web.THROUGHPUT, **{"ours, POSTs only": web.POSTS})
    seven.set_title("Figure 7: web, throughput (asynchronous = 1)")
    latencies(eight, results)
    eight.set(title="Figure 8: web, seconds a request by size", yscale="log")
    over_eager(nine, results)
    nine.set_title("Figure 9: speed with output-triggered commits (eager = 1)")
    for panel in panels.flat:
        panel.title.set_fontsize(9)
    drawn.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
