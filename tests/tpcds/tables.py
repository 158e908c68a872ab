"""The 24 tables, one Parquet file each, as tpcgen-cli writes them: a generator in Rust (extras ``test`` and ``bench``).

Held by: tests/integration/test_tpcds.py
"""

import shutil
import subprocess
import sys
from pathlib import Path


def generate(folder: Path, scale: float) -> None:
    """Write the tables of a scale factor into a new folder."""
    generate_tables("tpcds", folder, scale)


def generate_tables(benchmark: str, folder: Path, scale: float) -> None:
    """Write the tables of "tpch" or "tpcds" into a new folder."""
    program = shutil.which("tpcgen-cli", path=Path(sys.executable).parent) or shutil.which("tpcgen-cli")
    if program is None:
        raise SystemExit("tpcgen-cli is not installed: pip install tpcgen-cli, or make bench, which installs it")
    command = [program, benchmark, "parquet", "-s", f"{scale:g}", f"--output-dir={folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def views(folder: Path) -> str:
    """Return the statements that give DuckDB the tables of a folder."""
    return "".join(f"CREATE VIEW {path.stem} AS FROM '{path}';" for path in sorted(folder.glob("*.parquet")))
