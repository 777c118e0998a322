"""Write the pages that come from the code, so that pages and code cannot disagree.

python docs/generate.py           writes the pages
python docs/generate.py --check   names the pages that are out of date, and exits with 1
"""

from __future__ import annotations

import sys
from pathlib import Path

import commandpages
import policypages
import recordpages

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Every page that is written here, by its place in docs."""
    return {
        **policypages.pages(),
        "commands.md": commandpages.page(),
        "json.md": recordpages.page(),
    }


def main(arguments: list[str]) -> int:
    wanted = pages()
    there = [DOCS / name for name in wanted] + [*(DOCS / "policies").glob("*.md")]
    present = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in there
        if path.exists()
    }
    changed = [name for name, text in wanted.items() if present.get(name) != text]
    left_over = sorted(present.keys() - wanted.keys())
    if "--check" in arguments:
        for name in changed + left_over:
            print(f"docs/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if changed or left_over else 0
    for name in changed:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(wanted[name], encoding="utf-8")
    for name in left_over:
        (DOCS / name).unlink()
    print(f"docs: {len(changed)} written, {len(left_over)} removed, {len(wanted)} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
