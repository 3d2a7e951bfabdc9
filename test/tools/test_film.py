import io
import sys
from typing import Any

import numpy as np
import pytest

from g1_policy_node.contract import load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.tools import film as subject
from g1_policy_node.tools.film import CLIP_ROWS, STILLS, chosen_rows, film
from g1_policy_node.tools.parts import Parts

NAMES = load_contract(find_data('policies/g1_walk/policy.yaml')).joint_names
NOTHING = Parts(*[None] * 7, missing=())


def track(rows: int = 500) -> dict[str, Any]:
    """The robot swings its joints at the origin, in RUN from row 50 on."""
    return {
        'time': 0.02 * np.arange(rows),
        'running': np.arange(rows) >= 50,
        'position': np.tile([0.0, 0.0, 0.79], (rows, 1)),
        'quat_xyzw': np.tile([0.0, 0.0, 0.0, 1.0], (rows, 1)),
        'joint_pos': np.tile(0.2 * np.sin(np.arange(rows) / 5), (len(NAMES), 1)).T,
    }


def run(**facts: Any) -> Parts:
    return NOTHING._replace(track=track(), simulator={'joint_names': list(NAMES), **facts})


def test_the_stills_go_over_all_of_run_and_the_clip_is_from_its_middle() -> None:
    stills, clip = chosen_rows(track(), None)
    assert (stills[0], stills[-1], len(stills)) == (50, 499, STILLS)
    assert abs((clip[0] + clip[-1]) / 2 - 275) < 5
    assert clip[-1] - clip[0] < CLIP_ROWS


def test_a_fall_is_shown_to_its_end() -> None:
    stills, clip = chosen_rows(track(), 6.0)
    assert stills[-1] == 315
    assert 310 <= clip[-1] <= 315


@pytest.mark.parametrize('fell_at', [None, 0.1, 9.98])
@pytest.mark.parametrize('rows', [51, 60, 131])
def test_a_short_run_gives_rows_that_exist(rows: int, fell_at: float | None) -> None:
    stills, clip = chosen_rows(track(rows), fell_at)
    assert stills and clip
    assert all(0 <= row < rows for row in (*stills, *clip))


def test_without_ground_truth_or_run_it_says_so() -> None:
    assert 'no ground truth' in film(NOTHING).note
    never = run()
    never.track['running'][:] = False
    assert 'never in RUN' in film(never).note


def test_without_gl_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'mujoco.egl', None)
    found = film(run())
    assert 'apt-get install libegl1 libgl1' in found.note
    assert not found.stills and not found.clip


def test_a_joint_the_model_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared_or_skip()
    other = run()
    other.simulator['joint_names'][3] = 'tail_joint'
    assert 'tail_joint' in film(other).note


@pytest.mark.slow
def test_the_pictures_show_the_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared_or_skip()
    monkeypatch.setattr(subject, 'CLIP_ROWS', 8)
    monkeypatch.setattr(subject, 'STILLS', 2)
    from PIL import Image

    made = film(run())
    assert made.note == ''
    assert [still.seconds for still in made.stills] == pytest.approx([0.0, 8.98])
    assert Image.open(io.BytesIO(made.clip)).n_frames == 2
    picture = np.asarray(Image.open(io.BytesIO(made.poster)).convert('L'), float)
    assert picture.shape == (subject.HEIGHT, subject.WIDTH)
    # Its dark hands and feet stand out from the pale floor, in the middle and not at the edges.
    middle, edge = picture[:, 140:340], picture[:, :100]
    assert (middle < 80).mean() > 0.01
    assert (edge < 80).mean() < 0.001


def prepared_or_skip() -> None:
    try:
        from mujoco.egl import GLContext

        GLContext(8, 8).free()
    except (ImportError, AttributeError, RuntimeError) as error:
        pytest.skip(f'no off-screen OpenGL here: {error}')
