"""What the pages for people name exists, and the two READMEs are the same."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md')])


def code(page: Path) -> list[str]:
    """The indented lines, without their comments and spacing."""
    lines = [line for line in page.read_text().splitlines() if line.startswith('    ')]
    return [' '.join(re.split(r'\s# ?', line)[0].split()) for line in lines]


def first_cells(page: Path) -> list[str]:
    """What the rows of the tables name in code; words are another in each language."""
    rows = [line.split('|')[1] for line in page.read_text().splitlines() if line[:1] == '|']
    return [name for row in rows for name in re.findall(r'`([^`]+)`', row)]


def test_the_korean_readme_has_the_same_code_tables_and_sections() -> None:
    english, korean = ROOT / 'README.md', ROOT / 'README.ko.md'
    assert code(korean) == code(english)
    assert first_cells(korean) == first_cells(english)
    headings = [len(re.findall(r'^## ', p.read_text(), re.MULTILINE)) for p in (english, korean)]
    assert headings[0] == headings[1]


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r'\]\(([^)#]+)[^)]*\)', page.read_text()):
        if '://' not in target:
            assert (page.parent / target).exists(), target


def test_the_pictures_are_small() -> None:
    sizes = {p.name: p.stat().st_size for p in (ROOT / 'docs' / 'images').iterdir()}
    assert sizes
    assert all(size < 300_000 for size in sizes.values()), sizes
