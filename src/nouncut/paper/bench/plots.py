"""The paper's figures with matplotlib: scores by parameter, the diffusion, affinity matrices."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from nouncut.paper.bench.ablation import (
    AffinityMatrix,
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
    from matplotlib.figure import Figure

Inputs = ParamSpec("Inputs")
# Okabe and Ito's palette: distinct for colour-blind readers and dark enough on white. Markers
# tell the lines apart in print.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_MARKERS = ("o", "s", "^")
_BAND_COLOUR = "#e8e8e4"
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
    "axes.spines.right": False,
}
_ABOVE: dict[str, Any] = {
    "loc": "lower center",
    "bbox_to_anchor": (0.5, 1),
    "ncols": len(METRICS),
    "frameon": False,
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
    """Draw the affinity matrices, images sorted by class, with the NMI of their clusters."""
    matrices = class_affinities(encoded.problem(0), encoded.labels)
    return _save(encoded, "affinity", matrices_figure(encoded.name, matrices))


def _styled(draw: Callable[Inputs, Figure]) -> Callable[Inputs, Figure]:
    """Draw a figure in our style, and leave matplotlib's settings alone."""

    @wraps(draw)
    def styled(*args: Inputs.args, **options: Inputs.kwargs) -> Figure:
        check_matplotlib()
        from matplotlib import rc_context

        with rc_context(_STYLE):
            return draw(*args, **options)

    return styled


@_styled
def curve_figure(title: str, curve: Curve) -> Figure:
    """Draw scores over the values of a parameter; a band marks the default."""
    figure = _titled_figure(title, _SIZE)
    axes = figure.add_subplot()
    positions = np.arange(len(curve.values))
    if curve.default in curve.values:
        default = curve.values.index(curve.default)
        axes.axvspan(default - 0.15, default + 0.15, color=_BAND_COLOUR)
    deviations = np.nan_to_num(curve.deviations)
    for number, metric in enumerate(METRICS):
        means, bars = curve.means[:, number], deviations[:, number]
        axes.errorbar(positions, means, yerr=bars, label=metric, **_line(number))
    axes.set_xticks(positions, [f"{value:g}" for value in curve.values])
    axes.set_xlabel(curve.parameter)
    axes.set_ylabel("per cent")
    axes.set_ylim(*_span([curve.means - deviations, curve.means + deviations]))
    axes.legend(**_ABOVE)
    return figure


@_styled
def convergence_figure(title: str, found: Convergence) -> Figure:
    """Draw the objective (left axis) and the NMI (right axis) over iterations."""
    figure = _titled_figure(title, _SIZE)
    left = figure.add_subplot()
    right = left.twinx()
    right.spines.right.set_visible(True)
    steps = np.arange(1, len(found.nmi) + 1)
    lines = []
    for number, (axes, name, values) in enumerate(
        ((left, "objective", found.objective), (right, "NMI", found.nmi))
    ):
        lines += axes.plot(steps, values, label=name, **_line(number))
        axes.set_ylim(*_span(values))
    left.set(xticks=steps, xlabel="iteration", ylabel="objective")
    right.set_ylabel("NMI in per cent")
    right.legend(handles=lines, **_ABOVE)
    return figure


@_styled
def matrices_figure(title: str, matrices: Sequence[AffinityMatrix]) -> Figure:
    """Draw matrices of values from 0 (white) to 1 (black) side by side, on one scale."""
    figure = _titled_figure(title, (2.4 * len(matrices) + 0.8, 2.9))
    panels = [figure.add_subplot(1, len(matrices), n + 1) for n in range(len(matrices))]
    for axes, matrix in zip(panels, matrices, strict=True):
        image = axes.imshow(matrix.values, cmap="Greys", vmin=0, vmax=1, interpolation="none")
        axes.spines[:].set_visible(True)
        axes.set(xticks=[], yticks=[], xlabel=f"{matrix.title} (NMI = {matrix.nmi:.1f} %)")
    figure.colorbar(image, ax=panels, label="affinity, relative", shrink=0.8)
    return figure


def _titled_figure(title: str, size: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(size, layout="constrained")
    # The names of folders may hold dollar signs.
    figure.suptitle(title, fontsize=11, parse_math=False)
    return figure


def _line(number: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[number],
        "marker": _MARKERS[number],
        "markersize": 4,
        "linewidth": 1.5,
    }


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
