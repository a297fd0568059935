"""The paper's figures with matplotlib: scores by parameter, the diffusion, affinity matrices."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nouncut.paper.bench.ablation import (
    Convergence,
    Curve,
    class_affinities,
    follow_diffusion,
    vary_parameter,
)
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.output_folder import file_stem, write_file
from nouncut.paper.optional_packages import require_package
from nouncut.paper.published import METRICS, ParameterName
from nouncut.paper.tables.table_text import csv_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: distinct for colour-blind readers and dark enough on white. Markers
# tell the lines apart in print.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_MARKERS = ("o", "s", "^")
_SIZE = (4.6, 3.4)
_PIXELS_PER_INCH = 300
# Curves that vary by less than this share of their height look flat.
_FLAT = 0.005
_STYLE: dict[Any, Any] = {
    # Text stays text: it can be searched, selected and read aloud.
    "svg.fonttype": "none",
    # The same figure is the same file.
    "svg.hashsalt": "nouncut",
    "font.size": 9,
    "axes.spines.top": False,
}


def check_matplotlib() -> None:
    """Raise an error that says how to install matplotlib, unless it is installed."""
    require_package("matplotlib", "Drawing figures")


def save_curve(encoded: EncodedDataset, parameter: ParameterName, seeds: int = 5) -> list[Path]:
    """Draw the scores as a parameter changes."""
    curve = vary_parameter(encoded, parameter, seeds)
    return _save(encoded, parameter, curve_figure(encoded.name, curve), curve.records())


def save_convergence(encoded: EncodedDataset) -> list[Path]:
    """Draw the objective and the score at every iteration of the diffusion."""
    found = follow_diffusion(encoded.problem(0), encoded.labels)
    rows = [
        {"iteration": str(step), "objective": objective, "NMI": nmi}
        for step, (objective, nmi) in enumerate(zip(found.objective, found.nmi, strict=True), 1)
    ]
    return _save(encoded, "convergence", convergence_figure(encoded.name, found), rows)


def save_affinities(encoded: EncodedDataset) -> list[Path]:
    """Draw the affinity matrices, images sorted by class."""
    matrices = class_affinities(encoded.problem(0), encoded.labels)
    return _save(encoded, "affinity", matrices_figure(encoded.name, matrices))


def curve_figure(title: str, curve: Curve) -> Figure:
    """Draw scores over the values of a parameter; a band marks the default."""
    figure, axes = _new_figure(title, _SIZE)
    positions = np.arange(len(curve.values))
    axes.axvspan(*(curve.values.index(curve.default) + np.array([-0.15, 0.15])), color="#e8e8e4")
    deviations = np.nan_to_num(curve.deviations)
    for number, metric in enumerate(METRICS):
        axes.errorbar(
            positions,
            curve.means[:, number],
            yerr=deviations[:, number],
            label=metric,
            **_line(number),
        )
    axes.set_xticks(positions, [f"{value:g}" for value in curve.values])
    axes.set_xlabel(curve.parameter)
    axes.set_ylabel("per cent")
    axes.set_ylim(*_span([curve.means - deviations, curve.means + deviations]))
    _legend(figure, axes.lines[: len(METRICS)], METRICS)
    return figure


def convergence_figure(title: str, found: Convergence) -> Figure:
    """Draw the objective (left axis) and the NMI (right axis) over iterations."""
    figure, left = _new_figure(title, _SIZE)
    right = left.twinx()
    steps = np.arange(1, len(found.nmi) + 1)
    lines = []
    for number, (axes, values, label) in enumerate(
        ((left, found.objective, "objective"), (right, found.nmi, "NMI (per cent)"))
    ):
        lines += axes.plot(steps, values, **_line(number))
        axes.set_ylim(*_span(values))
        axes.set_ylabel(label, color=_COLOURS[number])
    left.set_xticks(steps)
    left.set_xlabel("iteration")
    _legend(figure, lines, ("objective", "NMI"))
    return figure


def matrices_figure(title: str, matrices: Mapping[str, NDArray[np.float64]]) -> Figure:
    """Draw matrices of values from 0 to 1 side by side, 1 in black."""
    figure, first = _new_figure(title, (2.4 * len(matrices), 2.9))
    first.remove()
    for number, (name, matrix) in enumerate(matrices.items(), start=1):
        axes = figure.add_subplot(1, len(matrices), number)
        axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, interpolation="none")
        axes.set(xticks=[], yticks=[], xlabel=name)
    return figure


def _new_figure(title: str, size: tuple[float, float]) -> tuple[Figure, Axes]:
    check_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(size, layout="constrained")
        # The names of folders may hold dollar signs.
        figure.suptitle(title, fontsize=11, parse_math=False)
        return figure, figure.add_subplot()


def _line(number: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[number],
        "marker": _MARKERS[number],
        "markersize": 4,
        "linewidth": 1.5,
    }


def _legend(figure: Figure, lines: Iterable[Any], labels: Sequence[str]) -> None:
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _span(values: ArrayLike) -> tuple[float, float]:
    """Return limits of an axis that hold all values with a margin."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = max(0.08 * (high - low), _FLAT * max(abs(low), abs(high))) or 1.0
    return low - margin, high + margin


def _save(
    encoded: EncodedDataset, name: str, figure: Figure, rows: Sequence[dict[str, Any]] = ()
) -> list[Path]:
    """Write a figure as SVG and PNG, and its numbers as CSV."""
    stem = f"{name}-{file_stem(encoded.name)}-{file_stem(encoded.setup.model)}"
    contents = {"svg": render(figure, "svg", f"{name} of {encoded.name}")}
    contents["png"] = render(figure, "png", f"{name} of {encoded.name}")
    if rows:
        contents["csv"] = csv_text(rows).encode()
    paths = {suffix: encoded.setup.output / f"{stem}.{suffix}" for suffix in contents}
    for suffix, content in contents.items():
        write_file(paths[suffix], content)
    return list(paths.values())


def render(figure: Figure, file_format: str, title: str) -> bytes:
    """Return a figure as a file, the same every time."""
    from matplotlib import rc_context

    metadata = {"Title": title, **({"Date": None} if file_format == "svg" else {})}
    stream = io.BytesIO()
    with rc_context(_STYLE), warnings.catch_warnings():
        # A name may have letters that matplotlib's font lacks; other fonts show them in the SVG.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(stream, format=file_format, dpi=_PIXELS_PER_INCH, metadata=metadata)
    return stream.getvalue()
