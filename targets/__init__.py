"""What is under test: file systems with their mkfs, mount and fsck, and the base images that are made of them."""

from postcrash.targets.aged_files import ROUNDS, AgedFiles
from postcrash.targets.base_image import (
    BaseImage,
    BaseImageError,
    base_image,
    copy_image,
    file_digest,
    image_id,
    keep_image,
    known_image,
    mkfs_version,
    program_path,
)
from postcrash.targets.catalogue import (
    TABLE_TARGETS,
    TARGETS,
    TargetFileError,
    UnknownTargetError,
    load_target,
    target_named,
    target_of,
)
from postcrash.targets.mount import Mount
from postcrash.targets.recovery_kind import RecoveryKind
from postcrash.targets.rule import Rule
from postcrash.targets.target import Target

__all__ = [
    "ROUNDS",
    "TABLE_TARGETS",
    "TARGETS",
    "AgedFiles",
    "BaseImage",
    "BaseImageError",
    "Mount",
    "RecoveryKind",
    "Rule",
    "Target",
    "TargetFileError",
    "UnknownTargetError",
    "base_image",
    "copy_image",
    "file_digest",
    "image_id",
    "keep_image",
    "known_image",
    "load_target",
    "mkfs_version",
    "program_path",
    "target_named",
    "target_of",
]
