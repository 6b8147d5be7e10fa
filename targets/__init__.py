"""What is under test: file systems with their mkfs, mount and fsck, and the base images that are made of them."""

from postcrash.targets.aged_files import ROUNDS, AgedFiles
from postcrash.targets.base_image import (
    BaseImage,
    BaseImageError,
    base_image,
    copy_image,
    image_id,
    keep_image,
    known_image,
    mkfs_version,
)
from postcrash.targets.catalogue import (
    STACKS,
    TABLE_TARGETS,
    TARGETS,
    VARIANTS,
    TargetFileError,
    UnknownTargetError,
    load_target,
    target_named,
    target_of,
)
from postcrash.targets.mount import Mount
from postcrash.targets.programs import Ask, content_digest_by, file_digest, found_program, libraries_of, program_path
from postcrash.targets.recipe import NoProgramError, recipe_of
from postcrash.targets.recovery_kind import RecoveryKind
from postcrash.targets.rule import Rule
from postcrash.targets.target import Target

__all__ = [
    "ROUNDS",
    "STACKS",
    "TABLE_TARGETS",
    "TARGETS",
    "VARIANTS",
    "AgedFiles",
    "Ask",
    "BaseImage",
    "BaseImageError",
    "Mount",
    "NoProgramError",
    "RecoveryKind",
    "Rule",
    "Target",
    "TargetFileError",
    "UnknownTargetError",
    "base_image",
    "content_digest_by",
    "copy_image",
    "file_digest",
    "found_program",
    "image_id",
    "keep_image",
    "known_image",
    "libraries_of",
    "load_target",
    "mkfs_version",
    "program_path",
    "recipe_of",
    "target_named",
    "target_of",
]
