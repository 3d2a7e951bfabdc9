"""How the physics of one robot differs from the next in training: the real one is one of them.

Isaac Lab's own event terms draw it once, when the simulation starts.
"""

from isaaclab.envs import mdp
from isaaclab.managers import EventTermCfg, SceneEntityCfg
from isaaclab.utils import configclass

FLOOR_FRICTION = 0.2
"""A contact has the larger friction of its two sides: the feet decide."""


@configclass
class G1EventsCfg:
    """What the physics of each robot is: soles, trunk and motors."""

    soles: EventTermCfg = EventTermCfg(
        func=mdp.randomize_rigid_body_material,
        mode='startup',
        params={
            'asset_cfg': SceneEntityCfg('robot', body_names='.*ankle_roll_link'),
            'static_friction_range': (0.3, 1.25),
            'dynamic_friction_range': (0.3, 1.25),
            'restitution_range': (0.0, 0.0),
            'num_buckets': 64,
        },
    )
    trunk: EventTermCfg = EventTermCfg(
        func=mdp.randomize_rigid_body_mass,
        mode='startup',
        params={
            'asset_cfg': SceneEntityCfg('robot', body_names='torso_link'),
            'mass_distribution_params': (0.85, 1.15),
            'operation': 'scale',
        },
    )
    motors: EventTermCfg = EventTermCfg(
        func=mdp.randomize_actuator_gains,
        mode='startup',
        params={
            'asset_cfg': SceneEntityCfg('robot', joint_names='.*'),
            'stiffness_distribution_params': (0.9, 1.1),
            'damping_distribution_params': (0.9, 1.1),
            'operation': 'scale',
        },
    )
