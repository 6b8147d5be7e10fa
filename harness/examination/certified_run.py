"""Runs in the store that have certificates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from postcrash.harness.examination.certificate import Certificate, certificates_of
from postcrash.harness.guests.events import Count
from postcrash.harness.wire import Message, WireError
from postcrash.store.store import Store, StoreError


@dataclass(frozen=True, slots=True)
class CertifiedRun(Message):
    """The fields of a run in the store that its certificates refer to.

    recording     id of the recording, base: id of the base image, model: the device model
    states        number of crash states, and covered: those that the certificates cover
    findings      ids of the findings
    certificates  in the form of the store
    kernel        the guest's kernel, and guest: the digest of the guest; older runs do not have both
    """

    __pydantic_config__ = ConfigDict(extra="ignore")
    recording: str
    base: str
    model: str
    states: Count
    covered: Count
    findings: tuple[str, ...]
    certificates: list[Any]
    kernel: str = "an unknown kernel"
    guest: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether every crash state is covered."""
        return self.covered == self.states

    def read_certificates(self) -> list[Certificate]:
        """The certificates. Raises `StoreError` if they are damaged."""
        return certificates_of(self.certificates)


def certified_runs(store: Store) -> Iterator[CertifiedRun]:
    """The runs of the store that have certificates, oldest first. Raises `StoreError` if one is damaged."""
    for row in store.runs():
        if row.get("certificates"):
            try:
                yield CertifiedRun.from_wire(row)
            except WireError as error:
                raise StoreError(f"damaged: a run is not what was put there: {error}") from error
