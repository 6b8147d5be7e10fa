"""Arguments come apart as strace prints them, and damaged ones are refused in time proportional to their length."""

import contextlib
import time

import pytest

from postcrash.recorders.strace.arguments import (
    ArgumentsError,
    Descriptor,
    descriptor,
    flags,
    number,
    path,
    split,
    string,
    unescaped,
    vector,
)


@pytest.mark.parametrize("unit", ['"', "\\", '\\"', "1<", "1<-", "(", "[{", ",", "3, ", '"",', "a<>"])
def test_long_lines_take_no_longer_than_their_length(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    for end in ("", ")", '")'):
        with contextlib.suppress(ArgumentsError):
            split(f'"{text}{end}' if "\\" in unit else text + end, 0)
    assert time.process_time() - started < 10


def test_strings_take_no_longer_than_their_length() -> None:
    started = time.process_time()
    assert string('"' + r"\x41" * 500_000 + '"') == (b"A" * 500_000, True)
    assert string('"' + r"\0a" * 300_000 + '"') == (b"\0a" * 300_000, True)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (")", []),
        (" )", []),
        ("3)", ["3"]),
        ("3, 4)", ["3", "4"]),
        ("3,)", ["3", ""]),
        ('"a, b)", 5)', ['"a, b)"', "5"]),
        (r'"a\"b, ", 5)', [r'"a\"b, "', "5"]),
        (r'"a\\", 5)', [r'"a\\"', "5"]),
        (r'"a\\\"", 5)', [r'"a\\\""', "5"]),
        ('AT_FDCWD</a, b)>, "c")', ["AT_FDCWD</a, b)>", '"c"']),
        ("3<TCP:[1.2.3.4:5->6.7.8.9:10]>, 4)", ["3<TCP:[1.2.3.4:5->6.7.8.9:10]>", "4"]),
        ("[{iov_base=1, iov_len=2}, {}], f(1, 2))", ["[{iov_base=1, iov_len=2}, {}]", "f(1, 2)"]),
        ("1 << 3, 4)", ["1 << 3", "4"]),
    ],
)
def test_commas_within_strings_brackets_and_paths_divide_nothing(text: str, expected: list[str]) -> None:
    assert split(text, 0) == (expected, len(text))
    assert split(f"f({text} = 0, x)", 2) == (expected, len(text) + 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "bracket"), ("3, 4", "bracket"), ("[3, 4)", "bracket"), ('"a', "quote"), (r'"a\")', "quote")],
)
def test_a_call_that_does_not_end_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ArgumentsError, match=f"a closing {expected}"):
        split(text, 0)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ('""', b""),
        ('"ab"', b"ab"),
        (r'"\x00\xff"', b"\0\xff"),
        (r'"a\x41"', b"aA"),
        (r'"\n\t\r\f\v\a\b\e"', b"\n\t\r\f\v\a\b\x1b"),
        (r'"\0\01\0012\377"', b"\0\x01\x012\xff"),
        (r'"\"\\"', b'"\\'),
        (r'"\8"', b"8"),
        (r'"\777"', b"\xff"),
        ('"\xe9"', b"\xe9"),
    ],
)
def test_a_string_stands_for_its_bytes_whole_or_cut(argument: str, expected: bytes) -> None:
    assert string(argument) == (expected, True)
    assert string(argument + "...") == (expected, False)


@pytest.mark.parametrize("argument", ["", '"', "...", '"...', "NULL", "0x7ffd", 'x"a"', '"a"x', "'a'"])
def test_what_is_no_string_is_refused(argument: str) -> None:
    with pytest.raises(ArgumentsError, match="a string"):
        string(argument)


def test_hexadecimal_digits_come_in_pairs() -> None:
    assert unescaped(r"\x41\x42") == b"AB"
    with pytest.raises(ArgumentsError, match="two hexadecimal digits"):
        unescaped(r"\x4g")


def test_a_path_may_be_no_text_and_must_be_whole() -> None:
    assert path(r'"/r/\303\251"') == "/r/é"
    assert path(r'"\xff"') == "\udcff"
    with pytest.raises(ArgumentsError, match="a whole path; run strace with a larger -s"):
        path('"/r/f"...')


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("3", Descriptor(3, "")),
        ("3</r/f>", Descriptor(3, "/r/f")),
        ("3</r/f>(deleted)", Descriptor(3, "/r/f")),
        ("3</r/f (deleted)>", Descriptor(3, "/r/f (deleted)")),
        (r"3</r/\303\251\n>", Descriptor(3, "/r/é\n")),
        ("3</r/a>b>", Descriptor(3, "/r/a>b")),
        ("AT_FDCWD", Descriptor(None, "")),
        ("AT_FDCWD</r>", Descriptor(None, "/r")),
        ("999999999", Descriptor(999_999_999, "")),
        ("1000000000", None),
        ("-1", None),
        ("NULL", None),
        ("", None),
        ("\u0663", None),
        ('"3"', None),
    ],
)
def test_an_argument_that_stands_for_a_descriptor(argument: str, expected: Descriptor | None) -> None:
    assert descriptor(argument) == expected


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        *(("0", 0), ("010", 10), ("-1", -1), ("0x1f", 31), ("-0x10", -16), ("[10]", 10), ("[10 => 20]", 10)),
        *(("18446744073709551615", 2**64 - 1), ("0xffffffffffffffff", 2**64 - 1), ("4096 /* 4K */", 4096)),
    ],
)
def test_numbers_are_decimal_or_hexadecimal(argument: str, expected: int) -> None:
    assert number(argument) == expected


@pytest.mark.parametrize(
    "argument", ["", "NULL", "1.5", "0x", "0X1", "1_0", "1" * 21, "0x" + "f" * 17, "--1", "\u0663"]
)
def test_what_is_no_number_is_refused(argument: str) -> None:
    with pytest.raises(ArgumentsError, match="a number"):
        number(argument)


def test_flags_are_names_without_an_order() -> None:
    assert flags("O_RDWR|O_CREAT") == flags("O_CREAT|O_RDWR") == {"O_CREAT", "O_RDWR"}
    assert flags("0") == flags("") == frozenset()


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("[]", (b"", True)),
        ('[{iov_base="a", iov_len=1}, {iov_base="b,c", iov_len=3}]', (b"ab,c", True)),
        ('[{iov_base="a"..., iov_len=9}, {iov_base="b", iov_len=1}]', (b"ab", False)),
        ('[{iov_base="a", iov_len=1}, ...]', (b"a", False)),
    ],
)
def test_a_vector_is_its_parts_one_behind_the_other(argument: str, expected: tuple[bytes, bool]) -> None:
    assert vector(argument) == expected


@pytest.mark.parametrize("argument", ["", "0x7ffd", "NULL", "[{iov_base=0x7ffd, iov_len=1}]", "[{iov_base="])
def test_a_vector_without_its_bytes_is_refused(argument: str) -> None:
    with pytest.raises(ArgumentsError):
        vector(argument)
