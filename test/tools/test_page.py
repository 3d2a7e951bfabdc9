import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_parts import T0, TICK, merged, parts, transitions

from g1_policy_node.black_box import Row, Trip, write_trip
from g1_policy_node.modes import MEANINGS
from g1_policy_node.router import Tick
from g1_policy_node.tools.film import Film, Still
from g1_policy_node.tools.page import COUNTER_MEANINGS, STAGE_MEANINGS, headline, page, story
from g1_policy_node.tools.summary import STAGES, merge_run
from g1_policy_node.types import Inputs, Mode

HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)>\'"&'


class Reader(HTMLParser):
    """The words a person sees, and every tag with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, str] = {}
        self._inside = ''

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get('id', tag) if tag == 'script' else tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ('script', 'style'):
            self._inside = ''

    def handle_data(self, data: str) -> None:
        if self._inside in ('curves', 'latency'):
            self.data[self._inside] = data
        elif self._inside not in ('script', 'style') and data.strip():
            self.words.append(' '.join(data.split()))

    @property
    def text(self) -> str:
        return ' '.join(self.words)


def written(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> str:
    merged(folder, change)
    return (folder / 'report.html').read_text()


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


def test_the_first_screen_says_what_happened_and_that_it_was_accepted(tmp_path: Path) -> None:
    text = read(written(tmp_path)).text
    assert 'The robot walked 4.4 m in 8.0 s and stayed on its feet.' in text
    assert 'Accepted: every limit below was met.' in text
    assert 'It was asked for 0.50 m/s forward, 0.10 rad/s turning left.' in text
    assert '2 of 451 were missed' in text
    assert text.index('Accepted:') < text.index('Accepted against these limits')


def test_every_limit_is_shown_with_what_was_measured(tmp_path: Path) -> None:
    text = read(written(tmp_path)).text
    assert 'It stays on its feet no fall no fall yes' in text
    assert '0.050 m/s off 0.12 m/s off yes' in text
    assert '0.44% 0.60% yes' in text
    assert 'It walks as long as asked 8.0 s 8.0 s yes' in text


def test_a_walk_that_is_not_accepted_says_how_many_limits_it_missed(tmp_path: Path) -> None:
    def fall(given: dict[str, Any]) -> None:
        given['sim.json'].update(fell=True, fell_at_s=9.0)
        given['node.json']['transitions'] = transitions('READY', 'RUN', 'HOLD', 'DAMP')

    text = read(written(tmp_path, fall)).text
    assert 'The robot fell.' in text
    assert 'Not accepted: 1 of 4 limits not met.' in text
    assert 'It stays on its feet it fell no fall no' in text
    assert 'DAMP why DAMP' in text


def test_the_figures_are_those_of_the_summary(tmp_path: Path) -> None:
    reader = read(written(tmp_path))
    summary = json.loads((tmp_path / 'summary.json').read_text())
    assert json.loads(reader.data['latency']) == summary['latency_ms']
    assert list(json.loads(reader.data['latency'])) == list(STAGES), 'in the order of a tick'
    for stage in STAGES:
        figures = ' '.join(f'{summary["latency_ms"][stage][p]:.3f}' for p in ('p50', 'p95', 'p99'))
        assert f'{stage} {STAGE_MEANINGS[stage]} {figures}' in reader.text
    walk = summary['walk']
    for label, name in (('asked', 'command'), ('mean', 'mean_velocity')):
        assert f'{label} {" ".join(f"{value:.3f}" for value in walk[name])}' in reader.text
    assert f'drift to the left {walk["drift_m"]:.2f} m' in reader.text
    assert summary['weights_sha256'] in reader.words


@pytest.mark.parametrize('name', [*parts(), None])
def test_it_opens_with_any_part_missing_and_says_which(tmp_path: Path, name: str | None) -> None:
    reader = read(written(tmp_path, lambda given: name and given.pop(name)))
    assert ('Missing from this run:' in reader.text) == (name is not None)
    if name is not None:
        assert name in reader.words
    json.loads(reader.data['curves'], parse_constant=pytest.fail)


def test_every_trip_is_explained_and_linked(tmp_path: Path) -> None:
    merged(tmp_path, lambda _: None)
    (tmp_path / 'trips').mkdir()
    rows = [
        Row(
            slot,
            T0 + TICK * slot,
            (0,) * 7,
            Inputs(None, None, None, None),
            Tick(Mode.RUN, [0], 0),
        )
        for slot in range(40, 101)
    ]
    trip = Trip(Mode.HOLD, 'stale', 'imu is stale', '', rows)
    write_trip(tmp_path / 'trips', 1, trip, {'policy': 'p', 'device': 'cpu', 'counters': {}})
    (tmp_path / 'trips' / 'trip-002-DAMP-tilt.npz').write_bytes(b'cut short')
    merge_run(tmp_path)
    reader = read((tmp_path / 'report.html').read_text())
    assert '1.00 HOLD stale imu is stale trips/trip-001-HOLD-stale.npz' in reader.text
    assert 'trip-002-DAMP-tilt.npz: not an npz file of plain arrays' in reader.text
    links = [attributes['href'] for tag, attributes in reader.tags if tag == 'a']
    assert links == ['trips/trip-001-HOLD-stale.npz', 'trips/trip-002-DAMP-tilt.npz']


def test_an_empty_run_has_a_report_too(tmp_path: Path) -> None:
    (tmp_path / 'run').mkdir()
    merge_run(tmp_path / 'run')
    text = read((tmp_path / 'run' / 'report.html').read_text()).text
    assert 'Not accepted' in text
    assert 'node.json' in text


def test_a_robot_that_flew_apart_has_a_report_too(tmp_path: Path) -> None:
    def explode(given: dict[str, Any]) -> None:
        given['sim.npz']['lin_vel'][-1] = np.nan

    assert 'nan' not in read(written(tmp_path, explode)).text.lower().split()


def test_a_lockstep_run_says_nothing_about_keeping_time(tmp_path: Path) -> None:
    html = written(tmp_path, lambda given: given['sim.json'].update(lockstep=True))
    assert 'this run says nothing about keeping time' in read(html).text
    assert 'id="lateness-plot"' not in html


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    def poison(given: dict[str, Any]) -> None:
        given['bringup.json'] |= {'command_line': [HOSTILE], 'started_utc': HOSTILE}
        given['node.json'] |= {'device': HOSTILE, 'policy': HOSTILE, 'counters': {HOSTILE: 1}}
        given['node.json']['transitions'][1]['reason'] = HOSTILE
        given['cmd.json']['ended'] = HOSTILE
        given['sim.json']['joint_names'] = [HOSTILE, HOSTILE]

    reader, clean = read(written(tmp_path, poison)), read(written(tmp_path))
    assert [tag for tag, _ in reader.tags].count('script') == 3
    assert not [tag for tag, _ in reader.tags if tag == 'img']
    assert not {name for _, attributes in reader.tags for name in attributes if name[:2] == 'on'}
    assert HOSTILE in reader.words
    assert len(clean.tags) <= len(reader.tags)


def test_nothing_comes_from_outside(tmp_path: Path) -> None:
    merged(tmp_path)
    film = Film('', (Still(0.0, b'one'), Still(1.0, b'two')), b'clip', b'poster')
    merge_run(tmp_path, lambda _: film)
    html = (tmp_path / 'report.html').read_text()
    tags = read(html).tags
    for tag, attributes in tags:
        for name in ('src', 'srcset', 'href', 'action', 'poster', 'data'):
            assert (attributes.get(name) or 'data:').startswith('data:'), (tag, attributes)
    assert [tag for tag, _ in tags].count('img') == 3
    assert "default-src 'none'" in html
    assert not re.search(r'https?://|url\((?!#)|@import|\bfetch\(', html)


def test_without_pictures_there_is_one_line_that_says_why(tmp_path: Path) -> None:
    merged(tmp_path)
    merge_run(tmp_path, lambda _: Film('There are no pictures: no <GL>.'))
    reader = read((tmp_path / 'report.html').read_text())
    assert 'There are no pictures: no <GL>.' in reader.words
    assert not [tag for tag, _ in reader.tags if tag == 'img']


def test_a_page_keeps_its_size_however_long_the_run(tmp_path: Path) -> None:
    def hour(given: dict[str, Any]) -> None:
        for name in ('timing.npz', 'sim.npz'):
            longer = {k: np.repeat(v, 400, axis=0) for k, v in given[name].items()}
            given[name] = longer | {'tick_ns': T0 + TICK * np.arange(len(longer['tick_ns']))}
        given['timing.npz']['slot'] = np.arange(len(given['timing.npz']['tick_ns']))

    assert len(written(tmp_path, hour)) < 500_000


@pytest.mark.parametrize(
    ('walk', 'said'),
    [
        ({'fell': True, 'run_seconds': 3.0}, 'The robot fell.'),
        ({'fell': None, 'run_seconds': 0.0}, 'The robot never walked'),
        ({'fell': None}, 'how the robot moved was not recorded'),
        ({'fell': False, 'run_seconds': 9.0, 'command': [0, 0, 0]}, 'stood for 9.0 s and stayed'),
        ({'fell': None, 'run_seconds': 9.0, 'distance_m': 4.0}, 'whether it fell is not known'),
    ],
)
def test_the_headline_tells_each_end(walk: dict[str, Any], said: str) -> None:
    assert said in headline({'walk': walk})


def test_the_headline_tells_a_policy_that_never_ran_from_one_that_was_not_seen() -> None:
    ended = [{'mode': 'WAITING', 'reason': 'no imu/data yet'}, {'mode': 'INACTIVE'}]
    summary = {'walk': {'fell': None}, 'transitions': ended}
    assert headline(summary) == 'The policy never got to run.'
    told = {**summary, 'rate_hz': None, 'lockstep': None, 'ended': None}
    assert story(told, {})[1] == 'It came as far as WAITING: no imu/data yet.'
    ran = headline({'walk': {'fell': None}, 'transitions': [{'mode': 'RUN'}, *ended]})
    assert 'was not recorded' in ran


def test_what_is_not_known_is_left_out_of_the_story() -> None:
    summary = {'walk': {'fell': None}, 'rate_hz': None, 'lockstep': None, 'ended': None}
    assert len(story(summary, {})) == 1


def test_every_stage_and_safety_counter_is_explained(tmp_path: Path) -> None:
    from g1_policy_node import command, safety

    assert list(STAGE_MEANINGS) == list(STAGES)
    source = Path(command.__file__).read_text() + Path(safety.__file__).read_text()
    assert all(f"'{name}'" in source for name in COUNTER_MEANINGS)


def test_every_mode_has_a_colour_and_an_explanation() -> None:
    html = page_of_nothing()
    for mode in Mode:
        assert re.search(rf'\.{mode.value}\b', html), mode
        assert f'<dt>{mode.value}</dt><dd>{MEANINGS[mode]}</dd>' in html, mode


def page_of_nothing() -> str:
    summary = {
        **dict.fromkeys(('device', 'rate_hz', 'lockstep', 'ended', 'counters', 'slots')),
        **dict.fromkeys(('deadline_misses', 'floor_slots', 'floor_misses')),
        **dict.fromkeys(('weights_sha256', 'contract_sha256')),
        'accepted': False,
        'criteria': [],
        'missing': [],
        'walk': {'fell': None},
        'latency_ms': dict.fromkeys(STAGES),
    }
    mode = {'mode': 'RUN', 'reason': '', 'begin': 0.0, 'end': 1.0}
    nothing = dict.fromkeys(('velocity', 'joints', 'lateness'))
    drawn = {'span': [0.0, 1.0], 'modes': [mode], 'latency': {}, **nothing}
    return page('nothing', summary, {}, drawn, Film('none'))
