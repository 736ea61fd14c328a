"""What keeps answers good: calibration and compaction, by schedule or on demand."""

from knowledge import bootstrap
from knowledge.entrypoints.maintenance import build_handler

handler = build_handler(bootstrap.maintenance)
