"""Which answers of a kernel say that a file system lacks an operation."""

from errno import EINVAL, EIO, ENODEV, ENOSYS, EOPNOTSUPP, EPERM, EROFS

import pytest

from postcrash.harness.errors import OperationFailedError, errno_name


@pytest.mark.parametrize(
    ("operation", "answers"),
    [
        ("link", {EPERM}),
        ("exchange", {EINVAL}),
        ("mmapwrite", {ENODEV}),
        ("awrite", {EINVAL}),
        ("awrite-odsync", {EINVAL}),
        ("fallocate collapse-range", {EINVAL}),
        ("fallocate none", set()),
        ("write", set()),
        ("rename", set()),
    ],
)
def test_manual_pages_say_what_an_operation_answers_where_it_is_not_supported(
    operation: str, answers: set[int]
) -> None:
    errnos = (EPERM, EINVAL, ENODEV, ENOSYS, EOPNOTSUPP, EIO, EROFS)
    found = {errno for errno in errnos if OperationFailedError("no", operation, errno).is_unsupported}
    assert found == answers | {ENOSYS, EOPNOTSUPP}


def test_an_errno_has_the_name_that_manual_pages_have() -> None:
    assert list(map(errno_name, (EPERM, EOPNOTSUPP, 9999))) == ["EPERM", "EOPNOTSUPP", "errno 9999"]
