"""The zstd of Python's standard library, or its backport before Python 3.14."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, compress
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, compress

__all__ = ["ZstdCompressor", "ZstdDecompressor", "ZstdError", "compress"]
