"""Pictures of a run, rendered off-screen (EGL) from the simulator's ground truth."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.tools.motion import longest_stretch, yaw
from g1_policy_node.tools.parts import Part, Parts
from g1_policy_node.types import UserError

WIDTH, HEIGHT = 480, 400
STILLS = 8
"""Pictures of the strip, evenly over RUN."""

CLIP_ROWS, CLIP_STEP = 80, 4
"""The moving picture: two gait periods of the track, every so-manieth row."""

_QUALITY = 72
_NO_GL = 'they need off-screen OpenGL (EGL): apt-get install libegl1 libgl1.'

Image = NDArray[np.uint8]
Aim = Callable[[Any, Part, int], None]


class Still(NamedTuple):
    """One WebP picture, `seconds` into RUN."""

    seconds: float
    picture: bytes


class Film(NamedTuple):
    """WebP pictures: `stills` in order, `clip` moving, `poster` its first.

    `note` says why there are none; then the rest is empty.
    """

    note: str = ''
    stills: tuple[Still, ...] = ()
    clip: bytes = b''
    poster: bytes = b''


def film(parts: Parts, progress: Callable[[Sequence[int]], Iterable[int]] = iter) -> Film:
    """Render the pictures of a run; `progress` goes through the rows to render."""
    track, names = parts.track, (parts.simulator or {}).get('joint_names')
    if track is None or not names:
        return Film('There are no pictures: the simulator left no ground truth to draw.')
    rows, clip = chosen_rows(track, (parts.simulator or {}).get('fell_at_s'))
    if not rows:
        return Film('There are no pictures: the robot was never in RUN.')
    try:
        with stage(names) as render:
            images = {row: render(track, row) for row in progress(sorted({*rows, *clip}))}
        return _encoded(images, track, rows, clip)
    except (UserError, _NoPicturesError) as error:
        return Film(f'There are no pictures: {error}')


def chosen_rows(track: Part, fell_at: float | None) -> tuple[list[int], list[int]]:
    """Return the rows of the stills and of the clip; both empty where nothing ran.

    The clip is from the middle of RUN, where the robot walks steadily; of a fall, its end.
    """
    run = longest_stretch(track['running'].astype(bool))
    count = run.stop - run.start
    if count <= 0:
        return [], []
    last = run.stop - 1
    middle = run.start + max(0, (count - CLIP_ROWS) // 2)
    if fell_at is not None:
        # A fall is seen when it is nearly over, and RUN may end before it.
        seen = min(int(np.searchsorted(track['time'], fell_at)) + 15, len(track['time']) - 1)
        last = max(seen, run.start)
        middle = max(run.start, last - CLIP_ROWS)
    stills = np.linspace(run.start, last, STILLS).round().astype(int)
    clip = range(middle, min(middle + CLIP_ROWS, last + 1), CLIP_STEP)
    return sorted({int(row) for row in stills}), list(clip)


class _NoPicturesError(Exception):
    """Why this machine cannot render."""


@contextmanager
def stage(
    joint_names: Sequence[str], width: int = WIDTH, height: int = HEIGHT
) -> Iterator[Callable[..., Image]]:
    """Give a function that renders row i of a track, with a camera that goes along.

    Further rows add the robot as it was then to the same picture; `point` may aim the camera.
    """
    mujoco, gl, model = _prepared(width, height)
    try:
        gl.make_current()
        joints = [model.joint(name).qposadr[0] for name in joint_names]
        data, camera = mujoco.MjData(model), mujoco.MjvCamera()
        scene = mujoco.MjvScene(model, maxgeom=1000)
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
        options, pert, cats = mujoco.MjvOption(), mujoco.MjvPerturb(), mujoco.mjtCatBit
        options.geomgroup[:] = (1, 1, 1, 0, 0, 0)  # The robot's capsules are in group 3.
        window = mujoco.MjrRect(0, 0, width, height)

        def render(track: Part, row: int, *others: int, point: Aim = aim) -> Image:
            pose(data.qpos, track, row, joints)
            mujoco.mj_forward(model, data)
            point(camera, track, row)
            mujoco.mjv_updateScene(model, data, options, pert, camera, cats.mjCAT_ALL, scene)
            for other in others:
                pose(data.qpos, track, other, joints)
                mujoco.mj_forward(model, data)
                mujoco.mjv_addGeoms(model, data, options, pert, cats.mjCAT_DYNAMIC, scene)
            mujoco.mjr_render(window, scene, context)
            image = np.empty((height, width, 3), np.uint8)
            mujoco.mjr_readPixels(image, None, window, context)
            return image[::-1]

        yield render
        context.free()
    except KeyError as error:
        raise _NoPicturesError(f"the robot's model has another joint: {error}") from None
    finally:
        gl.free()


def pose(qpos: Any, track: Part, row: int, joints: Sequence[int]) -> None:
    """Write row i of the track to MuJoCo's coordinates; `joints` are the joints' addresses."""
    qpos[:3] = track['position'][row]
    qpos[3:7] = track['quat_xyzw'][row][[3, 0, 1, 2]]
    qpos[joints] = track['joint_pos'][row]


def aim(camera: Any, track: Part, row: int) -> None:
    """Look at the robot from ahead and aside; position and heading are means over a second."""
    around = slice(max(0, row - 25), row + 26)
    camera.lookat[:2] = track['position'][around, :2].mean(0)
    camera.lookat[2] = 0.68
    heading = float(np.degrees(yaw(track['quat_xyzw'][around]).mean()))
    camera.distance, camera.elevation, camera.azimuth = 2.2, -10.0, heading + 145.0


def _prepared(width: int, height: int) -> tuple[Any, Any, Any]:
    """Return mujoco, a GL context and the model with its meshes."""
    try:
        import mujoco
    except ImportError:
        raise _NoPicturesError('they need pip install mujoco.') from None
    try:
        from mujoco.egl import GLContext

        gl = GLContext(width, height)
    except (ImportError, AttributeError, RuntimeError, OSError):
        # Which of them depends on how much of EGL is there.
        raise _NoPicturesError(_NO_GL) from None
    try:
        return mujoco, gl, _picture_model(width, height)
    except BaseException:
        gl.free()
        raise


def _picture_model(width: int, height: int) -> Any:
    """Return the robot with its meshes, which the simulator leaves out, on a floor, in light."""
    import mujoco

    from g1_policy_node.sim.model import find_mjcf

    spec = mujoco.MjSpec.from_file(str(find_mjcf()))
    look = spec.visual
    look.global_.offwidth, look.global_.offheight = width, height
    look.headlight.ambient, look.headlight.diffuse = [0.4] * 3, [0.3] * 3
    look.headlight.specular = [0.0] * 3
    _add_scenery(spec, mujoco)
    return spec.compile()


def _add_scenery(spec: Any, mujoco: Any) -> None:
    spec.add_texture(
        name='sky',
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.93, 0.95, 0.98],
        rgb2=[0.66, 0.73, 0.82],
        width=64,
        height=64,
    )
    spec.add_texture(
        name='floor',
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.78, 0.81, 0.85],
        rgb2=[0.70, 0.74, 0.79],
        width=256,
        height=256,
    )
    floor = spec.add_material(name='floor', texrepeat=[1, 1], texuniform=True)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = 'floor'
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name='floor', type=plane, size=[0, 0, 1], material='floor')
    # No shadows: they would double the time of a picture.
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=[-0.3, 0.25, -1],
        diffuse=[0.5] * 3,
        specular=[0.1] * 3,
        castshadow=False,
    )


def _encoded(
    images: dict[int, Image], track: Part, rows: Sequence[int], clip: Sequence[int]
) -> Film:
    try:
        from PIL import Image as Pillow
    except ImportError:
        raise _NoPicturesError('they need pip install pillow.') from None
    pictures = {row: Pillow.fromarray(image) for row, image in images.items()}

    def webp(row: int, **more: Any) -> bytes:
        file = io.BytesIO()
        pictures[row].save(file, 'WEBP', quality=_QUALITY, method=4, **more)
        return file.getvalue()

    moving = {'save_all': True, 'append_images': [pictures[row] for row in clip[1:]]}
    start = track['time'][rows[0]]
    return Film(
        stills=tuple(Still(float(track['time'][row] - start), webp(row)) for row in rows),
        clip=webp(clip[0], duration=20 * CLIP_STEP, loop=0, **moving),
        poster=webp(clip[0]),
    )
