"""The S3 server of tests: versitygw, whose build takes about a minute of a processor and 45 MB."""

from pathlib import Path
from typing import Final

from tools.go_build import GoProgram

SERVER: Final = GoProgram("versitygw", "github.com/versity/versitygw", Path(__file__).parent / "go", "s3")
