"""What is under test: file systems with their mkfs, mount and fsck, and the base images made of them."""

from postcrash.targets.base_image import BaseImage, BaseImageError, base_image
from postcrash.targets.catalogue import TABLE_TARGETS, TARGETS, UnknownTargetError, target_named
from postcrash.targets.target import Target

__all__ = [
    "TABLE_TARGETS",
    "TARGETS",
    "BaseImage",
    "BaseImageError",
    "Target",
    "UnknownTargetError",
    "base_image",
    "target_named",
]
