"""Every figure, for few and for many schemes. With INCAST_GALLERY, the pictures of docs/gallery."""

import io
import os
import pathlib

import pytest
from conftest import SMALL

import incast

np = pytest.importorskip("numpy")
plot = pytest.importorskip("incast.plot")
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

GREY = "#b8b8b8"
LINK = {"rate": "100Gbps", "delay": "1us"}
FABRIC = {
    "name": "gallery",
    "duration": "2ms",
    "seeds": [1, 2],
    "topology": {
        "kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "host_link": LINK, "fabric_link": LINK,
    },
    "switch": SMALL["switch"],
    "host": SMALL["host"],
    "workload": [
        {"class": "web", "kind": "poisson", "sizes": "websearch", "load": 0.5},
        {"class": "incast", "kind": "incast", "fan_in": 12, "size": "64KB", "every": "200us"},
    ],
    "scheme": [{"law": law} for law in ("dctcp", "swift", "timely", "cubic", "marimo")],
    "measure": {
        "ports": {"every": "5us", "which": ["leaf*->*", "spine*->*"]},
        "sizes": [{"name": "short", "upto": "100KB"}, {"name": "large", "over": "1MB"},
                  {"name": "huge", "class": "web", "over": "5MB"}],
    },
}
# Four flows join one link one after the other.
JOINING = {
    "name": "joining",
    "duration": "4ms",
    "drain": "0us",
    "topology": {"kind": "single-switch", "hosts": 5, "link": LINK},
    "switch": SMALL["switch"],
    "host": SMALL["host"],
    "workload": [
        {"class": f"flow{n}", "kind": "long", "pairs": [[f"h{n}", "h4"]], "start": f"{n}ms"} for n in range(4)
    ],
    "scheme": [{"law": law} for law in ("dctcp", "swift", "timely", "cubic", "marimo")],
    "measure": {"rates": {"every": "20us"}},
}


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    return incast.run(FABRIC, out=tmp_path_factory.mktemp("five"), progress=False)


@pytest.fixture(scope="module")
def joining(tmp_path_factory):
    return incast.run(JOINING, out=tmp_path_factory.mktemp("joining"), progress=False)


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    laws = ("dctcp", "cubic", "swift", "timely", "hpcc", "bbr", "marimo", "dcqcn")
    schemes = [
        {"law": law, "name": f"{law} {part}", "switch": {"ecn": {"kind": "step", "at": f"{part}bdp"}}}
        for law in laws
        for part in (0.1, 0.2, 0.5, 1, 2)
    ]
    with pytest.warns(incast.ScenarioWarning):
        return incast.run(
            {**SMALL, "name": "forty", "duration": "1ms", "scheme": schemes, "seeds": [1]},
            out=tmp_path_factory.mktemp("forty"),
            progress=False,
        )


def test_flows_of_some_sizes_are_drawn_by_the_name_of_their_row(five):
    from incast.plot import _data

    counted = {row["class"]: row["flows"] for row in five.rows if row["seed"] == "all" and row["scheme"] == "dctcp"}
    for name in ("web", "web short", "incast short", "large", "huge"):
        data = _data.flows(five, name, None)
        assert data.scheme.are("dctcp").sum() == counted[name] > 0, name
    fits(plot.fct_cdf(five, class_="web short", complement=True))
    with pytest.raises(ValueError, match="allowed are all, web, incast, .*web short"):
        plot.fct_cdf(five, class_="tiny")


def test_fonts_of_a_pdf_are_outlines_that_publishers_take(five):
    picture = io.BytesIO()
    plot.bars(five, "fct_us.p99", class_="incast").savefig(picture, format="pdf")
    assert b"/Type3" not in picture.getvalue()
    assert b"/CIDFontType2" in picture.getvalue() or b"/TrueType" in picture.getvalue()


