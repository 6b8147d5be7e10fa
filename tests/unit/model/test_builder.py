"""The builder has a method for every word of the language, and no other methods."""

import inspect

import pytest

from postcrash.model import FORMS, Form, WorkloadBuilder, WorkloadError, parse_workload


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.word)
def test_each_operation_has_its_method(form: Form) -> None:
    method = getattr(WorkloadBuilder, form.word.replace("-", "_"))
    parameters = list(inspect.signature(method).parameters.values())[1:]
    assert len(parameters) == len(form.arguments)
    assert sum(parameter.default is not parameter.empty for parameter in parameters) == form.optional


def test_it_emits_what_the_parser_reads() -> None:
    built = (
        WorkloadBuilder()
        .mkdir("d")
        .creat("d/a b")
        .begin()
        .write("d/a b", 0, 10)
        .open("d/a b")
        .fsync("@d/a b")
        .close("@d/a b")
        .append("d/a b", 5)
        .dwrite("d/a b", 0, 512)
        .awrite("d/a b", 0, 512)
        .mmapwrite("d/a b", 0, 1)
        .write_osync("d/a b", 0, 1)
        .write_odsync("d/a b", 0, 1)
        .dwrite_osync("d/a b", 0, 512)
        .awrite_odsync("d/a b", 0, 512)
        .truncate("d/a b", 3)
        .fallocate("d/a b", "punch-hole", 0, 1)
        .fallocate("d/a b", "insert-range", 0, 4096)
        .reflink("d/a b", 0, "d/a b", 8192, 4096)
        .dedupe("d/a b", 0, "d/a b", 8192, 4096)
        .mknod("p", "fifo")
        .tmpfile("d/t")
        .link("@d/t", "t")
        .link("d/a b", "l")
        .symlink("t", "s")
        .rename("l", "m")
        .exchange("m", "d")
        .exchange("m", "d")
        .unlink("m")
        .setxattr("d", "user.n", "v w")
        .removexattr("d", "user.n")
        .fsync(".")
        .fdatasync("d/a b")
        .msync("d/a b")
        .msync("d/a b", 0, 1)
        .writeback("d/a b")
        .writeback("d/a b", 0, 1)
        .commit()
        .checkpoint()
        .drop_caches()
        .sleep(1)
        .sync()
        .syncfs()
        .mkdir("e")
        .rmdir("e")
        .build("w")
    )
    assert {operation.word for operation in built.operations} == set(FORMS)
    assert parse_workload(built.to_text(), "w") == built


@pytest.mark.parametrize("path", ["", "/a", "a\nsync", "a\x00", "..", "a\ud800"])
def test_bad_arguments_are_refused_at_the_call(path: str) -> None:
    builder = WorkloadBuilder().sync()
    with pytest.raises(WorkloadError, match=r"^<builder>:2:7: expected "):
        builder.creat(path)


def test_half_a_range_is_refused() -> None:
    with pytest.raises(WorkloadError, match="expected LENGTH"):
        WorkloadBuilder().writeback("a", 0)


def test_nothing_to_record() -> None:
    with pytest.raises(WorkloadError, match="at least one operation to record"):
        WorkloadBuilder().build("w")


def test_building_twice_gives_the_same() -> None:
    builder = WorkloadBuilder().creat("A").append("A", 1)
    assert builder.build("w") == builder.build("w")
