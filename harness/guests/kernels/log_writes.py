"""Which kernels have dm-log-writes, found out without booting them."""

from postcrash.harness.guests.kernels.config import config_of, sets
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.modules import module_is_there

_MODULE, _OPTION = "dm_log_writes", "DM_LOG_WRITES"


def has_log_writes(kernel: Kernel) -> bool:
    """Whether `kernel` has dm-log-writes. False also where nothing is known of a kernel.

    Raises InfrastructureError if depmod's lists cannot be read.
    """
    return _known(kernel) is True


def lacks_log_writes(kernel: Kernel) -> bool:
    """Whether `kernel` is known to lack dm-log-writes. Raises as `has_log_writes` does."""
    return _known(kernel) is False


def _known(kernel: Kernel) -> bool | None:
    if kernel.modules is not None:
        return module_is_there(kernel.modules, _MODULE)
    config = config_of(kernel.path, None)
    return None if config is None else sets(config, _OPTION)
