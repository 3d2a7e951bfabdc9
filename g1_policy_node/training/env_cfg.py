"""The Isaac Lab configuration of the walking task, filled in from a contract."""

from typing import Any

import isaaclab.sim as sim_utils
from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import DirectRLEnvCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.sim import SimulationCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg

from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.training.assets import ground_usd, robot_usd
from g1_policy_node.training.env_sizes import PRIVILEGED
from g1_policy_node.training.ppo_config import contract_path
from g1_policy_node.training.randomization import FLOOR_FRICTION, G1EventsCfg
from g1_policy_node.types import UserError

DECIMATION = 4
START_HEIGHT = 0.78


@configclass
class G1SceneCfg(InteractiveSceneCfg):
    """One robot on a plane, per environment; the robot is filled in from the contract."""

    ground: AssetBaseCfg = AssetBaseCfg(
        prim_path='/World/ground',
        spawn=sim_utils.GroundPlaneCfg(
            physics_material=sim_utils.RigidBodyMaterialCfg(
                friction_combine_mode='multiply',
                restitution_combine_mode='multiply',
                static_friction=FLOOR_FRICTION,
                dynamic_friction=FLOOR_FRICTION,
            )
        ),
    )
    robot: Any = None
    contact: ContactSensorCfg = ContactSensorCfg(
        prim_path='{ENV_REGEX_NS}/Robot/Geometry/.*',
        history_length=3,
        update_period=0.0,
        track_air_time=True,
    )


@configclass
class G1WalkEnvCfg(DirectRLEnvCfg):
    """4,096 robots by default; sizes, timing and robot come from the contract at `contract`."""

    contract: str = ''
    """A contract file; empty: the package's own."""
    episode_length_s: float = 20.0
    decimation: int = DECIMATION
    observation_space: int = 0
    action_space: int = 0
    state_space: int = 0
    seed: int = 1
    events: G1EventsCfg = G1EventsCfg()
    scene: G1SceneCfg = G1SceneCfg(num_envs=4096, env_spacing=2.5, replicate_physics=True)
    # njmax and nconmax are per robot: enough for a G1 on flat ground; more would cost memory. The
    # solver goes on until the slowest of all robots is done: ten iterations are what mjlab allows
    # its G1, and nearly all steps need fewer (the manifest counts those that do not).
    sim: SimulationCfg = SimulationCfg(
        device='cuda:0',
        render_interval=DECIMATION,
        physics=NewtonCfg(
            solver_cfg=MJWarpSolverCfg(
                njmax=220,
                nconmax=40,
                iterations=10,
                ls_iterations=50,
                cone='pyramidal',
                impratio=1.0,
                integrator='implicitfast',
            ),
            num_substeps=1,
            debug_mode=False,
        ),
    )

    def __post_init__(self) -> None:
        """Fill in what the contract decides."""
        contract = self.load_contract()
        if contract.gait is None:
            raise UserError(f'{contract.name}: training needs a contract with a gait')
        self.observation_space = contract.observation_size
        self.action_space = len(contract.joint_names)
        self.state_space = contract.observation_size + PRIVILEGED
        self.sim.dt = contract.step_dt / self.decimation
        self.scene.robot = robot_cfg(contract)
        self.scene.ground.spawn.usd_path = str(ground_usd())

    def load_contract(self) -> Contract:
        """Return the contract this task is about."""
        return load_contract(contract_path(self.contract))


def robot_cfg(contract: Contract) -> ArticulationCfg:
    """Return the G1 with the contract's default pose, gains, armature and effort limits."""

    def each(field: str) -> dict[str, float]:
        return {name: getattr(contract.joints[name], field) for name in contract.joint_names}

    return ArticulationCfg(
        prim_path='{ENV_REGEX_NS}/Robot',
        spawn=sim_utils.UsdFileCfg(usd_path=str(robot_usd()), activate_contact_sensors=True),
        init_state=ArticulationCfg.InitialStateCfg(
            pos=(0.0, 0.0, START_HEIGHT),
            joint_pos=each('default_position'),
            joint_vel={'.*': 0.0},
        ),
        actuators={
            'joints': ImplicitActuatorCfg(
                joint_names_expr=list(contract.joint_names),
                stiffness=each('stiffness'),
                damping=each('damping'),
                armature=each('armature'),
                joint_effort_limit=each('effort_limit_training'),
            )
        },
    )
