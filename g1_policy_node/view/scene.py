"""The robot in the browser: the visual meshes of its MJCF, posed by joint and base positions."""

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from g1_policy_node.sim.model import PELVIS, find_mjcf
from g1_policy_node.types import Array

STANDING_HEIGHT = 0.79
"""Height [m] of the pelvis where no odom tells."""

_VISUAL_GROUP = 2
_CELL = 0.005
"""Vertices within one cube of this side [m] become one: a fifth of the triangles, to the eye
the same."""


class Base(NamedTuple):
    """Where the pelvis is: `position` (3,) m and `quat_wxyz` (4,) in the world."""

    position: Sequence[float]
    quat_wxyz: Sequence[float]


UPRIGHT = Base((0.0, 0.0, STANDING_HEIGHT), (1.0, 0.0, 0.0, 0.0))


class RobotScene:
    """Puts the robot into `server`'s scene. It stays in the middle; the ground moves under it."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._model = mujoco.MjSpec.from_file(str(find_mjcf())).compile()
        self._data = mujoco.MjData(self._model)
        server.scene.set_up_direction('+z')
        # Shadows double the triangles, which a browser without a graphics card feels.
        server.scene.configure_default_lights(cast_shadow=False)
        server.initial_camera.position = (1.8, -1.5, 1.0)
        server.initial_camera.look_at = (0.0, 0.0, 0.6)
        server.on_client_connect(_look_from_a_phone)
        self._ground = server.scene.add_grid('/ground', infinite_grid=True, fade_distance=20.0)
        self._bodies = {
            body: server.scene.add_frame(f'/robot/{self._model.body(body).name}', show_axes=False)
            for body in range(1, self._model.nbody)
        }
        for geom in np.flatnonzero(self._model.geom_group == _VISUAL_GROUP):
            self._add(int(geom))

    def pose(self, base: Base, names: Sequence[str], positions: Sequence[float]) -> None:
        """Show the robot with its base at `base` and the joints `names` at `positions`, rad.

        A joint that the model has not, or that is not named, stays where it was.
        """
        qpos = self._data.qpos
        qpos[:3], qpos[3:7] = base
        for name, position in zip(names, positions, strict=True):
            joint = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if joint >= 0:
                qpos[self._model.jnt_qposadr[joint]] = position
        mujoco.mj_kinematics(self._model, self._data)
        x, y, _ = base.position
        with self._server.atomic():
            self._ground.position = (-(x % 1.0), -(y % 1.0), 0.0)
            for body, frame in self._bodies.items():
                frame.position = self._data.xpos[body] - (x, y, 0.0)
                frame.wxyz = self._data.xquat[body]

    def pelvis(self) -> Array:
        """Return the position (3,) m of the pelvis in the world."""
        position: Array = self._data.body(PELVIS).xpos.copy()
        return position

    def _add(self, geom: int) -> None:
        model = self._model
        vertices, faces = _thinned(*_mesh(model, model.geom_dataid[geom]))
        material = model.geom_matid[geom]
        rgba = model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]
        body = model.body(model.geom_bodyid[geom]).name
        self._server.scene.add_mesh_simple(
            f'/robot/{body}/{geom}',
            vertices,
            faces,
            color=(255 * rgba[:3]).astype(np.uint8),
            position=model.geom_pos[geom],
            wxyz=model.geom_quat[geom],
        )


def _look_from_a_phone(client: viser.ClientHandle) -> None:
    """Show the robot further up on an upright screen: the lower part is the panel's."""
    camera = client.camera
    if camera.image_height > camera.image_width:
        camera.look_at = (0.0, 0.0, 0.2)


def _mesh(model: mujoco.MjModel, mesh: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return a mesh's vertices (V, 3) m and faces (F, 3)."""
    vertex, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
    vertices = model.mesh_vert[vertex : vertex + model.mesh_vertnum[mesh]]
    return vertices, model.mesh_face[face : face + model.mesh_facenum[mesh]]


def _thinned(
    vertices: NDArray[np.float32], faces: NDArray[np.int32]
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Merge the vertices of each cell into their mean; drop the faces that vanish."""
    _, cell, count = np.unique(
        np.floor(vertices / _CELL), axis=0, return_inverse=True, return_counts=True
    )
    cell = cell.reshape(-1)
    means = np.zeros((len(count), 3))
    np.add.at(means, cell, vertices)
    corners = cell[faces]
    a, b, c = corners.T
    kept = corners[(a != b) & (b != c) & (c != a)]
    return (means / count[:, None]).astype(np.float32), kept.astype(np.int32)