def fits(figure):
    """Nothing is cut off, and what is written does not lie on what else is written."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    whole = figure.bbox
    texts = [text for axis in figure.axes for text in (axis.title, axis.xaxis.label, axis.yaxis.label) if text.get_text()]
    texts += [text for text in (figure._supxlabel, figure._supylabel) if text is not None]
    boxes = [text.get_window_extent(renderer) for text in texts]
    boxes += [legend.get_window_extent(renderer) for legend in figure.legends]
    for axis in figure.axes:
        ticks = [it.label1 for it in axis.xaxis.get_major_ticks() if it.label1.get_visible() and it.label1.get_text()]
        drawn = [tick.get_window_extent(renderer) for tick in ticks]
        inside = [box for box in drawn if axis.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axis.bbox.x1 + 1]
        if ticks and not ticks[0].get_rotation():
            assert not any(a.x1 > b.x0 for a, b in zip(inside, inside[1:], strict=False)), "ticks lie on each other"
    for box in boxes:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= whole.x1 + 1 and box.y1 <= whole.y1 + 1, "cut off"
    for place, box in enumerate(boxes):
        assert not any(Bbox.intersection(box, other) for other in boxes[place + 1 :]), "lies on other text"


def save(figure, name):
    if gallery := os.environ.get("INCAST_GALLERY"):
        pathlib.Path(gallery).mkdir(exist_ok=True)
        figure.savefig(pathlib.Path(gallery) / f"{name}.png")
    fits(figure)


FIGURES = {
    "fct-cdf": lambda r: plot.fct_cdf(r, class_="incast"),
    "fct-tail": lambda r: plot.fct_cdf(r, class_="incast", complement=True),
    "fct-panels": lambda r: plot.fct_cdf(r, class_="incast", panels=True),
    "slowdown-by-size": lambda r: plot.slowdown_by_size(r, class_="web", percentile=90),
    "bars": lambda r: plot.bars(r, "rct_us.p50", class_="incast"),
    "boxes": lambda r: plot.boxes(r, class_="web"),
    "queue": plot.queue,
    "heat-map": lambda r: plot.heat_map(r, scheme=r.schemes[-1]),
    "heat-map-rate": lambda r: plot.heat_map(r, of="rate"),
}


def test_figures_are_drawn_where_they_are_wanted(five, joining):
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 3, figsize=(12, 10))
    drawn = [
        lambda ax: plot.fct_cdf(five, class_="incast", ax=ax),
        lambda ax: plot.slowdown_by_size(five, ax=ax),
        lambda ax: plot.bars(five, "fct_us.p99", class_="incast", ax=ax),
        lambda ax: plot.boxes(five, of="fct", class_="incast", ax=ax),
        lambda ax: plot.queue(five, ax=ax),
        lambda ax: plot.heat_map(five, ax=ax),
        lambda ax: plot.jain(joining, ax=ax),
    ]
    for ax, draw in zip(axes.flat, drawn, strict=False):
        assert draw(ax) is figure
        assert ax.has_data()
    assert not figure.legends
    figure, axes = pyplot.subplots(1, 5)
    assert plot.rate(joining, ax=axes) is figure and plot.window(joining, ax=list(axes)) is figure
    with pytest.raises(ValueError, match="ax: found 1, allowed is one for each of 5 schemes"):
        plot.rate(joining, ax=axes[0])
    with pytest.raises(ValueError, match="none with panels"):
        plot.fct_cdf(five, panels=True, ax=axes[0])
    pyplot.close("all")


def test_a_heat_map_of_one_port_shows_it(tmp_path):
    scenario = {**JOINING, "name": "one-port", "measure": {"ports": {"every": "20us", "which": ["s0->h4"]}}}
    figure = plot.heat_map(incast.run(scenario, out=tmp_path, progress=False))
    (mesh,) = figure.axes[0].collections
    assert mesh.get_array().shape[0] == 1 and mesh.get_array().max() > 0
    low, high = figure.axes[0].get_ylim()
    assert high - low == 1
    fits(figure)


def test_bars_and_boxes_are_the_numbers_of_the_results(five):
    figure = plot.bars(five, "fct_us.p99", class_="incast")
    rows = {row["scheme"]: row for row in five.rows if row["seed"] == "all" and row["class"] == "incast"}
    heights = [patch.get_height() for patch in figure.axes[0].patches]
    assert heights == [rows[scheme]["fct_us"]["p99"] for scheme in five.schemes]
    wide = figure.axes[0].get_title().count("beyond a factor of ten")
    assert len(figure.axes[0].lines) + wide == len(five.schemes), "an interval each, or a word"
    figure = plot.boxes(five, of="fct", class_="incast")
    assert len(figure.axes[0].patches) == len(five.schemes)
    for box in figure.axes[0].patches:
        assert box.get_height() > 0
    for wrong, message in [({"of": "size"}, "allowed are slowdown and fct"), ({"class_": "wbe"}, "wbe")]:
        with pytest.raises((ValueError, KeyError), match=message):
            plot.boxes(five, **wrong)
    with pytest.raises(ValueError, match="class_: found 'wbe'"):
        plot.bars(five, "fct_us.p99", class_="wbe")


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_five_schemes(five, name):
    save(FIGURES[name](five), name)


@pytest.mark.parametrize("name", ["fct-cdf", "fct-tail", "fct-panels", "queue"])
def test_figures_of_forty_schemes(forty, name):
    figure = FIGURES[name](forty)
    save(figure, f"forty-{name}")
    lines = [line for line in figure.axes[0].lines if to_hex(line.get_color()) != GREY]
    assert len(lines) <= 7 and len({(line.get_color(), str(line.get_linestyle())) for line in lines}) == len(lines)
    assert len(figure.axes) == (40 if name == "fct-panels" else 1)


@pytest.mark.parametrize("name", ["rate", "window", "jain"])
def test_figures_of_joining_flows(joining, name):
    save(getattr(plot, name)(joining), name)


def test_a_metric_over_an_axis(tmp_path):
    loads, thresholds = [0.2, 0.4, 0.6], ["0.1bdp", "0.5bdp", "off"]
    ecn = [{"kind": "step", "at": at} if at != "off" else at for at in thresholds[:2]]
    grid = {"workload.web.load": loads, "switch.ecn": ecn}
    results = incast.run({**SMALL, "grid": grid}, out=tmp_path, progress=False)
    figure = plot.metric(results, "slowdown.p99", "load", class_="web", point={"ecn": ecn[0]})
    fits(figure)
    (axis,) = figure.axes
    assert axis.get_xlabel() == "workload.web.load" and axis.get_ylabel() == "web: p99 slowdown"
    assert len(axis.lines) == 3 and len(axis.collections) == 3, "a line and a band for each scheme"
    for scheme, line in zip(results.schemes, axis.lines, strict=True):
        expected = [
            row["slowdown"]["p99"]
            for load in loads
            for row in results.rows
            if row["seed"] == "all" and row["class"] == "web" and row["scheme"] == scheme
            and row["grid"] == {"workload.web.load": load, "switch.ecn": ecn[0]}
        ]
        assert list(line.get_xdata()) == loads and list(line.get_ydata()) == expected
    # What has no place as a number lies at equal distances; in axes that are given there is no legend.
    figure = plot.metric(results, "fct_us.mean", "switch.ecn", class_="incast", point={"load": 0.4}, logarithmic=True)
    assert list(figure.axes[0].lines[0].get_xdata()) == [0, 1]
    given = figure.add_axes((0, 0, 1, 1))
    assert plot.metric(results, "goodput_gbps", "load", point={"ecn": ecn[1]}, ax=given) is figure and len(given.lines) == 3
    for wrong, why in [
        ({"metric": "slowdown.p98", "over": "load", "point": {"ecn": ecn[0]}}, "incast list metrics"),
        ({"metric": "slowdown.p99", "over": "load"}, "switch.ecn is missing"),
        ({"metric": "slowdown.p99", "over": "size"}, "allowed is one of switch.ecn, workload.web.load"),
        ({"metric": "slowdown.p99", "over": "load", "point": {"ecn": "off"}}, "found 'off'"),
        ({"metric": "slowdown.p99", "over": "load", "point": {"ecn": ecn[0], "load": 0.2}}, "which the figure is over"),
        ({"metric": "slowdown.p99", "over": "load", "point": {"ecn": ecn[0]}, "class_": "no"}, "allowed are web, incast, all"),
        ({"metric": "convergence_us", "over": "load", "point": {"ecn": ecn[0]}}, "unknown at every point"),
    ]:
        with pytest.raises(ValueError, match=why):
            plot.metric(results, **wrong)


def test_a_metric_over_two_axes(tmp_path):
    loads, thresholds = [0.2, 0.4, 0.6], ["0.1bdp", "0.5bdp"]
    grid = {"workload.web.load": loads, "switch.ecn.at": thresholds, "host.ack_every": [1, 2]}
    results = incast.run({**SMALL, "grid": grid}, out=tmp_path, progress=False)
    over = ("load", "at")
    figure = plot.metric_map(results, "slowdown.p99", over, class_="web", point={"ack_every": 2})
    save(figure, "metric-map")
    *panels, bar = figure.axes
    assert [axis.get_title().splitlines() for axis in panels] == [[name, "host.ack_every 2"] for name in results.schemes]
    for name, axis in zip(results.schemes, panels, strict=True):
        (mesh,) = axis.collections
        expected = [
            [
                next(
                    row["slowdown"]["p99"] for row in results.rows
                    if row["seed"] == "all" and row["class"] == "web" and row["scheme"] == name
                    and row["grid"] == {"workload.web.load": load, "switch.ecn.at": at, "host.ack_every": 2}
                )
                for load in loads
            ]
            for at in thresholds
        ]
        assert mesh.get_array().tolist() == expected and len(axis.texts) == 6
        assert mesh.get_clim() == panels[0].collections[0].get_clim(), "one scale"
    assert bar.get_ylabel() == "web:\np99 slowdown"
    given = figure.add_axes((0, 0, 1, 1))
    one = {"over": over, "point": {"ack_every": 1}, "scheme": results.schemes[0]}
    assert plot.metric_map(results, "fct_us.p50", ax=given, logarithmic=True, **one) is figure
    for wrong, why in [
        ({"over": "load"}, "allowed are two axes"),
        ({"over": ("load", "workload.web.load")}, "twice"),
        ({"over": over, "point": {}}, "host.ack_every is missing"),
        ({"scheme": "x"}, "scheme: found 'x'"),
        ({"scheme": None, "ax": given}, "scheme names one of"),
        ({"metric": "convergence_us"}, "unknown at every point"),
    ]:
        with pytest.raises(ValueError, match=why):
            plot.metric_map(results, **{"metric": "slowdown.p99", **one, **wrong})


def test_a_long_name_fits_beside_the_axis(small):
    swept = incast.sweep(small, {"switch.ecn.at": ["0.1bdp", "1bdp"]}, seeds=1)
    for logarithmic in (False, True):
        fits(plot.metric(swept, "rct_us.p99", "at", class_="incast", logarithmic=logarithmic))


def test_the_best_are_those_with_the_most_where_more_is_better(forty):
    seven = {}
    for name in ("goodput_gbps", "slowdown.p99"):
        rows = {row["scheme"]: row for row in forty.rows if row["seed"] == "all" and row["class"] == "web"}
        values = {scheme: row["goodput_gbps"] if name == "goodput_gbps" else row["slowdown"]["p99"] for scheme, row in rows.items()}
        bars = plot.bars(forty, name, class_="web").axes[0].patches
        seven = [values[scheme] for scheme, bar in zip(values, bars, strict=True) if to_hex(bar.get_facecolor()) != GREY]
        assert len(seven) == 7
        assert sorted(seven) == sorted(values.values(), reverse=name == "goodput_gbps")[:7][:: -1 if name == "goodput_gbps" else 1]


def test_slowdowns_have_a_distribution(five):
    figure = plot.fct_cdf(five, class_="web", of="slowdown")
    fits(figure)
    (axis,) = figure.axes
    assert axis.get_xlabel() == "slowdown"
    flows = five.flows.to_pandas() if pytest.importorskip("pandas") else None
    for scheme, line in zip(five.schemes, axis.lines, strict=True):
        its = np.sort(flows[(flows["scheme"] == scheme) & (flows["class"] == "web")]["slowdown"])
        assert list(line.get_xdata()) == list(its) and line.get_ydata()[-1] == 1


def test_published_numbers_are_drawn():
    results = incast.run(incast.Scenario("blitz/fig01a", short=True), progress=False)
    figure = plot.published(results)
    save(figure, "published")
    drawn = sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o")
    claims = sorted(claim["measured"] / claim["published"] for claim in results.claims if claim["measured"])
    assert drawn == pytest.approx(claims)


def test_a_column_is_that_of_a_paper(five):
    assert plot.fct_cdf(five).get_size_inches()[0] == 3.35


def test_unfinished_flows_count(small):
    cut = small.with_(drain="0us", duration="60us", seeds=[1], scheme=[{"law": "dctcp"}], measure={})
    results = incast.run(cut)
    (row,) = (row for row in results.rows if (row["class"], row["seed"]) == ("all", "all"))
    assert 0 < row["completed"] < row["flows"]
    (line,) = plot.fct_cdf(results).axes[0].lines
    assert line.get_ydata()[-1] == pytest.approx(row["completed"] / row["flows"])


def test_the_percentiles_are_those_of_the_summary(five):
    from incast.plot import _data

    flows = _data.flows(five, "web", None)
    for scheme in five.schemes:
        (row,) = (it for it in five.rows if (it["scheme"], it["class"], it["seed"]) == (scheme, "web", "all"))
        its = flows.fct[flows.scheme.are(scheme)]
        assert len(its) == row["flows"]
        assert np.quantile(its, 0.5, method="inverted_cdf") == pytest.approx(row["fct_us"]["p50"], rel=1e-9)


def test_jain_s_index_is_of_its_formula(joining):
    (line, *_) = plot.jain(joining).axes[0].lines
    first, last = line.get_ydata()[5], line.get_ydata()[-1]
    assert first == pytest.approx(1) and 0.25 < last <= 1


def test_sweeps_are_drawn_at_a_point(small):
    swept = incast.sweep(small, {"switch.ecn.at": ["0.1bdp", "1bdp"], "host.ack_every": [1, 2]}, seeds=1)
    for figure in (plot.fct_cdf, plot.slowdown_by_size, plot.queue, plot.jain):
        fits(figure(swept, point={"switch.ecn.at": "1bdp", "host.ack_every": 2}))
        # An axis is named by its last part, too, as in `metric`.
        fits(figure(swept, point={"at": "1bdp", "ack_every": 2}))
    for figure in (plot.fct_cdf, plot.slowdown_by_size, plot.boxes, plot.queue):
        title = figure(swept, point={"at": "1bdp"}).axes[0].get_title()
        assert title.splitlines()[-2:] == ["switch.ecn.at 1bdp", "host.ack_every 1"], "which point is shown"
    assert swept.at({"at": "1bdp"})[0] is swept.at({"switch.ecn.at": "1bdp"})[0]
    with pytest.raises(ValueError, match="point: found 'ecn', allowed is one of switch.ecn.at, host.ack_every"):
        plot.queue(swept, point={"ecn": "1bdp"})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: plot.fct_cdf(r, class_="we"), "class_: found 'we', allowed are all, web, incast"),
        (lambda r: plot.fct_cdf(r, point={"a": 1}), "point: found"),
        (lambda r: plot.fct_cdf(r, of="time"), "of: found 'time', allowed are fct and slowdown"),
        (lambda r: plot.fct_cdf(r, highlight="dctp"), "highlight: found 'dctp', allowed are dctcp"),
        (lambda r: plot.fct_cdf(r, highlight=["dctp"]), "highlight: found 'dctp', allowed are dctcp"),
        (lambda r: plot.slowdown_by_size(r, percentile=0), "percentile: found 0"),
        (lambda r: plot.queue(r, port="s0"), "port: found 's0'"),
        (lambda r: plot.queue(r, seed=77), "seed: found 77, allowed are 1, 2"),
        (lambda r: plot.heat_map(r, of="heat"), "of: found 'heat'"),
        (lambda r: plot.heat_map(r, scheme="x"), "scheme: found 'x'"),
        (plot.published, "no published numbers"),
        (lambda r: plot.jain(incast.run({**SMALL, "measure": {"rates": {"every": "1s"}}}, seeds=1)), "no samples"),
    ],
)
def test_bad_arguments_are_named(five, call, message):
    with pytest.raises(ValueError, match=message):
        call(five)


def test_samples_that_are_not_there_are_named(small):
    results = incast.run(small.with_(measure={}), seeds=1)
    with pytest.raises(incast.ResultsError, match="ports.parquet"):
        plot.queue(results)
