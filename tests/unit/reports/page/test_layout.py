"""How a heat map of many places stands on the page."""

from postcrash.reports.page.layout import ACROSS_MAX, Layout, lay_out
from postcrash.reports.page.report import HeatMap, Square, TableColumn, TableRow


def heat_map(targets: int, kernels: tuple[str, ...], rows: int) -> HeatMap:
    """All squares are there but those of the last target on the last kernel."""
    columns = tuple(TableColumn(f"t{number}", kernel) for number in range(targets) for kernel in kernels)
    last = columns[-1]
    return HeatMap(
        heading="all",
        rows_are="property",
        columns=columns,
        rows=tuple(
            TableRow(
                name=f"P{number}",
                title=f"title {number}",
                statement="",
                judges=(f"P{number}",),
                squares=tuple(
                    None if at == last else Square(f"P{number} {at.target} {at.kernel}", ()) for at in columns
                ),
            )
            for number in range(rows)
        ),
        headings=(),
    )


def standings(layout: Layout) -> list[list[str]]:
    return [[cell.square.standing if cell else "" for cell in line.cells] for line in layout.lines]


def test_few_places_stand_across() -> None:
    layout = lay_out(heat_map(2, ("6.1", "7.2"), 1))
    assert (layout.lines_are, layout.groups) == ("property", ())
    assert [(at.text, at.detail, at.target, at.kernel, at.judges) for at in layout.columns] == [
        *(("t0", "6.1", "t0", "6.1", None), ("t0", "7.2", "t0", "7.2", None)),
        *(("t1", "6.1", "t1", "6.1", None), ("t1", "7.2", "t1", "7.2", None)),
    ]
    assert standings(layout) == [["P0 t0 6.1", "P0 t0 7.2", "P0 t1 6.1", ""]]
    assert layout.lines[0].heading.judges == ("P0",)


def test_of_many_places_targets_stand_down_and_kernels_beside_each_other() -> None:
    layout = lay_out(heat_map(ACROSS_MAX, ("6.1", "7.2"), 2))
    assert layout.lines_are == "target"
    assert [(at.text, at.detail, at.judges, at.span) for at in layout.groups] == [
        *(("P0", "title 0", ("P0",), 2), ("P1", "title 1", ("P1",), 2))
    ]
    assert [(at.text, at.target, at.kernel, at.judges) for at in layout.columns] == [
        *(("6.1", None, "6.1", ("P0",)), ("7.2", None, "7.2", ("P0",))),
        *(("6.1", None, "6.1", ("P1",)), ("7.2", None, "7.2", ("P1",))),
    ]
    assert len(layout.lines) == ACROSS_MAX
    assert standings(layout)[1] == ["P0 t1 6.1", "P0 t1 7.2", "P1 t1 6.1", "P1 t1 7.2"]
    assert standings(layout)[-1] == ["P0 t19 6.1", "", "P1 t19 6.1", ""]
    assert layout.lines[-1].heading.target == "t19"


def test_with_one_kernel_properties_stand_across_without_it() -> None:
    layout = lay_out(heat_map(ACROSS_MAX + 1, ("6.1",), 2))
    assert (layout.lines_are, layout.groups) == ("target", ())
    assert [(at.text, at.kernel, at.judges) for at in layout.columns] == [("P0", None, ("P0",)), ("P1", None, ("P1",))]
    assert standings(layout)[0] == ["P0 t0 6.1", "P1 t0 6.1"]
    assert {line.heading.kernel for line in layout.lines} == {"6.1"}


def test_many_rows_stay_rows() -> None:
    assert lay_out(heat_map(ACROSS_MAX, ("6.1", "7.2"), ACROSS_MAX)).lines_are == "property"


def test_cells_have_names_and_the_numbers_of_what_they_rest_on_in_each_layout() -> None:
    for targets in (2, ACROSS_MAX):
        layout = lay_out(heat_map(targets, ("6.1", "7.2"), 2))
        cells = [cell for line in layout.lines for cell in line.cells if cell]
        assert sorted(cell.number for cell in cells) == list(range(1, 2 * (2 * targets - 1) + 1))
        assert all(cell.name.replace(", ", " ") == cell.square.standing for cell in cells)
        assert next(cell.number for cell in cells if cell.name == "P1, t0, 7.2") == 2 * targets + 1
